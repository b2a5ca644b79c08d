//! How late answers were read that the kernel had stamped, from the rows. What they make of a response time that has no
//! stamp is judged by those that have one.

use model::Row;

use crate::figures::known::Known;
use crate::figures::part::Part;
use stats::Histogram;
use stats::carry::Carry;

/// The measured transactions that reached the final stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    final_stage: usize,
    /// Those whose mark is of when it was read, because no stamp was had.
    pub unstamped: u64,
    /// Of the others: how late each was read.
    pub lag: Histogram,
    /// Their response times.
    pub response: Histogram,
    /// The same as they would be, had no stamp been had.
    pub as_read: Histogram,
}

impl Part for Received {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self { final_stage: trial.final_stage, ..Self::default() }
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        rows.iter().for_each(|row| self.row(row));
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        it.sum(&mut self.unstamped);
        self.lag.carry(it);
        self.response.carry(it);
        self.as_read.carry(it);
    }
}

impl Received {
    #[inline]
    pub fn row(&mut self, row: &Row) {
        let Some(response_ns) = row.response_ns(self.final_stage) else { return };
        let Some(lag_ns) = row.receive_lag_ns() else {
            self.unstamped += 1;
            return;
        };
        self.lag.record(lag_ns);
        self.response.record(response_ns);
        self.as_read.record(response_ns + lag_ns);
    }
}
