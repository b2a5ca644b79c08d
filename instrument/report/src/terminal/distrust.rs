//! Findings that the instrument distrusts: audits, the preflight pass, the ledger and the checks of its content.
//!
//! It must never hide an audit that is not satisfied, and never let a skipped one pass for a satisfied one.

use model::quantity::show_count;
use model::result::{AuditOutcome, RunResult};

use crate::page::{Marked, Page};
use crate::paint::{Paint, clean};
use crate::tables::{self, AuditLine, Shown};

/// Skipped audits that are named beside their number.
const SKIPPED_NAMED_MAX: usize = 3;

/// The audits: those that object, the rest counted. Of several settings an audit is told once, with where else it objects.
pub(super) fn audits(page: &mut Page, run: &RunResult, shown: &[Shown<'_>], verbose: bool) {
    let all = tables::audits(run, shown);
    let warnings = &run.environment.warnings;
    if all.is_empty() && warnings.is_empty() {
        return;
    }
    let skipped = tables::skipped_names(&all);
    let named = !skipped.is_empty() && (verbose || skipped.len() <= SKIPPED_NAMED_MAX);
    let names = if named { format!(": {}", skipped.join(", ")) } else { String::new() };
    page.heading("Audits", &format!("{}{names}", tables::audit_count(&all)));
    let objects = |outcome| outcome >= AuditOutcome::Warn;
    let is_brief = !verbose && shown.len() > 1;
    let mut lines = marked(match is_brief {
        true => tables::audit_briefs(&all, shown),
        false => tables::audit_lines(&all, shown, objects),
    });
    lines.extend(warnings.iter().map(|text| Marked {
        mark: "!",
        paint: Paint::Caution,
        head: "host".to_owned(),
        text: clean(text),
        text_paint: Paint::Plain,
    }));
    if verbose {
        lines.extend(marked(tables::audit_lines(&all, shown, |outcome| !objects(outcome))));
    }
    page.marked(&lines);
}

fn marked(lines: Vec<AuditLine>) -> Vec<Marked> {
    let line = |AuditLine { mark, paint, name, text }| Marked {
        mark,
        paint,
        head: name,
        text,
        text_paint: Paint::Plain,
    };
    lines.into_iter().map(line).collect()
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

/// The most faults that a terminal shows; the page has more.
const FAULTS_MAX: usize = 24;

/// The faults of nodes and links, and the commits meanwhile.
pub(super) fn faults(page: &mut Page, shown: &[Shown<'_>]) {
    let (grid, left_out) = tables::faults(shown, FAULTS_MAX);
    if grid.rows.is_empty() {
        return;
    }
    let rest =
        if left_out == 0 { String::new() } else { format!(", {left_out} more in the report") };
    page.heading("Faults", &format!("by time after the start{rest}"));
    page.grid(&grid);
}

/// The ledger's lines.
pub(super) fn ledger(page: &mut Page, shown: &[Shown<'_>], verbose: bool) {
    let read: Vec<&Shown<'_>> = shown.iter().filter(|row| row.trial.fates.is_some()).collect();
    if read.is_empty() {
        return;
    }
    let is_broken = |row: &&Shown<'_>| {
        let fates = row.trial.fates.as_ref();
        fates.is_some_and(|fates| tables::fate_lines(fates).iter().any(|line| line.is_broken))
    };
    // The first lines have said so.
    if !verbose && !read.iter().any(is_broken) {
        return;
    }
    if shown.len() > 1 {
        page.heading("Ledger", "read after the drain by another way than the load took");
    }
    if shown.len() > 1 && verbose {
        page.grid(&tables::fates_of_several(shown));
    }
    for row in read {
        let Some(fates) = &row.trial.fates else { continue };
        let of_row = tables::fate_lines(fates).into_iter();
        let told = of_row.filter(|line| shown.len() == 1 || line.is_broken);
        if shown.len() > 1 && !verbose {
            // Which ones stands with the thresholds.
            let counts = told.map(|line| format!("{} {}", line.word, show_count(line.count)));
            let counts: Vec<String> = counts.collect();
            if !counts.is_empty() {
                let declared = if tables::is_declared(row) { "as declared: " } else { "" };
                let text = format!("✗ {}: {declared}{}", row.label, counts.join(", "));
                page.indented(Paint::Bad, &text);
            }
            continue;
        }
        let lines: Vec<Marked> = told.map(|line| fate_line(&line, shown.len() > 1)).collect();
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
        head: format!("{:<9} {:>11}", line.word, show_count(line.count)),
        text: parts.join(": "),
        text_paint: if line.is_broken { Paint::Plain } else { Paint::Dim },
    }
}

/// The system's own checks of the ledger's content.
pub(super) fn checks(page: &mut Page, shown: &[Shown<'_>], verbose: bool) {
    let all = tables::checks(shown);
    if all.is_empty() {
        return;
    }
    page.heading("Checks of the ledger's content", &tables::audit_count(&all));
    let wanted = |outcome| verbose || outcome != AuditOutcome::Ok;
    page.marked(&marked(tables::audit_lines(&all, shown, wanted)));
}
