//! The hash of the database's tables of names and clients: multiply and fold (as in wyhash), eight bytes at a time. Only
//! where something is found rests on it, never a result: no replica's answers depend on it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// Where the hashes of this process begin: with it unknown, no client can choose keys that share one.
static BEGINNING: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0_u64));

/// For hash maps.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildMix;

impl BuildHasher for BuildMix {
    type Hasher = Mix;

    fn build_hasher(&self) -> Mix {
        Mix(*BEGINNING)
    }
}

const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
const FOLD: u64 = 0xA076_1D64_78BD_642F;

/// The hasher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mix(u64);

impl Mix {
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ ODD) * u128::from(FOLD);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves are folded")]
        let folded = (product as u64) ^ ((product >> 64) as u64);
        self.0 = folded;
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.add(u64::from_le_bytes(word.try_into().expect("exact chunks")));
        }
        let mut last = [0; 8];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        self.add(u64::from_le_bytes(last));
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: keys that were chosen to share a hash that begins with nothing share none in a table.
    #[test]
    fn chosen_keys() {
        let key = |word: u64| {
            let mut first = Mix::default();
            first.add(word);
            [word.to_le_bytes(), (first.0 ^ ODD).to_le_bytes()].concat()
        };
        let hash = |mut hasher: Mix, word| {
            hasher.write(&key(word));
            hasher.finish()
        };
        let distinct = |of: &dyn Fn() -> Mix| {
            (0..1_000).map(|word| hash(of(), word)).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(distinct(&Mix::default), 1);
        assert_eq!(distinct(&|| BuildMix.build_hasher()), 1_000);
    }
}
