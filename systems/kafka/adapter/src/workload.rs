//! The source of transactions: a record's value is the transaction's number and bytes that only this trial's transaction of
//! this number has, so that one that was damaged is told.

use model::{Seed, TxId};
use sut::{Made, Workload};

/// Bytes of the number at the beginning.
pub(crate) const NUMBER_BYTES: usize = 8;

/// Appends the value of a transaction's record, `bytes` long or as long as its number.
pub(crate) fn value(run_mark: u64, id: TxId, bytes: usize, out: &mut Vec<u8>) {
    let mut rng = Seed(run_mark).split_index("content", id).rng();
    out.extend_from_slice(&id.to_be_bytes());
    let rest = bytes.saturating_sub(NUMBER_BYTES);
    out.extend((0..rest).map(|_| u8::try_from(rng.below(256)).expect("below 256")));
}

/// The transaction whose record this is, and whether it is the one that was sent; `None`: it names none.
pub(crate) fn told(run_mark: u64, held: &[u8]) -> Option<(TxId, bool)> {
    let id = TxId::from_be_bytes(*held.first_chunk::<NUMBER_BYTES>()?);
    let mut right = Vec::with_capacity(held.len());
    value(run_mark, id, held.len(), &mut right);
    Some((id, right == held))
}

/// Records of one length.
pub(crate) struct Values {
    pub(crate) run_mark: u64,
    pub(crate) payload_bytes: usize,
}

impl Workload for Values {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        value(self.run_mark, id, self.payload_bytes, payload);
        Made::of(0, client)
    }
}
