//! `cargo xtask bench published`: the twelve tables that sdh21/dstore publishes of its replicated key-value database, made
//! anew with the experiments of experiments/kv: three replicas with TLS and durable logs on this machine. Beside the published
//! numbers (the slowest and the fastest ten seconds of a run) stand what they do not say: percentiles with intervals,
//! and whether the trial behind a cell holds.
//!
//! The tables of each experiment are kept as they are made, so that one of them can be made again alone.

mod tables;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use tables::{Cell, FILES, TABLES, Table};

/// Seconds of a window: what the published minimum and maximum are of.
const WINDOW_SECONDS: u32 = 10;

/// The page that has the tables, between two lines of its own.
const PAGE: &str = "experiments/kv/README.md";
const BEGIN: &str = "<!-- begin: cargo xtask bench published -->\n";
const END: &str = "<!-- end: cargo xtask bench published -->\n";

/// How much is measured.
#[derive(Clone, Copy)]
pub enum Size {
    /// Some windows of a fraction of a second each, printed and not kept.
    Toy,
    /// So many seconds a cell.
    Seconds(u32),
}

/// Runs all experiments, or one of them by its name, prints the tables, and writes them into the page if not at toy size.
pub fn run(root: &Path, size: Size, only: Option<&str>) -> Result<(), String> {
    let assay = root.join("target/release/assay");
    if !assay.is_file() {
        return Err("target/release/assay is missing; run: cargo build --release".to_owned());
    }
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
    let folder = root.join("target/bench-published");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("making {}: {error}", folder.display()))?;
    let mut text = String::new();
    let mut said = Vec::new();
    for file in FILES.iter().filter(|file| only.is_none_or(|only| only == **file)) {
        let document = measured(root, &assay, &folder, file, size)?;
        let made = made(&document, file, size);
        let at = folder.join(format!("{file}.md"));
        if !matches!(size, Size::Toy) {
            std::fs::write(&at, &made)
                .map_err(|error| format!("writing {}: {error}", at.display()))?;
        }
        text.push_str(&made);
        said.extend(holds(&document, file).err());
    }
    print!("{text}");
    if !matches!(size, Size::Toy) {
        into_page(&root.join(PAGE), &folder)?;
        let _ = std::fs::remove_dir_all(folder.join("runs"));
    } else {
        std::fs::remove_dir_all(&folder)
            .map_err(|error| format!("removing {}: {error}", folder.display()))?;
    }
    if said.is_empty() { Ok(()) } else { Err(said.join("\n")) }
}

/// The result document of an experiment's run.
fn measured(
    root: &Path,
    assay: &Path,
    folder: &Path,
    file: &str,
    size: Size,
) -> Result<Value, String> {
    let runs = folder.join("runs");
    let _ = std::fs::remove_dir_all(&runs);
    let mut command = Command::new(assay);
    command.arg("run").arg(root.join(format!("experiments/kv/{file}.toml")));
    command.args(["--json", "--progress", "none", "--no-calibration", "--runs"]).arg(&runs);
    match size {
        Size::Toy => {
            command.args(["--profile", "toy"]);
        }
        Size::Seconds(seconds) => {
            command.args(["--set", &format!("load.duration={seconds}s")]);
        }
    }
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
fn made(document: &Value, file: &str, size: Size) -> String {
    let length = match size {
        Size::Toy => "at toy size".to_owned(),
        Size::Seconds(seconds) => format!("{seconds} s a cell, windows of {WINDOW_SECONDS} s"),
    };
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
            let _ = writeln!(text, "{}", row(document, table, cell));
        }
        text.push('\n');
    }
    text
}

fn row(document: &Value, table: &Table, cell: &Cell) -> String {
    let settings = document["settings"].as_array().map_or(&[][..], Vec::as_slice);
    let own = (table.rows, cell.label);
    let is_it = |setting: &&Value| {
        let mut wanted = table.of.iter().chain([&own]);
        wanted.all(|(axis, label)| setting["values"][axis] == *label)
    };
    let published = format!("{}–{}", cell.min, cell.max);
    let Some(setting) = settings.iter().find(is_it) else {
        return format!("| {} | {published} | not measured | | | | |", cell.label);
    };
    let trial = &setting["trials"][0];
    let rate = |value: &Value| value.as_f64().map_or("–".to_owned(), |rate| format!("{rate:.0}"));
    let windows = &trial["throughput_windows"];
    let stages = trial["rates"]["reached_per_s"].as_array();
    let committed = stages.and_then(|list| list.iter().find(|it| it[0] == "committed"));
    let quantile = |name: &str| -> String {
        let list = trial["latency"][0]["response"]["quantiles"].as_array();
        let Some(found) = list.and_then(|list| list.iter().find(|q| q["name"] == name)) else {
            return "–".to_owned();
        };
        let ms =
            |end: &str| found[end].as_f64().map_or("?".to_owned(), |ns| format!("{:.2}", ns / 1e6));
        format!("{} ({}–{})", ms("value_ns"), ms("low_ns"), ms("high_ns"))
    };
    format!(
        "| {} | {published} | {}–{} | {} | {} | {} | {} |",
        cell.label,
        rate(&windows[0]),
        rate(&windows[1]),
        committed.map_or("–".to_owned(), |it| rate(&it[1])),
        quantile("p50"),
        quantile("p99"),
        setting["verdict"].as_str().unwrap_or("–")
    )
}

/// Puts all tables that have been made into the page, in their order.
fn into_page(page: &Path, folder: &Path) -> Result<(), String> {
    let tables: String = FILES
        .iter()
        .filter_map(|file| std::fs::read_to_string(folder.join(format!("{file}.md"))).ok())
        .collect();
    let text = std::fs::read_to_string(page)
        .map_err(|error| format!("reading {}: {error}", page.display()))?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, behind) = rest.split_once(END)?;
        Some((before, behind))
    });
    let (before, behind) =
        parts.ok_or_else(|| format!("{} has no place for the tables", page.display()))?;
    std::fs::write(page, format!("{before}{BEGIN}\n{tables}{END}{behind}"))
        .map_err(|error| format!("writing {}: {error}", page.display()))
}
