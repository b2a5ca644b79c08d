//! The steps in which HdrHistogram's tools walk through a distribution: so many for each halving of what lies above.
//! Source: `PercentileIterator` of HdrHistogram.

/// Steps of one distribution: five for each of 64 halvings, and to spare.
const STEPS_MAX: usize = 1024;

/// A step: this fraction of the samples is at most so large.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentileStep {
    /// Fraction of one.
    pub q: f64,
    /// The largest value of the slot that reaches the fraction.
    pub value: i64,
    /// Samples up to that slot's end.
    pub count: u64,
}

/// Steps through slots of (largest value, count), ascending, with `ticks` steps for each halving. Each slot is
/// reported at every level that it reaches; the last one once, at the first.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shares of counts")]
pub fn percentile_steps(
    slots: impl Iterator<Item = (i64, u64)>,
    total: u64,
    ticks: u32,
) -> Vec<PercentileStep> {
    let mut steps = Vec::new();
    let mut level = 0.0_f64;
    let mut count = 0_u64;
    for (value, of_slot) in slots.filter(|(_, count)| *count > 0) {
        count = count.saturating_add(of_slot);
        let reached = 100.0 * count as f64 / total as f64;
        while reached >= level && steps.len() < STEPS_MAX {
            steps.push(PercentileStep { q: level / 100.0, value, count });
            let halvings = (100.0 / (100.0 - level)).log2().floor() + 1.0;
            level += 100.0 / (f64::from(ticks.max(1)) * halvings.exp2());
            if count == total || level >= 100.0 {
                break;
            }
        }
    }
    steps
}
