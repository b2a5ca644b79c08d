//! A server that stands still for a second.

use std::time::Duration;

use exact::{Law, Script};
use model::result::{AuditOutcome, Verdict};

use crate::{MS, constant, is_near, run};

const SERVICE: Duration = Duration::from_millis(2);

/// A server that stalls from `from` to `to` (milliseconds) and otherwise answers in 2 ms.
fn stalling(from: u64, to: u64) -> Script {
    let ms = Duration::from_millis;
    Script::unbounded(Law::Constant(SERVICE)).stalled(ms(from), ms(to))
}

/// Claim: each transaction that falls due in a stall waits for its end, none is left out, and the quantiles are those of
/// the waiting that is due.
#[test]
fn nobody_is_left_out() {
    let kept = run(&constant("1000/s", "10s", "", ""), || stalling(4_000, 5_000));
    let rows = kept.rows();
    assert_eq!(rows.len(), 10_000);
    for row in &rows {
        let due = row.due / MS;
        let expected = match due {
            4_000..5_000 => 5_002 - due,
            3_999 => 1_002,
            _ => 2,
        };
        assert_eq!((row.sent, row.end), (row.due, row.due + expected * MS));
    }
    let trial = kept.trial(0);
    let response = &trial.latency[0].response;
    assert_eq!(response.max_ns, Some(1_002 * MS));
    // Of 10,000 a hundred are longer: 1,002 twice, then 1,001 down to 904 ms.
    let p99 = response.quantiles.iter().find(|quantile| quantile.name == "p99").unwrap();
    assert!(is_near(p99.value_ns, 903 * MS), "{p99:?}");
}

/// Claim: the verdict does not depend on where a stall falls: at the beginning, within the window, or across its end.
#[test]
fn wherever_it_falls() {
    for (from, to) in [(0, 1_000), (2_500, 3_500), (4_200, 5_200), (9_200, 10_200)] {
        let kept = run(&constant("1000/s", "10s", "", ""), || stalling(from, to));
        let trial = kept.trial(0);
        let littles_law = kept.audit(0, "littles_law");
        assert_ne!(littles_law.0, AuditOutcome::Failed, "{from}: {}", littles_law.1);
        assert_eq!(trial.verdict, Verdict::Pass, "{from}: {}", trial.reason);
    }
}
