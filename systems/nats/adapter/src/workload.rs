//! The source of transactions: a message's body is the transaction's number and letters that only this trial's transaction
//! of this number has, so that one that was damaged is told.

use model::{Seed, TxId};
use sut::{Made, Workload};

/// Digits of the number at the beginning.
pub(crate) const NUMBER_BYTES: usize = 16;

/// Appends the body of a transaction's message, `bytes` long or as long as its number.
pub(crate) fn body(run_mark: u64, id: TxId, bytes: usize, out: &mut Vec<u8>) {
    let mut rng = Seed(run_mark).split_index("content", id).rng();
    hexadecimal(id, out);
    let letters = bytes.saturating_sub(NUMBER_BYTES);
    out.extend((0..letters).map(|_| b'a' + u8::try_from(rng.below(26)).expect("below 26")));
}

/// Appends a number as sixteen digits.
pub(crate) fn hexadecimal(number: u64, out: &mut Vec<u8>) {
    for shift in (0..NUMBER_BYTES).rev() {
        let nibble = u8::try_from(number >> (4 * shift) & 15).expect("four bits");
        out.push(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    }
}

/// The number that sixteen digits say.
pub(crate) fn number(digits: &[u8]) -> Option<TxId> {
    let text = std::str::from_utf8(digits).ok().filter(|it| it.len() == NUMBER_BYTES)?;
    // A sign would be taken, too.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_plain { TxId::from_str_radix(text, 16).ok() } else { None }
}

/// The transaction whose message this is, and whether it is the one that was sent; `None`: it names none.
pub(crate) fn told(run_mark: u64, held: &[u8]) -> Option<(TxId, bool)> {
    let id = number(held.get(..NUMBER_BYTES)?)?;
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
