//! How long arrivals at even distances took, in their order: whether the slow ones come at even distances too is seen in
//! nothing else that is kept of rows.

use model::Row;
use model::plan::{Arrivals, Schedule, SettingPlan};
use model::quantity::Rate;
use stats::carry::Carry;

use crate::figures::grid::{Cells, Grid};
use crate::figures::known::Known;
use crate::figures::part::Part;

/// Cells of the window at most: 800 kB.
const CELLS_MAX: i64 = 100_000;
/// Slow stretches are so many at least: fewer have even distances by chance.
const STRETCHES_MIN: usize = 8;
/// Their distance is so many cells at least: shorter ones are even by being short.
const CELLS_APART_MIN: usize = 5;
/// Of ten distances so many are the same, to a cell.
const EVEN_TENTHS: usize = 9;

/// The longest response time of each cell of the window, for a load whose arrivals are even.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    pub rate: Rate,
    cells: Cells,
    /// Arrivals that share a cell; more than 1 only where there are more than [`CELLS_MAX`].
    pub cell_ns: i64,
    longest_ns: Vec<i64>,
}

/// Slow answers that come at even distances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rhythm {
    /// Between their beginnings, ns.
    pub period_ns: i64,
    /// How often they came.
    pub times: usize,
    /// Cells that each of them met, on average.
    pub met: f64,
    /// Whether each met the same phases of it: the distance is a whole number of cells.
    pub is_in_step: bool,
}

impl Part for Option<Phases> {
    fn of_trial(trial: &Known<'_>) -> Self {
        Phases::of(trial.setting, &trial.grid)
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        if let Some(phases) = self {
            rows.iter().for_each(|row| phases.row(row));
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        if let Some(phases) = self {
            it.each(&mut phases.longest_ns, |mine, theirs| Some(mine.max(theirs)));
        }
    }
}

impl Phases {
    /// `None` where arrivals are not even, or a probe is measured beside them.
    pub fn of(setting: &SettingPlan, grid: &Grid) -> Option<Self> {
        let Arrivals::Open { schedule: Schedule::Constant { rate } } = &setting.load.arrivals
        else {
            return None;
        };
        if rate.is_max() || rate.is_zero() || setting.probe.is_some() || grid.slots == 0 {
            return None;
        }
        let gap_ns = i64::try_from(rate.due_ns(1)).ok()?.max(1);
        let per_cell = grid.length() / gap_ns / CELLS_MAX + 1;
        let cell_ns = gap_ns.saturating_mul(per_cell);
        let cells = usize::try_from(grid.length() / cell_ns + 1).ok()?;
        Some(Self {
            rate: *rate,
            cells: Cells::new(grid.start, cell_ns),
            cell_ns,
            longest_ns: vec![0; cells],
        })
    }

    /// Adds a row of the window.
    #[inline]
    pub fn row(&mut self, row: &Row) {
        let cell = self.cells.index(row.due).and_then(|at| self.longest_ns.get_mut(at));
        if let Some(longest) = cell {
            *longest = (*longest).max(row.end - row.due);
        }
    }

    /// Whether what is slower than `slow_ns` comes at even distances.
    #[expect(clippy::cast_precision_loss, reason = "counts of cells")]
    pub fn rhythm(&self, slow_ns: i64) -> Option<Rhythm> {
        let is_slow = |at: usize| self.longest_ns[at] > slow_ns;
        let all = 0..self.longest_ns.len();
        let starts: Vec<usize> =
            all.clone().filter(|at| is_slow(*at) && (*at == 0 || !is_slow(at - 1))).collect();
        let mut gaps: Vec<usize> = starts.windows(2).map(|two| two[1] - two[0]).collect();
        if starts.len() < STRETCHES_MIN {
            return None;
        }
        gaps.sort_unstable();
        let typical = gaps[gaps.len() / 2];
        let even = gaps.iter().filter(|gap| gap.abs_diff(typical) <= 1).count();
        if typical < CELLS_APART_MIN || even * 10 < gaps.len() * EVEN_TENTHS {
            return None;
        }
        let slow = all.filter(|at| is_slow(*at)).count();
        let same = gaps.iter().filter(|gap| **gap == typical).count();
        Some(Rhythm {
            period_ns: self.cell_ns.saturating_mul(i64::try_from(typical).ok()?),
            times: starts.len(),
            met: slow as f64 / starts.len() as f64,
            is_in_step: same * 10 >= gaps.len() * EVEN_TENTHS,
        })
    }
}
