//! What came of a threshold on one trial.

use serde::{Deserialize, Serialize};

/// What can be said of a threshold, from best to gravest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It holds.
    #[serde(alias = "holds")]
    Met,
    /// Chance may have decided it: more transactions would.
    #[serde(alias = "not_resolved")]
    Undecided,
    /// Something other than the system decides it: the machine's own lag, a load that was not offered, a record that is
    /// not complete, or a number that is not there.
    #[serde(alias = "void", alias = "unknown")]
    #[default]
    Invalid,
    /// It is broken.
    #[serde(alias = "broken")]
    Failed,
}

impl Answer {
    /// From gravest to best: the order in which answers are counted.
    pub const ALL: [Self; 4] = [Self::Failed, Self::Invalid, Self::Undecided, Self::Met];

    /// The word, everywhere.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Undecided => "undecided",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
        }
    }
}

/// One threshold on one trial.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThresholdResult {
    /// As written.
    pub expr: String,
    /// Its level's word.
    pub level: String,
    /// What can be said of it.
    #[serde(default)]
    pub answer: Answer,
    /// Whether the value alone keeps it; null = there is none, and the detail says why.
    pub holds: Option<bool>,
    /// The value that was compared, printed.
    pub actual: String,
    /// Why the answer is what it is, with the counts that decide it; of a failed threshold about the ledger, which
    /// transactions.
    pub detail: String,
    /// Audits that object to a number that it rests on. Where the answer is not invalid, it is the same whatever the number
    /// is in truth.
    #[serde(default)]
    pub voided_by: Vec<String>,
    /// Whether nobody wrote it: what every ledger promises.
    #[serde(default)]
    pub implicit: bool,
    /// How sure it must be that it is met, as a fraction of one; null = what the counts say is enough.
    #[serde(default)]
    pub confidence: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the word of an answer is the one in the result document, and documents of before are read.
    #[test]
    fn one_word() {
        for answer in Answer::ALL {
            assert_eq!(serde_json::to_value(answer).unwrap(), answer.word());
        }
        for (word, answer) in [
            ("holds", Answer::Met),
            ("broken", Answer::Failed),
            ("not_resolved", Answer::Undecided),
            ("void", Answer::Invalid),
            ("unknown", Answer::Invalid),
        ] {
            assert_eq!(serde_json::from_value::<Answer>(word.into()).unwrap(), answer);
        }
    }
}
