//! How records lie in a segment of a log, and which of them a reader may believe. Pure: bytes in, bytes out; the
//! simulator's disks use the same.
//!
//! A segment is a [`Header`] of [`HEADER_BYTES`] and records behind it, each at a multiple of eight:
//!
//! ```text
//! header: magic (8) │ sequence u64 │ first u64 │ stamp u32 │ CRC-32 of these u32 │ next stamp u32 │ CRC-32 of these u32 │ zeros to 64
//! record: CRC-32 of all behind it u32 │ length u32 │ number u64 │ behind u32 │ stamp u32 │ bytes │ zeros to 8
//! ```
//!
//! All numbers are little-endian. The stamp is drawn at random for each segment and never leaves the node, so that neither what its
//! file held in an earlier life nor what a client hides in the bytes of a record is ever taken for its own; the segment
//! before says which one it will be, so that this holds of a segment whose own header is lost, too. `behind` is how many records before this one were not yet durable
//! when this one was written: a record behind a broken one that says that the broken one was durable proves that
//! something durable was lost. Without such a proof the broken one is the torn end of a write that was never acknowledged.

use std::ops::Range;

/// Bytes of a segment's header.
pub const HEADER_BYTES: usize = 64;
/// Bytes before each record's own.
pub const RECORD_HEADER_BYTES: usize = 24;

const MAGIC: [u8; 8] = *b"records\x01";
/// Bytes of the header that its checksum covers, and that of the next stamp.
const COVERED_BYTES: usize = 28;
const NEXT_COVERED_BYTES: usize = 36;

/// What stands at the beginning of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The segment's place among those of its log.
    pub sequence: u64,
    /// The number of its first record.
    pub first: u64,
    /// What its records carry. Not zero.
    pub stamp: u32,
    /// The stamp of the next segment; 0: not known, as in logs of earlier versions.
    pub next_stamp: u32,
}

/// The records of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Where the bytes of each lie, in order.
    pub records: Vec<Range<usize>>,
    /// The number that the next would have.
    pub next: u64,
    /// Where the last one ends: whatever lies behind it is nothing.
    pub end: usize,
}

/// A record that was durable and is not to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where it begins.
    pub offset: usize,
    /// Its number.
    pub number: u64,
}

/// Bytes that a record of `length` bytes takes.
#[must_use]
pub const fn record_bytes(length: usize) -> usize {
    (RECORD_HEADER_BYTES + length).next_multiple_of(8)
}

/// Adds a header to `out`.
pub fn write_header(header: &Header, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&header.sequence.to_le_bytes());
    out.extend_from_slice(&header.first.to_le_bytes());
    out.extend_from_slice(&header.stamp.to_le_bytes());
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&header.next_stamp.to_le_bytes());
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.resize(start + HEADER_BYTES, 0);
}

/// The header that the bytes begin with, if all of it is there.
#[must_use]
pub fn read_header(bytes: &[u8]) -> Option<Header> {
    let covered = bytes.get(..HEADER_BYTES)?.get(..COVERED_BYTES)?;
    let is_whole =
        covered[..8] == MAGIC && u32_at(bytes, COVERED_BYTES)? == crc32fast::hash(covered);
    let is_next_known =
        u32_at(bytes, NEXT_COVERED_BYTES)? == crc32fast::hash(&bytes[..NEXT_COVERED_BYTES]);
    let header = Header {
        sequence: u64_at(bytes, 8)?,
        first: u64_at(bytes, 16)?,
        stamp: u32_at(bytes, 24)?,
        next_stamp: if is_next_known { u32_at(bytes, 32)? } else { 0 },
    };
    is_whole.then_some(header)
}

/// Adds a record to `out`. `durable` is the first number that is not known to be durable as this is written.
///
/// # Panics
/// If the record has 4 GiB or more.
pub fn write_record(stamp: u32, number: u64, durable: u64, record: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let length = u32::try_from(record.len()).expect("a record is shorter than a segment");
    // One too many to say is said as more than there are: a weaker proof, never a wrong one.
    let behind = u32::try_from(number.saturating_sub(durable)).unwrap_or(u32::MAX);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&behind.to_le_bytes());
    out.extend_from_slice(&stamp.to_le_bytes());
    out.extend_from_slice(record);
    let checksum = crc32fast::hash(&out[start + 4..]);
    out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
    out.resize(start + record_bytes(record.len()), 0);
}

/// The records of a segment up to the first that is not whole.
///
/// # Errors
/// When that one was durable: a torn end may be cut, and a hole in the middle may not.
pub fn scan(bytes: &[u8], header: &Header) -> Result<Scan, Broken> {
    let mut scan = Scan { records: Vec::new(), next: header.first, end: HEADER_BYTES };
    while let Some(record) = read_record(bytes, scan.end) {
        if record.stamp != header.stamp || record.number != scan.next {
            break;
        }
        // The last number there is is never given.
        let Some(next) = scan.next.checked_add(1) else { break };
        scan.end = bytes.len().min(record.bytes.end.next_multiple_of(8));
        scan.records.push(record.bytes);
        scan.next = next;
    }
    if was_durable(bytes, scan.end, scan.next, Some(header.stamp)) {
        return Err(Broken { offset: scan.end, number: scan.next });
    }
    Ok(scan)
}

/// Whether a whole record at or behind `from`, with this stamp or, without one, with any, says that the one with `number` was
/// durable when it was written.
#[must_use]
pub fn was_durable(bytes: &[u8], from: usize, number: u64, stamp: Option<u32>) -> bool {
    let mut at = from.next_multiple_of(8);
    while at + RECORD_HEADER_BYTES <= bytes.len() {
        // Zeros, as most of what nothing was written to, are no record: a stamp is never zero.
        let is_candidate = u32_at(bytes, at + 20)
            .is_some_and(|found| stamp.map_or(found != 0, |stamp| found == stamp))
            && u64_at(bytes, at + 8).is_some_and(|claimed| claimed > number);
        if is_candidate && read_record(bytes, at).is_some_and(|record| record.durable > number) {
            return true;
        }
        at += 8;
    }
    false
}

/// True if any whole record has this stamp.
#[must_use]
pub fn holds_stamp(bytes: &[u8], stamp: u32) -> bool {
    (HEADER_BYTES..bytes.len())
        .step_by(8)
        .any(|at| u32_at(bytes, at + 20) == Some(stamp) && read_record(bytes, at).is_some())
}

struct Record {
    number: u64,
    durable: u64,
    stamp: u32,
    bytes: Range<usize>,
}

fn read_record(bytes: &[u8], at: usize) -> Option<Record> {
    let checksum = u32_at(bytes, at)?;
    let length = usize::try_from(u32_at(bytes, at + 4)?).ok()?;
    let number = u64_at(bytes, at + 8)?;
    let behind = u32_at(bytes, at + 16)?;
    let stamp = u32_at(bytes, at + 20)?;
    let start = at + RECORD_HEADER_BYTES;
    let end = start.checked_add(length).filter(|end| *end <= bytes.len())?;
    let is_whole = stamp != 0 && checksum == crc32fast::hash(&bytes[at + 4..end]);
    let durable = number.saturating_sub(u64::from(behind));
    is_whole.then_some(Record { number, durable, stamp, bytes: start..end })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { sequence: 3, first: 100, stamp: 0x5EED, next_stamp: 0xBED };

    /// Records of lengths 0, 7, 14, … written two at a time, each two durable before the next; and where each ends.
    fn segment(count: u64) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        write_header(&HEADER, &mut bytes);
        let ends = (0..count).map(|index| {
            let record = vec![b'r'; usize::try_from(index * 7).unwrap()];
            write_record(HEADER.stamp, 100 + index, 100 + index / 2 * 2, &record, &mut bytes);
            bytes.len()
        });
        let ends = ends.collect();
        (bytes, ends)
    }

    /// Claim: what was written is read, whatever zeros or stale records of another stamp stand behind it.
    #[test]
    fn there_and_back() {
        let (mut bytes, ends) = segment(9);
        assert_eq!(read_header(&bytes), Some(HEADER));
        let alone = scan(&bytes, &HEADER).unwrap();
        assert_eq!((alone.records.len(), alone.next, alone.end), (9, 109, ends[8]));
        assert_eq!(bytes[alone.records[2].clone()], [b'r'; 14]);
        bytes.resize(bytes.len() + 100, 0);
        assert_eq!(scan(&bytes, &HEADER).unwrap(), alone);
        // Its number is the very one that would come next, and it is whole; it is of an earlier life.
        bytes.truncate(ends[8]);
        write_record(HEADER.stamp + 1, 109, 109, b"stale", &mut bytes);
        assert_eq!(scan(&bytes, &HEADER).unwrap(), alone);
    }

    /// Claim: cut at any byte, and with any byte of the last write wrong, a segment holds exactly the records
    /// before; no reader panics and none is refused, because that write was never acknowledged.
    #[test]
    fn a_torn_end_is_cut() {
        let (bytes, ends) = segment(8);
        for cut in HEADER_BYTES..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            // The last record may lack some of the zeros behind it.
            let found = scan(&bytes[..cut], &HEADER).unwrap().records.len();
            assert!(found == whole || found == whole + 1 && cut + 8 > ends[whole], "{cut}");
        }
        for at in ends[5]..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x40;
            let found = scan(&wrong, &HEADER).unwrap().records.len();
            assert!((6..=8).contains(&found), "{at}: {found}");
            let is_padding = found == 8;
            assert!(!is_padding || at >= ends[6] - 8, "{at}");
        }
    }

    /// Claim: what a client has written, which may itself be a whole record that tells of durable ones, proves nothing: not in
    /// a torn record, and not in what an earlier life of the file left.
    #[test]
    fn a_record_within_a_record() {
        let (mut bytes, ends) = segment(8);
        let mut forged = Vec::new();
        for stamp in 1..9 {
            write_record(stamp, u64::MAX - 1, u64::MAX - 1, b"all is lost", &mut forged);
        }
        let torn_at = bytes.len() + 5;
        write_record(HEADER.stamp, 108, 108, &forged, &mut bytes);
        assert_eq!(scan(&bytes, &HEADER).unwrap().next, 109);
        bytes[torn_at] ^= 1;
        let found = scan(&bytes, &HEADER).unwrap();
        assert_eq!((found.next, found.end), (108, ends[7]));
    }

    /// Claim: any byte wrong in a record that a later write knew to be durable is told with its place and
    /// number, and not cut; also where its length is what is wrong.
    #[test]
    fn a_hole_is_refused() {
        let (bytes, ends) = segment(8);
        for at in HEADER_BYTES..ends[5] {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x81;
            let hit = ends.iter().filter(|end| **end <= at).count();
            let offset = if hit == 0 { HEADER_BYTES } else { ends[hit - 1] };
            match scan(&wrong, &HEADER) {
                Err(broken) => {
                    assert_eq!(
                        broken,
                        Broken { offset, number: 100 + u64::try_from(hit).unwrap() }
                    );
                }
                // The zeros between records belong to no record.
                Ok(scan) => assert!(scan.records.len() == 8 && at + 8 > ends[hit], "{at}"),
            }
        }
    }

    /// Claim: a header with any byte wrong is none; one without a next stamp, as earlier versions wrote it, or with a wrong one
    /// is one that knows none.
    #[test]
    fn headers() {
        let (bytes, _) = segment(0);
        let mut earlier = bytes.clone();
        earlier[32..40].fill(0);
        assert_eq!(read_header(&earlier), Some(Header { next_stamp: 0, ..HEADER }));
        for at in 32..40 {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(read_header(&wrong), Some(Header { next_stamp: 0, ..HEADER }), "{at}");
        }
        for at in 0..32 {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(read_header(&wrong), None, "{at}");
        }
        for cut in 0..HEADER_BYTES {
            assert_eq!(read_header(&bytes[..cut]), None, "{cut}");
        }
    }
}
