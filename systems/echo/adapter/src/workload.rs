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
    /// Whose transactions are in turn, where the arrivals are open.
    clients: Option<Clients>,
}

/// The clients of one engine thread: they are as many apart as there are threads, as the engine's own clients are, so
/// that each has one thread and, where clients stay on their connections, one connection.
#[derive(Clone, Copy, Debug)]
struct Clients {
    first: u32,
    stride: u32,
    count: u64,
}

impl Payloads {
    pub(crate) fn new(seed: Seed, payload_bytes: usize, kinds: usize, keys: Option<u64>) -> Self {
        let kinds = u64::try_from(kinds).expect("few kinds");
        Self { seed, payload_bytes, kinds, keys, clients: None }
    }

    /// The same, of `count` clients over all threads in turn; each thread has one at least.
    pub(crate) fn of_clients(self, count: u32, worker: u32, workers: u32) -> Self {
        let stride = workers.max(1);
        let count = u64::from(count.saturating_sub(worker).div_ceil(stride).max(1));
        Self { clients: Some(Clients { first: worker, stride, count }), ..self }
    }

    /// Whose a transaction is, if the engine does not say it: numbers of one thread are as many apart as there are.
    fn client_of(&self, id: TxId) -> Option<u32> {
        let Clients { first, stride, count } = self.clients?;
        let turn = u32::try_from(id / u64::from(stride) % count).expect("fewer than clients");
        Some(first + turn * stride)
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
        let client = client.or_else(|| self.client_of(id));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Claim: over all threads there are as many clients as were asked for, each of one thread alone, and each has its
    /// turn; a client that the engine names is the one.
    #[test]
    fn clients_in_turn() {
        for (clients, workers) in [(6, 1), (7, 3), (2, 4)] {
            let mut seen = BTreeMap::<u32, u32>::new();
            for worker in 0..workers {
                let payloads = Payloads::new(Seed(1), 8, 1, None);
                let mut payloads = payloads.of_clients(clients, worker, workers);
                for n in 0..60 {
                    let id = TxId::from(worker + n * workers);
                    let made = payloads.next(id, None, &mut Vec::new());
                    assert_eq!(made.client % workers, worker);
                    *seen.entry(made.client).or_default() += 1;
                    assert_eq!(payloads.next(id, Some(99), &mut Vec::new()).client, 99);
                }
            }
            let all: Vec<u32> = seen.keys().copied().collect();
            assert_eq!(all, (0..clients.max(workers)).collect::<Vec<_>>());
            assert!(seen.values().all(|count| *count >= 8), "{seen:?}");
        }
    }
}
