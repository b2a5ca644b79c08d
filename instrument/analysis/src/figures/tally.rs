//! Counting outcomes: a dense array on the path of a row, the result document's words afterwards.

use model::result::Counts;
use model::{Class, FinalStages, NO_STAMP, Outcome, Row};
use stats::Histogram;
use stats::carry::Carry;

use crate::figures::known::Known;
use crate::figures::part::Part;

/// One past the largest outcome code.
const CODES: usize = Outcome::Shed.code() as usize + 1;

/// How many transactions ended how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Committed and sent once, which nearly all are: one number to count up for a row. They are in none of the others.
    plain: u64,
    by_outcome: [u64; CODES],
    sent: u64,
    resent: u64,
    attempts: u64,
    attempts_max: u8,
}

/// The transactions of the measured window by stream.
#[derive(Clone)]
pub(crate) struct Streams {
    pub tallies: [Tally; 2],
    /// Response times of the main load to its final stage, where a probe is measured beside it.
    pub background: Histogram,
    measured: u8,
    ends: FinalStages,
}

impl Part for Streams {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self {
            tallies: Default::default(),
            background: Histogram::default(),
            measured: trial.stream,
            ends: trial.ends,
        }
    }

    fn window(&mut self, rows: &[&Row]) {
        let Some(stream) = rows.first().map(|row| row.stream) else { return };
        let tally = &mut self.tallies[usize::from(stream.min(1))];
        rows.iter().for_each(|row| tally.row(row));
        if stream != self.measured {
            let times = rows.iter().filter_map(|row| row.response_ns(self.ends.of(stream)));
            times.for_each(|ns| self.background.record(ns));
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.tallies.iter_mut().for_each(|tally| tally.carry(it));
        self.background.carry(it);
    }
}

impl Streams {
    /// The stream whose latency is the result.
    pub fn of_result(&self) -> &Tally {
        &self.tallies[usize::from(self.measured)]
    }
}

/// All rows of the trial, also those whose stamps no trial can have: the walk counts them one by one.
impl Part for Tally {
    fn of_trial(_: &Known<'_>) -> Self {
        Self::default()
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        it.sum(&mut self.plain);
        it.sums(&mut self.by_outcome);
        it.sum(&mut self.sent);
        it.sum(&mut self.resent);
        it.sum(&mut self.attempts);
        it.max(&mut self.attempts_max);
    }
}

impl Tally {
    #[inline]
    pub fn row(&mut self, row: &Row) {
        if row.outcome == Outcome::Committed && row.sent != NO_STAMP && row.attempts <= 1 {
            self.plain += 1;
            return;
        }
        self.by_outcome[usize::from(row.outcome.code())] += 1;
        if row.sent == NO_STAMP {
            return;
        }
        // A sent transaction was sent once at least, also where a record of another tool does not say how often.
        let attempts = row.attempts.max(1);
        self.sent += 1;
        self.resent += u64::from(attempts > 1);
        self.attempts += u64::from(attempts);
        self.attempts_max = self.attempts_max.max(attempts);
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.by_outcome.iter_mut().zip(&other.by_outcome) {
            *mine += theirs;
        }
        self.plain += other.plain;
        self.sent += other.sent;
        self.resent += other.resent;
        self.attempts += other.attempts;
        self.attempts_max = self.attempts_max.max(other.attempts_max);
    }

    pub fn due(&self) -> u64 {
        self.plain + self.by_outcome.iter().sum::<u64>()
    }

    pub fn sent(&self) -> u64 {
        self.plain + self.sent
    }

    /// Those that were sent more than once.
    pub fn resent(&self) -> u64 {
        self.resent
    }

    /// Times that they were sent, all together, and the most of any.
    pub fn attempts(&self) -> (u64, u8) {
        (self.plain + self.attempts, self.attempts_max.max(u8::from(self.plain > 0)))
    }

    pub fn of(&self, outcome: Outcome) -> u64 {
        let plain = if outcome == Outcome::Committed { self.plain } else { 0 };
        plain + self.by_outcome[usize::from(outcome.code())]
    }

    pub fn counts(&self) -> Counts {
        let by_class: Vec<_> = Class::ALL
            .into_iter()
            .map(|class| (class.word().to_owned(), self.of(Outcome::Rejected(class))))
            .filter(|(_, count)| *count > 0)
            .collect();
        Counts {
            due: self.due(),
            sent: self.sent(),
            committed: self.of(Outcome::Committed),
            rejected: by_class.iter().map(|(_, count)| count).sum(),
            rejected_by_class: by_class.into_iter().collect(),
            unknown: self.of(Outcome::Unknown),
            shed: self.of(Outcome::Shed),
        }
    }
}
