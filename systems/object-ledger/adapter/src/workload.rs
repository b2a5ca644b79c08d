//! Transactions: the trial's mark, the transaction's number, and random letters. They are text, because the probe gets them
//! in lines of JSON, and say of themselves whose they are, because the buckets are all that is audited.

use model::{Seed, TxId};
use sut::{Made, Workload};

/// `MARK-NUMBER`, 16 hexadecimal digits each.
pub(crate) const HEAD_BYTES: usize = 16 + 1 + 16;

/// The source of them.
pub(crate) struct Letters {
    pub(crate) seed: Seed,
    pub(crate) run_mark: u64,
    pub(crate) payload_bytes: usize,
}

impl Workload for Letters {
    fn next(&mut self, id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        digits(self.run_mark, payload);
        payload.push(b'-');
        digits(id, payload);
        if payload.len() < self.payload_bytes {
            payload.push(b'-');
            let mut rng = self.seed.split_index("payload", id).rng();
            let left = self.payload_bytes - payload.len();
            let letters = (0..left).map(|_| b'a' + u8::try_from(rng.below(26)).expect("below 26"));
            payload.extend(letters);
        }
        Made::of(0, client)
    }
}

fn digits(number: u64, out: &mut Vec<u8>) {
    let nibbles = (0..16).rev().map(|place| u8::try_from(number >> (4 * place) & 15));
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    out.extend(nibbles.map(|nibble| digit(nibble.expect("four bits"))));
}

/// The number of a transaction of the trial with this mark; `None`: it is nobody's.
pub(crate) fn transaction(content: &[u8], run_mark: u64) -> Option<TxId> {
    let head = content.get(..HEAD_BYTES)?;
    let mut mark = Vec::with_capacity(HEAD_BYTES);
    digits(run_mark, &mut mark);
    mark.push(b'-');
    let number = head.strip_prefix(mark.as_slice())?;
    let is_whole = matches!(content.get(HEAD_BYTES), None | Some(b'-'));
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let text = std::str::from_utf8(number).ok()?;
    let is_number = is_whole && number.iter().all(is_digit);
    is_number.then(|| TxId::from_str_radix(text, 16).ok())?
}
