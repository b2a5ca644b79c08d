//! What came of a threshold on one trial.

use serde::{Deserialize, Serialize};

/// What can be said of a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It holds.
    Holds,
    /// It is broken.
    Broken,
    /// The samples do not decide it: fewer than ten lie beyond the quantile, or the interval has the limit in it or
    /// is open there.
    NotResolved,
    /// A number that it depends on is not valid.
    Void,
    /// There is no number to compare.
    #[default]
    Unknown,
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
    /// Why the answer is not what the value alone says, or, of a failed threshold about the ledger, which transactions.
    pub detail: String,
    /// Audits that void a number that it rests on. Where the answer is not void, it is the same whatever the number is
    /// in truth: it holds or is broken a fortiori.
    #[serde(default)]
    pub voided_by: Vec<String>,
    /// Whether nobody wrote it: what every ledger promises.
    #[serde(default)]
    pub implicit: bool,
    /// How sure it must be, as a fraction of one, for the run not to fail; null = what is not resolved only warns.
    #[serde(default)]
    pub confidence: Option<f64>,
}
