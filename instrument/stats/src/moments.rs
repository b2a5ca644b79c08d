//! Count, extremes, mean and variance, exactly: sums in 128-bit integers, so that the order of the samples
//! cannot change a digit.

use crate::carry::Carry;

/// Exact sums of integer samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moments {
    count: u64,
    sum: i128,
    sum_of_squares: u128,
    min: i64,
    max: i64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, sum: 0, sum_of_squares: 0, min: i64::MAX, max: i64::MIN }
    }
}

impl Moments {
    /// Adds a sample.
    #[inline]
    pub fn add(&mut self, value: i64) {
        self.count += 1;
        self.sum += i128::from(value);
        let magnitude = u128::from(value.unsigned_abs());
        // Saturates beyond 10^38 ns², which no sum of real latencies reaches.
        self.sum_of_squares = self.sum_of_squares.saturating_add(magnitude * magnitude);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Of several samples: in registers, where one at a time goes through memory.
    #[must_use]
    pub fn of(values: &[i64]) -> Self {
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        for value in values {
            min = min.min(*value);
            max = max.max(*value);
        }
        let is_small = min >= 0 && max < SMALL && values.len() <= SMALL_COUNT;
        let (sum, sum_of_squares) = if is_small { small_sums(values) } else { sums(values) };
        Self { count: values.len() as u64, sum, sum_of_squares, min, max }
    }

    /// Adds a sample that was seen `count` times.
    pub fn add_n(&mut self, value: i64, count: u64) {
        if count == 0 {
            return;
        }
        self.count += count;
        self.sum += i128::from(value) * i128::from(count);
        let square = u128::from(value.unsigned_abs()) * u128::from(value.unsigned_abs());
        let squares = square.saturating_mul(u128::from(count));
        self.sum_of_squares = self.sum_of_squares.saturating_add(squares);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds the samples of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Adds the samples of another, or writes them.
    pub fn carry(&mut self, it: &mut Carry<'_>) {
        it.sum(&mut self.count);
        it.sum(&mut self.sum);
        it.saturating(&mut self.sum_of_squares, u128::MAX);
        it.min(&mut self.min);
        it.max(&mut self.max);
    }

    /// Samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub const fn sum(&self) -> i128 {
        self.sum
    }

    /// The smallest.
    #[must_use]
    pub fn min(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest.
    #[must_use]
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the sum is exact; the quotient is a float")]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The sample variance (divisor n − 1), computed as `(n·Σx² − (Σx)²) / (n·(n − 1))` in integers as far
    /// as they reach, which is what makes it exact: the two terms nearly cancel.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "after the cancellation, in integers")]
    pub fn variance(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        let n = u128::from(self.count);
        let sum = self.sum.unsigned_abs();
        // Subtract the mean first: Σx² − (Σx)²/n with the quotient split into whole part and remainder.
        let (whole, rest) = (sum / n, sum % n);
        let squared_over_n = sum.checked_mul(whole)?;
        let numerator = self.sum_of_squares.checked_sub(squared_over_n)? as f64
            - (sum as f64) * (rest as f64 / n as f64);
        Some(numerator.max(0.0) / (n - 1) as f64)
    }
}

/// The squares of so many values from 0 to below this add up to less than 2^64.
const SMALL: i64 = 1 << 28;
const SMALL_COUNT: usize = 1 << 8;

/// The sum and the sum of squares of few small values, several at a time.
fn small_sums(values: &[i64]) -> (i128, u128) {
    let (mut sum, mut squares) = (0_u64, 0_u64);
    for value in values {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "below SMALL; said to the compiler, which then multiplies several at a time"
        )]
        let value = u64::from(*value as u32);
        sum = sum.wrapping_add(value);
        squares = squares.wrapping_add(value * value);
    }
    (sum.into(), squares.into())
}

/// The sum and the sum of squares of any values.
fn sums(values: &[i64]) -> (i128, u128) {
    let (mut sum, mut squares) = (0_i128, 0_u128);
    for value in values {
        sum += i128::from(*value);
        let magnitude = u128::from(value.unsigned_abs());
        squares = squares.saturating_add(magnitude * magnitude);
    }
    (sum, squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: small deviations on a large offset keep their variance, where a sum of floats loses it.
    #[test]
    fn variance_survives_a_large_offset() {
        let mut moments = Moments::default();
        for deviation in [-1_i64, 0, 1] {
            moments.add(1_000_000_000_000 + deviation);
        }
        assert_eq!(moments.mean(), Some(1e12));
        assert!((moments.variance().unwrap() - 1.0).abs() < 1e-3, "{:?}", moments.variance());
    }

    /// Claim: negative samples are kept as they are.
    #[test]
    fn negatives() {
        let mut moments = Moments::default();
        for value in [-3_i64, -1, 1, 3] {
            moments.add(value);
        }
        assert_eq!((moments.min(), moments.max()), (Some(-3), Some(3)));
        assert_eq!(moments.mean(), Some(0.0));
        assert!((moments.variance().unwrap() - 20.0 / 3.0).abs() < 1e-12);
    }

    /// Claim: merging is adding.
    #[test]
    fn merging() {
        let (mut a, mut b, mut both) = <(Moments, Moments, Moments)>::default();
        for value in 0..1000_i64 {
            both.add(value * value);
            if value % 3 == 0 { a.add(value * value) } else { b.add(value * value) }
        }
        a.merge(&b);
        assert_eq!(a, both);
        let values: Vec<i64> = (0..1000_i64).map(|value| value * value).collect();
        assert_eq!(Moments::of(&values), both);
        assert_eq!(Moments::of(&[]), Moments::default());
        assert_eq!(Moments::default().mean(), None);
    }
}
