//! Change points in a history: E-divisive (Matteson and James, *A nonparametric approach for multiple change point
//! analysis of multivariate data*, JASA 2014), with Student's t in place of permutations as Hunter and its successor
//! Apache Otava have it (Fleming et al., ICPE 2023): the same history gives the same change points, without a seed.
//!
//! The place that parts a stretch best is the one with the largest energy distance between its two sides,
//! Q = 2mn/(m+n) · (mean distance across − half the mean distance within each); a part is kept if the levels of its sides
//! differ by t and by more than a ratio. Stretches are parted generously first, because a level that comes back hides its
//! own change, and then joined again where the parts do not differ for sure.

use crate::float::of_len;
use crate::special::beta_cdf;
use crate::trend::median;

/// The least runs on each side of a change point: one run that is off is no new level.
const SIDE_MIN: usize = 3;
/// The chance that sides of one level differ as much. Small, because every place of a history is tried.
const CHANCE_MAX: f64 = 0.0001;
/// The same while stretches are parted.
const CHANCE_PARTED: f64 = 0.2;
/// Longer histories are cut at their beginning: the search is of the order of the square.
pub const RUNS_MAX: usize = 1_000;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level.
    pub at: usize,
    /// Median of the stretch before.
    pub from: f64,
    /// Median of the stretch after.
    pub to: f64,
}

/// The change points of a history, oldest first: levels that differ by more than `margin` (0.05 is a factor of 1.05). Values
/// that have no logarithm are left out, and of more than [`RUNS_MAX`] others all but the last so many.
#[must_use]
pub fn change_points(values: &[f64], margin: f64) -> Vec<ChangePoint> {
    let is_positive = |(_, value): &(usize, f64)| value.is_finite() && *value > 0.0;
    // With their places in the history.
    let mut kept: Vec<(usize, f64)> =
        values.iter().copied().enumerate().filter(is_positive).collect();
    kept.drain(..kept.len().saturating_sub(RUNS_MAX));
    let logs: Vec<f64> = kept.iter().map(|(_, value)| value.ln()).collect();
    let mut places = vec![0, logs.len()];
    // Stretches still to be parted.
    let mut open = vec![(0, logs.len())];
    while let Some((from, to)) = open.pop() {
        let Some(at) = best(&logs[from..to]).map(|at| from + at) else { continue };
        if chance(&logs[from..at], &logs[at..to]) < CHANCE_PARTED {
            places.push(at);
            open.extend([(from, at), (at, to)]);
        }
    }
    places.sort_unstable();
    // The place that parts least is taken away, until each parts for sure.
    loop {
        let doubt = |index: usize| {
            let [before, at, after] = [places[index - 1], places[index], places[index + 1]];
            let (before, after) = (&logs[before..at], &logs[at..after]);
            let is_small = (mean(after) - mean(before)).abs() <= (1.0 + margin).ln();
            if is_small { 1.0 } else { chance(before, after) }
        };
        let all = (1..places.len().saturating_sub(1)).map(|index| (index, doubt(index)));
        let most = all.max_by(|one, other| one.1.total_cmp(&other.1));
        let Some((index, _)) = most.filter(|(_, doubt)| *doubt >= CHANCE_MAX) else { break };
        places.remove(index);
    }
    let level = |of: &[(usize, f64)]| {
        let mut values: Vec<f64> = of.iter().map(|(_, value)| *value).collect();
        median(&mut values).unwrap_or(f64::NAN)
    };
    places
        .windows(3)
        .map(|three| ChangePoint {
            at: kept[three[1]].0,
            from: level(&kept[three[0]..three[1]]),
            to: level(&kept[three[1]..three[2]]),
        })
        .collect()
}

/// The place with the largest energy distance between the sides.
#[expect(clippy::cast_precision_loss, reason = "at most RUNS_MAX values")]
fn best(of: &[f64]) -> Option<usize> {
    if of.len() < 2 * SIDE_MIN {
        return None;
    }
    let distance = |one: usize, other: usize| (of[one] - of[other]).abs();
    let all = 0..of.len();
    // Sums of distances within the left side, within the right, and across, as the place moves.
    let mut within_right: f64 =
        all.clone().flat_map(|j| (0..j).map(move |i| (i, j))).map(|(i, j)| distance(i, j)).sum();
    let (mut within_left, mut across) = (0.0, 0.0);
    let mut best: Option<(f64, usize)> = None;
    for at in 1..of.len() {
        let moved = at - 1;
        let to_left: f64 = (0..moved).map(|i| distance(i, moved)).sum();
        let to_right: f64 = (at..of.len()).map(|j| distance(moved, j)).sum();
        within_left += to_left;
        within_right -= to_right;
        across += to_right - to_left;
        if at < SIDE_MIN || of.len() - at < SIDE_MIN {
            continue;
        }
        let (m, n) = (at as f64, (of.len() - at) as f64);
        let mean = |sum: f64, count: f64| sum / (count * (count - 1.0) / 2.0);
        let energy = 2.0 * across / (m * n) - mean(within_left, m) - mean(within_right, n);
        let q = m * n / (m + n) * energy;
        if best.is_none_or(|(most, _)| q > most) {
            best = Some((q, at));
        }
    }
    best.map(|(_, at)| at)
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of_len(of.len())
}

/// The chance that two stretches of one level differ as much, by Student's t.
fn chance(before: &[f64], after: &[f64]) -> f64 {
    let (m, n) = (of_len(before.len()), of_len(after.len()));
    let freedom = m + n - 2.0;
    if before.is_empty() || after.is_empty() || freedom < 1.0 {
        return 1.0;
    }
    let squares = |of: &[f64]| {
        let mean = mean(of);
        of.iter().map(|it| (it - mean).powi(2)).sum::<f64>()
    };
    let pooled = (squares(before) + squares(after)) / freedom;
    let error = (pooled * (1.0 / m + 1.0 / n)).sqrt();
    let t = (mean(after) - mean(before)) / error.max(f64::MIN_POSITIVE);
    // P(|T| > t) = I_{v/(v+t²)}(v/2, 1/2).
    beta_cdf(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history around given levels with a ripple of about 2 %, the same each time.
    fn history(levels: &[(usize, f64)]) -> Vec<f64> {
        let all = levels.iter().flat_map(|(count, level)| vec![*level; *count]);
        all.enumerate().map(|(n, level)| level * (1.0 + of_len(n * 7 % 5) / 100.0)).collect()
    }

    /// Claim: a level history has no change point; each change of level is found where it is, up and down and back; one
    /// run that is off, a change within the margin and a history that is too short have none.
    #[test]
    fn levels() {
        assert_eq!(change_points(&history(&[(40, 10.0)]), 0.05), []);
        let found = change_points(&history(&[(20, 10.0), (20, 12.0)]), 0.05);
        assert_eq!(found.iter().map(|it| it.at).collect::<Vec<_>>(), [20], "{found:?}");
        assert!(found[0].from < 10.5 && found[0].to > 12.0);
        let found = change_points(&history(&[(12, 10.0), (9, 14.0), (15, 10.0)]), 0.05);
        assert_eq!(found.iter().map(|it| it.at).collect::<Vec<_>>(), [12, 21], "{found:?}");
        let mut off = history(&[(30, 10.0)]);
        off[17] = 30.0;
        assert_eq!(change_points(&off, 0.05), []);
        assert_eq!(change_points(&history(&[(20, 10.0), (20, 10.3)]), 0.05), []);
        assert_eq!(change_points(&history(&[(2, 10.0), (3, 20.0)]), 0.05), []);
        assert_eq!(change_points(&[1.0, f64::NAN, 2.0, 1.0, 1.0, 1.0], 0.05), []);
    }

    /// Claim: of histories whose values are spread like noise (a fixed scramble) a change point that is none stands in at most two of a
    /// hundred, and a change by a fifth is found in all, at most two runs off.
    #[test]
    fn noise() {
        let noise = |seed: usize, n: usize| {
            let mut state = (seed * 1_000 + n + 1) as u64;
            let mut draw = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                ((state >> 33) as f64) / (1_u64 << 31) as f64
            };
            (0..12).map(|_| draw()).sum::<f64>() - 6.0
        };
        let of = |seed: usize, step: f64| -> Vec<f64> {
            let level = |n: usize| if n < 25 { 10.0 } else { 10.0 * step };
            (0..50).map(|n| level(n) * (0.04 * noise(seed, n)).exp()).collect()
        };
        let alarms = (0..100).filter(|seed| !change_points(&of(*seed, 1.0), 0.05).is_empty());
        let alarms = alarms.count();
        assert!(alarms <= 2, "{alarms}");
        for seed in 0..100 {
            let found = change_points(&of(seed, 1.2), 0.05);
            assert!(found.iter().any(|it| it.at.abs_diff(25) <= 2), "{seed}: {found:?}");
        }
    }

    /// Claim: runs at zero are left out and of a long history the last are looked at, and places stay those of the history.
    #[test]
    fn zeros_and_long_histories() {
        let places =
            |of: &[f64]| -> Vec<usize> { change_points(of, 0.05).iter().map(|it| it.at).collect() };
        let mut with_zero = history(&[(21, 100.0), (10, 50.0)]);
        with_zero[20] = 0.0;
        assert_eq!(places(&with_zero), [21]);
        with_zero[5] = f64::NAN;
        assert_eq!(places(&with_zero), [21]);
        let long = history(&[(RUNS_MAX - 300, 100.0), (500, 50.0)]);
        assert_eq!(places(&long), [RUNS_MAX - 300]);
        let forgotten = history(&[(200, 100.0), (RUNS_MAX, 50.0)]);
        assert_eq!(places(&forgotten), []);
    }
}
