//! A run whose settings differ in how their load leaves: one sends again, one in batches, one of an earlier version.

use model::result::{
    AttemptsResult, BatchesResult, Exit, HealthResult, ProcessorOf, RunResult, StepResult,
    StepsResult,
};

use crate::sample_parts::{attempts, run, setting, trial};

/// The run.
pub fn sending() -> RunResult {
    let mut again = trial("load=again");
    again.attempts = AttemptsResult {
        allowed: 3,
        sent: 1_500,
        resent: 41,
        total: 1_550,
        mean: Some(1_550.0 / 1_500.0),
        max: 3,
    };
    // A node that was down for a while, and one of which there is no sample.
    let node = |name: &str, sampled: f64, each: Option<f64>| ProcessorOf {
        process: name.to_owned(),
        sampled,
        cores: each.map(|_| 0.5),
        ns_per_transaction: each,
    };
    again.processor.processes.push(node("node-1", 0.755, Some(7_550_000.0)));
    again.processor.processes.push(node("node-2", 0.0, None));
    again.processor.ns_per_transaction = None;
    let mut calm = trial("load=calm");
    calm.attempts = attempts(&calm.counts, 3);
    again.health = Some(HealthResult {
        opened: 23,
        reopened: 7,
        closed: 3,
        reset: 4,
        unopened: 1,
        protocol_errors: 2,
        unasked_bytes: 612,
        lost: 9,
        doubtful: 131,
        answers_min: 0,
        answers_mean: Some(1_491.0 / 23.0),
        answers_max: 140,
    });
    calm.health = Some(HealthResult {
        opened: 16,
        answers_min: 90,
        answers_mean: Some(1_500.0 / 16.0),
        answers_max: 97,
        ..HealthResult::default()
    });
    let mut batched = trial("load=batched");
    batched.batches = Some(BatchesResult {
        count: 64,
        transactions: 1_500,
        size_mean: Some(1_500.0 / 64.0),
        size_max: Some(40),
        full: 20,
        completion: 40,
        delay: 3,
        drain: 1,
    });
    batched.steps = Some(in_steps(&batched.counts));
    let mut old = trial("load=old");
    old.batches = Some(BatchesResult::default());
    let settings =
        [("load=again", again), ("load=calm", calm), ("load=batched", batched), ("load=old", old)];
    run(
        "sending",
        Exit::Ok,
        "every threshold holds and no audit objects",
        settings.map(|(key, trial)| setting(key, vec![trial])).to_vec(),
    )
}

/// Two steps, the first of generators, the second of clients of a closed loop.
fn in_steps(counts: &model::result::Counts) -> StepsResult {
    let first = StepResult {
        length_ns: 5_000_000_000,
        generators: Some(2),
        planned_per_s: Some(100.0),
        offered_per_s: 100.0,
        goodput_per_s: 99.5,
        counts: counts.clone(),
        p50_ns: Some(4_000_000),
        p99_ns: Some(9_000_000),
        max_ns: Some(11_000_000),
        keeps_up: true,
        node_stages_per_s: vec![("apply".to_owned(), 99.0)],
        ..StepResult::default()
    };
    let second = StepResult {
        start_ns: 5_000_000_000,
        generators: None,
        clients: Some(3),
        planned_per_s: None,
        goodput_per_s: 40.25,
        outstanding: 7,
        keeps_up: false,
        ..first.clone()
    };
    StepsResult {
        steps: vec![first, second],
        knee: Some(0),
        peak: Some(0),
        collapses: true,
        recovers: None,
        words: "keeps up at 2 generators <b>; at 3 clients it does not".to_owned(),
    }
}
