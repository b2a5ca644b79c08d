//! The log-linear bucket layout of HdrHistogram (Gil Tene, <https://hdrhistogram.org>), with the unit 1:
//! values below `2^(half_bits+1)` are exact; every octave above is split into `2^half_bits` equal buckets.
//!
//! With `half_bits = 10` this is exactly the layout for three significant digits (2,048 sub-buckets), so that
//! a bucket here is a bucket there and the quantiles agree.

/// Half the sub-bucket count of three significant digits, as a power of two: `2^10 = 1024`.
pub(crate) const THREE_DIGITS: u32 = 10;

/// Buckets of three digits, in whole octaves: the last is that of the largest value.
pub(crate) const BUCKETS: usize = (index_of(u64::MAX, THREE_DIGITS) / 1024 + 1) * 1024;

/// The bucket of `value`.
#[inline]
pub(crate) const fn index_of(value: u64, half_bits: u32) -> usize {
    let mask = (1_u64 << (half_bits + 1)) - 1;
    let octave = 63 - half_bits - (value | mask).leading_zeros();
    ((octave as usize) << half_bits) + (value >> octave) as usize
}

/// The smallest value of the bucket.
pub(crate) const fn lowest_of(index: usize, half_bits: u32) -> u64 {
    let (octave, sub) = split(index, half_bits);
    (sub as u64) << octave
}

/// The largest value of the bucket.
pub(crate) const fn highest_of(index: usize, half_bits: u32) -> u64 {
    let (octave, sub) = split(index, half_bits);
    ((sub as u64) << octave) + ((1_u64 << octave) - 1)
}

const fn split(index: usize, half_bits: u32) -> (usize, usize) {
    let half = 1_usize << half_bits;
    let octave = (index >> half_bits).saturating_sub(1);
    (octave, if octave == 0 { index } else { index % half + half })
}

/// The rank that a quantile asks for: `ceil(q · n)`, at least 1 and at most `n`.
#[must_use]
pub fn rank(q: f64, count: u64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are below 2^53; the product is not negative"
    )]
    // A product such as 0.95 · 100 = 95.00000000000001 must not ask for the 96th: HdrHistogram takes the next
    // float down before it rounds up, for the same reason.
    let wanted = (q * count as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64;
    wanted.clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: buckets tile the line without gap or overlap, and each holds the values that it says it holds.
    #[test]
    fn buckets_tile_the_line() {
        for half_bits in [7, THREE_DIGITS] {
            let mut next = 0_u64;
            for index in 0..20_000_usize.min((50 << half_bits) as usize) {
                assert_eq!(lowest_of(index, half_bits), next);
                assert_eq!(index_of(next, half_bits), index);
                let high = highest_of(index, half_bits);
                assert_eq!(index_of(high, half_bits), index);
                next = high + 1;
            }
        }
        assert_eq!(highest_of(index_of(i64::MAX as u64, 10), 10), i64::MAX as u64);
    }

    /// Claim: three digits means an error below one in a thousand, as HdrHistogram promises.
    #[test]
    fn three_digits() {
        for value in [2_049_u64, 123_456, 98_765_432_101, 3_600_000_000_000] {
            let index = index_of(value, THREE_DIGITS);
            let width = highest_of(index, THREE_DIGITS) - lowest_of(index, THREE_DIGITS) + 1;
            assert!(width * 1000 <= value, "{value}: width {width}");
        }
    }

    /// Claim: a quantile that falls on a whole rank asks for that rank, whatever the rounding of the product.
    #[test]
    fn whole_ranks() {
        for n in 1..=2_000_u64 {
            for hundredth in 1..=100_u64 {
                let q = hundredth as f64 / 100.0;
                assert_eq!(rank(q, n), (hundredth * n).div_ceil(100).max(1), "q {q} n {n}");
            }
        }
        assert_eq!(rank(0.0, 5), 1);
        assert_eq!(rank(0.999, 10_000), 9_990);
    }
}
