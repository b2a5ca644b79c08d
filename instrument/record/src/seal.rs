//! Sealing: a trial's row log becomes transactions.parquet and latency.hlog, and seal.json says with which
//! length and checksum each Parquet file was written, so that a reader knows a whole file from a damaged one
//! before it parses a byte of it.
//!
//! The order makes a crash at any point harmless: new files get their names when they are complete and on the
//! disk, then seal.json names them, then the log goes. Until seal.json says so, the log is what counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use hdrhistogram::serialization::V2DeflateSerializer;
use model::facts::TrialFacts;
use model::{Row, STAGES_MAX};
use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use crate::columns::{Source, writing};
use crate::counted::{RowsMark, Share};
use crate::disk::{self, PartialFile, Sealed};
use crate::documents::{read_json, write_json};
use crate::error::RecordError;
use crate::interval_log::{self, IntervalLog, LastFrames, OpenSeconds};
use crate::transactions::{TransactionsReader, TransactionsWriter};
use crate::trial::{ROW_LOG, RowsRead, TrialFolder};

const SEAL: &str = "seal.json";
const SCHEMA: &str = "assay.seal/1";
const TRANSACTIONS: &str = "transactions.parquet";
const INTERVAL_LOG: &str = "latency.hlog";

/// seal.json.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Seal {
    /// `assay.seal/1`.
    schema: String,
    /// Length and checksum by file name.
    files: BTreeMap<String, Sealed>,
    /// The rows, once they are sealed.
    rows: Option<SealedRows>,
}

/// The result of sealing the rows.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct SealedRows {
    rows: u64,
    dropped_bytes: u64,
}

impl TrialFolder {
    /// Turns the row log into transactions.parquet and latency.hlog and removes it, and the observation log likewise. Needs trial.json for the
    /// names of stages, kinds and errors, so write the final facts first. Doing it again changes nothing.
    ///
    /// # Errors
    /// When a file cannot be read or written. The log is then still there, and readers use it.
    pub fn seal(&self) -> Result<(), RecordError> {
        self.seal_observations()?;
        if self.is_sealed() {
            let outcome = self.verify_rows();
            if outcome.is_ok() || !self.has_log() {
                outcome?;
                return disk::remove(&self.file(ROW_LOG));
            }
        }
        let facts = self.facts()?;
        let mut last_frames = LastFrames::default();
        let final_stages = facts.declared.final_stages();
        let window = interval_log::window(&facts);
        let read = self.log_batches(|rows| last_frames.frame(rows, final_stages, &window))?;
        let stages = stage_names(&facts, last_frames.stages_used());
        let seconds = OpenSeconds::new(last_frames, final_stages, window);
        let [transactions, intervals] = self.write_sealed(&facts, &stages, seconds, read.rows)?;
        let mut seal = self.read_seal()?;
        seal.files.insert(TRANSACTIONS.to_owned(), transactions);
        seal.files.insert(INTERVAL_LOG.to_owned(), intervals);
        seal.rows = Some(SealedRows { rows: read.rows, dropped_bytes: read.dropped_bytes });
        self.write_seal(seal)?;
        disk::remove(&self.file(ROW_LOG))
    }

    /// Whether the rows are in transactions.parquet.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.read_seal().is_ok_and(|seal| seal.rows.is_some())
    }

    /// Passes every row once, in batches of at most [`crate::BATCH_ROWS_MAX`].
    ///
    /// The order is that of the file. In a row log: as the engine handed the rows over, which is the order of
    /// their ends for each worker, workers taking turns by batch. In transactions.parquet: groups of
    /// 131,072 rows of that order, each group sorted by due time and then by `tx`. A consumer may rely on the
    /// same folder giving the same order every time, and on no more.
    ///
    /// # Errors
    /// When the rows are missing or damaged. Rows may have been passed before damage was found.
    pub fn for_each_batch(&self, mut f: impl FnMut(&[Row])) -> Result<RowsRead, RecordError> {
        let Some(sealed) = self.sealed_rows()? else { return self.log_batches(f) };
        if let Err(error) = self.verify_rows() {
            // A crash between sealing and removing the log, and damage since: the log still has everything.
            return if self.has_log() { self.log_batches(f) } else { Err(error) };
        }
        let path = self.file(TRANSACTIONS);
        let file = disk::open(&path)?;
        let mut reader = TransactionsReader::open(&path, Source::File(file))?;
        if reader.row_count() != sealed.rows {
            let why =
                format!("it has {} rows and was sealed with {}", reader.row_count(), sealed.rows);
            return Err(RecordError::damaged(&path, why));
        }
        while let Some(rows) = reader.next_batch()? {
            f(rows);
        }
        Ok(RowsRead { rows: sealed.rows, from_log: false, dropped_bytes: sealed.dropped_bytes })
    }

    /// Passes the rows of a share once, as [`Self::for_each_batch`] does those of all; together all shares pass all rows in that
    /// order. The checksum of the file is looked at by whoever merges them.
    ///
    /// # Errors
    /// Those of [`Self::for_each_batch`].
    pub fn for_each_batch_of(
        &self,
        share: Share,
        mut f: impl FnMut(&[Row]),
    ) -> Result<(), RecordError> {
        let path = self.file(TRANSACTIONS);
        let mut reader = TransactionsReader::open(&path, Source::File(disk::open(&path)?))?;
        reader.only(share)?;
        while let Some(rows) = reader.next_batch()? {
            f(rows);
        }
        Ok(())
    }

    /// The file of rows as it was sealed; `None`: they are in a log still, which is read from its beginning.
    ///
    /// # Errors
    /// When seal.json cannot be read, and the log is not there either.
    pub fn rows_mark(&self) -> Result<Option<RowsMark>, RecordError> {
        if self.sealed_rows()?.is_none() {
            return Ok(None);
        }
        Ok(self.read_seal()?.files.get(TRANSACTIONS).copied().map(RowsMark))
    }

    /// Looks whether the file of rows is as it was sealed; gives how many bytes of the log were not in it.
    ///
    /// # Errors
    /// When it is not, or cannot be read.
    pub fn check_rows(&self) -> Result<u64, RecordError> {
        self.verify_rows()?;
        Ok(self.sealed_rows()?.map_or(0, |rows| rows.dropped_bytes))
    }

    /// How many rows there are. Sealed trials know; an unsealed log is read through.
    ///
    /// # Errors
    /// As [`TrialFolder::for_each_batch`].
    pub fn row_count(&self) -> Result<u64, RecordError> {
        match self.sealed_rows()? {
            Some(sealed) => Ok(sealed.rows),
            None => Ok(self.log_batches(|_| ())?.rows),
        }
    }

    /// The part of seal.json on rows. A seal.json that cannot be read does not matter while the log is there.
    fn sealed_rows(&self) -> Result<Option<SealedRows>, RecordError> {
        match self.read_seal() {
            Ok(seal) => Ok(seal.rows),
            Err(_) if self.has_log() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn verify_rows(&self) -> Result<(), RecordError> {
        self.verify_file(TRANSACTIONS)?;
        self.verify_file(INTERVAL_LOG)
    }

    /// Whether `name` is as it was written; an error if it is not, or was never finished.
    fn verify_file(&self, name: &str) -> Result<(), RecordError> {
        let path = self.file(name);
        let Some(sealed) = self.read_seal()?.files.get(name).copied() else {
            return Err(RecordError::damaged(&path, "seal.json does not name it"));
        };
        disk::verify(&path, sealed)
    }

    /// Opens a Parquet file of this folder after checking it; `None` if it was never finished.
    pub(crate) fn open_verified(&self, name: &str) -> Result<Option<Source>, RecordError> {
        let path = self.file(name);
        if !self.read_seal()?.files.contains_key(name) {
            return Ok(None);
        }
        self.verify_file(name)?;
        let file = disk::open(&path)?;
        Ok(Some(Source::File(file)))
    }

    /// Whether a file may be one of the trial's, by its length: that which seal.json says, or a log's, or a text's. Anything
    /// else was put there by a stranger, and reading it may take hours.
    pub(crate) fn known_files(&self) -> Result<impl Fn(&Path) -> bool, RecordError> {
        let files = self.read_seal()?.files;
        Ok(move |path: &Path| {
            let length = fs::symlink_metadata(path).map_or(0, |found| found.len());
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match files.get(name) {
                Some(sealed) => length == sealed.bytes,
                None => length <= disk::TEXT_BYTES_MAX || name.ends_with(".log"),
            }
        })
    }

    /// Finishes a file and notes its checksum in seal.json.
    pub(crate) fn finish_file(
        &self,
        name: &str,
        file: &mut PartialFile,
    ) -> Result<(), RecordError> {
        let sealed = file.finish()?;
        let mut seal = self.read_seal()?;
        seal.files.insert(name.to_owned(), sealed);
        self.write_seal(seal)
    }

    fn read_seal(&self) -> Result<Seal, RecordError> {
        match read_json(&self.file(SEAL)) {
            Err(RecordError::Missing { .. }) => Ok(Seal::default()),
            other => other,
        }
    }

    fn write_seal(&self, mut seal: Seal) -> Result<(), RecordError> {
        SCHEMA.clone_into(&mut seal.schema);
        write_json(&self.file(SEAL), &seal)
    }

    fn write_sealed(
        &self,
        facts: &TrialFacts,
        stages: &[String],
        mut seconds: OpenSeconds,
        rows_expected: u64,
    ) -> Result<[Sealed; 2], RecordError> {
        let (rows_path, log_path) = (self.file(TRANSACTIONS), self.file(INTERVAL_LOG));
        let mut rows_file = PartialFile::create(&rows_path)?;
        let mut log_file = PartialFile::create(&log_path)?;
        let failed = |error: ParquetError| writing(&rows_path, error);
        let mut serializer = V2DeflateSerializer::new();
        {
            let mut rows_out =
                TransactionsWriter::start(&mut rows_file, stages, facts).map_err(failed)?;
            let mut log_out = IntervalLog::start(
                &log_path,
                &mut log_file,
                &mut serializer,
                stages,
                facts.load.started.unix_ns(),
            )?;
            let mut outcome = Ok(());
            let read = self.log_batches(|rows| {
                if outcome.is_ok() {
                    seconds.frame(rows);
                    outcome = rows_out.push(rows).map_err(failed);
                    outcome = std::mem::replace(&mut outcome, Ok(()))
                        .and_then(|()| log_out.write(&mut seconds, false));
                }
            })?;
            outcome?;
            if read.rows != rows_expected {
                let why = "it changed while it was sealed";
                return Err(RecordError::damaged(&self.file(ROW_LOG), why));
            }
            log_out.write(&mut seconds, true)?;
            log_out.finish(&seconds)?;
            rows_out.finish().map_err(failed)?;
        }
        Ok([rows_file.finish()?, log_file.finish()?])
    }

    pub(crate) fn has_log(&self) -> bool {
        fs::exists(self.file(ROW_LOG)).unwrap_or(false)
    }
}

/// A name for every stage that the ladder has or that a row reached.
fn stage_names(facts: &TrialFacts, used: usize) -> Vec<String> {
    let mut names: Vec<String> = facts.declared.stages.iter().take(STAGES_MAX).cloned().collect();
    for index in names.len()..used {
        names.push(format!("stage{index}"));
    }
    names
}

/// Reads a seal.json, for fuzzing; says how many files it names.
pub(crate) fn parse_seal(text: &str) -> Result<usize, serde_json::Error> {
    Ok(serde_json::from_str::<Seal>(text)?.files.len())
}
