//! The unit of a number that has a name.

use model::result::FigureUnit;

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Nanoseconds squared.
    NsSquared,
    /// A whole number.
    Count,
    /// Per second.
    PerSecond,
    /// A fraction of one.
    Ratio,
    /// Bytes.
    Bytes,
    /// In the series' own unit, or a mean of counts.
    Number,
    /// Not a number.
    Text,
}

impl Unit {
    /// One word for a value in this unit.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ns => "duration",
            Self::NsSquared => "square of a duration",
            Self::Count => "count",
            Self::PerSecond => "rate",
            Self::Ratio => "percent",
            Self::Bytes => "bytes",
            Self::Number => "number",
            Self::Text => "text",
        }
    }
}

impl From<FigureUnit> for Unit {
    fn from(unit: FigureUnit) -> Self {
        match unit {
            FigureUnit::Ns => Self::Ns,
            FigureUnit::Count => Self::Number,
            FigureUnit::PerSecond => Self::PerSecond,
            FigureUnit::Share => Self::Ratio,
        }
    }
}
