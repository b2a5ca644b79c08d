//! One trial: rows and ledger entries stream in, a [`TrialResult`] comes out. No I/O.
//!
//! A transaction belongs to the measured window by its due time, and to the result's latencies by its stream: the
//! probe's if there is one, the main load's otherwise. Fates and conservation
//! look at every transaction of the trial, the warm-up's included.

pub(crate) mod so_far;
mod summary;

use model::facts::{Environment, Event, LedgerEntry, MetricSample, TrialFacts, WorkerFacts};
use model::fault::FaultEvent;
use model::node_events::Span;
use model::picture::TrialPicture;
use model::plan::{SettingPlan, ThresholdPlan};
use model::result::{FaultResult, TrialResult};
use model::{Observation, Row};
use record::StageSecond;
use stats::carry::Carry;

use crate::audits::{self, Evidence};
use crate::figures::block::BLOCK_ROWS;
use crate::figures::grid::Cells;
use crate::figures::known::Known;
use crate::figures::part::Part;
use crate::figures::traces::Traces;
use crate::figures::{Figures, faults, nodes, series};
use crate::judge::checks::Checks;
use crate::judge::{Limits, implicit, thresholds, verdict};
use crate::show::picture;

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
    trial: Known<'a>,
    path: String,
    environment: &'a Environment,
    dropped_bytes: u64,
    slots: Cells,
    figures: Figures,
    limits: Limits,
    checks: Checks,
}

/// Series and faults, which the picture draws beside the rows.
struct Beside {
    of_all_nodes: Vec<MetricSample>,
    faults: Vec<FaultResult>,
}

impl<'a> TrialAnalysis<'a> {
    /// Starts with no rows. `checks` see what they ask for.
    #[must_use]
    pub fn new(input: TrialInput<'a>, checks: Checks) -> Self {
        let TrialInput { setting, thresholds, percentiles, facts, metrics, .. } = input;
        let trial = Known::of(setting, thresholds, percentiles, facts, metrics);
        Self {
            path: input.path,
            environment: input.environment,
            dropped_bytes: input.dropped_bytes,
            slots: trial.grid.cells(),
            figures: Figures::of_trial(&trial),
            limits: Limits::of_trial(&trial),
            checks,
            trial,
        }
    }

    /// Adds what a node did at a stage in a second, in any order.
    pub fn stage_second(&mut self, row: &StageSecond<'_>) {
        if let Some(stages) = &mut self.figures.node_stages {
            stages.row(row);
        }
    }

    /// Gives the spans of sampled transactions, by transaction. They come before the rows.
    pub fn spans(&mut self, spans: &[Span]) {
        self.figures.traces = Traces::choose(spans, &self.trial.grid);
        self.figures.way.follow(spans);
    }

    /// Adds rows.
    pub fn rows(&mut self, rows: &[Row]) {
        for block in rows.chunks(BLOCK_ROWS) {
            self.block(block);
        }
        self.checks.rows(rows);
    }

    fn block(&mut self, rows: &[Row]) {
        let mut plausible = [&Row::EMPTY; BLOCK_ROWS];
        let mut count = 0;
        for row in rows {
            self.figures.all.row(row);
            if row.is_plausible() {
                plausible[count] = row;
                count += 1;
            } else {
                self.figures.join.strange_rows += 1;
            }
        }
        let rows = &plausible[..count];
        self.figures.block(rows);
        self.limits.block(rows);
        // From here on rows of the window, a slot and a stream at a time.
        let (grid, mut slots) = (self.trial.grid, self.slots);
        let is_in_window = |row: &Row| grid.holds(row.due);
        let mut left = rows;
        while let Some(first) = left.first() {
            let mut kind_of = |row: &Row| (is_in_window(row), row.stream, slots.of(row.due));
            let kind = kind_of(first);
            let (run, rest) =
                left.split_at(left.iter().take_while(|row| kind_of(row) == kind).count());
            if is_in_window(first) {
                self.run(run);
            }
            left = rest;
        }
    }

    /// Adds rows of one stream that were due in one slot of the window.
    fn run(&mut self, rows: &[&Row]) {
        self.figures.window(rows);
        self.limits.window(rows);
        if rows[0].stream == self.trial.stream {
            let slot = self.slots.index(rows[0].due).expect("the window holds it");
            self.figures.measured(slot, rows);
            self.limits.measured(slot, rows);
        }
    }

    /// Whether readers of shares of the rows can count them, for [`Self::add`]. Users are followed from one row to the next, and
    /// a check is shown all of them.
    #[must_use]
    pub fn can_be_split(&self) -> bool {
        !self.checks.read_rows()
            && self.trial.facts.declared.kinds.iter().all(|kind| kind.step.is_none())
    }

    /// The counts of the rows so far, for [`Self::add`].
    #[must_use]
    pub fn counts(&mut self) -> Vec<u8> {
        let mut it = Carry::write();
        self.carry(&mut it);
        it.written()
    }

    /// Adds what another has counted of later rows of the same trial. `false`: they do not go together, and nothing that was
    /// counted is worth anything: the rows are to be read from the first.
    #[must_use]
    pub fn add(&mut self, counts: &[u8]) -> bool {
        let mut it = Carry::add(counts);
        self.carry(&mut it);
        it.is_whole()
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.figures.carry(it);
        self.limits.carry(it);
    }

    /// Says how many bytes at the end of the row log could not be read.
    pub fn dropped(&mut self, bytes: u64) {
        self.dropped_bytes += bytes;
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
        let is_duplicate = self.figures.join.entry(entry);
        self.figures.stated.entry(entry, is_duplicate);
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
        let trial = self.trial;
        let facts = trial.facts;
        let mut result = self.summary();
        self.figures.add_to(&trial, &mut result);
        self.limits.add_to(&trial, &mut result);
        let shown = self.beside(&mut result, fault_events);
        result.audits = audits::all(&self.evidence(&result));
        result.checks = std::mem::take(&mut self.checks).finish(facts);
        result.thresholds = implicit::broken_outright(facts);
        // Of a load that was not sent there is no number to judge.
        if !facts.load.is_withheld {
            let beyond = &mut self.limits.beyond;
            beyond.received(&self.figures.received);
            beyond.below(&self.figures.latencies);
            let evaluated = thresholds::evaluate_all(trial.thresholds, beyond, &result);
            // Why the load was ended before its time is the first thing to say.
            let at = usize::from(facts.load.ended_early.is_some());
            result.thresholds.splice(at..at, evaluated);
        }
        (result.verdict, result.reason) = verdict::of_trial(&result);
        let picture = self.picture(&result, &shown, events);
        (result, picture)
    }

    /// Adds what stands beside the rows: series and faults.
    fn beside(&self, result: &mut TrialResult, fault_events: &[FaultEvent]) -> Beside {
        let of_all_nodes = self.add_series(result);
        let faults = faults::of_events(fault_events);
        (result.faults, result.faults_left_out) = faults::kept(faults.clone());
        if let Some(commits) = &self.figures.committed.times {
            commits.around(&mut result.faults, self.trial.grid.end);
        }
        if let Some(under_way) = &self.figures.under_way {
            under_way.at_beginnings(&mut result.faults);
        }
        Beside { of_all_nodes, faults }
    }

    fn picture(self, result: &TrialResult, beside: &Beside, events: &[Event]) -> TrialPicture {
        let mut picture = picture::of_trial(
            &self.path,
            self.trial.setting,
            self.trial.facts,
            &self.figures.timeline,
            &result.timeline,
            &picture::Sampled {
                recorded: self.trial.metrics,
                of_all: &beside.of_all_nodes,
                declared: &result.series,
            },
            (events, &beside.faults),
        );
        picture.traces = self.figures.traces.finish();
        picture
    }

    /// Adds the recorded series, and those of all nodes together, which it returns.
    fn add_series(&self, result: &mut TrialResult) -> Vec<MetricSample> {
        let Known { metrics, grid, .. } = self.trial;
        let declared = &self.trial.facts.declared.series;
        let all_nodes = nodes::over_all(metrics, declared);
        result.series = series::of(metrics, declared, all_nodes.series);
        for samples in [metrics, &all_nodes.samples] {
            result.resources.extend(series::resources(samples, &grid));
            result.resources_last.extend(nodes::last(samples, &grid));
        }
        all_nodes.samples
    }

    fn evidence<'e>(&'e self, result: &'e TrialResult) -> Evidence<'e> {
        let Known { facts, thresholds, final_stage, .. } = self.trial;
        let latencies = &self.figures.latencies;
        Evidence {
            trial: &self.trial,
            environment: self.environment,
            is_saturated: thresholds::is_saturated(thresholds, &self.limits.beyond, result),
            engine: WorkerFacts::total(&facts.load.workers),
            result,
            figures: &self.figures,
            own_lag: latencies.own_lag(),
            response: latencies.response(final_stage),
            dropped_bytes: self.dropped_bytes,
        }
    }
}
