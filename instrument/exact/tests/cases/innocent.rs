//! Servers and loads that nothing is wrong with: no audit may object, whatever the seed.

use std::time::Duration;

use exact::{Law, Script};
use model::Seed;
use model::result::{AuditOutcome, Verdict};

use crate::{Kept, constant, run};

fn is_content(kept: &Kept) {
    let trial = kept.trial(0);
    assert_eq!(trial.verdict, Verdict::Pass, "{}", trial.reason);
    let objections = trial.audits.iter().filter(|audit| audit.outcome == AuditOutcome::Failed);
    assert_eq!(objections.count(), 0, "{:?}", trial.audits);
}

/// Claim: short steps of a few transactions each are not condemned by the rounding of their counts.
#[test]
fn short_steps() {
    let steps: String = [7, 9, 11, 13, 15, 17]
        .map(|rate| format!("[[load.steps]]\nrate = '{rate}/s'\nfor = '500ms'\n"))
        .concat();
    let experiment = format!(
        "name = 'steps'\nquestion = 'Is rounding no fault?'\n[system]\nkind = 'script'\n\
         [load]\nwarmup = '0s'\n{steps}"
    );
    let kept = run(&experiment, || Script::unbounded(Law::Constant(Duration::from_millis(3))));
    is_content(&kept);
    let rows = kept.rows();
    assert!(rows.iter().all(|row| row.end == row.due + 3_000_000));
    assert_eq!(rows.len(), 4 + 5 + 6 + 7 + 8 + 9, "each step begins with one");
}

/// Claim: a queue at half of its capacity is no suspect, with ten seeds of arrivals and services.
#[test]
fn half_loaded() {
    for seed in 1..=10 {
        let load = "arrival = 'poisson'";
        let experiment = constant("200/s", "10s", load, "");
        let experiment = format!("seed = {seed}\n{experiment}");
        let mean = Duration::from_micros(2_500);
        is_content(&run(&experiment, || Script::queue(1, Law::Exponential(mean, Seed(seed)))));
    }
}
