//! Runs whose every number is known before they are measured: a script's server, virtual time, and the pipeline from an
//! experiment's text to its page.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

mod changed;
mod documents;
mod drift;
mod innocent;
#[path = "../../../report/tests/report/json_schema.rs"]
mod json_schema;
mod lies;
mod limiter;
mod million;
mod outage;
mod pool;
mod read_late;
mod search;
mod stall;
mod steps;
mod streams;
mod timeout;

use std::path::PathBuf;

use exact::{Client, Ran, Script};
use model::plan::SettingPlan;
use model::result::TrialResult;
use model::{Outcome, Row};

const MS: i64 = 1_000_000;

/// A run in a folder of its own, which goes with it.
struct Kept {
    ran: Ran,
    _folder: tempfile::TempDir,
}

impl Kept {
    /// The result of the only trial of a setting.
    fn trial(&self, setting: usize) -> &TrialResult {
        &self.ran.result.settings[setting].trials[0]
    }

    fn rows(&self) -> Vec<Row> {
        self.ran.rows(0).unwrap()
    }

    /// How an audit came out, and its sentence.
    fn audit(&self, setting: usize, name: &str) -> (model::result::AuditOutcome, &str) {
        let audit = self.trial(setting).audits.iter().find(|audit| audit.name == name).unwrap();
        (audit.outcome, &audit.detail)
    }
}

/// Runs an experiment against a script, spoken to as `client` says.
fn run_as(client: Client, experiment: &str, script: impl Fn(&SettingPlan, u32) -> Script) -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let ran = exact::run(experiment, client, &script, folder.path()).unwrap();
    Kept { ran, _folder: folder }
}

/// The same for one setting and one connection that takes any number at once, so that nothing waits for it.
fn run(experiment: &str, script: impl Fn() -> Script) -> Kept {
    let client =
        Client { in_flight_max: 1 << 20, closes_after_timeout: false, hears_accepted: false };
    run_as(client, experiment, |_, _| script())
}

/// An experiment of one constant rate; `load` and `more` are further lines.
fn constant(rate: &str, duration: &str, load: &str, more: &str) -> String {
    format!(
        "name = 'case'\nquestion = 'Is every number the one on paper?'\n\
         [system]\nkind = 'script'\n\
         [load]\nrate = '{rate}'\nduration = '{duration}'\nwarmup = '0s'\nconnections = 1\n{load}\n{more}"
    )
}

fn count(rows: &[Row], outcome: Outcome) -> usize {
    rows.iter().filter(|row| row.outcome == outcome).count()
}

/// Whether a value is a quantile to the three digits that are kept of it.
fn is_near(value_ns: Option<i64>, expected_ns: i64) -> bool {
    value_ns.is_some_and(|value| (value - expected_ns).abs() * 1_000 <= expected_ns)
}

/// All files of a run folder with their bytes, by path within it.
fn files(ran: &Ran) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![ran.folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(ran.folder.path()).unwrap().to_owned();
            files.push((inside, std::fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}
