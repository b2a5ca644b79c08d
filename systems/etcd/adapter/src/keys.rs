//! The keys of a trial and their values: each a function of the trial and the transaction, so that a ledger that others use
//! too can be read, and a value that was damaged is told.

use model::TxId;
use sut::content;

/// Where the keys of a trial begin.
pub(crate) fn prefix(run_mark: u64) -> String {
    format!("assay/{run_mark:016x}/")
}

/// The transaction of a key with this prefix; `None`: it is of no transaction.
pub(crate) fn transaction(key: &[u8], prefix: &str) -> Option<TxId> {
    content::number(key.strip_prefix(prefix.as_bytes())?)
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
