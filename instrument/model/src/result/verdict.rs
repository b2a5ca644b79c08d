//! What a run is worth, and what its exit code says of it.

use serde::{Deserialize, Serialize};

/// What a run is worth, from best to worst. Fail outranks invalid: where a threshold is not met by a number that is valid,
/// other numbers that are not change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every threshold is met, and the numbers that they depend on are valid.
    Pass,
    /// A number that a threshold depends on, or without thresholds the headline, is not valid.
    Invalid,
    /// A threshold is not met, and its number is valid.
    Fail,
}

impl Verdict {
    /// The word in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
        }
    }
}

/// The process's exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Every threshold is met.
    Ok = 0,
    /// It could not run.
    CouldNotRun = 1,
    /// Usage or experiment-file error.
    Usage = 2,
    /// A number that the verdict depends on is not valid.
    Invalid = 97,
    /// Regression against the baseline.
    Regression = 98,
    /// A threshold or a check failed.
    Failed = 99,
    /// Interrupted; the partial result was written.
    Interrupted = 130,
}

impl Exit {
    /// What the code means, for the last line of a run.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "no threshold failed, and the measurement is valid",
            Self::CouldNotRun => "could not run",
            Self::Usage => "usage or experiment-file error",
            Self::Invalid => "the measurement is invalid: do not use its numbers",
            Self::Regression => "worse than the baseline",
            Self::Failed => "a threshold or a check failed",
            Self::Interrupted => "interrupted; the partial result was written",
        }
    }
}
