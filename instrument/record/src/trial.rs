//! The folder of one trial: its rows, facts, metrics, events, faults and ledger.

use std::fs::File;
use std::path::{Path, PathBuf};

use model::Row;
use model::facts::{TRIAL_SCHEMA, TrialFacts};
use model::fault::FaultEvent;

use crate::disk;
use crate::documents::{Schema, read_json, write_json};
use crate::error::RecordError;
use crate::line_log::{self, FaultLog};
use crate::row_log::{RowLogReader, RowLogWriter};

pub(crate) const ROW_LOG: &str = "rows.log";
pub(crate) const FACTS: &str = "trial.json";
pub(crate) const FAULTS: &str = "faults.ndjson";

/// One execution of a setting, on disk. One thread at a time may write to it; reading is free to all.
#[derive(Clone, Debug)]
pub struct TrialFolder {
    path: PathBuf,
    relative: String,
    setting: String,
    trial: u32,
}

/// The result of a pass over a trial's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsRead {
    /// Rows.
    pub rows: u64,
    /// Whether they came from the row log: the trial was never sealed.
    pub from_log: bool,
    /// Bytes of the row log after its last whole frame: what a crash cut off.
    pub dropped_bytes: u64,
}

impl TrialFolder {
    pub(crate) const fn at(path: PathBuf, relative: String, setting: String, trial: u32) -> Self {
        Self { path, relative, setting, trial }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is in its run folder, with `/` between the parts on every system.
    #[must_use]
    pub fn relative_path(&self) -> &str {
        &self.relative
    }

    /// The key of its setting.
    #[must_use]
    pub fn setting(&self) -> &str {
        &self.setting
    }

    /// Its number in the setting, from 0.
    #[must_use]
    pub const fn trial(&self) -> u32 {
        self.trial
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Starts the trial's row log.
    ///
    /// # Errors
    /// When it cannot be written, or is there already: a trial is recorded once.
    pub fn row_log(&self) -> Result<RowLogWriter, RecordError> {
        RowLogWriter::create(&self.file(ROW_LOG))
    }

    /// Where the trial's row log is.
    #[must_use]
    pub fn row_log_path(&self) -> PathBuf {
        self.file(ROW_LOG)
    }

    /// Writes trial.json, replacing what was there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_facts(&self, facts: &TrialFacts) -> Result<(), RecordError> {
        write_json(&self.file(FACTS), facts)
    }

    /// Reads trial.json.
    ///
    /// # Errors
    /// When it is missing, is not one, or was written by another version of Assay.
    pub fn facts(&self) -> Result<TrialFacts, RecordError> {
        let path = self.file(FACTS);
        let Schema { schema } = read_json(&path)?;
        if schema != TRIAL_SCHEMA {
            return Err(RecordError::OtherVersion { path, found: schema, known: TRIAL_SCHEMA });
        }
        read_json(&path)
    }

    /// Starts faults.ndjson.
    ///
    /// # Errors
    /// When it cannot be written, or is there already.
    pub fn fault_log(&self) -> Result<FaultLog, RecordError> {
        FaultLog::create(&self.file(FAULTS))
    }

    /// Effects of faults, in the order of time; nothing if there was no fault. A record that a crash cut off is left out.
    ///
    /// # Errors
    /// When it cannot be read, is damaged or is of another version.
    pub fn faults(&self) -> Result<Vec<FaultEvent>, RecordError> {
        line_log::read(&self.file(FAULTS))
    }

    pub(crate) fn log_batches(&self, mut f: impl FnMut(&[Row])) -> Result<RowsRead, RecordError> {
        let path = self.file(ROW_LOG);
        let mut log = self.open_log()?;
        while let Some(rows) =
            log.next_frame().map_err(|error| RecordError::reading(&path, error))?
        {
            f(rows);
        }
        Ok(RowsRead { rows: log.row_count(), from_log: true, dropped_bytes: log.dropped_bytes() })
    }

    pub(crate) fn open_log(&self) -> Result<RowLogReader<File>, RecordError> {
        let path = self.file(ROW_LOG);
        let file = disk::open(&path)?;
        RowLogReader::open(file).map_err(|error| error.about(&path))
    }
}
