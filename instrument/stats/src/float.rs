//! Whole numbers as floating-point ones. All are below 2^53, counts as well as times in nanoseconds, so nothing is lost.

#![expect(clippy::cast_precision_loss, reason = "below 2^53")]

pub(crate) const fn of_count(count: u64) -> f64 {
    count as f64
}

pub(crate) const fn of_len(count: usize) -> f64 {
    count as f64
}

pub(crate) const fn of_ns(ns: i64) -> f64 {
    ns as f64
}
