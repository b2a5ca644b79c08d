//! The keys of a trial and their values: each a function of the trial and the transaction, so that a ledger that others use
//! too can be read, and a value that was damaged is told.

use model::{Seed, TxId};

/// Digits of a transaction's number in its key.
pub(crate) const NUMBER_BYTES: usize = 16;

/// Where the keys of a trial begin.
pub(crate) fn prefix(run_mark: u64) -> String {
    format!("assay/{run_mark:016x}/")
}

/// The transaction of a key with this prefix; `None`: it is of no transaction.
pub(crate) fn transaction(key: &[u8], prefix: &str) -> Option<TxId> {
    let digits = key.strip_prefix(prefix.as_bytes())?;
    let text = std::str::from_utf8(digits).ok().filter(|it| it.len() == NUMBER_BYTES)?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_plain { TxId::from_str_radix(text, 16).ok() } else { None }
}

/// The value of a transaction's key: letters that only this trial's transaction of this number has, so that one that was
/// damaged is told.
pub(crate) fn value(run_mark: u64, id: TxId, bytes: usize, out: &mut Vec<u8>) {
    let mut rng = Seed(run_mark).split_index("content", id).rng();
    out.extend((0..bytes).map(|_| b'a' + u8::try_from(rng.below(26)).expect("below 26")));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a key is of its trial and its transaction, and of no other.
    #[test]
    fn keys() {
        let prefix = prefix(7);
        let found = |key: &str| transaction(key.as_bytes(), &prefix);
        assert_eq!(found(&format!("{prefix}{:016x}", 0x12_3456)), Some(0x12_3456));
        for other in [
            "x",
            "",
            "assay/0000000000000008/0000000000000001",
            "assay/0000000000000007/+000000000000001",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
