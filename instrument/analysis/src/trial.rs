//! One trial: rows and ledger entries stream in, a [`TrialResult`] comes out. No I/O.
//!
//! What belongs to the measured window is decided by a transaction's due time, what belongs to the result's
//! latencies by its stream: the probe's if there is one, the main load's otherwise. Fates and conservation
//! look at every transaction of the trial, the warm-up's included.

use std::collections::{BTreeMap, BTreeSet};

use model::facts::{Environment, Event, LedgerEntry, MetricSample, TrialFacts, WorkerFacts};
use model::fault::FaultEvent;
use model::node_events::Span;
use model::picture::TrialPicture;
use model::plan::{Arrivals, LoadPlan, Schedule, SettingPlan, ThresholdPlan};
use model::result::{Rates, SecondResult, StreamResult, TrialResult, Verdict};
use model::series::SeriesFacts;
use model::{FinalStages, NO_STAMP, Observation, Row, Stamp};
use record::StageSecond;
use stats::{Histogram, TimedHistogram};

use crate::audits::{self, Evidence};
use crate::block::BLOCK_ROWS;
use crate::checks::Checks;
use crate::fates::Join;
use crate::flow::Flow;
use crate::grid::{Cells, Grid, SECOND};
use crate::groups::Groups;
use crate::latency::Latencies;
use crate::minutes::{LeftOut, Minutes};
use crate::node_stages::NodeStages;
use crate::order::Order;
use crate::page::Page;
use crate::pool::Pool;
use crate::silence::Commits;
use crate::stated::Stated;
use crate::steps::Steps;
use crate::tally::Tally;
use crate::timeline::TimelineTally;
use crate::traces::Traces;
use crate::vegeta::Vegeta;
use crate::without_lag::WithoutLag;
use crate::{faults, nodes, picture, processor, sending, thresholds, verdict};

/// Everything about a trial but its rows and its ledger.
pub struct TrialInput<'a> {
    /// The trial's folder, relative to the run folder.
    pub path: String,
    /// The setting that it is a trial of.
    pub setting: &'a SettingPlan,
    /// The thresholds that apply to the setting.
    pub thresholds: &'a [ThresholdPlan],
    /// Fractions of one to give quantiles for; those that thresholds and tables name must be among them.
    pub percentiles: &'a [f64],
    /// The trial's facts.
    pub facts: &'a TrialFacts,
    /// Series of the generator, the host and the nodes.
    pub metrics: &'a [MetricSample],
    /// The host.
    pub environment: &'a Environment,
    /// Bytes at the end of the row log that could not be read.
    pub dropped_bytes: u64,
}

/// A trial's analysis while rows and entries stream through it: all rows first, then all entries.
pub struct TrialAnalysis<'a> {
    input: TrialInput<'a>,
    checks: Checks,
    grid: Grid,
    slots: Cells,
    /// The stream whose latency is the result.
    stream: u8,
    /// Where each stream's transactions end.
    ends: FinalStages,
    /// Where those of the stream end whose latency is the result.
    final_stage: usize,
    all: Tally,
    streams: [Tally; 2],
    latencies: Latencies,
    /// Response times of the main load to its final stage, where a probe is measured beside it.
    background: Histogram,
    /// Of response times to the final stage.
    without_lag: WithoutLag,
    flow: Flow,
    vegeta: Vegeta,
    groups: Groups,
    page: Page,
    /// Kept where thresholds can be told of a minute.
    minutes: Option<Minutes>,
    order: Order,
    pool: Pool,
    join: Join,
    stated: Stated,
    /// Kept where faults are planned.
    commits: Option<Commits>,
    timeline: TimelineTally,
    /// Kept where the load has steps.
    steps: Option<Steps>,
    node_stages: Option<NodeStages>,
    traces: Traces,
}

impl<'a> TrialAnalysis<'a> {
    /// Starts with no rows. `checks` see what they ask for.
    #[must_use]
    pub fn new(input: TrialInput<'a>, checks: Checks) -> Self {
        let facts = input.facts;
        let grid = window(facts, &input.setting.load);
        let ends = facts.declared.final_stages();
        let stream = u8::from(input.setting.probe.is_some());
        let final_stage = ends.of(stream);
        let window_ns = i64::try_from(input.setting.measure.window.as_nanos()).unwrap_or(i64::MAX);
        let left_out = LeftOut::new(&facts.declared);
        let load = &input.setting.load;
        let patience =
            i64::try_from((load.drain_max + load.timeout).as_nanos()).unwrap_or(i64::MAX);
        Self {
            grid,
            slots: grid.cells(),
            stream,
            ends,
            final_stage,
            all: Tally::default(),
            streams: Default::default(),
            latencies: Latencies::new(facts.declared.stages.len().max(1), grid.slots),
            background: Histogram::default(),
            without_lag: WithoutLag::default(),
            flow: Flow::new(grid, ends.load, window_ns),
            vegeta: Vegeta::default(),
            groups: Groups::default(),
            page: Page::new(input.setting.measure.calls, &left_out),
            minutes: Minutes::new(
                input.thresholds,
                &left_out,
                (final_stage, &stage_name(facts, final_stage)),
                &grid,
            ),
            order: Order::default(),
            pool: Pool::new(grid, whole(facts, &grid, patience)),
            join: Join::new(ends, grid.end.saturating_add(patience), &facts.declared.kinds)
                .unordered(facts.after.ledger.is_unordered),
            stated: Stated::default(),
            steps: Steps::new(load, stream, ends, grid.start, whole(facts, &grid, patience)),
            commits: (!input.setting.faults.is_empty()).then(Commits::default),
            node_stages: NodeStages::new(facts, &grid, whole(facts, &grid, patience)),
            traces: Traces::default(),
            timeline: TimelineTally::new(whole(facts, &grid, patience), stream, final_stage),
            input,
            checks,
        }
    }

    /// Adds what a node did at a stage in a second, in any order.
    pub fn stage_second(&mut self, row: &StageSecond<'_>) {
        if let Some(stages) = &mut self.node_stages {
            stages.row(row);
        }
    }

    /// Gives the spans of sampled transactions, by transaction. They come before the rows.
    pub fn spans(&mut self, spans: &[Span]) {
        self.traces = Traces::choose(spans, &self.grid);
    }

    /// Adds rows.
    pub fn rows(&mut self, rows: &[Row]) {
        for block in rows.chunks(BLOCK_ROWS) {
            self.block(block);
        }
        self.checks.rows(rows);
    }

    /// Each part sees all rows of a block before the next part does, so that what it counts with stays at hand.
    fn block(&mut self, rows: &[Row]) {
        let mut plausible = [&Row::EMPTY; BLOCK_ROWS];
        let mut count = 0;
        for row in rows {
            self.all.row(row);
            if is_plausible(row) {
                plausible[count] = row;
                count += 1;
            } else {
                self.join.strange_rows += 1;
            }
        }
        let rows = &plausible[..count];
        self.timeline.rows(rows);
        rows.iter().for_each(|row| self.traces.row(row));
        if let Some(commits) = &mut self.commits {
            rows.iter().for_each(|row| commits.add(row.marks[self.ends.of(row.stream)]));
        }
        if let Some(steps) = &mut self.steps {
            rows.iter().for_each(|row| steps.row(row));
        }
        rows.iter().for_each(|row| self.order.row(row, self.ends));
        rows.iter().for_each(|row| self.join.row(row));
        rows.iter().for_each(|row| self.flow.row(row));
        rows.iter().for_each(|row| self.pool.row(row));
        // What follows is of the window, a slot and a stream at a time.
        let (grid, mut slots) = (self.grid, self.slots);
        let of_window = |row: &Row| grid.holds(row.due);
        let runs = rows.chunk_by(|a, b| {
            let same = of_window(a) == of_window(b) && a.stream == b.stream;
            same && slots.of(a.due) == slots.of(b.due)
        });
        for run in runs.filter(|run| of_window(run[0])) {
            self.run(run);
        }
    }

    /// Adds rows of one stream that were due in one slot of the window.
    fn run(&mut self, rows: &[&Row]) {
        let stream = rows[0].stream;
        self.latencies.lags_of(rows);
        let tally = &mut self.streams[usize::from(stream.min(1))];
        rows.iter().for_each(|row| tally.row(row));
        if stream != self.stream {
            let of_load = rows.iter().filter_map(|row| row.response_ns(self.ends.of(stream)));
            of_load.for_each(|ns| self.background.record(ns));
            return;
        }
        let slot = self.slots.index(rows[0].due).expect("the window holds it");
        self.latencies.rows(slot, rows);
        for row in rows {
            if let (Some(ns), Some(lag)) = (row.response_ns(self.final_stage), row.own_lag_ns()) {
                self.without_lag.row(ns, lag);
            }
        }
        self.vegeta.rows(rows);
        rows.iter().for_each(|row| self.groups.row(row));
        rows.iter().for_each(|row| self.page.row(row));
        if let Some(minutes) = &mut self.minutes {
            rows.iter().for_each(|row| minutes.row(row));
        }
    }

    /// Says how many bytes at the end of the row log could not be read.
    pub fn dropped(&mut self, bytes: u64) {
        self.input.dropped_bytes += bytes;
    }

    /// Whether a check asks for observations.
    #[must_use]
    pub fn reads_observations(&self) -> bool {
        self.checks.read_observations()
    }

    /// Adds what a transaction was seen to return; all rows come first.
    pub fn observation(&mut self, observation: &Observation<'_>) {
        self.checks.observation(observation);
    }

    /// Adds a ledger entry with what it holds; all rows come first.
    pub fn entry(&mut self, entry: &LedgerEntry, content: &[u8]) {
        let is_duplicate = self.join.entry(entry);
        self.stated.entry(entry, is_duplicate);
        self.checks.entry(entry, content);
    }

    /// The result, with audits, checks, thresholds and verdict.
    #[must_use]
    pub fn finish(self) -> TrialResult {
        self.finish_with_picture(&[], &[]).0
    }

    /// The result, and what the page draws beside it.
    #[must_use]
    pub fn finish_with_picture(
        mut self,
        events: &[Event],
        fault_events: &[FaultEvent],
    ) -> (TrialResult, TrialPicture) {
        let all_faults = faults::of_events(fault_events);
        let fates = self.join.finish();
        let mut result = self.summary();
        let all_nodes = nodes::over_all(self.input.metrics, &self.input.facts.declared.series);
        result.series =
            series_of(self.input.metrics, &self.input.facts.declared.series, all_nodes.series);
        let all_nodes = all_nodes.samples;
        result.resources.extend(resources(&all_nodes, &self.grid));
        result.resources_last = nodes::last(self.input.metrics, &self.grid);
        result.resources_last.extend(nodes::last(&all_nodes, &self.grid));
        if self.input.facts.after.ledger.read {
            result.fates = Some(fates);
            result.stated = self.stated.result(self.input.facts);
        }
        let of_nodes = self.node_stages.as_ref();
        result.node_stages = of_nodes.map(|it| it.result(self.input.facts, self.input.percentiles));
        let steps = self.steps.as_ref();
        result.steps = steps.map(|steps| steps.result(result.node_stages.as_ref()));
        (result.faults, result.faults_left_out) = faults::kept(all_faults.clone());
        if let Some(commits) = &self.commits {
            result.faults.iter_mut().for_each(|fault| commits.around(fault));
        }
        result.audits = audits::all(&self.evidence(&result));
        result.checks = std::mem::take(&mut self.checks).finish(self.input.facts);
        result.thresholds = thresholds::evaluate_all(self.input.thresholds, &result);
        (result.verdict, result.reason) = verdict::of_trial(&result);
        let mut picture = picture::of_trial(
            &self.input.path,
            self.input.setting,
            self.input.facts,
            &self.timeline,
            &result.timeline,
            &picture::Sampled {
                recorded: self.input.metrics,
                of_all: &all_nodes,
                declared: &result.series,
            },
            (events, &all_faults),
        );
        picture.traces = self.traces.finish();
        (result, picture)
    }

    fn summary(&self) -> TrialResult {
        let input = &self.input;
        let facts = input.facts;
        let measured = &self.streams[usize::from(self.stream)];
        let (send_lag, own_lag) = self.latencies.lags(input.percentiles);
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
            driver: facts.load.driver.clone(),
            counts: measured.counts(),
            background: (self.stream == 1).then(|| self.streams[0].counts()),
            rates: self.rates(),
            // As rates: only the main load is sent again.
            attempts: sending::attempts(&self.streams[0], &input.setting.load),
            batches: sending::batches(&facts.load.workers, &input.setting.load),
            connections: self.pool.result(&facts.load),
            latency: self.latencies.results(
                &facts.declared.stages,
                input.percentiles,
                measured.due(),
                (timeout_ns(input.setting), self.window_ns()),
            ),
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

    fn evidence<'e>(&'e self, result: &'e TrialResult) -> Evidence<'e> {
        let facts = self.input.facts;
        Evidence {
            setting: self.input.setting,
            facts,
            environment: self.input.environment,
            is_saturated: thresholds::is_saturated(self.input.thresholds, result),
            engine: engine_total(&facts.load.workers),
            result,
            all: &self.all,
            flow: &self.flow,
            grid: self.grid,
            final_stage: self.final_stage,
            order: &self.order,
            pool: &self.pool,
            join: &self.join,
            node_stages: self.node_stages.as_ref(),
            own_lag: self.latencies.own_lag(),
            without_lag: &self.without_lag,
            response: self.latencies.response(self.final_stage),
            dropped_bytes: self.input.dropped_bytes,
        }
    }
}

/// The measured window: as the trial recorded it, or, where a crash kept it from doing so, as planned.
fn window(facts: &TrialFacts, load: &LoadPlan) -> Grid {
    let recorded = Grid::new(facts.measure_start(), facts.measure_end());
    if facts.complete || recorded.slots > 0 {
        return recorded;
    }
    let ns = |duration: std::time::Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    Grid::new(ns(load.warmup), ns(load.warmup.saturating_add(load.duration)))
}

/// When the last thing of a trial happened: the end of the drain, or, where a crash kept that from being written
/// down, the latest that was planned.
fn whole(facts: &TrialFacts, grid: &Grid, patience: i64) -> Stamp {
    if facts.load.drain_end == NO_STAMP || facts.load.drain_end <= 0 {
        grid.end.saturating_add(patience)
    } else {
        facts.load.drain_end.max(grid.end)
    }
}

/// Whether every stamp is one that a trial can have, so that differences of them cannot overflow. A damaged
/// record is counted and never computed with.
#[inline]
fn is_plausible(row: &Row) -> bool {
    let within = |stamp: i64| stamp.unsigned_abs() < STAMP_MAX;
    let absent_or_within = |stamp: i64| stamp == NO_STAMP || within(stamp);
    within(row.due)
        && within(row.end)
        && absent_or_within(row.sent)
        && (within(row.ready) || (row.ready == NO_STAMP && row.sent == NO_STAMP))
        && row.marks.into_iter().all(absent_or_within)
}

/// Thirty-six years, in nanoseconds.
const STAMP_MAX: u64 = 1 << 60;

fn stage_name(facts: &TrialFacts, stage: usize) -> String {
    facts.declared.stages.get(stage).cloned().unwrap_or_default()
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

/// The counters of all engine threads together.
fn engine_total(workers: &[WorkerFacts]) -> WorkerFacts {
    workers.iter().fold(WorkerFacts::default(), |mut sum, worker| {
        sum.due = sum.due.saturating_add(worker.due);
        sum.sent = sum.sent.saturating_add(worker.sent);
        sum.answered = sum.answered.saturating_add(worker.answered);
        sum.unanswered = sum.unanswered.saturating_add(worker.unanswered);
        sum.shed = sum.shed.saturating_add(worker.shed);
        sum.refused = sum.refused.saturating_add(worker.refused);
        sum.late_answers = sum.late_answers.saturating_add(worker.late_answers);
        sum.duplicate_answers = sum.duplicate_answers.saturating_add(worker.duplicate_answers);
        sum.phantom_answers = sum.phantom_answers.saturating_add(worker.phantom_answers);
        sum.undecided_answers = sum.undecided_answers.saturating_add(worker.undecided_answers);
        sum.protocol_errors = sum.protocol_errors.saturating_add(worker.protocol_errors);
        sum.connections = sum.connections.with(&worker.connections);
        sum.connect_failures = sum.connect_failures.saturating_add(worker.connect_failures);
        sum.lookahead_dry = sum.lookahead_dry.saturating_add(worker.lookahead_dry);
        sum.backlog_full = sum.backlog_full.saturating_add(worker.backlog_full);
        sum.backlog_max = sum.backlog_max.max(worker.backlog_max);
        sum.record_waits = sum.record_waits.saturating_add(worker.record_waits);
        sum
    })
}

/// What each recorded series is: as declared, then those that were made of them, then those that nobody has declared.
fn series_of(
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
fn resources(metrics: &[MetricSample], grid: &Grid) -> BTreeMap<String, (f64, f64, f64)> {
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
