//! The source of transactions: kinds in turn, payloads of random bytes. Same seed and worker, same bytes.

use model::seed::Rng;
use model::{Seed, TxId};
use sut::{Made, Workload};

/// Random payloads of one size.
pub(crate) struct Payloads {
    rng: Rng,
    payload_bytes: usize,
    kinds: u64,
}

impl Payloads {
    pub(crate) fn new(seed: Seed, worker: u32, payload_bytes: usize, kinds: usize) -> Self {
        let rng = seed.split_index("payload", u64::from(worker)).rng();
        let kinds = u64::try_from(kinds).expect("few kinds");
        Self { rng, payload_bytes, kinds }
    }
}

impl Workload for Payloads {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let start = payload.len();
        payload.resize(start + self.payload_bytes, 0);
        self.rng.fill(&mut payload[start..]);
        Made::of(u32::try_from(id % self.kinds).expect("few kinds"), client)
    }
}
