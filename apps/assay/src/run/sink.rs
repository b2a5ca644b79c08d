//! A trial's records on their way into its folder.

use std::sync::{Arc, Mutex, PoisonError};

use load::{Live, RowSink};
use model::facts::{DeclaredFacts, Event, MetricSample};
use model::{FinalStages, Observations, Row};
use record::{EventLog, ObservationLogWriter, RowLogWriter, TrialFolder};
use testbed::SampleSink;

use super::ledger::Acknowledged;
use super::watch::Watched;

/// The most events that a trial keeps; the engine's counters go on.
const EVENTS_MAX: usize = 100_000;

/// The events of a trial, in its folder as they happen, and in memory until the load is over.
pub struct Events {
    folder: TrialFolder,
    /// Begun with the first of them.
    log: Option<EventLog>,
    all: Vec<Event>,
}

impl Events {
    pub fn of(folder: &TrialFolder) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { folder: folder.clone(), log: None, all: Vec::new() }))
    }

    pub fn add(&mut self, event: Event) {
        if self.all.len() >= EVENTS_MAX {
            return;
        }
        // Whatever becomes of the log: events.parquet has all of them.
        self.log = self.log.take().or_else(|| self.folder.event_log().ok());
        self.log.iter_mut().for_each(|log| log.append(&event));
        self.all.push(event);
    }

    /// All of them, by time.
    pub fn finish(&mut self) -> Vec<Event> {
        self.log = None;
        let mut all = std::mem::take(&mut self.all);
        all.sort_by_key(|event| event.at);
        all
    }
}

/// The most bytes of samples that are in the folder before the load is over; metrics.parquet has all of them.
const SAMPLE_BYTES_MAX: u64 = 64 << 20;

/// The samples of a trial, in its folder as they are made: from the start of the load, whose line they are on.
pub fn samples(folder: &TrialFolder, live: &Arc<Live>) -> impl Fn() -> SampleSink + use<> {
    let log = Arc::new(Mutex::new((folder.metric_log().ok(), Vec::new())));
    let live = Arc::clone(live);
    move || {
        let (log, live) = (Arc::clone(&log), Arc::clone(&live));
        Box::new(move |at, source, name, value| {
            let mut held = log.lock().unwrap_or_else(PoisonError::into_inner);
            let (Some(log), waiting) = &mut *held else { return };
            if !value.is_finite() || log.written_bytes() > SAMPLE_BYTES_MAX {
                return;
            }
            waiting.push((at, source.to_owned(), name.to_owned(), value));
            let Some(started) = live.started() else { return };
            for (at, source, name, value) in waiting.drain(..) {
                log.append(&MetricSample { at: at.ns_since(started), source, name, value });
            }
        })
    }
}

/// Rows go to the row log, observations and events to theirs.
pub struct FolderSink<'a> {
    pub(super) folder: &'a TrialFolder,
    pub(super) log: RowLogWriter,
    /// Begun with the first observation.
    pub(super) observations: Option<ObservationLogWriter>,
    pub(super) events: Arc<Mutex<Events>>,
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
        self.events.lock().unwrap_or_else(PoisonError::into_inner).add(event);
    }
}
