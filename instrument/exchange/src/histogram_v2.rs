//! HdrHistogram's V2 encoding, read (HdrHistogram's `AbstractHistogram.encodeIntoByteBuffer`): a deflated
//! header of 40 bytes and counts as zig-zag LEB128, a negative count standing for so many empty slots. The
//! `hdrhistogram` crate reads it too, but takes the memory that the bytes ask for.

use std::collections::BTreeMap;
use std::io::Read as _;

use record::next_histogram_number;

const COMPRESSED_COOKIE: u32 = 0x1c84_9304;
const COOKIE: u32 = 0x1c84_9303;
/// The bits of a cookie that say how wide counts were in memory; it does not matter to a reader.
const WORD_BITS: u32 = 0xf0;
/// The longest inflated histogram: 9 bytes for each slot of five digits and 64 bits are 50 MB, of which no
/// latency comes near; three digits take 500 kB at worst.
const INFLATED_BYTES_MAX: u64 = 16 << 20;
const HEADER_BYTES: usize = 40;

/// Counts of one histogram or several.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// By the highest value of a slot.
    pub(crate) by_highest: BTreeMap<i64, u64>,
    /// Sum and sum of squares of the middle of each sample's slot, which is how HdrHistogram computes moments.
    pub(crate) sum: f64,
    pub(crate) squares: f64,
}

/// Adds the counts of a deflated histogram.
pub(crate) fn add(bytes: &[u8], counts: &mut Counted) -> Result<(), String> {
    let word = |bytes: &[u8], at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let cut = || "the histogram is cut off".to_owned();
    let cookie = word(bytes, 0).ok_or_else(cut)?;
    if cookie & !WORD_BITS != COMPRESSED_COOKIE & !WORD_BITS {
        return Err(
            "the histogram is not in the V2 encoding; write the log with a current HdrHistogram"
                .to_owned(),
        );
    }
    let mut inflated = Vec::new();
    flate2::read::ZlibDecoder::new(bytes.get(8..).ok_or_else(cut)?)
        .take(INFLATED_BYTES_MAX + 1)
        .read_to_end(&mut inflated)
        .map_err(|error| format!("the histogram cannot be inflated: {error}"))?;
    if inflated.len() as u64 > INFLATED_BYTES_MAX {
        return Err(format!("the histogram is larger than {} MiB", INFLATED_BYTES_MAX >> 20));
    }
    if word(&inflated, 0).ok_or_else(cut)? & !WORD_BITS != COOKIE & !WORD_BITS {
        return Err("what was inflated is not a histogram in the V2 encoding".to_owned());
    }
    let payload_bytes = usize::try_from(word(&inflated, 4).ok_or_else(cut)?).map_err(|_| cut())?;
    let slots = Slots {
        digits: word(&inflated, 12).ok_or_else(cut)?,
        lowest: u64::from_be_bytes(
            inflated.get(16..24).and_then(|b| b.try_into().ok()).ok_or_else(cut)?,
        ),
    };
    let end = HEADER_BYTES.checked_add(payload_bytes).ok_or_else(cut)?;
    slots.add(inflated.get(HEADER_BYTES..end).ok_or_else(cut)?, counts)
}

impl Counted {
    #[expect(clippy::cast_precision_loss, reason = "for people and plots")]
    fn add_moments(&mut self, low: i64, high: i64, count: u64) {
        let middle = (low + (high - low).cast_unsigned().div_ceil(2).cast_signed()) as f64;
        self.sum += middle * count as f64;
        self.squares += middle * middle * count as f64;
    }
}

/// How values are divided into slots.
struct Slots {
    digits: u32,
    lowest: u64,
}

impl Slots {
    fn add(&self, mut payload: &[u8], counts: &mut Counted) -> Result<(), String> {
        if self.digits > 5 || self.lowest == 0 {
            return Err("the histogram's header makes no sense".to_owned());
        }
        let mut index = 0_u64;
        while let Some(count) = next_histogram_number(&mut payload)? {
            match u64::try_from(count) {
                // Empty slots may lead anywhere; one that is counted out there is refused.
                Ok(0) => index = index.saturating_add(1),
                Ok(count) => {
                    let (low, high) =
                        self.slot(index).ok_or("a slot of the histogram is out of range")?;
                    counts.add_moments(low, high, count);
                    let sum = counts.by_highest.entry(high).or_default();
                    *sum = sum.checked_add(count).ok_or("the counts of the histogram overflow")?;
                    index += 1;
                }
                Err(_) => index = index.saturating_add(count.unsigned_abs()),
            }
        }
        Ok(())
    }

    /// The lowest and the highest value of a slot.
    fn slot(&self, index: u64) -> Option<(i64, i64)> {
        let unit = self.lowest.ilog2();
        let sub_buckets = (2 * 10_u64.pow(self.digits)).next_power_of_two();
        let half = sub_buckets / 2;
        let bucket = index >> half.ilog2();
        let within = index & (half - 1);
        let (shift, sub) = if bucket == 0 { (0, within) } else { (bucket - 1, within + half) };
        let shift = u32::try_from(shift).ok()?.checked_add(unit)?;
        if shift > 63 - sub_buckets.ilog2() {
            return None;
        }
        let low = i64::try_from(sub << shift).ok()?;
        Some((low, low + ((1 << shift) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

    /// Claim: counts come back as the library wrote them, for every precision, whatever the values.
    #[test]
    fn counts_of_the_library() {
        let mut rng = model::Seed(3).rng();
        for digits in 1..=5 {
            let mut histogram = Histogram::<u64>::new(digits).unwrap();
            for _ in 0..5000 {
                let value = rng.next_u64() >> (8 + rng.below(50));
                histogram.record_n(value, 1 + rng.below(1000)).unwrap();
            }
            let mut bytes = Vec::new();
            V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
            let mut counted = Counted::default();
            add(&bytes, &mut counted).unwrap();
            let expected: BTreeMap<i64, u64> = histogram
                .iter_recorded()
                .map(|step| (step.value_iterated_to().cast_signed(), step.count_at_value()))
                .collect();
            assert_eq!(counted.by_highest, expected, "{digits} digits");
            let mean = counted.sum / counted.by_highest.values().sum::<u64>() as f64;
            assert!((mean / histogram.mean() - 1.0).abs() < 1e-9, "{digits} digits");
        }
    }

    /// Claim: counts that skip more slots than numbers have are read over or refused.
    #[test]
    fn endless_skips() {
        let slots = Slots { digits: 3, lowest: 1 };
        // -2^63 empty slots, thrice, in nine bytes each.
        let skips = [0xff; 27];
        let with = |last: u8| [&skips[..], &[last]].concat();
        assert_eq!(slots.add(&with(0), &mut Counted::default()), Ok(()));
        assert!(slots.add(&with(2), &mut Counted::default()).is_err());
        // As many buckets as a shift has numbers: 2^42 slots, 1,024 in each.
        let (far, unit) = (1_u64 << 42, Slots { digits: 3, lowest: 1 << 40 });
        assert!(slots.slot(far).is_none() && slots.slot(far - 1).is_none());
        assert!(unit.slot(far).is_none() && unit.slot(1 << 14).is_none());
    }

    /// Claim: bytes that are damaged anywhere are read or refused, and never more.
    #[test]
    fn damage() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        (0..100_u64).for_each(|value| histogram.record(value * value * 999).unwrap());
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&histogram, &mut bytes).unwrap();
        let (mut rng, mut refused) = (model::Seed(5).rng(), 0);
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            let at = usize::try_from(rng.below(damaged.len() as u64)).unwrap();
            damaged[at] ^= 1 << rng.below(8);
            if rng.below(4) == 0 {
                damaged.truncate(at);
            }
            refused += u32::from(add(&damaged, &mut Counted::default()).is_err());
        }
        assert!(refused > 1000, "{refused}");
    }
}
