//! The check `list-append`: is there an order, in real time, that explains what all reads of lists returned? The algorithm
//! is the crate's; here rows and observations become a history.

use std::collections::BTreeSet;

use model::check::{Check, CheckFinding, CheckInput, CheckState, EXAMPLES_MAX, Entries, Reads};
use model::observation::Observation;
use model::options::{Problems, Section};
use model::{FinalStages, NO_STAMP, Row, TxId};

use super::{LOOKED_AT_MAX, Limits, NO_VERDICT, effect, is_kind, lists, promised, span};
use crate::history::{Effect, History, MicroOp, Transaction};
use crate::observation;
use crate::prefix::Prefix;
use crate::verdict::{Instance, Level, Verdict};
use crate::workload::{self, Lists};
use crate::{NONE, at, small};

/// The check.
pub const LIST_APPEND: Check = Check {
    name: "list-append",
    summary: "what reads of lists returned is explained by an order of all transactions",
    reads: Reads { rows: true, observations: true, entries: Entries::Unread },
    applies: |input| is_kind(input, workload::LIST_APPEND),
    start: |input| Box::new(ListAppend::new(input)),
};

struct ListAppend {
    lists: Lists,
    promised: Level,
    final_stages: FinalStages,
    history: History,
    /// Where each transaction is in the history; [`NONE`] = nowhere.
    places: Vec<u32>,
    /// Answered otherwise than in the form of lists, or not to what was asked.
    malformed: BTreeSet<TxId>,
    /// Answered twice, and not the same.
    differing: BTreeSet<TxId>,
    limits: Limits,
    ops: Vec<MicroOp>,
}

impl ListAppend {
    fn new(input: &CheckInput<'_>) -> Self {
        let mut problems = Problems::default();
        let mut section = Section::open(input.workload, "workload", &mut problems);
        Self {
            lists: lists(input),
            promised: promised(&mut section, &mut problems),
            final_stages: input.final_stages,
            history: History::default(),
            places: Vec::new(),
            malformed: BTreeSet::new(),
            differing: BTreeSet::new(),
            limits: Limits::default(),
            ops: Vec::new(),
        }
    }

    fn place(&self, id: TxId) -> Option<u32> {
        let place = *self.places.get(usize::try_from(id).ok()?)?;
        (place != NONE).then_some(place)
    }

    fn add(&mut self, transaction: Transaction) {
        self.lists.ops(transaction.id, &mut self.ops);
        let place = self.history.add(transaction, &self.ops);
        let index = at(small(usize::try_from(transaction.id).expect("few are looked at")));
        if self.places.len() <= index {
            self.places.resize(index + 1, NONE);
        }
        self.places[index] = place;
    }

    /// Elements of transactions that there are no rows of: those of a trial that was cut off, and those that are not looked
    /// at. Of what no transaction of this workload appends there nothing is known, and it stays garbage.
    fn add_unrecorded(&mut self) {
        let unwritten: Vec<_> = self.history.unwritten().collect();
        let mut beyond = BTreeSet::new();
        for (key, element) in unwritten {
            let id = self.lists.writer(element);
            if id >= workload::JUDGED_END || self.place(id).is_some() || beyond.contains(&id) {
                continue;
            }
            self.lists.ops(id, &mut self.ops);
            if !self.ops.contains(&MicroOp::Append { key, element }) {
                continue;
            }
            let effect = Effect::Possible;
            let one = Transaction { id, invoked: i64::MIN, completed: NO_STAMP, effect };
            if id < LOOKED_AT_MAX {
                self.add(one);
            } else {
                self.history.add(one, &self.ops);
                beyond.insert(id);
            }
        }
    }
}

impl CheckState for ListAppend {
    fn row(&mut self, row: &Row) {
        if row.tx >= LOOKED_AT_MAX {
            self.limits.beyond += 1;
            return;
        }
        let when = span(row, self.final_stages);
        let mut effect = effect(row);
        if effect == Effect::Certain && when.completed.is_none() {
            effect = Effect::Possible;
        }
        let completed = when.completed.unwrap_or(NO_STAMP);
        self.add(Transaction { id: row.tx, invoked: when.invoked, completed, effect });
    }

    fn observation(&mut self, observation: &Observation<'_>) {
        let Some(place) = self.place(observation.tx) else { return };
        let Ok(reads) = observation::lists(observation.bytes) else {
            self.malformed.insert(observation.tx);
            return;
        };
        self.lists.ops(observation.tx, &mut self.ops);
        let asked = self.ops.iter().filter_map(|op| match op {
            MicroOp::Read { key, .. } => Some(*key),
            MicroOp::Append { .. } => None,
        });
        if asked.clone().count() != reads.len() {
            self.malformed.insert(observation.tx);
            return;
        }
        // Lists are handed over whatever became of the transaction: what its session shows later begins behind them.
        for (key, read) in asked.zip(&reads) {
            self.history.list(key, read.before, &read.elements().collect::<Vec<_>>());
        }
        let found: Vec<Prefix> = reads.iter().map(|read| read.found).collect();
        if !self.history.found(place, found) {
            self.differing.insert(observation.tx);
        }
    }

    fn finish(mut self: Box<Self>) -> CheckFinding {
        self.add_unrecorded();
        let Self { promised, malformed, differing, mut limits, history, .. } = *self;
        limits.unseen = history.unseen();
        let verdict = history.check();
        limits.unread = verdict.unread;
        finding(&verdict, promised, &malformed, &differing, &limits)
    }
}

fn finding(
    verdict: &Verdict,
    promised: Level,
    malformed: &BTreeSet<TxId>,
    differing: &BTreeSet<TxId>,
    limits: &Limits,
) -> CheckFinding {
    let missing = limits.unseen;
    let limits = limits.words();
    let level = verdict.level();
    if level >= promised && malformed.is_empty() && differing.is_empty() {
        let saw_nothing = verdict.reads == 0;
        let found = if saw_nothing { NO_VERDICT } else { level.words() };
        let words =
            format!("transactions looked at, with {} reads: {found}{limits}", verdict.reads);
        let (holds, count, examples) = (true, verdict.transactions, Vec::new());
        return CheckFinding { holds, count, examples, words, missing, saw_nothing };
    }
    let all = verdict.anomalies.values().flat_map(|broken| &broken.instances);
    let mut broken: BTreeSet<TxId> = all.flat_map(Instance::ids).collect();
    broken.extend(malformed.iter().chain(differing));
    let mut said = Vec::new();
    for ((anomaly, is_real_time), broken) in &verdict.anomalies {
        let time = if *is_real_time { " in real time" } else { "" };
        said.push(format!("{} {}{time}", broken.count, anomaly.name()));
    }
    let ill = [
        (malformed.len(), "answers that are not of what was asked"),
        (differing.len(), "transactions answered twice, and not the same"),
    ];
    let ill = ill.iter().filter(|(count, _)| *count > 0);
    said.extend(ill.map(|(count, what)| format!("{count} {what}")));
    let example = worst(verdict).map(|one| format!("; {}", one.words())).unwrap_or_default();
    CheckFinding {
        holds: false,
        count: broken.len() as u64,
        examples: broken.into_iter().take(EXAMPLES_MAX).collect(),
        words: format!(
            "transactions show that it is {} at most: {}{example}{limits}",
            level.words(),
            said.join(", ")
        ),
        missing,
        saw_nothing: false,
    }
}

/// The case that refutes the most, and of those the one with the fewest transactions.
fn worst(verdict: &Verdict) -> Option<&Instance> {
    let all = verdict.anomalies.iter().flat_map(|((anomaly, is_real_time), broken)| {
        let level = if *is_real_time { Level::Serializable } else { anomaly.allows() };
        broken.instances.iter().map(move |one| (level, one.ids().len(), one))
    });
    all.min_by_key(|(level, length, _)| (*level, *length)).map(|(_, _, one)| one)
}
