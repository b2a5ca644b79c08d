//! The file: what it is called and of, blocks of records, and what was counted beside them.
//!
//! ```text
//! ASSAYEV1                        eight bytes
//! kind  length  CRC-32  payload   1, 4 and 4 bytes, little endian; the payload is at most a megabyte
//!   0   head: the node's name, the wall time of instant 0 (8), what an event and a reading of the clock cost in
//!       picoseconds (8 each), how many stages (1), of each its name and its label; a text is its length (2) and UTF-8
//!   1   records: the time that differences begin with (8), then records one after another
//!   2   totals: of each stage events, transactions and time in nanoseconds (8 each), then records that were lost (8),
//!       times that a thread waited for room (8), by how much the wall clock has moved since instant 0 (8), and 1 if this
//!       is the end
//! ```
//!
//! Totals follow every flush, so that a file that was cut off says what its last ones say. Totals count records that stand
//! before them in the file, or will at the next flush; at the end all do.

use std::io::Read;

use clock::WallTime;

use crate::STAGES_MAX;
use crate::codec::{self, Record, Stage, What};

pub(crate) const MAGIC: [u8; 8] = *b"ASSAYEV1";
pub(crate) const BLOCK_BYTES_MAX: usize = 1 << 20;
const NAME_BYTES_MAX: usize = 1_000;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Head = 0,
    Records = 1,
    Totals = 2,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EventFileError {
    /// The system's own error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It does not begin as such a file does.
    #[error("it is no file of events: it does not begin with ASSAYEV1")]
    Other,
    /// It ends within a block.
    #[error("it is cut off at byte {0}")]
    Cut(u64),
    /// A block is not what it says.
    #[error("the block at byte {0} is damaged: {1}")]
    Damaged(u64, &'static str),
}

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whose events they are.
    pub node: String,
    /// The wall time of instant 0.
    pub origin: WallTime,
    /// What an event cost without a reading of the clock, picoseconds, as measured when the sampler was made; 0 = it was not.
    pub event_ps: u64,
    /// What a reading of the clock cost.
    pub clock_ps: u64,
    /// The stages, as records number them.
    pub stages: Vec<Stage>,
}

/// What was counted at a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTotals {
    /// Events.
    pub events: u64,
    /// Transactions that they were done to.
    pub transactions: u64,
    /// How long they took together, nanoseconds.
    pub took_ns: u64,
}

impl StageTotals {
    /// Adds a record; a span is in no count.
    pub fn add(&mut self, record: &Record) {
        if let What::Count(count) = record.what {
            self.events += 1;
            self.transactions = self.transactions.saturating_add(count);
            self.took_ns = self.took_ns.saturating_add(record.took_ns);
        }
    }
}

/// What was counted beside the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// By stage.
    pub stages: Vec<StageTotals>,
    /// Records that were given after they were taken out no more, or that could not be written.
    pub lost: u64,
    /// Times that a thread waited for room in its ring.
    pub waits: u64,
    /// By how much the wall clock has moved against instants since instant 0, nanoseconds.
    pub wall_drift_ns: i64,
    /// Whether the sampler was closed after this.
    pub is_end: bool,
}

impl Head {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        text(&self.node, out);
        out.extend_from_slice(&self.origin.unix_ns().to_le_bytes());
        out.extend_from_slice(&self.event_ps.to_le_bytes());
        out.extend_from_slice(&self.clock_ps.to_le_bytes());
        out.push(u8::try_from(self.stages.len()).expect("at most STAGES_MAX"));
        for stage in &self.stages {
            text(&stage.name, out);
            text(&stage.label, out);
        }
    }

    fn read(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let node = take_text(bytes)?;
        let origin = WallTime::from_unix_ns(take_u64(bytes)?.cast_signed());
        let (event_ps, clock_ps) = (take_u64(bytes)?, take_u64(bytes)?);
        let (&count, rest) = bytes.split_first()?;
        *bytes = rest;
        if usize::from(count) > STAGES_MAX {
            return None;
        }
        let mut stages = Vec::new();
        for _ in 0..count {
            stages.push(Stage { name: take_text(bytes)?, label: take_text(bytes)? });
        }
        bytes.is_empty().then_some(Self { node, origin, event_ps, clock_ps, stages })
    }
}

impl Totals {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for of in &self.stages {
            for value in [of.events, of.transactions, of.took_ns] {
                out.extend_from_slice(&value.to_le_bytes());
            }
        }
        out.extend_from_slice(&self.lost.to_le_bytes());
        out.extend_from_slice(&self.waits.to_le_bytes());
        out.extend_from_slice(&self.wall_drift_ns.to_le_bytes());
        out.push(u8::from(self.is_end));
    }

    fn read(mut bytes: &[u8], stages: usize) -> Option<Self> {
        let bytes = &mut bytes;
        let mut totals = Self::default();
        for _ in 0..stages {
            totals.stages.push(StageTotals {
                events: take_u64(bytes)?,
                transactions: take_u64(bytes)?,
                took_ns: take_u64(bytes)?,
            });
        }
        totals.lost = take_u64(bytes)?;
        totals.waits = take_u64(bytes)?;
        totals.wall_drift_ns = take_u64(bytes)?.cast_signed();
        totals.is_end = match bytes {
            [end @ (0 | 1)] => *end == 1,
            _ => return None,
        };
        Some(totals)
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    let mut end = text.len().min(NAME_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&u16::try_from(end).expect("at most NAME_BYTES_MAX").to_le_bytes());
    out.extend_from_slice(&text.as_bytes()[..end]);
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    *bytes = rest;
    (text.len() <= NAME_BYTES_MAX).then(|| String::from_utf8(text.to_vec()).ok()).flatten()
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (value, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*value))
}

/// Writes a block.
pub(crate) fn block(kind: Kind, payload: &[u8], out: &mut Vec<u8>) {
    out.push(kind as u8);
    let length = u32::try_from(payload.len()).expect("at most BLOCK_BYTES_MAX");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    out.extend_from_slice(payload);
}

/// A file being read, a block at a time: its memory is bounded whatever the file says.
pub struct Reader<R> {
    from: R,
    at: u64,
    head: Head,
    payload: Vec<u8>,
    counted: Vec<StageTotals>,
    totals: Totals,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning.
    ///
    /// # Errors
    /// When it is not the beginning of such a file.
    pub fn open(mut from: R) -> Result<Self, EventFileError> {
        let mut magic = [0; 8];
        let length = fill(&mut from, &mut magic)?;
        if length < magic.len() || magic != MAGIC {
            return Err(EventFileError::Other);
        }
        let head = Head {
            node: String::new(),
            origin: WallTime::from_unix_ns(0),
            event_ps: 0,
            clock_ps: 0,
            stages: Vec::new(),
        };
        let mut reader = Self {
            from,
            at: 8,
            head,
            payload: Vec::new(),
            counted: Vec::new(),
            totals: Totals::default(),
        };
        let at = reader.at;
        let head = match reader.block()? {
            Some(Kind::Head) => Head::read(&reader.payload),
            _ => None,
        };
        reader.head = head.ok_or(EventFileError::Damaged(at, "it is no head"))?;
        reader.counted = vec![StageTotals::default(); reader.head.stages.len()];
        Ok(reader)
    }

    /// What the file says of itself.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// The wall time of a reading of the node's clock.
    #[must_use]
    pub fn wall(&self, at: clock::Instant) -> WallTime {
        WallTime::from_unix_ns(self.head.origin.unix_ns().saturating_add(at.as_ns()))
    }

    /// Gives the records of the next block that has any; `false` at the end.
    ///
    /// # Errors
    /// When the file is cut off or damaged there; what came before holds.
    pub fn next(&mut self, mut each: impl FnMut(&Record)) -> Result<bool, EventFileError> {
        loop {
            let at = self.at;
            let damaged = |why| EventFileError::Damaged(at, why);
            match self.block()? {
                None => return Ok(false),
                Some(Kind::Head) => return Err(damaged("it is a second head")),
                Some(Kind::Totals) => {
                    let totals = Totals::read(&self.payload, self.head.stages.len());
                    self.totals = totals.ok_or_else(|| damaged("it is no totals"))?;
                }
                Some(Kind::Records) => {
                    let mut bytes = &self.payload[..];
                    let first = take_u64(&mut bytes).ok_or_else(|| damaged("it has no time"))?;
                    let mut last = first.cast_signed();
                    while !bytes.is_empty() {
                        let record = codec::read(&mut bytes, &mut last, self.counted.len())
                            .ok_or_else(|| damaged("it holds what is no record"))?;
                        self.counted[usize::from(record.stage)].add(&record);
                        each(&record);
                    }
                    return Ok(true);
                }
            }
        }
    }

    /// The last totals that were read.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// What is wrong with what was read, all of it having been read: nothing, where it was closed and its records are what
    /// was counted.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Totals { is_end, lost, stages, .. } = &self.totals;
        if !is_end {
            return Some("it has no end: its service was killed, or runs still".to_owned());
        }
        if *lost > 0 {
            return Some(format!("{lost} records were lost"));
        }
        let names = self.head.stages.iter().zip(stages.iter().zip(&self.counted));
        let differing =
            names.filter(|(_, (told, read))| told != read).map(|(stage, (told, read))| {
                format!(
                    "{}: {} events of {} transactions were counted, and {} of {} stand in it",
                    stage.name, told.events, told.transactions, read.events, read.transactions
                )
            });
        let differing: Vec<String> = differing.collect();
        (!differing.is_empty()).then(|| differing.join("; "))
    }

    /// The same of a service that may run still: what it had counted when it wrote last, by transactions.
    #[must_use]
    pub fn problem_so_far(&self) -> Option<String> {
        if self.totals.is_end {
            return self.problem();
        }
        // One that has written no totals yet has counted nothing.
        let stages = self.totals.stages.iter().map(|it| it.transactions);
        let told: Vec<u64> = stages.chain(std::iter::repeat(0)).take(self.counted.len()).collect();
        let read: Vec<u64> = self.counted.iter().map(|it| it.transactions).collect();
        (told != read).then(|| {
            format!("it was read while its service worked: {told:?} transactions were counted, and {read:?} stand in it")
        })
    }

    /// Reads a block into `payload`.
    fn block(&mut self) -> Result<Option<Kind>, EventFileError> {
        let mut front = [0; 9];
        let at = self.at;
        match fill(&mut self.from, &mut front)? {
            0 => return Ok(None),
            9 => {}
            _ => return Err(EventFileError::Cut(at)),
        }
        let kind = match front[0] {
            0 => Kind::Head,
            1 => Kind::Records,
            2 => Kind::Totals,
            _ => return Err(EventFileError::Damaged(at, "there is no such kind")),
        };
        let word = |from: usize| {
            u32::from_le_bytes([front[from], front[from + 1], front[from + 2], front[from + 3]])
        };
        let length = usize::try_from(word(1)).unwrap_or(usize::MAX);
        if length > BLOCK_BYTES_MAX {
            return Err(EventFileError::Damaged(at, "it is longer than any is"));
        }
        self.payload.resize(length, 0);
        if fill(&mut self.from, &mut self.payload)? < length {
            return Err(EventFileError::Cut(at));
        }
        if crc32fast::hash(&self.payload) != word(5) {
            return Err(EventFileError::Damaged(at, "its checksum is another"));
        }
        self.at += 9 + length as u64;
        Ok(Some(kind))
    }
}

/// Reads until the buffer is full or there is no more; how much.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match from.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}
