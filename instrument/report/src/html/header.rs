//! The head of a run: good or not in two seconds, why, and the few numbers that one looks for first.
//!
//! It must never show numbers of an invalid run without saying so before them.

use model::quantity::show_count;
use model::result::{RunResult, SettingResult, Verdict};

use super::markup::{coded, list, pairs, paragraph, text};
use super::numbers::Document;
use super::{Run, tables as markup_tables};
use crate::figures::{latency, plural, rate, share, span_ns, unconditional};
use crate::grid::{Cell, Grid, Source};
use crate::paint::verdict_mark;
use crate::tables::{self, Shown, final_latency};

pub(super) fn header(run: &Run<'_>) -> String {
    let result = run.result;
    let mut markup = banner(result);
    markup.push_str(&paragraph("asked", &result.question));
    let mut cautions: Vec<String> = Vec::new();
    if result.verdict == Verdict::Invalid && !run.shown.is_empty() {
        cautions
            .push(format!("<strong>Do not use the numbers below:</strong> {}.", holds_not(run)));
    }
    if result.interrupted {
        cautions
            .push("<strong>Interrupted:</strong> this is what was recorded until then.".to_owned());
    }
    cautions.extend(
        result
            .fidelity
            .iter()
            .map(|it| format!("<strong>Fidelity switch on:</strong> {}", text(it))),
    );
    cautions.extend(declared(result));
    markup.push_str(&list("cautions", &cautions));
    markup.push_str(&match run.shown.as_slice() {
        [] => paragraph("empty", "No trial was recorded."),
        [only] => cards(&run.document, only),
        several => key_numbers(&run.document, several),
    });
    markup.push_str(&paragraph("knee", &result.knee));
    markup.push_str(&facts(run));
    markup
}

/// How much of the measurement does not hold, in words.
fn holds_not(run: &Run<'_>) -> String {
    let is_bad =
        |row: &&Shown<'_>| row.trial.verdict == Verdict::Invalid && row.setting.expect.is_none();
    let bad = run.shown.iter().filter(is_bad).count();
    let all = u64::try_from(run.shown.len()).unwrap_or(u64::MAX);
    if bad == 0 || bad == run.shown.len() {
        return "the measurement does not hold".to_owned();
    }
    format!("{bad} of {} do not hold; the table says which", plural(all, "trial"))
}

/// The word, its mark, and the reason.
fn banner(result: &RunResult) -> String {
    let (mark, _) = verdict_mark(result.verdict);
    let word = result.verdict.word();
    // What was cut short has passed nothing yet: it must not look as if it had.
    let (more, said) = match (result.interrupted, result.verdict) {
        (true, Verdict::Pass) => (" interrupted", ", as far as it got: INTERRUPTED"),
        (true, _) => (" interrupted", " · INTERRUPTED"),
        (false, _) => ("", ""),
    };
    format!(
        "<div class=\"banner {word}{more}\"><p class=\"word\"><span class=\"mark\" aria-hidden=\"true\">{mark}</span> {}{said}</p>\n\
         <p class=\"reason\">{}</p>\n<p class=\"exit\">Exit code {}: {}.</p></div>\n",
        word.to_uppercase(),
        coded(&result.reason),
        result.exit_code,
        text(&result.exit_meaning),
    )
}

/// Settings whose verdict was declared before the run.
fn declared(result: &RunResult) -> Vec<String> {
    let line = |setting: &SettingResult| {
        let expect = setting.expect?;
        let (key, word) = (text(&setting.key), setting.verdict.word());
        Some(if expect == setting.verdict {
            format!(
                "<strong>✓ {word}, as declared:</strong> the experiment says beforehand that {key} comes out {word}, and it does. {}",
                match setting.verdict {
                    Verdict::Invalid =>
                        "That is as it should be; its numbers mean nothing all the same.",
                    _ => "That is as it should be.",
                }
            )
        } else {
            format!("<strong>✗ {word}, declared {}:</strong> {key}", expect.word())
        })
    };
    result.settings.iter().filter_map(line).collect()
}

/// The numbers of the only setting.
fn cards(document: &Document, row: &Shown<'_>) -> String {
    let trial = row.trial;
    let mut cards = Vec::new();
    let mut card = |what: &str, cell: Cell, below: String| {
        let attributes =
            cell.source.as_ref().map_or_else(String::new, |it| document.attributes(it));
        let cell = tables::marked_cell(cell, row);
        let class = match cell.text.chars().next() {
            Some('!') => " warn",
            Some('~') => " grey",
            _ => "",
        };
        cards.push(format!(
            "<div class=\"card\"><dt>{}</dt><dd class=\"value{class}\"{attributes}>{}</dd><dd class=\"below\">{}</dd></div>\n",
            text(what),
            text(&cell.text),
            text(&below)
        ));
    };
    let due = format!("{} due in {}", show_count(trial.counts.due), span_ns(trial.window_ns));
    card("offered", offered(row), due);
    let committed = share(trial.counts.committed, trial.counts.due);
    card("goodput", goodput(row), format!("{committed} committed"));
    if let Some(of) = final_latency(trial) {
        for name in ["p50", "p99"] {
            if let Some(q) = of.response.quantiles.iter().find(|q| q.name == name) {
                let beyond = format!("{} beyond it", plural(q.beyond, "sample"));
                // A threshold is compared with this one: it must not stay unseen where the two differ.
                let below = match of.inf {
                    0 => beyond,
                    _ => format!("of those committed; of all due {}", unconditional(q)),
                };
                card(name, tables::quantile_named(row, name), below);
            }
        }
        let samples = format!("of {}", plural(of.response.count, "sample"));
        card("max", max(row), samples);
    }
    let failed = crate::figures::failed(&trial.counts);
    let failed_of = Source::Sum(tables::failed_parts(&row.at("counts")));
    let below = format!("{} of all due", share(failed, trial.counts.due));
    card("failed", Cell::new(show_count(failed)).of(failed_of), below);
    format!("<dl class=\"cards\">\n{}</dl>\n", cards.concat())
}

fn offered(row: &Shown<'_>) -> Cell {
    let per_s = rate(row.trial.rates.offered_per_s);
    Cell::new(format!("{per_s}/s")).at(row.at("rates/offered_per_s"))
}

fn goodput(row: &Shown<'_>) -> Cell {
    let per_s = rate(row.trial.rates.goodput_per_s);
    Cell::new(format!("{per_s}/s")).at(row.at("rates/goodput_per_s"))
}

fn max(row: &Shown<'_>) -> Cell {
    let largest = final_latency(row.trial).and_then(|it| it.response.max_ns);
    Cell::new(latency(largest)).at(format!("{}/response/max_ns", row.latency_at()))
}

/// The numbers of several settings.
fn key_numbers(document: &Document, shown: &[Shown<'_>]) -> String {
    let has_inf = shown.iter().filter_map(|row| final_latency(row.trial)).any(|it| it.inf > 0);
    let is_probe = shown.iter().any(|row| tables::is_probe(row.trial));
    let mut grid = Grid::new().pin("setting").words(1, "verdict").number(1, "offered");
    grid = grid.number(1, "goodput");
    if !is_probe {
        grid = grid.words(1, "achieved");
    }
    for head in ["n", "p50", "p99"] {
        grid = grid.number(1, head);
    }
    grid = grid.number(1, if has_inf { "p99 of all due" } else { "max" });
    for row in shown {
        let count = final_latency(row.trial).map_or(0, |it| it.response.count);
        let mut cells = vec![
            Cell::new(row.label.as_str()),
            tables::verdict_cell(row),
            offered(row),
            goodput(row),
        ];
        if !is_probe {
            cells.push(tables::kept_cell(row));
        }
        cells.extend([
            Cell::new(show_count(count)).at(format!("{}/response/count", row.latency_at())),
            tables::quantile_named(row, "p50"),
            tables::quantile_named(row, "p99"),
            if has_inf { of_all_due(row, "p99") } else { max(row) },
        ]);
        grid.row(cells);
    }
    let grid = tables::marked(grid, shown);
    markup_tables::of_grid(document, "key", "Key numbers: response time by setting", &grid)
}

/// A quantile over all that were due.
fn of_all_due(row: &Shown<'_>, name: &str) -> Cell {
    let quantiles = final_latency(row.trial).map(|it| it.response.quantiles.as_slice());
    let quantiles = quantiles.unwrap_or_default();
    match quantiles.iter().position(|q| q.name == name) {
        Some(index) => Cell::new(unconditional(&quantiles[index]))
            .at(format!("{}/response/quantiles/{index}/unconditional_ns", row.latency_at())),
        None => Cell::new(crate::figures::NONE),
    }
}

/// Date, length, seed and tool.
fn facts(run: &Run<'_>) -> String {
    let result = run.result;
    let settings = u64::try_from(result.settings.len()).unwrap_or(u64::MAX);
    let trials = u64::try_from(run.shown.len()).unwrap_or(u64::MAX);
    let windows: Vec<String> = run.shown.iter().map(|row| row.at("window_ns")).collect();
    let total: i64 = run.shown.iter().fold(0, |sum, row| sum.saturating_add(row.trial.window_ns));
    let measured = run.document.attributes(&Source::Sum(windows));
    let pair = |word: &str, content: String| (word.to_owned(), content);
    pairs(
        "facts",
        &[
            pair("started", text(&result.started)),
            pair("measured", format!("<span{measured}>{}</span>", text(&span_ns(total)))),
            pair(
                "settings",
                format!(
                    "{}, {}",
                    text(&plural(settings, "setting")),
                    text(&plural(trials, "trial"))
                ),
            ),
            pair("seed", format!("<span data-v=\"{0}\" data-k=\"/seed\">{0}</span>", result.seed)),
            pair("tool", text(&result.environment.assay)),
        ],
    )
}

/// Verdicts of several runs.
pub(super) fn overview(runs: &[Run<'_>]) -> String {
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|run| {
            let result = run.result;
            let (mark, _) = verdict_mark(result.verdict);
            let word = result.verdict.word();
            vec![
                format!("<a href=\"#r{}\">{}</a>", run.index, text(&run.name)),
                text(&result.started),
                format!("<td class=\"{word}\">{mark} {word}</td>"),
                coded(&result.reason),
            ]
        })
        .collect();
    let heads = [("run", "text"), ("started", "text"), ("verdict", "text"), ("reason", "text")];
    let table =
        markup_tables::of_words("runs", "Verdicts of the runs in this report", &heads, &rows);
    format!(
        "<section class=\"section overview\" aria-labelledby=\"overview-h\">\n<h2 id=\"overview-h\">{} runs</h2>\n{table}</section>\n",
        runs.len()
    )
}
