//! How the connections of the main load were used: how long transactions waited for one, and how long each was in use
//! while something waited, beside how long it was where one was free. Whose fault a wait was is the audit's to say.

use model::facts::LoadFacts;
use model::result::{ConnectionsResult, TrialResult};
use model::{NO_STAMP, Outcome, Row, Stamp};
use stats::Histogram;
use stats::carry::Carry;

use crate::figures::grid::{Grid, SECOND};
use crate::figures::known::Known;
use crate::figures::part::Part;

/// Moments of the trial that are told apart, at most: four megabytes of counts.
const CELLS_MAX: i64 = 1 << 20;
/// They are not shorter than this: a wait that matters is longer.
const CELL_NS_MIN: i64 = 1_000_000;

/// The main load's use of its connections, over the whole trial except where a field says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    grid: Grid,
    cell_ns: i64,
    /// How many more wait at the end of each cell than at its beginning, and whether one began to in it.
    change: Vec<(i32, bool)>,
    /// Due to ready (to its end, of what was never sent) of those due in the window that waited, and how many did not:
    /// where nothing waits, a row costs no histogram.
    waits: Histogram,
    at_once: u64,
    /// Those that found a connection free, and for how long they had it in all, ns.
    free: u64,
    free_ns: i128,
    /// Those that waited and then got one.
    served: u64,
}

/// The mean time for which a transaction had its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    /// Of those that found one free, ns.
    pub free_ns: f64,
    /// While something waited: by Little's law, all that the connections carry ÷ the rate at which they took more, ns.
    /// It counts time in which nothing was answered at all, as the mean over those that were answered would not.
    pub busy_ns: f64,
}

impl Part for Pool {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self::new(trial.grid, trial.last)
    }

    fn block(&mut self, rows: &[&Row]) {
        rows.iter().for_each(|row| self.row(row));
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        let mine = (0..self.change.len()).filter(|at| self.change[*at] != (0, false));
        for at in it.places(mine, self.change.len()) {
            let (more, has_begun) = &mut self.change[at];
            it.sum(more);
            it.any(has_begun);
        }
        self.waits.carry(it);
        it.sum(&mut self.at_once);
        it.sum(&mut self.free);
        it.sum(&mut self.free_ns);
        it.sum(&mut self.served);
    }

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        result.connections = self.result(&trial.facts.load);
    }
}

impl Pool {
    /// For a trial that lasted until `end`.
    pub fn new(grid: Grid, end: Stamp) -> Self {
        let length = end.clamp(1, SECOND * 86_400 * 366);
        let cell_ns = (length / CELLS_MAX + 1).max(CELL_NS_MIN);
        let cells = usize::try_from(length / cell_ns + 1).expect("bounded by CELLS_MAX");
        Self {
            grid,
            cell_ns,
            change: vec![(0, false); cells],
            waits: Histogram::default(),
            at_once: 0,
            free: 0,
            free_ns: 0,
            served: 0,
        }
    }

    #[inline]
    pub fn row(&mut self, row: &Row) {
        if row.stream != 0 {
            return;
        }
        let is_sent = row.sent != NO_STAMP;
        // A shed transaction waited to its end; one that could not be sent for another reason waited for no connection.
        let until = match row.outcome {
            Outcome::Shed => row.end,
            _ if is_sent => row.ready,
            _ => row.due,
        };
        let waited = until - row.due;
        if self.grid.holds(row.due) {
            match waited {
                0 => self.at_once += 1,
                _ => self.waits.record(waited),
            }
        }
        if waited > 0 {
            self.served += u64::from(is_sent);
            let (from, to) = (self.cell(row.due), self.cell(until));
            self.change[from].0 += 1;
            self.change[from].1 = true;
            self.change[to].0 -= 1;
        } else if is_sent {
            self.free += 1;
            self.free_ns += i128::from(row.end - row.sent);
        }
    }

    fn cell(&self, stamp: Stamp) -> usize {
        let cell = usize::try_from(stamp.max(0) / self.cell_ns).unwrap_or(usize::MAX);
        cell.min(self.change.len() - 1)
    }

    /// Due to ready of those due in the window.
    pub fn waits(&self) -> Histogram {
        let mut all = self.waits.clone();
        all.record_n(0, self.at_once);
        all
    }

    /// How long connections were in use, where `capacity` transactions could be outstanding at a time; `None` where
    /// nothing waited, or nothing found one free.
    #[expect(clippy::cast_precision_loss, reason = "means of counts and times below 2^53")]
    pub fn occupancy(&self, capacity: u64) -> Option<Occupancy> {
        if self.free == 0 || self.served == 0 {
            return None;
        }
        let mut waiting = 0_i64;
        let mut cells = 0_u64;
        for (change, began) in &self.change {
            cells += u64::from(waiting > 0 || *began);
            waiting += i64::from(*change);
        }
        let waited_ns = cells as f64 * self.cell_ns as f64;
        Some(Occupancy {
            free_ns: self.free_ns as f64 / self.free as f64,
            busy_ns: capacity as f64 * waited_ns / self.served as f64,
        })
    }

    /// For the result document.
    pub fn result(&self, load: &LoadFacts) -> ConnectionsResult {
        let pools = || load.workers.iter().map(|worker| &worker.pool);
        let mut by_second = std::collections::BTreeMap::new();
        for grown in pools().flat_map(|pool| &pool.grown) {
            *by_second.entry(grown.second).or_insert(0) += u64::from(grown.count);
        }
        let waits = self.waits();
        ConnectionsResult {
            first: pools().map(|pool| u64::from(pool.first)).sum(),
            grown: by_second.values().sum(),
            grown_by_second: by_second.into_iter().collect(),
            bound: pools().map(|pool| u64::from(pool.bound)).sum(),
            blocked: pools().map(|pool| pool.blocked).sum(),
            wait_p50_ns: waits.quantile(0.5),
            wait_p99_ns: waits.quantile(0.99),
        }
    }
}
