//! `assay list`: the runs on disk.

use std::path::{Path, PathBuf};

use model::quantity::show_ns;
use model::result::{Exit, RunResult};
use record::{RecordError, RunFolder};
use report::ListEntry;

use crate::cli::{ColorChoice, ListArguments};
use crate::terminal;

/// Prints the runs, newest first.
pub fn list(arguments: &ListArguments, colour: ColorChoice) -> Exit {
    let printed = folders(&arguments.runs).and_then(|mut paths| {
        paths.reverse();
        let entries: Vec<ListEntry> = paths.iter().map(|path| entry(path)).collect();
        if arguments.json {
            terminal::print(&json(&entries))
        } else {
            terminal::print(&report::list_table(&entries, terminal::stdout_style(colour, false)))
        }
    });
    match printed {
        Ok(()) => Exit::Ok,
        Err(message) => {
            eprintln!("assay list: {message}");
            Exit::CouldNotRun
        }
    }
}

/// Run folders under `runs`, oldest first (their names begin with the time).
///
/// # Errors
/// When the folder is there and cannot be read.
pub fn folders(runs: &Path) -> Result<Vec<PathBuf>, String> {
    if !runs.exists() {
        return Ok(Vec::new());
    }
    let entries =
        std::fs::read_dir(runs).map_err(|error| format!("reading {}: {error}", runs.display()))?;
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("plan.toml").is_file())
        .collect();
    found.sort();
    Ok(found)
}

fn entry(path: &Path) -> ListEntry {
    let folder = path.display().to_string();
    let run = match RunFolder::open(path) {
        Ok(run) => run,
        Err(error) => {
            return ListEntry { folder, state: error.to_string(), ..ListEntry::default() };
        }
    };
    match run.result() {
        Ok(result) => of_result(folder, &result),
        Err(error) => {
            let what = match error {
                RecordError::OtherVersion { .. } => "a result of another version",
                _ => "no result",
            };
            let state = format!("{what}; assay report makes one");
            ListEntry { folder, state, ..ListEntry::default() }
        }
    }
}

fn of_result(folder: String, result: &RunResult) -> ListEntry {
    let mut headline = Vec::new();
    if let Some(trial) = result.settings.first().and_then(|setting| setting.trials.first()) {
        headline.push(("goodput".to_owned(), format!("{:.0}/s", trial.rates.goodput_per_s)));
        let response = trial.latency.last().map(|latency| &latency.response);
        for name in ["p50", "p99"] {
            let quantile = response.and_then(|r| r.quantiles.iter().find(|q| q.name == name));
            if let Some(value) = quantile.and_then(|q| q.value_ns) {
                headline.push((name.to_owned(), show_ns(value)));
            }
        }
    }
    ListEntry {
        folder,
        started: result.started.clone(),
        name: result.name.clone(),
        verdict: Some(result.verdict),
        state: String::new(),
        settings: result.settings.len(),
        headline,
        marks: Vec::new(),
    }
}

fn json(entries: &[ListEntry]) -> String {
    let list: Vec<serde_json::Value> = entries
        .iter()
        .map(|entry| {
            serde_json::json!({
                "folder": entry.folder,
                "started": entry.started,
                "name": entry.name,
                "verdict": entry.verdict.map(model::result::Verdict::word),
                "state": entry.state,
                "settings": entry.settings,
            })
        })
        .collect();
    let document = serde_json::json!({ "schema": "assay.list/1", "runs": list });
    format!("{document:#}\n")
}
