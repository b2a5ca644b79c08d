//! The result for a pull request: what a reviewer needs at a glance, and the rest folded away.
//!
//! It must never fold away a reason to distrust the numbers: thresholds that broke, audits that object, kinds that
//! cannot succeed and thresholds that the ledger fails stand in the open. Text of others is escaped.

use model::quantity::show_count;
use model::result::{AuditOutcome, RunResult};

use crate::answer::subject_words;
use crate::figures::plural;
use crate::grid::{Grid, escape};
use crate::next::next_words;
use crate::paint::{clean, verdict_mark};
use crate::sections::{Extent, PAGE_SECTIONS, PageSection};
use crate::tables::{self, Shown};

/// The page.
#[must_use]
pub fn markdown(run: &RunResult) -> String {
    let shown = tables::shown(run);
    let mut text = answer(run, &shown);
    push_table(&mut text, &tables::results(&shown));
    if let Some(legend) = tables::void_legend(&shown) {
        text.push_str(&format!("\n{}\n", safe(legend)));
    }
    let steps = tables::step_lines(&shown);
    let said = steps.split_last().map_or(&[][..], |(_, said)| said);
    push_list(&mut text, "Steps", &said.iter().map(|line| safe(line)).collect::<Vec<_>>());
    let promised: Vec<String> = tables::promised(&shown).iter().map(|it| safe(it)).collect();
    push_list(&mut text, "What can be promised", &promised);
    push_list(&mut text, "Thresholds", &thresholds(&shown));
    push_list(&mut text, "Cannot succeed", &preflight(&shown));
    push_list(&mut text, "Ledger", &ledger(&shown));
    for section in PAGE_SECTIONS {
        push_list(&mut text, section.heading, &findings(section, &shown));
    }
    push_list(&mut text, "Checks of the ledger's content", &checks(&shown));
    let audits = tables::audits(run, &shown);
    push_list(
        &mut text,
        &format!("Audits: {}", tables::audit_count(&audits)),
        &objections(run, &shown),
    );
    if !run.statements.is_empty() {
        text.push_str("\n<details><summary>In one sentence each</summary>\n\n");
        run.statements.iter().for_each(|it| text.push_str(&format!("- {}\n", safe(&it.words))));
        text.push_str("\n</details>\n");
    }
    for (title, grid) in details(run, &shown) {
        if !grid.is_empty() {
            let title = escape(&title);
            text.push_str(&format!("\n<details><summary>{title}</summary>\n\n"));
            text.push_str(&grid.markdown());
            text.push_str("\n</details>\n");
        }
    }
    text.push_str(&provenance(run));
    text
}

/// Clean and without meaning to Markdown.
fn safe(text: &str) -> String {
    escape(&clean(text))
}

fn answer(run: &RunResult, shown: &[Shown<'_>]) -> String {
    let (mark, _) = verdict_mark(run.verdict);
    let interrupted = if run.interrupted { ", interrupted" } else { "" };
    let word = run.verdict.word();
    let mut text =
        format!("### {mark} {} · {word}{interrupted}\n\n{}\n", safe(&run.name), safe(&run.reason));
    let subject = subject_words(run);
    if !subject.is_empty() {
        text.push_str(&format!("\n{}\n", safe(&subject)));
    }
    if let Some(next) = next_words(run, shown) {
        text.push_str(&format!("\n{}\n", safe(&next)));
    }
    if !run.question.is_empty() {
        text.push_str(&format!("\n> {}\n", safe(&run.question)));
    }
    for switch in &run.fidelity {
        text.push_str(&format!("\n! Fidelity switch on: {}\n", safe(switch)));
    }
    let sentence = crate::answer::answer(run, shown).sentence;
    text.push_str(&format!("\n**{}**\n", safe(&sentence)));
    text
}

fn push_table(text: &mut String, grid: &Grid) {
    if !grid.is_empty() {
        text.push('\n');
        text.push_str(&grid.markdown());
    }
}

/// A heading with its lines; the heading alone if it says something by itself (it has a figure).
fn push_list(text: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() && !title.contains(':') {
        return;
    }
    text.push_str(&format!("\n**{title}**\n"));
    if !lines.is_empty() {
        text.push('\n');
    }
    for line in lines {
        text.push_str(&format!("- {line}\n"));
    }
}

fn thresholds(shown: &[Shown<'_>]) -> Vec<String> {
    let lines = tables::thresholds(shown).into_iter();
    lines.map(|it| format!("{} {} — {}", it.mark, escape(&it.expr), escape(&it.text))).collect()
}

fn preflight(shown: &[Shown<'_>]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for finding in shown.iter().flat_map(|row| &row.trial.preflight).filter(|it| !it.ok) {
        let line = format!("✗ {}: {}", safe(&finding.kind), safe(&finding.detail));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn ledger(shown: &[Shown<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in shown {
        let Some(fates) = &row.trial.fates else { continue };
        let at = if shown.len() > 1 { format!("{}: ", escape(&row.label)) } else { String::new() };
        for fate in tables::fate_lines(fates).into_iter().filter(|fate| fate.is_broken) {
            let (count, meaning) = (show_count(fate.count), fate.meaning);
            lines.push(format!("✗ {at}{count} {} ({meaning}): {}", fate.word, fate.examples));
        }
    }
    lines
}

/// A section's findings that a reader must know.
fn findings(section: &PageSection, shown: &[Shown<'_>]) -> Vec<String> {
    let tables = (section.tables)(shown, Extent::Brief).into_iter();
    let lines = tables.flat_map(|table| table.lines).filter(|line| line.is_finding);
    lines.map(|line| format!("! {}", escape(&line.text))).collect()
}

/// The tables of all sections that have some.
fn sections(shown: &[Shown<'_>]) -> Vec<(String, Grid)> {
    let of = |section: &PageSection| {
        let title = match section.remark {
            "" => section.heading.to_owned(),
            remark => format!("{}, {remark}", section.heading),
        };
        let tables = (section.tables)(shown, Extent::Folded).into_iter();
        tables.map(|table| (title.clone(), table.grid)).collect::<Vec<_>>()
    };
    PAGE_SECTIONS.iter().flat_map(of).collect()
}

fn checks(shown: &[Shown<'_>]) -> Vec<String> {
    lines_of(&tables::checks(shown), shown, |outcome| outcome != AuditOutcome::Ok)
}

fn objections(run: &RunResult, shown: &[Shown<'_>]) -> Vec<String> {
    let all = tables::audits(run, shown);
    let mut lines = lines_of(&all, shown, |outcome| outcome >= AuditOutcome::Warn);
    lines.extend(run.environment.warnings.iter().map(|text| format!("! host: {}", safe(text))));
    lines
}

fn lines_of(
    all: &[tables::Of<'_>],
    shown: &[Shown<'_>],
    wanted: impl Fn(AuditOutcome) -> bool,
) -> Vec<String> {
    let lines = tables::audit_lines(all, shown, wanted).into_iter();
    lines.map(|it| format!("{} {}: {}", it.mark, escape(&it.name), escape(&it.text))).collect()
}

/// A folded part: title and table.
fn details(run: &RunResult, shown: &[Shown<'_>]) -> Vec<(String, Grid)> {
    let mut all = Vec::new();
    let stage = shown.first().map(|row| clean(&row.trial.final_stage)).unwrap_or_default();
    let method = clean(&run.percentile_method);
    let title = format!("Response time (due → {stage}; percentiles: {method})");
    match shown {
        [only] => all.push((title, tables::quantiles_of_one(only))),
        _ => all.push((title, tables::quantiles_of_several(shown, true, true))),
    }
    all.extend(sections(shown));
    let classes = tables::failure_classes(shown, "counts", |trial| Some(&trial.counts));
    all.push(("Failures by class".to_owned(), classes));
    let background =
        tables::failure_classes(shown, "background", |trial| trial.background.as_ref());
    all.push(("Failures of the background load by class".to_owned(), background));
    all.push(("Ledger".to_owned(), tables::fates_of_several(shown)));
    let (faults, left_out) = tables::faults(shown, FAULTS_MAX);
    let rest =
        if left_out == 0 { String::new() } else { format!(" ({left_out} more in the result)") };
    all.push((format!("Faults, by time after the start{rest}"), faults));
    all.extend(shown.iter().take(NODES_OF_TRIALS_MAX).map(|row| {
        let of = if shown.len() > 1 { format!(", {}", row.label) } else { String::new() };
        let (grid, left_out) = tables::metrics_of_nodes(row, METRICS_MAX);
        let rest =
            if left_out > 0 { format!(" ({left_out} more in the result)") } else { String::new() };
        (format!("Nodes{of}: metrics over all of them{rest}"), grid)
    }));
    if let [only] = shown {
        for (head, key) in [("kind", "kinds"), ("code", "codes")] {
            if tables::groups_of(only.trial, key).len() > 1 {
                let (grid, left_out) = tables::groups(head, only, key, KINDS_MAX);
                let left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
                let rest = match left_out {
                    0 => String::new(),
                    _ => format!(" ({} more in the result)", plural(left_out, head)),
                };
                all.push((format!("By {head}{rest}"), grid));
            }
        }
    }
    all.extend(run.tables.iter().enumerate().map(|(index, table)| {
        (clean(&table.title), tables::asked_for(table, &format!("/tables/{index}")))
    }));
    all
}

/// Metrics of nodes in one table.
const METRICS_MAX: usize = 16;
/// Trials whose nodes are shown.
const NODES_OF_TRIALS_MAX: usize = 4;
/// The most faults in one table.
const FAULTS_MAX: usize = 50;

/// The most kinds in one table: a comment on a pull request has 65,536 characters.
const KINDS_MAX: usize = 20;

fn provenance(run: &RunResult) -> String {
    let host = &run.environment;
    let mut parts = vec![
        format!("exit code {}: {}", run.exit_code, safe(&run.exit_meaning)),
        format!("seed {}", run.seed),
        safe(&run.started),
        safe(&host.assay),
        safe(&host.cpu),
        format!("{} cpus", host.cpus),
    ];
    parts.retain(|part| !part.is_empty());
    format!("\n<sub>{}</sub>\n", parts.join(" · "))
}
