//! Servers and loads that nothing is wrong with: no audit may object, whatever the seed.

use std::time::Duration;

use exact::{Client, Law, Script};
use model::Seed;
use model::result::{AuditOutcome, AuditResult, Verdict};

use crate::{Kept, MS, constant, run, run_as};

fn is_content(kept: &Kept) {
    let trial = kept.trial(0);
    assert_eq!(trial.verdict, Verdict::Pass, "{}", trial.reason);
    let objections = trial.audits.iter().filter(|audit| audit.outcome == AuditOutcome::Failed);
    assert_eq!(objections.count(), 0, "{:?}", trial.audits);
}

/// Claim: a clean trial, twice, satisfies every audit of the list, those across trials too: none fails, none warns, and
/// none is left out but those of links and of disks, which it has not.
#[test]
fn a_clean_trial_satisfies_all() {
    let experiment = "
name = 'clean'
question = 'Does any audit object to nothing?'
trials = 2
[system]
kind = 'script'
[load]
rate = '400/s'
connections = 4
warmup = '300ms'
duration = '3s'
timeout = '5s'
";
    let client = Client { in_flight_max: 64, closes_after_timeout: false, hears_accepted: false };
    let server = |_: &_, _| Script::queue(64, Law::Constant(Duration::from_millis(20)));
    let kept = run_as(client, experiment, server);
    let asked = analysis::audits_asked();
    let of_trials = &asked[..asked.len() - 1];
    let names = |audits: &[AuditResult]| -> Vec<String> {
        audits.iter().map(|audit| audit.name.clone()).collect()
    };
    let trials = &kept.ran.result.settings[0].trials;
    assert_eq!(trials.len(), 2);
    for trial in trials {
        let expected: Vec<String> = of_trials.iter().map(|audit| audit.name.clone()).collect();
        assert_eq!(names(&trial.audits), expected);
        let response = &trial.latency[0].response;
        assert_eq!((response.min_ns, response.max_ns), (Some(20 * MS), Some(20 * MS)));
        for audit in &trial.audits {
            let is_of_what_it_has_not = ["disks", "links"].contains(&audit.name.as_str());
            let outcome =
                if is_of_what_it_has_not { AuditOutcome::Skipped } else { AuditOutcome::Ok };
            assert_eq!(audit.outcome, outcome, "{}: {}", audit.name, audit.detail);
        }
    }
    assert_eq!(names(&kept.ran.result.audits), ["repeatability"]);
    let across = &kept.ran.result.audits[0];
    assert_eq!(across.outcome, AuditOutcome::Ok, "{}", across.detail);
    assert_eq!((kept.ran.result.verdict, kept.ran.result.exit_code), (Verdict::Pass, 0));
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
