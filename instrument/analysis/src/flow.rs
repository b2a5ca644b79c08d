//! What went in and came out over time: offered, reached and outstanding by slot, throughput by window, and
//! the areas that Little's law compares.

use model::{NO_STAMP, Outcome, Row, STAGES_MAX, Stamp};

use crate::grid::Grid;

/// Counts of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotFlow {
    pub due: u32,
    pub ended: u32,
    pub committed: u32,
    pub failed: u32,
}

/// Flow of all streams, except where a field says otherwise.
#[derive(Debug)]
pub(crate) struct Flow {
    grid: Grid,
    final_stage: usize,
    /// The window's slots, then as many again for what ends after it.
    pub slots: Vec<SlotFlow>,
    /// Main load: transactions that reached each stage, by the slot in which they did.
    reached: [Vec<u32>; STAGES_MAX],
    /// Main load: transactions due in the window that reached each stage whenever.
    pub reached_of_due: [u64; STAGES_MAX],
    /// Due less ended before the window's start.
    before: i64,
    /// Time that transactions spent outstanding inside the window, summed, ns.
    pub area_ns: i128,
    /// Time that transactions due in the window spent outstanding in all, ns.
    pub time_ns: i128,
    pub due_in_window: u64,
    /// First and last due time of the main load in the window.
    pub first_due: Stamp,
    pub last_due: Stamp,
    window_ns: i64,
    /// Committed by throughput window, all streams of the main load, by the final mark.
    windows: Vec<u64>,
}

impl Flow {
    pub fn new(grid: Grid, final_stage: usize, window_ns: i64) -> Self {
        let whole_windows = if window_ns > 0 { grid.length() / window_ns } else { 0 };
        Self {
            grid,
            final_stage,
            slots: vec![SlotFlow::default(); grid.slots * 2],
            reached: std::array::from_fn(|_| vec![0; grid.slots * 2]),
            reached_of_due: [0; STAGES_MAX],
            before: 0,
            area_ns: 0,
            time_ns: 0,
            due_in_window: 0,
            first_due: Stamp::MAX,
            last_due: Stamp::MIN,
            window_ns,
            windows: vec![
                0;
                usize::try_from(whole_windows.clamp(0, WINDOWS_MAX)).expect("clamped")
            ],
        }
    }

    #[inline]
    pub fn row(&mut self, row: &Row) {
        if row.end == NO_STAMP || row.due == NO_STAMP {
            return;
        }
        self.outstanding(row);
        if row.stream == 0 {
            self.main(row);
        }
    }

    #[inline]
    fn outstanding(&mut self, row: &Row) {
        let in_window = self.grid.holds(row.due);
        match self.grid.slot(row.due) {
            None => self.before += 1,
            Some(slot) if slot < self.slots.len() => self.slots[slot].due += 1,
            Some(_) => {}
        }
        match self.grid.slot(row.end) {
            None => self.before -= 1,
            Some(slot) if slot < self.slots.len() => {
                let committed = row.outcome == Outcome::Committed;
                let flow = &mut self.slots[slot];
                flow.ended += 1;
                flow.committed += u32::from(committed);
                flow.failed += u32::from(!committed);
            }
            Some(_) => {}
        }
        if in_window {
            self.due_in_window += 1;
            self.time_ns += i128::from(row.end - row.due);
        }
        let inside = row.end.min(self.grid.end) - row.due.max(self.grid.start);
        if inside > 0 {
            self.area_ns += i128::from(inside);
        }
    }

    #[inline]
    fn main(&mut self, row: &Row) {
        if self.grid.holds(row.due) {
            self.first_due = self.first_due.min(row.due);
            self.last_due = self.last_due.max(row.due);
            for (stage, mark) in row.marks.iter().enumerate() {
                self.reached_of_due[stage] += u64::from(*mark != NO_STAMP);
            }
        }
        for (stage, mark) in row.marks.iter().enumerate() {
            if *mark == NO_STAMP {
                continue;
            }
            if let Some(slot) = self.grid.slot(*mark) {
                if let Some(count) = self.reached[stage].get_mut(slot) {
                    *count += 1;
                }
                if stage == self.final_stage && self.window_ns > 0 {
                    let window = usize::try_from((mark - self.grid.start) / self.window_ns);
                    if let Some(count) = window.ok().and_then(|w| self.windows.get_mut(w)) {
                        *count += 1;
                    }
                }
            }
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

    /// Lowest and highest committed rate over whole throughput windows, per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub fn throughput_windows(&self) -> Option<(f64, f64)> {
        let seconds = self.window_ns as f64 / 1e9;
        let (min, max) = (self.windows.iter().min()?, self.windows.iter().max()?);
        Some((*min as f64 / seconds, *max as f64 / seconds))
    }

    /// How many of the main load reached a stage *in time*, for a rate over the window.
    ///
    /// Those due in the window that reached it, unless more than 2 % of them did so only because the system was
    /// given the drain to catch up: then what it reached inside the window counts, the window being moved by
    /// `typical_ns` (the response time of the fastest twentieth), so that a constant latency costs nothing.
    /// Counting by due time alone would call twice the capacity "sustained", if only the drain is long enough.
    pub fn in_time(&self, stage: usize, typical_ns: i64) -> u64 {
        let of_due = self.reached_of_due[stage];
        let within = self.reached_within(stage, typical_ns);
        if within.saturating_mul(100) < of_due.saturating_mul(98) { within } else { of_due }
    }

    /// Reached within the window moved by `shift_ns`; slots that the edges cut count in proportion.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a slot's count; not negative"
    )]
    fn reached_within(&self, stage: usize, shift_ns: i64) -> u64 {
        let width = self.grid.width as f64;
        let (from, to) =
            (shift_ns.max(0) as f64 / width, (shift_ns.max(0) + self.grid.length()) as f64 / width);
        let sum: f64 = self.reached[stage]
            .iter()
            .enumerate()
            .map(|(slot, count)| {
                let slot = slot as f64;
                f64::from(*count) * ((slot + 1.0).min(to) - slot.max(from)).clamp(0.0, 1.0)
            })
            .sum();
        sum.round() as u64
    }
}

/// More throughput windows than this are not kept (a window of 1 ms over a day would be).
const WINDOWS_MAX: i64 = 1_000_000;
