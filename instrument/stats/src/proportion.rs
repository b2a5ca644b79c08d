//! The probability of an event, from a count.

use crate::special::beta_quantile;

/// The exact (Clopper-Pearson) 95 % interval of a probability after `events` in `trials`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub fn clopper_pearson(events: u64, trials: u64) -> Option<(f64, f64)> {
    if trials == 0 || events > trials {
        return None;
    }
    let (k, n) = (events as f64, trials as f64);
    let low = if events == 0 { 0.0 } else { beta_quantile(0.025, k, n - k + 1.0) };
    let high = if events == trials { 1.0 } else { beta_quantile(0.975, k + 1.0, n - k) };
    Some((low, high))
}

/// The one-sided 95 % upper bound of a probability after no event in `trials`: the rule of three.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub fn rule_of_three(trials: u64) -> Option<f64> {
    (trials > 0).then(|| (3.0 / trials as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: Clopper-Pearson gives the published bounds, and the rule of three is its shorthand for no event.
    #[test]
    fn known_bounds() {
        let (low, high) = clopper_pearson(10, 100).unwrap();
        assert!((low - 0.0490).abs() < 1e-4 && (high - 0.1762).abs() < 1e-4, "{low} {high}");
        let (low, high) = clopper_pearson(0, 1_000).unwrap();
        assert!(low == 0.0 && (high - 0.003_682).abs() < 1e-6, "{high}");
        assert_eq!(rule_of_three(1_000), Some(0.003));
        assert_eq!(clopper_pearson(5, 5).unwrap().1, 1.0);
        assert_eq!(clopper_pearson(1, 0), None);
    }
}
