//! The numbers of a trial's result, made of what its parts have counted when all rows are in: counts, rates, latencies,
//! seconds, series and resources. Audits, thresholds and the verdict look at them afterwards.

use std::collections::{BTreeMap, BTreeSet};

use model::NO_STAMP;
use model::facts::MetricSample;
use model::plan::{Arrivals, LoadPlan, Schedule, SettingPlan};
use model::result::{LatencyResult, Rates, SecondResult, StreamResult, TrialResult, Verdict};
use model::series::SeriesFacts;
use stats::{Histogram, TimedHistogram};

use super::{TrialAnalysis, stage_name};
use crate::audits::SHARE_WARN;
use crate::grid::{Grid, SECOND};
use crate::minutes::Minutes;
use crate::{processor, sending};

impl TrialAnalysis<'_> {
    /// The result before anything is judged: nothing of the ledger, of faults, audits and thresholds is in it yet.
    pub(super) fn summary(&self) -> TrialResult {
        let input = &self.input;
        let facts = input.facts;
        let measured = &self.streams[usize::from(self.stream)];
        let (send_lag, own_lag) = self.latencies.lags(input.percentiles);
        let mut latency = self.latencies.results(
            &facts.declared.stages,
            input.percentiles,
            measured.due(),
            (timeout_ns(input.setting), self.window_ns()),
        );
        self.less_own_lag(&mut latency);
        TrialResult {
            path: input.path.clone(),
            trial: facts.declared.trial,
            seed: facts.declared.seed.0,
            verdict: Verdict::Pass,
            reason: String::new(),
            window_ns: self.window_ns(),
            final_stage: stage_name(facts, self.final_stage),
            streams: self.streams_by_end(),
            stream: if self.stream == 1 { "probe" } else { "main" }.to_owned(),
            targets: facts.declared.targets.clone(),
            driver: facts.load.driver.clone(),
            counts: measured.counts(),
            background: (self.stream == 1).then(|| self.streams[0].counts()),
            rates: self.rates(),
            // As rates: only the main load is sent again.
            attempts: sending::attempts(&self.streams[0], &input.setting.load),
            batches: sending::batches(&facts.load.workers, &input.setting.load),
            connections: self.pool.result(&facts.load),
            latency,
            send_lag,
            own_lag,
            vegeta: self.vegeta.result(&facts.load.errors),
            throughput_windows: self.flow.throughput_windows(),
            seconds: self.seconds(),
            timeline: self.timeline.timeline(facts.declared.stages.len()),
            calls: self.latencies.calls(self.final_stage),
            page: self.page.result(),
            minutes: self.minutes.as_ref().map(Minutes::result),
            health: crate::connections::result(&facts.load),
            processor: processor::result(
                input.metrics,
                &facts.after.nodes,
                &self.grid,
                self.flow.committed_in_window(),
            ),
            steps: None,
            kinds: self.groups.kinds(&facts.declared.kinds),
            codes: self.groups.codes(),
            errors: self.groups.errors(&facts.load.errors),
            fates: None,
            stated: None,
            node_stages: None,
            faults: Vec::new(),
            faults_left_out: 0,
            preflight: facts.declared.preflight.clone(),
            audits: Vec::new(),
            checks: Vec::new(),
            thresholds: Vec::new(),
            series: Vec::new(),
            resources: resources(input.metrics, &self.grid),
            resources_last: BTreeMap::new(),
        }
    }

    /// What the response times to the final stage would be if the instrument had had no lag of its own: a number that is
    /// moved by it is a range.
    #[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    fn less_own_lag(&self, latency: &mut [LatencyResult]) {
        let all = self.latencies.response(self.final_stage).map(TimedHistogram::all);
        let (Some(all), Some(of)) = (all, latency.get_mut(self.final_stage)) else { return };
        let without = self.without_lag.of(all);
        let response = &mut of.response;
        response.mean_less_own_ns =
            response.mean_ns.map(|mean| mean - self.without_lag.of_mean(all.count()));
        for quantile in &mut response.quantiles {
            let (value, less) = (quantile.value_ns, without.quantile(quantile.q));
            let is_moved =
                |value: i64, less: i64| (value - less) as f64 > SHARE_WARN * value as f64;
            quantile.less_own_ns =
                value.zip(less).filter(|(value, less)| is_moved(*value, *less)).map(|it| it.1);
        }
    }

    /// Each stream by its own final stage.
    fn streams_by_end(&self) -> Vec<StreamResult> {
        let measured = self.latencies.response(self.final_stage).map(TimedHistogram::all);
        let of_load = if self.stream == 0 { measured } else { Some(&self.background) };
        let mut streams = vec![("main", self.ends.load, of_load)];
        streams.extend((self.stream != 0).then_some(("probe", self.final_stage, measured)));
        let result = |(stream, end, times): (&str, usize, Option<&Histogram>)| StreamResult {
            stream: stream.to_owned(),
            until: stage_name(self.input.facts, end),
            p50_ns: times.and_then(|times| times.quantile(0.5)),
            p99_ns: times.and_then(|times| times.quantile(0.99)),
            max_ns: times.and_then(|times| times.moments().max()),
        };
        streams.into_iter().map(result).collect()
    }

    /// The length of time that rates are over: the planned window, or, where the load was stopped before its
    /// end (Ctrl-C, a crash, `transactions_max`), up to one mean gap after its last due time.
    fn window_ns(&self) -> i64 {
        let due = i64::try_from(self.streams[0].due()).unwrap_or(i64::MAX);
        let load = &self.input.setting.load;
        let bounded = load.transactions_max > 0 && self.all.due() >= load.transactions_max;
        let facts = self.input.facts;
        let cut = bounded || !facts.complete || !facts.interrupted().is_empty();
        if !cut || due < 2 {
            return self.grid.length();
        }
        let gap = (self.flow.last_due - self.flow.first_due) / (due - 1);
        (self.flow.last_due + gap - self.grid.start).clamp(1, self.grid.length())
    }

    /// Rates are the main load's, also beside a probe, whose own rate says nothing about the system.
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    fn rates(&self) -> Rates {
        let seconds = self.window_ns() as f64 / 1e9;
        let per_s = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        // Each stage by its own time: `accepted` comes at once where `committed` takes a block.
        let typical_ns = |stage: usize| {
            // A probe's time to the load's final stage may be another, and need not be known.
            if self.stream != 0 && stage == self.ends.load {
                return self.background.quantile(0.05).unwrap_or(0);
            }
            let times = self.latencies.response(stage);
            times.and_then(|times| times.all().quantile(0.05)).unwrap_or(0)
        };
        let reached =
            |stage: usize| per_s(self.flow.in_time(stage, typical_ns(stage), self.window_ns()));
        let names = self.input.facts.declared.stages.iter().take(model::STAGES_MAX).enumerate();
        Rates {
            planned_per_s: planned_rate(&self.input.setting.load),
            offered_per_s: per_s(self.streams[0].due()),
            sent_per_s: per_s(self.flow.sent_in_window),
            reached_per_s: names.map(|(stage, name)| (name.clone(), reached(stage))).collect(),
            goodput_per_s: reached(self.ends.load),
        }
    }

    fn seconds(&self) -> Vec<SecondResult> {
        let response = self.latencies.response(self.final_stage);
        let outstanding = self.flow.outstanding_by_slot();
        let per = self.grid.per_second;
        let slots = &self.flow.slots[..self.grid.slots];
        let first = self.grid.start.div_euclid(SECOND);
        let step = self.grid.width * i64::try_from(per).expect("at most 100") / SECOND;
        slots
            .chunks(per)
            .enumerate()
            .map(|(index, chunk)| {
                let range = index * per..index * per + chunk.len();
                let mut latency = stats::SparseHistogram::default();
                for slot in response.iter().flat_map(|times| &times.slots()[range.clone()]) {
                    latency.merge(slot);
                }
                let sum = |f: fn(&crate::flow::SlotFlow) -> u32| {
                    chunk.iter().map(|s| u64::from(f(s))).sum()
                };
                SecondResult {
                    second: first
                        + i64::try_from(index).expect("bounded by the grid") * step.max(1),
                    offered: sum(|slot| slot.due),
                    committed: sum(|slot| slot.committed),
                    failed: sum(|slot| slot.failed),
                    p50_ns: latency.quantile(0.5),
                    p99_ns: latency.quantile(0.99),
                    max_ns: latency.moments().max(),
                    outstanding: outstanding[range.end - 1],
                }
            })
            .collect()
    }
}

/// How long an answer is waited for: the probe's patience if the probe is measured.
fn timeout_ns(setting: &SettingPlan) -> i64 {
    let timeout = setting.probe.as_ref().map_or(setting.load.timeout, |probe| probe.timeout);
    i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX)
}

/// The mean rate that an open schedule asks for over the measured window; `None` where there is none.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
pub(crate) fn planned_rate(load: &LoadPlan) -> Option<f64> {
    let Arrivals::Open { schedule } = &load.arrivals else { return None };
    let window = load.duration.as_secs_f64();
    let rate = match schedule {
        Schedule::Constant { rate } | Schedule::Poisson { rate } | Schedule::Burst { rate, .. } => {
            rate.as_per_second()
        }
        Schedule::Ramp { from, to } => (from.as_per_second() + to.as_per_second()) / 2.0,
        Schedule::Steps { steps } => {
            let mut left = window;
            let mut events = 0.0;
            for step in steps {
                let length = step.length.as_secs_f64().min(left);
                events += step.rate.as_per_second() * length;
                left -= length;
            }
            events / window
        }
        Schedule::Trace { due_ns } => {
            let (from, to) = (load.warmup.as_nanos(), (load.warmup + load.duration).as_nanos());
            let inside = due_ns.iter().filter(|due| (from..to).contains(&u128::from(**due)));
            inside.count() as f64 / window
        }
    };
    rate.is_finite().then_some(rate)
}

/// What each recorded series is: as declared, then those that were made of them, then those that nobody has declared.
pub(super) fn series_of(
    metrics: &[MetricSample],
    declared: &[SeriesFacts],
    made: Vec<SeriesFacts>,
) -> Vec<SeriesFacts> {
    let mut left: BTreeSet<&str> = metrics.iter().map(|it| it.name.as_str()).collect();
    let mut all: Vec<SeriesFacts> =
        declared.iter().filter(|it| left.remove(it.name.as_str())).cloned().collect();
    all.extend(made);
    all.extend(left.into_iter().map(SeriesFacts::undeclared));
    all
}

/// Lowest, mean and highest of every series over the measured window (over all of it where none fell inside).
#[expect(clippy::cast_precision_loss, reason = "a mean of a few thousand samples")]
pub(super) fn resources(
    metrics: &[MetricSample],
    grid: &Grid,
) -> BTreeMap<String, (f64, f64, f64)> {
    let mut by_name: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    for sample in metrics.iter().filter(|sample| sample.value.is_finite() && sample.at != NO_STAMP)
    {
        let lists = by_name.entry(format!("{}.{}", sample.source, sample.name)).or_default();
        lists[usize::from(!grid.holds(sample.at))].push(sample.value);
    }
    by_name
        .into_iter()
        .map(|(name, [inside, outside])| {
            let values = if inside.is_empty() { outside } else { inside };
            let min = values.iter().copied().fold(f64::INFINITY, f64::min);
            let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (name, (min, values.iter().sum::<f64>() / values.len() as f64, max))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::Trial;

    /// Claim: the sent rate is of the sends within the window; what was sent in the drain is not in it, and was offered all
    /// the same.
    #[test]
    fn sends_of_the_drain_are_no_rate() {
        let mut trial = Trial::clean();
        trial.facts.load.drain_end = 14_000_000_000;
        for row in trial.rows.iter_mut().skip(9_000) {
            (row.ready, row.sent) = (row.due + 1_000_000_000, row.due + 1_000_000_000);
            (row.marks[0], row.end) = (row.sent + 2_000_000, row.sent + 2_000_000);
        }
        let result = trial.result();
        assert_eq!(result.rates.sent_per_s, 900.0);
        let offered = crate::testing::audit(&result, "offered_rate");
        assert!(offered.detail.contains("sent 1000.0/s"), "{}", offered.detail);
    }

    /// Claim: the rate of an early stage does not depend on how long the last one takes.
    #[test]
    fn each_stage_by_its_own_time() {
        let mut trial = Trial::clean();
        trial.facts.declared.stages = vec!["accepted".into(), "committed".into()];
        trial.facts.declared.final_stage = 1;
        trial.facts.load.drain_end = 14_000_000_000;
        for row in &mut trial.rows {
            row.marks[0] = row.due + 2_000_000;
            row.marks[1] = row.due + 3_000_000_000;
            row.end = row.marks[1];
        }
        let reached = trial.result().rates.reached_per_s;
        let rates: Vec<_> = reached.iter().map(|(name, rate)| (name.as_str(), *rate)).collect();
        assert_eq!(rates, [("accepted", 1_000.0), ("committed", 1_000.0)]);
    }
}
