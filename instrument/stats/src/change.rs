//! Did the level of a series change, and how: step by step through all of it, or once?
//!
//! Both answers want more than a small p-value, because neighbours of a busy queue depend on each other and every test
//! that takes them for independent is too sure. A drift is what hardly a pair of blocks speaks against (Kendall's S near
//! its most); a step is a place that parts the series in two without an overlap, by more than either part spreads. How
//! often stable queues satisfy the two is counted where they are used.

use crate::trend::{mann_kendall_score, median};

/// Fewer blocks than this have a shape by chance.
pub const BLOCKS_MIN: usize = 10;
/// A drift: S is at least this share of all pairs. Of twenty blocks, one pair in ten may fall.
const SCORE_SHARE_MIN: f64 = 0.8;
/// A level that changes by less changes no conclusion.
const RATIO_MIN: f64 = 1.15;
/// A step leaves at least one block in so many on each side.
const SIDE_PARTS: usize = 7;
/// A step is at least so many times as high as either side spreads. Half of a drift's range lies on either side of its
/// middle, which is a ratio of 1.
const STEP_SPREADS_MIN: f64 = 1.5;

/// How a level changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Block by block; the levels are those of the first and the last fifth.
    Drift,
    /// Once, at the beginning of the block with this index; the levels are those before and after it.
    Step(usize),
}

/// A change of level, in the unit of the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// How it changed.
    pub shape: Shape,
    /// The level before.
    pub from: f64,
    /// The level after.
    pub to: f64,
}

/// The change of a series of positive levels; `None` where there is none, or too few blocks to tell.
#[must_use]
pub fn change(levels: &[f64]) -> Option<Change> {
    if levels.len() < BLOCKS_MIN {
        return None;
    }
    step(levels).or_else(|| drift(levels))
}

fn drift(levels: &[f64]) -> Option<Change> {
    let fifth = levels.len() / 5;
    let (from, to) = (middle(&levels[..fifth])?, middle(&levels[levels.len() - fifth..])?);
    let pairs = levels.len() * (levels.len() - 1) / 2;
    #[expect(clippy::cast_precision_loss, reason = "pairs of a short series")]
    let share = mann_kendall_score(levels).unsigned_abs() as f64 / pairs as f64;
    let is_drift = share >= SCORE_SHARE_MIN && differ(from, to);
    is_drift.then_some(Change { shape: Shape::Drift, from, to })
}

/// The place that parts the series best, if it parts it well enough.
fn step(levels: &[f64]) -> Option<Change> {
    let side = (levels.len() / SIDE_PARTS).max(2);
    let mut best: Option<(f64, Change)> = None;
    for at in side..=levels.len() - side {
        let (before, after) = levels.split_at(at);
        let (from, to) = (middle(before)?, middle(after)?);
        let ([low_before, high_before], [low_after, high_after]) = (ends(before), ends(after));
        let spread = (high_before - low_before).max(high_after - low_after);
        let is_apart = high_before < low_after || high_after < low_before;
        let height = (to - from).abs() / spread.max(f64::MIN_POSITIVE);
        let is_step = is_apart && differ(from, to) && height >= STEP_SPREADS_MIN;
        if is_step && best.is_none_or(|(best, _)| height > best) {
            best = Some((height, Change { shape: Shape::Step(at), from, to }));
        }
    }
    best.map(|(_, change)| change)
}

fn differ(from: f64, to: f64) -> bool {
    from.min(to) > 0.0 && from.max(to) >= RATIO_MIN * from.min(to)
}

fn middle(levels: &[f64]) -> Option<f64> {
    median(&mut levels.to_vec())
}

fn ends(levels: &[f64]) -> [f64; 2] {
    let low = levels.iter().copied().fold(f64::INFINITY, f64::min);
    [low, levels.iter().copied().fold(f64::NEG_INFINITY, f64::max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty levels, each a little off by a fixed pattern.
    fn levels(of: impl Fn(f64) -> f64) -> Vec<f64> {
        (0..20_u32).map(|n| of(f64::from(n)) + f64::from(n * 7 % 5) / 50.0).collect()
    }

    /// Claim: a level series has no change, one that climbs or falls has a drift between its ends, and one that jumps has
    /// a step where it does; a burst, a jump that is not there at the end, and too few blocks are none.
    #[test]
    fn shapes() {
        assert_eq!(change(&levels(|_| 5.0)), None);
        let up = change(&levels(|n| 5.0 + n)).unwrap();
        assert!(up.shape == Shape::Drift && up.from < 7.0 && up.to > 22.0, "{up:?}");
        let down = change(&levels(|n| 30.0 - n)).unwrap();
        assert!(down.shape == Shape::Drift && down.from > 28.0 && down.to < 13.0, "{down:?}");
        for at in [3, 8, 17] {
            let jump = change(&levels(|n| if n < f64::from(at) { 5.0 } else { 8.0 })).unwrap();
            assert_eq!(jump.shape, Shape::Step(usize::try_from(at).unwrap()), "{jump:?}");
            assert!(jump.from < 5.1 && jump.to > 7.9, "{jump:?}");
        }
        assert_eq!(change(&levels(|n| if n == 9.0 { 50.0 } else { 5.0 })), None);
        assert_eq!(change(&levels(|n| if (5.0..12.0).contains(&n) { 50.0 } else { 5.0 })), None);
        assert_eq!(change(&levels(|n| 5.0 + n)[..9]), None);
    }
}
