//! A trial's observations: written to a log while the load runs, sealed to observations.parquet, and read back from
//! whichever there is, in bounded memory.
//!
//! | column | form | |
//! | --- | --- | --- |
//! | `tx` | unsigned 64 | the transaction |
//! | `at_ns` | signed 64 | when it was seen, after the trial's start |
//! | `bytes` | bytes | what it returned |

use std::io::Write;
use std::path::Path;

use model::observation::{Observation, Observations};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;

use crate::columns::{Column, ColumnsReader, ColumnsWriter, Kind, Source, guarded, writing};
use crate::disk::{self, PartialFile};
use crate::error::RecordError;
use crate::observation_log::{ObservationLogReader, ObservationLogWriter};
use crate::trial::TrialFolder;

const LOG: &str = "observations.log";
const OBSERVATIONS: &str = "observations.parquet";
/// Rows in a row group, and bytes at which one ends before it has that many: what a reader holds.
const GROUP_ROWS_MAX: usize = 64 << 10;
const GROUP_BYTES: usize = 8 << 20;
/// Rows read at a time.
const READ_ROWS_MAX: usize = 8192;

fn columns() -> [Column; 3] {
    [
        Column::required("tx", Kind::Unsigned64),
        Column::required("at_ns", Kind::Signed64),
        Column::required("bytes", Kind::Bytes),
    ]
}

impl TrialFolder {
    /// Starts the trial's observation log.
    ///
    /// # Errors
    /// When it cannot be written, or is there already: a trial is recorded once.
    pub fn observation_log(&self) -> Result<ObservationLogWriter, RecordError> {
        ObservationLogWriter::create(&self.file(LOG))
    }

    /// Passes every observation once, in the order of the record, which workers share. Gives their number; 0 where
    /// nothing was observed. What a crash cut off the log is left out, as it is of the rows.
    ///
    /// # Errors
    /// When they are damaged. Observations may have been passed before damage was found.
    pub fn for_each_observation(
        &self,
        f: impl FnMut(&Observation<'_>),
    ) -> Result<u64, RecordError> {
        match self.open_verified(OBSERVATIONS)? {
            Some(source) => read(&self.file(OBSERVATIONS), source, f),
            None if self.has_observation_log() => self.read_observation_log(f),
            None => Ok(0),
        }
    }

    /// Turns the observation log into observations.parquet and removes it, in the order that [`crate::seal`] gives:
    /// until seal.json names the new file, the log is what counts.
    pub(crate) fn seal_observations(&self) -> Result<(), RecordError> {
        if !self.has_observation_log() {
            return Ok(());
        }
        let path = self.file(OBSERVATIONS);
        let mut file = PartialFile::create(&path)?;
        let mut out = Writer::start(&mut file).map_err(|error| writing(&path, error))?;
        let mut outcome = Ok(());
        self.read_observation_log(|one| {
            if outcome.is_ok() {
                outcome = out.push(one);
            }
        })?;
        let finished = outcome.and_then(|()| out.finish());
        finished.map_err(|error| writing(&path, error))?;
        self.finish_file(OBSERVATIONS, &mut file)?;
        disk::remove(&self.file(LOG))
    }

    fn has_observation_log(&self) -> bool {
        std::fs::exists(self.file(LOG)).unwrap_or(false)
    }

    fn read_observation_log(
        &self,
        mut f: impl FnMut(&Observation<'_>),
    ) -> Result<u64, RecordError> {
        let path = self.file(LOG);
        let reading = |error| RecordError::reading(&path, error);
        let file = disk::open(&path)?;
        let mut log = ObservationLogReader::open(file).map_err(|error| error.about(&path))?;
        let mut count = 0;
        while let Some(frame) = log.next_frame().map_err(reading)? {
            frame.iter().for_each(|one| f(&one));
            count += frame.len() as u64;
        }
        Ok(count)
    }
}

/// Writes observations.parquet, in bounded memory however many there are.
struct Writer<W: Write + Send> {
    file: ColumnsWriter<W>,
    group: Observations,
}

impl<W: Write + Send> Writer<W> {
    fn start(out: W) -> Result<Self, ParquetError> {
        let notes = [("assay.schema", "assay.observations/1".to_owned())];
        let file = ColumnsWriter::start(out, "observations", &columns(), &notes)?;
        Ok(Self { file, group: Observations::default() })
    }

    fn push(&mut self, one: &Observation<'_>) -> Result<(), ParquetError> {
        self.group.push(*one);
        let is_full = self.group.len() == GROUP_ROWS_MAX || self.group.byte_count() >= GROUP_BYTES;
        if is_full { self.write_group() } else { Ok(()) }
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        self.file.finish().map(|_| ())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.group()?;
        group.signed_64(self.group.iter().map(|one| one.tx.cast_signed()))?;
        group.signed_64(self.group.iter().map(|one| one.at))?;
        group.text(self.group.iter().map(|one| ByteArray::from(one.bytes.to_vec())))?;
        group.finish()?;
        self.group.clear();
        Ok(())
    }
}

/// Reads observations.parquet in batches.
pub(crate) fn read(
    path: &Path,
    source: Source,
    mut f: impl FnMut(&Observation<'_>),
) -> Result<u64, RecordError> {
    let file = guarded(path, || {
        let file = ColumnsReader::open(source)?;
        file.check(&columns())?;
        Ok(file)
    })?;
    let mut total = 0;
    for index in 0..file.group_count() {
        let (mut group, mut tx, mut at, mut bytes) = guarded(path, || {
            let mut group = file.group(index)?;
            let (tx, at) = (group.column::<Int64Type>()?, group.column::<Int64Type>()?);
            let bytes = group.column::<ByteArrayType>()?;
            Ok((group, tx, at, bytes))
        })?;
        loop {
            let count = group.take_rows(READ_ROWS_MAX);
            if count == 0 {
                break;
            }
            let (tx, at, bytes) = guarded(path, || {
                Ok((tx.required(count)?, at.required(count)?, bytes.required(count)?))
            })?;
            // Outside the guard: a panic of the caller's is the caller's.
            for ((tx, at), bytes) in tx.iter().zip(at).zip(bytes) {
                f(&Observation { tx: tx.cast_unsigned(), at: *at, bytes: bytes.data() });
            }
            total += count as u64;
        }
    }
    Ok(total)
}
