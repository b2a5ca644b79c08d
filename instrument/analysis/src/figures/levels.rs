//! The level of response times through the window: the medians of twenty blocks of it, and how they change.
//!
//! Medians, because no burst moves one.

use model::quantity::show_ns;
use stats::change::{Shape, change};
use stats::{SparseHistogram, TimedHistogram};

/// Blocks of the window.
const BLOCKS: usize = 20;
/// Fewer samples than this have no median worth the name.
const SAMPLES_MIN: u64 = 10;

/// The median response time of each block, ns.
pub(crate) struct Levels([f64; BLOCKS]);

/// How the level changes.
pub(crate) struct Change(stats::change::Change);

impl Levels {
    /// `None` where a block has too few samples.
    #[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    pub fn of(times: Option<&TimedHistogram>) -> Option<Self> {
        let slots = times.map_or(&[][..], TimedHistogram::slots);
        let median = |block: usize| {
            let mut times = SparseHistogram::default();
            let range = block * slots.len() / BLOCKS..(block + 1) * slots.len() / BLOCKS;
            slots[range].iter().for_each(|slot| times.merge(slot));
            (times.moments().count() >= SAMPLES_MIN).then(|| times.quantile(0.5))?
        };
        let mut medians = [0.0; BLOCKS];
        for (block, level) in medians.iter_mut().enumerate() {
            *level = median(block)? as f64;
        }
        Some(Self(medians))
    }

    pub const fn first(&self) -> f64 {
        self.0[0]
    }

    pub const fn last(&self) -> f64 {
        self.0[BLOCKS - 1]
    }

    /// The drift or the step, if there is one.
    pub fn change(&self) -> Option<Change> {
        change(&self.0).map(Change)
    }
}

impl Change {
    pub fn rises(&self) -> bool {
        self.0.to > self.0.from
    }

    /// In a few words: `p50 rises steadily from 127 ms to 419 ms through the window`.
    pub fn in_words(&self, window_ns: i64) -> String {
        let Self(found) = self;
        let verb = match (found.shape, self.rises()) {
            (Shape::Drift, true) => "rises steadily",
            (Shape::Drift, false) => "falls steadily",
            (Shape::Step(_), true) => "steps up",
            (Shape::Step(_), false) => "steps down",
        };
        let levels = format!("p50 {verb} from {} to {}", shown(found.from), shown(found.to));
        match found.shape {
            Shape::Drift => format!("{levels} through the window"),
            Shape::Step(block) => {
                let at = window_ns / BLOCKS as i64 * block as i64;
                format!("{levels} about {} into the window, and stays there", show_ns(at))
            }
        }
    }
}

/// A time, for people.
#[expect(clippy::cast_possible_truncation, reason = "a time, for people")]
pub(crate) fn shown(ns: f64) -> String {
    show_ns(ns as i64)
}
