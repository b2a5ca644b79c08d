//! The transactions: random letters or bytes, of each kind in turn or by weights, the same for everybody who asks for the same
//! number.

use model::{Seed, TxId};
use sut::{Made, Workload};

/// The source of them.
#[derive(Clone)]
pub(crate) struct Letters {
    pub(crate) seed: Seed,
    pub(crate) payload_bytes: usize,
    /// Any bytes, and not letters alone.
    pub(crate) is_binary: bool,
    pub(crate) kinds: u64,
    /// How often each kind comes, beside the others; empty: each in turn.
    pub(crate) weights: Vec<u64>,
}

impl Workload for Letters {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let mut rng = self.seed.split_index("payload", id).rng();
        let (base, count) = if self.is_binary { (0, 256) } else { (b'a', 26) };
        let drawn = (0..self.payload_bytes)
            .map(|_| base + u8::try_from(rng.below(count)).expect("at most 255"));
        payload.extend(drawn);
        Made::of(self.kind(id), client)
    }
}

impl Letters {
    /// Letters, of each kind in turn.
    #[cfg(test)]
    pub(crate) const fn of(seed: Seed, payload_bytes: usize, kinds: u64) -> Self {
        Self { seed, payload_bytes, is_binary: false, kinds, weights: Vec::new() }
    }

    fn kind(&self, id: TxId) -> u32 {
        let kind = if self.weights.is_empty() {
            id % self.kinds
        } else {
            let sum = self.weights.iter().sum();
            let mut drawn = self.seed.split_index("kind", id).rng().below(sum);
            let before = self.weights.iter().take_while(|weight| {
                let is_before = drawn >= **weight;
                drawn = drawn.saturating_sub(**weight);
                is_before
            });
            before.count() as u64
        };
        u32::try_from(kind).expect("few kinds")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: kinds come by their weights, a weight of nought never, each number the same kind whenever it is asked for; bytes
    /// are of all values.
    #[test]
    fn weights_and_bytes() {
        let mut letters = Letters {
            seed: Seed(7),
            payload_bytes: 4_096,
            is_binary: true,
            kinds: 3,
            weights: vec![3, 0, 1],
        };
        let mut counts = [0; 3];
        for id in 0..4_000 {
            counts[letters.kind(id) as usize] += 1;
            assert_eq!(letters.kind(id), letters.kind(id));
        }
        assert!((2_850..3_150).contains(&counts[0]) && counts[1] == 0, "{counts:?}");
        let mut payload = Vec::new();
        letters.next(1, None, &mut payload);
        assert!(payload.len() == 4_096 && (0..=255).all(|byte| payload.contains(&byte)));
        letters.weights.clear();
        assert_eq!([0, 1, 2, 3].map(|id| letters.kind(id)), [0, 1, 2, 0]);
    }
}
