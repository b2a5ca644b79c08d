//! The hash of the database's tables of names and clients: multiply and fold (as in wyhash), eight bytes at a time. Only
//! where something is found rests on it, never a result: no replica's answers depend on it.

use std::hash::{BuildHasherDefault, Hasher};

/// For hash maps.
pub type BuildMix = BuildHasherDefault<Mix>;

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
