//! Latency by stage and the instrument's own lags: histograms on the path of a row, distributions afterwards.
//!
//! A stage has three latencies, which differ in whom they are of: *of the committed*, who reached it; *of the answered*,
//! with those beside them who were refused, each by the time to its answer; *of all due*, where those who were never
//! answered or never sent are infinite. Where all reached the stage they are one.

use model::result::{
    CallsResult, CurvePoint, Distribution, LatencyResult, Quantile, SectionResult, SectionsResult,
    TrialResult,
};
use model::{Class, NO_STAMP, Outcome, Row, STAGES_MAX};
use stats::carry::Carry;
use stats::censoring::{Unconditional, restricted_mean, unconditional_quantile};
use stats::sections::Section;
use stats::{Histogram, QuantileInterval, TimedHistogram};

use crate::figures::block::Values;
use crate::figures::known::Known;
use crate::figures::part::Part;

/// Fewer samples than this beyond a percentile and it is greyed.
pub(crate) const BEYOND_MIN: u64 = 10;

/// Times to one stage: of those that reached it, and of those that were refused before they did.
#[derive(Clone, Debug, Default)]
struct Times {
    reached: TimedHistogram,
    /// Made when the first is refused: where none is, nothing is paid for it.
    refused: Option<Box<TimedHistogram>>,
}

impl Times {
    fn new(slots: usize) -> Self {
        Self { reached: TimedHistogram::new(slots), refused: None }
    }

    #[cold]
    fn refuse(&mut self, slot: usize, time: i64) {
        let slots = self.reached.slots().len();
        self.refused.get_or_insert_with(|| Box::new(TimedHistogram::new(slots))).record(slot, time);
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.reached.carry(it);
        if it.told(u8::from(self.refused.is_some())) != 0 {
            let slots = self.reached.slots().len();
            self.refused.get_or_insert_with(|| Box::new(TimedHistogram::new(slots))).carry(it);
        }
    }

    /// Of those that reached the stage and those that were refused; `None` where none was.
    fn of_answered(&self) -> Option<TimedHistogram> {
        let mut all = self.reached.clone();
        all.merge(self.refused.as_deref()?);
        Some(all)
    }

    /// How many were refused before they reached the stage.
    fn refused(&self) -> u64 {
        self.refused.as_deref().map_or(0, |times| times.all().count())
    }

    /// Of all that were due: `due` by slot. `None` where that is what reached the stage.
    fn of_all_due(&self, due: &[u64]) -> Option<TimedHistogram> {
        let answered = |slot: usize| {
            let count = |times: &TimedHistogram| {
                times.slots().get(slot).map_or(0, |slot| slot.moments().count())
            };
            count(&self.reached) + self.refused.as_deref().map_or(0, count)
        };
        let missing = |(slot, due): (usize, &u64)| (slot, due.saturating_sub(answered(slot)));
        let mut missing =
            due.iter().enumerate().map(missing).filter(|(_, count)| *count > 0).peekable();
        if self.refused.is_none() && missing.peek().is_none() {
            return None;
        }
        let mut all = self.of_answered().unwrap_or_else(|| self.reached.clone());
        missing.for_each(|(slot, count)| all.add_missing(slot, count));
        Some(all)
    }

    fn distribution(&self, percentiles: &[f64], due: &[u64]) -> Distribution {
        let reached = &self.reached;
        let intervals = reached.quantile_intervals(percentiles);
        let of_reached =
            distribution(reached.all(), reached.mean_interval(), percentiles, &intervals);
        match self.of_all_due(due) {
            None => of_reached,
            Some(all) => over_all_due(of_reached, &all),
        }
    }
}

/// Response and service time to one stage.
#[derive(Clone, Debug, Default)]
struct StageTimes {
    response: Times,
    service: Times,
}

impl StageTimes {
    /// A row that did not reach the stage: a refusal counts as an answer.
    #[inline]
    fn never_reached(&mut self, slot: usize, row: &Row) {
        if row.outcome == Outcome::Committed || !is_answer(row.outcome) {
            return;
        }
        self.response.refuse(slot, row.end - row.due);
        if row.sent != NO_STAMP {
            self.service.refuse(slot, row.end - row.sent);
        }
    }
}

/// Whether the outcome is an answer of the system, good or bad.
pub(crate) const fn is_answer(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Committed => true,
        Outcome::Rejected(class) => !matches!(class, Class::Transport | Class::Client),
        Outcome::Unknown | Outcome::Shed => false,
    }
}

/// Latencies of the measured stream in the measured window.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    stages: Vec<StageTimes>,
    /// Transactions of the measured stream that were due, by slot.
    due: Vec<u64>,
    lags: Lags,
    /// Response and service times of one block.
    values: [Values; 2],
}

/// The lags of what was sent. Where a transaction waited for no connection its two are the same, and kept once.
#[derive(Clone, Debug, Default)]
struct Lags {
    same: Histogram,
    /// Of those that waited.
    send: Histogram,
    own: Histogram,
    /// Of one block, of each.
    values: [Values; 3],
}

impl Lags {
    fn rows(&mut self, rows: &[&Row]) {
        let [same, send, own] = self.values.each_mut().map(Values::clear);
        for row in rows {
            let (is_sent, has_waited) = (row.sent != NO_STAMP, row.ready != row.due);
            // A transaction that was never sent may have no ready time either.
            let (all_of, own_of) =
                if is_sent { (row.sent - row.due, row.sent - row.ready) } else { (0, 0) };
            same.push_if(is_sent && !has_waited, all_of);
            send.push_if(is_sent && has_waited, all_of);
            own.push_if(is_sent && has_waited, own_of);
        }
        self.same.record_all(same.all());
        self.send.record_all(send.all());
        self.own.record_all(own.all());
    }

    fn with_same(&self, others: &Histogram) -> Histogram {
        let mut all = self.same.clone();
        all.merge(others);
        all
    }
}

impl Part for Latencies {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self::new(trial.facts.declared.stages.len().max(1), trial.grid.slots)
    }

    /// The instrument is one: its lags are of every stream.
    fn window(&mut self, rows: &[&Row]) {
        self.lags.rows(rows);
    }

    fn measured(&mut self, slot: usize, rows: &[&Row]) {
        self.rows(slot, rows);
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        for stage in &mut self.stages {
            stage.response.carry(it);
            stage.service.carry(it);
        }
        it.sums(&mut self.due);
        let Lags { same, send, own, values: _ } = &mut self.lags;
        [same, send, own].into_iter().for_each(|lags| lags.carry(it));
    }

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        (result.send_lag, result.own_lag) = self.lags(trial.percentiles);
        result.calls = self.calls(trial.final_stage);
    }
}

impl Latencies {
    /// For `stages` stages and `slots` slots of time.
    pub fn new(stages: usize, slots: usize) -> Self {
        let stage = || StageTimes { response: Times::new(slots), service: Times::new(slots) };
        Self {
            stages: (0..stages.min(STAGES_MAX)).map(|_| stage()).collect(),
            due: vec![0; slots],
            lags: Lags::default(),
            values: Default::default(),
        }
    }

    /// Adds rows of one block, of the measured stream, that were due in `slot`.
    pub fn rows(&mut self, slot: usize, rows: &[&Row]) {
        if let Some(due) = self.due.get_mut(slot) {
            *due += rows.len() as u64;
        }
        for (index, stage) in self.stages.iter_mut().enumerate() {
            let [responses, services] = self.values.each_mut().map(Values::clear);
            for row in rows {
                let (response, service) = (row.response_ns(index), row.service_ns(index));
                responses.push_if(response.is_some(), response.unwrap_or(0));
                services.push_if(service.is_some(), service.unwrap_or(0));
                if response.is_none() {
                    stage.never_reached(slot, row);
                }
            }
            stage.response.reached.record_all(slot, responses.all());
            stage.service.reached.record_all(slot, services.all());
        }
    }

    /// Response times to a stage, of those that reached it.
    pub fn response(&self, stage: usize) -> Option<&TimedHistogram> {
        self.stages.get(stage).map(|times| &times.response.reached)
    }

    /// Service times to a stage, of those that reached it.
    pub fn service(&self, stage: usize) -> Option<&TimedHistogram> {
        self.stages.get(stage).map(|times| &times.service.reached)
    }

    /// `sent − ready` of all that were sent.
    pub fn own_lag(&self) -> Histogram {
        self.lags.with_same(&self.lags.own)
    }

    pub fn lags(&self, percentiles: &[f64]) -> (Distribution, Distribution) {
        let plain = |lag: &Histogram| {
            let none = vec![QuantileInterval::default(); percentiles.len()];
            distribution(lag, None, percentiles, &none)
        };
        (plain(&self.lags.with_same(&self.lags.send)), plain(&self.own_lag()))
    }

    /// One entry a stage; `due` transactions were due, `timeout_ns` is how long an answer was waited for, and `window_ns`
    /// how long was measured.
    pub fn results(
        &self,
        names: &[String],
        percentiles: &[f64],
        due: u64,
        (timeout_ns, window_ns): (i64, i64),
    ) -> Vec<LatencyResult> {
        self.stages
            .iter()
            .zip(names)
            .map(|(times, name)| self.result_of(name, times, percentiles, (due, timeout_ns)))
            .map(|of| LatencyResult {
                not_excluded_ns: not_excluded(&of.response, window_ns),
                ..of
            })
            .collect()
    }

    fn result_of(
        &self,
        stage: &str,
        times: &StageTimes,
        percentiles: &[f64],
        (due, timeout_ns): (u64, i64),
    ) -> LatencyResult {
        let of_answered = times.response.of_answered();
        let all = of_answered.as_ref().unwrap_or(&times.response.reached);
        let (reached, refused) = (times.response.reached.all().count(), times.response.refused());
        let missing = due.saturating_sub(reached + refused);
        let is_finite = missing == 0 && reached > 0;
        let answered = |times: &TimedHistogram| {
            let intervals = times.quantile_intervals(percentiles);
            distribution(times.all(), times.mean_interval(), percentiles, &intervals)
        };
        LatencyResult {
            stage: stage.to_owned(),
            not_excluded_ns: None,
            response: times.response.distribution(percentiles, &self.due),
            service: times.service.distribution(percentiles, &self.due),
            refused,
            missing,
            due_mean_ns: all.all().moments().mean().filter(|_| is_finite),
            due_max_ns: all.all().moments().max().filter(|_| is_finite),
            restricted_mean_ns: restricted_mean(all.all(), due, timeout_ns),
            inf: due.saturating_sub(reached),
            answered_service: times.service.of_answered().as_ref().map(answered),
            answered: of_answered.as_ref().map(answered),
        }
    }

    /// The window in sections, by the percentiles of all due of a stage; its flow is not known here.
    pub fn sections(&self, stage: usize, percentiles: &[f64]) -> SectionsResult {
        let Some(times) = self.stages.get(stage).map(|stage| &stage.response) else {
            return SectionsResult::default();
        };
        let (reached, of_due) = (times.reached.parts(&[]), times.of_all_due(&self.due));
        let all = of_due.as_ref().unwrap_or(&times.reached);
        let value = |q: &f64| match unconditional_quantile(all.all(), all.count_with_missing(), *q)
        {
            Some(Unconditional::Finite(value)) => value,
            _ => i64::MAX,
        };
        let values: Vec<i64> = percentiles.iter().map(value).collect();
        let sections = all.parts(&values);
        let slope = |(place, q): (usize, &f64)| all.slope(&sections, place, *q);
        let section = |(all, reached): (Section, Section)| SectionResult {
            due: all.count,
            reached: reached.count,
            sum_ns: i64::try_from(reached.sum).unwrap_or(i64::MAX),
            within: all.within,
            ..SectionResult::default()
        };
        SectionsResult {
            slopes: percentiles.iter().enumerate().map(slope).collect(),
            all: sections.clone().into_iter().zip(reached).map(section).collect(),
        }
    }

    /// The latency of a stage to users who make several calls.
    pub fn calls(&self, stage: usize) -> Vec<CallsResult> {
        let Some(times) = self.stages.get(stage).map(|stage| &stage.response) else {
            return Vec::new();
        };
        if times.reached.all().count() == 0 {
            return calls(times.reached.all(), self.due.iter().sum());
        }
        match times.of_all_due(&self.due) {
            None => calls(times.reached.all(), times.reached.all().count()),
            Some(all) => calls(all.all(), all.count_with_missing()),
        }
    }
}

/// The rule of three: what comes once in a third of the window is missed in one window of twenty (e⁻³ ≈ 5 %).
fn not_excluded(of: &Distribution, window_ns: i64) -> Option<i64> {
    (of.count > 0).then_some(window_ns / 3)
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a latency, far below 2^53")]
fn at_least(low: f64, min: Option<i64>) -> f64 {
    min.map_or(low, |min| low.max(min as f64))
}

/// A distribution of which no transaction is missing.
pub(crate) fn distribution(
    all: &Histogram,
    mean_interval: Option<(f64, f64)>,
    percentiles: &[f64],
    intervals: &[QuantileInterval],
) -> Distribution {
    let moments = all.moments();
    Distribution {
        count: all.count(),
        min_ns: moments.min(),
        max_ns: moments.max(),
        mean_ns: moments.mean(),
        mean_less_own_ns: None,
        // No mean lies below the smallest value, whatever a symmetric interval says of a skewed one.
        mean_low_ns: mean_interval.map(|(low, _)| at_least(low, moments.min())),
        // An upper end that overflowed says nothing, so it is not one.
        mean_high_ns: mean_interval.map(|(_, high)| high).filter(|high| high.is_finite()),
        variance_ns2: moments.variance(),
        quantiles: percentiles
            .iter()
            .zip(intervals)
            .map(|(q, ends)| Quantile {
                q: *q,
                name: percentile_name(*q),
                value_ns: all.quantile(*q),
                less_own_ns: None,
                low_ns: ends.low,
                high_ns: ends.high,
                unconditional_ns: all.quantile(*q),
                beyond: all.beyond(*q),
                due_low_ns: ends.low,
                due_low_infinite: false,
                due_high_ns: ends.high,
                due_beyond: all.beyond(*q),
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

/// The same with the quantiles over all that were due. Where nothing reached the stage they are infinite: a system that
/// refuses everything at once is not fast.
fn over_all_due(mut of_reached: Distribution, all: &TimedHistogram) -> Distribution {
    let due = all.count_with_missing();
    let nothing = of_reached.count == 0;
    let wanted: Vec<f64> = of_reached.quantiles.iter().map(|quantile| quantile.q).collect();
    let intervals = all.quantile_intervals(&wanted);
    for (quantile, ends) in of_reached.quantiles.iter_mut().zip(intervals) {
        let value = match unconditional_quantile(all.all(), due, quantile.q) {
            Some(Unconditional::Finite(value)) if !nothing => Some(value),
            _ => None,
        };
        quantile.unconditional_ns = value;
        quantile.due_beyond = all.beyond_with_missing(quantile.q);
        let ends = if nothing { QuantileInterval::INFINITE } else { ends };
        quantile.due_low_ns = ends.low;
        quantile.due_low_infinite = ends.low_is_infinite;
        quantile.due_high_ns = ends.high;
    }
    of_reached
}

/// The time that the slowest of several calls exceeds, for a few numbers of calls and chances.
fn calls(response: &Histogram, due: u64) -> Vec<CallsResult> {
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
    use crate::testing::{Trial, row};

    const MS: i64 = 1_000_000;

    /// Claim: of all due, a refusal that was answered counts with its own time, what was never answered as infinite, and
    /// the interval and the samples beyond are of all due, too.
    #[test]
    fn of_all_due() {
        let p99 = |broken: usize, outcome: Outcome, time: i64| {
            let mut trial = Trial::clean();
            for old in trial.rows.iter_mut().step_by(10_000 / broken) {
                *old = row(old.tx, old.due, time, outcome);
            }
            trial.result().latency[0].response.quantiles[1].clone()
        };
        let refused = |time| p99(500, Outcome::Rejected(Class::BadRequest), time);
        let quick = refused(MS);
        assert!(quick.unconditional_ns.unwrap() < 4 * MS, "{quick:?}");
        assert_eq!(quick.due_beyond, 100, "of 10,000 due");
        assert!(quick.due_low_ns <= quick.unconditional_ns && quick.due_high_ns.is_some());
        let slow = refused(40 * MS);
        assert!(slow.value_ns.unwrap() < 4 * MS && slow.unconditional_ns.unwrap() >= 40 * MS);
        assert!(slow.due_low_ns.unwrap() >= 39 * MS, "{slow:?}");
        for outcome in [Outcome::Unknown, Outcome::Shed, Outcome::Rejected(Class::Transport)] {
            let gone = p99(1_000, outcome, MS);
            assert_eq!((gone.unconditional_ns, gone.due_low_ns), (None, None), "{gone:?}");
            assert!(gone.due_low_infinite && gone.value_ns.is_some() && gone.due_beyond == 100);
        }
    }

    /// Claim: a system that refuses everything, however quickly, has no finite latency of all due.
    #[test]
    fn nothing_committed() {
        let mut trial = Trial::clean();
        for old in &mut trial.rows {
            *old = row(old.tx, old.due, MS, Outcome::Rejected(Class::BadRequest));
        }
        let result = trial.result();
        for quantile in &result.latency[0].response.quantiles {
            assert_eq!((quantile.value_ns, quantile.unconditional_ns), (None, None));
            assert!(quantile.due_low_infinite, "{quantile:?}");
        }
        assert!(result.calls.iter().all(|call| call.exceeds_ns.is_none()));
    }

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
