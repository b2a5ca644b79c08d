//! Which request comes next. In file order, over all workers together, as vegeta does; or at random by the seed.

use std::sync::Arc;

use model::seed::Rng;
use model::{Seed, TxId};
use sut::{Made, Workload};

use crate::requests::Requests;

/// In which order targets are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Sequential,
    Random,
}

/// The source of one engine thread.
pub(crate) struct Source {
    requests: Arc<Requests>,
    /// `None`: sequential.
    rng: Option<Rng>,
}

impl Source {
    /// The source of the `worker`-th thread.
    pub(crate) fn new(requests: Arc<Requests>, order: Order, seed: Seed, worker: u32) -> Self {
        let rng =
            (order == Order::Random).then(|| seed.split_index("targets", u64::from(worker)).rng());
        Self { requests, rng }
    }
}

impl Workload for Source {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let count = self.requests.sequence.len() as u64;
        let place = self.rng.as_mut().map_or(id % count, |rng| rng.below(count));
        let place = usize::try_from(place).expect("an index of a list in memory");
        let index = self.requests.sequence[place];
        let kind = self.requests.prepared[index as usize].kind;
        if kind != index {
            payload.extend_from_slice(&index.to_le_bytes());
        }
        Made::of(kind, client)
    }
}
