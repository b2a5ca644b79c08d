//! How an audit came out: its sentence, its figures, and the numbers that it voids.

use serde::{Deserialize, Serialize};

/// How an audit or check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditOutcome {
    /// Satisfied.
    Ok,
    /// It does not apply here, or there was too little data; the detail says which.
    Skipped,
    /// Worth reading; the numbers are valid.
    Warn,
    /// Numbers are not valid: those that it voids (an audit), or the system did not do what it should (a check).
    Failed,
}

/// One audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditResult {
    /// Its name in the list of audits.
    pub name: String,
    /// How it came out.
    pub outcome: AuditOutcome,
    /// One sentence with the figures.
    pub detail: String,
    /// The numbers of the result that are not valid; none unless it failed.
    #[serde(default)]
    pub voids: Vec<Voided>,
    /// Its figures; in thresholds `audit.NAME.FIGURE`.
    #[serde(default)]
    pub figures: Vec<Figure>,
}

/// The question of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditFacts {
    /// Its name in the list of audits.
    pub name: String,
    /// Its question, in one line.
    pub question: String,
}

/// Numbers that stand or fall together, because they are made of the same observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// From due to a stage, over all that were due.
    Response,
    /// From sent to a stage.
    Service,
    /// From due, and from ready, to sent.
    SendLag,
    /// Due transactions: rate and count.
    Offered,
    /// Sent transactions: rate and count.
    Sent,
    /// Transactions that reached a stage: rates, counts, and shares of those due.
    Committed,
    /// Transactions that failed, whenever they came and however late anybody was: counts.
    Failures,
    /// Failures of time ([`Outcome::is_of_time`](crate::Outcome::is_of_time)): counts.
    Timeouts,
    /// Due and not ended.
    Outstanding,
    /// Bytes in and out.
    Bytes,
    /// Fates by the ledger.
    Fates,
    /// Latency by the ledger's own times.
    Stated,
    /// Stamps of nodes.
    NodeStages,
    /// Series of the host, the generator and the nodes.
    Series,
}

impl Family {
    /// All that is computed from rows.
    pub const OF_ROWS: [Self; 10] = [
        Self::Response,
        Self::Service,
        Self::SendLag,
        Self::Offered,
        Self::Sent,
        Self::Committed,
        Self::Failures,
        Self::Timeouts,
        Self::Outstanding,
        Self::Bytes,
    ];
    /// The headline of a trial without thresholds.
    pub const OF_THE_HEADLINE: [Self; 2] = [Self::Response, Self::Committed];

    /// In words, in the plural.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Response => "response times",
            Self::Service => "service times",
            Self::SendLag => "lags of sending",
            Self::Offered => "offered rates",
            Self::Sent => "sent rates",
            Self::Committed => "committed rates and counts",
            Self::Failures => "counts of failures",
            Self::Timeouts => "counts of timeouts",
            Self::Outstanding => "numbers outstanding",
            Self::Bytes => "bytes",
            Self::Fates => "fates",
            Self::Stated => "stated latencies",
            Self::NodeStages => "stages of nodes",
            Self::Series => "series",
        }
    }
}

/// Which way a number may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Both ways.
    Either,
    /// It is too high or right: lateness of the instrument only adds.
    TooHigh,
    /// It is too low or right.
    TooLow,
}

impl Direction {
    /// Bounds on the true values; empty = none known.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Either => "",
            Self::TooHigh => " (the true values can only be lower)",
            Self::TooLow => " (the true values can only be higher)",
        }
    }
}

impl Direction {
    /// Which way a number may be wrong that both are said of.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::Either }
    }
}

/// A family of numbers that is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voided {
    /// Which numbers.
    pub family: Family,
    /// Which way they may be wrong.
    pub may_be: Direction,
}

impl Voided {
    /// Numbers that may be wrong both ways.
    #[must_use]
    pub const fn either(family: Family) -> Self {
        Self { family, may_be: Direction::Either }
    }

    /// Numbers that are at most too high.
    #[must_use]
    pub const fn too_high(family: Family) -> Self {
        Self { family, may_be: Direction::TooHigh }
    }

    /// Numbers that are at most too low.
    #[must_use]
    pub const fn too_low(family: Family) -> Self {
        Self { family, may_be: Direction::TooLow }
    }

    /// Whether what a trial without thresholds is read for is among them.
    #[must_use]
    pub fn is_of_the_headline(&self) -> bool {
        Family::OF_THE_HEADLINE.contains(&self.family)
    }
}

/// A number that an audit computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name, of this audit.
    pub name: String,
    /// The number; finite.
    pub value: f64,
    /// Its unit.
    pub unit: FigureUnit,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// Nanoseconds.
    Ns,
    /// A count, or a mean of counts.
    Count,
    /// Per second.
    PerSecond,
    /// A fraction of one.
    Share,
}
