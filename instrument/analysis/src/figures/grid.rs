//! The measured window cut into equal slots of time, and where a stamp falls in it.

use model::{NO_STAMP, Stamp};

/// A second, in nanoseconds.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// A window shorter than this many seconds is cut finer than a second, so that block statistics have slots to
/// make blocks of.
const SLOTS_WANTED: i64 = 64;

/// A window longer than this many seconds is cut coarser (more than two days).
const SLOTS_MAX: i64 = 200_000;

/// Equal slots from the window's start to its end; the last one may reach beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub start: Stamp,
    pub end: Stamp,
    pub width: i64,
    /// How many slots make a second; 1 where a slot is a second or more.
    pub per_second: usize,
    pub slots: usize,
}

impl Grid {
    /// The grid of a window; an empty one if the window is not known or not positive.
    pub fn new(start: Stamp, end: Stamp) -> Self {
        let known = |stamp: Stamp| stamp != NO_STAMP && stamp.unsigned_abs() < 1 << 60;
        let length = if known(start) && known(end) { end - start } else { 0 };
        if length <= 0 {
            return Self { start: 0, end: 0, width: SECOND, per_second: 1, slots: 0 };
        }
        let seconds = length.div_euclid(SECOND).max(1);
        let per_second = [1, 2, 4, 5, 8, 10, 20, 40, 50, 100]
            .into_iter()
            .find(|per| seconds * per >= SLOTS_WANTED)
            .unwrap_or(100);
        let coarse = (length / SECOND / SLOTS_MAX + 1).max(1);
        let width = if per_second == 1 { SECOND * coarse } else { SECOND / per_second };
        let slots = (length + width - 1) / width;
        Self {
            start,
            end,
            width,
            per_second: usize::try_from(per_second).expect("from the list above"),
            slots: usize::try_from(slots).expect("bounded by SLOTS_MAX"),
        }
    }

    pub fn holds(&self, stamp: Stamp) -> bool {
        stamp >= self.start && stamp < self.end
    }

    /// Its slots, before the window and after it too.
    pub fn cells(&self) -> Cells {
        Cells::new(self.start, self.width)
    }

    /// Length of the window in nanoseconds.
    pub fn length(&self) -> i64 {
        self.end - self.start
    }

    /// Length of the window in seconds.
    #[expect(clippy::cast_precision_loss, reason = "a length of time")]
    pub fn seconds(&self) -> f64 {
        self.length() as f64 / 1e9
    }
}

/// Which of equal cells a stamp falls into. It remembers the last one: rows come nearly in the order of time, and a
/// division for each stamp of each would cost more than what is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cells {
    start: Stamp,
    width: i64,
    /// The cell that was looked up last, and where it begins.
    cell: i64,
    from: Stamp,
}

impl Cells {
    /// Cells of `width`, the first of which begins at `start`.
    pub fn new(start: Stamp, width: i64) -> Self {
        Self { start, width: width.max(1), cell: 0, from: start }
    }

    /// The cell; negative before the first. For stamps that are plausible.
    #[inline]
    pub fn of(&mut self, stamp: Stamp) -> i64 {
        if !(0..self.width).contains(&(stamp - self.from)) {
            self.cell = (stamp - self.start).div_euclid(self.width);
            self.from = self.start + self.cell * self.width;
        }
        self.cell
    }

    /// The same as an index; `None` before the first.
    #[inline]
    pub fn index(&mut self, stamp: Stamp) -> Option<usize> {
        usize::try_from(self.of(stamp)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a cell that is remembered is the one that a division gives, whatever came before, at both edges of each.
    #[test]
    fn remembered_cells() {
        let (start, width) = (1_000, 7);
        let mut cells = Cells::new(start, width);
        for step in [1_i64, 3, 64, -5, 1_000_003, -999_983] {
            for n in 0..200 {
                let stamp = start + (n * step) % 5_000;
                let exact = (stamp - start).div_euclid(width);
                assert_eq!(cells.of(stamp), exact, "{stamp}");
                assert_eq!(cells.index(stamp), usize::try_from(exact).ok());
            }
        }
        assert_eq!(Cells::new(5, 10).index(4), None);
        assert_eq!(Cells::new(0, 0).of(3), 3, "a width of nothing is taken for the least");
    }

    /// Claim: a window of any length has slots that cover it, whole numbers of them a second, and no more than bounded.
    #[test]
    fn covers_any_window() {
        for length in
            [1, SECOND / 3, SECOND, 10 * SECOND, 90 * SECOND, 3_600 * SECOND, 90 * 86_400 * SECOND]
        {
            let grid = Grid::new(7, 7 + length);
            assert!(grid.slots >= 1 && grid.slots <= 200_000, "{grid:?}");
            assert!(i64::try_from(grid.slots).unwrap() * grid.width >= length, "{grid:?}");
            let slot = |stamp| grid.cells().index(stamp);
            assert_eq!(slot(7), Some(0));
            assert_eq!(slot(6), None);
            assert_eq!(slot(7 + length - 1), Some(grid.slots - 1));
            assert!(!grid.holds(7 + length));
        }
        assert_eq!(Grid::new(NO_STAMP, 5).slots, 0);
        assert_eq!(Grid::new(5, 5).slots, 0);
        assert_eq!(Grid::new(-5, Stamp::MAX).slots, 0, "a damaged file");
    }
}
