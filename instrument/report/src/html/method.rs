//! What is needed to repeat the run, and what the page leaves out.
//!
//! It must never show more than the run folder holds: secrets are redacted there already, and the page reads nothing
//! else.

use model::picture::BandKind;
use model::quantity::{show_count, show_ns};

use super::Run;
use super::failures::{ERRORS_SHOWN_MAX, GROUPS_SHOWN_MAX};
use super::markup::{details, lines, list, pairs, paragraph, text};
use super::tables::of_words;
use crate::figures::{bytes, is_thin};
use crate::tables::final_latency;

/// Files that are listed; the rest is counted.
const FILES_MAX: usize = 300;

pub(super) fn method(run: &Run<'_>) -> String {
    let mut markup = repeat(run);
    markup.push_str(&format!("<h3>Environment</h3>\n{}", environment(run)));
    markup.push_str("<h3>How the numbers were made</h3>\n");
    markup
        .push_str(&paragraph("method", &format!("Percentiles: {}.", run.result.percentile_method)));
    markup.push_str(&format!("<h3>What was left out</h3>\n{}", list("left-out", &left_out(run))));
    if !run.picture.experiment.is_empty() {
        let code =
            format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", lines(&run.picture.experiment));
        markup.push_str(&details(
            "experiment",
            "The experiment, as it was written (secrets replaced by a mark)",
            &code,
        ));
    }
    if !run.picture.plan.is_empty() {
        let code = format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", lines(&run.picture.plan));
        markup.push_str(&details("plan", "Every effective value (plan.toml)", &code));
    }
    markup.push_str(&files(run));
    markup
}

fn repeat(run: &Run<'_>) -> String {
    let seed = run.result.seed;
    let command = run.result.environment.command.join(" ");
    format!(
        "<h3>How to repeat it</h3>\n<p>With the <code>experiment.toml</code> of the run folder:</p>\n\
         <pre tabindex=\"0\"><code>assay run experiment.toml --seed {seed}</code></pre>\n\
         <p>The same seed gives the same due times and the same transactions. The report again, from the folder alone: \
         <code>assay report --format html -o report.html FOLDER</code>.</p>\n{}",
        if command.is_empty() {
            String::new()
        } else {
            format!(
                "<p>It was started with:</p>\n<pre tabindex=\"0\"><code>{}</code></pre>\n",
                text(&command)
            )
        }
    )
}

fn environment(run: &Run<'_>) -> String {
    let host = &run.result.environment;
    let known = |is_known: bool, of: String| if is_known { of } else { String::new() };
    let (low, high) = host.cpu_mhz;
    let of = [
        ("tool", text(&host.assay)),
        ("started", text(&host.started)),
        ("operating system", text(&host.os)),
        ("kernel", text(&host.kernel)),
        ("processor", text(&host.cpu)),
        ("processors", known(host.cpus > 0, host.cpus.to_string())),
        ("clock rate", known(high > 0.0, format!("{low:.0} to {high:.0} MHz"))),
        ("governor", text(&host.governor)),
        ("memory", known(host.memory_bytes > 0, bytes(host.memory_bytes))),
        ("open files", known(host.files_max > 0, show_count(host.files_max))),
        ("local ports", known(host.ports > 0, show_count(u64::from(host.ports)))),
        ("clock source", text(&host.clock_source)),
        ("load average", format!("{:.2}", host.load_average)),
        ("virtual machine", text(&host.virtualisation)),
        ("seed", run.result.seed.to_string()),
    ];
    let of: Vec<(String, String)> =
        of.into_iter().map(|(word, it)| (word.to_owned(), it)).collect();
    pairs("facts environment", &of)
}

/// What a reader could miss here, in words.
fn left_out(run: &Run<'_>) -> Vec<String> {
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
            "Many columns of time: without a script each table of time holds the {kept} with the highest p99."
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
fn files(run: &Run<'_>) -> String {
    let all = &run.picture.files;
    let rows: Vec<Vec<String>> = all
        .iter()
        .take(FILES_MAX)
        .map(|it| {
            vec![
                text(&it.path),
                format!("<td data-v=\"{}\">{}</td>", it.bytes, text(&show_count(it.bytes))),
                format!("<code>{:08x}</code>", it.crc32),
            ]
        })
        .collect();
    let heads = [("file", "text"), ("bytes", "number"), ("CRC-32", "text")];
    let mut table =
        of_words("files", "Files of the run folder that hold what was measured", &heads, &rows);
    if all.len() > FILES_MAX {
        table.push_str(&paragraph("legend", &format!("… and {} more.", all.len() - FILES_MAX)));
    }
    details("files", "Files, with lengths and checksums", &table)
}
