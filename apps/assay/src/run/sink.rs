//! A trial's records on their way into its folder.

use load::RowSink;
use model::facts::{DeclaredFacts, Event};
use model::{FinalStages, Observations, Row};
use record::{ObservationLogWriter, RowLogWriter, TrialFolder};

use super::ledger::Acknowledged;
use super::watch::Watched;

/// The most events that a trial keeps; the engine's counters go on.
const EVENTS_MAX: usize = 100_000;

/// Rows go to the row log, observations to theirs, events to memory until the load is over.
pub struct FolderSink<'a> {
    pub(super) folder: &'a TrialFolder,
    pub(super) log: RowLogWriter,
    /// Begun with the first observation.
    pub(super) observations: Option<ObservationLogWriter>,
    pub(super) events: Vec<Event>,
    /// Acknowledged transactions, where the ledger is read.
    pub(super) acknowledged: Acknowledged,
    /// The trial's declarations, where the ledger is read.
    pub(super) declared: Option<&'a DeclaredFacts>,
    /// Counts rows on their way; absent: they were counted when they came.
    pub(super) watched: Option<Watched>,
    /// The stages at which streams end.
    pub(super) ends: FinalStages,
}

impl RowSink for FolderSink<'_> {
    fn rows(&mut self, rows: &[Row]) -> Result<(), String> {
        if let Some(declared) = self.declared {
            self.acknowledged.rows(rows, declared);
        }
        if let Some(watched) = &self.watched {
            watched.rows(rows, self.ends);
        }
        self.log.append(rows).and_then(|()| self.log.flush()).map_err(|error| error.to_string())
    }

    fn observations(&mut self, observations: &Observations) -> Result<(), String> {
        let log = match &mut self.observations {
            Some(log) => log,
            none => none.insert(self.folder.observation_log().map_err(|error| error.to_string())?),
        };
        log.append(observations).and_then(|()| log.flush()).map_err(|error| error.to_string())
    }

    fn event(&mut self, event: Event) {
        if self.events.len() < EVENTS_MAX {
            self.events.push(event);
        }
    }
}
