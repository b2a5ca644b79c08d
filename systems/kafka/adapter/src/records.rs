//! Batches of records, in the only form that brokers write since version 0.11 (*Kafka documentation*, 5.3, "Message format",
//! magic 2), without compression.

use crate::wire::{Reader, Strange, Write};

/// The form of batches that is written and read.
const MAGIC: i8 = 2;

/// A batch's bytes before the length that it states.
const PREFIX_BYTES: usize = 12;

/// Bits of a batch's attributes: how it is compressed, and that it is a transaction's end.
const COMPRESSION: i16 = 0b111;
const CONTROL: i16 = 0b10_0000;

/// A producer whose repetitions a broker notices, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Producer {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
}

impl Producer {
    /// None that a broker knows.
    pub(crate) const NONE: Self = Self { id: -1, epoch: -1 };
}

/// The records of one request, as they gather.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    records: Vec<u8>,
    count: i32,
    /// Of the first: milliseconds since 1970.
    begun_ms: i64,
    last_ms: i64,
}

impl Gathering {
    pub(crate) fn count(&self) -> i32 {
        self.count
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.count = 0;
    }

    /// Adds a record without a key.
    pub(crate) fn push(&mut self, at_ms: i64, value: &[u8]) {
        if self.count == 0 {
            (self.begun_ms, self.last_ms) = (at_ms, at_ms);
        }
        self.last_ms = self.last_ms.max(at_ms);
        let (ms, offset) = (at_ms - self.begun_ms, i64::from(self.count));
        let length = i64::try_from(value.len()).expect("values are bounded");
        // Attributes, no key, no headers.
        let rest = 1 + varint_bytes(ms) + varint_bytes(offset) + 1 + varint_bytes(length) + 1;
        self.records.varint(length + i64::try_from(rest).expect("a small number"));
        self.records.i8(0);
        self.records.varint(ms);
        self.records.varint(offset);
        self.records.varint(-1);
        self.records.varint(length);
        self.records.extend_from_slice(value);
        self.records.varint(0);
        self.count += 1;
    }

    /// Writes the batch and begins the next one. `first` is the place of its first record among the producer's.
    pub(crate) fn write(&mut self, producer: Producer, first: i32, out: &mut Vec<u8>) {
        out.i64(0);
        let length = out.begin();
        // The leader's epoch is the broker's to fill in.
        out.i32(-1);
        out.i8(MAGIC);
        let sum_at = out.len();
        out.i32(0);
        out.i16(0);
        out.i32(self.count - 1);
        out.i64(self.begun_ms);
        out.i64(self.last_ms);
        out.i64(producer.id);
        out.i16(producer.epoch);
        out.i32(first);
        out.i32(self.count);
        out.extend_from_slice(&self.records);
        let sum = crc32c(&out[sum_at + 4..]);
        out[sum_at..sum_at + 4].copy_from_slice(&sum.to_be_bytes());
        out.end(length);
        self.clear();
    }
}

fn varint_bytes(value: i64) -> usize {
    let bits = 64 - ((value << 1) ^ (value >> 63)).leading_zeros();
    usize::try_from(bits.div_ceil(7).max(1)).expect("at most ten")
}

/// A record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) offset: i64,
    pub(crate) value: &'a [u8],
    /// Whether its batch has the checksum that it states. A consumer is given nothing of one that has not.
    pub(crate) is_whole: bool,
}

/// Reads batches, of which the last may be cut off, and hands over their records. Gives the offset after the last batch,
/// if there is one.
pub(crate) fn read<'a>(
    bytes: &'a [u8],
    mut record: impl FnMut(Record<'a>),
) -> Result<Option<i64>, Strange> {
    let (mut reader, mut next) = (Reader(bytes), None);
    while reader.0.len() > PREFIX_BYTES {
        let base = reader.i64()?;
        let length = usize::try_from(reader.i32()?).map_err(|_| Strange("a length is negative"))?;
        // A broker sends as many bytes as were asked for, whatever is in the middle of them.
        let Ok(batch) = reader.take(length) else { break };
        let last = one(base, batch, &mut record)?;
        if next.is_some_and(|next| last < next) {
            return Err(Strange("batches are not in order"));
        }
        next = Some(last.checked_add(1).ok_or(Strange("an offset is too large"))?);
    }
    Ok(next)
}

/// Reads a batch from after its length. Gives the offset of its last record.
fn one<'a>(
    base: i64,
    batch: &'a [u8],
    record: &mut impl FnMut(Record<'a>),
) -> Result<i64, Strange> {
    let mut reader = Reader(batch);
    reader.i32()?;
    if reader.i8()? != MAGIC {
        return Err(Strange("a batch is of a form that is not read"));
    }
    let sum = reader.u32()?;
    let is_whole = crc32c(reader.0) == sum;
    let attributes = reader.i16()?;
    let last = i64::from(reader.i32()?);
    let last = base.checked_add(last).filter(|last| (base.max(0)..).contains(last));
    let last = last.ok_or(Strange("an offset is not possible"))?;
    // First and last time, the producer and its place.
    reader.take(8 + 8 + 8 + 2 + 4)?;
    let count = reader.count()?;
    if attributes & CONTROL != 0 {
        return Ok(last);
    }
    if attributes & COMPRESSION != 0 {
        return Err(Strange("a batch is compressed, which none of this trial is"));
    }
    for _ in 0..count {
        let length = usize::try_from(reader.varint()?);
        let mut inner = Reader(reader.take(length.map_err(|_| Strange("a length is negative"))?)?);
        inner.i8()?;
        inner.varint()?;
        let offset = base.checked_add(inner.varint()?).filter(|it| (base..=last).contains(it));
        let offset = offset.ok_or(Strange("a record stands outside of its batch"))?;
        nullable(&mut inner)?;
        let value = nullable(&mut inner)?;
        record(Record { offset, value, is_whole });
    }
    reader.end()?;
    Ok(last)
}

/// A key or a value; nothing for null.
fn nullable<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Strange> {
    match reader.varint()? {
        -1 => Ok(&[]),
        length => {
            reader.take(usize::try_from(length).map_err(|_| Strange("a length is negative"))?)
        }
    }
}

/// The checksum of Castagnoli (RFC 3720, B.4), which the instruction of processors computes and no crate of this workspace
/// does: eight bits a step by table.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let index = usize::from(u8::try_from((sum ^ u32::from(*byte)) & 0xff).expect("a byte"));
        CRC_TABLE[index] ^ (sum >> 8)
    };
    !bytes.iter().fold(!0, step)
}

const CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    // The polynomial, its bits in the order in which they are sent.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut index = 0_u32;
    while index < 256 {
        let (mut sum, mut bit) = (index, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { POLYNOMIAL ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[index as usize] = sum;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the checksum is that of the RFC's examples.
    #[test]
    fn sums() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    /// Claim: records are read as they were gathered, batch after batch, a batch that is cut off is left out, and one in
    /// which a bit has flipped is told wherever the bit is.
    #[test]
    fn records_come_back() {
        let mut bytes = Vec::new();
        let mut gathering = Gathering::default();
        for (at, value) in [(1_700_000_000_000, "one"), (1_700_000_000_900, ""), (5, "three")] {
            gathering.push(at, value.as_bytes());
        }
        gathering.write(Producer { id: 7, epoch: 0 }, 0, &mut bytes);
        let whole = bytes.len();
        gathering.push(9, &[b'x'; 300]);
        gathering.write(Producer::NONE, -1, &mut bytes);
        bytes[whole..whole + 8].copy_from_slice(&3_i64.to_be_bytes());
        let heard = |bytes: &[u8]| {
            let mut heard = Vec::new();
            let next = read(bytes, |it| heard.push((it.offset, it.value.to_vec(), it.is_whole)));
            next.map(|next| (next, heard))
        };
        let (next, records) = heard(&bytes).unwrap();
        assert_eq!(next, Some(4));
        let expected = [&b"one"[..], b"", b"three", &[b'x'; 300]];
        for (record, (offset, value)) in records.iter().zip((0_i64..).zip(expected)) {
            assert_eq!(*record, (offset, value.to_vec(), true));
        }
        assert_eq!(heard(&bytes[..bytes.len() - 1]).unwrap().0, Some(3));
        // After the base offset and the length, which no checksum has; the epoch, which the broker fills in; and the magic.
        for bit in (17 * 8)..whole * 8 {
            let mut other = bytes[..whole].to_vec();
            other[bit / 8] ^= 1 << (bit % 8);
            let told = heard(&other).map(|(_, records)| records);
            assert!(told.is_err() || told.is_ok_and(|it| it.iter().all(|it| !it.2)), "bit {bit}");
        }
    }
}
