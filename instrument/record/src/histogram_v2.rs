//! HdrHistogram's V2 encoding of a histogram with three digits, as stages.parquet holds it (HdrHistogram's
//! `AbstractHistogram.encodeIntoByteBuffer`): a header of 40 bytes and counts as zig-zag LEB128, a negative count
//! standing for so many empty slots. Every HdrHistogram library reads it and adds it to others.
//!
//! Not the `hdrhistogram` crate's own: that one takes an array of all slots to write, and to read whatever memory the
//! bytes ask for. Here nothing is taken but what the counts need.

use crate::slots::{highest_of, slot_of};

/// The cookie of the V2 encoding; the second nibble is the width of counts in memory, which matters to nobody.
const COOKIE: u32 = 0x1c84_9313;
const WORD_BITS: u32 = 0xf0;
const HEADER_BYTES: usize = 40;
const DIGITS: u32 = 3;
/// One more than the last slot of a value that fits 63 bits.
const SLOTS_END: u64 = (63 - 11 + 2) * 1024;

/// Appends the encoding of counts by slot to `out`. `slots` is left sorted, with each slot once.
pub fn write(slots: &mut Vec<(usize, u64)>, out: &mut Vec<u8>) {
    slots.sort_unstable_by_key(|(slot, _)| *slot);
    slots.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        kept.1 = if is_same { kept.1.saturating_add(next.1) } else { kept.1 };
        is_same
    });
    let start = out.len();
    // A library refuses a range of less than one doubling.
    let highest = slots.last().map_or(2, |(slot, _)| highest_of(*slot)).max(2);
    out.extend_from_slice(&COOKIE.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&DIGITS.to_be_bytes());
    out.extend_from_slice(&1_u64.to_be_bytes());
    out.extend_from_slice(&highest.to_be_bytes());
    out.extend_from_slice(&1_f64.to_be_bytes());
    let mut next = 0;
    for (slot, count) in slots.iter() {
        let empty = i64::try_from(slot - next).expect("there are 55,296 slots");
        match empty {
            0 => {}
            // One empty slot is a count of zero; only longer runs are counted.
            1 => push_number(0, out),
            _ => push_number(-empty, out),
        }
        push_number(i64::try_from(*count).unwrap_or(i64::MAX), out);
        next = slot + 1;
    }
    let payload = u32::try_from(out.len() - start - HEADER_BYTES).expect("slots times nine bytes");
    out[start + 4..start + 8].copy_from_slice(&payload.to_be_bytes());
}

/// Reads an encoding into `counts`, which is emptied first: highest value of a slot and its count, ascending. Gives the
/// sum of the counts.
pub fn read(bytes: &[u8], counts: &mut Vec<(i64, u64)>) -> Result<u64, &'static str> {
    counts.clear();
    let word = |at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let (Some(cookie), Some(payload), Some(offset), Some(digits)) =
        (word(0), word(4), word(8), word(12))
    else {
        return Err("a histogram is cut off");
    };
    let lowest = bytes.get(16..24);
    if cookie & !WORD_BITS != COOKIE & !WORD_BITS || digits != DIGITS || offset != 0 {
        return Err("a histogram is not in the V2 encoding with three digits");
    }
    if lowest != Some(&1_u64.to_be_bytes()) || bytes.len() < HEADER_BYTES {
        return Err("a histogram's header makes no sense");
    }
    let mut rest = &bytes[HEADER_BYTES..];
    if u64::from(payload) != rest.len() as u64 {
        return Err("a histogram is not as long as it says");
    }
    let (mut slot, mut total) = (0_u64, 0_u64);
    while let Some(number) = next_number(&mut rest)? {
        let Ok(count) = u64::try_from(number) else {
            slot = slot.saturating_add(number.unsigned_abs());
            continue;
        };
        if count > 0 {
            if slot >= SLOTS_END {
                return Err("a slot of a histogram is out of range");
            }
            let slot = usize::try_from(slot).expect("below SLOTS_END");
            let highest = i64::try_from(highest_of(slot)).unwrap_or(i64::MAX);
            counts.push((highest, count));
            total = total.checked_add(count).ok_or("the counts of a histogram overflow")?;
        }
        slot = slot.saturating_add(1);
    }
    Ok(total)
}

/// The slot of a length of time; what is longer than 292 years counts as that.
pub fn slot_of_length(ns: u64) -> usize {
    slot_of(ns.min(i64::MAX.unsigned_abs()))
}

/// Zig-zag LEB128 in at most nine bytes, the ninth with all its eight bits.
fn push_number(number: i64, out: &mut Vec<u8>) {
    let mut rest = (number << 1 ^ number >> 63).cast_unsigned();
    for _ in 0..8 {
        let low = u8::try_from(rest & 0x7f).expect("seven bits");
        rest >>= 7;
        if rest == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
    out.push(u8::try_from(rest).expect("64 bits less 56"));
}

/// The next number of the V2 encoding's counts: zig-zag LEB128 of at most nine bytes, the ninth with all its eight bits. `None`
/// at the end.
///
/// # Errors
/// When the last number is cut off.
pub fn next_number(payload: &mut &[u8]) -> Result<Option<i64>, &'static str> {
    if payload.is_empty() {
        return Ok(None);
    }
    let (mut number, mut shift) = (0_u64, 0);
    let mut rest = payload.iter();
    loop {
        let byte = *rest.next().ok_or("the counts of a histogram are cut off")?;
        let is_last = shift == 56;
        number |= u64::from(if is_last { byte } else { byte & 0x7f }) << shift;
        shift += 7;
        if is_last || byte & 0x80 == 0 {
            break;
        }
    }
    *payload = rest.as_slice();
    Ok(Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed()))
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;

    use super::*;

    fn encoded(values: &[(u64, u64)]) -> Vec<u8> {
        let mut slots: Vec<_> =
            values.iter().map(|(value, count)| (slot_of_length(*value), *count)).collect();
        let mut bytes = Vec::new();
        write(&mut slots, &mut bytes);
        bytes
    }

    /// Claim: the library reads what is written here, and this reads it back: every count in its slot.
    #[test]
    fn the_library_reads_it() {
        let mut rng = model::Seed(3).rng();
        for round in 0..200 {
            let values: Vec<(u64, u64)> = (0..rng.below(300))
                .map(|_| {
                    let shift = 1 + rng.below(if round % 10 == 0 { 63 } else { 40 });
                    let width = rng.below(40);
                    (rng.next_u64() >> shift, 1 + rng.below(1 << width))
                })
                .collect();
            let bytes = encoded(&values);
            let histogram: Histogram<u64> =
                Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            let theirs: Vec<(i64, u64)> = histogram
                .iter_recorded()
                .map(|step| (step.value_iterated_to().cast_signed(), step.count_at_value()))
                .collect();
            let mut ours = Vec::new();
            let total = read(&bytes, &mut ours).unwrap();
            assert_eq!(ours, theirs);
            assert_eq!(total, values.iter().map(|(_, count)| count).sum::<u64>());
        }
    }

    /// Claim: bytes that are damaged anywhere are read or refused, and never more; a cut is always refused.
    #[test]
    fn damage() {
        let values: Vec<(u64, u64)> = (0..100).map(|value| (value * value * 999, value)).collect();
        let bytes = encoded(&values);
        let (mut rng, mut refused, mut counts) = (model::Seed(5).rng(), 0, Vec::new());
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            let at = usize::try_from(rng.below(damaged.len() as u64)).unwrap();
            damaged[at] ^= 1 << rng.below(8);
            refused += u32::from(read(&damaged, &mut counts).is_err());
            assert!(read(&bytes[..at], &mut counts).is_err());
        }
        assert!(refused > 1000, "{refused}");
        // -2^63 empty slots, thrice, and a count after them.
        let mut endless = bytes[..HEADER_BYTES].to_vec();
        endless[4..8].copy_from_slice(&28_u32.to_be_bytes());
        endless.extend_from_slice(&[0xff; 27]);
        endless.push(2);
        assert_eq!(read(&endless, &mut counts), Err("a slot of a histogram is out of range"));
    }
}
