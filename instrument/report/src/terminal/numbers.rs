//! The numbers of a run: latency with what never got an answer beside it, the published form, stages, groups, and
//! the tables that the experiment asks for.
//!
//! It must never print a percentile without its sample count, the way to its method, and the failures beside it.

use model::quantity::show_count;
use model::result::{Quantile, RunResult, TrialResult};

use crate::figures::{failed, failures, is_thin, plural, share};
use crate::page::{Marked, Page};
use crate::paint::{Paint, clean};
use crate::sections::{Brief, Extent, PAGE_SECTIONS, PageSection};
use crate::tables::{self, Shown};

/// Error texts that are shown unless everything is.
const ERRORS_MAX: usize = 5;

/// All sections of numbers.
pub(super) fn numbers(page: &mut Page, run: &RunResult, shown: &[Shown<'_>], verbose: bool) {
    if shown.iter().all(|row| tables::is_unsent(row.trial)) {
        return;
    }
    // Of several settings the results have p50 and p99 already.
    let is_one = shown.len() == 1;
    if verbose || is_one {
        latency(page, run, shown, verbose);
    } else {
        failures_by_class(page, shown, verbose);
    }
    let extent = if verbose { Extent::Full } else { Extent::Brief };
    let is_printed = |section: &&PageSection| {
        verbose || section.brief == Brief::OfAny || (is_one && section.brief == Brief::OfOne)
    };
    for section in PAGE_SECTIONS.iter().filter(is_printed) {
        tables_of(page, section, shown, extent);
    }
    groups(page, shown, verbose);
    errors(page, shown, verbose);
    for (index, table) in run.tables.iter().enumerate() {
        page.heading(&clean(&table.title), "");
        page.grid(&tables::asked_for(table, &format!("/tables/{index}")));
    }
}

/// The tables of a section, those that there are.
fn tables_of(page: &mut Page, section: &PageSection, shown: &[Shown<'_>], extent: Extent) {
    let tables = (section.tables)(shown, extent).into_iter();
    for table in tables.filter(|table| !table.grid.is_empty()) {
        page.heading(section.heading, section.remark);
        page.grid(&table.grid);
        for line in table.lines {
            let paint = if line.is_finding { Paint::Caution } else { Paint::Dim };
            page.indented(paint, &line.text);
        }
    }
}

/// `failed 771 of 30,000 (2.57%): invalid 744 · unknown 27`.
pub(super) fn failed_line(trial: &TrialResult) -> String {
    let counts = &trial.counts;
    let classes: Vec<String> = failures(counts)
        .into_iter()
        .map(|(class, count)| format!("{} {}", clean(&class), show_count(count)))
        .collect();
    let lost = failed(counts);
    let of_due = share(lost, counts.due);
    format!(
        "failed {} of {} ({of_due}): {}",
        show_count(lost),
        show_count(counts.due),
        classes.join(" · ")
    )
}

/// The meaning of the marks.
pub(super) fn saturation_legend(page: &mut Page, shown: &[Shown<'_>]) {
    if !shown.iter().any(|row| tables::is_probe(row.trial)) {
        let marks = ["achieved = goodput ÷ offered", "● 98% or more", "◐ 90–98%", "○ saturated"];
        page.flow(Paint::Dim, &marks.map(str::to_owned));
    }
}

fn latency(page: &mut Page, run: &RunResult, shown: &[Shown<'_>], verbose: bool) {
    let Some(first) = shown.first().map(|row| row.trial) else { return };
    let of = if tables::is_probe(first) { " of the probe" } else { "" };
    let title = format!("Response time{of} (due → {})", clean(&first.final_stage));
    if let [only] = shown {
        let reached = tables::final_latency(only.trial).map_or(0, |it| it.response.count);
        let due = only.trial.counts.due;
        let remark = format!("{} of {} reached it", show_count(reached), show_count(due));
        page.heading(&title, &remark);
        page.grid(&tables::quantiles_of_one(only));
        if verbose {
            lags(page, only.trial);
        }
    } else {
        page.heading(&title, "");
        page.grid(&tables::quantiles_of_several(shown, verbose, true));
    }
    legend(page, run, shown, verbose);
    failures_by_class(page, shown, verbose);
}

/// How late transactions were sent, and how even the throughput was.
fn lags(page: &mut Page, trial: &TrialResult) {
    let lag = |name: &str, lag: &model::result::Distribution| {
        let p99 = lag.quantiles.iter().find(|q| q.name == "p99").and_then(|q| q.value_ns);
        format!("{name} p99 {}", crate::figures::latency(p99))
    };
    let (all, own) = (&trial.send_lag, &trial.own_lag);
    let text = format!("{} · {}", lag("send lag", all), lag("the instrument's own part", own));
    page.indented(Paint::Dim, &text);
    if let Some((low, high)) = trial.throughput_windows {
        let (low, high) = (crate::figures::rate(low), crate::figures::rate(high));
        page.indented(Paint::Dim, &format!("throughput by window {low} to {high}/s"));
    }
}

/// Failures of several settings by class, and those of the background load.
fn failures_by_class(page: &mut Page, shown: &[Shown<'_>], verbose: bool) {
    let is_probed = shown.first().is_some_and(|row| tables::is_probe(row.trial));
    let of = if is_probed { " of the probe" } else { "" };
    if shown.len() > 1 {
        // Settings without a failure are not told unless everything is wanted.
        let classes = tables::failure_classes(shown, "counts", |trial| {
            (verbose || failed(&trial.counts) > 0).then_some(&trial.counts)
        });
        if !classes.is_empty() {
            page.heading(&format!("Failures{of} by class"), "");
            page.grid(&classes);
        }
    }
    let background =
        tables::failure_classes(shown, "background", |trial| trial.background.as_ref());
    if !background.is_empty() {
        page.heading("Failures of the background load by class", "");
        page.grid(&background);
    }
}

/// The meaning of `~` and `inf` if they were printed, and how percentiles and intervals are computed: in full if everything is
/// wanted.
pub(super) fn legend(page: &mut Page, run: &RunResult, shown: &[Shown<'_>], verbose: bool) {
    let latencies = || shown.iter().filter_map(|row| tables::final_latency(row.trial));
    // Of several settings only these stand in the table, unless everything is wanted.
    let is_printed =
        |it: &&Quantile| verbose || shown.len() == 1 || ["p50", "p99"].contains(&it.name.as_str());
    let quantiles = latencies().flat_map(|latency| &latency.response.quantiles);
    if quantiles.filter(is_printed).any(is_thin) {
        page.indented(Paint::Dim, "~ rests on fewer than ten samples beyond it: read it as a hint");
    }
    if let Some(text) = tables::void_legend(shown) {
        page.indented(Paint::Dim, text);
    }
    if let Some(text) = tables::said_of_all_due(latencies()) {
        page.indented(Paint::Dim, &text);
    }
    if !verbose {
        return;
    }
    if let Some(said) = tables::said_of_the_unseen(latencies()) {
        page.indented(Paint::Dim, &said);
    }
    if let Some(said) = tables::said_of_all_trials(shown) {
        page.indented(Paint::Dim, said);
    }
    if !run.percentile_method.is_empty() {
        page.indented(Paint::Dim, &format!("Percentiles: {}", clean(&run.percentile_method)));
    }
}

/// Targets and codes, where there is more than one: of every trial if everything is wanted, and otherwise of the trial
/// with the most failures.
fn groups(page: &mut Page, shown: &[Shown<'_>], verbose: bool) {
    let worst = shown.iter().max_by_key(|row| failed(&row.trial.counts));
    let chosen: Vec<&Shown<'_>> = match verbose {
        true => shown.iter().collect(),
        false => worst.filter(|row| failed(&row.trial.counts) > 0).into_iter().collect(),
    };
    let remark = |row: &Shown<'_>| match (shown.len(), verbose) {
        (1, _) => String::new(),
        (_, true) => row.label.clone(),
        _ => format!("at {}, which failed most; the others with --verbose", row.label),
    };
    for row in chosen {
        for (title, head, key) in [("By kind", "kind", "kinds"), ("By code", "code", "codes")] {
            // Codes of what failed stand with the errors, too.
            let is_wanted = verbose || shown.len() == 1 || key == "kinds";
            if is_wanted && tables::groups_of(row.trial, key).len() > 1 {
                group(page, title, &remark(row), (head, key), row, verbose);
            }
        }
    }
}

fn group(
    page: &mut Page,
    title: &str,
    remark: &str,
    (head, key): (&str, &str),
    row: &Shown<'_>,
    verbose: bool,
) {
    let rows_max = if verbose { usize::MAX } else { tables::GROUPS_MAX };
    let (grid, left_out) = tables::groups(head, row, key, rows_max);
    page.heading(title, remark);
    page.grid(&grid);
    if left_out > 0 {
        let left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
        let text = format!("… and {} more; all with --verbose", plural(left_out, head));
        page.indented(Paint::Dim, &text);
    }
}

fn errors(page: &mut Page, shown: &[Shown<'_>], verbose: bool) {
    let mut all = tables::errors(shown);
    let shown_max = if verbose { all.len() } else { ERRORS_MAX.min(all.len()) };
    let left_out = u64::try_from(all.len() - shown_max).unwrap_or(u64::MAX);
    all.truncate(shown_max);
    let lines: Vec<Marked> = all
        .into_iter()
        .map(|(head, text)| Marked {
            mark: "·",
            paint: Paint::Plain,
            head,
            text,
            text_paint: Paint::Plain,
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    page.heading("Errors", "");
    page.marked(&lines);
    if left_out > 0 {
        page.indented(
            Paint::Dim,
            &format!("… and {}; all with --verbose", plural(left_out, "text")),
        );
    }
}
