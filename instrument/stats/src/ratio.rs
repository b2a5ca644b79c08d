//! How many times as large is a number of one side as of another, with an interval: from trials of both.
//!
//! All is done with logarithms, because ratios of times are what is asked for and what is symmetric. Two things make a
//! ratio uncertain, and **the wider of the two intervals is taken**, as in [`crate::combined`]:
//!
//! * *between trials*: Student's t over pairs (trials run by turns), or with the pooled variance of both sides (Welch's
//!   form needs two trials of each; here one new run may stand against several of a baseline, which is a prediction
//!   interval: s²(1/m + 1/n));
//! * *within trials*: the parts of the error by sections of the window ([`crate::sections`]), the n-th trials of both sides
//!   taken together, so that arrivals that both had cancel; where a trial has none, the trials' own 95 % intervals, as
//!   those of a mean.
//!
//! An end that a trial cannot give is open, unless there are so many trials that their spread alone is trusted.

use crate::combined::Estimate;
use crate::float::of_len;
use crate::sections::{freedom, variances};
use crate::special::t_quantile;

/// A number of one trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Its value with its own interval.
    pub estimate: Estimate,
    /// Parts of the error of its logarithm, section by section; empty = not known.
    pub parts: Vec<f64>,
}

/// From so many trials of each side on, or pairs, their spread alone bounds a ratio whose trials cannot bound theirs.
const TRIALS_TRUSTED: usize = 5;
/// Degrees of freedom of a trial's own interval: eight blocks ([`crate::interval`]).
const FREEDOM_WITHIN: f64 = 7.0;
/// Divides a trial's own half-width, to get a standard error back.
const HALF_WIDTH_PER_ERROR: f64 = 2.364_624;

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The second side's number ÷ the first's: geometric mean over trials.
    pub value: f64,
    /// Lower end; `None` = open.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Whether it knows how trials differ from each other.
    pub knows_between: bool,
}

/// The ratio of `second` to `first`, all of whose values are positive, with an interval that is `confidence` sure.
/// Paired: the n-th of one side was run beside the n-th of the other. `None` where a side is empty or a value is not
/// positive.
#[must_use]
pub fn ratio(
    first: &[Measured],
    second: &[Measured],
    is_paired: bool,
    confidence: f64,
) -> Option<Ratio> {
    let by_sections = half_width_by_sections(first, second, f64::midpoint(1.0, confidence));
    let estimates = |of: &[Measured]| of.iter().map(|it| it.estimate).collect::<Vec<_>>();
    let (first, second) = (&estimates(first)[..], &estimates(second)[..]);
    let is_positive = |it: &Estimate| it.value > 0.0 && it.value.is_finite();
    if first.is_empty() || second.is_empty() || !first.iter().chain(second).all(is_positive) {
        return None;
    }
    let centre = mean(second) - mean(first);
    let upper = f64::midpoint(1.0, confidence);
    let between = match is_paired && first.len() == second.len() {
        true => between_pairs(first, second, upper),
        false => between_sides(first, second, upper),
    };
    let fewest = first.len().min(second.len());
    let freedom = FREEDOM_WITHIN * of_len(fewest);
    let within = |of_first: End, of_second: End| {
        if by_sections.is_some() {
            return by_sections;
        }
        let variance = variance_within(first, of_first)? + variance_within(second, of_second)?;
        Some(t_quantile(upper, freedom) * variance.sqrt())
    };
    let half_width = |within: Option<f64>| match (between, within) {
        (Some(between), Some(within)) => Some(between.max(within)),
        (Some(between), None) if fewest >= TRIALS_TRUSTED => Some(between),
        (None, within) => within,
        _ => None,
    };
    let below = half_width(within(End::High, End::Low));
    let above = half_width(within(End::Low, End::High));
    Some(Ratio {
        value: centre.exp(),
        low: below.map(|below| (centre - below).exp()),
        high: above.map(|above| (centre + above).exp()),
        knows_between: between.is_some(),
    })
}

/// Half of the interval that sections give; `None` where a trial has none.
fn half_width_by_sections(first: &[Measured], second: &[Measured], upper: f64) -> Option<f64> {
    let (m, n) = (first.len(), second.len());
    let sum = |all: &mut dyn Iterator<Item = Vec<f64>>, trials: usize| {
        let mut sum = [0.0; 2];
        for parts in all {
            let of = variances(&parts)?;
            sum.iter_mut().zip(of).for_each(|(sum, of)| *sum += of / of_len(trials).powi(2));
        }
        Some(sum)
    };
    let alike = |(one, other): (&Measured, &Measured)| one.parts.len() == other.parts.len();
    let variances = if m == n && first.iter().zip(second).all(alike) {
        sum(&mut first.iter().zip(second).map(|(one, other)| less(&other.parts, &one.parts)), m)?
    } else {
        let own = |of: &[Measured]| sum(&mut of.iter().map(|it| it.parts.clone()), of.len());
        let (first, second) = (own(first)?, own(second)?);
        [first[0] + second[0], first[1] + second[1]]
    };
    let trials = of_len(m.min(n));
    let half =
        |(variance, freedom): (f64, f64)| t_quantile(upper, trials * freedom) * variance.sqrt();
    Some(variances.into_iter().zip(freedom()).map(half).fold(0.0, f64::max))
}

/// The differences of parts of the same sections.
#[must_use]
pub fn less(of: &[f64], other: &[f64]) -> Vec<f64> {
    of.iter().zip(other).map(|(one, other)| one - other).collect()
}

/// Several trials as one: the geometric mean of their values, with their own intervals as that of a mean. `None` where
/// there is none, or a value is not positive.
#[must_use]
pub fn together(all: &[Measured]) -> Option<Measured> {
    let of: &[Estimate] = &all.iter().map(|it| it.estimate).collect::<Vec<_>>();
    if of.is_empty() || of.iter().any(|it| it.value <= 0.0) {
        return None;
    }
    let centre = mean(of);
    let width = |end: End| Some(variance_within(of, end)?.sqrt() * HALF_WIDTH_PER_ERROR);
    let estimate = Estimate {
        value: centre.exp(),
        low: width(End::Low).map(|width| (centre - width).exp()),
        high: width(End::High).map(|width| (centre + width).exp()),
    };
    // The mean of errors that are independent.
    let sections = all.iter().map(|it| it.parts.len()).min().unwrap_or(0);
    let part =
        |section: usize| all.iter().map(|it| it.parts[section]).sum::<f64>() / of_len(all.len());
    Some(Measured { estimate, parts: (0..sections).map(part).collect() })
}

/// An end of a trial's own interval.
#[derive(Clone, Copy)]
enum End {
    Low,
    High,
}

fn mean(of: &[Estimate]) -> f64 {
    of.iter().map(|it| it.value.ln()).sum::<f64>() / of_len(of.len())
}

/// The variance of the mean of a side's logarithms, from the trials' own intervals; `None` where one lacks the end.
fn variance_within(of: &[Estimate], end: End) -> Option<f64> {
    let error = |it: &Estimate| {
        let width = match end {
            End::Low => it.value.ln() - it.low.filter(|low| *low > 0.0)?.ln(),
            End::High => it.high?.ln() - it.value.ln(),
        };
        Some((width.max(0.0) / HALF_WIDTH_PER_ERROR).powi(2))
    };
    let sum: Option<f64> = of.iter().map(error).sum();
    Some(sum? / of_len(of.len()).powi(2))
}

fn between_pairs(first: &[Estimate], second: &[Estimate], upper: f64) -> Option<f64> {
    let pairs: Vec<f64> =
        first.iter().zip(second).map(|(one, other)| (other.value / one.value).ln()).collect();
    let count = of_len(pairs.len());
    if pairs.len() < 2 {
        return None;
    }
    let error = (squares(&pairs) / (count - 1.0) / count).sqrt();
    Some(t_quantile(upper, count - 1.0) * error)
}

fn between_sides(first: &[Estimate], second: &[Estimate], upper: f64) -> Option<f64> {
    let freedom = of_len(first.len() + second.len()) - 2.0;
    if freedom < 1.0 {
        return None;
    }
    let logs = |of: &[Estimate]| of.iter().map(|it| it.value.ln()).collect::<Vec<f64>>();
    let pooled = (squares(&logs(first)) + squares(&logs(second))) / freedom;
    let error = (pooled * (1.0 / of_len(first.len()) + 1.0 / of_len(second.len()))).sqrt();
    Some(t_quantile(upper, freedom) * error)
}

/// The sum of squares around the mean.
fn squares(of: &[f64]) -> f64 {
    let mean = of.iter().sum::<f64>() / of_len(of.len());
    of.iter().map(|it| (it - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(values: &[f64], share: f64) -> Vec<Measured> {
        let measured = |value: &f64| {
            let (low, high) = (Some(value * (1.0 - share)), Some(value * (1.0 + share)));
            Measured { estimate: Estimate { value: *value, low, high }, parts: Vec::new() }
        };
        values.iter().map(measured).collect()
    }

    /// Claim: sections bound a ratio where both sides have them, and errors that both have in the same sections cancel;
    /// where one side has none, the trials' own intervals bound it.
    #[test]
    fn sections_of_the_same_clock() {
        let wave =
            |size: f64| (0..30).map(|n| size * if n % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let with = |parts: Vec<f64>| Measured { parts, ..trials(&[1.0], 0.5).remove(0) };
        let of = |one: f64, other: f64| {
            ratio(&[with(wave(one))], &[with(wave(other))], false, 0.95).unwrap().high.unwrap()
        };
        assert!((of(0.01, 0.01) - 1.0).abs() < 1e-9);
        // t of 29 degrees of freedom times √(30/29 · 30 · 0.01²).
        let alone = of(0.0, 0.01).ln();
        assert!(
            (alone - 2.045_230 * (30.0_f64 / 29.0 * 30.0).sqrt() * 0.01).abs() < 2e-4,
            "{alone}"
        );
        let lacking = ratio(&[with(wave(0.01))], &trials(&[1.0], 0.5), false, 0.95).unwrap();
        assert!(lacking.high.unwrap() > 1.5, "{lacking:?}");
    }

    /// Claim: one trial of each side has an interval of what happened within them, and does not know how trials differ;
    /// pairs that drift together are told apart where the sides alone are not.
    #[test]
    fn what_is_known() {
        let one = ratio(&trials(&[10.0], 0.02), &trials(&[12.0], 0.02), false, 0.95).unwrap();
        assert!((one.value - 1.2).abs() < 1e-9 && !one.knows_between, "{one:?}");
        assert!(one.low.unwrap() > 1.15 && one.high.unwrap() < 1.25, "{one:?}");
        let (first, second) = ([10.0, 12.0, 15.0, 20.0], [11.0, 13.3, 16.4, 22.1]);
        let (first, second) = (trials(&first, 0.001), trials(&second, 0.001));
        let sides = ratio(&first, &second, false, 0.95).unwrap();
        assert!(sides.low.unwrap() < 1.0 && sides.high.unwrap() > 1.0, "{sides:?}");
        let pairs = ratio(&first, &second, true, 0.95).unwrap();
        assert!(pairs.low.unwrap() > 1.08 && pairs.high.unwrap() < 1.13, "{pairs:?}");
    }

    /// Claim: one new run against several of a baseline has the prediction interval of their spread: t with n − 1
    /// degrees of freedom times s√(1 + 1/n).
    #[test]
    fn one_against_several() {
        let logs = [-0.1_f64, 0.0, 0.1];
        let baseline: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let found = ratio(&trials(&baseline, 1e-9), &trials(&[1.0], 1e-9), false, 0.95).unwrap();
        let half = 4.302_653 * 0.1 * (1.0 + 1.0 / 3.0_f64).sqrt();
        assert!((found.high.unwrap().ln() - half).abs() < 1e-4, "{found:?} {half}");
        assert!(found.knows_between);
    }

    /// Claim: an end that a trial cannot give is open, but not where five trials of each side bound it; more confidence
    /// makes a wider interval; what is not positive has no ratio.
    #[test]
    fn open_ends() {
        let open = |count: usize| {
            let mut all = trials(&[1.0, 1.01, 0.99, 1.02, 0.98][..count], 0.01);
            all[0].estimate.high = None;
            all
        };
        let few = ratio(&trials(&[1.0, 1.01], 0.01), &open(2), false, 0.95).unwrap();
        assert!(few.low.is_some() && few.high.is_none(), "{few:?}");
        let five = ratio(&open(5), &open(5), true, 0.95).unwrap();
        assert!(five.low.is_some() && five.high.is_some(), "{five:?}");
        let surer = ratio(&open(5), &trials(&[1.0, 1.1, 1.0, 0.9, 1.0], 0.01), false, 0.99);
        let less = ratio(&open(5), &trials(&[1.0, 1.1, 1.0, 0.9, 1.0], 0.01), false, 0.95);
        assert!(surer.unwrap().high > less.unwrap().high);
        assert_eq!(ratio(&trials(&[0.0], 0.0), &trials(&[1.0], 0.1), false, 0.95), None);
        assert_eq!(ratio(&[], &trials(&[1.0], 0.1), false, 0.95), None);
    }
}
