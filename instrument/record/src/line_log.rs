//! faults.ndjson, events.ndjson and metrics.ndjson: what faults did, what happened and what was sampled, one a line, written as
//! it happens. The first line names the schema.
//!
//! A crash keeps every whole line. A full disk costs nothing but what it could not take: a line is there whole or not
//! at all, and what was refused is tried again with the next event and at the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use model::facts::{EVENTS_SCHEMA, Event, METRICS_SCHEMA, MetricSample};
use model::fault::{FAULTS_SCHEMA, FaultEvent};
use model::secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk;
use crate::error::RecordError;

/// The most bytes of lines that wait for a disk that takes none; more are lost, and said to be.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
}

/// The content of a line.
pub trait Line: Serialize + DeserializeOwned {
    /// The schema of a file of them.
    const SCHEMA: &'static str;
}

impl Line for FaultEvent {
    const SCHEMA: &'static str = FAULTS_SCHEMA;
}

impl Line for Event {
    const SCHEMA: &'static str = EVENTS_SCHEMA;
}

impl Line for MetricSample {
    const SCHEMA: &'static str = METRICS_SCHEMA;
}

/// Writes faults.ndjson.
pub type FaultLog = LineLog<FaultEvent>;
/// Writes events.ndjson.
pub type EventLog = LineLog<Event>;

/// Writes metrics.ndjson.
pub type MetricLog = LineLog<MetricSample>;

/// Writes such a file.
#[derive(Debug)]
pub struct LineLog<T> {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines in the file.
    whole: u64,
    /// Lines that are not in the file yet.
    waiting: Vec<u8>,
    /// Events that there was no room for.
    lost: u64,
    refused: Option<io::Error>,
    _of: PhantomData<fn(&T)>,
}

impl<T: Line> LineLog<T> {
    pub(crate) fn create(path: &Path) -> Result<Self, RecordError> {
        let at = |error| RecordError::writing(path, error);
        let mut options = OpenOptions::new();
        options.create_new(true).append(true).mode(disk::OWN_FILE);
        let file = options.open(path).map_err(at)?;
        let mut log = Self {
            path: path.to_owned(),
            file,
            whole: 0,
            waiting: Vec::new(),
            lost: 0,
            refused: None,
            _of: PhantomData,
        };
        log.push(&Head { schema: T::SCHEMA.to_owned() });
        Ok(log)
    }

    /// Adds an event. It never fails: what the disk does not take waits, and [`LineLog::close`] says so if it never
    /// did.
    pub fn append(&mut self, event: &T) {
        self.push(event);
    }

    /// Bytes of whole lines in the file.
    #[must_use]
    pub const fn written_bytes(&self) -> u64 {
        self.whole
    }

    /// Writes what still waits.
    ///
    /// # Errors
    /// When the disk did not take every event.
    pub fn close(mut self) -> Result<(), RecordError> {
        self.flush();
        match self.refused {
            Some(error) => Err(RecordError::writing(&self.path, error)),
            None if self.lost > 0 => {
                let why = format!("{} events were lost", self.lost);
                Err(RecordError::writing(&self.path, io::Error::other(why)))
            }
            None => Ok(()),
        }
    }

    fn push(&mut self, line: &impl Serialize) {
        let line = serde_json::to_vec(line).expect("an event has only texts and numbers");
        let mut line = secret::scrub_json(line);
        line.push(b'\n');
        if self.waiting.len() + line.len() > WAITING_BYTES_MAX {
            self.lost += 1;
        } else {
            self.waiting.append(&mut line);
        }
        self.flush();
    }

    fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.file.write_all(&self.waiting) {
            Ok(()) => {
                self.whole += u64::try_from(self.waiting.len()).expect("a length");
                self.waiting.clear();
                self.refused = None;
            }
            Err(error) => {
                // A part of a line would spoil the next. If even that fails, the reader leaves out the broken end.
                let _ = self.file.set_len(self.whole);
                self.refused = Some(error);
            }
        }
    }
}

/// The events of a file; none if there is no file. What a crash cut off at its end is left out.
pub(crate) fn read<T: Line>(path: &Path) -> Result<Vec<T>, RecordError> {
    let text = match disk::read_text(path) {
        Err(RecordError::Missing { .. }) => return Ok(Vec::new()),
        text => text?,
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.lines().enumerate();
    let Some((_, first)) = lines.next() else { return Ok(Vec::new()) };
    head::<T>(path, first)?;
    lines.map(|(index, line)| event(path, index + 1, line)).collect()
}

/// Refuses a file whose first line is that of another version.
pub(crate) fn head<T: Line>(path: &Path, line: &str) -> Result<(), RecordError> {
    // Before events had a schema, the first line was one.
    let found = serde_json::from_str::<Head>(line).map(|head| head.schema).unwrap_or_default();
    match found == T::SCHEMA {
        true => Ok(()),
        false => Err(RecordError::OtherVersion { path: path.to_owned(), found, known: T::SCHEMA }),
    }
}

/// The event of a line, which has this number.
pub(crate) fn event<T: Line>(path: &Path, number: usize, line: &str) -> Result<T, RecordError> {
    serde_json::from_str(line)
        .map_err(|error| RecordError::damaged(path, format!("line {number} is no event: {error}")))
}

#[cfg(test)]
mod tests {
    use model::fault::{FaultDetail, FaultPhase};

    use super::*;

    /// The events of a file of faults.
    fn read(path: &Path) -> Result<Vec<FaultEvent>, RecordError> {
        super::read(path)
    }

    fn event(fault: u32) -> FaultEvent {
        FaultEvent {
            fault,
            cycle: 0,
            phase: FaultPhase::Start,
            kind: "pause".into(),
            node: "a: b".into(),
            planned_ns: 1,
            at_ns: 2,
            detail: FaultDetail::Why { text: "two\nlines".into() },
        }
    }

    /// Claim: what was appended is read back, each event in the file as soon as it happened; a line that a crash cut
    /// off is left out, a broken one before it is told with its number.
    #[test]
    fn events_come_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("faults.ndjson");
        assert!(read(&path).expect("no file is no fault").is_empty());
        let mut log = FaultLog::create(&path).expect("a file");
        for fault in 0..3 {
            log.append(&event(fault));
            let seen = read(&path).expect("events");
            assert_eq!(seen.last(), Some(&event(fault)));
        }
        log.close().expect("the disk took all");
        assert!(FaultLog::create(&path).is_err(), "a trial is recorded once");

        let text = std::fs::read_to_string(&path).expect("text");
        std::fs::write(&path, &text[..text.len() - 9]).expect("a crash");
        assert_eq!(read(&path).expect("events"), [event(0), event(1)]);
        std::fs::write(&path, text.replacen("pause", "pau\"se", 1)).expect("damage");
        let said = read(&path).expect_err("it is broken").to_string();
        assert!(said.contains("line 2 is no event"), "{said}");
    }

    /// Claim: a file of before events had a schema is refused with what to do.
    #[test]
    fn an_old_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("faults.ndjson");
        let old = "{\"at_ns\":1,\"event\":\"fault_start\",\"kind\":\"kill\",\"node\":\"a\"}\n";
        std::fs::write(&path, old).expect("a file");
        let said = read(&path).expect_err("it is old").to_string();
        assert!(said.contains("another version of Assay") && said.contains("run the"), "{said}");
    }

    /// Claim: a disk that is full for a while costs no event and no line; one that stays full is said at the end, and
    /// what it took before can be read.
    #[test]
    fn a_full_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("faults.ndjson");
        let full = || OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let mut log = FaultLog::create(&path).expect("a file");
        log.append(&event(0));
        let good = std::mem::replace(&mut log.file, full());
        log.append(&event(1));
        assert_eq!(read(&path).expect("events"), [event(0)]);
        log.file = good;
        log.append(&event(2));
        assert_eq!(read(&path).expect("events"), [event(0), event(1), event(2)]);
        log.file = full();
        log.append(&event(3));
        let said = log.close().expect_err("it stayed full").to_string();
        assert!(said.contains("the disk is full"), "{said}");
        assert_eq!(read(&path).expect("events").len(), 3);
    }
}
