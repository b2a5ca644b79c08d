//! A server whose ledger is not what it acknowledged.

use std::time::Duration;

use exact::{Law, Script};
use model::result::{AuditOutcome, Verdict};

use crate::{constant, run};

/// Claim: a ledger that lost and doubled has failed, with each by its number, and its measurement holds.
#[test]
fn lost_and_doubled() {
    let lies = || {
        let answers = Law::Constant(Duration::from_millis(1));
        Script::unbounded(answers).loses_every(400).repeats_every(700)
    };
    let kept = run(&constant("500/s", "4s", "", ""), lies);
    let trial = kept.trial(0);
    let fates = trial.fates.as_ref().unwrap();
    assert_eq!((fates.entries, fates.once), (1_997, 1_993));
    assert_eq!((fates.lost, fates.duplicate, fates.phantom), (5, 2, 0));
    assert_eq!(fates.examples["lost"], [399, 799, 1_199, 1_599, 1_999]);
    assert_eq!(fates.examples["duplicate"], [699, 1_399]);
    assert_eq!(trial.verdict, Verdict::Fail, "{}", trial.reason);
    assert_eq!(kept.ran.result.exit_code, 99);
    let is_broken = |audit: &&model::result::AuditResult| audit.outcome == AuditOutcome::Failed;
    let broken: Vec<_> = trial.audits.iter().filter(is_broken).collect();
    assert!(broken.is_empty(), "{broken:?}");
}
