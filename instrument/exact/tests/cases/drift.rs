//! A server that is offered a little more than it can do.

use std::time::Duration;

use exact::{Law, Script};
use model::result::{AuditOutcome, Verdict};

use crate::{MS, constant, run};

/// Exactly 200/s.
fn of_200() -> Script {
    Script::queue(1, Law::Constant(Duration::from_millis(5)))
}

/// Claim: at 203/s a server of 200/s is never idle, so that each transaction leaves 5 ms after the one before it; what it
/// did within the window is 200/s and no more, and the growing queue is seen: the response times do not hold. The goodput does,
/// so that without a threshold the trial passes.
#[test]
fn a_little_too_much() {
    let kept = run(&constant("203/s", "20s", "", ""), of_200);
    let rows = kept.rows();
    assert_eq!(rows.len(), 4_060);
    for (row, nth) in rows.iter().zip(1_i64..) {
        assert_eq!(row.end, 5 * MS * nth, "{row:?}");
    }
    let trial = kept.trial(0);
    assert_eq!(trial.counts.committed, 4_060);
    let goodput = trial.rates.goodput_per_s;
    assert!((199.0..=200.5).contains(&goodput), "{goodput}");
    let drift = kept.audit(0, "backlog_drift");
    assert_eq!(drift.0, AuditOutcome::Failed, "{}", drift.1);
    assert!(trial.reason.contains("backlog_drift"), "{}", trial.reason);
    assert_eq!(trial.verdict, Verdict::Pass, "{}", trial.reason);
}

/// Claim: at just its own rate nothing waits, and the trial passes.
#[test]
fn just_enough() {
    let kept = run(&constant("200/s", "20s", "", ""), of_200);
    assert!(kept.rows().iter().all(|row| row.end == row.due + 5 * MS));
    let trial = kept.trial(0);
    assert_eq!(trial.rates.goodput_per_s, 200.0);
    assert_eq!(trial.verdict, Verdict::Pass, "{}", trial.reason);
}
