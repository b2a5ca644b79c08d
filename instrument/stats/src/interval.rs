//! Intervals for means and quantiles of samples that depend on each other, by batch means over time.
//!
//! A queue's response times are correlated over its relaxation time, so `s/√n` is a lie: at utilisation 0.9
//! a minute of M/M/1 with a 4 ms service holds 13,500 samples and says as much as some 35 independent ones.
//! The rule here (batch means: Conway 1963; ratio form, because blocks hold different numbers of samples):
//!
//! 1. The window is cut into equal blocks of time. The spread of the block sums around `mean × count` gives a
//!    standard error, and Student's t with blocks − 1 degrees of freedom the half-width.
//! 2. This is done for several numbers of blocks from [`BLOCKS`], and **the widest is taken**: many short
//!    blocks underestimate the spread when they depend on each other, few long ones estimate it badly. If
//!    neighbouring blocks still depend on each other, the half-width grows by the AR(1) factor √((1+r)/(1−r)).
//! 3. The upper end of a mean is stretched by the square of the relative half-width, because means of a queue are skewed
//!    to the right and a trial that missed the long excursions has both a low mean and a small spread.
//! 4. For a quantile a test is made **at each value that it may have** (the module `candidates`): the half-width of the indicator
//!    `x ≤ v`, there and at the quantiles below, gives an effective number of independent samples, and a value is in the
//!    interval unless Clopper's and Pearson's test with that number says that the share at or below it is another. Where
//!    the number is too small for an end to exist (72 for p95, 368 for p99, 3,688 for p99.9: qⁿ ≤ 0.025) it is `None`.
//! 5. The upper end of a quantile above p90 comes from the number of excursions beyond it and below (`candidates`).
//!
//! Wider than needed is honest and narrower is not: `tests/coverage.rs` measures how often theory lies inside.

use crate::special::beta_cdf;

/// Numbers of blocks that are tried, and Student's t at 97.5 % with one degree of freedom less.
pub const BLOCKS: [(usize, f64); 5] =
    [(5, 2.776_445), (8, 2.364_624), (12, 2.200_985), (18, 2.109_816), (30, 2.045_230)];

/// What a half-width is divided by to get a standard error back: Student's t with 7 degrees of freedom (8
/// blocks). The normal quantile would throw away half of the samples that the widest-of-several rule has
/// already paid for; t with 4 (5 blocks) was measured to leave p99 at 95 % with nothing to spare.
const HALF_WIDTH_PER_ERROR: f64 = 2.364_624;

/// Sum and count of the samples of one slot of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slot {
    /// Samples.
    pub count: f64,
    /// Their sum.
    pub sum: f64,
}

/// The 95 % half-width of the mean Σsum ÷ Σcount of `slots` (equal, consecutive slots of time).
/// `None` if there are too few slots or samples to tell.
#[must_use]
pub fn half_width(slots: &[Slot]) -> Option<f64> {
    let count: f64 = slots.iter().map(|slot| slot.count).sum();
    let sum: f64 = slots.iter().map(|slot| slot.sum).sum();
    if count < SAMPLES_MIN {
        return None;
    }
    let mean = sum / count;
    BLOCKS
        .into_iter()
        .filter(|(blocks, _)| *blocks <= slots.len())
        .filter_map(|(blocks, t)| half_width_with(slots, blocks, t, mean, count))
        .max_by(f64::total_cmp)
}

/// Fewer samples than this give no interval of a mean.
const SAMPLES_MIN: f64 = 10.0;

#[expect(clippy::cast_precision_loss, reason = "a few dozen blocks")]
fn half_width_with(slots: &[Slot], blocks: usize, t: f64, mean: f64, count: f64) -> Option<f64> {
    let residuals: Vec<f64> = (0..blocks)
        .map(|block| {
            let range = block * slots.len() / blocks..(block + 1) * slots.len() / blocks;
            slots[range].iter().map(|slot| slot.sum - mean * slot.count).sum()
        })
        .collect();
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let k = blocks as f64;
    let standard_error = (k / (k - 1.0) * squares).sqrt() / count;
    standard_error.is_finite().then(|| t * standard_error * dependence(&residuals, squares))
}

/// √((1 + r)/(1 − r)) for the correlation r of neighbouring blocks; 1 where they do not depend on each other. An estimate
/// of r from k blocks is too low by about (1 + 3r)/k (Kendall 1954), which is put back. r is bounded: beyond it, it is a
/// trend and no interval means anything.
#[expect(clippy::cast_precision_loss, reason = "a few dozen blocks")]
pub(crate) fn dependence(residuals: &[f64], squares: f64) -> f64 {
    if squares <= 0.0 {
        return 1.0;
    }
    let k = residuals.len() as f64;
    let products: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let r = products / squares;
    let r = (r + (1.0 + 3.0 * r) / k).clamp(0.0, R_MAX);
    ((1.0 + r) / (1.0 - r)).sqrt()
}
/// The largest r that is believed.
const R_MAX: f64 = 0.8;

/// The ends of a mean's interval: the lower one linear, the upper one stretched by the square of the relative
/// half-width, because means of queues are skewed to the right and a trial that missed the long excursions has both a low
/// mean and a small spread. A single event among all samples, of which a Poisson count says up to 5.6 times as many, is
/// stretched to about twice that, and not to thousands as on a logarithmic scale.
#[must_use]
pub fn mean_ends(mean: f64, half_width: f64) -> (f64, f64) {
    let linear = mean + half_width;
    if mean <= 0.0 {
        return (mean - half_width, linear);
    }
    let relative = half_width / mean;
    (mean - half_width, mean * (1.0 + relative + relative * relative))
}

/// How many independent samples an estimate of a probability (or mean) with this 95 % half-width is worth,
/// where one sample alone has the given variance.
#[must_use]
pub fn effective_samples(variance: f64, half_width: f64) -> f64 {
    if half_width <= 0.0 {
        f64::INFINITY
    } else {
        variance * (HALF_WIDTH_PER_ERROR / half_width).powi(2)
    }
}

/// Whether a share of `share` in `samples` independent samples shows, with 97.5 % confidence, that the true share is at
/// least `q` (Clopper and Pearson).
#[must_use]
pub fn is_surely_at_least(share: f64, samples: f64, q: f64) -> bool {
    let (hits, misses) = (share * samples, (1.0 - share) * samples);
    hits > 0.0 && beta_cdf(q, hits, misses + 1.0) <= 0.025
}

/// The same for a true share below `q`.
#[must_use]
pub fn is_surely_below(share: f64, samples: f64, q: f64) -> bool {
    let (hits, misses) = (share * samples, (1.0 - share) * samples);
    misses > 0.0 && beta_cdf(q, hits + 1.0, misses) >= 0.975
}

/// How many independent samples an upper end for `q` needs at least: the smallest n with qⁿ ≤ 0.025.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and small")]
pub fn samples_for_upper_end(q: f64) -> u64 {
    if q <= 0.0 { 1 } else { (0.025_f64.ln() / q.ln()).ceil() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the numbers of samples below which no upper end exists are the published ones.
    #[test]
    fn existence() {
        assert_eq!(samples_for_upper_end(0.95), 72);
        assert_eq!(samples_for_upper_end(0.99), 368);
        assert_eq!(samples_for_upper_end(0.999), 3_688);
        for (q, needed) in [(0.95, 72.0), (0.99, 368.0), (0.999, 3_688.0)] {
            assert!(is_surely_at_least(1.0, needed, q));
            assert!(!is_surely_at_least(1.0, needed - 1.0, q));
            assert!(is_surely_below(0.0, needed - 1.0, q));
        }
        assert!(!is_surely_below(0.0, 50.0, 0.05), "a low quantile lacks its lower end");
    }

    /// Claim: for 250 samples p95 is uncertain by about ±2.7 percentile points, as the order statistics say.
    #[test]
    fn rank_uncertainty() {
        let shares = |test: fn(f64, f64, f64) -> bool| {
            (0..=1_000).map(|n| f64::from(n) / 1e3).filter(move |share| test(*share, 250.0, 0.95))
        };
        let below = shares(is_surely_below).next_back().unwrap();
        let above = shares(is_surely_at_least).next().unwrap();
        assert!((below - 0.915).abs() < 0.006 && (above - 0.974).abs() < 0.006, "{below} {above}");
    }

    /// Claim: slots that rise and fall together widen the interval; independent ones do not widen it much.
    #[test]
    fn dependence_widens() {
        let series = |period: usize| -> Vec<Slot> {
            (0..240)
                .map(|i| Slot {
                    count: 10.0,
                    sum: if (i / period).is_multiple_of(2) { 90.0 } else { 110.0 },
                })
                .collect()
        };
        let fast = half_width(&series(1)).unwrap();
        let slow = half_width(&series(20)).unwrap();
        assert!(slow > 5.0 * fast, "{slow} {fast}");
        assert_eq!(half_width(&series(1)[..4]), None);
    }
}
