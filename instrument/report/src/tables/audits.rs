//! Audits and checks as lines: those that object, one sentence once, with the trials that it is about.
//!
//! It must never let a skipped audit pass for a satisfied one.

use std::borrow::Cow;

use model::quantity::show_count;
use model::result::{AuditOutcome, AuditResult, CheckResult, Direction, RunResult};

use super::Shown;
use crate::paint::{Paint, clean, clip, outcome_mark};

/// One line.
pub(crate) struct AuditLine {
    pub(crate) mark: &'static str,
    pub(crate) paint: Paint,
    pub(crate) name: String,
    /// Where, and the sentence with the figures.
    pub(crate) text: String,
}

/// An audit or check with the label of its trial; empty = the whole run, or the only trial.
pub(crate) struct Of<'a> {
    label: &'a str,
    pub(crate) audit: Cow<'a, AuditResult>,
}

/// The audits of all trials, then those that look across trials.
pub(crate) fn audits<'a>(run: &'a RunResult, shown: &'a [Shown<'a>]) -> Vec<Of<'a>> {
    let mut all = of_trials(shown, |row| row.trial.audits.iter().map(Cow::Borrowed).collect());
    let across = run.audits.iter().map(Cow::Borrowed);
    all.extend(across.map(|audit| Of { label: "", audit }));
    all
}

/// The checks of all trials.
pub(crate) fn checks<'a>(shown: &'a [Shown<'a>]) -> Vec<Of<'a>> {
    let line = |check: &CheckResult| Cow::Owned(as_audit(check));
    of_trials(shown, |row| row.trial.checks.iter().map(line).collect())
}

/// A check as a line of the same form: its figures in words.
pub(crate) fn as_audit(check: &CheckResult) -> AuditResult {
    AuditResult {
        name: check.name.clone(),
        outcome: check.outcome,
        detail: check.sentence(),
        voids: Vec::new(),
        figures: Vec::new(),
    }
}

fn of_trials<'a>(
    shown: &'a [Shown<'a>],
    audits: impl Fn(&'a Shown<'a>) -> Vec<Cow<'a, AuditResult>>,
) -> Vec<Of<'a>> {
    let is_single = shown.len() == 1;
    shown
        .iter()
        .flat_map(|row| audits(row).into_iter().map(move |audit| (row, audit)))
        .map(|(row, audit)| Of { label: if is_single { "" } else { &row.label }, audit })
        .collect()
}

fn count(all: &[Of<'_>], wanted: impl Fn(AuditOutcome) -> bool) -> u64 {
    let of = all.iter().filter(|it| wanted(it.audit.outcome)).count();
    u64::try_from(of).unwrap_or(u64::MAX)
}

/// `82 of 84`: of those that could be judged.
pub(crate) fn audits_ok(all: &[Of<'_>]) -> String {
    let ok = count(all, |outcome| outcome == AuditOutcome::Ok);
    let judged = count(all, |outcome| outcome != AuditOutcome::Skipped);
    format!("{} of {}", show_count(ok), show_count(judged))
}

/// How many warn or fail.
pub(crate) fn objecting(all: &[Of<'_>]) -> u64 {
    count(all, |outcome| outcome >= AuditOutcome::Warn)
}

/// `82 of 84 ok, 12 skipped`.
pub(crate) fn audit_count(all: &[Of<'_>]) -> String {
    let text = format!("{} ok", audits_ok(all));
    let skipped = count(all, |outcome| outcome == AuditOutcome::Skipped);
    if skipped == 0 { text } else { format!("{text}, {} skipped", show_count(skipped)) }
}

/// Names of those that were skipped, each once.
pub(crate) fn skipped_names(all: &[Of<'_>]) -> Vec<String> {
    let skipped = all.iter().filter(|it| it.audit.outcome == AuditOutcome::Skipped);
    let mut names: Vec<String> = skipped.map(|it| clean(&it.audit.name)).collect();
    names.sort();
    names.dedup();
    names
}

/// One line an audit and sentence, those that failed first.
pub(crate) fn audit_lines(
    all: &[Of<'_>],
    shown: &[Shown<'_>],
    wanted: impl Fn(AuditOutcome) -> bool,
) -> Vec<AuditLine> {
    let mut found: Vec<(&AuditResult, Vec<&str>)> = Vec::new();
    for of in all.iter().filter(|of| wanted(of.audit.outcome)) {
        match found.iter_mut().find(|(audit, _)| says_the_same(audit, &of.audit)) {
            Some((_, labels)) => labels.push(of.label),
            None => found.push((&of.audit, vec![of.label])),
        }
    }
    found.sort_by_key(|(audit, _)| std::cmp::Reverse(audit.outcome));
    let line = |(audit, mut labels): (&AuditResult, Vec<&str>)| {
        let (mark, paint) = outcome_mark(audit.outcome);
        labels.retain(|label| !label.is_empty());
        let text = format!("{}{}{}", place(&labels, shown), clean(&audit.detail), voids(audit));
        AuditLine { mark, paint, name: clean(&audit.name), text }
    };
    found.into_iter().map(line).collect()
}

/// One line an audit that objects: its gravest sentence as far as it fits, which numbers are void, and in how many other
/// trials it objects, too. All of it stands in [`audit_lines`].
pub(crate) fn audit_briefs(all: &[Of<'_>], shown: &[Shown<'_>]) -> Vec<AuditLine> {
    /// Two lines of a terminal, with the name before them.
    const LETTERS_MAX: usize = 100;
    let mut found: Vec<(&Of<'_>, usize)> = Vec::new();
    for of in all.iter().filter(|of| of.audit.outcome >= AuditOutcome::Warn) {
        match found.iter_mut().find(|(known, _)| known.audit.name == of.audit.name) {
            Some((known, others)) => {
                *others += 1;
                if of.audit.outcome > known.audit.outcome {
                    *known = of;
                }
            }
            None => found.push((of, 0)),
        }
    }
    found.sort_by_key(|(of, _)| std::cmp::Reverse(of.audit.outcome));
    let line = |(of, others): (&Of<'_>, usize)| {
        let (mark, paint) = outcome_mark(of.audit.outcome);
        let detail = clip(&clean(&of.audit.detail), LETTERS_MAX);
        let labels: Vec<&str> = [of.label].into_iter().filter(|it| !it.is_empty()).collect();
        let also = if others == 0 { String::new() } else { format!(" (+ {others} more)") };
        let text = format!("{}{detail}{}{also}", place(&labels, shown), voids(&of.audit));
        AuditLine { mark, paint, name: clean(&of.audit.name), text }
    };
    found.into_iter().map(line).collect()
}

/// Whether two lines would be the same; their figures are in the sentence as far as anybody reads them.
fn says_the_same(a: &AuditResult, b: &AuditResult) -> bool {
    (&a.name, a.outcome, &a.detail, &a.voids) == (&b.name, b.outcome, &b.detail, &b.voids)
}

/// Which numbers do not hold: `. Unreliable: response times (the true values can only be lower)`.
pub(crate) fn voids(audit: &AuditResult) -> String {
    if audit.voids.is_empty() {
        return String::new();
    }
    let of = |way: Direction| {
        let alike = audit.voids.iter().filter(|it| it.may_be == way);
        let words: Vec<&str> = alike.map(|it| it.family.words()).collect();
        (!words.is_empty()).then(|| format!("{}{}", words.join(", "), way.in_words()))
    };
    let ways = [Direction::TooHigh, Direction::TooLow, Direction::Either];
    format!(". Unreliable: {}", ways.into_iter().filter_map(of).collect::<Vec<_>>().join("; "))
}

/// Which trials a sentence is about: settings where all of their trials are meant, or how many.
fn place(labels: &[&str], shown: &[Shown<'_>]) -> String {
    const NAMED_MAX: usize = 3;
    if labels.is_empty() {
        return String::new();
    }
    let mut names: Vec<String> = Vec::new();
    for row in shown.iter().filter(|row| labels.contains(&row.label.as_str())) {
        let mut trials = shown.iter().filter(|other| std::ptr::eq(other.setting, row.setting));
        let is_whole = trials.all(|other| labels.contains(&other.label.as_str()));
        let is_several = row.setting.trials.len() > 1;
        let name = if is_whole && is_several { clean(&row.setting.key) } else { row.label.clone() };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.len() > NAMED_MAX {
        return format!("in {} of {} trials: ", labels.len(), shown.len());
    }
    format!("{}: ", names.join(", "))
}
