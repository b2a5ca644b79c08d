//! The check `conserved`: each read of all accounts of the bank adds up to what there is, and no account is below nothing.

use std::collections::{BTreeSet, HashSet};

use model::check::{Check, CheckFinding, CheckInput, CheckState, EXAMPLES_MAX, Entries, Reads};
use model::observation::Observation;
use model::{Outcome, Row, TxId};

use super::{Limits, NO_VERDICT, bank, counted, is_kind};
use crate::observation;
use crate::workload::{self, Bank, BankOp};

/// The check.
pub const CONSERVED: Check = Check {
    name: "conserved",
    summary: "reads of all accounts add up to the same total, and none is below nothing",
    reads: Reads { rows: true, observations: true, entries: Entries::Unread },
    applies: |input| is_kind(input, workload::BANK),
    start: |input| Box::new(Conserved::new(input)),
};

struct Conserved {
    bank: Bank,
    /// Committed reads of all accounts of which nothing was seen yet.
    awaited: HashSet<TxId>,
    reads: u64,
    ill: BTreeSet<TxId>,
    wrong_total: BTreeSet<TxId>,
    below: BTreeSet<TxId>,
}

impl Conserved {
    fn new(input: &CheckInput<'_>) -> Self {
        Self {
            bank: bank(input),
            awaited: HashSet::new(),
            reads: 0,
            ill: BTreeSet::new(),
            wrong_total: BTreeSet::new(),
            below: BTreeSet::new(),
        }
    }
}

impl CheckState for Conserved {
    fn row(&mut self, row: &Row) {
        let is_read = row.tx < workload::JUDGED_END && self.bank.op(row.tx) == BankOp::ReadAll;
        if is_read && row.outcome == Outcome::Committed {
            self.awaited.insert(row.tx);
        }
    }

    fn observation(&mut self, observation: &Observation<'_>) {
        let tx = observation.tx;
        if tx >= workload::JUDGED_END || self.bank.op(tx) != BankOp::ReadAll {
            return;
        }
        self.reads += 1;
        self.awaited.remove(&tx);
        let balances = observation::balances(observation.bytes);
        let Some(balances) = balances.ok().filter(|all| all.len() == crate::at(self.bank.accounts))
        else {
            self.ill.insert(tx);
            return;
        };
        // In 128 bits: what a system returns may be anything.
        let total: i128 = balances.iter().map(|balance| i128::from(*balance)).sum();
        if total != i128::from(self.bank.total()) {
            self.wrong_total.insert(tx);
        }
        if balances.iter().any(|balance| *balance < 0) {
            self.below.insert(tx);
        }
    }

    fn finish(self: Box<Self>) -> CheckFinding {
        let Self { bank, awaited, reads, ill, wrong_total, below } = *self;
        let missing = awaited.len() as u64;
        let limits = Limits { unseen: missing, ..Limits::default() }.words();
        let total = bank.total();
        let said = counted([
            (wrong_total.len() as u64, "another total"),
            (below.len() as u64, "an account below nothing"),
            (ill.len() as u64, "something else than all accounts"),
        ]);
        let broken: BTreeSet<TxId> = wrong_total.into_iter().chain(below).chain(ill).collect();
        if broken.is_empty() {
            let saw_nothing = reads == 0;
            let found = if saw_nothing {
                NO_VERDICT.to_owned()
            } else {
                format!("each adds up to {total}")
            };
            let words = format!("reads of all accounts looked at: {found}{limits}");
            let (holds, count, examples) = (true, reads, Vec::new());
            return CheckFinding { holds, count, examples, words, missing, saw_nothing };
        }
        CheckFinding {
            holds: false,
            count: broken.len() as u64,
            examples: broken.into_iter().take(EXAMPLES_MAX).collect(),
            words: format!(
                "of {reads} reads of all accounts do not show a total of {total}: {said}{limits}"
            ),
            missing,
            saw_nothing: false,
        }
    }
}
