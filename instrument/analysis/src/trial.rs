//! One trial: rows and ledger entries stream in, a [`TrialResult`] comes out. No I/O.
//!
//! What belongs to the measured window is decided by a transaction's due time, what belongs to the result's
//! latencies by its stream: the probe's if there is one, the main load's otherwise. Fates and conservation
//! look at every transaction of the trial, the warm-up's included.

mod summary;

use model::facts::{Environment, Event, LedgerEntry, MetricSample, TrialFacts, WorkerFacts};
use model::fault::FaultEvent;
use model::node_events::Span;
use model::picture::TrialPicture;
use model::plan::{LoadPlan, SettingPlan, ThresholdPlan};
use model::result::TrialResult;
use model::{FinalStages, NO_STAMP, Observation, Row, Stamp};
use record::StageSecond;
use stats::Histogram;

use crate::audits::{self, Evidence};
use crate::beyond::Beyond;
use crate::block::BLOCK_ROWS;
use crate::checks::Checks;
use crate::fates::Join;
use crate::first_use::FirstUse;
use crate::flow::Flow;
use crate::grid::{Cells, Grid};
use crate::groups::Groups;
use crate::latency::Latencies;
use crate::minutes::{LeftOut, Minutes};
use crate::node_stages::NodeStages;
use crate::order::Order;
use crate::page::Page;
use crate::phases::Phases;
use crate::pool::Pool;
use crate::received::Received;
use crate::silence::Commits;
use crate::stated::Stated;
use crate::steps::Steps;
use crate::tally::Tally;
use crate::timeline::TimelineTally;
use crate::traces::Traces;
use crate::under_way::UnderWay;
use crate::vegeta::Vegeta;
use crate::without_lag::WithoutLag;
use crate::{fates, faults, implicit, nodes, picture, thresholds, verdict};

pub(crate) use summary::planned_rate;
use summary::{resources, series_of};

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
    received: Received,
    flow: Flow,
    vegeta: Vegeta,
    groups: Groups,
    page: Page,
    beyond: Beyond,
    /// Kept where thresholds can be told of a minute.
    minutes: Option<Minutes>,
    order: Order,
    pool: Pool,
    join: Join,
    stated: Stated,
    /// Kept where faults are planned.
    commits: Option<Commits>,
    /// The same.
    under_way: Option<UnderWay>,
    /// When anything ended; kept where arrivals wait for answers.
    ends_at: Option<Commits>,
    first_use: FirstUse,
    /// Kept where arrivals are even.
    phases: Option<Phases>,
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
            received: Received::default(),
            flow: Flow::new(grid, ends.load, window_ns),
            vegeta: Vegeta::default(),
            groups: Groups::default(),
            page: Page::new(input.setting.measure.calls, &left_out),
            beyond: Beyond::new(input.thresholds, &facts.declared.stages, final_stage, &grid),
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
            under_way: (!input.setting.faults.is_empty()).then(UnderWay::default),
            ends_at: load.arrivals.wait_for_answers().then(Commits::default),
            first_use: FirstUse::default(),
            phases: Phases::of(input.setting, &grid),
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
        if let Some(under_way) = &mut self.under_way {
            rows.iter().for_each(|row| under_way.row(row));
        }
        if let Some(ends) = &mut self.ends_at {
            rows.iter().for_each(|row| ends.add(row.end));
        }
        rows.iter().for_each(|row| self.first_use.row(row, self.ends));
        if let Some(steps) = &mut self.steps {
            rows.iter().for_each(|row| steps.row(row));
        }
        rows.iter().for_each(|row| self.order.row(row, self.ends));
        rows.iter().for_each(|row| self.join.row(row));
        self.flow.rows(rows);
        rows.iter().for_each(|row| self.pool.row(row));
        // What follows is of the window, a slot and a stream at a time.
        let (grid, mut slots) = (self.grid, self.slots);
        let of_window = |row: &Row| grid.holds(row.due);
        let mut left = rows;
        while let Some(first) = left.first() {
            let mut kind_of = |row: &Row| (of_window(row), row.stream, slots.of(row.due));
            let kind = kind_of(first);
            let (run, rest) =
                left.split_at(left.iter().take_while(|row| kind_of(row) == kind).count());
            if of_window(first) {
                self.run(run);
            }
            left = rest;
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
        self.beyond.rows(slot, rows);
        for row in rows {
            if let (Some(ns), Some(lag)) = (row.response_ns(self.final_stage), row.own_lag_ns()) {
                self.without_lag.row(ns, lag);
            }
            self.received.row(row, self.final_stage);
        }
        if let Some(phases) = &mut self.phases {
            rows.iter().for_each(|row| phases.row(row));
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
            result.fates = Some(fates::settled(fates, &self.input.facts.after.ledger));
            result.stated = self.stated.result(self.input.facts);
        }
        let of_nodes = self.node_stages.as_ref();
        result.node_stages = of_nodes.map(|it| it.result(self.input.facts, self.input.percentiles));
        let steps = self.steps.as_ref();
        result.steps = steps.map(|steps| steps.result(result.node_stages.as_ref()));
        (result.faults, result.faults_left_out) = faults::kept(all_faults.clone());
        if let Some(commits) = &self.commits {
            commits.around(&mut result.faults, self.grid.end);
        }
        if let Some(under_way) = &self.under_way {
            under_way.at_beginnings(&mut result.faults);
        }
        result.audits = audits::all(&self.evidence(&result));
        result.checks = std::mem::take(&mut self.checks).finish(self.input.facts);
        result.thresholds = implicit::broken_outright(self.input.facts);
        // Of a load that was not sent there is no number to judge.
        if !self.input.facts.load.is_withheld {
            self.beyond.received(&self.received);
            let evaluated = thresholds::evaluate_all(self.input.thresholds, &self.beyond, &result);
            result.thresholds.splice(0..0, evaluated);
        }
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

    fn evidence<'e>(&'e self, result: &'e TrialResult) -> Evidence<'e> {
        let facts = self.input.facts;
        Evidence {
            setting: self.input.setting,
            facts,
            environment: self.input.environment,
            is_saturated: thresholds::is_saturated(self.input.thresholds, &self.beyond, result),
            engine: engine_total(&facts.load.workers),
            result,
            all: &self.all,
            flow: &self.flow,
            grid: self.grid,
            final_stage: self.final_stage,
            order: &self.order,
            pool: &self.pool,
            ends: self.ends_at.as_ref(),
            first_use: &self.first_use,
            phases: self.phases.as_ref(),
            join: &self.join,
            node_stages: self.node_stages.as_ref(),
            own_lag: self.latencies.own_lag(),
            without_lag: &self.without_lag,
            received: &self.received,
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
        && absent_or_within(row.receive_lag)
}

/// Thirty-six years, in nanoseconds.
const STAMP_MAX: u64 = 1 << 60;

fn stage_name(facts: &TrialFacts, stage: usize) -> String {
    facts.declared.stages.get(stage).cloned().unwrap_or_default()
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
