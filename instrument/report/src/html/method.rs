//! Everything that a repetition of the run needs, and everything that the page leaves out.
//!
//! It must never show more than the run folder holds: secrets are redacted there already, and the page reads nothing
//! else.

use model::picture::BandKind;
use model::quantity::{show_count, show_ns};

use super::Run;
use super::failures::{ERRORS_SHOWN_MAX, GROUPS_SHOWN_MAX};
use super::markup::{Element, Markup, details, el, lines, list, pairs, paragraph, text};
use super::tables::{of_cells, words};
use crate::figures::{bytes, is_thin};
use crate::tables::final_latency;

/// Files that are listed; the rest is counted.
const FILES_MAX: usize = 300;

pub(crate) fn method(run: &Run<'_>) -> Markup {
    let heading = |of: &str| el("h3").text(of);
    repeat(run)
        .and(heading("Environment"))
        .and(environment(run))
        .and(heading("How the numbers were made"))
        .and(paragraph("method", &format!("Percentiles: {}.", run.result.percentile_method)))
        .and(heading("What was left out"))
        .and(list("left-out", left_out(run)))
        .and(verbatim(
            "experiment",
            "The experiment, as it was written (secrets replaced by a mark)",
            &run.picture.experiment,
        ))
        .and(verbatim("plan", "Every effective value (plan.toml)", &run.picture.plan))
        .and(files(run))
}

/// A file as it is, folded; none if it is empty.
fn verbatim(class: &str, summary: &str, of: &str) -> Option<Element> {
    let code = (!of.is_empty()).then(|| command(lines(of)));
    details(class, summary, Markup::from(code))
}

/// Code in a block that the keyboard can scroll.
fn command(of: Markup) -> Element {
    el("pre").attr("tabindex", "0").add(el("code").add(of))
}

fn repeat(run: &Run<'_>) -> Markup {
    let seed = run.result.seed;
    let started = run.result.environment.command.join(" ");
    let code = |of: &str| el("code").text(of);
    let folder = el("p").said("With the ").add(code("experiment.toml")).said(" of the run folder:");
    let again = el("p")
        .said("The same seed gives the same due times and the same transactions. The report again, from the folder alone: ")
        .add(code("assay report --format html -o report.html FOLDER"))
        .said(".");
    let markup = Markup::from(el("h3").text("How to repeat it"))
        .and(folder)
        .and(command(text(&format!("assay run experiment.toml --seed {seed}"))))
        .and(again);
    if started.is_empty() {
        return markup;
    }
    markup.and(el("p").text("It was started with:")).and(command(text(&started)))
}

fn environment(run: &Run<'_>) -> Option<Element> {
    let host = &run.result.environment;
    let known = |is_known: bool, of: String| if is_known { of } else { String::new() };
    let (low, high) = host.cpu_mhz;
    let of = [
        ("tool", host.assay.clone()),
        ("started", host.started.clone()),
        ("operating system", host.os.clone()),
        ("kernel", host.kernel.clone()),
        ("processor", host.cpu.clone()),
        ("processors", known(host.cpus > 0, host.cpus.to_string())),
        ("clock rate", known(high > 0.0, format!("{low:.0} to {high:.0} MHz"))),
        ("governor", host.governor.clone()),
        ("memory", known(host.memory_bytes > 0, bytes(host.memory_bytes))),
        ("open files", known(host.files_max > 0, show_count(host.files_max))),
        ("local ports", known(host.ports > 0, show_count(u64::from(host.ports)))),
        ("clock source", host.clock_source.clone()),
        ("load average", format!("{:.2}", host.load_average)),
        ("virtual machine", host.virtualisation.clone()),
        ("seed", run.result.seed.to_string()),
    ];
    pairs("facts environment", of.into_iter().map(|(word, it)| (word, text(&it))).collect())
}

/// The omissions that a reader could miss here, in words.
fn left_out(run: &Run<'_>) -> Vec<Markup> {
    let mut said = Vec::new();
    let mut say = |line: String| said.push(text(&line));
    let bands = |kind: BandKind| {
        run.picture
            .trials
            .iter()
            .filter(move |trial| trial.bands.iter().any(|it| it.kind == kind))
            .count()
    };
    let trials = run.shown.len();
    if bands(BandKind::Warmup) > 0 {
        say(format!(
            "Warm-up: sent and drawn, counted in no table ({} of {trials} trials have one).",
            bands(BandKind::Warmup)
        ));
    }
    say("A transaction belongs to the measured window by its due time; what ended in the drain counts if it fell due in the window.".to_owned());
    let thin: usize = run
        .shown
        .iter()
        .filter_map(|row| final_latency(row.trial))
        .map(|it| it.response.quantiles.iter().filter(|q| is_thin(q)).count())
        .sum();
    if thin > 0 {
        say(format!(
            "{thin} percentiles rest on fewer than ten samples beyond them: shown grey with a ~, and not to be relied on."
        ));
    }
    let widths: Vec<i64> = run.shown.iter().map(|row| row.trial.timeline.width_ns).collect();
    if let (Some(low), Some(high)) = (widths.iter().min(), widths.iter().max()) {
        let width = if low == high {
            show_ns(*low)
        } else {
            format!("{} to {}", show_ns(*low), show_ns(*high))
        };
        say(format!(
            "Charts of time have columns of {width}: a trial has at most {} of them, however long it is.",
            model::result::TIMELINE_COLUMNS_MAX
        ));
    }
    say(format!(
        "Of each column of time at most the {} slowest transactions can be looked at here, in a document at most {}; every transaction is a row of transactions.parquet.",
        model::picture::SLOWEST_MAX,
        show_count(u64::try_from(super::pack::SLOW_ROWS_MAX).unwrap_or(u64::MAX))
    ));
    if let Some(kept) = run.columns_kept {
        say(format!(
            "Many columns of time: without a script each table of time holds the {kept} with the longest response times."
        ));
    }
    let most = run.shown.iter().map(|row| row.trial.kinds.len().max(row.trial.codes.len())).max();
    if most.unwrap_or(0) > GROUPS_SHOWN_MAX {
        say(format!(
            "Tables by kind and by code hold the {GROUPS_SHOWN_MAX} that failed most or are slowest; all are in summary.json."
        ));
    }
    let errors: usize = run.shown.iter().map(|row| row.trial.errors.len()).sum();
    if errors > ERRORS_SHOWN_MAX {
        say(format!("{errors} error texts: the {ERRORS_SHOWN_MAX} most frequent are shown."));
    }
    said
}

/// Files with length and checksum.
fn files(run: &Run<'_>) -> Option<Element> {
    let all = &run.picture.files;
    let row = |it: &model::picture::RawFile| {
        let length = words(&show_count(it.bytes)).attr("data-v", it.bytes.to_string());
        let sum = el("td").add(el("code").text(&format!("{:08x}", it.crc32)));
        vec![words(&it.path), length, sum]
    };
    let rows = all.iter().take(FILES_MAX).map(row).collect();
    let heads = [("file", "text"), ("bytes", "number"), ("CRC-32", "text")];
    let caption = "Files of the run folder that hold what was measured";
    let more = match all.len().saturating_sub(FILES_MAX) {
        0 => String::new(),
        more => format!("… and {more} more."),
    };
    let table = Markup::from(of_cells("files", caption, &heads, rows));
    details("files", "Files, with lengths and checksums", table.and(paragraph("legend", &more)))
}
