//! A trial's metrics, events, ledger and what its nodes stamped, as files of its folder.

use model::WallTime;
use model::facts::{Event, LedgerEntry, MetricSample};
use model::node_events::{NodeStage, Span};

use crate::columns::writing;
use crate::disk::PartialFile;
use crate::error::RecordError;
use crate::line_log::{self, EventLog, MetricLog};
use crate::node_events::{NodeEventsWriter, STAGES, TRACES};
use crate::stage_columns::{self, StageSecond};
use crate::tables::{self, LedgerColumns};
use crate::traces;
use crate::trial::TrialFolder;

const METRICS: &str = "metrics.parquet";
const METRICS_LOG: &str = "metrics.ndjson";
const EVENTS: &str = "events.parquet";
const EVENTS_LOG: &str = "events.ndjson";
const LEDGER: &str = "ledger.parquet";

impl TrialFolder {
    /// Starts metrics.ndjson, which has samples until metrics.parquet has them.
    ///
    /// # Errors
    /// When it cannot be written, or is there already.
    pub fn metric_log(&self) -> Result<MetricLog, RecordError> {
        MetricLog::create(&self.file(METRICS_LOG))
    }

    /// Writes metrics.parquet, and removes metrics.ndjson.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_metrics(&self, samples: &[MetricSample]) -> Result<(), RecordError> {
        let path = self.file(METRICS);
        let mut file = PartialFile::create(&path)?;
        tables::write_metrics(&mut file, samples).map_err(|error| writing(&path, error))?;
        self.finish_file(METRICS, &mut file)?;
        self.remove_log(METRICS_LOG)
    }

    /// Removes a file of lines, whose content is in a finished file.
    fn remove_log(&self, name: &str) -> Result<(), RecordError> {
        let log = self.file(name);
        match std::fs::remove_file(&log) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(RecordError::writing(&log, error))
            }
            _ => Ok(()),
        }
    }

    /// Reads metrics.parquet, or metrics.ndjson where a crash came before it; nothing if none were written.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn metrics(&self) -> Result<Vec<MetricSample>, RecordError> {
        match self.open_verified(METRICS)? {
            Some(source) => tables::read_metrics(&self.file(METRICS), source),
            None => line_log::read(&self.file(METRICS_LOG)),
        }
    }

    /// Starts events.ndjson, which has events until events.parquet has them.
    ///
    /// # Errors
    /// When it cannot be written, or is there already.
    pub fn event_log(&self) -> Result<EventLog, RecordError> {
        EventLog::create(&self.file(EVENTS_LOG))
    }

    /// Writes events.parquet, and removes events.ndjson.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_events(&self, events: &[Event]) -> Result<(), RecordError> {
        let path = self.file(EVENTS);
        let mut file = PartialFile::create(&path)?;
        tables::write_events(&mut file, events).map_err(|error| writing(&path, error))?;
        self.finish_file(EVENTS, &mut file)?;
        self.remove_log(EVENTS_LOG)
    }

    /// Reads events.parquet, or events.ndjson where a crash came before it; nothing if none were written.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn events(&self) -> Result<Vec<Event>, RecordError> {
        match self.open_verified(EVENTS)? {
            Some(source) => tables::read_events(&self.file(EVENTS), source),
            None => line_log::read(&self.file(EVENTS_LOG)),
        }
    }

    /// Starts ledger.parquet. It gets its name when the writer is closed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn ledger_writer(&self) -> Result<LedgerWriter, RecordError> {
        LedgerWriter::create(self.clone())
    }

    /// Passes every entry of ledger.parquet in the ledger's order, with what it holds where that was kept (else
    /// nothing), and gives their number; `None` if there is no ledger.
    ///
    /// # Errors
    /// When it is damaged. Entries may have been passed before damage was found.
    pub fn for_each_ledger_entry(
        &self,
        f: impl FnMut(&LedgerEntry, &[u8]),
    ) -> Result<Option<u64>, RecordError> {
        match self.open_verified(LEDGER)? {
            Some(source) => tables::read_ledger(&self.file(LEDGER), source, f).map(Some),
            None => Ok(None),
        }
    }

    /// Starts stages.parquet and traces.parquet, which get their names when the writer is closed. `started` is the
    /// calendar's reading of the trial's start.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn node_events_writer(
        &self,
        started: WallTime,
        stages: &[NodeStage],
    ) -> Result<NodeEventsWriter, RecordError> {
        NodeEventsWriter::create(self.clone(), started, stages)
    }

    /// Passes every row of stages.parquet, in no order, and gives their number; `None` if nodes stamped nothing.
    ///
    /// # Errors
    /// When it is damaged. Rows may have been passed before damage was found.
    pub fn for_each_stage_second(
        &self,
        f: impl FnMut(&StageSecond<'_>),
    ) -> Result<Option<u64>, RecordError> {
        match self.open_verified(STAGES)? {
            Some(source) => stage_columns::read(&self.file(STAGES), source, f).map(Some),
            None => Ok(None),
        }
    }

    /// Reads traces.parquet, by transaction and then by time; nothing if there is none. `stages` are those declared.
    ///
    /// # Errors
    /// When it is damaged, or names a stage that is not among them.
    pub fn spans(&self, stages: &[NodeStage]) -> Result<Vec<Span>, RecordError> {
        match self.open_verified(TRACES)? {
            Some(source) => traces::read(&self.file(TRACES), source, stages),
            None => Ok(Vec::new()),
        }
    }
}

/// Writes ledger.parquet, in bounded memory however long the ledger is. Dropped before
/// [`LedgerWriter::close`] it leaves nothing behind.
pub struct LedgerWriter {
    folder: TrialFolder,
    columns: LedgerColumns<PartialFile>,
}

impl LedgerWriter {
    fn create(folder: TrialFolder) -> Result<Self, RecordError> {
        let path = folder.file(LEDGER);
        let columns = LedgerColumns::start(PartialFile::create(&path)?)
            .map_err(|error| writing(&path, error))?;
        Ok(Self { folder, columns })
    }

    /// Adds the next entry, with what it holds if that is to be kept.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn push(&mut self, entry: LedgerEntry, content: Option<&[u8]>) -> Result<(), RecordError> {
        let pushed = self.columns.push(entry, content);
        pushed.map_err(|error| writing(&self.folder.file(LEDGER), error))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When the disk is full or fails.
    pub fn close(self) -> Result<(), RecordError> {
        let Self { folder, mut columns } = self;
        let path = folder.file(LEDGER);
        let file = columns.finish().map_err(|error| writing(&path, error))?;
        folder.finish_file(LEDGER, file)
    }
}
