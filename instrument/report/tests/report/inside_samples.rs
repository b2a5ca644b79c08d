//! A run whose nodes stamp four stages, one of which stands still for three seconds and loses a few.

use model::node_events::{NodeEventsFacts, Span};
use model::picture::{Trace, TrialPicture};
use model::result::{
    Distribution, Exit, LegResult, NodeStageColumn, NodeStageGap, NodeStageResult,
    NodeStagesResult, Quantile, RunResult, WayResult,
};
use model::{NO_STAMP, Outcome, Row, STAGES_MAX};

use crate::sample_parts::{MS, S, US, run, setting, trial};

const STAGES: [(&str, i64); 4] =
    [("received", 0), ("started", 40), ("stored", 900), ("answered", 30)];
const COLUMNS: usize = 12;

/// The run.
pub fn inside() -> RunResult {
    let mut it = trial("default");
    it.node_stages = Some(stages());
    run(
        "pipeline",
        Exit::Ok,
        "every threshold holds and no audit objects",
        vec![setting("default", vec![it])],
    )
}

fn stages() -> NodeStagesResult {
    let stage = |(index, (name, us)): (usize, &(&str, i64))| {
        let is_stored = *name == "stored";
        let lost = u64::from(index >= 2) * 7;
        let column = |at: usize| NodeStageColumn {
            count: match at {
                5..8 if is_stored => 0,
                8 if is_stored => 200 - lost,
                _ => 50,
            },
            p50_ns: (*us > 0).then_some(us * US),
            p99_ns: (*us > 0).then_some(us * US * if at == 8 { 3_000 } else { 3 }),
            max_ns: (*us > 0).then_some(us * US * 3_001),
        };
        let quantile = |q, name: &str, value| Quantile {
            q,
            name: name.to_owned(),
            value_ns: Some(value),
            unconditional_ns: Some(value),
            beyond: 100,
            ..Quantile::default()
        };
        let latency = Distribution {
            count: 500,
            min_ns: Some(us * US),
            max_ns: Some(us * US * 3_001),
            mean_ns: Some((us * US * 2) as f64),
            quantiles: vec![quantile(0.5, "p50", us * US), quantile(0.99, "p99", us * US * 3_000)],
            ..Distribution::default()
        };
        NodeStageResult {
            stage: (*name).to_owned(),
            label: format!("{name} by a node"),
            passed: 600 - lost,
            count: 500 - lost,
            throughput_per_s: Some(50.0 - lost as f64 / 10.0),
            throughput_min_per_s: Some(if is_stored { 0.0 } else { 50.0 }),
            throughput_max_per_s: Some(if is_stored { 193.0 } else { 50.0 }),
            latency: if *us > 0 { latency } else { Distribution::default() },
            nodes: 1,
            columns: (0..COLUMNS).map(column).collect(),
        }
    };
    let gap = |before: &str, stage: &str, came, went, behind_max, seconds: i64| NodeStageGap {
        before: before.to_owned(),
        stage: stage.to_owned(),
        came,
        went,
        missing: came - went,
        behind_max,
        behind_max_ns: seconds * S,
    };
    NodeStagesResult {
        from_second: 1,
        seconds: 10,
        start_ns: 0,
        width_ns: S,
        stages: STAGES.iter().enumerate().map(stage).collect(),
        gaps: vec![
            gap("received", "started", 600, 600, 0, 0),
            gap("started", "stored", 600, 593, 150, 8),
            gap("stored", "answered", 593, 593, 0, 0),
        ],
        way: Some(way()),
        read: NodeEventsFacts {
            is_whole: false,
            events: 2_386,
            transactions: 2_386,
            spans: 2_386,
            spans_kept: 2_386,
            sampled_one_in: 1,
            problems: vec![
                "the events of `echo` (echo.events): the last record, 2386 (from 0), is cut off <b>".to_owned(),
            ],
            ..NodeEventsFacts::default()
        },
    }
}

/// Most of the time is waiting for the disk; two of 602 do not divide.
fn way() -> WayResult {
    let legs =
        [("send", "", 3), ("queue", "started", 90), ("disk", "stored", 900), ("seen", "", 7)];
    let leg = |(leg, stage, us): (&str, &str, u64)| LegResult {
        leg: leg.to_owned(),
        stage: stage.to_owned(),
        sum_ns: us * 600_000,
        share: Some(us as f64 / 1_000.0),
        mean_ns: Some(us as f64 * 1_000.0),
        p50_ns: Some(us.cast_signed() * US / 2),
        p99_ns: Some(us.cast_signed() * US * 3),
        max_ns: Some(us.cast_signed() * US * 4),
    };
    WayResult {
        transactions: 600,
        incomplete: 1,
        disordered: 1,
        total_ns: 600_000_000,
        legs: legs.map(leg).to_vec(),
    }
}

/// Adds traces to the picture of such a trial: one of a transaction that no client knows.
pub fn add_traces(picture: &mut TrialPicture) {
    let trace = |tx: u64| {
        let due = S + tx.cast_signed() * MS;
        let mut at = due + 50 * US;
        let spans = STAGES.iter().zip(0..).map(|((_, us), stage)| {
            let from = at;
            at += us * US * if tx == 2 { 40 } else { 1 };
            Span { tx, stage, node: "echo <1>".to_owned(), from, to: at }
        });
        let spans: Vec<Span> = spans.collect();
        let mut marks = [NO_STAMP; STAGES_MAX];
        marks[0] = at + 50 * US;
        let row = Row {
            tx,
            due,
            ready: due,
            sent: due + 20 * US,
            marks,
            end: marks[0],
            outcome: Outcome::Committed,
            ..Row::EMPTY
        };
        Trace { row: (tx != 5).then_some(row), tx, spans, spans_left_out: usize::from(tx == 4) * 9 }
    };
    picture.traces = (0..8).map(trace).collect();
}
