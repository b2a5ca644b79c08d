//! Numbers from a seed, for everything that goes wrong.

use std::time::Duration;

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1));
        random.below(1);
        random
    }

    /// Below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    pub fn index(&mut self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap()
    }

    /// True `times` times in 1,000.
    pub fn happens(&mut self, times: u64) -> bool {
        self.below(1000) < times
    }

    /// Between `least` and `most` microseconds, with a bias to the short ones.
    pub fn micros(&mut self, least: u64, most: u64) -> Duration {
        let span = most - least + 1;
        Duration::from_micros(least + self.below(span).min(self.below(span)))
    }
}
