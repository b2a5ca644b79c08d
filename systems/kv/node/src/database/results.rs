//! Results as bytes: written as operations are carried out, and read by clients. The README gives the form.

use super::Status;
use super::map::{Map, Value};
use super::transaction::{Malformed, Reader, tag};

/// Bytes of a status and a position, in front of all else.
const HEAD_BYTES: usize = 9;

/// A result that is being written.
pub(super) struct Results<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    bytes_max: usize,
}

impl<'o> Results<'o> {
    /// Begins the result of a transaction that will have been done, of at most so many bytes.
    pub fn begin(out: &'o mut Vec<u8>, position: u64, operations: u8, bytes_max: usize) -> Self {
        let start = out.len();
        out.push(Status::Done as u8);
        out.extend_from_slice(&position.to_le_bytes());
        out.push(operations);
        Self { out, start, bytes_max }
    }

    /// The operation was carried out and gives nothing.
    pub fn done(&mut self) {
        self.out.push(tag::DONE);
    }

    /// Nothing is there.
    pub fn absent(&mut self) {
        self.out.push(tag::ABSENT);
    }

    /// A check was met, or was not.
    pub fn checked(&mut self, is_met: bool) -> Result<(), Status> {
        self.done();
        if is_met { Ok(()) } else { Err(Status::CheckFailed) }
    }

    /// This is there.
    pub fn value(&mut self, version: u64, value: &Value) -> Result<(), Status> {
        match value {
            Value::Integer(number) => {
                self.head(tag::INTEGER, version);
                self.out.extend_from_slice(&number.to_le_bytes());
            }
            Value::String(text) => {
                self.head(tag::STRING, version);
                self.long(text.bytes())?;
            }
            Value::Bytes(text) => {
                self.head(tag::BYTES, version);
                self.long(text.bytes())?;
            }
            Value::List(list) => {
                let bytes = self.fits(list.bytes())?;
                self.head(tag::LIST, version);
                self.out.extend_from_slice(&list.elements().to_le_bytes());
                self.out.extend_from_slice(&bytes.to_le_bytes());
                for segment in list.segments() {
                    self.out.extend_from_slice(segment);
                }
            }
            Value::Map(map) => self.map(version, map)?,
        }
        self.fits(0).map(|_| ())
    }

    /// This map is there.
    pub fn map(&mut self, version: u64, map: &Map) -> Result<(), Status> {
        self.head(tag::MAP, version);
        let count = u32::try_from(map.entries().len()).expect("bounded by memory");
        self.out.extend_from_slice(&count.to_le_bytes());
        for entry in map.entries() {
            let key = entry.key.bytes();
            self.out.push(u8::try_from(key.len()).expect("keys have at most 255 bytes"));
            self.out.extend_from_slice(key);
            self.value(entry.version, &entry.value)?;
        }
        self.fits(0).map(|_| ())
    }

    /// The transaction failed at its `operation`-th operation, from 0.
    pub fn failed(self, status: Status, position: u64, operation: u8) {
        self.out.truncate(self.start);
        write_failed(self.out, status, position, operation);
    }

    fn head(&mut self, tag: u8, version: u64) {
        self.out.push(tag);
        self.out.extend_from_slice(&version.to_le_bytes());
    }

    fn long(&mut self, bytes: &[u8]) -> Result<(), Status> {
        let length = self.fits(bytes.len() as u64)?;
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether so much more may come.
    fn fits(&self, bytes: u64) -> Result<u32, Status> {
        let room = self.bytes_max.saturating_sub(self.out.len() - self.start) as u64;
        let is_short = self.out.len() - self.start <= self.bytes_max && bytes <= room;
        u32::try_from(bytes).ok().filter(|_| is_short).ok_or(Status::ResultTooLong)
    }
}

/// Appends the result of a transaction that was not done.
pub fn write_failed(out: &mut Vec<u8>, status: Status, position: u64, operation: u8) {
    out.push(status as u8);
    out.extend_from_slice(&position.to_le_bytes());
    out.push(operation);
}

/// A result, as it is read.
#[derive(Clone, Copy, Debug)]
pub struct ResultReader<'a> {
    /// What became of the transaction.
    pub status: Status,
    /// Its position, if it was executed; else the database's.
    pub position: u64,
    /// Of one that failed: which operation did, from 0.
    pub failed_operation: u8,
    reader: Reader<'a>,
    left: u8,
}

impl<'a> ResultReader<'a> {
    /// Reads the head.
    ///
    /// # Errors
    /// When the bytes are no result.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(bytes);
        let status = Status::of(reader.byte()?).ok_or(Malformed)?;
        let position = reader.u64()?;
        debug_assert_eq!(bytes.len() - reader.0.len(), HEAD_BYTES);
        let number = reader.byte()?;
        let (left, failed_operation) =
            if status == Status::Done { (number, 0) } else { (0, number) };
        Ok(Self { status, position, failed_operation, reader, left })
    }

    /// What the next operation gave; `None` behind the last one.
    ///
    /// # Errors
    /// When the bytes are no result.
    #[expect(clippy::should_implement_trait, reason = "an error ends it: not an iterator")]
    pub fn next(&mut self) -> Result<Option<Given<'a>>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else {
            return if self.reader.0.is_empty() { Ok(None) } else { Err(Malformed) };
        };
        self.left = left;
        read_given(&mut self.reader, super::transaction::DEPTH_MAX + 1).map(Some)
    }
}

/// What an operation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given<'a> {
    /// It was carried out.
    Done,
    /// Nothing is there.
    Absent,
    /// This is there, of this version.
    Value(u64, GivenValue<'a>),
}

/// A value in a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenValue<'a> {
    /// A number.
    Integer(i64),
    /// Text.
    String(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A list: how many elements, and their bytes as transactions write scalars.
    List(u32, &'a [u8]),
    /// A map: its keys with what is there.
    Map(Vec<(&'a [u8], Given<'a>)>),
}

fn read_given<'a>(reader: &mut Reader<'a>, depth_left: usize) -> Result<Given<'a>, Malformed> {
    let tag = reader.byte()?;
    match tag {
        tag::DONE => return Ok(Given::Done),
        tag::ABSENT => return Ok(Given::Absent),
        _ => {}
    }
    let version = reader.u64()?;
    let value = match tag {
        tag::INTEGER => GivenValue::Integer(reader.u64()?.cast_signed()),
        tag::STRING => GivenValue::String(reader.long()?),
        tag::BYTES => GivenValue::Bytes(reader.long()?),
        tag::LIST => GivenValue::List(reader.u32()?, reader.long()?),
        tag::MAP => {
            let depth_left = depth_left.checked_sub(1).ok_or(Malformed)?;
            let count = reader.u32()?;
            let mut entries = Vec::new();
            for _ in 0..count {
                entries.push((reader.short()?, read_given(reader, depth_left)?));
            }
            GivenValue::Map(entries)
        }
        _ => return Err(Malformed),
    };
    Ok(Given::Value(version, value))
}
