//! Append-only files of frames, each checked by itself, so that a crash or a full disk costs the last frame and
//! nothing before it. What a payload holds is its owner's.
//!
//! ```text
//! header  16 bytes  magic, version u32, zero u32
//! frame             payload length u32, count u32, CRC-32 of length, count and payload u32, payload
//! ```
//! All integers are little-endian. A frame stands alone.
//!
//! The writer never changes a byte that it has written, except to cut off the half of a frame that a full disk left.
//! The reader stops at the first frame that does not hold and says how many bytes it dropped; it never guesses where
//! the next frame might begin.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::disk::OWN_FILE;
use crate::error::RecordError;

pub const HEADER_BYTES: usize = 16;
pub const FRAME_HEADER_BYTES: usize = 12;

/// The kind of log.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// Its first eight bytes.
    pub magic: &'static [u8; 8],
    /// The version that is written.
    pub version: u32,
    /// Others that are read.
    pub earlier: &'static [u32],
    /// Its name.
    pub name: &'static str,
    /// The name of this version in messages.
    pub version_words: &'static str,
    /// The longest payload, and with it what a reader takes memory for.
    pub payload_bytes_max: usize,
    /// The most things counted in a frame.
    pub count_max: usize,
    /// The fewest bytes that one of them takes.
    pub one_bytes_min: usize,
}

impl Format {
    /// The version that a header names.
    pub fn version_of(&self, header: &[u8; HEADER_BYTES]) -> Result<u32, LogError> {
        self.begins(header)?;
        let version = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        if version != self.version && !self.earlier.contains(&version) {
            let found = format!("{} of version {version}", self.name);
            return Err(LogError::OtherVersion { found, known: self.version_words });
        }
        Ok(version)
    }

    /// Whether a header begins as one of this format, as far as it goes.
    fn begins(&self, header: &[u8]) -> Result<(), LogError> {
        let known = header.len().min(self.magic.len());
        match header[..known] == self.magic[..known] {
            true => Ok(()),
            false => Err(LogError::Foreign(format!("it does not begin as a {}", self.name))),
        }
    }

    /// Payload length and count, if a writer could have written them: checked before memory is taken.
    pub fn sizes(&self, header: &[u8; FRAME_HEADER_BYTES]) -> Option<(usize, usize)> {
        let word =
            |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let (length, count) = (word(0) as usize, word(4) as usize);
        let fits = (1..=self.count_max).contains(&count)
            && length <= self.payload_bytes_max
            && length >= count * self.one_bytes_min;
        fits.then_some((length, count))
    }
}

/// Writes frames. What was added is on its way to the disk after [`FramesWriter::flush`], so a killed process loses
/// what came after the last one.
#[derive(Debug)]
pub struct FramesWriter {
    pub(crate) file: File,
    path: PathBuf,
    format: Format,
    /// The frame being filled, its header included.
    frame: Vec<u8>,
    count: u32,
    /// Length of the file up to the last whole frame.
    whole_bytes: u64,
    has_failed: bool,
}

impl FramesWriter {
    /// Starts a log at `path`, which must not exist: a trial is recorded once.
    pub fn create(path: &Path, format: Format) -> Result<Self, RecordError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(OWN_FILE)
            .open(path)
            .map_err(|error| RecordError::writing(path, error))?;
        Self::start(file, path, format)
    }

    pub(crate) fn start(mut file: File, path: &Path, format: Format) -> Result<Self, RecordError> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(format.magic);
        header[8..12].copy_from_slice(&format.version.to_le_bytes());
        file.write_all(&header).map_err(|error| RecordError::writing(path, error))?;
        let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + format.payload_bytes_max);
        frame.resize(FRAME_HEADER_BYTES, 0);
        Ok(Self {
            file,
            path: path.to_owned(),
            format,
            frame,
            count: 0,
            whole_bytes: HEADER_BYTES as u64,
            has_failed: false,
        })
    }

    /// Where the next thing is to be appended; it is to be followed by [`FramesWriter::counted`].
    #[inline]
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.frame
    }

    /// One thing more is in the frame.
    #[inline]
    pub fn counted(&mut self) {
        self.count += 1;
    }

    /// Bytes of the frame that is being filled.
    #[inline]
    pub fn payload_bytes(&self) -> usize {
        self.frame.len() - FRAME_HEADER_BYTES
    }

    /// Things in the frame that is being filled.
    #[inline]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Hands everything added so far to the kernel.
    ///
    /// # Errors
    /// When the disk is full or fails. The log then ends with its last whole frame, and stays closed to more.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        self.refuse_after_failure()?;
        if self.count == 0 {
            return Ok(());
        }
        seal(&mut self.frame, self.count);
        if let Err(error) = self.file.write_all(&self.frame) {
            self.has_failed = true;
            // Half a frame may have been written. Readers would drop it; without it they need not.
            let _ = self.file.set_len(self.whole_bytes);
            return Err(RecordError::writing(&self.path, error));
        }
        self.whole_bytes += self.frame.len() as u64;
        self.frame.truncate(FRAME_HEADER_BYTES);
        self.count = 0;
        Ok(())
    }

    /// Flushes and brings the log to the disk.
    ///
    /// # Errors
    /// As [`FramesWriter::flush`].
    pub fn close(mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.file.sync_data().map_err(|error| RecordError::writing(&self.path, error))
    }

    /// Says that it failed before, if it did.
    pub fn refuse_after_failure(&self) -> Result<(), RecordError> {
        if self.has_failed {
            let why = format!("the {} failed before and takes no more", self.format.name);
            return Err(RecordError::writing(&self.path, io::Error::other(why)));
        }
        Ok(())
    }

    /// Length of the file in bytes.
    pub const fn written_bytes(&self) -> u64 {
        self.whole_bytes
    }
}

impl Drop for FramesWriter {
    fn drop(&mut self) {
        // The way out of a panic: what was added is still worth having, and nobody is left to tell.
        if !self.has_failed {
            let _ = self.flush();
        }
    }
}

fn seal(frame: &mut [u8], count: u32) {
    let (header, payload) = frame.split_at_mut(FRAME_HEADER_BYTES);
    let length = u32::try_from(payload.len()).expect("bounded by the format");
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[4..8].copy_from_slice(&count.to_le_bytes());
    let checksum = checksum(&header[..8], payload);
    header[8..].copy_from_slice(&checksum.to_le_bytes());
}

/// Of a frame's length, count and payload.
pub fn checksum(sizes: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(sizes);
    hasher.update(payload);
    hasher.finalize()
}

/// Reads a log from its start, a frame at a time.
#[derive(Debug)]
pub struct FramesReader<R> {
    input: R,
    format: Format,
    version: u32,
    payload: Vec<u8>,
    dropped_bytes: u64,
    is_at_end: bool,
}

/// Why a log cannot be read at all.
#[derive(Debug)]
pub enum LogError {
    /// It is no such log.
    Foreign(String),
    /// It is one of a version that this program does not read.
    OtherVersion {
        /// The version that was found.
        found: String,
        /// The versions that this program reads.
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

impl LogError {
    /// The same as an error about a file.
    pub fn about(self, path: &Path) -> RecordError {
        match self {
            Self::Foreign(why) => RecordError::damaged(path, why),
            Self::OtherVersion { found, known } => {
                RecordError::OtherVersion { path: path.to_owned(), found, known }
            }
            Self::Io(error) => RecordError::reading(path, error),
        }
    }
}

impl<R: Read> FramesReader<R> {
    /// Reads the header. A file that ends within it is an empty log whose bytes were dropped.
    pub fn open(mut input: R, format: Format) -> Result<Self, LogError> {
        let mut header = [0; HEADER_BYTES];
        let count = fill(&mut input, &mut header)?;
        let whole = count == HEADER_BYTES;
        let version = if whole {
            format.version_of(&header)?
        } else {
            format.begins(&header[..count])?;
            format.version
        };
        Ok(Self {
            input,
            format,
            version,
            payload: Vec::new(),
            dropped_bytes: if whole { 0 } else { count as u64 },
            is_at_end: !whole,
        })
    }

    /// The version that the log is of.
    pub const fn version(&self) -> u32 {
        self.version
    }

    /// Reads the next frame into [`FramesReader::payload`] and gives how many things it says it holds; `None` at the
    /// end of what holds.
    pub fn next_frame(&mut self) -> io::Result<Option<usize>> {
        if self.is_at_end {
            return Ok(None);
        }
        let mut header = [0; FRAME_HEADER_BYTES];
        let header_bytes = fill(&mut self.input, &mut header)?;
        if header_bytes < FRAME_HEADER_BYTES {
            return self.end(header_bytes);
        }
        let Some((length, count)) = self.format.sizes(&header) else {
            return self.end(header_bytes);
        };
        self.payload.resize(length, 0);
        let payload_bytes = fill(&mut self.input, &mut self.payload)?;
        if payload_bytes < length
            || checksum(&header[..8], &self.payload).to_le_bytes() != header[8..]
        {
            return self.end(header_bytes + payload_bytes);
        }
        Ok(Some(count))
    }

    /// The payload of the frame that was read last.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Drops the frame that was read last, whose payload does not hold what it should, and all after it.
    pub fn reject(&mut self) -> io::Result<()> {
        self.end(FRAME_HEADER_BYTES + self.payload.len()).map(|_| ())
    }

    /// Bytes after the last frame that holds; known at the end.
    pub const fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes
    }

    fn end(&mut self, dropped: usize) -> io::Result<Option<usize>> {
        self.is_at_end = true;
        self.dropped_bytes = dropped as u64 + io::copy(&mut self.input, &mut io::sink())?;
        Ok(None)
    }
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
