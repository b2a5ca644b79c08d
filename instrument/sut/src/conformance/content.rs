//! Tests of what adapters say of content and of settings.

use model::TxId;

use crate::durability::{Documented, readme_table};

/// Content that differs in a bit from `held` is not taken for what was sent. `told` gives the transaction
/// that content names, and whether the content is right.
///
/// # Panics
/// If `held` is not right, or another content is.
pub fn expect_damage_told(held: &[u8], tx: TxId, told: impl Fn(&[u8]) -> Option<(TxId, bool)>) {
    assert_eq!(told(held), Some((tx, true)));
    for bit in 0..held.len() * 8 {
        let mut other = held.to_vec();
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(told(&other).is_none_or(|(_, is_right)| !is_right), "bit {bit}");
    }
    assert_eq!(told(b"short"), None);
}

/// The README of an adapter has the list as its table, so that each quotation stands there word by word.
///
/// # Panics
/// If it has another table, or none.
pub fn expect_in_readme(list: &[Documented], readme: &str) {
    let table = readme_table(list);
    assert!(readme.contains(&table), "README.md lacks:\n{table}");
}
