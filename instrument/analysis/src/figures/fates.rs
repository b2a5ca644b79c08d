//! The fate of every transaction by the ledger: once, lost, duplicate, phantom, late, refused yet present, refused and
//! logged as such. What is of a kind that the ledger does not record cannot be lost.
//!
//! A join of rows with ledger entries in bounded memory: transaction ids are dense (from 0 for the load, from
//! 2^40 for the probe), so half a byte each suffices: two bits for what the client was told, two for how often
//! the ledger has it. 100 million transactions take 50 MB. It must never hold an entry.

use std::collections::BTreeMap;

use model::facts::{AgentFacts, KindFacts, LedgerEntry, LedgerFacts};
use model::result::{Fates, TrialResult};
use model::{Class, FinalStages, NO_STAMP, Outcome, PROBE_BASE, Row};

use crate::figures::by_id::{IDS_MAX, Nibbles, Times, Unit};
use crate::figures::known::Known;
use crate::figures::part::Part;
use stats::carry::Carry;

/// Examples kept of each fate.
const EXAMPLES_MAX: usize = 100;
/// Up to so many transactions the order of the ledger is compared with real time: 8 bytes each, 160 MB.
pub(crate) const ORDERED_MAX: u64 = 20_000_000;

/// The answer that the client got: two bits.
const NEVER: u8 = 0;
const ACKNOWLEDGED: u8 = 1;
const REFUSED: u8 = 2;
const UNANSWERED: u8 = 3;
/// Which bits hold how often the ledger has it: not, once, more often, or as refused only. Of what was NEVER sent
/// they hold why an entry belongs to no transaction.
const SEEN_ONE: u8 = 1 << 2;
const SEEN_MORE: u8 = 2 << 2;
const SEEN_REFUSED: u8 = 3 << 2;
const SEEN_MASK: u8 = 3 << 2;
/// There is a row, and nothing was sent. Kept, so that a second row with its id shows.
const NOT_SENT: u8 = NEVER | 3 << 2;
/// Of a kind that the ledger does not record.
const UNRECORDED: u8 = NEVER | 1 << 2;

/// One id space: the load's or the probe's.
#[derive(Clone, Default)]
struct Space {
    told: Nibbles,
    times: Times,
}

/// The join, fed with all rows and then with all entries.
#[derive(Clone)]
pub(crate) struct Join {
    spaces: [Space; 2],
    final_stages: FinalStages,
    /// Whether the ledger records a kind, by its index.
    is_recorded: Vec<bool>,
    rows: u64,
    /// Acknowledged ones whose kind the ledger does not record.
    pub acknowledged_unrecorded: u64,
    /// Rows with an id that another row has, and rows with an id out of all bounds.
    pub repeated_rows: u64,
    pub strange_rows: u64,
    fates: Fates,
    /// Acknowledged and in the ledger more than once.
    pub acknowledged_often: u64,
    /// The latest `sent` among entries so far.
    latest_sent: u32,
    /// The ledger has no order that could contradict anything.
    is_unordered: bool,
    /// Stamps of two hosts are this far apart at most, in the unit of the times: an order within it contradicts nothing.
    slack: u32,
    unit_ns: i64,
}

impl Part for Join {
    fn of_trial(trial: &Known<'_>) -> Self {
        let span_ns = trial.grid.end.saturating_add(trial.patience_ns);
        Self::new(trial.ends, span_ns, &trial.facts.declared.kinds)
            .unordered(trial.facts.after.ledger.is_unordered)
            .of_hosts(&trial.facts.load.agents)
    }

    fn block(&mut self, rows: &[&Row]) {
        rows.iter().for_each(|row| self.row(row));
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        it.sum(&mut self.rows);
        it.sum(&mut self.acknowledged_unrecorded);
        it.sum(&mut self.repeated_rows);
        it.sum(&mut self.strange_rows);
        // Of more in all the order is not looked at.
        let is_timed = it.told(u8::from(self.rows <= ORDERED_MAX)) != 0;
        for space in &mut self.spaces {
            self.repeated_rows += space.told.carry(it);
            if is_timed {
                space.times.carry(it);
            }
        }
    }

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        let (fates, ledger) = (self.finish(), &trial.facts.after.ledger);
        if ledger.read {
            result.fates = Some(settled(fates, ledger));
        }
    }
}

impl Join {
    /// `span_ns` bounds the stamps of the trial; it chooses the unit of time for the order.
    pub fn new(final_stages: FinalStages, span_ns: i64, kinds: &[KindFacts]) -> Self {
        let unit_ns = (span_ns.max(0) / i64::from(u32::MAX / 2) + 1).max(1_000);
        let unit = Unit::new(unit_ns);
        let space = || Space { times: Times::of(unit), ..Space::default() };
        Self {
            spaces: [space(), space()],
            final_stages,
            is_recorded: kinds.iter().map(|kind| kind.is_recorded).collect(),
            rows: 0,
            acknowledged_unrecorded: 0,
            repeated_rows: 0,
            strange_rows: 0,
            fates: Fates::default(),
            acknowledged_often: 0,
            latest_sent: 0,
            is_unordered: false,
            slack: 0,
            unit_ns,
        }
    }

    /// The load was spread over these, whose clocks were set against one another before it and drift.
    pub fn of_hosts(mut self, agents: &[AgentFacts]) -> Self {
        let apart = |agent: &AgentFacts| {
            let offsets = || agent.clocks.iter().map(|it| it.offset_ns);
            let drift = offsets().max().unwrap_or(0).saturating_sub(offsets().min().unwrap_or(0));
            let error = agent.clocks.iter().map(|it| it.error_ns).max().unwrap_or(0);
            agent.start_error_ns.saturating_add(drift).saturating_add(error)
        };
        let most = agents.iter().map(apart).max().unwrap_or(0).max(0).saturating_mul(2);
        let units = most / self.unit_ns + i64::from(most % self.unit_ns != 0);
        self.slack = u32::try_from(units).unwrap_or(u32::MAX);
        self
    }

    /// The ledger's entries come in no order of their own.
    pub fn unordered(mut self, is_unordered: bool) -> Self {
        self.is_unordered = is_unordered;
        self
    }

    #[inline]
    pub fn row(&mut self, row: &Row) {
        self.rows += 1;
        let Some((space, id)) = space_of(row.tx) else {
            self.strange_rows += 1;
            return;
        };
        let told = match row.outcome {
            Outcome::Shed => NOT_SENT,
            Outcome::Rejected(_) if row.sent == NO_STAMP => NOT_SENT,
            outcome if !self.is_recorded(row.kind) => {
                self.acknowledged_unrecorded += u64::from(outcome == Outcome::Committed);
                UNRECORDED
            }
            Outcome::Committed => ACKNOWLEDGED,
            // A failure on this side of the system is no answer of the system: it may have recorded the transaction.
            Outcome::Rejected(Class::Client | Class::Transport) | Outcome::Unknown => UNANSWERED,
            // The refusal of a later attempt says nothing of the first, which may have been recorded.
            Outcome::Rejected(_) if row.attempts > 1 => UNANSWERED,
            Outcome::Rejected(_) => REFUSED,
        };
        let space = &mut self.spaces[space];
        self.repeated_rows += u64::from(space.told.replace(id, told) != 0);
        if self.rows <= ORDERED_MAX && row.sent != NO_STAMP {
            space.times.set(id, row.sent, row.marks[self.final_stages.of(row.stream)]);
        }
    }

    /// Whether the entry is a transaction's second or later one.
    pub fn entry(&mut self, entry: &LedgerEntry) -> bool {
        if entry.is_waiting {
            // Nothing has become of it: as if it were not there.
            return false;
        }
        self.fates.entries += 1;
        let known = space_of(entry.tx).filter(|_| entry.ours);
        let Some((space, id)) = known else { return self.phantom(entry.tx) };
        let told = self.spaces[space].told.get(id);
        if told & 3 == NEVER {
            self.fates.phantom_unrecorded += u64::from(told == UNRECORDED);
            return self.phantom(entry.tx);
        }
        let seen = told & SEEN_MASK;
        if seen == 0 {
            self.placed(space, id, entry.tx);
        }
        if entry.is_refused {
            // However often it is logged so, it had no effect.
            self.fates.refused_entries += 1;
            let seen = if seen == 0 { SEEN_REFUSED } else { seen };
            self.spaces[space].told.set(id, told & 3 | seen);
            return false;
        }
        if seen == 0 || seen == SEEN_REFUSED {
            self.spaces[space].told.set(id, told & 3 | SEEN_ONE);
            return false;
        }
        self.spaces[space].told.set(id, told & 3 | SEEN_MORE);
        self.fates.duplicate += 1;
        example(&mut self.fates.examples, "duplicate", entry.tx);
        true
    }

    /// An unnamed kind is taken for one that is recorded: a row must not escape the ledger by a wrong number.
    #[inline]
    fn is_recorded(&self, kind: u32) -> bool {
        usize::try_from(kind).ok().and_then(|kind| self.is_recorded.get(kind)).is_none_or(|is| *is)
    }

    /// The ledger's order must not contradict real time: nothing may stand before an entry that was
    /// acknowledged before it was sent. One pass with a running maximum of `sent`.
    fn placed(&mut self, space: usize, id: u64, tx: u64) {
        if !self.order_was_checked() {
            return;
        }
        let Some((sent, acknowledged)) = self.spaces[space].times.get(id) else { return };
        if acknowledged.saturating_add(self.slack) < self.latest_sent {
            self.fates.reordered += 1;
            example(&mut self.fates.examples, "reordered", tx);
        }
        self.latest_sent = self.latest_sent.max(sent);
    }

    fn phantom(&mut self, tx: u64) -> bool {
        self.fates.phantom += 1;
        example(&mut self.fates.examples, "phantom", tx);
        false
    }

    /// Whether the order of the ledger was looked at.
    pub fn order_was_checked(&self) -> bool {
        self.rows <= ORDERED_MAX && !self.is_unordered
    }

    /// The fates, after the sweep over all ids.
    pub fn finish(&mut self) -> Fates {
        let mut fates = std::mem::take(&mut self.fates);
        for (space, base) in self.spaces.iter().zip([0, PROBE_BASE]) {
            for (id, value) in space.told.each() {
                let seen = value & SEEN_MASK;
                match value & 3 {
                    ACKNOWLEDGED if seen == 0 || seen == SEEN_REFUSED => {
                        fates.lost += 1;
                        fates.lost_as_refused += u64::from(seen == SEEN_REFUSED);
                        example(&mut fates.examples, "lost", base + id);
                    }
                    ACKNOWLEDGED if seen == SEEN_ONE => fates.once += 1,
                    ACKNOWLEDGED => self.acknowledged_often += 1,
                    REFUSED | UNANSWERED if seen == SEEN_REFUSED => {
                        fates.refused_as_logged += 1;
                        example(&mut fates.examples, "refused_as_logged", base + id);
                    }
                    REFUSED if seen != 0 => {
                        fates.refused_yet_present += 1;
                        example(&mut fates.examples, "refused_yet_present", base + id);
                    }
                    UNANSWERED if seen != 0 => {
                        fates.late += 1;
                        example(&mut fates.examples, "late", base + id);
                    }
                    _ => {}
                }
            }
        }
        fates
    }
}

/// The fates with what two readings of the ledger say that one does not.
pub(crate) fn settled(mut fates: Fates, ledger: &LedgerFacts) -> Fates {
    if let Some(second) = ledger.second.as_ref().filter(|second| second.early > 0) {
        fates.acknowledged_early = second.early;
        fates.examples.insert("acknowledged_early".to_owned(), second.early_examples.clone());
    }
    fates
}

fn space_of(tx: u64) -> Option<(usize, u64)> {
    if tx < IDS_MAX {
        Some((0, tx))
    } else {
        tx.checked_sub(PROBE_BASE).filter(|id| *id < IDS_MAX).map(|id| (1, id))
    }
}

fn example(examples: &mut BTreeMap<String, Vec<u64>>, fate: &str, tx: u64) {
    let list = examples.entry(fate.to_owned()).or_default();
    if list.len() < EXAMPLES_MAX {
        list.push(tx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::row;
    use model::Class;
    use model::facts::ClockExchange;

    fn entry(position: u64, tx: u64) -> LedgerEntry {
        LedgerEntry::new(position, tx, true)
    }

    /// Claim: one of each fate in a hundred thousand is found, counted and named by id.
    #[test]
    fn every_fate_by_id() {
        let mut join = Join::new(FinalStages::all(0), 1_000_000_000_000, &[]);
        for tx in 0..100_000 {
            let outcome = match tx {
                70_001 => Outcome::Unknown,
                70_002 => Outcome::Rejected(Class::Conflict),
                70_003 => Outcome::Shed,
                70_004 => Outcome::Rejected(Class::Client),
                _ => Outcome::Committed,
            };
            join.row(&row(tx, 1_000_000 * i64::try_from(tx).unwrap(), 500_000, outcome));
        }
        for tx in (0..100_000).filter(|tx| *tx != 31_337 && *tx != 70_003) {
            join.entry(&entry(tx, tx));
        }
        join.entry(&entry(200_000, 4_711));
        join.entry(&entry(200_001, 123_456));
        join.entry(&entry(200_002, 70_003));
        join.entry(&LedgerEntry::new(200_003, 5, false));
        let fates = join.finish();
        assert_eq!((fates.lost, fates.duplicate, fates.phantom), (1, 1, 3));
        assert_eq!((fates.late, fates.refused_yet_present), (2, 1));
        assert_eq!(fates.once, 100_000 - 3 - 1 - 1 - 1);
        assert_eq!(join.acknowledged_often, 1);
        assert_eq!(fates.examples["lost"], [31_337]);
        assert_eq!(fates.examples["duplicate"], [4_711]);
        assert_eq!(fates.examples["phantom"], [123_456, 70_003, 5]);
        assert_eq!(fates.examples["late"], [70_001, 70_004], "a client's failure is no refusal");
        assert_eq!(fates.examples["refused_yet_present"], [70_002]);
        assert_eq!(fates.reordered, 0);
    }

    /// Claim: a transaction of which a later attempt was refused may have been recorded by the first: in the ledger it is late,
    /// and not there it is refused as others are.
    #[test]
    fn refused_when_sent_again() {
        let mut join = Join::new(FinalStages::all(0), 1_000_000_000, &[]);
        for tx in 0..2 {
            let refused = row(tx, 0, 500_000, Outcome::Rejected(Class::Overloaded));
            join.row(&Row { attempts: 2, ..refused });
        }
        join.entry(&entry(0, 0));
        let fates = join.finish();
        assert_eq!((fates.late, fates.refused_yet_present), (1, 0));
    }

    /// Claim: stamps of two hosts are compared with what their clocks may be apart.
    #[test]
    fn clocks_of_two_hosts() {
        let agent = |drift_ns| AgentFacts {
            start_error_ns: 50_000,
            clocks: [0, drift_ns]
                .map(|offset_ns| ClockExchange {
                    offset_ns,
                    error_ns: 10_000,
                    ..Default::default()
                })
                .to_vec(),
            ..AgentFacts::default()
        };
        for (agents, reordered) in
            [(vec![], 1), (vec![agent(0), agent(0)], 1), (vec![agent(0), agent(5_000_000)], 0)]
        {
            let mut join = Join::new(FinalStages::all(0), 1_000_000_000, &[]).of_hosts(&agents);
            join.row(&row(0, 0, 1_000_000, Outcome::Committed));
            join.row(&row(1, 3_000_000, 1_000_000, Outcome::Committed));
            join.entry(&entry(0, 1));
            join.entry(&entry(1, 0));
            assert_eq!(join.finish().reordered, reordered, "{}", agents.len());
        }
    }

    /// Claim: an entry placed after one that was sent after it was acknowledged is out of order; two that
    /// overlapped in time may stand either way.
    #[test]
    fn real_time_order() {
        let mut join = Join::new(FinalStages::all(0), 1_000_000_000, &[]);
        for (tx, due, length) in
            [(0, 0, 5_000_000), (1, 1_000_000, 5_000_000), (2, 20_000_000, 1_000_000)]
        {
            join.row(&row(tx, due, length, Outcome::Committed));
        }
        for (position, tx) in [(0, 1), (1, 2), (2, 0)] {
            join.entry(&entry(position, tx));
        }
        let fates = join.finish();
        assert_eq!(fates.reordered, 1);
        assert_eq!(fates.examples["reordered"], [0]);
    }

    /// Claim: the probe's ids are told apart from the load's, and absurd ids neither crash nor take memory.
    #[test]
    fn id_spaces() {
        let mut join = Join::new(FinalStages::all(0), 1_000_000_000, &[]);
        join.row(&row(0, 0, 1_000, Outcome::Committed));
        join.row(&row(PROBE_BASE, 0, 1_000, Outcome::Committed));
        join.row(&row(u64::MAX, 0, 1_000, Outcome::Committed));
        join.row(&row(0, 0, 1_000, Outcome::Committed));
        join.entry(&entry(0, PROBE_BASE));
        join.entry(&entry(1, u64::MAX));
        let fates = join.finish();
        assert_eq!((fates.once, fates.lost, fates.phantom), (1, 1, 1));
        assert_eq!((join.strange_rows, join.repeated_rows), (1, 1));
    }
    /// Claim: what the ledger does not record is never lost, and an entry of it is a phantom of its own; what was
    /// logged and refused is fine where it was refused, lost where it was acknowledged, and no late commit where
    /// no answer came; an entry that was accepted counts whatever refused ones stand beside it.
    #[test]
    fn reads_and_refusals() {
        let kinds = [KindFacts::recorded("put"), KindFacts::read("get")];
        let mut join = Join::new(FinalStages::all(0), 1_000_000_000_000, &kinds);
        let told = |tx: u64| match tx {
            20..30 => Outcome::Rejected(Class::BadRequest),
            30..40 => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        for tx in 0..50 {
            let due = 1_000_000 * i64::try_from(tx).unwrap();
            let kind = u32::from(tx >= 40);
            join.row(&Row { kind, ..row(tx, due, 500_000, told(tx)) });
        }
        let mut position = 0..;
        let mut log = |join: &mut Join, tx: u64, is_refused: bool| {
            let entry = LedgerEntry { is_refused, ..entry(position.next().unwrap(), tx) };
            join.entry(&entry)
        };
        // Acknowledged: 0 to 16 are accepted, 17 only as refused, 18 first as refused, 19 not there.
        for (tx, is_refused) in
            (0..17).map(|tx| (tx, false)).chain([(17, true), (18, true), (18, false)])
        {
            assert!(!log(&mut join, tx, is_refused));
        }
        // Refused: 20 to 22 logged as such, 20 twice; 23 accepted all the same.
        for (tx, is_refused) in [(20, true), (21, true), (22, true), (20, true), (23, false)] {
            assert!(!log(&mut join, tx, is_refused));
        }
        // No answer: 30 refused, 31 accepted, and again as refused.
        for (tx, is_refused) in [(30, true), (31, false), (31, true)] {
            assert!(!log(&mut join, tx, is_refused));
        }
        // A transaction that waits in a pool counts as absent.
        let waiting = LedgerEntry { is_waiting: true, ..entry(1_000, 32) };
        assert!(!join.entry(&waiting));
        // A read that stands in the ledger.
        log(&mut join, 44, false);
        let fates = join.finish();
        assert_eq!((fates.once, fates.lost, fates.lost_as_refused), (18, 2, 1));
        assert_eq!(fates.examples["lost"], [17, 19]);
        assert_eq!((fates.refused_as_logged, fates.refused_yet_present, fates.late), (4, 1, 1));
        assert_eq!(fates.examples["refused_as_logged"], [20, 21, 22, 30]);
        assert_eq!((fates.phantom, fates.phantom_unrecorded), (1, 1));
        assert_eq!(fates.examples["phantom"], [44]);
        assert_eq!((fates.duplicate, fates.entries, fates.refused_entries), (0, 29, 8));
        assert_eq!(join.acknowledged_unrecorded, 10);
    }
}
