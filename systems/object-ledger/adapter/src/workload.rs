//! Transactions: the trial's mark, the transaction's number, and random letters. They are text, because the probe gets them
//! in lines of JSON, and say of themselves whose they are, because the buckets are all that is audited.

use model::TxId;
use sut::content::{self, DIGITS};
use sut::{Made, Workload};

/// `MARK-NUMBER`, 16 hexadecimal digits each.
pub(crate) const HEAD_BYTES: usize = DIGITS + 1 + DIGITS;

/// The source of them.
pub(crate) struct Letters {
    pub(crate) run_mark: u64,
    pub(crate) payload_bytes: usize,
}

impl Workload for Letters {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        payload.extend_from_slice(&content::digits(self.run_mark));
        payload.push(b'-');
        payload.extend_from_slice(&content::digits(id));
        if payload.len() < self.payload_bytes {
            payload.push(b'-');
            let left = self.payload_bytes - payload.len();
            content::letters(self.run_mark, id, left, payload);
        }
        Made::of(0, client)
    }
}

/// The number of a transaction of the trial with this mark; `None`: it is nobody's.
pub(crate) fn transaction(held: &[u8], run_mark: u64) -> Option<TxId> {
    let head = held.get(..HEAD_BYTES)?;
    let number = head.strip_prefix(&content::digits(run_mark))?.strip_prefix(b"-")?;
    let is_whole = matches!(held.get(HEAD_BYTES), None | Some(b'-'));
    content::number(number).filter(|_| is_whole)
}
