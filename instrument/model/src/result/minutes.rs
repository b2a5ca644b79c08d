//! A load's results minute by minute, and how often several requests in a row all succeed.

use serde::{Deserialize, Serialize};

/// The measured stream of a trial by whole minute of the measured window, by due time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MinutesResult {
    /// The comparisons of the setting's thresholds that can be told of a minute: of `success`, and of response times to
    /// the final stage. A minute holds where each of them does, by its value.
    pub judged: Vec<String>,
    /// Kinds that the preflight found unable to succeed at any load: what was due of them is not counted here.
    pub left_out: Vec<String>,
    /// The name of the quantile below: the highest that those comparisons name; p99 where they name none.
    pub quantile: String,
    /// The minutes in which something was due, in the order of time.
    pub minutes: Vec<MinuteResult>,
}

/// A minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinuteResult {
    /// Its start, nanoseconds after the trial's.
    pub start_ns: i64,
    /// Fell due.
    pub due: u64,
    /// Of these, reached the final stage.
    pub committed: u64,
    /// The quantile of response time to the final stage, of all that were due; null = infinite. Within 0.8 %.
    pub quantile_ns: Option<i64>,
    /// Whether every comparison holds.
    pub holds: bool,
}

/// The minutes of all trials of a setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BorneResult {
    /// Minutes in which something was due.
    pub minutes: u64,
    /// Of these, minutes that held.
    pub held: u64,
    /// The name of the quantile below.
    pub quantile: String,
    /// Its value in the worst of the minutes; null = infinite.
    pub worst_ns: Option<i64>,
    /// The lowest share of what was due in a minute that reached the final stage.
    pub success_min: f64,
    /// Audits that void a number which the minutes are judged by, in any trial; empty = they hold.
    #[serde(default)]
    pub in_doubt: Vec<String>,
    /// Of settings that differ in offered load alone: what can be promised, in words, at the highest load that can be
    /// promised (or at the lowest, where none can); empty elsewhere.
    pub words: String,
}

/// How often several requests of a user all succeed. Of the measured stream in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageResult {
    /// Requests of a page (`measure.calls`).
    pub calls: u32,
    /// The share that reached the final stage, to the power of `calls`: the odds of a page whose requests have nothing to
    /// do with each other.
    pub independent: f64,
    /// The same without the kinds that the preflight found unable to succeed; null where there are none.
    #[serde(default)]
    pub independent_without: Option<f64>,
    /// Of all runs of `calls` requests that were due one after another, the share that all reached the final stage: the
    /// odds of a page that is asked for at once. Null where there are fewer, or too many requests to keep apart.
    #[serde(default)]
    pub in_a_row: Option<f64>,
}
