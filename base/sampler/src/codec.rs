//! Records as bytes of a block: differences of times, and numbers as short as they are (LEB128). Six to nine bytes an event
//! instead of twenty-four.

use clock::Instant;

/// A stage that a service stamps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name: lower-case letters, digits, `_` and `.`.
    pub name: String,
    /// In words, for readers.
    pub label: String,
}

impl Stage {
    /// A stage of this name.
    #[must_use]
    pub fn new(name: &str, label: &str) -> Self {
        Self { name: name.to_owned(), label: label.to_owned() }
    }
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which stage, in the order of the file's names.
    pub stage: u8,
    /// When it was done.
    pub at: Instant,
    /// How long it took, nanoseconds.
    pub took_ns: u64,
    /// To what.
    pub what: What,
}

/// What an event was done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// So many transactions.
    Count(u64),
    /// One that is sampled, by its key; it is counted elsewhere.
    Span(u64),
}

/// The highest bit of a record's first byte: it is a span.
const SPAN: u8 = 0x80;

/// Writes a record behind one that was done at `last`.
pub(crate) fn write(record: &Record, last: &mut i64, out: &mut Vec<u8>) {
    let at = record.at.as_ns();
    let change = at.wrapping_sub(*last);
    *last = at;
    let (span, third) = match record.what {
        What::Count(count) => (0, count),
        What::Span(key) => (SPAN, key),
    };
    out.push(record.stage | span);
    number((change << 1 ^ change >> 63).cast_unsigned(), out);
    number(record.took_ns, out);
    match span {
        0 => number(third, out),
        _ => out.extend_from_slice(&third.to_le_bytes()),
    }
}

/// Reads a record of one of `stages` stages off the front; `None`: the bytes are none.
pub(crate) fn read(bytes: &mut &[u8], last: &mut i64, stages: usize) -> Option<Record> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    let stage = first & !SPAN;
    let zigzag = take_number(bytes)?;
    let change = (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
    let at = last.wrapping_add(change);
    let took_ns = take_number(bytes)?;
    let what = if first & SPAN == 0 {
        What::Count(take_number(bytes)?)
    } else {
        let (key, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        What::Span(u64::from_le_bytes(*key))
    };
    *last = at;
    (usize::from(stage) < stages).then_some(Record {
        stage,
        at: Instant::from_ns(at),
        took_ns,
        what,
    })
}

fn number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        let part = u64::from(byte & 0x7f);
        let shift = 7 * index as u32;
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            *bytes = &bytes[index + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every record comes back as it was, whatever its numbers, and no beginning of it is taken for one.
    #[test]
    fn records_come_back() {
        let ends = [0, 1, -1, i64::MAX, i64::MIN, 1_795_243_832_000_000_000];
        let values = [0, 1, 127, 128, u64::MAX >> 16, u64::MAX];
        for at in ends {
            for took_ns in values {
                for what in [What::Count(took_ns), What::Span(took_ns)] {
                    let record = Record { stage: 63, at: Instant::from_ns(at), took_ns, what };
                    let (mut bytes, mut last) = (Vec::new(), 77);
                    write(&record, &mut last, &mut bytes);
                    let mut last = 77;
                    assert_eq!(read(&mut &bytes[..], &mut last, 64), Some(record));
                    assert_eq!(read(&mut &bytes[..], &mut 77, 63), None, "no such stage");
                    for length in 0..bytes.len() {
                        assert_eq!(read(&mut &bytes[..length], &mut 77, 64), None);
                    }
                }
            }
        }
    }
}
