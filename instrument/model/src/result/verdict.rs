//! The verdict of a run, and the meaning of its exit code.

use serde::{Deserialize, Serialize};

/// What a run is worth, from best to gravest: failed outranks invalid, and invalid undecided. What one valid number shows
/// of the system stands, whatever other numbers are worth.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every threshold is met.
    Pass,
    /// Chance may have decided a threshold.
    Undecided,
    /// Something other than the system decides a threshold, or without thresholds nothing of the headline holds.
    #[default]
    Invalid,
    /// A threshold or a check failed.
    Fail,
}

impl Verdict {
    /// From best to gravest.
    pub const ALL: [Self; 4] = [Self::Pass, Self::Undecided, Self::Invalid, Self::Fail];

    /// The word in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Undecided => "undecided",
            Self::Invalid => "invalid",
            Self::Fail => "fail",
        }
    }

    /// The code that a run with this verdict ends with.
    #[must_use]
    pub const fn exit(self) -> Exit {
        match self {
            Self::Pass => Exit::Ok,
            Self::Undecided | Self::Invalid => Exit::CannotTell,
            Self::Fail => Exit::Failed,
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
    /// A threshold is undecided or invalid.
    CannotTell = 97,
    /// Regression against the baseline.
    Regression = 98,
    /// A threshold or a check failed.
    Failed = 99,
    /// Interrupted; the partial result was written.
    Interrupted = 130,
}

impl Exit {
    /// From gravest to best: of several, the first is given.
    pub const ORDER: [Self; 7] = [
        Self::Usage,
        Self::CouldNotRun,
        Self::Interrupted,
        Self::Failed,
        Self::CannotTell,
        Self::Regression,
        Self::Ok,
    ];

    /// The exit with this code; one that is none means that it could not run.
    #[must_use]
    pub fn of(code: i32) -> Self {
        Self::ORDER.into_iter().find(|exit| *exit as i32 == code).unwrap_or(Self::CouldNotRun)
    }

    /// The graver of two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let either = |exit: &Self| *exit == self || *exit == other;
        Self::ORDER.into_iter().find(either).unwrap_or(self)
    }

    /// The meaning of the code, for the last line of a run.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "no threshold failed",
            Self::CouldNotRun => "could not run: the message says what to do",
            Self::Usage => "the command or the experiment has a mistake: the message names it",
            Self::CannotTell => "undecided or invalid: the first lines say what to do",
            Self::Regression => "worse than the baseline",
            Self::Failed => "a threshold or a check failed",
            Self::Interrupted => "interrupted: the partial result was written",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: failed outranks invalid, invalid outranks undecided, and the code of the graver of two is given.
    #[test]
    fn order() {
        let codes = Verdict::ALL.map(|verdict| verdict.exit() as i32);
        assert_eq!(codes, [0, 97, 97, 99]);
        assert!(Verdict::ALL.is_sorted());
        assert_eq!(Exit::ORDER.map(|exit| exit as i32), [2, 1, 130, 99, 97, 98, 0]);
        assert_eq!(Exit::CannotTell.or(Exit::Failed), Exit::Failed);
        assert_eq!(Exit::Regression.or(Exit::CannotTell), Exit::CannotTell);
        for exit in Exit::ORDER {
            assert_eq!(Exit::of(exit as i32), exit);
        }
        assert_eq!(Exit::of(77), Exit::CouldNotRun);
    }

    /// Claim: the word of a verdict is the one in the result document.
    #[test]
    fn one_word() {
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.word());
        }
    }
}
