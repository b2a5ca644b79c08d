//! The numbers of a trial's result, made of what its parts have counted when all rows are in: counts, rates, latencies,
//! seconds, series and resources. Audits, thresholds and the verdict look at them afterwards.

use model::plan::SettingPlan;
use model::result::{
    LatencyResult, Rates, SecondResult, SectionsResult, StreamResult, TrialResult,
};
use stats::{Histogram, TimedHistogram};

use super::TrialAnalysis;
use crate::figures::flow::SlotFlow;
use crate::figures::grid::SECOND;
use crate::figures::known::ns;
use crate::figures::planned::planned_rate;
use crate::figures::without_lag::SHARE_WARN;
use crate::figures::{connections, processor, sending};

impl TrialAnalysis<'_> {
    /// The numbers that are made of several parts, or of none; each part adds its own later.
    pub(super) fn summary(&self) -> TrialResult {
        let (trial, figures) = (&self.trial, &self.figures);
        let (setting, facts) = (trial.setting, trial.facts);
        let measured = figures.streams.of_result();
        let mut latency = figures.latencies.results(
            &facts.declared.stages,
            trial.percentiles,
            measured.due(),
            (timeout_ns(setting), self.window_ns()),
        );
        self.less_own_lag(&mut latency);
        let load = &figures.streams.tallies[0];
        TrialResult {
            path: self.path.clone(),
            trial: facts.declared.trial,
            seed: facts.declared.seed.0,
            window_ns: self.window_ns(),
            final_stage: trial.stage_name(trial.final_stage),
            streams: self.streams_by_end(),
            stream: if trial.stream == 1 { "probe" } else { "main" }.to_owned(),
            targets: facts.declared.targets.clone(),
            rest: facts.declared.rest,
            durability: facts.declared.durability.clone(),
            driver: facts.load.driver.clone(),
            counts: measured.counts(),
            background: (trial.stream == 1).then(|| load.counts()),
            rates: self.rates(),
            // As rates: only the main load is sent again.
            attempts: sending::attempts(load, &setting.load),
            batches: sending::batches(&facts.load.workers, &setting.load),
            latency,
            seconds: self.seconds(),
            sections: self.sections(),
            health: connections::result(&facts.load),
            processor: processor::result(
                trial.metrics,
                &facts.after.nodes,
                &trial.grid,
                figures.flow.committed_in_window(),
            ),
            preflight: facts.declared.preflight.clone(),
            ..TrialResult::default()
        }
    }

    /// The response times to the final stage as they would be if the instrument had had no lag of its own: a number that is
    /// moved by it is a range.
    #[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    fn less_own_lag(&self, latency: &mut [LatencyResult]) {
        let all = self.figures.latencies.response(self.trial.final_stage).map(TimedHistogram::all);
        let (Some(all), Some(of)) = (all, latency.get_mut(self.trial.final_stage)) else { return };
        let without = self.figures.without_lag.of(all);
        let response = &mut of.response;
        response.mean_less_own_ns =
            response.mean_ns.map(|mean| mean - self.figures.without_lag.of_mean(all.count()));
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
        let measured =
            self.figures.latencies.response(self.trial.final_stage).map(TimedHistogram::all);
        let of_load =
            if self.trial.stream == 0 { measured } else { Some(&self.figures.streams.background) };
        let mut streams = vec![("main", self.trial.ends.load, of_load)];
        streams.extend((self.trial.stream != 0).then_some((
            "probe",
            self.trial.final_stage,
            measured,
        )));
        let result = |(stream, end, times): (&str, usize, Option<&Histogram>)| StreamResult {
            stream: stream.to_owned(),
            until: self.trial.stage_name(end),
            p50_ns: times.and_then(|times| times.quantile(0.5)),
            p99_ns: times.and_then(|times| times.quantile(0.99)),
            max_ns: times.and_then(|times| times.moments().max()),
        };
        streams.into_iter().map(result).collect()
    }

    /// The length of time that rates are over: the planned window, or, where the load was stopped before its
    /// end (Ctrl-C, a crash, `transactions_max`), up to one mean gap after its last due time.
    fn window_ns(&self) -> i64 {
        let due = i64::try_from(self.figures.streams.tallies[0].due()).unwrap_or(i64::MAX);
        let load = &self.trial.setting.load;
        let bounded = load.transactions_max > 0 && self.figures.all.due() >= load.transactions_max;
        let facts = self.trial.facts;
        let cut = bounded || !facts.complete || !facts.interrupted().is_empty();
        if !cut || due < 2 {
            return self.trial.grid.length();
        }
        let gap = (self.figures.flow.last_due - self.figures.flow.first_due) / (due - 1);
        (self.figures.flow.last_due + gap - self.trial.grid.start)
            .clamp(1, self.trial.grid.length())
    }

    /// Rates are the main load's, also beside a probe, whose own rate says nothing about the system.
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    fn rates(&self) -> Rates {
        let seconds = self.window_ns() as f64 / 1e9;
        let per_s = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        // Each stage by its own time: `accepted` comes at once where `committed` takes a block.
        let typical_ns = |stage: usize| {
            // A probe's time to the load's final stage may be another, and need not be known.
            if self.trial.stream != 0 && stage == self.trial.ends.load {
                return self.figures.streams.background.quantile(0.05).unwrap_or(0);
            }
            let times = self.figures.latencies.response(stage);
            times.and_then(|times| times.all().quantile(0.05)).unwrap_or(0)
        };
        let reached = |stage: usize| {
            per_s(self.figures.flow.in_time(stage, typical_ns(stage), self.window_ns()))
        };
        let names = self.trial.facts.declared.stages.iter().take(model::STAGES_MAX).enumerate();
        Rates {
            planned_per_s: planned_rate(&self.trial.setting.load),
            offered_per_s: per_s(self.figures.streams.tallies[0].due()),
            sent_per_s: per_s(self.figures.flow.sent_in_window),
            reached_per_s: names.map(|(stage, name)| (name.clone(), reached(stage))).collect(),
            goodput_per_s: reached(self.trial.ends.load),
        }
    }

    /// The sections of the latency, and what flowed in and out in each.
    fn sections(&self) -> SectionsResult {
        let trial = &self.trial;
        let mut sections = self.figures.latencies.sections(trial.final_stage, trial.percentiles);
        let (slots, count) = (&self.figures.flow.slots[..trial.grid.slots], sections.all.len());
        for (place, section) in sections.all.iter_mut().enumerate() {
            let of = &slots[place * slots.len() / count..(place + 1) * slots.len() / count];
            section.offered = of.iter().map(|slot| u64::from(slot.due)).sum();
            section.committed = of.iter().map(|slot| u64::from(slot.committed)).sum();
        }
        let committed: Vec<u32> = slots.iter().map(|slot| slot.committed).collect();
        let excess = processor::excess(trial.metrics, &trial.grid, &committed, count);
        for (section, ns) in sections.all.iter_mut().zip(excess) {
            section.processor_excess_ns = ns;
        }
        sections
    }

    fn seconds(&self) -> Vec<SecondResult> {
        let response = self.figures.latencies.response(self.trial.final_stage);
        let outstanding = self.figures.flow.outstanding_by_slot();
        let per = self.trial.grid.per_second;
        let slots = &self.figures.flow.slots[..self.trial.grid.slots];
        let first = self.trial.grid.start.div_euclid(SECOND);
        let step = self.trial.grid.width * i64::try_from(per).expect("at most 100") / SECOND;
        slots
            .chunks(per)
            .enumerate()
            .map(|(index, chunk)| {
                let range = index * per..index * per + chunk.len();
                let mut latency = stats::SparseHistogram::default();
                for slot in response.iter().flat_map(|times| &times.slots()[range.clone()]) {
                    latency.merge(slot);
                }
                let sum = |f: fn(&SlotFlow) -> u32| chunk.iter().map(|s| u64::from(f(s))).sum();
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
    ns(setting.probe.as_ref().map_or(setting.load.timeout, |probe| probe.timeout))
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
