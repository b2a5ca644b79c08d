//! Is there a trend in a short series? Theil-Sen for how steep, Mann-Kendall for how sure; both by ranks of
//! pairs, so that one wild point moves neither.
//!
//! Both take O(n²) pairs: give them blocks, not samples. Blocks also make neighbours nearly independent, which
//! Mann-Kendall assumes.

use crate::special::normal_tail;

/// The median of all pairwise slopes, in units of y for each step of x = 1 (Theil 1950, Sen 1968).
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a short series")]
pub fn theil_sen(series: &[f64]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(series.len() * series.len().saturating_sub(1) / 2);
    for (i, a) in series.iter().enumerate() {
        for (j, b) in series.iter().enumerate().skip(i + 1) {
            slopes.push((b - a) / (j - i) as f64);
        }
    }
    median(&mut slopes)
}

/// Mann and Kendall's S: pairs that rise less pairs that fall, of n(n − 1)/2; all of them for a series that only rises.
#[must_use]
pub fn mann_kendall_score(series: &[f64]) -> i64 {
    let mut score = 0_i64;
    for (i, a) in series.iter().enumerate() {
        for b in &series[i + 1..] {
            score += i64::from(b > a) - i64::from(b < a);
        }
    }
    score
}

/// How likely a series without trend would rise at least as steadily as this one: one-sided p-value of the
/// Mann-Kendall test (normal approximation with continuity correction and ties).
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a short series")]
pub fn mann_kendall_rising(series: &[f64]) -> Option<f64> {
    let n = series.len();
    if n < 4 {
        return None;
    }
    let score = mann_kendall_score(series);
    let n_f = n as f64;
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted
        .chunk_by(|a, b| a == b)
        .map(|tied| tied.len() as f64)
        .map(|t| t * (t - 1.0) * (2.0 * t + 5.0))
        .sum();
    let variance = (n_f * (n_f - 1.0) * (2.0 * n_f + 5.0) - ties) / 18.0;
    if variance <= 0.0 {
        return Some(1.0);
    }
    let corrected = score as f64 - score.signum() as f64;
    Some(normal_tail(corrected / variance.sqrt()))
}

/// The median (the mean of the two middle values where there are two); reorders its input.
pub fn median(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    Some(if values.len() % 2 == 1 {
        values[middle]
    } else {
        0.5 * (values[middle - 1] + values[middle])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a line with one wild point keeps its slope, and is significant; a level series is not.
    #[test]
    fn slope_and_significance() {
        let mut line: Vec<f64> = (0..12).map(|i| 3.0 * f64::from(i) + 1.0).collect();
        line[5] = 1e6;
        assert!((theil_sen(&line).unwrap() - 3.0).abs() < 0.5);
        assert!(mann_kendall_rising(&line).unwrap() < 0.01);
        let level = [5.0, 7.0, 4.0, 6.0, 5.0, 7.0, 4.0, 6.0];
        assert!(mann_kendall_rising(&level).unwrap() > 0.2);
        let falling: Vec<f64> = (0..10).map(|i| -f64::from(i)).collect();
        assert!(mann_kendall_rising(&falling).unwrap() > 0.99);
        assert_eq!(mann_kendall_rising(&[2.0; 9]), Some(1.0));
        assert_eq!((mann_kendall_score(&falling), mann_kendall_score(&[1.0, 3.0, 2.0])), (-45, 1));
        assert_eq!(mann_kendall_rising(&[1.0, 2.0, 3.0]), None);
    }
}
