//! The row log: where rows go while the load runs. Append-only frames, each checked by itself, so that a crash
//! or a full disk costs the last frame and nothing before it.
//!
//! ```text
//! header  16 bytes  "ASSAYROW", version u32, zero u32
//! frame             payload length u32, row count u32, CRC-32 of length, count and payload u32, payload
//! ```
//! All integers are little-endian; the payload is [`crate::row_code`]. A frame stands alone: its first row is
//! a difference to nothing.
//!
//! The writer never changes a byte that it has written, except to cut off the half of a frame that a full
//! disk left. The reader stops at the first frame that does not hold and says how many bytes it dropped; it
//! never guesses where the next frame might begin.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use model::Row;

use crate::error::RecordError;
use crate::row_code::{self, BEFORE_FIRST, ROW_BYTES_MAX, ROW_BYTES_MIN};

const MAGIC: &[u8; 8] = b"ASSAYROW";
const VERSION: u32 = 2;
/// What a message calls this version.
const VERSION_WORDS: &str = "row log of version 2";
const HEADER_BYTES: usize = 16;
const FRAME_HEADER_BYTES: usize = 12;
/// The most rows in a frame: what a reader holds in memory, under 1 MB of rows.
pub const FRAME_ROWS_MAX: usize = 8192;
/// A frame is written when its payload has reached this, which is some 6,000 rows: large enough that the
/// system call is a few hundredths of a nanosecond a row, small enough to stay in the processor's cache.
const FRAME_PAYLOAD_BYTES: usize = 64 << 10;
const FRAME_PAYLOAD_BYTES_MAX: usize = FRAME_PAYLOAD_BYTES + ROW_BYTES_MAX;

/// Appends rows to a trial's row log. Rows are on their way to the disk after [`RowLogWriter::flush`], so a
/// killed process loses what came after the last one.
#[derive(Debug)]
pub struct RowLogWriter {
    file: File,
    path: PathBuf,
    /// The frame being filled, its header included.
    frame: Vec<u8>,
    frame_rows: u32,
    before: Row,
    /// Length of the file up to the last whole frame.
    whole_bytes: u64,
    has_failed: bool,
}

impl RowLogWriter {
    /// Starts the log at `path`, which must not exist: a trial is recorded once.
    pub(crate) fn create(path: &Path) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|error| RecordError::writing(path, error))?;
        Self::start(file, path)
    }

    fn start(mut file: File, path: &Path) -> Result<Self, RecordError> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        file.write_all(&header).map_err(|error| RecordError::writing(path, error))?;
        let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + FRAME_PAYLOAD_BYTES_MAX);
        frame.resize(FRAME_HEADER_BYTES, 0);
        Ok(Self {
            file,
            path: path.to_owned(),
            frame,
            frame_rows: 0,
            before: BEFORE_FIRST,
            whole_bytes: HEADER_BYTES as u64,
            has_failed: false,
        })
    }

    /// Appends rows. They are written when a frame is full and at [`RowLogWriter::flush`].
    ///
    /// # Errors
    /// When the disk is full or fails. The log then ends with its last whole frame, and stays closed to more.
    pub fn append(&mut self, rows: &[Row]) -> Result<(), RecordError> {
        self.refuse_after_failure()?;
        for row in rows {
            row_code::encode(row, &self.before, &mut self.frame);
            self.before = *row;
            self.frame_rows += 1;
            if self.frame.len() >= FRAME_HEADER_BYTES + FRAME_PAYLOAD_BYTES
                || self.frame_rows as usize == FRAME_ROWS_MAX
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
        self.refuse_after_failure()?;
        if self.frame_rows == 0 {
            return Ok(());
        }
        seal_frame(&mut self.frame, self.frame_rows);
        if let Err(error) = self.file.write_all(&self.frame) {
            self.has_failed = true;
            // Half a frame may have been written. Readers would drop it; without it they need not.
            let _ = self.file.set_len(self.whole_bytes);
            return Err(RecordError::writing(&self.path, error));
        }
        self.whole_bytes += self.frame.len() as u64;
        self.frame.truncate(FRAME_HEADER_BYTES);
        self.frame_rows = 0;
        self.before = BEFORE_FIRST;
        Ok(())
    }

    /// Flushes and brings the log to the disk.
    ///
    /// # Errors
    /// As [`RowLogWriter::append`].
    pub fn close(mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.file.sync_data().map_err(|error| RecordError::writing(&self.path, error))
    }

    fn refuse_after_failure(&self) -> Result<(), RecordError> {
        if self.has_failed {
            let closed = io::Error::other("the row log failed before and takes no more rows");
            return Err(RecordError::writing(&self.path, closed));
        }
        Ok(())
    }

    /// Length of the file in bytes.
    #[must_use]
    pub const fn written_bytes(&self) -> u64 {
        self.whole_bytes
    }
}

impl Drop for RowLogWriter {
    fn drop(&mut self) {
        // The way out of a panic: what was appended is still worth having, and nobody is left to tell.
        if !self.has_failed {
            let _ = self.flush();
        }
    }
}

fn seal_frame(frame: &mut [u8], rows: u32) {
    let (header, payload) = frame.split_at_mut(FRAME_HEADER_BYTES);
    let length = u32::try_from(payload.len()).expect("bounded by FRAME_PAYLOAD_BYTES_MAX");
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..8].copy_from_slice(&rows.to_le_bytes());
    let checksum = frame_checksum(&header[..8], payload);
    header[8..].copy_from_slice(&checksum.to_le_bytes());
}

fn frame_checksum(sizes: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(sizes);
    hasher.update(payload);
    hasher.finalize()
}

/// Reads a row log from its start, a frame at a time.
#[derive(Debug)]
pub struct RowLogReader<R> {
    input: R,
    payload: Vec<u8>,
    rows: Vec<Row>,
    row_count: u64,
    dropped_bytes: u64,
    is_at_end: bool,
}

/// Why a log cannot be read at all.
#[derive(Debug)]
pub enum LogError {
    /// It is no row log.
    Foreign(String),
    /// It is one of a version that this program does not read.
    OtherVersion {
        /// What it is.
        found: String,
        /// What this program reads.
        known: &'static str,
    },
    /// The file could not be read.
    Io(io::Error),
}

impl From<io::Error> for LogError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<R: Read> RowLogReader<R> {
    /// Reads the header. A file that ends within it is an empty log whose bytes were dropped.
    pub fn open(mut input: R) -> Result<Self, LogError> {
        let mut header = [0; HEADER_BYTES];
        let count = fill(&mut input, &mut header)?;
        let whole = count == HEADER_BYTES;
        if header[..count.min(8)] != MAGIC[..count.min(8)] {
            return Err(LogError::Foreign("it does not begin as a row log".to_owned()));
        }
        let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        if whole && version != VERSION {
            let found = format!("row log of version {version}");
            return Err(LogError::OtherVersion { found, known: VERSION_WORDS });
        }
        Ok(Self {
            input,
            payload: Vec::new(),
            rows: Vec::new(),
            row_count: 0,
            dropped_bytes: if whole { 0 } else { count as u64 },
            is_at_end: !whole,
        })
    }

    /// The rows of the next frame; `None` at the end of what holds.
    pub fn next_frame(&mut self) -> io::Result<Option<&[Row]>> {
        if self.is_at_end {
            return Ok(None);
        }
        let mut header = [0; FRAME_HEADER_BYTES];
        let header_bytes = fill(&mut self.input, &mut header)?;
        if header_bytes < FRAME_HEADER_BYTES {
            return self.end(header_bytes);
        }
        let Some((length, count)) = sizes(&header) else { return self.end(header_bytes) };
        self.payload.resize(length, 0);
        let payload_bytes = fill(&mut self.input, &mut self.payload)?;
        if payload_bytes < length
            || frame_checksum(&header[..8], &self.payload).to_le_bytes() != header[8..]
            || !self.decode(count)
        {
            return self.end(header_bytes + payload_bytes);
        }
        self.row_count += count as u64;
        Ok(Some(&self.rows))
    }

    /// Rows given so far.
    pub const fn row_count(&self) -> u64 {
        self.row_count
    }

    /// Bytes behind the last frame that holds; known at the end.
    pub const fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    fn decode(&mut self, count: usize) -> bool {
        self.rows.clear();
        let (mut at, mut before) = (0, BEFORE_FIRST);
        for _ in 0..count {
            let Some(row) = row_code::decode(&self.payload, &mut at, &before) else { return false };
            self.rows.push(row);
            before = row;
        }
        at == self.payload.len()
    }

    fn end(&mut self, dropped: usize) -> io::Result<Option<&[Row]>> {
        self.is_at_end = true;
        self.rows = Vec::new();
        self.dropped_bytes = dropped as u64 + io::copy(&mut self.input, &mut io::sink())?;
        Ok(None)
    }
}

/// Payload length and row count, if a writer could have written them: checked before memory is taken.
fn sizes(header: &[u8; FRAME_HEADER_BYTES]) -> Option<(usize, usize)> {
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let (length, count) = (word(0) as usize, word(4) as usize);
    let fits = (1..=FRAME_ROWS_MAX).contains(&count)
        && length <= FRAME_PAYLOAD_BYTES_MAX
        && length >= count * ROW_BYTES_MIN;
    fits.then_some((length, count))
}

/// Reads until `buffer` is full or the input ends; says how many bytes it got.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match input.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a disk without room is said to be full, with what to do about it, and the log stays closed to more.
    #[test]
    fn a_full_disk_is_named() {
        let full = Path::new("/dev/full");
        let open = |path| OpenOptions::new().write(true).open(path).unwrap();
        let error = RowLogWriter::start(open(full), full).unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("free some space"), "{error}");

        let mut log = RowLogWriter::start(open(Path::new("/dev/null")), full).unwrap();
        log.file = open(full);
        log.append(&[BEFORE_FIRST]).unwrap();
        assert!(matches!(log.flush(), Err(RecordError::Full { .. })));
        let error = log.append(&[BEFORE_FIRST]).unwrap_err().to_string();
        assert!(error.contains("takes no more rows"), "{error}");
    }
}
