//! How many samples beyond a limit come together: neighbours in time are alike, and what a window holds of a tail is
//! so many excursions, not so many samples.
//!
//! The counts beyond the limit, slot by slot, have a variance that independent samples would not have. The ratio of the
//! two (the *design effect*, Kish 1965) comes from the autocovariances of the slots, summed as long as pairs of
//! neighbouring lags are positive, and never rising (the initial monotone sequence, Geyer 1992).

use crate::interval::Slot;

/// Slots are merged until there are no more than this: longer ones have less noise in their autocovariances.
const SLOTS_MAX: usize = 240;

/// How many samples beyond come together: the mean square of an excursion's size over its mean. At least one; `sum` of a
/// slot is how many of its `count` are beyond.
pub(crate) fn size(slots: &[Slot]) -> f64 {
    let total = |of: fn(&Slot) -> f64| slots.iter().map(of).sum::<f64>();
    let (all, beyond) = (total(|slot| slot.count), total(|slot| slot.sum));
    let share = beyond / all.max(1.0);
    let independent = beyond * (1.0 - share);
    if independent <= 0.0 {
        return 1.0;
    }
    let parts = slots.len().min(SLOTS_MAX);
    let residuals: Vec<f64> = (0..parts)
        .map(|part| {
            let range = part * slots.len() / parts..(part + 1) * slots.len() / parts;
            slots[range].iter().map(|slot| slot.sum - share * slot.count).sum()
        })
        .collect();
    (spread(&residuals) / independent).clamp(1.0, beyond.max(1.0))
}

/// The variance of the sum of a series whose neighbours depend on each other.
fn spread(series: &[f64]) -> f64 {
    let product = |lag: usize| -> f64 {
        series.iter().zip(series.iter().skip(lag)).map(|(a, b)| a * b).sum()
    };
    let (mut sum, mut least) = (-product(0), f64::INFINITY);
    for lag in (0..series.len()).step_by(2) {
        let pair = product(lag) + product(lag + 1);
        if pair <= 0.0 {
            break;
        }
        least = least.min(pair);
        sum += 2.0 * least;
    }
    sum
}
