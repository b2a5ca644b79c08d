//! What the instrument distrusts: audits, the preflight pass, the ledger and the checks of its content.
//!
//! It must never hide an audit that is not satisfied, and never let a skipped one pass for a satisfied one.

use model::quantity::show_count;
use model::result::{AuditOutcome, AuditResult, RunResult};

use crate::figures::plural;
use crate::page::{Marked, Page};
use crate::paint::{Paint, clean, outcome_mark};
use crate::tables::{self, Shown};

/// An audit with the trial that it is of; empty = the whole run, or the only trial.
struct Of<'a> {
    label: &'a str,
    audit: &'a AuditResult,
}

/// The audits: those that object in full, the rest counted.
pub(super) fn audits(page: &mut Page, run: &RunResult, shown: &[Shown<'_>], verbose: bool) {
    let mut all = of_trials(shown, |row| &row.trial.audits);
    all.extend(run.audits.iter().map(|audit| Of { label: "", audit }));
    let mut warnings: Vec<Marked> =
        run.environment.warnings.iter().map(|text| warning(text)).collect();
    if all.is_empty() && warnings.is_empty() {
        return;
    }
    let count = |outcome| {
        let of = all.iter().filter(|it| it.audit.outcome == outcome).count();
        u64::try_from(of).unwrap_or(u64::MAX)
    };
    let skipped = count(AuditOutcome::Skipped);
    let judged = u64::try_from(all.len()).unwrap_or(u64::MAX) - skipped;
    let mut remark =
        format!("{} of {} ok", show_count(count(AuditOutcome::Ok)), plural(judged, "audit"));
    if skipped > 0 {
        remark.push_str(&format!(", {} skipped", show_count(skipped)));
    }
    page.heading("Audits", &remark);
    let mut lines = merged(&all, |outcome| outcome >= AuditOutcome::Warn);
    lines.append(&mut warnings);
    if verbose {
        lines.extend(merged(&all, |outcome| outcome < AuditOutcome::Warn));
    }
    page.marked(&lines);
    if !verbose && skipped > 0 {
        let mut names: Vec<String> = all
            .iter()
            .filter(|it| it.audit.outcome == AuditOutcome::Skipped)
            .map(|it| clean(&it.audit.name))
            .collect();
        names.sort();
        names.dedup();
        page.indented(Paint::Dim, &format!("– skipped: {}", names.join(", ")));
    }
}

fn of_trials<'a>(
    shown: &'a [Shown<'a>],
    audits: impl Fn(&'a Shown<'a>) -> &'a Vec<AuditResult>,
) -> Vec<Of<'a>> {
    let is_single = shown.len() == 1;
    shown
        .iter()
        .flat_map(|row| audits(row).iter().map(move |audit| (row, audit)))
        .map(|(row, audit)| Of { label: if is_single { "" } else { &row.label }, audit })
        .collect()
}

fn warning(text: &str) -> Marked {
    Marked {
        mark: "!",
        paint: Paint::Caution,
        head: "host".to_owned(),
        text: clean(text),
        text_paint: Paint::Plain,
    }
}

/// One line an audit and trial, those that failed first; the same sentence in several trials once.
fn merged(all: &[Of<'_>], wanted: impl Fn(AuditOutcome) -> bool) -> Vec<Marked> {
    let mut found: Vec<(&AuditResult, Vec<&str>)> = Vec::new();
    for of in all.iter().filter(|of| wanted(of.audit.outcome)) {
        match found.iter_mut().find(|(audit, _)| *audit == of.audit) {
            Some((_, labels)) => labels.push(of.label),
            None => found.push((of.audit, vec![of.label])),
        }
    }
    found.sort_by(|(a, _), (b, _)| b.outcome.cmp(&a.outcome));
    found
        .into_iter()
        .map(|(audit, mut labels)| {
            let (mark, _, paint) = outcome_mark(audit.outcome);
            labels.retain(|label| !label.is_empty());
            let at = match labels.as_slice() {
                [] => String::new(),
                [_, _, _, _, ..] => format!("in {} trials: ", labels.len()),
                some => format!("{}: ", some.join(", ")),
            };
            Marked {
                mark,
                paint,
                head: clean(&audit.name),
                text: format!("{at}{}", clean(&audit.detail)),
                text_paint: Paint::Plain,
            }
        })
        .collect()
}

/// Kinds that cannot succeed.
pub(super) fn preflight(page: &mut Page, shown: &[Shown<'_>]) {
    let mut lines: Vec<Marked> = Vec::new();
    for finding in shown.iter().flat_map(|row| &row.trial.preflight).filter(|it| !it.ok) {
        let line = Marked {
            mark: "✗",
            paint: Paint::Bad,
            head: clean(&finding.kind),
            text: clean(&finding.detail),
            text_paint: Paint::Plain,
        };
        // The same target fails in each trial alike.
        if !lines.iter().any(|known| known.head == line.head && known.text == line.text) {
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        page.heading("Preflight", "these cannot succeed, whatever the rate");
        page.marked(&lines);
    }
}

/// What the ledger says.
pub(super) fn ledger(page: &mut Page, shown: &[Shown<'_>]) {
    let read: Vec<&Shown<'_>> = shown.iter().filter(|row| row.trial.fates.is_some()).collect();
    if read.is_empty() {
        return;
    }
    if shown.len() > 1 {
        page.heading("Ledger", "read after the drain by another way than the load took");
        page.grid(&tables::fates_of_several(shown));
    }
    for row in read {
        let Some(fates) = &row.trial.fates else { continue };
        let lines: Vec<Marked> = tables::fate_lines(fates)
            .into_iter()
            .filter(|line| shown.len() == 1 || line.is_broken)
            .map(|line| fate_line(&line, shown.len() > 1))
            .collect();
        if shown.len() == 1 {
            let remark = format!(
                "{} read after the drain by another way than the load took",
                entries(fates.entries)
            );
            page.heading("Ledger", &remark);
        } else if !lines.is_empty() {
            page.indented(Paint::Plain, &format!("{}:", row.label));
        }
        page.marked(&lines);
    }
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{} entries", show_count(count)) }
}

fn fate_line(line: &tables::FateLine, ids_only: bool) -> Marked {
    let mut parts = Vec::new();
    if !ids_only {
        parts.push(line.meaning.to_owned());
    }
    if !line.examples.is_empty() {
        parts.push(line.examples.clone());
    }
    let (mark, paint) = match (line.is_broken, line.count, line.word) {
        (true, ..) => ("✗", Paint::Bad),
        (_, _, "once") | (_, 0, _) => ("✓", Paint::Good),
        _ => ("·", Paint::Plain),
    };
    Marked {
        mark,
        paint,
        head: format!("{:<9} {:>9}", line.word, show_count(line.count)),
        text: parts.join(": "),
        text_paint: if line.is_broken { Paint::Plain } else { Paint::Dim },
    }
}

/// The system's own checks of the ledger's content.
pub(super) fn checks(page: &mut Page, shown: &[Shown<'_>], verbose: bool) {
    let all = of_trials(shown, |row| &row.trial.checks);
    if all.is_empty() {
        return;
    }
    let ok = all.iter().filter(|it| it.audit.outcome == AuditOutcome::Ok).count();
    page.heading("Checks of the ledger's content", &format!("{ok} of {} ok", all.len()));
    page.marked(&merged(&all, |outcome| verbose || outcome != AuditOutcome::Ok));
}
