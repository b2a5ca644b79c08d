//! The event files of a published digital currency's benchmark, `event_sampler_NAME.bin`: records of 25 bytes, little
//! endian, without a head.
//!
//! ```text
//! 0   event (1)    1  end, nanoseconds since 1970 (8)    9  latency in nanoseconds (8)    17  transactions (8)
//! ```
//!
//! The program that wrote them loses a record at each of its flushes: reading them repairs nothing. What is no record (an
//! event that is not known, a torn end) is left out and counted.

use std::io::{self, Read, Write};

use clock::WallTime;

use crate::ExchangeError;

/// Bytes of a record.
pub const SAMPLER_RECORD_BYTES: usize = 25;

/// The events by their number, with what the plots of the benchmark call them, and with a name for tables and thresholds.
pub const SAMPLER_EVENTS: [(u8, &str, &str); 8] = [
    (1, "receive", "controller.server_handler.tx_notify"),
    (2, "accumulate", "raft_node.tx_notify"),
    (3, "log", "raft_node.send_complete_txs"),
    (4, "apply", "state_machine.tx_notify"),
    (5, "admit", "atomizer.insert_complete.success"),
    (6, "expire", "atomizer.insert_complete.discard.expired"),
    (7, "spent", "atomizer.insert_complete.discard.spent"),
    (8, "block", "atomizer.make_block"),
];

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplerRecord {
    /// The event: a place in [`SAMPLER_EVENTS`].
    pub event: usize,
    /// When it ended.
    pub end: WallTime,
    /// How long it took, nanoseconds; negative where the clock went back.
    pub latency_ns: i64,
    /// Transactions in it.
    pub count: u64,
}

/// What reading a file came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplerNotes {
    /// Records read.
    pub records: u64,
    /// Records of no known event.
    pub unknown: u64,
    /// Bytes behind the last whole record.
    pub torn_bytes: u64,
}

/// Reads a file's records in the order in which they stand; memory does not follow their number.
///
/// # Errors
/// When it cannot be read.
pub fn read_event_sampler(
    name: &str,
    from: &mut dyn Read,
    each: &mut dyn FnMut(SamplerRecord),
) -> Result<SamplerNotes, ExchangeError> {
    let mut notes = SamplerNotes::default();
    let mut buffer = vec![0; SAMPLER_RECORD_BYTES * 4096];
    let mut held = 0;
    loop {
        let count = match from.read(&mut buffer[held..]) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => return Err(ExchangeError::Read { name: name.to_owned(), source }),
        };
        held += count;
        let whole = held - held % SAMPLER_RECORD_BYTES;
        for bytes in buffer[..whole].chunks_exact(SAMPLER_RECORD_BYTES) {
            match record(bytes) {
                Some(record) => {
                    notes.records += 1;
                    each(record);
                }
                None => notes.unknown += 1,
            }
        }
        buffer.copy_within(whole..held, 0);
        held -= whole;
    }
    notes.torn_bytes = held as u64;
    Ok(notes)
}

fn record(bytes: &[u8]) -> Option<SamplerRecord> {
    let event = SAMPLER_EVENTS.iter().position(|(number, ..)| *number == bytes[0])?;
    let word = |from: usize| {
        let word = bytes[from..from + 8].first_chunk::<8>().expect("eight bytes");
        u64::from_le_bytes(*word)
    };
    Some(SamplerRecord {
        event,
        end: WallTime::from_unix_ns(word(1).cast_signed()),
        latency_ns: word(9).cast_signed(),
        count: word(17),
    })
}

/// Writes a record.
///
/// # Errors
/// When it cannot be written.
///
/// # Panics
/// If there is no such event.
pub fn write_event_sampler(of: &SamplerRecord, out: &mut dyn Write) -> Result<(), ExchangeError> {
    let mut bytes = [0; SAMPLER_RECORD_BYTES];
    bytes[0] = SAMPLER_EVENTS[of.event].0;
    bytes[1..9].copy_from_slice(&of.end.unix_ns().to_le_bytes());
    bytes[9..17].copy_from_slice(&of.latency_ns.to_le_bytes());
    bytes[17..].copy_from_slice(&of.count.to_le_bytes());
    out.write_all(&bytes).map_err(ExchangeError::writing)
}

/// Any bytes as such a file: what is read is what is written.
///
/// # Panics
/// When it is not.
pub fn fuzz_event_sampler(bytes: &[u8]) {
    let mut written = Vec::new();
    let mut each = |record: SamplerRecord| {
        write_event_sampler(&record, &mut written).expect("memory takes everything");
    };
    let notes = read_event_sampler("(bytes)", &mut &bytes[..], &mut each).expect("memory is read");
    let known = bytes.chunks_exact(SAMPLER_RECORD_BYTES).filter(|it| (1..=8).contains(&it[0]));
    assert_eq!(written, known.flatten().copied().collect::<Vec<u8>>());
    let count = (notes.records + notes.unknown) as usize * SAMPLER_RECORD_BYTES;
    assert_eq!(count + notes.torn_bytes as usize, bytes.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: records are read as they are laid out on paper, whatever the pieces; what is none is counted.
    #[test]
    fn the_layout() {
        let mut bytes = vec![3];
        bytes.extend_from_slice(&1_645_781_131_000_000_007_i64.to_le_bytes());
        bytes.extend_from_slice(&(-5_i64).to_le_bytes());
        bytes.extend_from_slice(&2_000_u64.to_le_bytes());
        bytes.extend([0; 25]);
        bytes.extend([8; 24]);
        let mut read = Vec::new();
        let notes = read_event_sampler("x", &mut &bytes[..], &mut |it| read.push(it)).unwrap();
        let end = WallTime::from_unix_ns(1_645_781_131_000_000_007);
        assert_eq!(read, [SamplerRecord { event: 2, end, latency_ns: -5, count: 2_000 }]);
        assert_eq!(notes, SamplerNotes { records: 1, unknown: 1, torn_bytes: 24 });
        for length in 0..bytes.len() {
            fuzz_event_sampler(&bytes[..length]);
        }
        let long: Vec<u8> = (0..400_000_u32).map(|n| (n % 11) as u8).collect();
        fuzz_event_sampler(&long);
    }
}
