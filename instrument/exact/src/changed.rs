//! A run whose facts were changed, read as whoever gets its folder reads it: analysed, and made into every form of the
//! report. The rows are honest, and what is said of them is not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use record::RunFolder;

use crate::{Client, Law, Script, run};

/// A run with rejections, silence and losses, of which everything in a report has something to say.
const EXPERIMENT: &str = "
name = 'changed'
question = 'What becomes of a report whose facts are wrong?'
[system]
kind = 'script'
[load]
rate = '200/s'
duration = '1s'
timeout = '50ms'
[[threshold]]
expr = 'p99 < 1s'
[[threshold]]
expr = 'lost == 0'
";

/// An honest run in a folder of its own.
#[derive(Debug)]
pub struct HonestRun {
    folder: RunFolder,
    facts: PathBuf,
}

impl HonestRun {
    /// Makes it in a new folder under `place`.
    ///
    /// # Errors
    /// The reason that it could not be made, for people.
    pub fn make(place: &Path) -> Result<Self, String> {
        let answers = || Law::Constant(Duration::from_millis(3));
        let script = |_: &model::plan::SettingPlan, _: u32| {
            Script::unbounded(answers()).silent_every(50).loses_every(99)
        };
        let ran = run(EXPERIMENT, Client::default(), &script, place)?;
        let trials = ran.folder.trials().map_err(|error| error.to_string())?;
        let first = trials.first().ok_or("the run left no trial")?;
        let facts = first.path().join("trial.json");
        Ok(Self { folder: ran.folder, facts })
    }

    /// The honest facts.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn facts(&self) -> std::io::Result<Vec<u8>> {
        std::fs::read(&self.facts)
    }

    /// Puts `facts` in the place of the run's own and makes every form of the report. Says whether there was one.
    ///
    /// # Panics
    /// When a reader does: whatever stands there is to be refused or shown.
    pub fn report_with(&self, facts: &[u8]) -> bool {
        // A full disk shows nothing of a reader.
        if std::fs::write(&self.facts, facts).is_err() {
            return false;
        }
        let none = |_: &str| -> &'static [model::check::Check] { &[] };
        let Ok((result, picture)) = analysis::analyse_with_picture(&self.folder, &none, Vec::new())
        else {
            return false;
        };
        let terminal = report::terminal(&result, report::Style::default());
        let is_quiet = |c: char| c == '\n' || !c.is_control();
        assert!(terminal.chars().all(is_quiet), "a control character: {terminal:?}");
        let _ = (report::markdown(&result), report::json(&result));
        let _ = report::html(&[(result, picture)], &report::Assets::built());
        true
    }
}
