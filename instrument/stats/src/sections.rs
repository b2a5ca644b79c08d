//! A window in sections of equal length, and how uncertain a number is that was made of it.
//!
//! A mean, the logarithm of a quantile or a share is, to first order, a sum over samples: each section adds its part of the
//! number's error (the influence function; Hampel 1974). Parts of two numbers of the same sections show how far the numbers
//! err together, and those of two trials with the same arrivals cancel as far as the arrivals made them.

use crate::censoring::{Unconditional, unconditional_quantile};
use crate::float::{of_count, of_len, of_ns};
use crate::interval::dependence;
use crate::timed::TimedHistogram;

/// Sections of a window: enough for Student's t to lie near the normal, long enough that most busy periods lie in one.
pub const SECTIONS: usize = 30;

/// Numbers of blocks that sections are joined to: where sections depend on each other, longer blocks show it.
const BLOCKS: [usize; 2] = [SECTIONS, SECTIONS / 3];

/// A slope is taken over so many standard errors of the share to both sides: as far as the quantile may lie.
const REACH: f64 = 2.0;

/// One section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Samples, the missing among them.
    pub count: u64,
    /// The sum of the samples.
    pub sum: i128,
    /// Samples at or below each of the values, or rather the ends of their buckets.
    pub within: Vec<u64>,
}

impl TimedHistogram {
    /// The window in [`SECTIONS`], by these values; none where it has fewer slots.
    #[must_use]
    pub fn parts(&self, values: &[i64]) -> Vec<Section> {
        let slots = self.slots().len();
        if slots < SECTIONS {
            return Vec::new();
        }
        let section = |section: usize| {
            let mut sum = Section { within: vec![0; values.len()], ..Section::default() };
            for slot in section * slots / SECTIONS..(section + 1) * slots / SECTIONS {
                let samples = &self.slots()[slot];
                sum.count += samples.moments().count() + self.missing_of(slot);
                sum.sum += samples.moments().sum();
                for (within, value) in sum.within.iter_mut().zip(values) {
                    *within += samples.at_most(*value);
                }
            }
            sum
        };
        (0..SECTIONS).map(section).collect()
    }

    /// How much the logarithm of the quantile `q` of all, the missing among them, grows for each unit of share, as far as
    /// the share within it is uncertain; `None` where the samples do not reach so far, or are not positive.
    #[must_use]
    pub fn slope(&self, sections: &[Section], place: usize, q: f64) -> Option<f64> {
        let all = self.count_with_missing();
        let parts = of_share(sections, place)?;
        let least = 1.0 / of_count(all.max(1));
        let reach = (REACH * variances(&parts)?.into_iter().fold(0.0, f64::max).sqrt()).max(least);
        let (low, high) = (q - reach, q + reach);
        if low <= 0.0 || high * of_count(all) > of_count(all) - 1.0 {
            return None;
        }
        let value = |q: f64| match unconditional_quantile(self.all(), all, q)? {
            Unconditional::Finite(value) if value > 0 => Some(of_ns(value).ln()),
            _ => None,
        };
        Some((value(high)? - value(low)?) / (high - low))
    }
}

/// The parts of the error of the share at or below the value at `place`, section by section; `None` without sections.
#[must_use]
pub fn of_share(sections: &[Section], place: usize) -> Option<Vec<f64>> {
    let all: u64 = sections.iter().map(|it| it.count).sum();
    let within: u64 = sections.iter().map(|it| it.within[place]).sum();
    if all == 0 {
        return None;
    }
    let share = of_count(within) / of_count(all);
    let part =
        |it: &Section| (of_count(it.within[place]) - share * of_count(it.count)) / of_count(all);
    Some(sections.iter().map(part).collect())
}

/// The variance of a sum of parts, by sections and by longer blocks of them ([`freedom`] of each), in the order of
/// [`blocks`]; `None` of fewer than [`SECTIONS`] parts.
#[must_use]
pub fn variances(parts: &[f64]) -> Option<[f64; 2]> {
    (parts.len() >= SECTIONS).then(|| BLOCKS.map(|blocks| variance_by(parts, blocks)))
}

/// Degrees of freedom of each of [`variances`], of one trial.
#[must_use]
pub fn freedom() -> [f64; 2] {
    BLOCKS.map(|blocks| of_len(blocks) - 1.0)
}

fn variance_by(parts: &[f64], blocks: usize) -> f64 {
    let sum = |block: usize| {
        parts[block * parts.len() / blocks..(block + 1) * parts.len() / blocks].iter().sum::<f64>()
    };
    let mut sums: Vec<f64> = (0..blocks).map(sum).collect();
    let mean = sums.iter().sum::<f64>() / of_len(blocks);
    sums.iter_mut().for_each(|sum| *sum -= mean);
    let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
    let k = of_len(blocks);
    k / (k - 1.0) * squares * dependence(&sums, squares).powi(2)
}

/// How many independent numbers several are worth, whose parts of one window these are (Nyholt 2004): one where all err
/// alike, their count where each errs for itself. Numbers that do not err are worth none.
#[must_use]
pub fn independent(numbers: &[Vec<f64>]) -> f64 {
    let product = |one: &[f64], other: &[f64]| -> f64 {
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of_len(of.len().max(1));
        let (a, b) = (mean(one), mean(other));
        one.iter().zip(other).map(|(x, y)| (x - a) * (y - b)).sum()
    };
    let erring: Vec<&Vec<f64>> = numbers.iter().filter(|it| product(it, it) > 0.0).collect();
    let count = of_len(erring.len());
    if erring.is_empty() {
        return 0.0;
    }
    let squared = |one: &[f64], other: &[f64]| {
        product(one, other).powi(2) / (product(one, one) * product(other, other))
    };
    let sum: f64 =
        erring.iter().flat_map(|one| erring.iter().map(|other| squared(one, other))).sum();
    (count + 1.0 - sum / count).clamp(1.0, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repeatable number in 0..1.
    fn noise(n: u64) -> f64 {
        let mixed = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        of_count((mixed ^ (mixed >> 31)) >> 11) / 2f64.powi(53)
    }

    /// Claim: of independent exponential samples, sections give the standard error of the median's logarithm that theory
    /// gives (1 ÷ (√n ln 2)), within a quarter over twenty windows; and an atom at the quantile, which no share moves, has no
    /// slope.
    #[test]
    fn known_errors() {
        let variance = |window: u64| {
            let mut times = TimedHistogram::new(60);
            for n in 0..6_000_u64 {
                let time = -(1.0 - noise(window * 6_000 + n)).ln() * 1e6;
                #[expect(clippy::cast_possible_truncation, reason = "a time")]
                times.record(usize::try_from(n / 100).unwrap(), time as i64);
            }
            let median = times.all().quantile(0.5).unwrap();
            let sections = times.parts(&[median]);
            let slope = times.slope(&sections, 0, 0.5).unwrap();
            slope.powi(2) * variances(&of_share(&sections, 0).unwrap()).unwrap()[0]
        };
        let error = ((0..20).map(variance).sum::<f64>() / 20.0).sqrt();
        let theory = 1.0 / (6_000_f64.sqrt() * 2_f64.ln());
        assert!((error / theory - 1.0).abs() < 0.25, "{error} {theory}");
        let mut atom = TimedHistogram::new(30);
        (0..3_000).for_each(|n| atom.record(n % 30, 4_000_000));
        let sections = atom.parts(&[4_000_000]);
        assert_eq!(atom.slope(&sections, 0, 0.5), Some(0.0));
        assert_eq!(TimedHistogram::new(29).parts(&[1]), []);
    }

    /// Claim: numbers that err alike are worth one, those that err for themselves about as many as they are, and one that
    /// does not err none.
    #[test]
    fn worth() {
        let of = |seed: u64| (0..30).map(|n| noise(seed * 1_000 + n) - 0.5).collect::<Vec<f64>>();
        let alike: Vec<f64> = of(1).iter().map(|it| 3.0 * it).collect();
        assert!((independent(&[of(1), alike.clone(), vec![0.0; 30]]) - 1.0).abs() < 1e-9);
        let all = independent(&[of(1), of(2), of(3), of(4)]);
        assert!((3.5..=4.0).contains(&all), "{all}");
        assert!(independent(&[vec![0.0; 30]]).abs() < 1e-9);
    }
}
