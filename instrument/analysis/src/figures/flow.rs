//! Transactions in and out over time: offered, reached and outstanding by slot, throughput by window, and
//! the areas that Little's law compares.

use model::result::TrialResult;
use model::{NO_STAMP, Outcome, Row, STAGES_MAX, Stamp};
use stats::BucketCounts;

use crate::figures::grid::{Cells, Grid};
use crate::figures::known::{Known, ns};
use crate::figures::part::Part;
use stats::carry::Carry;

/// Counts of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotFlow {
    pub due: u32,
    pub ended: u32,
    pub committed: u32,
    pub failed: u32,
}

/// Flow of all streams, except where a field says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    grid: Grid,
    /// Slots of due times, slots of ends, throughput windows of final marks.
    due_slots: Cells,
    end_slots: Cells,
    mark_windows: Cells,
    /// Of the main load.
    final_stage: usize,
    /// The window's slots, then as many again for what ends after it.
    pub slots: Vec<SlotFlow>,
    /// Main load: when transactions reached each stage, after the window's start, and after its end.
    since_start: [BucketCounts; STAGES_MAX],
    since_end: [BucketCounts; STAGES_MAX],
    /// Main load: transactions due in the window that reached each stage whenever.
    pub reached_of_due: [u64; STAGES_MAX],
    /// Due less ended before the window's start.
    before: i64,
    /// Time that transactions spent outstanding inside the window, summed, ns.
    pub area_ns: i128,
    /// Time that transactions due in the window spent outstanding in all, ns.
    pub time_ns: i128,
    pub due_in_window: u64,
    /// Main load: sends within the window, whenever they were due.
    pub sent_in_window: u64,
    /// First and last due time of the main load in the window.
    pub first_due: Stamp,
    pub last_due: Stamp,
    window_ns: i64,
    /// Committed by throughput window, all streams of the main load, by the final mark.
    windows: Vec<u64>,
}

impl Part for Flow {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self::new(trial.grid, trial.ends.load, ns(trial.setting.measure.window))
    }

    fn block(&mut self, rows: &[&Row]) {
        self.rows(rows);
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        for slot in &mut self.slots {
            let SlotFlow { due, ended, committed, failed } = slot;
            [due, ended, committed, failed].into_iter().for_each(|count| it.sum(count));
        }
        for stage in 0..STAGES_MAX {
            self.since_start[stage].carry(it);
            self.since_end[stage].carry(it);
        }
        it.sums(&mut self.reached_of_due);
        it.sum(&mut self.before);
        it.sum(&mut self.area_ns);
        it.sum(&mut self.time_ns);
        it.sum(&mut self.due_in_window);
        it.sum(&mut self.sent_in_window);
        it.min(&mut self.first_due);
        it.max(&mut self.last_due);
        it.sums(&mut self.windows);
    }

    fn add_to(&mut self, _trial: &Known<'_>, result: &mut TrialResult) {
        result.throughput_windows = self.throughput_windows();
    }
}

impl Flow {
    /// `final_stage` is that of the main load.
    pub fn new(grid: Grid, final_stage: usize, window_ns: i64) -> Self {
        let whole_windows = if window_ns > 0 { grid.length() / window_ns } else { 0 };
        Self {
            grid,
            due_slots: grid.cells(),
            end_slots: grid.cells(),
            mark_windows: Cells::new(grid.start, window_ns),
            final_stage,
            slots: vec![SlotFlow::default(); grid.slots * 2],
            since_start: Default::default(),
            since_end: Default::default(),
            reached_of_due: [0; STAGES_MAX],
            before: 0,
            area_ns: 0,
            time_ns: 0,
            due_in_window: 0,
            sent_in_window: 0,
            first_due: Stamp::MAX,
            last_due: Stamp::MIN,
            window_ns,
            windows: vec![
                0;
                usize::try_from(whole_windows.clamp(0, WINDOWS_MAX)).expect("clamped")
            ],
        }
    }

    /// Adds plausible rows of one block, of any stream.
    pub fn rows(&mut self, rows: &[&Row]) {
        self.begun(rows);
        self.ended(rows);
        self.times(rows);
        self.main(rows);
    }

    /// Neighbours mostly fall into the same slot, which is then written once for all of them; here and where they end.
    fn begun(&mut self, rows: &[&Row]) {
        let mut left = rows;
        while let Some(first) = left.first() {
            let slot = self.due_slots.of(first.due);
            let same = left.iter().take_while(|row| self.due_slots.of(row.due) == slot);
            let (run, rest) = left.split_at(same.count());
            match usize::try_from(slot) {
                Err(_) => self.before += i64::from(short(run)),
                Ok(slot) if slot < self.slots.len() => self.slots[slot].due += short(run),
                Ok(_) => {}
            }
            left = rest;
        }
    }

    fn ended(&mut self, rows: &[&Row]) {
        let mut left = rows;
        while let Some(first) = left.first() {
            let slot = self.end_slots.of(first.end);
            let mut committed = 0_u32;
            let same = left.iter().take_while(|row| self.end_slots.of(row.end) == slot);
            let same =
                same.inspect(|row| committed += u32::from(row.outcome == Outcome::Committed));
            let (run, rest) = left.split_at(same.count());
            match usize::try_from(slot) {
                Err(_) => self.before -= i64::from(short(run)),
                Ok(slot) if slot < self.slots.len() => {
                    let flow = &mut self.slots[slot];
                    flow.ended += short(run);
                    flow.committed += committed;
                    flow.failed += short(run) - committed;
                }
                Ok(_) => {}
            }
            left = rest;
        }
    }

    fn times(&mut self, rows: &[&Row]) {
        let (mut due, mut time, mut area) = (0, 0_i128, 0_i128);
        for row in rows {
            let in_window = self.grid.holds(row.due);
            due += u64::from(in_window);
            time += i128::from(if in_window { row.end - row.due } else { 0 });
            let inside = row.end.min(self.grid.end) - row.due.max(self.grid.start);
            area += i128::from(inside.max(0));
        }
        self.due_in_window += due;
        self.time_ns += time;
        self.area_ns += area;
    }

    fn main(&mut self, rows: &[&Row]) {
        let grid = self.grid;
        let of_main = || rows.iter().filter(|row| row.stream == 0);
        let mut sent = 0;
        for row in of_main() {
            sent += u64::from(row.sent != NO_STAMP && grid.holds(row.sent));
            if grid.holds(row.due) {
                self.first_due = self.first_due.min(row.due);
                self.last_due = self.last_due.max(row.due);
            }
        }
        self.sent_in_window += sent;
        for stage in 0..STAGES_MAX {
            let mut reached = 0;
            for row in of_main().filter(|row| row.marks[stage] != NO_STAMP) {
                let mark = row.marks[stage];
                reached += u64::from(grid.holds(row.due));
                if mark < grid.start {
                    continue;
                }
                self.since_start[stage].record(mark - grid.start);
                if mark >= grid.end {
                    self.since_end[stage].record(mark - grid.end);
                }
                if stage == self.final_stage && self.window_ns > 0 {
                    let window = self.mark_windows.index(mark);
                    if let Some(count) = window.and_then(|w| self.windows.get_mut(w)) {
                        *count += 1;
                    }
                }
            }
            self.reached_of_due[stage] += reached;
        }
    }

    /// Outstanding (due and not ended) at the end of each slot of the window.
    pub fn outstanding_by_slot(&self) -> Vec<i64> {
        let mut now = self.before;
        self.slots[..self.grid.slots]
            .iter()
            .map(|slot| {
                now += i64::from(slot.due) - i64::from(slot.ended);
                now
            })
            .collect()
    }

    /// How many of all streams were committed within the window, whenever they fell due.
    pub fn committed_in_window(&self) -> u64 {
        self.slots[..self.grid.slots].iter().map(|slot| u64::from(slot.committed)).sum()
    }

    /// Whether nothing was committed any more from the last tenth of the window on, its drain included.
    pub fn has_stopped(&self) -> bool {
        let last = self.grid.slots - self.grid.slots / BLOCKS;
        self.slots[last..].iter().all(|slot| slot.committed == 0)
    }

    /// Lowest and highest committed rate over whole throughput windows, per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub fn throughput_windows(&self) -> Option<(f64, f64)> {
        let seconds = self.window_ns as f64 / 1e9;
        let (min, max) = (self.windows.iter().min()?, self.windows.iter().max()?);
        Some((*min as f64 / seconds, *max as f64 / seconds))
    }

    /// Means of what is outstanding over ten equal blocks of the window; `None` if it has too few slots for that.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    pub fn outstanding_by_block(&self) -> Option<[f64; BLOCKS]> {
        let series = self.outstanding_by_slot();
        (series.len() >= BLOCKS * 2).then(|| {
            std::array::from_fn(|block| {
                let range = block * series.len() / BLOCKS..(block + 1) * series.len() / BLOCKS;
                let length = range.len() as f64;
                series[range].iter().map(|count| *count as f64).sum::<f64>() / length
            })
        })
    }

    /// How many of the main load reached a stage *in time*, for a rate over a window of `window_ns`: those due in the
    /// window that reached it, less the growth of what is outstanding over it. As what is due less what comes to be
    /// outstanding is what has ended, that is what the system got through in as long a time as the window: at most its
    /// capacity. Counting by due time alone would call twice the capacity "sustained", if only the drain is long enough.
    ///
    /// That time begins `typical_ns` after the window does (the response time of the fastest twentieth), so that a
    /// constant latency, which keeps some outstanding where nothing was at the start, costs nothing. A growth of up to a
    /// fiftieth may still be latencies that vary, cut by the window's edges: it counts as far as what is outstanding
    /// rises steadily through the window.
    pub fn in_time(&self, stage: usize, typical_ns: i64, window_ns: i64) -> u64 {
        let of_due = self.reached_of_due[stage];
        let growth = of_due.saturating_sub(self.got_through(stage, typical_ns, window_ns));
        if growth.saturating_mul(EDGE_PARTS) > of_due || window_ns != self.grid.length() {
            return of_due - growth;
        }
        of_due - growth.min(self.rise().unwrap_or(growth))
    }

    /// Transactions that reached a stage in the `window_ns` that begin `shift_ns` after the window does. The shift is known to three
    /// digits; what its own bucket holds counts at both ends, so that no constant latency is cut.
    fn got_through(&self, stage: usize, shift_ns: i64, window_ns: i64) -> u64 {
        let shift = shift_ns.max(0);
        let since_start = &self.since_start[stage];
        let later = if window_ns == self.grid.length() {
            self.since_end[stage].above(shift)
        } else {
            // The load was stopped early, and nobody knew when while the rows went by: to three digits.
            since_start.above(window_ns.saturating_add(shift))
        };
        since_start.at_least(shift).saturating_sub(later)
    }

    /// By how much what is outstanding rises over the window, as its blocks say; never negative.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count that is not negative"
    )]
    fn rise(&self) -> Option<u64> {
        let slope = stats::trend::theil_sen(&self.outstanding_by_block()?)?;
        Some((slope * BLOCKS as f64).max(0.0).round() as u64)
    }
}

/// How many rows of a block.
fn short(rows: &[&Row]) -> u32 {
    u32::try_from(rows.len()).expect("a block has few rows")
}

/// Blocks of the window in which a trend is looked for: enough for a rank test to be sure, few enough to be nearly
/// independent.
pub(crate) const BLOCKS: usize = 10;

/// A growth of more than one part in so many is no matter of the window's edges.
const EDGE_PARTS: u64 = 50;

/// More throughput windows than this are not kept (a window of 1 ms over a day would be).
const WINDOWS_MAX: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::result::TrialResult;

    use crate::testing::{Trial, row, setting};

    /// `rate` a second for `seconds` on a server that takes `service_ns` for each, one at a time, after `warm_up_ns` of
    /// the same.
    fn constant_service(rate: u64, service_ns: f64, seconds: u64, warm_up_ns: i64) -> TrialResult {
        let mut trial = Trial::clean();
        let rate_of = model::quantity::Rate::per_second(rate);
        trial.setting = setting(rate_of, std::time::Duration::from_secs(seconds));
        let length = i64::try_from(seconds).unwrap() * 1_000_000_000;
        trial.facts.declared.measure_start = warm_up_ns;
        trial.facts.declared.measure_end = warm_up_ns + length;
        trial.facts.load.drain_end = warm_up_ns + 2 * length;
        trial.rows.clear();
        let mut free_at = 0.0_f64;
        for tx in 0.. {
            let due = i64::try_from(tx * 1_000_000_000 / rate).unwrap();
            if due >= warm_up_ns + length {
                return trial.result();
            }
            free_at = free_at.max(due as f64) + service_ns;
            trial.rows.push(row(tx, due, free_at as i64 - due, Outcome::Committed));
        }
        unreachable!("the load ends")
    }

    /// Claim: goodput never exceeds what the server can do, however little the overload, with and without a warm-up, and
    /// the backlog's rise is found; at and below its capacity goodput is all that was offered.
    #[test]
    fn goodput_stays_below_capacity() {
        for (rate, capacity, seconds) in [
            (201, 200.0, 20),
            (202, 200.0, 20),
            (203, 200.0, 20),
            (204, 200.0, 20),
            (203, 200.0, 60),
        ]
        .into_iter()
        .chain([(500, 492.6, 20), (500, 492.6, 40)])
        {
            for warm_up_ns in [0, 1_000_000_000] {
                let result = constant_service(rate, 1e9 / capacity, seconds, warm_up_ns);
                let goodput = result.rates.goodput_per_s;
                let one = 1.0 / seconds as f64;
                assert!(goodput <= capacity + one, "{rate}/s on {capacity}/s: {goodput}");
                assert!(goodput >= capacity - 2.0 * one, "{rate}/s on {capacity}/s: {goodput}");
                let drift = crate::testing::audit(&result, "backlog_drift");
                let said = format!("{rate}/s, {warm_up_ns} ns: {}", drift.detail);
                assert_eq!(drift.outcome, model::result::AuditOutcome::Failed, "{said}");
            }
        }
        for rate in [100, 199, 200] {
            let result = constant_service(rate, 5e6, 20, 0);
            assert_eq!(result.rates.goodput_per_s, rate as f64);
        }
    }

    /// Claim: a latency longer than the window costs no goodput, and neither do blocks.
    #[test]
    fn a_constant_latency_costs_nothing() {
        let with = |time: fn(i64) -> i64| {
            let mut trial = Trial::clean();
            trial.facts.load.drain_end = 60_000_000_000;
            for old in &mut trial.rows {
                *old = row(old.tx, old.due, time(old.due), Outcome::Committed);
            }
            trial.result().rates.goodput_per_s
        };
        assert_eq!(with(|_| 25_000_000_000), 1_000.0);
        assert_eq!(with(|due| 2_000_000_000 - due % 1_000_000_000), 1_000.0, "a block a second");
    }
}
