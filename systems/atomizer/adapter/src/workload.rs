//! The source of transactions: each is a function of the seed and of its number alone. Heights are written when they leave.

use model::TxId;
use sut::{Made, Workload};

use crate::wallet::{Maker, Wallet};

/// Spends of one engine thread.
pub(crate) struct Spends(Maker);

impl Spends {
    pub(crate) fn new(wallet: Wallet) -> Self {
        Self(Maker::new(wallet))
    }
}

impl Workload for Spends {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let made = self.0.transaction(id);
        made.write(payload);
        Made::of(made.sort as u32, client)
    }
}
