//! Numbers without a pattern, from a seed: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators", 2014). Election timeouts need no more than that two replicas seldom draw the same.

use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Between `least` and twice that.
    pub(crate) fn once_to_twice(&mut self, least: Duration) -> Duration {
        let span = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX).max(1);
        least.saturating_add(Duration::from_nanos(self.next() % span))
    }
}
