//! Randomness: one seed a trial, each generator split from it by name. Nothing else is random.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};

/// The seed of a run, a trial or one generator in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of the generator called `name`: FNV-1a of the name, mixed into this seed by SplitMix64's finaliser.
    #[must_use]
    pub fn split(self, name: &str) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut z = self.0.wrapping_add(hash).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self(z ^ (z >> 31))
    }

    /// The seed of the `index`-th of several like things (trials, workers).
    #[must_use]
    pub fn split_index(self, name: &str, index: u64) -> Self {
        Self(self.split(name).0 ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).split("index")
    }

    /// A generator that starts from this seed.
    #[must_use]
    pub fn rng(self) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(self.0))
    }
}

/// A seeded generator (xoshiro256++; same seed, same numbers, on every platform).
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `[0, 1)` with 53 bits.
    pub fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit a f64 exactly")]
        let mantissa = (self.next_u64() >> 11) as f64;
        mantissa * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Exponential with the given mean; never zero or infinite.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Uniform in `0..bound` (Lemire's multiply-shift; the bias is below 2⁻³² for the bounds used here).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a range needs at least one value");
        u64::try_from((u128::from(self.next_u64()) * u128::from(bound)) >> 64)
            .expect("the high half of a 128-bit product fits 64 bits")
    }

    /// Fills `bytes` with uniform bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}
