//! The sources of transactions. Each is a function of the seed and of the transaction's number alone.

use kv_node::database::compose::{Composer, published};
use kv_node::database::transaction::Literal;
use model::seed::Rng;
use model::{Seed, TxId};
use sut::{Made, Workload};

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// The seven operations of the published benchmark, on a table of the client's own.
    MapAndList,
    /// Opaque bytes, which take the place of those before in a table of the client's own.
    Proposal,
}

/// The clients of one engine thread, where the arrivals are open: they are as many apart as there are threads, as the
/// engine's own clients are.
#[derive(Clone, Copy, Debug)]
struct Clients {
    first: u32,
    stride: u32,
    count: u64,
}

/// Transactions of one sort.
pub(crate) struct Transactions {
    sort: Sort,
    value: Vec<u8>,
    clients: Clients,
}

impl Transactions {
    pub(crate) fn new(
        sort: Sort,
        seed: Seed,
        value_bytes: usize,
        clients: u32,
        worker: u32,
        workers: u32,
    ) -> Self {
        let mut rng: Rng = seed.split("value").rng();
        // As published: random bytes, the same each time.
        let value =
            (0..value_bytes).map(|_| u8::try_from(rng.below(256)).expect("below 256")).collect();
        let stride = workers.max(1);
        let count = u64::from(clients.saturating_sub(worker).div_ceil(stride).max(1));
        Self { sort, value, clients: Clients { first: worker, stride, count } }
    }

    /// Whose a transaction is, if the engine does not say it.
    fn client_of(&self, id: TxId) -> u32 {
        let Clients { first, stride, count } = self.clients;
        let turn = u32::try_from(id / u64::from(stride) % count).expect("fewer than clients");
        first + turn * stride
    }
}

impl Workload for Transactions {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let client = client.unwrap_or_else(|| self.client_of(id));
        match self.sort {
            Sort::MapAndList => published(payload, client.into(), &self.value),
            Sort::Proposal => {
                let name = client.to_le_bytes();
                Composer::begin(payload, &[&name]).store(0, &[b"p"], Literal::Bytes(&self.value));
            }
        }
        Made::of(0, Some(client))
    }
}
