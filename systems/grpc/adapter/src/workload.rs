//! The next call and its request: filled in and encoded ahead of the due time.

use std::sync::Arc;

use http_adapter::borrowed::Filler;
use model::seed::Rng;
use model::{Seed, TxId};
use sut::{Made, Workload};

use crate::calls::Calls;

/// The source of one engine thread.
pub(crate) struct Source {
    calls: Arc<Calls>,
    rng: Rng,
    filler: Filler,
    total: u64,
}

impl Source {
    pub(crate) fn new(calls: Arc<Calls>, seed: Seed, worker: u32) -> Self {
        let rng = seed.split_index("calls", worker.into()).rng();
        let filler = Filler::new(seed.split_index("texts", worker.into()).0);
        let total = calls.list.iter().map(|call| call.weight).sum();
        Self { calls, rng, filler, total }
    }

    fn pick(&mut self) -> usize {
        if self.calls.list.len() == 1 {
            return 0;
        }
        let mut left = self.rng.below(self.total);
        self.calls
            .list
            .iter()
            .position(|call| {
                let is_it = left < call.weight;
                left = left.saturating_sub(call.weight);
                is_it
            })
            .unwrap_or(0)
    }
}

impl Workload for Source {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let at = self.pick();
        let call = &self.calls.list[at];
        if call.body.is_none() {
            let written = call.write(&mut self.filler, id, client.unwrap_or(0), payload);
            // A value may spoil a message that was right with other values (a text in the place of a number): it is
            // sent empty, which the session tells as this client's failure.
            if written.is_err() {
                payload.clear();
            }
        }
        Made::of(u32::try_from(at).expect("bounded by CALLS_MAX"), client)
    }
}
