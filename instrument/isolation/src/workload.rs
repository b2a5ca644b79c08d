//! The workloads that the checks know: what a transaction does, made from the trial's seed and its number alone, so that
//! the adapter that sends it and the check that judges it make the same one.

use model::options::{Options, Problems, Section};
use model::{Seed, TxId};

use crate::history::MicroOp;
use crate::prefix::{Element, Key};

/// `[workload] kind`: lists that transactions append to and read.
pub const LIST_APPEND: &str = "list-append";
/// `[workload] kind`: accounts between which money is moved.
pub const BANK: &str = "bank";

/// Whether `[workload]` asks for this kind.
#[must_use]
pub fn is_kind(workload: &Options, kind: &str) -> bool {
    let mut problems = Problems::default();
    Section::open(workload, "workload", &mut problems).string("kind", &mut problems) == Some(kind)
}

/// Transactions from this number on are not judged: those of the probe, and what no trial reaches. They work on lists of
/// their own.
pub const JUDGED_END: TxId = 1 << 28;
/// The first list of those.
const UNJUDGED_KEYS: u64 = 1 << 30;

/// List-append: one to `ops` appends and reads a transaction, on `keys` lists at a time.
///
/// A list is in use for as many transactions as bring it `appends` elements on average, and is then left for a new one;
/// lists change one after another. An element is the transaction's number times `ops`, and the operation's place.
#[derive(Clone, Copy, Debug)]
pub struct Lists {
    seed: Seed,
    keys: u64,
    ops: u64,
    /// Transactions for which a list is in use.
    turn: u64,
}

/// Operations of a transaction, at most.
const OPS_MAX: u64 = 8;
/// Lists in use at one time, at most.
const KEYS_MAX: u64 = 1 << 16;
/// Elements of a list on average, at most: what an observation has room for, with several such reads.
const APPENDS_MAX: u64 = 1_024;

impl Lists {
    /// Reads `keys` (100), `appends` (128) and `ops` (5) of `[workload]`. The seed is that of the stream's workload.
    pub fn read(section: &mut Section<'_>, seed: Seed, problems: &mut Problems) -> Self {
        let keys = section.integer("keys", 1, KEYS_MAX, problems).unwrap_or(100);
        let appends = section.integer("appends", 1, APPENDS_MAX, problems).unwrap_or(128);
        let ops = section.integer("ops", 1, OPS_MAX, problems).unwrap_or(5);
        // Half of (1 + ops) / 2 operations append, each to one of the lists.
        Self { seed, keys, ops, turn: (keys * appends * 4 / (1 + ops)).max(keys) }
    }

    /// A transaction's operations.
    pub fn ops(&self, id: TxId, ops: &mut Vec<MicroOp>) {
        ops.clear();
        let mut rng = self.seed.split_index("list-append", id).rng();
        for place in 0..1 + rng.below(self.ops) {
            let slot = rng.below(self.keys);
            let key = self.key(id, slot);
            ops.push(if rng.below(2) == 0 {
                MicroOp::Read { key, found: None }
            } else {
                MicroOp::Append { key, element: self.element(id, place) }
            });
        }
    }

    /// Whether a transaction only reads.
    #[must_use]
    pub fn only_reads(ops: &[MicroOp]) -> bool {
        ops.iter().all(|op| matches!(op, MicroOp::Read { .. }))
    }

    /// Whose an element is.
    #[must_use]
    pub fn writer(&self, element: Element) -> TxId {
        TxId::from(element) / self.ops
    }

    fn key(&self, id: TxId, slot: u64) -> Key {
        let key = if id < JUDGED_END {
            (id + slot * (self.turn / self.keys)) / self.turn * self.keys + slot
        } else {
            UNJUDGED_KEYS + slot
        };
        Key::try_from(key)
            .expect("fewer than 2³⁰ lists: each slot changes less than once a transaction")
    }

    fn element(&self, id: TxId, place: u64) -> Element {
        let element = id % JUDGED_END * self.ops + place;
        Element::try_from(element).expect("2²⁸ transactions of 8 operations have 2³¹ elements")
    }
}

/// What a transaction of the bank does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BankOp {
    /// Moves money, if there is as much in the account.
    Transfer {
        /// Out of this account.
        from: u32,
        /// Into this one.
        to: u32,
        /// How much.
        amount: u64,
    },
    /// Reads all accounts at once.
    ReadAll,
}

/// The bank: `accounts` accounts that hold `balance` each at first; one transaction in four reads all of them, the others
/// move up to `amount`.
#[derive(Clone, Copy, Debug)]
pub struct Bank {
    seed: Seed,
    /// How many accounts there are.
    pub accounts: u32,
    /// What each holds at first.
    pub balance: u64,
    amount: u64,
}

impl Bank {
    /// Reads `accounts` (16), `balance` (100) and `amount` (10) of `[workload]`.
    pub fn read(section: &mut Section<'_>, seed: Seed, problems: &mut Problems) -> Self {
        let accounts = section.integer("accounts", 2, 1_024, problems).unwrap_or(16);
        let balance = section.integer("balance", 0, 1 << 40, problems).unwrap_or(100);
        let amount = section.integer("amount", 1, 1 << 40, problems).unwrap_or(10);
        let accounts = u32::try_from(accounts).expect("few accounts");
        Self { seed, accounts, balance, amount }
    }

    /// A transaction.
    #[must_use]
    pub fn op(&self, id: TxId) -> BankOp {
        let mut rng = self.seed.split_index("bank", id).rng();
        if rng.below(4) == 0 {
            return BankOp::ReadAll;
        }
        let mut account = |count| u32::try_from(rng.below(u64::from(count))).expect("few accounts");
        let from = account(self.accounts);
        // Of the others, so that money moves.
        let to = (from + 1 + account(self.accounts - 1)) % self.accounts;
        BankOp::Transfer { from, to, amount: 1 + rng.below(self.amount) }
    }

    /// What all accounts hold together, at all times.
    #[must_use]
    pub fn total(&self) -> u64 {
        u64::from(self.accounts) * self.balance
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    fn lists(keys: u64, appends: u64) -> Lists {
        let turn = (keys * appends * 4 / 6).max(keys);
        Lists { seed: Seed(1), keys, ops: 5, turn }
    }

    /// Claim: elements are given out once and say whose they are; lists get about as many as was asked for, and all but
    /// the last ones are left; transactions have one to five operations, of which half append.
    #[test]
    fn lists_take_turns() {
        let lists = lists(10, 100);
        let (mut elements, mut ops) = (HashSet::new(), Vec::new());
        let mut appends: HashMap<Key, u32> = HashMap::new();
        let mut count = 0;
        for id in 0..20_000 {
            lists.ops(id, &mut ops);
            assert!((1..=5).contains(&ops.len()));
            count += ops.len();
            let mut again = Vec::new();
            lists.ops(id, &mut again);
            assert_eq!(ops, again);
            for op in &ops {
                let MicroOp::Append { key, element } = *op else { continue };
                assert!(elements.insert(element) && lists.writer(element) == id);
                *appends.entry(key).or_default() += 1;
            }
        }
        assert!((55_000..65_000).contains(&count) && (27_000..33_000).contains(&elements.len()));
        assert!(appends.values().all(|count| *count < 160), "{appends:?}");
        assert!((280..340).contains(&appends.len()), "{}", appends.len());
    }

    /// Claim: what is not judged works on lists that nothing judged touches, however large its number is.
    #[test]
    fn the_probe_has_lists_of_its_own() {
        let lists = lists(100, 128);
        let mut ops = Vec::new();
        for id in [JUDGED_END, 1 << 40, u64::MAX / 2] {
            lists.ops(id, &mut ops);
            for op in &ops {
                let (MicroOp::Append { key, .. } | MicroOp::Read { key, .. }) = *op;
                assert!(key >= 1 << 30);
            }
        }
        lists.ops(JUDGED_END - 1, &mut ops);
        assert!(ops.iter().all(|op| {
            let (MicroOp::Append { key, .. } | MicroOp::Read { key, .. }) = *op;
            key < 1 << 30
        }));
    }

    /// Claim: money moves between two accounts of those there are, and both kinds of transactions are common.
    #[test]
    fn money_moves() {
        let bank = Bank { seed: Seed(2), accounts: 2, balance: 5, amount: 3 };
        let mut reads = 0;
        for id in 0..4_000 {
            match bank.op(id) {
                BankOp::ReadAll => reads += 1,
                BankOp::Transfer { from, to, amount } => {
                    assert!(from < 2 && to < 2 && from != to && (1..=3).contains(&amount));
                }
            }
        }
        assert!((800..1_200).contains(&reads) && bank.total() == 10);
    }
}
