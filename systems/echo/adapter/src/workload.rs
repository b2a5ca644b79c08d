//! The source of transactions: kinds in turn, payloads as good as random. A transaction is a function of the seed and of
//! its number alone, so that whoever has both can say what was submitted.

use model::{Seed, TxId};
use sut::{Made, Workload};

/// Payloads of one size.
pub(crate) struct Payloads {
    seed: Seed,
    payload_bytes: usize,
    kinds: u64,
    /// How many keys there are; payloads begin with one.
    keys: Option<u64>,
}

impl Payloads {
    pub(crate) fn new(seed: Seed, payload_bytes: usize, kinds: usize, keys: Option<u64>) -> Self {
        let kinds = u64::try_from(kinds).expect("few kinds");
        Self { seed, payload_bytes, kinds, keys }
    }
}

impl Workload for Payloads {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let start = payload.len();
        payload.resize(start + self.payload_bytes, 0);
        let mut state = self.seed.0 ^ mixed(id);
        for piece in payload[start..].chunks_mut(8) {
            state = state.wrapping_add(GAMMA);
            piece.copy_from_slice(&mixed(state).to_le_bytes()[..piece.len()]);
        }
        if let Some(keys) = self.keys
            && let Some(place) = payload[start..].first_chunk_mut()
        {
            *place = key_of(id, keys).to_le_bytes();
        }
        Made::of(u32::try_from(id % self.kinds).expect("few kinds"), client)
    }
}

/// The key that a transaction reads or writes: as good as random, and known to whoever knows its number, since rows do
/// not hold it.
pub(crate) const fn key_of(id: TxId, keys: u64) -> u64 {
    mixed(id.wrapping_add(GAMMA)) % keys
}

/// The step of SplitMix64.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (G. Steele et al., OOPSLA 2014).
const fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
