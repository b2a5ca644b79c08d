//! What the chain, as it lies on the archiver's disk, promises: that nothing is spent twice, that value is conserved, and
//! that blocks follow each other. What a transaction spends and makes is computed from its number; that the chain holds
//! exactly that, byte for byte, is what the ledger's reader has found out of each.

use isolation::checks::SAME_STATE;
use model::TxId;
use model::check::EXAMPLES_MAX;
use model::facts::LedgerEntry;
use sut::{Check, CheckFinding, CheckInput, CheckState, Entries, Reads};

use crate::ledger::HEIGHT_SHIFT;
use crate::options;
use crate::wallet::{SEED_VALUE, Wallet};

/// All of them.
pub(crate) const ALL: [Check; 4] = [
    Check {
        name: "no_double_spend",
        summary: "Is each output spent at most once over the whole chain?",
        reads: Reads { rows: false, observations: false, entries: Entries::Bare },
        applies: always,
        start: |input| {
            Box::new(Spent { wallet: wallet(input), seen: Vec::new(), found: Found::default() })
        },
    },
    Check {
        name: "value_conserved",
        summary: "Is what each transaction makes worth what it spends?",
        reads: Reads { rows: false, observations: false, entries: Entries::Bare },
        applies: always,
        start: |input| Box::new(Value { wallet: wallet(input), found: Found::default() }),
    },
    Check {
        name: "blocks_in_order",
        summary: "Does each block follow the one before by its hash, with its transactions in the order that it says?",
        reads: Reads { rows: false, observations: false, entries: Entries::Bare },
        applies: always,
        start: |_| Box::new(Blocks { last: None, found: Found::default() }),
    },
    SAME_STATE,
];

const fn always(_: &CheckInput<'_>) -> bool {
    true
}

fn wallet(input: &CheckInput<'_>) -> Wallet {
    options::wallet(input.workload, input.seed.split("workload"))
}

#[derive(Default)]
struct Found {
    looked_at: u64,
    broken: u64,
    examples: Vec<TxId>,
}

impl Found {
    fn look(&mut self, tx: TxId, is_broken: bool) {
        self.looked_at += 1;
        if is_broken {
            self.broken += 1;
            if self.examples.len() < EXAMPLES_MAX {
                self.examples.push(tx);
            }
        }
    }

    fn finish(self, broken: &str, fine: &str) -> CheckFinding {
        let holds = self.broken == 0;
        CheckFinding {
            holds,
            count: if holds { self.looked_at } else { self.broken },
            examples: self.examples,
            words: if holds { fine } else { broken }.to_owned(),
            ..CheckFinding::default()
        }
    }
}

/// A bit for each output that there is.
struct Spent {
    wallet: Wallet,
    seen: Vec<u64>,
    found: Found,
}

/// More outputs than a trial can have: a number beyond is of no transaction of ours.
const OUTPUTS_MAX: u64 = 1 << 34;

impl CheckState for Spent {
    fn entry(&mut self, entry: &LedgerEntry, _content: &[u8]) {
        if !entry.ours {
            return;
        }
        let mut is_again = false;
        for output in self.wallet.inputs(entry.tx).into_iter().filter(|it| *it < OUTPUTS_MAX) {
            let place = usize::try_from(output / 64).expect("bounded by OUTPUTS_MAX");
            if place >= self.seen.len() {
                self.seen.resize((place + 1).next_power_of_two(), 0);
            }
            let bit = 1 << (output % 64);
            is_again |= self.seen[place] & bit != 0;
            self.seen[place] |= bit;
        }
        self.found.look(entry.tx, is_again);
    }

    fn finish(self: Box<Self>) -> CheckFinding {
        self.found.finish(
            "transactions in blocks spend an output that an earlier one spent",
            "transactions in blocks, each output spent once",
        )
    }
}

struct Value {
    wallet: Wallet,
    found: Found,
}

impl CheckState for Value {
    fn entry(&mut self, entry: &LedgerEntry, _content: &[u8]) {
        let made: u64 = self.wallet.values(entry.tx).iter().sum();
        // What is not what was submitted, byte for byte, can make anything.
        self.found.look(entry.tx, !entry.ours || made != 2 * SEED_VALUE);
    }

    fn finish(self: Box<Self>) -> CheckFinding {
        self.found.finish(
            "transactions in blocks are not what was submitted, or make more than they spend",
            "transactions in blocks are what was submitted, and make what they spend",
        )
    }
}

struct Blocks {
    last: Option<u64>,
    found: Found,
}

impl CheckState for Blocks {
    fn entry(&mut self, entry: &LedgerEntry, _content: &[u8]) {
        let height = entry.position >> HEIGHT_SHIFT;
        let follows = match self.last {
            None => entry.position & ((1 << HEIGHT_SHIFT) - 1) == 0,
            Some(last) if last >> HEIGHT_SHIFT == height => entry.position == last + 1,
            // Blocks without transactions have no entries.
            Some(last) => {
                last >> HEIGHT_SHIFT < height && entry.position & ((1 << HEIGHT_SHIFT) - 1) == 0
            }
        };
        self.last = Some(entry.position);
        self.found.look(entry.tx, !follows || entry.block != height);
    }

    fn finish(self: Box<Self>) -> CheckFinding {
        self.found.finish(
            "transactions stand in no block that follows the one before",
            "transactions in blocks that follow each other",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wallet::Shares;
    use model::Seed;

    fn entry(height: u64, index: u64, tx: TxId) -> LedgerEntry {
        let position = (height << HEIGHT_SHIFT) + index;
        LedgerEntry { block: height, ..LedgerEntry::new(position, tx, true) }
    }

    /// Claim: an output spent twice is found, also by a double spend that got into a block; one that never did is fine.
    #[test]
    fn spent_twice() {
        let wallet = Wallet::new(Seed(1), 1, 1_000, Shares([0, 300, 0, 0, 0]));
        let double = (100..1_000).find(|n| wallet.spends_as(*n) != *n).unwrap();
        let of = |entries: &[TxId]| {
            let mut check = Box::new(Spent { wallet, seen: Vec::new(), found: Found::default() });
            (0..).zip(entries).for_each(|(n, tx)| check.entry(&entry(1, n, *tx), &[]));
            check.finish()
        };
        let earlier = wallet.spends_as(double);
        assert!(of(&[earlier, earlier + 10_000]).holds);
        assert!(of(&[double]).holds, "the earlier one never got into a block");
        let twice = of(&[earlier, double]);
        assert_eq!((twice.holds, twice.count, twice.examples), (false, 1, vec![double]));
        assert!(!of(&[earlier, earlier]).holds);
    }

    /// Claim: blocks that go back, positions that are left out, and entries that are not what was submitted are found.
    #[test]
    fn order_and_content() {
        let blocks = |entries: &[LedgerEntry]| {
            let mut check = Box::new(Blocks { last: None, found: Found::default() });
            entries.iter().for_each(|entry| check.entry(entry, &[]));
            check.finish()
        };
        let good = [entry(3, 0, 1), entry(3, 1, 2), entry(5, 0, 3)];
        assert!(blocks(&good).holds);
        assert!(!blocks(&[entry(3, 0, 1), entry(3, 2, 2)]).holds);
        assert!(!blocks(&[entry(3, 0, 1), entry(2, 0, 2)]).holds);
        assert!(!blocks(&[entry(3, 1, 1)]).holds);
        let wallet = Wallet::new(Seed(1), 1, 1_000, Shares::default());
        let mut value = Box::new(Value { wallet, found: Found::default() });
        value.entry(&good[0], &[]);
        value.entry(&LedgerEntry { ours: false, ..good[1] }, &[]);
        let found = value.finish();
        assert_eq!((found.holds, found.count), (false, 1));
    }
}
