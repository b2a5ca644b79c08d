//! The transactions: random letters, of each kind in turn, the same for everybody who asks for the same number.

use model::{Seed, TxId};
use sut::{Made, Workload};

/// The source of them.
pub(crate) struct Letters {
    pub(crate) seed: Seed,
    pub(crate) payload_bytes: usize,
    pub(crate) kinds: u64,
}

impl Workload for Letters {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let mut rng = self.seed.split_index("payload", id).rng();
        let letters =
            (0..self.payload_bytes).map(|_| b'a' + u8::try_from(rng.below(26)).expect("below 26"));
        payload.extend(letters);
        Made::of(u32::try_from(id % self.kinds).expect("few kinds"), client)
    }
}
