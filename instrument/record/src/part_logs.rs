//! Row logs of parts that others carried out, as they arrive, and their merge into the trial's own. A part's log is kept byte
//! by byte as it came until its rows are merged; it must never be changed.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use model::Row;

use crate::disk::{self, OWN_FILE};
use crate::error::RecordError;
use crate::frames::HEADER_BYTES;
use crate::row_log::RowLogReader;
use crate::trial::TrialFolder;

/// The log of one part while it arrives.
#[derive(Debug)]
pub struct PartLog {
    file: File,
    path: PathBuf,
    header: Vec<u8>,
}

impl PartLog {
    /// Keeps the next bytes, which begin and end with frames, and gives their rows.
    ///
    /// # Errors
    /// When they cannot be written, or are no frames of a row log.
    pub fn append(&mut self, bytes: &[u8]) -> Result<Vec<Row>, RecordError> {
        let missing = HEADER_BYTES.saturating_sub(self.header.len()).min(bytes.len());
        let (header, frames) = bytes.split_at(missing);
        self.header.extend_from_slice(header);
        let input = self.header.iter().chain(frames).copied().collect::<Vec<u8>>();
        let mut log =
            RowLogReader::open(input.as_slice()).map_err(|error| error.about(&self.path))?;
        let mut rows = Vec::new();
        let reading = |error| RecordError::reading(&self.path, error);
        while let Some(some) = log.next_frame().map_err(reading)? {
            rows.extend_from_slice(some);
        }
        if log.dropped_bytes() > 0 {
            return Err(RecordError::damaged(
                &self.path,
                "a piece of it does not end with a frame",
            ));
        }
        self.file.write_all(bytes).map_err(|error| RecordError::writing(&self.path, error))?;
        Ok(rows)
    }
}

impl TrialFolder {
    fn part_path(&self, part: u32) -> PathBuf {
        self.file(&format!("rows-{part}.log"))
    }

    /// Starts the log of a part.
    ///
    /// # Errors
    /// When it cannot be written, or is there already.
    pub fn part_log(&self, part: u32) -> Result<PartLog, RecordError> {
        let path = self.part_path(part);
        let file = OpenOptions::new().append(true).create_new(true).mode(OWN_FILE).open(&path);
        let file = file.map_err(|error| RecordError::writing(&path, error))?;
        Ok(PartLog { file, path, header: Vec::new() })
    }

    /// Gives the rows of all parts, in the order of their ends as far as each part has it.
    ///
    /// # Errors
    /// When a log cannot be read or is damaged, and those of `take`.
    pub fn merge_parts(
        &self,
        parts: u32,
        take: &mut dyn FnMut(u32, Row) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let mut heads = Vec::new();
        for part in 0..parts {
            let path = self.part_path(part);
            let log = RowLogReader::open(disk::open(&path)?).map_err(|error| error.about(&path))?;
            heads.push(Head { log, path, rows: Vec::new(), next: 0 });
        }
        loop {
            let mut first: Option<(usize, Row)> = None;
            for (part, head) in heads.iter_mut().enumerate() {
                if let Some(row) = head.row()?
                    && first.is_none_or(|(_, before)| row.end < before.end)
                {
                    first = Some((part, row));
                }
            }
            let Some((part, row)) = first else { return Ok(()) };
            heads[part].next += 1;
            take(u32::try_from(part).expect("counted by a u32"), row)?;
        }
    }

    /// Removes the logs of parts, whose rows stand in the trial's own log.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_parts(&self, parts: u32) -> Result<(), RecordError> {
        (0..parts).try_for_each(|part| disk::remove(&self.part_path(part)))
    }
}

/// A part's log on its way through the merge.
struct Head {
    log: RowLogReader<File>,
    path: PathBuf,
    rows: Vec<Row>,
    next: usize,
}

impl Head {
    /// The next row.
    fn row(&mut self) -> Result<Option<Row>, RecordError> {
        while self.next == self.rows.len() {
            let path = &self.path;
            let read = self.log.next_frame().map_err(|error| RecordError::reading(path, error))?;
            let Some(rows) = read else {
                return match self.log.dropped_bytes() {
                    0 => Ok(None),
                    _ => Err(RecordError::damaged(&self.path, "it does not end with a frame")),
                };
            };
            self.rows.clear();
            self.rows.extend_from_slice(rows);
            self.next = 0;
        }
        Ok(Some(self.rows[self.next]))
    }
}
