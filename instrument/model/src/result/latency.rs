//! Distributions of times, with their intervals, by stage.

use serde::{Deserialize, Serialize};

/// A quantile with its interval and the number of samples that it rests on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Quantile {
    /// Fraction of one.
    pub q: f64,
    /// Name: `p99`.
    pub name: String,
    /// Value over those that reached the stage, nanoseconds.
    pub value_ns: Option<i64>,
    /// Lower end of the 95 % interval; null where the samples cannot give it.
    pub low_ns: Option<i64>,
    /// Upper end; null where the window holds too few excursions beyond the quantile, which is then at least `low_ns`.
    pub high_ns: Option<i64>,
    /// Over all that were due: what was refused with its own time, what was never answered or never sent as infinite;
    /// null = infinite. Infinite, too, where nothing reached the stage.
    pub unconditional_ns: Option<i64>,
    /// The value if the instrument had had no lag of its own in any of them, where that is more than a tenth less; null =
    /// it is as good as the same, or is not known. The truth lies between the two.
    #[serde(default)]
    pub less_own_ns: Option<i64>,
    /// Samples beyond it; fewer than ten and the value is greyed.
    pub beyond: u64,
    /// 95 % interval of the quantile over all that were due; an end that the samples cannot give is null, and so is an
    /// infinite one.
    #[serde(default)]
    pub due_low_ns: Option<i64>,
    /// Whether even the lower end is infinite: the quantile over all that were due certainly is.
    #[serde(default)]
    pub due_low_infinite: bool,
    /// Upper end.
    #[serde(default)]
    pub due_high_ns: Option<i64>,
    /// Of all that were due, how many lie beyond the quantile over all that were due, the infinite ones among them.
    #[serde(default)]
    pub due_beyond: u64,
}

/// A distribution of nanoseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min_ns: Option<i64>,
    /// Largest.
    pub max_ns: Option<i64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// The mean if the instrument had had no lag of its own; null = not known.
    #[serde(default)]
    pub mean_less_own_ns: Option<f64>,
    /// 95 % interval of the mean.
    pub mean_low_ns: Option<f64>,
    /// Upper end.
    pub mean_high_ns: Option<f64>,
    /// Sample variance (n − 1), in ns².
    pub variance_ns2: Option<f64>,
    /// The plan's percentiles.
    pub quantiles: Vec<Quantile>,
    /// Negative values, counted and never clamped.
    pub negative: u64,
    /// The whole distribution as HdrHistogram prints it: more points towards the tail, from the smallest to the
    /// largest value.
    pub curve: Vec<CurvePoint>,
}

/// A point of a percentile curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Fraction of one.
    pub q: f64,
    /// The value that this fraction of the samples does not exceed.
    pub value_ns: i64,
}

/// A user who makes this many calls sees at least one that takes longer than this, with this chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallsResult {
    /// Calls, independent of each other.
    pub calls: u32,
    /// Chance, of one.
    pub chance: f64,
    /// The response time that the slowest of the calls exceeds with that chance; null = infinite (no answer).
    pub exceeds_ns: Option<i64>,
}

/// Latency of one stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LatencyResult {
    /// The stage.
    pub stage: String,
    /// `mark − due`, of those that reached it.
    pub response: Distribution,
    /// `mark − sent`, of those that reached it.
    pub service: Distribution,
    /// Response time of the answered: those that reached the stage, and those that were refused before, by the time to
    /// that answer; null where none was refused, because it is `response` then.
    #[serde(default)]
    pub answered: Option<Distribution>,
    /// Of what did not happen in the window, up to one in so many nanoseconds is not excluded, a third of the window (the
    /// rule of three: Hanley and Lippman-Hand 1983); null where nothing was measured.
    #[serde(default)]
    pub not_excluded_ns: Option<i64>,
    /// Service time of the answered; null where none was refused.
    #[serde(default)]
    pub answered_service: Option<Distribution>,
    /// Refused before they reached the stage, with an answer.
    #[serde(default)]
    pub refused: u64,
    /// Never answered or never sent.
    #[serde(default)]
    pub missing: u64,
    /// Mean response time of all due; null = infinite: some are missing, or nothing reached the stage.
    #[serde(default)]
    pub due_mean_ns: Option<f64>,
    /// Largest response time of all due; null = infinite.
    #[serde(default)]
    pub due_max_ns: Option<i64>,
    /// Restricted mean: of min(response, timeout) over all due, where those that are missing count with the timeout,
    /// nanoseconds. Finite whatever was lost, and smaller than any mean of all due can be.
    pub restricted_mean_ns: Option<f64>,
    /// Those that never reached the stage (`inf`).
    pub inf: u64,
}
