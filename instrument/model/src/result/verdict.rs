//! What a run is worth, and what its exit code says of it.

use serde::{Deserialize, Serialize};

/// What a run is worth, from best to worst. Fail outranks invalid: where a promise is broken by a number that holds, other
/// numbers that do not hold change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No promise is broken, and the numbers that the promises rest on hold.
    Pass,
    /// A number that a promise rests on, or without promises the headline, does not hold.
    Invalid,
    /// A promise is broken, and its number holds.
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
    /// No promise is broken.
    Ok = 0,
    /// It could not run.
    CouldNotRun = 1,
    /// Usage or experiment-file error.
    Usage = 2,
    /// A number that the verdict rests on does not hold.
    Invalid = 97,
    /// Regression against the baseline.
    Regression = 98,
    /// The system broke a promise.
    Failed = 99,
    /// Interrupted; the partial result was written.
    Interrupted = 130,
}

impl Exit {
    /// What the code means, for the last line of a run.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "no promise is broken, and the measurement holds",
            Self::CouldNotRun => "could not run",
            Self::Usage => "usage or experiment-file error",
            Self::Invalid => "the measurement is invalid: do not use its numbers",
            Self::Regression => "worse than the baseline",
            Self::Failed => "a promise is broken",
            Self::Interrupted => "interrupted; the partial result was written",
        }
    }
}
