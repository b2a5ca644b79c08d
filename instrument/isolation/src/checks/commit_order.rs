//! The check `commit-order`: transactions happen once more in the order of the ledger, and each must have been answered as
//! it is then. What the ledger does not record (transactions that only read) is not looked at here.

use std::collections::{BTreeSet, HashSet};

use model::check::{Check, CheckFinding, CheckInput, CheckState, EXAMPLES_MAX, Entries, Reads};
use model::facts::LedgerEntry;
use model::observation::Observation;
use model::{FinalStages, NO_STAMP, Row, TxId};

use super::{
    Answers, LOOKED_AT_MAX, Limits, NO_VERDICT, bank, counted, effect, is_kind, lists, span,
};
use crate::history::{Effect, MicroOp};
use crate::models::{BankAnswer, BankModel, ListModel};
use crate::observation;
use crate::prefix::Prefix;
use crate::replay::{Replay, Replayed, Span};
use crate::workload::{self, Bank, BankOp, Lists};

/// The check.
pub const COMMIT_ORDER: Check = Check {
    name: "commit-order",
    summary: "transactions were answered as they are when they happen in the order of the ledger, which real time agrees with",
    reads: Reads { rows: true, observations: true, entries: Entries::Bare },
    applies: |input| is_kind(input, workload::LIST_APPEND) || is_kind(input, workload::BANK),
    start,
};

fn start(input: &CheckInput<'_>) -> Box<dyn CheckState> {
    if is_kind(input, workload::BANK) {
        let bank = bank(input);
        let replay = Replay::new(BankModel::new(&bank));
        return Box::new(CommitOrder::new(input, OfBank { bank, replay }));
    }
    let of_lists =
        OfLists { lists: lists(input), replay: Replay::new(ListModel::default()), ops: Vec::new() };
    Box::new(CommitOrder::new(input, of_lists))
}

/// A workload whose transactions can happen again.
trait Again {
    type Answer: PartialEq;

    /// An answer, out of what was observed.
    fn answer(bytes: &[u8]) -> Option<Self::Answer>;

    /// Whether the answer to a transaction says anything of what it found.
    fn reads(&mut self, id: TxId) -> bool;

    /// Lets a transaction happen, unless it only reads.
    fn next(&mut self, id: TxId, span: Option<Span>, answer: Option<&Self::Answer>);

    fn finish(self) -> Replayed;
}

struct OfLists {
    lists: Lists,
    replay: Replay<ListModel>,
    ops: Vec<MicroOp>,
}

impl Again for OfLists {
    type Answer = Vec<Prefix>;

    fn answer(bytes: &[u8]) -> Option<Vec<Prefix>> {
        let reads = observation::lists(bytes).ok()?;
        Some(reads.iter().map(|read| read.found).collect())
    }

    fn reads(&mut self, id: TxId) -> bool {
        self.lists.ops(id, &mut self.ops);
        self.ops.iter().any(|op| matches!(op, MicroOp::Read { .. }))
    }

    fn next(&mut self, id: TxId, span: Option<Span>, answer: Option<&Vec<Prefix>>) {
        self.lists.ops(id, &mut self.ops);
        self.replay.next(id, span, &self.ops, answer.map(Vec::as_slice));
    }

    fn finish(self) -> Replayed {
        self.replay.finish().0
    }
}

struct OfBank {
    bank: Bank,
    replay: Replay<BankModel>,
}

impl Again for OfBank {
    type Answer = BankAnswer;

    fn answer(bytes: &[u8]) -> Option<BankAnswer> {
        let moved = observation::transfer(bytes).map(BankAnswer::Moved);
        moved.or_else(|_| observation::balances(bytes).map(BankAnswer::Balances)).ok()
    }

    fn reads(&mut self, _: TxId) -> bool {
        true
    }

    fn next(&mut self, id: TxId, span: Option<Span>, answer: Option<&BankAnswer>) {
        let op: BankOp = self.bank.op(id);
        self.replay.next(id, span, &op, answer);
    }

    fn finish(self) -> Replayed {
        self.replay.finish().0
    }
}

struct CommitOrder<W: Again> {
    workload: W,
    final_stages: FinalStages,
    /// When each transaction was under way, and whether it was committed, as far as its client knows.
    spans: Vec<Option<Span>>,
    answers: Answers<W::Answer>,
    /// Entries there were already: how often a transaction stands in the ledger is for its fate.
    entered: HashSet<TxId>,
    /// Committed and in the ledger, and nothing was kept of what they read.
    unseen: HashSet<TxId>,
    limits: Limits,
}

impl<W: Again> CommitOrder<W> {
    fn new(input: &CheckInput<'_>, workload: W) -> Self {
        Self {
            workload,
            final_stages: input.final_stages,
            spans: Vec::new(),
            answers: Answers::default(),
            entered: HashSet::new(),
            unseen: HashSet::new(),
            limits: Limits::default(),
        }
    }

    fn span(&self, id: TxId) -> Option<Span> {
        *self.spans.get(usize::try_from(id).ok()?)?
    }
}

impl<W: Again> CheckState for CommitOrder<W> {
    fn row(&mut self, row: &Row) {
        if row.tx >= LOOKED_AT_MAX {
            self.limits.beyond += 1;
            return;
        }
        let index = usize::try_from(row.tx).expect("few are looked at");
        if self.spans.len() <= index {
            self.spans.resize(index + 1, None);
        }
        if row.sent != NO_STAMP && effect(row) != Effect::None {
            self.spans[index] = Some(span(row, self.final_stages));
        }
    }

    fn observation(&mut self, observation: &Observation<'_>) {
        // What is told of one that was not committed in time holds all the same, and is left to the other checks.
        if self.span(observation.tx).is_some_and(|span| span.completed.is_some()) {
            self.answers.add(observation.tx, W::answer(observation.bytes));
        }
    }

    fn entry(&mut self, entry: &LedgerEntry, _content: &[u8]) {
        if !entry.ours || entry.is_refused || entry.tx >= workload::JUDGED_END {
            return;
        }
        if self.entered.insert(entry.tx) {
            let (answer, span) = (self.answers.by_id.get(&entry.tx), self.span(entry.tx));
            let is_committed = span.is_some_and(|span| span.completed.is_some());
            if answer.is_none() && is_committed && self.workload.reads(entry.tx) {
                self.unseen.insert(entry.tx);
            }
            self.workload.next(entry.tx, span, answer);
        }
    }

    fn finish(self: Box<Self>) -> CheckFinding {
        let Self { workload, answers, mut limits, mut unseen, .. } = *self;
        let replayed = workload.finish();
        let Answers { malformed, differing, .. } = answers;
        malformed.iter().for_each(|id| {
            unseen.remove(id);
        });
        let missing = unseen.len() as u64;
        limits.unseen = missing;
        let limits = limits.words();
        if replayed.holds() && malformed.is_empty() && differing.is_empty() {
            let saw_nothing = replayed.answers == 0;
            let found = if saw_nothing {
                NO_VERDICT
            } else {
                "answers are what their transactions do there"
            };
            let words = format!("entries replayed: {} {found}{limits}", replayed.answers);
            let words =
                if saw_nothing { format!("entries replayed: {found}{limits}") } else { words };
            let (holds, count, examples) = (true, replayed.transactions, Vec::new());
            return CheckFinding { holds, count, examples, words, missing, saw_nothing };
        }
        let said = counted([
            (replayed.wrong, "were answered otherwise than they are at their place"),
            (
                replayed.misplaced,
                "stand behind one that was sent only after they had been answered",
            ),
            (malformed.len() as u64, "were not answered in the form of an answer"),
            (differing.len() as u64, "were answered twice, and not the same"),
        ]);
        let pair = replayed
            .misplaced_ids
            .first()
            .map(|[earlier, later]| format!("; {later} stands behind {earlier}"));
        let misplaced = replayed.misplaced_ids.iter().map(|[_, later]| *later);
        let broken: BTreeSet<TxId> = replayed
            .wrong_ids
            .iter()
            .copied()
            .chain(misplaced)
            .chain(malformed)
            .chain(differing)
            .collect();
        CheckFinding {
            holds: false,
            count: replayed.wrong + replayed.misplaced,
            examples: broken.into_iter().take(EXAMPLES_MAX).collect(),
            words: format!(
                "transactions contradict the order of the ledger: {said}{}{limits}",
                pair.unwrap_or_default()
            ),
            missing,
            saw_nothing: false,
        }
    }
}
