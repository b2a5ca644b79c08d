//! The one source of chance.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Numbers drawn from a seed.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The numbers of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`; 0 where there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.any()) * u128::from(end);
        u64::try_from(wide >> 64).expect("the upper half of a product of 64 bits")
    }

    /// A place in a list of this length.
    ///
    /// # Panics
    /// Never: what is below a length is one.
    pub fn place(&mut self, length: usize) -> usize {
        let below = self.below(u64::try_from(length).expect("fits"));
        usize::try_from(below).expect("it is below a length")
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A duration in the range, in nanoseconds.
    ///
    /// # Panics
    /// If the range is longer than 500 years.
    pub fn within(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let start = u64::try_from(range.start().as_nanos()).expect("below 500 years");
        let end = u64::try_from(range.end().as_nanos()).expect("below 500 years");
        Duration::from_nanos(start + self.below(end.saturating_sub(start) + 1))
    }
}
