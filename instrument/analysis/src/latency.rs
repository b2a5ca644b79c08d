//! Latency by stage and the instrument's own lags: histograms on the path of a row, distributions afterwards.

use model::result::{CallsResult, CurvePoint, Distribution, LatencyResult, Quantile};
use model::{Row, STAGES_MAX};
use stats::censoring::{Unconditional, restricted_mean, unconditional_quantile};
use stats::{Histogram, TimedHistogram};

/// Fewer samples than this beyond a percentile and it is greyed.
pub(crate) const BEYOND_MIN: u64 = 10;

/// Response and service time to one stage.
#[derive(Debug, Default)]
struct StageTimes {
    response: TimedHistogram,
    service: TimedHistogram,
}

/// Latencies of the measured stream in the measured window.
#[derive(Debug)]
pub(crate) struct Latencies {
    stages: Vec<StageTimes>,
    send_lag: Histogram,
    own_lag: Histogram,
}

impl Latencies {
    /// For `stages` stages and `slots` slots of time.
    pub fn new(stages: usize, slots: usize) -> Self {
        let stage = || StageTimes {
            response: TimedHistogram::new(slots),
            service: TimedHistogram::new(slots),
        };
        Self {
            stages: (0..stages.min(STAGES_MAX)).map(|_| stage()).collect(),
            send_lag: Histogram::default(),
            own_lag: Histogram::default(),
        }
    }

    #[inline]
    pub fn row(&mut self, row: &Row, slot: usize) {
        for (index, stage) in self.stages.iter_mut().enumerate() {
            if let Some(response) = row.response_ns(index) {
                stage.response.record(slot, response);
            }
            if let Some(service) = row.service_ns(index) {
                stage.service.record(slot, service);
            }
        }
    }

    /// The lags of any stream: the instrument is one.
    #[inline]
    pub fn lag(&mut self, row: &Row) {
        if let (Some(send), Some(own)) = (row.send_lag_ns(), row.own_lag_ns()) {
            self.send_lag.record(send);
            self.own_lag.record(own);
        }
    }

    /// Response times to a stage.
    pub fn response(&self, stage: usize) -> Option<&TimedHistogram> {
        self.stages.get(stage).map(|times| &times.response)
    }

    /// `sent − ready` of all that were sent.
    pub fn own_lag(&self) -> &Histogram {
        &self.own_lag
    }

    pub fn lags(&self, percentiles: &[f64]) -> (Distribution, Distribution) {
        let plain = |lag: &Histogram| {
            let none = vec![(None, None); percentiles.len()];
            distribution(lag, None, percentiles, &none, lag.count())
        };
        (plain(&self.send_lag), plain(&self.own_lag))
    }

    /// One entry a stage; `due` transactions were due, and `timeout_ns` is how long an answer was waited for.
    pub fn results(
        &self,
        names: &[String],
        percentiles: &[f64],
        due: u64,
        timeout_ns: i64,
    ) -> Vec<LatencyResult> {
        self.stages
            .iter()
            .zip(names)
            .map(|(times, name)| LatencyResult {
                stage: name.clone(),
                response: timed(&times.response, percentiles, due),
                service: timed(&times.service, percentiles, due),
                restricted_mean_ns: restricted_mean(times.response.all(), due, timeout_ns),
                inf: due.saturating_sub(times.response.all().count()),
            })
            .collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a latency, far below 2^53")]
fn at_least(low: f64, min: Option<i64>) -> f64 {
    min.map_or(low, |min| low.max(min as f64))
}

fn timed(times: &TimedHistogram, percentiles: &[f64], due: u64) -> Distribution {
    let intervals = times.quantile_intervals(percentiles);
    distribution(times.all(), times.mean_interval(), percentiles, &intervals, due)
}

pub(crate) fn distribution(
    all: &Histogram,
    mean_interval: Option<(f64, f64)>,
    percentiles: &[f64],
    intervals: &[(Option<i64>, Option<i64>)],
    due: u64,
) -> Distribution {
    let moments = all.moments();
    Distribution {
        count: all.count(),
        min_ns: moments.min(),
        max_ns: moments.max(),
        mean_ns: moments.mean(),
        // No mean lies below the smallest value, whatever a symmetric interval says of a skewed one.
        mean_low_ns: mean_interval.map(|(low, _)| at_least(low, moments.min())),
        // An upper end that overflowed says nothing, so it is not one.
        mean_high_ns: mean_interval.map(|(_, high)| high).filter(|high| high.is_finite()),
        variance_ns2: moments.variance(),
        quantiles: percentiles
            .iter()
            .zip(intervals)
            .map(|(q, (low, high))| Quantile {
                q: *q,
                name: percentile_name(*q),
                value_ns: all.quantile(*q),
                low_ns: *low,
                high_ns: *high,
                unconditional_ns: match unconditional_quantile(all, due, *q) {
                    Some(Unconditional::Finite(value)) => Some(value),
                    Some(Unconditional::Infinite) | None => None,
                },
                beyond: all.beyond(*q),
            })
            .collect(),
        negative: all.negative(),
        curve: all
            .curve(CURVE_TICKS)
            .into_iter()
            .map(|(q, value_ns)| CurvePoint { q, value_ns })
            .collect(),
    }
}

/// What the slowest of several calls exceeds, for a few numbers of calls and chances.
pub(crate) fn calls(response: &Histogram, due: u64) -> Vec<CallsResult> {
    if due == 0 {
        return Vec::new();
    }
    let each = |calls: u32, chance: f64| {
        // All calls are at most x with chance F(x)^calls, so the one asked for is F(x) = (1 − chance)^(1/calls).
        let q = (1.0 - chance).powf(1.0 / f64::from(calls));
        let exceeds_ns = match unconditional_quantile(response, due, q) {
            Some(Unconditional::Finite(value)) => Some(value),
            Some(Unconditional::Infinite) | None => None,
        };
        CallsResult { calls, chance, exceeds_ns }
    };
    CALLS.iter().flat_map(|calls| CHANCES.iter().map(|chance| each(*calls, *chance))).collect()
}

/// Points of a curve for each halving of what lies beyond, as HdrHistogram's own tools print them.
const CURVE_TICKS: u32 = 5;
/// Calls of a user: one, those of a page, those of a session.
const CALLS: [u32; 3] = [1, 10, 100];
const CHANCES: [f64; 3] = [0.5, 0.1, 0.01];

/// `p99`, `p99.9`: the shortest text that names the percentile.
pub(crate) fn percentile_name(q: f64) -> String {
    // Through an integer, because 0.999 · 100 is 99.90000000000001.
    let percent = (q * 1e10).round() / 1e8;
    format!("p{percent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: names are what people write.
    #[test]
    fn names() {
        for (q, name) in
            [(0.5, "p50"), (0.999, "p99.9"), (0.9999, "p99.99"), (0.25, "p25"), (1.0, "p100")]
        {
            assert_eq!(percentile_name(q), name);
        }
    }
}
