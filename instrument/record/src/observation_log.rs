//! The observation log: where observations go while the load runs. Frames of [`crate::frames`], of which each holds
//! observations one after the other:
//!
//! ```text
//! observation  tx u64, at i64, length u32, bytes
//! ```
//! The file is there only if something was observed.

use std::io::{self, Read};
use std::path::Path;

use model::observation::{OBSERVATION_BYTES_MAX, Observation, Observations};
use model::secret;

use crate::error::RecordError;
use crate::frames::{Format, FramesReader, FramesWriter, LogError};

const HEAD_BYTES: usize = 20;
/// A frame is written when its payload has reached this, as the row log's.
const FRAME_PAYLOAD_BYTES: usize = 64 << 10;

const FORMAT: Format = Format {
    magic: b"ASSAYOBS",
    version: 1,
    earlier: &[],
    name: "observation log",
    version_words: "observation log of version 1",
    payload_bytes_max: FRAME_PAYLOAD_BYTES + HEAD_BYTES + OBSERVATION_BYTES_MAX,
    count_max: FRAME_PAYLOAD_BYTES / HEAD_BYTES + 1,
    one_bytes_min: HEAD_BYTES,
};

/// Appends observations to a trial's log.
#[derive(Debug)]
pub struct ObservationLogWriter {
    frames: FramesWriter,
}

impl ObservationLogWriter {
    pub(crate) fn create(path: &Path) -> Result<Self, RecordError> {
        Ok(Self { frames: FramesWriter::create(path, FORMAT)? })
    }

    /// Appends observations. They are written when a frame is full and at [`ObservationLogWriter::flush`].
    ///
    /// # Errors
    /// When the disk is full or fails. The log then ends with its last whole frame, and stays closed to more.
    ///
    /// # Panics
    /// When one is longer than [`OBSERVATION_BYTES_MAX`], which no engine hands over.
    pub fn append(&mut self, observations: &Observations) -> Result<(), RecordError> {
        self.frames.refuse_after_failure()?;
        for one in observations.iter() {
            assert!(one.bytes.len() <= OBSERVATION_BYTES_MAX, "the engine leaves longer ones out");
            let length = u32::try_from(one.bytes.len()).expect("bounded above");
            let payload = self.frames.payload();
            payload.extend_from_slice(&one.tx.to_le_bytes());
            payload.extend_from_slice(&one.at.to_le_bytes());
            payload.extend_from_slice(&length.to_le_bytes());
            // As long as before, so that whoever reads it finds the parts where they were.
            payload.extend_from_slice(&secret::mask(one.bytes));
            self.frames.counted();
            if self.frames.payload_bytes() >= FRAME_PAYLOAD_BYTES {
                self.frames.flush()?;
            }
        }
        Ok(())
    }

    /// Hands everything appended so far to the kernel.
    ///
    /// # Errors
    /// As [`ObservationLogWriter::append`].
    pub fn flush(&mut self) -> Result<(), RecordError> {
        self.frames.flush()
    }

    /// Flushes and brings the log to the disk.
    ///
    /// # Errors
    /// As [`ObservationLogWriter::append`].
    pub fn close(self) -> Result<(), RecordError> {
        self.frames.close()
    }
}

/// Reads an observation log from its start, a frame at a time.
#[derive(Debug)]
pub struct ObservationLogReader<R> {
    frames: FramesReader<R>,
    observations: Observations,
}

impl<R: Read> ObservationLogReader<R> {
    pub fn open(input: R) -> Result<Self, LogError> {
        let frames = FramesReader::open(input, FORMAT)?;
        Ok(Self { frames, observations: Observations::default() })
    }

    /// The observations of the next frame; `None` at the end of what holds.
    pub fn next_frame(&mut self) -> io::Result<Option<&Observations>> {
        self.observations.clear();
        let Some(count) = self.frames.next_frame()? else { return Ok(None) };
        if decode(self.frames.payload(), count, &mut self.observations).is_none() {
            self.observations.clear();
            self.frames.reject()?;
            return Ok(None);
        }
        Ok(Some(&self.observations))
    }

    /// Bytes after the last frame that holds; known at the end.
    pub const fn dropped_bytes(&self) -> u64 {
        self.frames.dropped_bytes()
    }
}

/// Takes `count` observations out of a payload; `None` if it does not hold them and nothing else.
fn decode(mut rest: &[u8], count: usize, into: &mut Observations) -> Option<()> {
    for _ in 0..count {
        let (tx, more) = rest.split_first_chunk()?;
        let (at, more) = more.split_first_chunk()?;
        let (length, more) = more.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (bytes, more) = more.split_at_checked(length)?;
        let (tx, at) = (u64::from_le_bytes(*tx), i64::from_le_bytes(*at));
        into.push(Observation { tx, at, bytes });
        rest = more;
    }
    rest.is_empty().then_some(())
}
