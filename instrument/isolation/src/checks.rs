//! The checks that any adapter can take up whose workload is one of [`crate::workload`]'s, and whose sessions keep
//! observations in the forms of [`crate::observation`].

mod commit_order;
mod conserved;
mod list_append;
mod same_state;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use commit_order::COMMIT_ORDER;
pub use conserved::CONSERVED;
pub use list_append::LIST_APPEND;
use model::check::{Check, CheckInput};
use model::options::{Problems, Section};
use model::{Class, FinalStages, NO_STAMP, Outcome, Row, TxId};
pub use same_state::SAME_STATE;

use crate::history::Effect;
use crate::replay::Span;
use crate::verdict::Level;
use crate::workload::{self, Bank, Lists};

/// All of them.
pub const ALL: [Check; 4] = [COMMIT_ORDER, CONSERVED, LIST_APPEND, SAME_STATE];

/// Transactions that are looked at, those with the smallest numbers: some 200 bytes each.
const LOOKED_AT_MAX: TxId = 10_000_000;
const _: () = assert!(LOOKED_AT_MAX <= workload::JUDGED_END);

/// What of a row a check of a history needs.
fn effect(row: &Row) -> Effect {
    match row.outcome {
        _ if row.sent == NO_STAMP => Effect::None,
        Outcome::Committed => Effect::Certain,
        // The connection's end and the client's own trouble are no answer of the system.
        Outcome::Rejected(Class::Transport | Class::Client) | Outcome::Unknown => Effect::Possible,
        // A refusal is that of one attempt; an earlier one may have had its effect.
        Outcome::Rejected(_) if row.attempts > 1 => Effect::Possible,
        Outcome::Rejected(_) | Outcome::Shed => Effect::None,
    }
}

/// When a row's transaction was under way. It begins when its bytes go to the socket and ends when its answer is out of
/// the kernel, so that a contradiction is never the network's.
fn span(row: &Row, ends: FinalStages) -> Span {
    let completed = (row.outcome == Outcome::Committed).then(|| row.marks[ends.of(row.stream)]);
    Span { invoked: row.sent, completed: completed.filter(|mark| *mark != NO_STAMP) }
}

fn is_kind(input: &CheckInput<'_>, kind: &str) -> bool {
    workload::is_kind(input.workload, kind)
}

/// The main load's lists.
fn lists(input: &CheckInput<'_>) -> Lists {
    let mut problems = Problems::default();
    let mut section = Section::open(input.workload, "workload", &mut problems);
    Lists::read(&mut section, input.seed.split("workload"), &mut problems)
}

/// The main load's bank.
fn bank(input: &CheckInput<'_>) -> Bank {
    let mut problems = Problems::default();
    let mut section = Section::open(input.workload, "workload", &mut problems);
    Bank::read(&mut section, input.seed.split("workload"), &mut problems)
}

/// Words of `[workload] isolation`, and what they ask for.
const LEVELS: [(&str, Level); 5] = [
    ("strict-serializable", Level::StrictSerializable),
    ("serializable", Level::Serializable),
    ("snapshot", Level::SnapshotIsolation),
    ("read-committed", Level::ReadCommitted),
    ("read-uncommitted", Level::ReadUncommitted),
];

/// What `[workload] isolation` says that the system promises; strict serializability unless it says less.
pub fn promised(section: &mut Section<'_>, problems: &mut Problems) -> Level {
    let words = LEVELS.map(|(word, _)| word);
    let word = section.one_of("isolation", &words, problems);
    let level = LEVELS.iter().find(|(known, _)| Some(*known) == word);
    level.map_or(Level::StrictSerializable, |(_, level)| *level)
}

/// What was not looked at, in words that follow what was: empty, or `; 5 …`.
#[derive(Debug, Default)]
struct Limits {
    /// Transactions beyond those that are looked at.
    beyond: u64,
    /// Reads whose lists were not handed over.
    unread: u64,
    /// Committed transactions that read something, and nothing was kept of it.
    unseen: u64,
}

impl Limits {
    fn words(&self) -> String {
        let all = [
            (self.beyond, "later transactions not looked at"),
            (self.unread, "reads not looked at, since what they found was not kept in full"),
            (
                self.unseen,
                "committed transactions not looked at, since nothing was kept of what they read",
            ),
        ];
        let said = all.iter().filter(|(count, _)| *count > 0);
        said.map(|(count, what)| format!("; {count} {what}")).collect()
    }
}

/// What is said in place of a verdict by a check that was shown nothing that could have contradicted the promise.
const NO_VERDICT: &str = "nothing that was read could be looked at, so there is no verdict";

/// The same of a comparison of replicas.
const NO_STATES: &str =
    "no two replicas said what they hold at one position, so there is no verdict";

/// Counts of what was found, most telling first, as `2 of this, 1 of that`.
fn counted<'a>(all: impl IntoIterator<Item = (u64, &'a str)>) -> String {
    let said = all.into_iter().filter(|(count, _)| *count > 0);
    said.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}

/// Answers by transaction: of one that was observed twice the first, and whether the second was another.
#[derive(Debug)]
struct Answers<A> {
    by_id: HashMap<TxId, A>,
    malformed: Vec<TxId>,
    differing: Vec<TxId>,
}

impl<A> Default for Answers<A> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), malformed: Vec::new(), differing: Vec::new() }
    }
}

impl<A: PartialEq> Answers<A> {
    fn add(&mut self, id: TxId, answer: Option<A>) {
        let Some(answer) = answer else {
            self.malformed.push(id);
            return;
        };
        match self.by_id.get(&id) {
            Some(known) if *known != answer => self.differing.push(id),
            Some(_) => {}
            None => {
                self.by_id.insert(id, answer);
            }
        }
    }
}
