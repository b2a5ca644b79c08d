//! Counts of another reader of a trial's rows, for the coverage-guided fuzz target and its test: bytes that may be
//! anybody's, added to a trial that has steps, faults, agents, nodes and refusals, so that every part reads some.

use std::time::Duration;

use model::facts::{AgentFacts, DeclaredFacts, Environment, KindFacts, LoadFacts, TrialFacts};
use model::plan::{Arrivals, Level, LoadPlan, SettingPlan, ThresholdPlan};
use model::quantity::Rate;

use crate::judge::checks::Checks;
use crate::trial::{TrialAnalysis, TrialInput};

/// Adds `bytes` to a trial without rows. It must come back for every input, having taken memory in proportion to it.
pub fn fuzz_counts(bytes: &[u8]) {
    with_trial(|analysis| {
        let _ = analysis.add(bytes);
    });
}

fn with_trial(f: impl FnOnce(&mut TrialAnalysis<'_>)) {
    const SECONDS: u64 = 61;
    let load =
        LoadPlan::plain(Arrivals::constant(Rate::per_second(100)), 4, Duration::from_secs(SECONDS));
    let setting = SettingPlan::plain("echo", load);
    let agent = |first_worker| AgentFacts { first_worker, ..AgentFacts::default() };
    let ns = 1_000_000_000 * i64::try_from(SECONDS).expect("two minutes");
    let facts = TrialFacts {
        declared: DeclaredFacts {
            setting: "default".into(),
            stages: vec!["accepted".into(), "committed".into()],
            final_stage: 1,
            kinds: vec![KindFacts::recorded("tx"), KindFacts::recorded("other")],
            measure_end: ns,
            ..DeclaredFacts::default()
        },
        load: LoadFacts { drain_end: ns, agents: vec![agent(0), agent(2)], ..LoadFacts::default() },
        complete: true,
        ..TrialFacts::default()
    };
    let thresholds =
        ["p99 < 10ms", "success >= 99%"].map(|expr| ThresholdPlan::new(expr, Level::Fail));
    let input = TrialInput {
        path: String::new(),
        setting: &setting,
        thresholds: &thresholds,
        percentiles: &[0.5],
        facts: &facts,
        metrics: &[],
        environment: &Environment::default(),
        dropped_bytes: 0,
    };
    f(&mut TrialAnalysis::new(input, Checks::default()));
}

#[cfg(test)]
mod tests {
    use model::{Class, Outcome};

    use super::*;
    use crate::testing::row;

    /// Claim: counts that are cut off, or of which a byte is another, are added or refused, and never end the program.
    #[test]
    fn seeds_and_their_neighbours() {
        let mut counts = Vec::new();
        with_trial(|analysis| {
            let outcomes = [
                Outcome::Committed,
                Outcome::Committed,
                Outcome::Rejected(Class::Server),
                Outcome::Unknown,
                Outcome::Shed,
            ];
            let rows = (0_u8..40).map(|tx| {
                let due = i64::from(tx) * 50_000_000;
                let mut row = row(tx.into(), due, 2_000_000, outcomes[usize::from(tx % 5)]);
                (row.worker, row.kind) = (tx % 4, u32::from(tx % 2));
                (row.code, row.error) = (200 + u16::from(tx % 3), u16::from(tx % 4));
                row
            });
            analysis.rows(&rows.collect::<Vec<_>>());
            counts = analysis.counts();
        });
        // One in twenty-three: a trial is made anew for each.
        for at in (0..counts.len()).step_by(23) {
            fuzz_counts(&counts[..at]);
            for value in [1, 0x80] {
                let mut changed = counts.clone();
                changed[at] = value;
                fuzz_counts(&changed);
            }
        }
    }
}
