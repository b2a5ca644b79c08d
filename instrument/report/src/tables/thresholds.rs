//! Each threshold once, with the value that it was compared with, or where it broke.
//!
//! It must never count a threshold that is not resolved, void or could not be evaluated as one that holds.

use model::result::{Answer, ThresholdResult};

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

/// Every threshold once, in the order of the plan. Of the thresholds that nobody has to write, those that are not met.
pub(crate) fn thresholds(shown: &[Shown<'_>]) -> Vec<ThresholdLine> {
    threshold_keys(shown).into_iter().map(|key| line(key, shown)).collect()
}

/// Expression and level of each threshold that is shown.
pub(crate) fn threshold_keys<'a>(shown: &[Shown<'a>]) -> Vec<(&'a str, &'a str)> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    let of_trials = shown.iter().flat_map(|row| &row.trial.thresholds);
    for threshold in of_trials.filter(|it| !it.implicit || it.answer != Answer::Holds) {
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
        of.iter().filter(|(_, it)| it.answer != Answer::Holds).collect();
    // The gravest of the answers is the one that is shown of several.
    let order = [Answer::Broken, Answer::Void, Answer::Unknown, Answer::NotResolved];
    let place = |it: &ThresholdResult| order.iter().position(|answer| *answer == it.answer);
    let worst = open.iter().min_by_key(|(_, it)| (!fails(it), place(it)));
    let worst = worst.map(|(_, it)| *it);
    let (mark, paint) = worst.map_or(("✓", Paint::Good), threshold_mark);
    let several = shown.len() > 1;
    let text = match (worst, several) {
        (None, true) => format!("met in {} of {}", of.len(), of.len()),
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
            let counted = order.into_iter().filter_map(|answer| {
                let count = open.iter().filter(|(_, it)| it.answer == answer).count();
                (count > 0).then(|| format!("{} in {count}", answer_words(answer)))
            });
            let counted: Vec<String> = counted.collect();
            format!("{} of {}: {}", counted.join(", "), of.len(), each.join(" · "))
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

/// What is said of an answer where several trials are counted.
const fn answer_words(answer: Answer) -> &'static str {
    match answer {
        Answer::Holds => "met",
        Answer::Broken => "failed",
        Answer::NotResolved => "not resolved",
        Answer::Void => "void",
        Answer::Unknown => "cannot be told",
    }
}

/// Whether it is broken, or not as sure as it was asked to be.
fn fails(of: &ThresholdResult) -> bool {
    match of.answer {
        Answer::Broken => true,
        Answer::NotResolved => of.confidence.is_some(),
        Answer::Holds | Answer::Void | Answer::Unknown => false,
    }
}

/// The mark of what came of a threshold.
pub(crate) fn threshold_mark(of: &ThresholdResult) -> (&'static str, Paint) {
    match (of.answer, of.level.as_str()) {
        (Answer::Holds, _) => ("✓", Paint::Good),
        (_, "saturated") if fails(of) => ("○", Paint::Caution),
        (_, "fail") if fails(of) => ("✗", Paint::Bad),
        (Answer::NotResolved, _) if !fails(of) => ("?", Paint::Caution),
        _ => ("!", Paint::Caution),
    }
}

/// The value, and what it does not say by itself: why it decides nothing, or that it decides in spite of a doubt.
pub(crate) fn threshold_words(threshold: &ThresholdResult) -> String {
    let (actual, detail) = (clean(&threshold.actual), clean(&threshold.detail));
    let in_spite = match threshold.voided_by.as_slice() {
        [] => String::new(),
        audits => format!(", a fortiori ({})", clean(&audits.join(", "))),
    };
    match threshold.answer {
        Answer::Holds => format!("{actual}{in_spite}"),
        Answer::Broken if detail.is_empty() => format!("{actual}{in_spite}"),
        Answer::Broken => format!("{detail}{in_spite}"),
        Answer::NotResolved => format!("{actual}, not resolved: {detail}"),
        Answer::Void => format!("{actual}, void: {detail}"),
        Answer::Unknown => format!("cannot be told: {detail}"),
    }
}
