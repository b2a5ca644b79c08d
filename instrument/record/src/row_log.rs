//! The row log: where rows go while the load runs. Frames of [`crate::frames`]; the payload is [`crate::row_code`]. A
//! frame stands alone: its first row is a difference to nothing.

use std::io::{self, Read};
use std::path::Path;

use model::Row;

use crate::error::RecordError;
use crate::frames::{Format, FramesReader, FramesWriter, LogError};
use crate::row_code::{self, BEFORE_FIRST, ROW_BYTES_MAX, ROW_BYTES_MIN};

/// The most rows in a frame: what a reader holds in memory, under 1 MB of rows.
pub const FRAME_ROWS_MAX: usize = 8192;
/// A frame is written when its payload has reached this, which is some 6,000 rows: large enough that the
/// system call is a few hundredths of a nanosecond a row, small enough to stay in the processor's cache.
const FRAME_PAYLOAD_BYTES: usize = 64 << 10;

/// Since this version rows have a receive lag. It is two bits from version 2, so that a flipped one makes neither of the
/// other.
pub const VERSION_WITH_LAG: u32 = 4;

pub const FORMAT: Format = Format {
    magic: b"ASSAYROW",
    version: VERSION_WITH_LAG,
    earlier: &[2],
    name: "row log",
    version_words: "row log of version 2 or 4",
    payload_bytes_max: FRAME_PAYLOAD_BYTES + ROW_BYTES_MAX,
    count_max: FRAME_ROWS_MAX,
    one_bytes_min: ROW_BYTES_MIN,
};

/// Appends rows to a trial's row log. Rows are on their way to the disk after [`RowLogWriter::flush`], so a
/// killed process loses what came after the last one.
#[derive(Debug)]
pub struct RowLogWriter {
    frames: FramesWriter,
    before: Row,
}

impl RowLogWriter {
    /// Starts the log at `path`, which must not exist: a trial is recorded once.
    pub(crate) fn create(path: &Path) -> Result<Self, RecordError> {
        Ok(Self { frames: FramesWriter::create(path, FORMAT)?, before: BEFORE_FIRST })
    }

    /// Appends rows. They are written when a frame is full and at [`RowLogWriter::flush`].
    ///
    /// # Errors
    /// When the disk is full or fails. The log then ends with its last whole frame, and stays closed to more.
    pub fn append(&mut self, rows: &[Row]) -> Result<(), RecordError> {
        self.frames.refuse_after_failure()?;
        for row in rows {
            row_code::encode(row, &self.before, self.frames.payload());
            self.before = *row;
            self.frames.counted();
            if self.frames.payload_bytes() >= FRAME_PAYLOAD_BYTES
                || self.frames.count() == FRAME_ROWS_MAX
            {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Hands everything appended so far to the kernel. To be called at least every 100 ms.
    ///
    /// # Errors
    /// As [`RowLogWriter::append`].
    pub fn flush(&mut self) -> Result<(), RecordError> {
        self.frames.flush()?;
        self.before = BEFORE_FIRST;
        Ok(())
    }

    /// Flushes and brings the log to the disk.
    ///
    /// # Errors
    /// As [`RowLogWriter::append`].
    pub fn close(self) -> Result<(), RecordError> {
        self.frames.close()
    }

    /// Length of the file in bytes.
    #[must_use]
    pub const fn written_bytes(&self) -> u64 {
        self.frames.written_bytes()
    }
}

/// Reads a row log from its start, a frame at a time.
#[derive(Debug)]
pub struct RowLogReader<R> {
    frames: FramesReader<R>,
    rows: Vec<Row>,
    row_count: u64,
}

impl<R: Read> RowLogReader<R> {
    /// Reads the header. A file that ends within it is an empty log whose bytes were dropped.
    pub fn open(input: R) -> Result<Self, LogError> {
        Ok(Self { frames: FramesReader::open(input, FORMAT)?, rows: Vec::new(), row_count: 0 })
    }

    /// The rows of the next frame; `None` at the end of what holds.
    pub fn next_frame(&mut self) -> io::Result<Option<&[Row]>> {
        let Some(count) = self.frames.next_frame()? else {
            self.rows = Vec::new();
            return Ok(None);
        };
        let has_lag = self.frames.version() >= VERSION_WITH_LAG;
        if !decode(self.frames.payload(), count, &mut self.rows, has_lag) {
            self.rows = Vec::new();
            self.frames.reject()?;
            return Ok(None);
        }
        self.row_count += count as u64;
        Ok(Some(&self.rows))
    }

    /// Rows given so far.
    pub const fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Bytes after the last frame that holds; known at the end.
    pub const fn dropped_bytes(&self) -> u64 {
        self.frames.dropped_bytes()
    }
}

/// Takes `count` rows out of a payload; false if it does not hold them and nothing else.
pub fn decode(payload: &[u8], count: usize, rows: &mut Vec<Row>, has_lag: bool) -> bool {
    rows.clear();
    let (mut at, mut before) = (0, BEFORE_FIRST);
    for _ in 0..count {
        let row = row_code::decode(payload, &mut at, &before, has_lag);
        let Some(row) = row else { return false };
        rows.push(row);
        before = row;
    }
    at == payload.len()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    /// Claim: a disk without room is said to be full, with what to do about it, and the log stays closed to more.
    #[test]
    fn a_full_disk_is_named() {
        let full = Path::new("/dev/full");
        let open = |path| OpenOptions::new().write(true).open(path).unwrap();
        let error = FramesWriter::start(open(full), full, FORMAT).unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("free some space"), "{error}");

        let frames = FramesWriter::start(open(Path::new("/dev/null")), full, FORMAT).unwrap();
        let mut log = RowLogWriter { frames, before: BEFORE_FIRST };
        log.frames.file = open(full);
        log.append(&[BEFORE_FIRST]).unwrap();
        assert!(matches!(log.flush(), Err(RecordError::Full { .. })));
        let error = log.append(&[BEFORE_FIRST]).unwrap_err().to_string();
        assert!(error.contains("takes no more"), "{error}");
    }
}
