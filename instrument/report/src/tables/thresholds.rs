//! Each threshold once, with the value that it was compared with, or where it broke.
//!
//! It must never count a threshold that is undecided or invalid as one that is met.

use model::result::{Answer, ThresholdResult, Verdict};

use super::Shown;
use crate::paint::{Paint, clean};

/// Places that are named where a threshold broke; the table of results has them all.
const NAMED_MAX: usize = 6;

/// One line of the section.
pub(crate) struct ThresholdLine {
    /// The mark and its paint.
    pub(crate) mark: &'static str,
    /// The paint.
    pub(crate) paint: Paint,
    /// As written, with the level's word if it is not `fail`.
    pub(crate) expr: String,
    /// The value, or where it broke.
    pub(crate) text: String,
    /// Whether it does not hold everywhere: it broke, or the answer is open.
    pub(crate) is_broken: bool,
}

/// Every threshold once, in the order of the plan. Of implicit thresholds, those that are not met.
pub(crate) fn thresholds(shown: &[Shown<'_>]) -> Vec<ThresholdLine> {
    let of = |key| as_declared(line(key, shown), key, shown);
    threshold_keys(shown).into_iter().map(of).collect()
}

/// Whether the experiment declares that a trial fails, and it did.
pub(crate) fn is_declared(row: &Shown<'_>) -> bool {
    row.setting.expect == Some(Verdict::Fail) && row.setting.verdict == Verdict::Fail
}

/// The line with the words of a failure that the experiment declares, where all failures of the threshold are.
fn as_declared(
    line: ThresholdLine,
    (expr, level): (&str, &str),
    shown: &[Shown<'_>],
) -> ThresholdLine {
    let fails =
        |it: &ThresholdResult| it.expr == expr && it.level == level && it.answer == Answer::Failed;
    let has_failed = |row: &&Shown<'_>| row.trial.thresholds.iter().any(fails);
    let mut failed = shown.iter().filter(has_failed).peekable();
    if failed.peek().is_none() || !failed.all(is_declared) {
        return line;
    }
    ThresholdLine { text: format!("as declared: {}", line.text), ..line }
}

/// Expression and level of each threshold that is shown.
pub(crate) fn threshold_keys<'a>(shown: &[Shown<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    let of_trials = shown.iter().flat_map(|row| &row.trial.thresholds);
    for threshold in of_trials.filter(|it| !it.implicit || it.answer != Answer::Met) {
        let key = (threshold.expr.as_str(), threshold.level.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

fn line((expr, level): (&str, &str), shown: &[Shown<'_>]) -> ThresholdLine {
    let of: Vec<(&str, &ThresholdResult)> = shown
        .iter()
        .flat_map(|row| row.trial.thresholds.iter().map(move |it| (row.label.as_str(), it)))
        .filter(|(_, it)| it.expr == expr && it.level == level)
        .collect();
    let open: Vec<&(&str, &ThresholdResult)> =
        of.iter().filter(|(_, it)| it.answer != Answer::Met).collect();
    // The gravest of the answers is the one that is shown of several.
    let worst = open.iter().max_by_key(|(_, it)| it.answer).map(|(_, it)| *it);
    let (mark, paint) = worst.map_or(("✓", Paint::Good), threshold_mark);
    let several = shown.len() > 1;
    let text = match (worst, several) {
        (None, true) => format!("{} of {}", counted(&of), of.len()),
        (_, false) => of.first().map(|(_, it)| threshold_words(it)).unwrap_or_default(),
        (Some(_), true) => {
            // The gravest are named, and the others counted.
            let is_grave = |it: &&&(&str, &ThresholdResult)| {
                worst.is_some_and(|worst| worst.answer == it.1.answer)
            };
            let grave = open.iter().filter(is_grave).count();
            let named = open.iter().filter(is_grave).take(NAMED_MAX);
            let mut each: Vec<String> =
                named.map(|(label, it)| format!("{label} {}", threshold_words(it))).collect();
            if grave > each.len() {
                each.push(format!("… and {} more", grave - each.len()));
            }
            format!("{} of {}: {}", counted(&of), of.len(), each.join(" · "))
        }
    };
    let level_word = if level == "fail" { String::new() } else { format!("  [{}]", clean(level)) };
    ThresholdLine {
        mark,
        paint,
        expr: format!("{}{level_word}", clean(expr)),
        text,
        is_broken: worst.is_some(),
    }
}

/// Each word with the number of trials: `failed in 1, met in 2`.
fn counted(of: &[(&str, &ThresholdResult)]) -> String {
    let count = |answer| of.iter().filter(|(_, it)| it.answer == answer).count();
    let told = Answer::ALL.into_iter().map(|answer| (answer, count(answer)));
    let told = told.filter(|(_, count)| *count > 0);
    told.map(|(answer, count)| format!("{} in {count}", answer.word()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The mark of what came of a threshold.
pub(crate) fn threshold_mark(of: &ThresholdResult) -> (&'static str, Paint) {
    match (of.answer, of.level.as_str()) {
        (Answer::Met, _) => ("✓", Paint::Good),
        (Answer::Undecided, _) => ("?", Paint::Caution),
        (Answer::Failed, "fail") => ("✗", Paint::Bad),
        (Answer::Failed, "saturated") => ("○", Paint::Caution),
        (Answer::Failed | Answer::Invalid, _) => ("!", Paint::Caution),
    }
}

/// The word of an answer that the mark alone does not say, the value, and what decides.
pub(crate) fn threshold_words(threshold: &ThresholdResult) -> String {
    let word = match threshold.answer {
        Answer::Met | Answer::Failed => "",
        open => open.word(),
    };
    // What every ledger must keep says its count in the sentence.
    let has_count = threshold.implicit && threshold.answer == Answer::Failed;
    let actual = if has_count { "" } else { &threshold.actual };
    let parts = [word, actual, &threshold.detail];
    parts.into_iter().filter(|it| !it.is_empty()).map(clean).collect::<Vec<_>>().join(", ")
}
