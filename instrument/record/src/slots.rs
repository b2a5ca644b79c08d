//! Counts by slot of an HdrHistogram with three digits: what latency.hlog and stages.parquet hold of a second. It knows
//! the layout, not the files.

use std::collections::BTreeMap;

/// Counts of one second and series by slot of an HdrHistogram: an array around where most values are, which
/// may grow as values come in, and a map for those far off. So memory follows the number of values, whatever
/// they are, and the usual value costs one addition.
#[derive(Debug, Default)]
pub struct Counts {
    /// Values counted.
    pub total: usize,
    first: usize,
    near: Vec<u32>,
    far: BTreeMap<usize, u32>,
}

impl Counts {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.add_slot(slot_of(value));
    }

    /// Counts a value of this slot.
    #[inline]
    pub fn add_slot(&mut self, slot: usize) {
        self.total += 1;
        let near_max = 64 + 16 * self.total;
        if self.near.is_empty() {
            self.first = slot;
        }
        let end = self.first + self.near.len();
        if slot < self.first && end - slot <= near_max {
            let more = self.first - slot;
            self.near.splice(0..0, std::iter::repeat_n(0, more));
            self.first = slot;
        } else if slot >= end && slot - self.first < near_max {
            self.near.resize(slot - self.first + 1, 0);
        }
        let near = slot.checked_sub(self.first).and_then(|index| self.near.get_mut(index));
        let count = near.unwrap_or_else(|| self.far.entry(slot).or_default());
        *count = count.saturating_add(1);
    }

    /// Slots with their counts. Those far off come last, and one of them may stand among the near ones, too.
    pub fn slots(&self) -> impl Iterator<Item = (usize, u32)> {
        let near = self.near.iter().enumerate().map(|(index, count)| (self.first + index, *count));
        let far = self.far.iter().map(|(slot, count)| (*slot, *count));
        near.chain(far).filter(|(_, count)| *count > 0)
    }
}

/// Slots with the same precision as HdrHistogram's for three digits: 2,048 of width 1, then 1,024 for each
/// doubling (G. Tene's layout, with the lowest value 1).
pub fn slot_of(value: u64) -> usize {
    let bucket = (u64::BITS - (value | 2047).leading_zeros()) as usize - 11;
    let within = usize::try_from(value >> bucket).expect("below 2,048");
    bucket * 1024 + within
}

/// The lowest value of a slot.
pub fn value_of(slot: usize) -> u64 {
    if slot < 2048 {
        return slot as u64;
    }
    let bucket = slot / 1024 - 1;
    ((slot - bucket * 1024) as u64) << bucket
}

/// The highest value of a slot.
pub fn highest_of(slot: usize) -> u64 {
    value_of(slot + 1) - 1
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;

    /// Claim: a slot's lowest value falls into that slot, slots ascend, and HdrHistogram puts two values
    /// into one slot exactly where this file does.
    #[test]
    fn slots_are_those_of_the_library() {
        let histogram = Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, 3).unwrap();
        let mut rng = model::Seed(7).rng();
        for _ in 0..200_000 {
            let value = rng.next_u64() >> rng.below(63).max(1);
            let lowest = value_of(slot_of(value));
            assert_eq!(slot_of(lowest), slot_of(value));
            assert_eq!(histogram.lowest_equivalent(value), lowest, "{value}");
        }
        for slot in 0..50_000 {
            assert_eq!(slot_of(value_of(slot)), slot);
        }
    }
}
