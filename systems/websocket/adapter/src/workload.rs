//! The next message, filled in ahead of the due time.

use std::sync::Arc;

use http_adapter::borrowed::Filler;
use model::seed::Rng;
use model::{Seed, TxId};
use sut::{Made, Workload};

use crate::messages::Messages;

/// The source of one engine thread.
pub(crate) struct Source {
    messages: Arc<Messages>,
    rng: Rng,
    filler: Filler,
    total: u64,
}

impl Source {
    pub(crate) fn new(messages: Arc<Messages>, seed: Seed, worker: u32) -> Self {
        let rng = seed.split_index("messages", worker.into()).rng();
        let filler = Filler::new(seed.split_index("texts", worker.into()).0);
        let total = messages.list.iter().map(|message| message.weight).sum();
        Self { messages, rng, filler, total }
    }
}

impl Workload for Source {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let Self { messages, rng, filler, total } = self;
        let mut left = if messages.list.len() == 1 { 0 } else { rng.below(*total) };
        let at = messages.list.iter().position(|message| {
            let is_it = left < message.weight;
            left = left.saturating_sub(message.weight);
            is_it
        });
        let at = at.unwrap_or(0);
        let clients = (id, client.unwrap_or(0));
        // A value may spoil an id that was there with other values: nothing is sent then, and the session tells it.
        if messages.write(&messages.list[at], filler, clients, payload).is_err() {
            payload.clear();
        }
        Made::of(u32::try_from(at).expect("bounded by MESSAGES_MAX"), client)
    }
}
