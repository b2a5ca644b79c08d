//! The source of transactions: a message's body is the transaction's number and letters that only this trial's transaction
//! of this number has, so that one that was damaged is told.

use model::TxId;
use sut::content::{self, DIGITS};
use sut::{Made, Workload};

/// Appends the body of a transaction's message, `bytes` long or as long as its number.
pub(crate) fn body(run_mark: u64, id: TxId, bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&content::digits(id));
    content::letters(run_mark, id, bytes.saturating_sub(DIGITS), out);
}

/// The transaction whose message this is, and whether it is the one that was sent; `None`: it names none.
pub(crate) fn told(run_mark: u64, held: &[u8]) -> Option<(TxId, bool)> {
    let id = content::number(held.get(..DIGITS)?)?;
    let mut right = Vec::with_capacity(held.len());
    body(run_mark, id, held.len(), &mut right);
    Some((id, right == held))
}

/// Messages of one length.
pub(crate) struct Bodies {
    pub(crate) run_mark: u64,
    pub(crate) payload_bytes: usize,
}

impl Workload for Bodies {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        body(self.run_mark, id, self.payload_bytes, payload);
        Made::of(0, client)
    }
}
