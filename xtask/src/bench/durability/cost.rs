//! `cargo xtask bench durability --cost`: the highest rate at which 99 of 100 are answered within 20 ms, by what a system
//! syncs, found by search.

use std::fmt::Write as _;
use std::path::Path;

use super::measured;
use crate::bench::workbench::Workbench;

/// Searches: experiment, setting in words, and how it is set.
const COSTS: [(&str, &str, &str); 12] = [
    ("postgres", "default", ""),
    ("postgres", "synchronous_commit = off", "system.deploy.settings.synchronous_commit=off"),
    ("postgres", "fsync = off", "system.deploy.settings.fsync=off"),
    ("nats", "sync_interval = always", "system.deploy.sync_interval=always"),
    ("nats", "default (two minutes)", ""),
    ("etcd", "default", ""),
    ("etcd", "unsafe-no-fsync", "system.deploy.options=unsafe-no-fsync"),
    (
        "kafka",
        "log.flush.interval.messages = 1",
        "system.deploy.settings.\"log.flush.interval.messages\"=1",
    ),
    ("kafka", "default", ""),
    ("redis", "appendfsync = always", "system.deploy.appendfsync=always"),
    ("redis", "appendfsync = everysec", "system.deploy.appendfsync=everysec"),
    ("redis", "appendfsync = no", "system.deploy.appendfsync=no"),
];

const HEAD: &str = "\
# The cost of durability

Made by `cargo xtask bench durability --cost`: the highest rate at which 99 of 100 are answered within 20 ms, found and confirmed \
by search, on a disk on which a sync takes 1 ms. ";

const COLUMNS: &str = "\
| system | setting | confirmed, a second | refuted, a second | trials |
| --- | --- | ---: | ---: | ---: |
";

/// Searches with each setting, prints, and writes results/bench-durability-cost.md if not at toy size, at which each system
/// is searched once, as shortly as can be: its figures say nothing.
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let at = Workbench::new(root, "bench-durability-cost")?;
    let mut text = format!("{HEAD}{}\n\n{COLUMNS}", crate::bench::machine());
    let mut before = "";
    for (file, setting, set) in COSTS {
        // At toy size one setting of each system: that its search works is all that is looked at.
        if toy && std::mem::replace(&mut before, file) == file {
            continue;
        }
        let mut more = if toy { vec!["--profile=toy"] } else { Vec::new() };
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
        if trials == 0 {
            return Err(format!("{file}, {setting}: the search tried nothing: {search}"));
        }
        let (confirmed, refuted) = (rate("confirmed"), rate("refuted"));
        let line = format!("| {file} | {setting} | {confirmed} | {refuted} | {trials} |");
        eprintln!("{line}");
        let _ = writeln!(text, "{line}");
    }
    at.finish(&text, toy)
}
