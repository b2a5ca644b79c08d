//! Several trials of one setting taken together.

use serde::{Deserialize, Serialize};

/// 95 % intervals of a setting's numbers over repetitions of its trial: the wider of Student's t over the trials' values
/// and of what each trial is uncertain by. No value stands beside them: percentiles are not averaged. Thresholds are judged
/// by each trial. An end that one of the trials cannot give is null, and so are those of a number that an audit voids in
/// one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CombinedResult {
    /// How many trials there are.
    pub trials: u64,
    /// Mean response time to the final stage, of those that reached it, nanoseconds.
    pub mean_low_ns: Option<f64>,
    /// Upper end.
    pub mean_high_ns: Option<f64>,
    /// Its quantiles.
    pub quantiles: Vec<CombinedQuantile>,
    /// Goodput, per second.
    pub goodput_low_per_s: Option<f64>,
    /// Upper end.
    pub goodput_high_per_s: Option<f64>,
}

/// The interval of a quantile over repetitions of the trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CombinedQuantile {
    /// Fraction of one.
    pub q: f64,
    /// Name: `p99`.
    pub name: String,
    /// Lower end, nanoseconds.
    pub low_ns: Option<i64>,
    /// Upper end.
    pub high_ns: Option<i64>,
}
