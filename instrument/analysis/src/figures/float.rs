//! Counts and times as floats, for quotients and tables.

/// A count, or nanoseconds: exact below 2^53, which is a hundred days.
#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds below 2^53")]
pub(crate) fn to_f64(value: impl TryInto<i64>) -> f64 {
    value.try_into().map_or(f64::INFINITY, |value| value as f64)
}
