//! The counts of one reader of samples, carried to another. A count is named once, with what two of it make; by that it is
//! written as bytes, or the bytes of another are added to it.
//!
//! Bytes may be anybody's: what does not fit leaves them broken, which [`Carry::is_whole`] says, and the sum is worth nothing.
//! Numbers are LEB128 (as in DWARF 5, section 7.6), signed ones zigzagged before.

/// The bytes of another, or those that are being made.
#[derive(Debug)]
pub struct Carry<'a> {
    written: Vec<u8>,
    /// The rest of another's; `None`: they are being made.
    rest: Option<&'a [u8]>,
    is_broken: bool,
}

/// A whole number that can be carried.
pub trait Whole: Copy + Default + PartialEq {
    /// As a number that is small where this is.
    fn to_bits(self) -> u128;
    /// Back; `None` where it does not fit.
    fn from_bits(bits: u128) -> Option<Self>;
    /// The sum; `None` where it does not fit.
    fn plus(self, other: Self) -> Option<Self>;
}

macro_rules! unsigned {
    ($($type:ty)*) => {$(
        impl Whole for $type {
            fn to_bits(self) -> u128 {
                self as u128
            }

            fn from_bits(bits: u128) -> Option<Self> {
                Self::try_from(bits).ok()
            }

            fn plus(self, other: Self) -> Option<Self> {
                self.checked_add(other)
            }
        }
    )*};
}

macro_rules! signed {
    ($($type:ty)*) => {$(
        impl Whole for $type {
            fn to_bits(self) -> u128 {
                let wide = i128::from(self);
                ((wide << 1) ^ (wide >> 127)).cast_unsigned()
            }

            fn from_bits(bits: u128) -> Option<Self> {
                let wide = (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed();
                Self::try_from(wide).ok()
            }

            fn plus(self, other: Self) -> Option<Self> {
                self.checked_add(other)
            }
        }
    )*};
}

unsigned!(u8 u16 u32 u64 u128 usize);
signed!(i32 i64 i128);

impl<'a> Carry<'a> {
    /// To make bytes.
    #[must_use]
    pub const fn write() -> Self {
        Self { written: Vec::new(), rest: None, is_broken: false }
    }

    /// To add what another wrote.
    #[must_use]
    pub const fn add(bytes: &'a [u8]) -> Self {
        Self { written: Vec::new(), rest: Some(bytes), is_broken: false }
    }

    /// The bytes that were made.
    #[must_use]
    pub fn written(self) -> Vec<u8> {
        self.written
    }

    /// Whether all that was read fitted, and nothing is left over.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.is_broken && self.rest.is_none_or(<[u8]>::is_empty)
    }

    /// Whether another's are added.
    #[must_use]
    pub const fn is_adding(&self) -> bool {
        self.rest.is_some()
    }

    /// Says that what was read does not fit what it is added to.
    pub const fn is_foreign(&mut self) {
        self.is_broken = true;
    }

    /// A number that is told: mine where bytes are made, the other's where they are read.
    pub fn told<T: Whole>(&mut self, mine: T) -> T {
        if self.rest.is_none() {
            self.put(mine.to_bits());
            return mine;
        }
        let theirs = self.take().and_then(T::from_bits);
        self.is_broken |= theirs.is_none();
        theirs.unwrap_or_default()
    }

    /// A number of which two make another; `None`: they cannot.
    pub fn both<T: Whole>(&mut self, mine: &mut T, make: impl FnOnce(T, T) -> Option<T>) {
        let is_read = self.rest.is_some();
        let theirs = self.told(*mine);
        if is_read && !self.is_broken {
            let made = make(*mine, theirs);
            self.is_broken = made.is_none();
            *mine = made.unwrap_or(*mine);
        }
    }

    /// A count or a sum.
    pub fn sum<T: Whole>(&mut self, mine: &mut T) {
        self.both(mine, T::plus);
    }

    /// A sum that stops at the largest number.
    pub fn saturating<T: Whole>(&mut self, mine: &mut T, most: T) {
        self.both(mine, |mine, theirs| Some(mine.plus(theirs).unwrap_or(most)));
    }

    /// The smallest.
    pub fn min<T: Whole + Ord>(&mut self, mine: &mut T) {
        self.both(mine, |mine, theirs| Some(mine.min(theirs)));
    }

    /// The largest.
    pub fn max<T: Whole + Ord>(&mut self, mine: &mut T) {
        self.both(mine, |mine, theirs| Some(mine.max(theirs)));
    }

    /// Whether any was so.
    pub fn any(&mut self, mine: &mut bool) {
        *mine |= self.told(u8::from(*mine)) != 0;
    }

    /// The first of all; the other is later.
    pub fn first<T: Whole>(&mut self, mine: &mut Option<T>) {
        if self.told(u8::from(mine.is_some())) != 0 {
            let theirs = self.told(mine.unwrap_or_default());
            mine.get_or_insert(theirs);
        }
    }

    /// Does what adds what was just told, where another's is added and has fitted so far.
    pub fn adding(&self, add: impl FnOnce()) {
        if self.rest.is_some() && !self.is_broken {
            add();
        }
    }

    /// How many of something follow, each of at least a byte: mine or the other's, at most `most`.
    pub fn length(&mut self, mine: usize, most: usize) -> usize {
        let told = self.told(mine);
        let is_possible = self.rest.is_none_or(|rest| told <= rest.len()) && told <= most;
        self.is_broken |= !is_possible;
        if is_possible { told } else { 0 }
    }

    /// Places of a list that something stands at, ascending: mine or the other's, all below `most`.
    pub fn places(&mut self, mine: impl Iterator<Item = usize>, most: usize) -> Vec<usize> {
        let mine: Vec<usize> = if self.rest.is_none() { mine.collect() } else { Vec::new() };
        let count = self.length(mine.len(), most);
        let mut places = Vec::with_capacity(count);
        for at in 0..count {
            let place = self.told(mine.get(at).copied().unwrap_or_default());
            self.is_broken |= place >= most;
            if self.is_broken {
                return Vec::new();
            }
            places.push(place);
        }
        places
    }

    /// Numbers that stand in equal places of equally long lists, of which many may be zero; how two add is said.
    pub fn each<T: Whole>(&mut self, mine: &mut [T], make: impl Fn(T, T) -> Option<T>) {
        if self.rest.is_none() {
            let mut zeros = 0_usize;
            for value in mine.iter() {
                if *value == T::default() {
                    zeros += 1;
                } else {
                    self.put(zeros.to_bits());
                    self.put(value.to_bits());
                    zeros = 0;
                }
            }
            self.put(zeros.to_bits());
            return;
        }
        let mut at = 0_usize;
        loop {
            at = at.saturating_add(self.told(0));
            if at == mine.len() || self.is_broken {
                return;
            }
            let Some(mine) = mine.get_mut(at) else {
                self.is_broken = true;
                return;
            };
            self.both(mine, &make);
            at += 1;
        }
    }

    /// Counts that stand in equal places of equally long lists.
    pub fn sums<T: Whole>(&mut self, mine: &mut [T]) {
        self.each(mine, T::plus);
    }

    /// The same of a list that grows as long as the longer, at most `most`.
    pub fn growing<T: Whole>(&mut self, mine: &mut Vec<T>, most: usize) {
        // A run of zeros is one number, however long.
        let length = self.told(mine.len());
        self.is_broken |= length > most;
        if self.is_broken {
            return;
        }
        if length > mine.len() {
            mine.resize(length, T::default());
        }
        self.sums(&mut mine[..length]);
    }

    /// Bytes of a fixed number, in runs of equal ones: mine or the other's.
    pub fn runs(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_broken {
            let first = rest[0];
            let run = rest.iter().take_while(|byte| **byte == first).count();
            let (run, byte) = (self.told(run), self.told(first));
            self.is_broken |= run == 0 || run > rest.len();
            if self.is_broken {
                return;
            }
            let (now, later) = rest.split_at_mut(run);
            now.fill(byte);
            rest = later;
        }
    }

    fn put(&mut self, mut bits: u128) {
        while bits > 0x7f {
            self.written.push(bits.to_le_bytes()[0] | 0x80);
            bits >>= 7;
        }
        self.written.push(bits.to_le_bytes()[0]);
    }

    fn take(&mut self) -> Option<u128> {
        let rest = self.rest.as_mut()?;
        let mut bits = 0_u128;
        for shift in (0..128).step_by(7) {
            let (byte, later) = rest.split_first()?;
            *rest = later;
            let part = u128::from(byte & 0x7f);
            // The last of nineteen bytes has room for two bits.
            if part.checked_shl(shift).is_none_or(|shifted| shifted >> shift != part) {
                return None;
            }
            bits |= part << shift;
            if byte & 0x80 == 0 {
                return Some(bits);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BucketCounts, Histogram, SparseHistogram, TimedHistogram};

    fn round<T: Whole + std::fmt::Debug>(value: T) {
        let mut out = Carry::write();
        out.told(value);
        let bytes = out.written();
        let mut back = Carry::add(&bytes);
        assert_eq!(back.told(T::default()), value);
        assert!(back.is_whole());
    }

    /// Claim: every number comes back, at the edges of its type.
    #[test]
    fn numbers_come_back() {
        [0, 1, 127, 128, 300, u128::MAX - 1, u128::MAX].into_iter().for_each(round);
        [0, 1, -1, 63, -64, 64, i128::MAX, i128::MIN].into_iter().for_each(round);
        [0, -1, i64::MAX, i64::MIN].into_iter().for_each(round);
        [0, u64::MAX].into_iter().for_each(round);
    }

    /// Claim: histograms of two readers that are added are those of one that saw all, whatever the samples.
    #[test]
    fn two_are_one() {
        let samples: Vec<i64> = (0..4_000_i64)
            .map(|n| match n % 7 {
                0 => -n,
                1 => i64::MAX - n,
                _ => n.pow(3) * 1_000 + 17,
            })
            .collect();
        let counted = |samples: &[i64]| {
            let mut all = (Histogram::default(), SparseHistogram::default());
            let mut others = (TimedHistogram::new(5), BucketCounts::default());
            for (at, sample) in samples.iter().enumerate() {
                all.0.record(*sample);
                all.1.record(*sample);
                others.0.record(at % 6, *sample);
                others.1.record(*sample);
            }
            (all, others)
        };
        let (first, second) = samples.split_at(1_200);
        let carried = |((a, b), (c, d)): &mut (
            (Histogram, SparseHistogram),
            (TimedHistogram, BucketCounts),
        ),
                       it: &mut Carry<'_>| {
            a.carry(it);
            b.carry(it);
            c.carry(it);
            d.carry(it);
        };
        let (mut mine, mut theirs) = (counted(first), counted(second));
        let mut out = Carry::write();
        carried(&mut theirs, &mut out);
        let bytes = out.written();
        let mut back = Carry::add(&bytes);
        carried(&mut mine, &mut back);
        assert!(back.is_whole());
        assert_eq!(format!("{mine:?}"), format!("{:?}", counted(&samples)));
        // Bytes that are cut off or too long are never taken for whole.
        for bytes in [&bytes[..bytes.len() - 1], &[bytes.as_slice(), &[0]].concat()] {
            let mut back = Carry::add(bytes);
            carried(&mut counted(first), &mut back);
            assert!(!back.is_whole());
        }
    }

    /// Claim: bytes of which one is another make no panic, and reserve no memory that they do not fill.
    #[test]
    fn broken_bytes_are_said_to_be() {
        let mut out = Carry::write();
        let mut histogram = Histogram::default();
        (0..500).for_each(|n| histogram.record(n * n));
        histogram.carry(&mut out);
        out.runs(&mut [7; 100]);
        out.places([1, 5, 9].into_iter(), 10);
        let bytes = out.written();
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let mut back = Carry::add(&bytes);
                histogram.clone().carry(&mut back);
                back.runs(&mut [0; 100]);
                assert!(back.places([].into_iter(), 10).iter().all(|place| *place < 10));
            }
        }
        let mut long = Carry::add(&[0xff, 0xff, 0xff, 0xff, 0x7f]);
        assert_eq!(long.length(0, usize::MAX), 0);
        assert!(!long.is_whole());
    }
}
