//! `cargo xtask bench durability --cost`: the highest rate at which 99 of 100 are answered within 20 ms, by what a system
//! syncs, found by search.

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

Made by `cargo xtask bench durability --cost`, a part alone by its system's name after it: the highest rate at which 99 of 100 are \
answered within 20 ms, found and confirmed by search, on a disk on which a sync takes 1 ms.
";

const COLUMNS: &str = "\
| setting | confirmed, a second | refuted, a second | trials |
| --- | ---: | ---: | ---: |
";

/// Where all of it stands.
const PAGE: &str = "results/bench-durability-cost.md";

/// Searches with each setting, prints, and writes results/bench-durability-cost.md if not at toy size, at which each system
/// is searched once, as shortly as can be: its figures say nothing. With `only` one system, whose part takes the place of the
/// one that the page has.
pub fn run(root: &Path, toy: bool, only: Option<&str>) -> Result<(), String> {
    let mut systems: Vec<&str> = COSTS.iter().map(|cost| cost.0).collect();
    systems.dedup();
    if let Some(only) = only
        && !systems.contains(&only)
    {
        return Err(format!("expected one of {}, got `{only}`", systems.join(", ")));
    }
    let at = Workbench::new(root, "bench-durability-cost")?;
    for system in systems.into_iter().filter(|system| only.is_none_or(|only| only == *system)) {
        let heading = format!("## {system}\n\n");
        let host = crate::bench::machine();
        let mut made = format!("{heading}{host}\n\n{COLUMNS}");
        // At toy size one setting of each system: that its search works is all that is looked at.
        let settings = COSTS.iter().filter(|cost| cost.0 == system);
        for (_, setting, set) in settings.take(if toy { 1 } else { usize::MAX }) {
            made += &searched(root, &at, system, (setting, set), toy)?;
        }
        println!("{made}");
        // As it goes, because the next may fail.
        if !toy {
            super::keep(&root.join(PAGE), HEAD, &heading, &made)?;
        }
    }
    std::fs::remove_dir_all(&at.folder)
        .map_err(|error| format!("removing {}: {error}", at.folder.display()))
}

/// The search with a setting, as a row of the table.
fn searched(
    root: &Path,
    at: &Workbench,
    system: &str,
    (setting, set): (&str, &str),
    toy: bool,
) -> Result<String, String> {
    let mut more = if toy { vec!["--profile=toy"] } else { Vec::new() };
    if !set.is_empty() {
        more.extend(["--set", set]);
    }
    let Some(document) = measured(root, at, &format!("cost-{system}"), &more)? else {
        return Ok(format!("| {setting} | skipped | | |\n"));
    };
    let search = &document["search"];
    let rate = |name: &str| {
        let rate = search[name].as_f64();
        rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}"))
    };
    let trials = search["trials"].as_array().map_or(0, Vec::len);
    if trials == 0 {
        return Err(format!("{system}, {setting}: the search tried nothing: {search}"));
    }
    Ok(format!("| {setting} | {} | {} | {trials} |\n", rate("confirmed"), rate("refuted")))
}
