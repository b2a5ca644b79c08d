//! `cargo xtask bench durability`: what systems that people run lose of what they have acknowledged, by setting and by
//! fault, in one table of the experiments in experiments/durability. A cell is several trials; what is lost, stored twice
//! or out of order is counted by the ids of transactions, which the run folders name.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::workbench::{Workbench, to_f64};

/// The experiments, and what each is of.
const FILES: [(&str, &str); 5] = [
    ("postgres", "PostgreSQL"),
    ("nats", "NATS JetStream, three servers"),
    ("etcd", "etcd, three members"),
    ("redis", "Redis"),
    ("redis-promoted", "Redis, its replica promoted"),
];

/// Experiments whose tables are of something else: what isolation allows.
const ISOLATION: &str = "postgres-isolation";

/// Exit codes of a run that came to its end: thresholds and audits may have said no, which the table says again.
const ENDED: [i32; 4] = [0, 97, 98, 99];

const HEAD: &str = "\
# What is lost

Made by `cargo xtask bench durability`; the questions stand in [experiments/durability](../experiments/durability/README.md). ";

const COLUMNS: &str = "\
| system | setting | fault | trials | in flight at the fault | acknowledged | lost | share | trials with loss | stored twice | out of order | no ledger |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// What is searched for the highest rate: experiment, setting in words, and how it is set.
const COSTS: [(&str, &str, &str); 10] = [
    ("postgres", "default", ""),
    ("postgres", "synchronous_commit = off", "system.deploy.settings.synchronous_commit=off"),
    ("postgres", "fsync = off", "system.deploy.settings.fsync=off"),
    ("nats", "sync_interval = always", "system.deploy.sync_interval=always"),
    ("nats", "default (two minutes)", ""),
    ("etcd", "default", ""),
    ("etcd", "unsafe-no-fsync", "system.deploy.options=unsafe-no-fsync"),
    ("redis", "appendfsync = always", "system.deploy.appendfsync=always"),
    ("redis", "appendfsync = everysec", "system.deploy.appendfsync=everysec"),
    ("redis", "appendfsync = no", "system.deploy.appendfsync=no"),
];

const COST_HEAD: &str = "\
# What durability costs

Made by `cargo xtask bench durability --cost`: the highest rate at which 99 of 100 are answered within 20 ms, found and confirmed \
by search, on a disk on which a sync takes 1 ms. ";

/// Searches for the highest rate with each setting, prints, and writes results/bench-durability-cost.md.
pub fn cost(root: &Path) -> Result<(), String> {
    let at = Workbench::new(root, "bench-durability-cost")?;
    let mut text = format!(
        "{COST_HEAD}{}\n\n| system | setting | confirmed, a second | refuted, a second | trials |\n| --- | --- | ---: | ---: | ---: |\n",
        super::machine()
    );
    for (file, setting, set) in COSTS {
        let mut more = Vec::new();
        if !set.is_empty() {
            more.extend(["--set", set]);
        }
        let Some(document) = measured(root, &at, &format!("cost-{file}"), &more)? else {
            let _ = writeln!(text, "| {file} | {setting} | skipped | | |");
            continue;
        };
        let search = &document["search"];
        let rate = |name: &str| {
            let rate = search[name].as_f64();
            rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}"))
        };
        let trials = search["trials"].as_array().map_or(0, Vec::len);
        let (confirmed, refuted) = (rate("confirmed_per_s"), rate("refuted_per_s"));
        let line = format!("| {file} | {setting} | {confirmed} | {refuted} | {trials} |");
        eprintln!("{line}");
        let _ = writeln!(text, "{line}");
    }
    at.finish(&text, false)
}

/// Measures, prints, and writes results/bench-durability.md if not at toy size; `only`: one experiment, printed alone.
pub fn run(root: &Path, toy: bool, only: Option<&str>) -> Result<(), String> {
    let at = Workbench::new(root, "bench-durability")?;
    let mut text = format!("{HEAD}{}\n\n{COLUMNS}", super::machine());
    let mut skipped = Vec::new();
    for (file, system) in FILES.iter().filter(|(file, _)| only.is_none_or(|only| only == *file)) {
        match measured(root, &at, file, of(toy))? {
            Some(document) => text.push_str(&rows(&document, system)?),
            None => skipped.push(*system),
        }
    }
    if only.is_none_or(|only| only == ISOLATION) {
        match measured(root, &at, ISOLATION, of(toy))? {
            Some(document) => text.push_str(&isolation(&document)),
            None => skipped.push("isolation levels of PostgreSQL"),
        }
    }
    if !skipped.is_empty() {
        let _ = writeln!(text, "\nSkipped, because a program is missing: {}.", skipped.join("; "));
    }
    at.finish(&text, toy || only.is_some())
}

/// How an experiment is run at its size.
const fn of(toy: bool) -> &'static [&'static str] {
    if toy { &["--profile=toy"] } else { &[] }
}

/// Runs an experiment; `None`, said by name, where what it needs is not on this machine.
fn measured(
    root: &Path,
    at: &Workbench,
    file: &str,
    more: &[&str],
) -> Result<Option<Value>, String> {
    let path = root.join(format!("experiments/durability/{file}.toml"));
    let (path, runs) = (path.display().to_string(), at.runs().display().to_string());
    let mut words =
        vec!["run", &path, "--json", "--progress=none", "--no-calibration", "--runs", &runs];
    words.extend(more);
    eprintln!("{file} …");
    let output = Command::new(&at.assay)
        .args(&words)
        .current_dir(&at.folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("starting {}: {error}", at.assay.display()))?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    if complaint.contains("is not installed") || complaint.contains("disks take the right to mount")
    {
        println!("SKIPPED {file}: {}", complaint.lines().last().unwrap_or_default());
        return Ok(None);
    }
    if !output.status.code().is_some_and(|code| ENDED.contains(&code)) {
        return Err(format!("{file} ended with {}: {complaint}", output.status));
    }
    let document = serde_json::from_slice(&output.stdout);
    document.map(Some).map_err(|error| format!("{file} printed no JSON ({error}): {complaint}"))
}

/// What all trials of a setting came to.
#[derive(Default)]
struct Cell {
    trials: u64,
    in_flight_min: Option<u64>,
    acknowledged: u64,
    lost: u64,
    trials_with_loss: u64,
    duplicate: u64,
    reordered: u64,
    unread: u64,
}

impl Cell {
    fn of(setting: &Value) -> Self {
        let mut cell = Self::default();
        for trial in setting["trials"].as_array().into_iter().flatten() {
            cell.trials += 1;
            let faults = trial["faults"].as_array().into_iter().flatten();
            let in_flight = faults.filter_map(|fault| fault["in_flight"].as_u64()).min();
            cell.in_flight_min = match (cell.in_flight_min, in_flight) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            let fates = &trial["fates"];
            if fates.is_null() {
                cell.unread += 1;
                continue;
            }
            let fate = |name: &str| fates[name].as_u64().unwrap_or_default();
            cell.acknowledged += fate("once") + fate("lost");
            cell.lost += fate("lost");
            cell.trials_with_loss += u64::from(fate("lost") > 0);
            cell.duplicate += fate("duplicate");
            cell.reordered += fate("reordered");
        }
        cell
    }

    fn share(&self) -> String {
        match self.acknowledged {
            0 => "–".to_owned(),
            all => format!("{:.1} %", to_f64(self.lost) / to_f64(all) * 100.0),
        }
    }
}

/// A row for each setting.
fn rows(document: &Value, system: &str) -> Result<String, String> {
    let mut text = String::new();
    let settings = document["settings"].as_array().ok_or("the document has no settings")?;
    for setting in settings {
        let key = setting["key"].as_str().unwrap_or_default();
        let (fault, others): (Vec<&str>, Vec<&str>) =
            key.split(',').partition(|part| part.starts_with("fault="));
        let value = |part: &&str| part.split_once('=').map_or(*part, |(_, value)| value).to_owned();
        let fault: Vec<String> = fault.iter().map(value).collect();
        let others: Vec<String> = others.iter().map(value).collect();
        let cell = Cell::of(setting);
        let in_flight =
            cell.in_flight_min.map_or_else(|| "–".to_owned(), |least| format!("≥ {least}"));
        let _ = writeln!(
            text,
            "| {system} | {} | {} | {} | {in_flight} | {} | {} | {} | {} | {} | {} | {} |",
            if others.is_empty() { "default".to_owned() } else { others.join(", ") },
            fault.join(", "),
            cell.trials,
            cell.acknowledged,
            cell.lost,
            cell.share(),
            cell.trials_with_loss,
            cell.duplicate,
            cell.reordered,
            cell.unread,
        );
    }
    Ok(text)
}

/// What the check of isolation says of each level.
fn isolation(document: &Value) -> String {
    let mut text = "\n## Isolation\n\n| setting | transactions that committed | the check `list-append` |\n| --- | ---: | --- |\n".to_owned();
    for setting in document["settings"].as_array().into_iter().flatten() {
        for trial in setting["trials"].as_array().into_iter().flatten() {
            let mut checks = trial["checks"].as_array().into_iter().flatten();
            let check = checks.find(|check| check["name"] == "list-append");
            let said = check.map_or_else(String::new, |check| {
                format!("{} {}", check["count"], check["words"].as_str().unwrap_or_default())
            });
            let outcome = check.map_or("–", |check| check["outcome"].as_str().unwrap_or("–"));
            let committed = trial["counts"]["committed"].as_u64();
            let committed = committed.map_or_else(|| "–".to_owned(), |count| count.to_string());
            let key = setting["key"].as_str().unwrap_or_default();
            let said = said.replace('|', "\\|").replace('\n', " ");
            let _ = writeln!(text, "| {key} | {committed} | {outcome}: {said} |");
        }
    }
    text
}
