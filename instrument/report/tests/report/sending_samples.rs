//! A run whose settings differ in how their load leaves: one sends again, one in batches, one of an earlier version.

use model::result::{AttemptsResult, BatchesResult, Exit, RunResult};

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
    let mut calm = trial("load=calm");
    calm.attempts = attempts(&calm.counts, 3);
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
