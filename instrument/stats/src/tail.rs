//! Samples below a limit tell of those beyond it, where few or none are: how many would come together, and how steeply
//! the distribution would have to fall to leave as many as are allowed beyond the limit and none beyond the largest seen.
//!
//! A window that met no excursion beyond a limit shows nothing of how large one is; its lower levels do. Without them a busy
//! queue's window of ten seconds, which is worth a dozen independent samples, counts as thousands.
//!
//! It must never make a system guilty: it only says how much counts within an allowed share are worth.

use crate::float::of_ns;
use crate::level::{BELOW, Level};
use crate::timed::TimedHistogram;

/// The level from which the fall to a limit is judged.
const MIDDLE: f64 = 0.5;

/// A limit so many times as large as the largest sample is of another kind than what was seen: its excursions are not
/// judged by those.
const FAR: f64 = 10.0;

/// A distribution's levels below its tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// How many samples beyond each of [`BELOW`] come together.
    sizes: [f64; BELOW.len()],
    /// The level in the middle.
    middle: Level,
    largest: f64,
}

impl Tail {
    /// `None` without samples.
    #[must_use]
    pub fn of(times: &TimedHistogram) -> Option<Self> {
        let shares: Vec<f64> = BELOW.iter().map(|(level, _)| *level).chain([MIDDLE]).collect();
        let levels = times.levels(&shares)?;
        let sizes = std::array::from_fn(|index| levels[index].size);
        let middle = levels[BELOW.len()];
        Some(Self { sizes, middle, largest: of_ns(times.all().moments().max()?) })
    }

    /// How many samples beyond a limit that `allowed_share` may lie beyond come together at least.
    pub(crate) fn size(&self, allowed_share: f64) -> f64 {
        let is_below = |level: f64| level < 1.0 - allowed_share - 1e-9;
        let sizes = self.sizes.iter().zip(BELOW).filter(|(_, (level, _))| is_below(*level));
        sizes.map(|(size, (_, factor))| size * factor).fold(1.0, f64::max)
    }

    /// Whether a limit is of another kind than what was seen.
    pub(crate) fn is_far(&self, limit: f64) -> bool {
        self.largest > 0.0 && limit >= FAR * self.largest
    }

    /// The share that would lie beyond the largest sample if `allowed_share` lay beyond `limit`, and how many of these come
    /// together. On logarithmic scales of both, tails fall ever faster (exponential, lognormal) or evenly (Pareto): between
    /// the middle and the limit at least as many lie beyond a value as a straight line says. `None` where it says nothing.
    pub(crate) fn beyond_largest(&self, limit: f64, allowed_share: f64) -> Option<(f64, f64)> {
        let Level { value, beyond, size } = self.middle;
        let is_between = value > 0.0 && value <= self.largest && self.largest < limit;
        if !is_between || allowed_share <= 0.0 || beyond <= allowed_share {
            return None;
        }
        let steepness = (beyond / allowed_share).ln() / (limit / value).ln();
        Some((beyond * (self.largest / value).powf(-steepness), size))
    }
}
