//! Whether the stamps of a row stand in the only order that time allows.

use model::{FinalStages, NO_STAMP, Outcome, Row};
use stats::carry::Carry;

use crate::figures::known::Known;
use crate::figures::part::Part;

/// Rows whose stamps contradict each other, with an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    ends: FinalStages,
    /// Some stamp precedes the one before it.
    pub violations: u64,
    pub example: Option<u64>,
    /// `ready`, `sent`, a mark or `end` before `due`.
    pub negative: u64,
    pub negative_example: Option<u64>,
    /// Committed without the final mark of its stream, or with one and not committed.
    pub contradictions: u64,
    pub contradiction_example: Option<u64>,
}

impl Part for Order {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self { ends: trial.ends, ..Self::default() }
    }

    fn block(&mut self, rows: &[&Row]) {
        rows.iter().for_each(|row| self.row(row));
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        it.sum(&mut self.violations);
        it.first(&mut self.example);
        it.sum(&mut self.negative);
        it.first(&mut self.negative_example);
        it.sum(&mut self.contradictions);
        it.first(&mut self.contradiction_example);
    }
}

impl Order {
    #[inline]
    pub fn row(&mut self, row: &Row) {
        let mut last = row.due;
        let mut ordered = true;
        let mut negative = false;
        let mut step = |stamp: i64| {
            if stamp != NO_STAMP {
                ordered &= stamp >= last;
                negative |= stamp < row.due;
                last = last.max(stamp);
            }
        };
        step(row.ready);
        step(row.sent);
        row.marks.into_iter().for_each(&mut step);
        step(row.end);
        if !ordered {
            self.violations += 1;
            self.example.get_or_insert(row.tx);
        }
        if negative {
            self.negative += 1;
            self.negative_example.get_or_insert(row.tx);
        }
        let marked = row.marks[self.ends.of(row.stream)] != NO_STAMP;
        let sent_if_marked = row.sent != NO_STAMP || row.marks.iter().all(|mark| *mark == NO_STAMP);
        if marked != (row.outcome == Outcome::Committed) || !sent_if_marked {
            self.contradictions += 1;
            self.contradiction_example.get_or_insert(row.tx);
        }
    }
}
