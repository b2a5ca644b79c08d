//! The 95 % interval of a quantile, which may end at infinity.

/// The 95 % interval of a quantile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuantileInterval {
    /// Lower end; `None` where the samples cannot give it, or where it is infinite.
    pub low: Option<i64>,
    /// So many are missing that even the lower end is infinite.
    pub low_is_infinite: bool,
    /// Upper end; `None` where the samples cannot give a finite one.
    pub high: Option<i64>,
}

impl QuantileInterval {
    /// Of a quantile that is certainly infinite.
    pub const INFINITE: Self = Self { low: None, low_is_infinite: true, high: None };
}
