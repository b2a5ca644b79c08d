//! What a user sees on standard output after a run: the answer first, then the thresholds, the numbers, and what
//! the instrument distrusts about them. If the measurement does not hold, the distrust comes before the numbers.
//!
//! There is one table, and what is worth reading beside it, so that a plain run fits a screen (80 × 40); everything else,
//! and how percentiles are computed, stands there with `--verbose`, and in the page.

mod distrust;
mod numbers;

use model::quantity::show_count;
use model::result::{RunResult, TrialResult, Verdict};

use crate::answer::{ledger_words, subject_words, unsent_words};
use crate::next::next_words;
use crate::page::{Marked, Page};
use crate::paint::{Paint, Style, clean, verdict_mark};
use crate::tables::{self, Shown};

/// The share of the width that names of settings may take before they are shortened.
const SETTING_SHARE: usize = 4;

/// The whole page.
#[must_use]
pub fn terminal(run: &RunResult, style: Style) -> String {
    format!("{}\n{}", terminal_body(run, style), exit_line(run, style))
}

/// The page without its last line, for callers that add paths before it.
#[must_use]
pub fn terminal_body(run: &RunResult, style: Style) -> String {
    let mut shown = tables::shown(run);
    tables::shorten(&mut shown, style.columns() / SETTING_SHARE);
    let mut page = Page::new(style);
    answer(&mut page, run, &shown, style);
    let is_invalid = run.verdict == Verdict::Invalid;
    if is_invalid {
        distrust::audits(&mut page, run, &shown, style.verbose);
    }
    if run.search.is_none() || style.verbose {
        promises(&mut page, &shown);
    }
    statements(&mut page, run, style.verbose);
    distrust::preflight(&mut page, &shown);
    numbers::numbers(&mut page, run, &shown, style.verbose);
    distrust::faults(&mut page, &shown);
    distrust::ledger(&mut page, &shown, style.verbose);
    distrust::checks(&mut page, &shown, style.verbose);
    if !is_invalid {
        distrust::audits(&mut page, run, &shown, style.verbose);
    }
    provenance(&mut page, run, &shown, style.verbose);
    page.finish()
}

/// Promises as sentences that stand alone: of a search always, else where everything is asked for.
fn statements(page: &mut Page, run: &RunResult, is_verbose: bool) {
    if run.statements.is_empty() || !(is_verbose || run.search.is_some()) {
        return;
    }
    page.heading("In one sentence", "");
    run.statements.iter().for_each(|it| page.indented(Paint::Plain, &clean(&it.words)));
}

/// One line for who has watched the run: verdict, name, reason, exit code.
#[must_use]
pub fn verdict_line(run: &RunResult, style: Style) -> String {
    let mut page = Page::new(style);
    let (mark, paint) = verdict_mark(run.verdict);
    let word = run.verdict.word().to_uppercase();
    let cut = if run.interrupted { ", interrupted" } else { "" };
    let (name, reason) = (clean(&run.name), clean(&run.reason));
    let text = format!("{mark} {name} · {word}{cut}: {reason} (exit code {})", run.exit_code);
    page.line(paint, &text);
    page.finish()
}

/// The last line: what the exit code means.
#[must_use]
pub fn exit_line(run: &RunResult, style: Style) -> String {
    let mut page = Page::new(style);
    let paint = if run.exit_code == 0 { Paint::Good } else { Paint::Bold };
    let text = format!("exit code {}: {}", run.exit_code, clean(&run.exit_meaning));
    page.line(paint, &text);
    page.finish()
}

/// Verdict, reason, the few numbers.
fn answer(page: &mut Page, run: &RunResult, shown: &[Shown<'_>], style: Style) {
    let (mark, paint) = verdict_mark(run.verdict);
    let word = run.verdict.word().to_uppercase();
    let name = clean(&run.name);
    let subject = match subject_words(run).as_str() {
        "" => String::new(),
        subject => format!(" · {subject}"),
    };
    match (run.interrupted, run.verdict) {
        (true, Verdict::Pass) => {
            page.line(Paint::Caution, &format!("! {name} · INTERRUPTED{subject}"));
        }
        (true, _) => page.line(paint, &format!("{mark} {name} · {word}, interrupted{subject}")),
        (false, _) => page.line(paint, &format!("{mark} {name} · {word}{subject}")),
    }
    page.indented(Paint::Plain, &clean(&run.reason));
    if let Some(next) = next_words(run, shown) {
        page.indented(Paint::Plain, &next);
    }
    if !run.question.is_empty() {
        page.indented(Paint::Dim, &clean(&run.question));
    }
    for switch in &run.fidelity {
        page.indented(Paint::Caution, &format!("! Fidelity switch on: {}", clean(switch)));
    }
    // With everything that is wanted, the promises stand in a table.
    if let Some(said) = tables::durability_brief(shown).filter(|_| !style.verbose) {
        page.indented(Paint::Dim, &said);
    }
    let not_run: Vec<String> = run
        .settings
        .iter()
        .filter(|setting| setting.trials.is_empty())
        .map(|setting| clean(&setting.key))
        .collect();
    if !not_run.is_empty() {
        page.indented(Paint::Caution, &format!("! Not run: {}", not_run.join(", ")));
    }
    match shown {
        [] => {}
        [only] => headline(page, run.verdict, shown, only.trial),
        // The table of the search has a row for each.
        _ if run.search.is_some() && !style.verbose => {}
        _ => {
            page.heading("Results", "");
            page.grid(&tables::results(shown));
            numbers::saturation_legend(page, shown);
            page.indented(Paint::Bold, &crate::answer::answer(run, shown).sentence);
            if !style.verbose {
                numbers::legend(page, run, shown, false);
            }
        }
    }
}

fn headline(page: &mut Page, verdict: Verdict, shown: &[Shown<'_>], trial: &TrialResult) {
    page.line(Paint::Plain, "");
    // A number that does not hold is not shouted.
    let paint = if verdict == Verdict::Invalid { Paint::Dim } else { Paint::Bold };
    if let Some([load, why]) = unsent_words(trial) {
        page.indented(paint, &format!("load {load}: {why}; there are no numbers"));
        return;
    }
    for pieces in tables::headline(trial) {
        page.flow(paint, &pieces);
    }
    if !crate::figures::failures(&trial.counts).is_empty() {
        page.indented(Paint::Bad, &numbers::failed_line(trial));
    }
    if let Some(said) = ledger_words(shown) {
        page.indented(paint, &said);
    }
}

fn promises(page: &mut Page, shown: &[Shown<'_>]) {
    let lines: Vec<Marked> = tables::thresholds(shown)
        .into_iter()
        .map(|line| Marked {
            mark: line.mark,
            paint: line.paint,
            head: line.expr,
            text: line.text,
            text_paint: if line.is_broken { Paint::Plain } else { Paint::Dim },
        })
        .collect();
    if !lines.is_empty() {
        page.heading("Thresholds", "");
        page.marked(&lines);
    }
}

/// Said where the slower of the two drivers carried the load: in many containers io_uring is refused.
const EPOLL: &str = "sent through epoll: io_uring is refused here, or ASSAY_DRIVER asks for epoll; a request costs this host more with it";

/// The tables beside the main one.
const MORE: &str = "with --verbose, and in the report: method, intervals, stages, every audit";

/// The facts that a repetition needs.
fn provenance(page: &mut Page, run: &RunResult, shown: &[Shown<'_>], verbose: bool) {
    page.line(Paint::Plain, "");
    let host = &run.environment;
    let mut parts = vec![
        format!("seed {}", run.seed),
        clean(&run.started),
        clean(&host.assay),
        clean(&host.cpu),
        format!("{} cpus", host.cpus),
        clean(&host.kernel),
        clean(&host.virtualisation),
    ];
    parts.retain(|part| !part.is_empty());
    page.line(Paint::Dim, &parts.join(" · "));
    if shown.iter().any(|row| row.trial.driver.split(' ').any(|driver| driver == "epoll")) {
        page.line(Paint::Dim, EPOLL);
    }
    if !verbose {
        page.line(Paint::Dim, MORE);
        return;
    }
    for row in shown {
        let lines: Vec<Marked> = row
            .trial
            .resources
            .iter()
            .map(|(name, (min, mean, max))| Marked {
                mark: "·",
                paint: Paint::Dim,
                head: clean(name),
                text: format!("min {}  mean {}  max {}", figure(*min), figure(*mean), figure(*max)),
                text_paint: Paint::Plain,
            })
            .collect();
        if !lines.is_empty() {
            page.heading("Resources", &row.label);
            page.marked(&lines);
        }
    }
    if !run.notes.is_empty() {
        page.heading("Notes", "");
        page.indented(Paint::Plain, &clean(&run.notes));
    }
}

/// A value of a metric, whose unit stands in its name.
fn figure(value: f64) -> String {
    if value.is_finite() && value.abs() >= 1000.0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, for people"
        )]
        let count = show_count(value.abs().round() as u64);
        return format!("{}{count}", if value < 0.0 { "-" } else { "" });
    }
    format!("{value:.3}")
}
