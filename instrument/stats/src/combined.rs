//! One interval for several trials of the same setting: what a trial knows of itself, and what trials differ by.
//!
//! The interval of a trial knows what happened within it. Trials differ by more: placement in memory, neighbours, the day.
//! The spread of their values holds both, and Student's t over them is the interval of independent replications (Law,
//! *Simulation Modeling and Analysis*, chapter 9). Two or three trials may agree by chance, and all short ones miss the
//! same rare events; so **the wider of the two is taken**: t over the trials, or the trials' own half-widths combined as
//! those of a mean (root of the sum of squares over their number). Where one trial cannot bound an end, none is given.
//!
//! `tests/coverage.rs` measures it: either alone holds too seldom.

use crate::special::t_quantile;

/// One trial's estimate of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Its value.
    pub value: f64,
    /// The ends of its 95 % interval; `None` where its samples cannot give one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// The 95 % interval of the number over repetitions of the trial; nothing of fewer than two.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a few trials")]
pub fn over_trials(trials: &[Estimate]) -> (Option<f64>, Option<f64>) {
    if trials.len() < 2 {
        return (None, None);
    }
    let k = trials.len() as f64;
    let centre = trials.iter().map(|trial| trial.value).sum::<f64>() / k;
    let squares: f64 = trials.iter().map(|trial| (trial.value - centre).powi(2)).sum();
    let between = t_quantile(0.975, k - 1.0) * (squares / (k - 1.0) / k).sqrt();
    let half_width = |end: fn(&Estimate) -> Option<f64>| {
        let squares = trials.iter().map(|trial| Some((end(trial)? - trial.value).powi(2)));
        let within = squares.sum::<Option<f64>>()?.sqrt() / k;
        Some(between.max(within))
    };
    let (below, above) = (half_width(|trial| trial.low), half_width(|trial| trial.high));
    (below.map(|below| centre - below), above.map(|above| centre + above))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64], half_width: f64) -> (Option<f64>, Option<f64>) {
        let estimate = |value: &f64| Estimate {
            value: *value,
            low: Some(value - half_width),
            high: Some(value + half_width),
        };
        over_trials(&values.iter().map(estimate).collect::<Vec<_>>())
    }

    /// Claim: trials that differ more than each knows have the interval of Student's t; trials that agree by chance keep
    /// what each is uncertain by, less by the root of their number; an end that one lacks is lacking.
    #[test]
    fn the_wider_of_the_two() {
        let (low, high) = of(&[8.0, 10.0, 12.0], 0.1);
        let half = 4.302_653 * 2.0 / 3_f64.sqrt();
        assert!((low.unwrap() - (10.0 - half)).abs() < 1e-3, "{low:?}");
        assert!((high.unwrap() - (10.0 + half)).abs() < 1e-3, "{high:?}");
        let (low, high) = of(&[10.0; 4], 2.0);
        assert!((low.unwrap() - 9.0).abs() < 1e-9 && (high.unwrap() - 11.0).abs() < 1e-9);
        let open = Estimate { value: 10.0, low: Some(9.0), high: None };
        let closed = Estimate { high: Some(11.0), ..open };
        let (low, high) = over_trials(&[open, closed]);
        assert!(low.is_some() && high.is_none());
        assert_eq!(of(&[10.0], 1.0), (None, None));
    }
}
