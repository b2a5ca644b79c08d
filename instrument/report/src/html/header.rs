//! The head of a run, which is the first screen of a laptop: good or not, why, the question answered in one sentence, the
//! few numbers that one looks for first, and the one chart that answers.
//!
//! It must never show numbers of an invalid run without saying so before them.

use model::quantity::show_count;
use model::result::Verdict;

use super::markup::{Element, Markup, coded, el, list, pairs, paragraph, said, text};
use super::numbers::Document;
use super::tables::{of_cells, words};
use super::{Run, charts};
use crate::answer::{answer, own_lag_decides, subject_words, unsent_words};
use crate::figures::{of_all_streams, plural, quantile, rate, share, span_ns};
use crate::grid::{Cell, Source};
use crate::next::next_words;
use crate::paint::verdict_mark;
use crate::svg::{Figure, Section};
use crate::tables::{self, Shown, final_latency};

pub(crate) fn header(run: &Run<'_>) -> Markup {
    let result = run.result;
    let answer = answer(result, &run.shown);
    let mut cautions: Vec<Markup> = Vec::new();
    let strong = |of: &str| Markup::from(el("strong").text(of)).and(said(" "));
    if result.verdict == Verdict::Invalid && !run.shown.is_empty() {
        cautions.push(match own_lag_decides(&run.shown) {
            true => strong("This machine was late:").and(said(
                "numbers that its own lag moves are printed as ranges; the others hold.",
            )),
            false => {
                strong("Do not use the numbers below:").and(text(&format!("{}.", holds_not(run))))
            }
        });
    }
    if result.interrupted {
        cautions.push(strong("Interrupted:").and(said("this is what was recorded until then.")));
    }
    let switches = result.fidelity.iter();
    cautions.extend(switches.map(|it| strong("Fidelity switch on:").and(text(it))));
    let tiles =
        answer.focus.map_or_else(Markup::new, |focus| tiles(run, focus, &answer.focus_label));
    Markup::from(banner(run))
        .and(paragraph("asked", &result.question))
        .and(list("cautions", cautions))
        .and(paragraph("answer", &answer.sentence))
        .and(tiles)
        .and(charts::of_first_screen(run))
        .and(facts(run))
}

/// The figures that answer: of several loads what they brought, of one trial its course, else how settings differ.
pub(super) fn chosen(figures: &[Figure], trials: usize) -> Vec<usize> {
    let places = |wanted: &dyn Fn(&Figure) -> bool| -> Vec<usize> {
        let all = figures.iter().enumerate().filter(|(_, it)| wanted(it));
        all.map(|(index, _)| index).collect()
    };
    let of_loads = places(&|it| it.section == Section::Answer);
    if !of_loads.is_empty() {
        return of_loads;
    }
    match trials {
        0 => Vec::new(),
        1 => places(&|it| it.section == Section::Time && ["latency", "rates"].contains(&it.chart)),
        _ => places(&|it| it.section == Section::Distribution).into_iter().take(2).collect(),
    }
}

/// How much of the measurement does not hold, in words.
fn holds_not(run: &Run<'_>) -> String {
    let is_bad =
        |row: &&Shown<'_>| row.trial.verdict == Verdict::Invalid && row.setting.expect.is_none();
    let bad = run.shown.iter().filter(is_bad).count();
    let all = u64::try_from(run.shown.len()).unwrap_or(u64::MAX);
    if bad == 0 || bad == run.shown.len() {
        return "what would decide is not valid".to_owned();
    }
    format!("{bad} of {} are invalid; the table says which", plural(all, "trial"))
}

/// The word with its mark, the name, the reason, and what the exit code means.
fn banner(run: &Run<'_>) -> Element {
    let result = run.result;
    let (mark, _) = verdict_mark(result.verdict);
    let word = result.verdict.word();
    // What was cut short has passed nothing yet: it must not look as if it had.
    let (more, also) = match (result.interrupted, result.verdict) {
        (true, Verdict::Pass) => (" interrupted", ", as far as it got: INTERRUPTED"),
        (true, _) => (" interrupted", " · INTERRUPTED"),
        (false, _) => ("", ""),
    };
    let exit = format!("Exit code {}: {}.", result.exit_code, result.exit_meaning);
    let mark = el("span").class("mark").attr("aria-hidden", "true").text(mark);
    // Of a search the reason is the answer, which stands below.
    let reason =
        result.search.is_none().then(|| el("p").class("reason").add(coded(&result.reason)));
    let word_line = el("p").class("word").add(mark).said(" ");
    el("div")
        .class(&format!("banner {word}{more}"))
        .add(word_line.text(&word.to_uppercase()).said(also))
        .add(el("h1").attr("id", format!("r{}-name", run.index)).text(&run.name))
        .add(paragraph("subject", &subject_words(result)))
        .add(reason)
        .add(next_words(result, &run.shown).and_then(|it| paragraph("next", &it)))
        .add(el("p").class("exit").text(&exit))
}

/// The numbers of the trial that stands for the run, what failed in all of them, and what the audits say.
fn tiles(run: &Run<'_>, row: &Shown<'_>, label: &str) -> Markup {
    let trial = row.trial;
    let at = if label.is_empty() { String::new() } else { format!(" at {label}") };
    let mut tiles = Markup::new();
    let unsent = unsent_words(trial);
    if let Some([load, why]) = unsent {
        tiles.push(tile(&run.document, &format!("load{at}"), &Cell::new(load), why));
    }
    if let Some(of) = final_latency(trial).filter(|_| unsent.is_none()) {
        for name in ["p50", "p99"] {
            if let Some(q) = of.response.quantiles.iter().find(|q| q.name == name) {
                let beyond = format!("{} beyond it", plural(q.beyond, "sample"));
                // What a threshold is compared with stands first; those that were committed beside it where they differ.
                let below = match of.inf {
                    0 => beyond,
                    _ => format!("of all due; of the committed {}", quantile(q)),
                };
                let cell = tables::quantile_named(row, name);
                tiles.push(tile(&run.document, &format!("{name}{at}"), &cell, &below));
            }
        }
    }
    if unsent.is_none() {
        let rates = &trial.rates;
        let goodput = Cell::new(format!("{}/s", rate(rates.goodput_per_s)));
        let goodput = tables::marked_cell(goodput.at(row.at("rates/goodput_per_s")), row);
        let below = format!("of {}/s offered", rate(rates.offered_per_s));
        tiles.push(tile(&run.document, &format!("goodput{at}"), &goodput, &below));
    }
    let (lost, due) = of_all_streams(run.shown.iter().map(|it| it.trial));
    let parts = run.shown.iter().flat_map(tables::failed_parts_of_all);
    let lost_cell = Cell::new(show_count(lost)).of(Source::Sum(parts.collect()));
    let lost_cell = run.shown.iter().fold(lost_cell, tables::marked_cell);
    let below = format!("{} of all due", share(lost, due));
    let what = if run.shown.len() > 1 { "failed, all settings" } else { "failed" };
    if due > 0 || unsent.is_none() {
        tiles.push(tile(&run.document, what, &lost_cell, &below));
    }
    let audits = tables::audits(run.result, &run.shown);
    if !audits.is_empty() {
        let object = tables::objecting(&audits);
        let below = match object {
            0 => "nothing objects".to_owned(),
            1 => "1 warning or failure: see below".to_owned(),
            _ => format!("{} warnings or failures: see below", show_count(object)),
        };
        let count = Cell::new(tables::audits_ok(&audits));
        tiles.push(tile(&run.document, "audits ok", &count, &below));
    }
    el("dl").class("cards").add(tiles).into()
}

fn tile(document: &Document, what: &str, cell: &Cell, below: &str) -> Element {
    let attributes = cell.source.as_ref().map(|it| document.attributes(it)).unwrap_or_default();
    let class = match cell.text.chars().next() {
        Some('!') => "value warn",
        Some('~') => "value grey",
        _ => "value",
    };
    el("div")
        .class("card")
        .add(el("dt").text(what))
        .add(el("dd").class(class).attrs(attributes).text(&cell.text))
        .add(el("dd").class("below").text(below))
}

/// Date, length, seed and tool.
fn facts(run: &Run<'_>) -> Option<Element> {
    let result = run.result;
    let settings = u64::try_from(result.settings.len()).unwrap_or(u64::MAX);
    let trials = u64::try_from(run.shown.len()).unwrap_or(u64::MAX);
    let windows: Vec<String> = run.shown.iter().map(|row| row.at("window_ns")).collect();
    let total: i64 = run.shown.iter().fold(0, |sum, row| sum.saturating_add(row.trial.window_ns));
    let measured = run.document.attributes(&Source::Sum(windows));
    let count = format!("{}, {}", plural(settings, "setting"), plural(trials, "trial"));
    let seed = result.seed.to_string();
    let seed_at = vec![("data-v", seed.clone()), ("data-k", "/seed".to_owned())];
    pairs(
        "facts brief",
        vec![
            ("started", text(&result.started)),
            ("measured", el("span").attrs(measured).text(&span_ns(total)).into()),
            ("settings", text(&count)),
            ("seed", el("span").attrs(seed_at).text(&seed).into()),
            ("tool", text(&result.environment.assay)),
        ],
    )
}

/// Verdicts of several runs.
pub(super) fn overview(runs: &[Run<'_>]) -> Element {
    let row = |run: &Run<'_>| {
        let result = run.result;
        let (mark, _) = verdict_mark(result.verdict);
        let word = result.verdict.word();
        let link = el("a").attr("href", format!("#r{}", run.index)).text(&run.name);
        vec![
            el("td").add(link),
            words(&result.started),
            words(&format!("{mark} {word}")).class(word),
            el("td").add(coded(&result.reason)),
        ]
    };
    let heads = [("run", "text"), ("started", "text"), ("verdict", "text"), ("reason", "text")];
    let caption = "Verdicts of the runs in this report";
    let heading = el("h2").attr("id", "overview-h").text(&format!("{} runs", runs.len()));
    el("section")
        .class("section overview")
        .attr("aria-labelledby", "overview-h")
        .add(heading)
        .add(of_cells("runs", caption, &heads, runs.iter().map(row).collect()))
}
