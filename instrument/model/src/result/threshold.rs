//! The result of a threshold on one trial.

use serde::{Deserialize, Serialize};

/// The answers to a threshold, from best to gravest.
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
    /// Its answer.
    #[serde(default)]
    pub answer: Answer,
    /// Whether the value alone keeps it; null = there is none, and the detail says why.
    pub holds: Option<bool>,
    /// The value that was compared, printed.
    pub actual: String,
    /// Why the answer is what it is, with the counts that decide it; of a failed threshold about the ledger, which
    /// transactions.
    pub detail: String,
    /// The counts of each of its comparisons that is decided by counting.
    #[serde(default)]
    pub counted: Vec<Counted>,
    /// Audits that object to a number that it rests on. Where the answer is not invalid, it is the same whatever the number
    /// is in truth.
    #[serde(default)]
    pub voided_by: Vec<String>,
    /// Whether it is implicit: a promise of every ledger.
    #[serde(default)]
    pub implicit: bool,
    /// How sure it must be that it is met, as a fraction of one; null = what the counts say is enough.
    #[serde(default)]
    pub confidence: Option<f64>,
}

/// How many transactions lie beyond the limit of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// The comparison, as written.
    pub comparison: String,
    /// The limit of a time in nanoseconds; null = what was not committed is counted.
    pub limit_ns: Option<f64>,
    /// How many the number is of: for a time of all due, all that were due.
    pub all: u64,
    /// How many of them are beyond the limit, as measured; what was never answered is.
    pub beyond: u64,
    /// How many are, with each response time less the instrument's own lag of that transaction.
    pub beyond_less_own: u64,
    /// How many of all were refused, and count by the time to that answer.
    #[serde(default)]
    pub refused: u64,
    /// The share that may be beyond, as a fraction of one.
    pub allowed_share: f64,
    /// The probability of lying at least this far on this side if the true share were the allowed one.
    pub chance: f64,
    /// How long before the end of the window nothing was answered any more, in seconds, where that alone is more than is
    /// allowed; null = it answered.
    pub silent_s: Option<f64>,
    /// How long a window at this rate, with the same shares and excursions, would exclude chance, in seconds; null = none
    /// would.
    pub seconds_to_decide: Option<f64>,
    /// How many such a window would hold; null = none would.
    #[serde(default)]
    pub needed: Option<u64>,
}

impl Counted {
    /// Whether more lie beyond the limit, as measured, than may.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    pub fn is_beyond(&self) -> bool {
        self.beyond as f64 > self.allowed_share * self.all as f64
    }
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
