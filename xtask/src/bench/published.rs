//! `cargo xtask bench published`: the twelve tables that sdh21/dstore publishes of its replicated key-value database, made
//! anew with the experiments of experiments/kv: three replicas with TLS and durable logs on this machine. Beside the published
//! numbers (the slowest and the fastest ten seconds of a run) stand what they do not say: percentiles with intervals,
//! and whether the trial behind a cell holds.
//!
//! The tables of each experiment have a place of their own in the page, so that those of one can be made again alone.

mod tables;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use tables::{Cell, FILES, TABLES, Table};

/// Seconds of a window: what the published minimum and maximum are of.
const WINDOW_SECONDS: u32 = 10;

/// The page that has the tables, those of each experiment between two lines of its own ([`Place`]).
const PAGE: &str = "results/kv.md";

/// How much is measured.
#[derive(Clone, Copy)]
pub enum Size {
    /// One cell of each table, some windows of a fraction of a second each: printed and not kept.
    Toy,
    /// So many seconds a cell.
    Seconds(u32),
}

/// Runs all experiments, or one of them by its name, prints the tables, and writes them into the page if not at toy size.
pub fn run(root: &Path, size: Size, only: Option<&str>) -> Result<(), String> {
    let assay = super::workbench::built_assay(root)?;
    if let Some(name) = only
        && !FILES.contains(&name)
    {
        return Err(format!("`{name}` is none of the experiments: {}", FILES.join(", ")));
    }
    if let Size::Seconds(seconds) = size
        && seconds < 2 * WINDOW_SECONDS
    {
        return Err(format!("a cell takes at least two windows of {WINDOW_SECONDS} s"));
    }
    let files = FILES.iter().filter(|file| only.is_none_or(|only| only == **file));
    let Size::Seconds(seconds) = size else {
        // Not where tables of full length may lie.
        let folder = root.join("target/bench-published-toy");
        let ended = files.copied().try_for_each(|file| toy(root, &assay, &folder, file));
        let _ = std::fs::remove_dir_all(&folder);
        return ended;
    };
    let page = root.join(PAGE);
    let reading = || {
        std::fs::read_to_string(&page)
            .map_err(|error| format!("reading {}: {error}", page.display()))
    };
    // Before anything is measured: a cell takes a while, and its table must have a place.
    let text = reading()?;
    files.clone().try_for_each(|file| Place::of(&text, file).map(|_| ()))?;
    let folder = root.join("target/bench-published");
    let mut said = Vec::new();
    for file in files {
        let how = ["--set".to_owned(), format!("load.duration={seconds}s")];
        let document = measured(root, &assay, &folder, file, &how)?;
        let made = made(&document, file, seconds);
        print!("{made}");
        // Read again: whoever writes in the page meanwhile loses nothing.
        let text = reading()?;
        std::fs::write(&page, Place::of(&text, file)?.with(&made))
            .map_err(|error| format!("writing {}: {error}", page.display()))?;
        said.extend(holds(&document, file).err());
    }
    let _ = std::fs::remove_dir_all(&folder);
    if said.is_empty() { Ok(()) } else { Err(said.join("\n")) }
}

/// Runs the first cell of each table of one experiment, once where tables have it in common, and makes sure that the tables
/// have it. Whether its numbers hold is not asked: the machine that looks that nothing rots may be busy.
fn toy(root: &Path, assay: &Path, folder: &Path, file: &str) -> Result<(), String> {
    let mut ran: Vec<(Vec<String>, Value)> = Vec::new();
    for table in TABLES.iter().filter(|table| table.file == file) {
        let first = (table.rows, table.cells[0].label);
        let mut how: Vec<String> =
            ["--profile", "toy", "--set", "include=[]"].map(str::to_owned).into();
        for (axis, label) in table.of.iter().chain([&first]) {
            let value =
                label.parse().map_or_else(|_| format!("{label:?}"), |it: u64| it.to_string());
            how.extend(["--set".to_owned(), format!("matrix.{axis}.values=[{value}]")]);
        }
        if !ran.iter().any(|(ran, _)| *ran == how) {
            let document = measured(root, assay, folder, file, &how)?;
            ran.push((how.clone(), document));
        }
        let document = ran.iter().find(|(ran, _)| *ran == how).map(|(_, document)| document);
        let cell = &table.cells[0];
        let found = document.and_then(|document| Found::of(document, table, cell));
        println!("{}\n{}\n", table.title, row(cell, found.as_ref()));
        if !found.is_some_and(|found| found.is_whole()) {
            return Err(format!(
                "{file}: `{}` lacks the row {}, or a figure of it",
                table.title, cell.label
            ));
        }
    }
    Ok(())
}

/// The result document of an experiment's run.
fn measured(
    root: &Path,
    assay: &Path,
    folder: &Path,
    file: &str,
    how: &[String],
) -> Result<Value, String> {
    let runs = folder.join("runs");
    let _ = std::fs::remove_dir_all(&runs);
    let mut command = Command::new(assay);
    command.arg("run").arg(root.join(format!("experiments/kv/{file}.toml")));
    command.args(["--json", "--progress", "none", "--no-calibration", "--runs"]).arg(&runs);
    command.args(how);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("starting {}: {error}", assay.display()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said).map_err(|error| format!("{file}: no JSON ({error}): {said}"))
}

/// Whether every cell's trial holds, or the names of those that do not.
fn holds(document: &Value, file: &str) -> Result<(), String> {
    let settings = document["settings"].as_array().map_or(&[][..], Vec::as_slice);
    let bad: Vec<String> = settings
        .iter()
        .filter(|setting| setting["verdict"] != "pass")
        .map(|setting| format!("{file}: {}: {}", setting["key"], setting["trials"][0]["reason"]))
        .collect();
    if settings.is_empty() {
        return Err(format!("{file}: it measured nothing"));
    }
    if bad.is_empty() { Ok(()) } else { Err(format!("not every cell holds:\n{}", bad.join("\n"))) }
}

/// The tables that come of one experiment.
fn made(document: &Value, file: &str, seconds: u32) -> String {
    let length = format!("{seconds} s a cell, windows of {WINDOW_SECONDS} s");
    let mut text = String::new();
    for table in TABLES.iter().filter(|table| table.file == file) {
        let _ = writeln!(
            text,
            "**{}** ({}.toml, {length}; {})\n\n\
             | {} | published min–max | min–max | committed/s | p50 ms (95 %) | p99 ms (95 %) | verdict |\n\
             | --- | ---: | ---: | ---: | ---: | ---: | --- |",
            table.title,
            table.file,
            super::machine(),
            table.rows
        );
        for cell in table.cells {
            let found = Found::of(document, table, cell);
            let _ = writeln!(text, "{}", row(cell, found.as_ref()));
        }
        text.push('\n');
    }
    text
}

/// What was found of a cell.
struct Found {
    /// Committed a second in the slowest and in the fastest window.
    windows: Option<(f64, f64)>,
    committed_per_s: Option<f64>,
    p50: Option<Quantile>,
    p99: Option<Quantile>,
    verdict: String,
}

/// A quantile of the response times, milliseconds, and the ends of its interval where it has them.
struct Quantile {
    ms: f64,
    low_ms: Option<f64>,
    high_ms: Option<f64>,
}

impl Found {
    fn of(document: &Value, table: &Table, cell: &Cell) -> Option<Self> {
        let own = (table.rows, cell.label);
        let is_it = |setting: &&Value| {
            let mut wanted = table.of.iter().chain([&own]);
            wanted.all(|(axis, label)| setting["values"][axis] == *label)
        };
        let setting = document["settings"].as_array()?.iter().find(is_it)?;
        let trial = &setting["trials"][0];
        let windows = &trial["throughput_windows"];
        let stages = trial["rates"]["reached_per_s"].as_array();
        let committed = stages.and_then(|list| list.iter().find(|it| it[0] == "committed"));
        Some(Self {
            windows: windows[0].as_f64().zip(windows[1].as_f64()),
            committed_per_s: committed.and_then(|it| it[1].as_f64()),
            p50: Quantile::of(trial, "p50"),
            p99: Quantile::of(trial, "p99"),
            verdict: setting["verdict"].as_str().unwrap_or(NONE).to_owned(),
        })
    }

    /// Whether every column has something in it.
    fn is_whole(&self) -> bool {
        self.windows.is_some_and(|(_, max)| max > 0.0)
            && self.committed_per_s.is_some_and(|rate| rate > 0.0)
            && self.p50.is_some()
            && self.p99.is_some()
    }
}

impl Quantile {
    fn of(trial: &Value, name: &str) -> Option<Self> {
        let list = trial["latency"][0]["response"]["quantiles"].as_array()?;
        let found = list.iter().find(|quantile| quantile["name"] == name)?;
        let ms = |end: &str| found[end].as_f64().map(|ns| ns / 1e6);
        Some(Self { ms: ms("value_ns")?, low_ms: ms("low_ns"), high_ms: ms("high_ns") })
    }
}

/// What stands where there is nothing.
const NONE: &str = "–";

fn row(cell: &Cell, found: Option<&Found>) -> String {
    let published = format!("{}–{}", cell.min, cell.max);
    let Some(found) = found else {
        return format!("| {} | {published} | not measured | | | | |", cell.label);
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let quantile = |quantile: &Option<Quantile>| {
        let end = |ms: Option<f64>| ms.map_or("?".to_owned(), |ms| format!("{ms:.2}"));
        or_none(
            quantile
                .as_ref()
                .map(|it| format!("{:.2} ({}–{})", it.ms, end(it.low_ms), end(it.high_ms))),
        )
    };
    format!(
        "| {} | {published} | {} | {} | {} | {} | {} |",
        cell.label,
        or_none(found.windows.map(|(min, max)| format!("{min:.0}–{max:.0}"))),
        or_none(found.committed_per_s.map(|rate| format!("{rate:.0}"))),
        quantile(&found.p50),
        quantile(&found.p99),
        found.verdict
    )
}

/// Where in the page the tables of one experiment stand.
struct Place<'a> {
    /// All before them, the line that begins them included.
    before: &'a str,
    /// All behind them, from the line that ends them on.
    behind: &'a str,
}

impl<'a> Place<'a> {
    fn of(page: &'a str, file: &str) -> Result<Self, String> {
        let [begin, end] = ["begin", "end"]
            .map(|mark| format!("<!-- {mark}: cargo xtask bench published {file} -->\n"));
        let found = page.find(&begin).and_then(|at| {
            let (before, rest) = page.split_at(at + begin.len());
            Some(Self { before, behind: &rest[rest.find(&end)?..] })
        });
        found.ok_or_else(|| {
            format!(
                "{PAGE} has no place for the tables of {file}; add the two lines, in this order:\n{begin}{end}"
            )
        })
    }

    /// The page with other tables in this place.
    fn with(&self, tables: &str) -> String {
        format!("{}\n{tables}{}", self.before, self.behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: tables made again replace those of their own experiment, and nothing else of the page changes, also where one
    /// experiment's name begins with another's.
    #[test]
    fn other_tables_stay() {
        let place = |file: &str, tables: &str| {
            format!(
                "<!-- begin: cargo xtask bench published {file} -->\n\n{tables}\
                 <!-- end: cargo xtask bench published {file} -->\n"
            )
        };
        let page = |far: &str| {
            let batching = place("far-batching", "| 2048 |\n\n");
            format!(
                "# Page\n\n{batching}\n{}\n{}\nBehind.\n",
                place("far", far),
                place("plain", "")
            )
        };
        let old = page("| 64 |\n\n| 512 |\n\n");
        let made = Place::of(&old, "far").expect("it has a place").with("| 1024 |\n\n");
        assert_eq!(made, page("| 1024 |\n\n"));
        let again = Place::of(&made, "far").expect("it has a place").with("| 64 |\n\n| 512 |\n\n");
        assert_eq!(again, old);
    }

    /// Claim: a page without a place says what to add, also where only its end is missing.
    #[test]
    fn no_place_is_an_error() {
        let begun = "<!-- begin: cargo xtask bench published far -->\n| 64 |\n";
        for page in ["", begun] {
            let error = Place::of(page, "far").err().expect("there is no place");
            assert!(error.contains("end: cargo xtask bench published far"), "{error}");
        }
    }

    /// Claim: the page has a place for each experiment.
    #[test]
    fn the_page_has_all_places() {
        let page =
            std::fs::read_to_string(crate::workspace_root().join(PAGE)).expect("the page is there");
        for file in FILES {
            if let Err(error) = Place::of(&page, file) {
                panic!("{error}");
            }
        }
    }
}
