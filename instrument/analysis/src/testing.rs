//! Rows, facts and plans for this crate's tests.

use std::time::Duration;

use model::facts::{
    DeclaredFacts, Environment, Event, KindFacts, LoadFacts, TrialFacts, WorkerFacts,
};
use model::fault::{FaultDetail, FaultEvent, FaultPhase};
use model::picture::TrialPicture;
use model::plan::{Arrivals, LoadPlan, SettingPlan, ThresholdPlan};
use model::quantity::Rate;
use model::result::TrialResult;
use model::series::{SeriesFacts, SeriesUnit};
use model::{NO_STAMP, Outcome, Row, Stamp};

use record::StageSecond;

use crate::judge::checks::Checks;
use crate::trial::{TrialAnalysis, TrialInput};

const MS: i64 = 1_000_000;

/// A row that was sent 10 µs after it was due and ended `length` after that.
pub(crate) fn row(tx: u64, due: i64, length: i64, outcome: Outcome) -> Row {
    let shed = outcome == Outcome::Shed;
    let end = due + length;
    let mut marks = [NO_STAMP; 4];
    if outcome == Outcome::Committed {
        marks[0] = end;
    }
    Row {
        tx,
        due,
        ready: due,
        sent: if shed { NO_STAMP } else { due + 10_000.min(length) },
        marks,
        end,
        receive_lag: NO_STAMP,
        outcome,
        code: if outcome == Outcome::Committed { 200 } else { 0 },
        error: 0,
        kind: 0,
        connection: 0,
        worker: 0,
        stream: 0,
        attempts: u8::from(!shed),
        client: 0,
        bytes_out: 1,
        bytes_in: 2,
    }
}

/// A row of stages.parquet, as a test writes it.
#[derive(Clone)]
pub(crate) struct SecondOfStage {
    second: i64,
    stage: &'static str,
    node: &'static str,
    count: u64,
    lengths: Vec<(i64, u64)>,
}

/// A trial of constant load that nothing is wrong with; tests break one thing each.
#[derive(Clone)]
pub(crate) struct Trial {
    pub setting: SettingPlan,
    pub thresholds: Vec<ThresholdPlan>,
    pub percentiles: Vec<f64>,
    pub facts: TrialFacts,
    pub environment: Environment,
    pub metrics: Vec<model::facts::MetricSample>,
    pub events: Vec<model::facts::Event>,
    pub faults: Vec<FaultEvent>,
    pub rows: Vec<Row>,
    pub entries: Option<Vec<model::facts::LedgerEntry>>,
    pub stage_seconds: Vec<SecondOfStage>,
    pub spans: Vec<model::node_events::Span>,
    /// Whether the engine's counters and the ledger are made to agree with the rows.
    pub consistent: bool,
}

impl Trial {
    /// 1,000/s for 10 s; response times of 2 to 3 ms.
    pub fn clean() -> Self {
        let rows = (0..10_000_u64)
            .map(|tx| {
                let due = i64::try_from(tx).unwrap() * MS;
                let jitter =
                    i64::from(u32::try_from(tx).unwrap().wrapping_mul(2_654_435_761) >> 12);
                row(tx, due, 2 * MS + jitter, Outcome::Committed)
            })
            .collect();
        Self {
            setting: setting(Rate::per_second(1_000), Duration::from_secs(10)),
            thresholds: Vec::new(),
            percentiles: vec![0.5, 0.99],
            facts: TrialFacts {
                declared: DeclaredFacts {
                    setting: "default".into(),
                    stages: vec!["committed".into()],
                    kinds: vec![KindFacts::recorded("tx")],
                    measure_end: 10_000 * MS,
                    series: vec![
                        SeriesFacts::of_host("cpu_cores", "processor", SeriesUnit::of("cores"))
                            .adding_up(),
                    ],
                    ..DeclaredFacts::default()
                },
                load: LoadFacts { drain_end: 10_100 * MS, ..LoadFacts::default() },
                complete: true,
                ..TrialFacts::default()
            },
            environment: Environment {
                files_max: 65_536,
                ports: 28_000,
                cpu_mhz: (2_000.0, 2_000.0),
                governor: "performance".into(),
                ..Environment::default()
            },
            metrics: Vec::new(),
            events: Vec::new(),
            faults: Vec::new(),
            rows,
            entries: None,
            stage_seconds: Vec::new(),
            spans: Vec::new(),
            consistent: true,
        }
    }

    /// A row of stages.parquet; `lengths` are of one slot each.
    pub fn stage_second(
        &mut self,
        second: i64,
        stage: &'static str,
        node: &'static str,
        count: u64,
        lengths: &[(i64, u64)],
    ) {
        let lengths = lengths.to_vec();
        self.stage_seconds.push(SecondOfStage { second, stage, node, count, lengths });
    }

    /// Its result, which is the same when several readers share the rows.
    pub fn result(mut self) -> TrialResult {
        if self.consistent {
            self.make_consistent();
        }
        let mut analysis = self.start();
        self.rows.chunks(512).for_each(|batch| analysis.rows(batch));
        let whole = self.finish(analysis);
        if let Some(merged) = self.merged() {
            assert!(format!("{whole:?}") == format!("{:?}", self.finish(merged)), "{whole:?}");
        }
        whole.0
    }

    /// The counts of four readers, one of whom has no rows; `None` where their counts do not go together.
    fn merged(&self) -> Option<TrialAnalysis<'_>> {
        let mut merged = self.start();
        let of = |parts: usize| self.rows.len() * parts / 11;
        for share in [0..of(2), of(2)..of(2), of(2)..of(7), of(7)..of(11)] {
            let mut reader = self.start();
            reader.rows(&self.rows[share]);
            if !reader.can_be_split() {
                return None;
            }
            if !merged.add(&reader.counts()) {
                assert!(
                    !self.facts.load.agents.is_empty(),
                    "only a stall of an agent reaches over"
                );
                return None;
            }
        }
        Some(merged)
    }

    fn start(&self) -> TrialAnalysis<'_> {
        let input = TrialInput {
            path: "settings/default/trial-0".into(),
            setting: &self.setting,
            thresholds: &self.thresholds,
            percentiles: &self.percentiles,
            facts: &self.facts,
            metrics: &self.metrics,
            environment: &self.environment,
            dropped_bytes: 0,
        };
        let mut analysis = TrialAnalysis::new(input, Checks::default());
        analysis.spans(&self.spans);
        analysis
    }

    fn finish(&self, mut analysis: TrialAnalysis<'_>) -> (TrialResult, TrialPicture) {
        for SecondOfStage { second, stage, node, count, lengths } in &self.stage_seconds {
            let samples = lengths.iter().map(|(_, count)| count).sum();
            let sum_ns = lengths.iter().map(|(ns, count)| ns.cast_unsigned() * count).sum();
            let (second, count) = (*second, *count);
            let row = StageSecond { second, stage, node, count, sum_ns, samples, lengths };
            analysis.stage_second(&row);
        }
        for entry in self.entries.iter().flatten() {
            analysis.entry(entry, &[]);
        }
        analysis.finish_with_picture(&self.events, &self.faults)
    }

    fn make_consistent(&mut self) {
        let count = |f: &dyn Fn(&Row) -> bool| {
            u64::try_from(self.rows.iter().filter(|row| f(row)).count()).unwrap()
        };
        let sent = count(&|row| row.sent != NO_STAMP);
        let unanswered = count(&|row| row.outcome == Outcome::Unknown);
        let shed = count(&|row| row.outcome == Outcome::Shed);
        let due = count(&|_| true);
        if self.facts.load.workers.is_empty() {
            self.facts
                .load
                .workers
                .push(WorkerFacts { wall_ns: 10_000_000_000, ..WorkerFacts::default() });
        }
        let worker = &mut self.facts.load.workers[0];
        worker.due = due;
        worker.sent = sent;
        worker.unanswered = unanswered;
        worker.answered = sent - unanswered;
        worker.shed = shed;
        worker.refused = due - sent - shed;
        if let Some(entries) = &self.entries {
            let ledger = &mut self.facts.after.ledger;
            ledger.read = true;
            ledger.entries = u64::try_from(entries.len()).unwrap();
            ledger.detail = "read back by a test".into();
        }
    }
}

/// An event of a fault: its place in the plan, its round, its kind, its node.
pub(crate) fn fault_event(
    at_ns: Stamp,
    phase: FaultPhase,
    (fault, cycle, kind, node): (u32, u32, &str, &str),
) -> FaultEvent {
    FaultEvent {
        fault,
        cycle,
        phase,
        kind: kind.into(),
        node: node.into(),
        planned_ns: 0,
        at_ns,
        detail: FaultDetail::Nothing,
    }
}

/// Something that happened, about no transaction.
pub(crate) fn event(at: Stamp, name: &str, detail: &str) -> Event {
    Event { at, name: name.into(), tx: None, detail: detail.into() }
}

/// A setting of constant load.
pub(crate) fn setting(rate: Rate, duration: Duration) -> SettingPlan {
    let load = LoadPlan {
        connections_max: 64,
        drain_max: Duration::from_secs(30),
        timeout: Duration::from_secs(30),
        lookahead: 64,
        ..LoadPlan::plain(Arrivals::constant(rate), 4, duration)
    };
    SettingPlan::plain("echo", load)
}

/// The outcome of one audit in a result.
pub(crate) fn audit<'a>(result: &'a TrialResult, name: &str) -> &'a model::result::AuditResult {
    result.audits.iter().find(|audit| audit.name == name).expect("the audit is registered")
}
