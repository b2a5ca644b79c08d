//! A client whose machine is held up, so that it reads late what had arrived in time: that is no part of any response time.

use std::time::Duration;

use exact::{Law, Script};
use model::result::{Answer, AuditOutcome, Verdict};

use crate::{Kept, MS, constant, run};

/// 10 ms of each tenth of a second, for ten seconds; the server takes 2 ms, always.
fn held_up(thresholds: &str) -> Kept {
    run(&constant("1000/s", "10s", "", thresholds), || {
        let ms = Duration::from_millis;
        let script = Script::unbounded(Law::Constant(ms(2)));
        (0..100).fold(script, |script, nth| {
            script.client_held_up(ms(nth * 100 + 50), ms(nth * 100 + 60))
        })
    })
}

fn promise(expr: &str) -> String {
    format!("[[threshold]]\nexpr = '{expr}'\n")
}

/// Claim: a tenth of the answers is read up to 10 ms late, and each row says by how much; every mark is of when the answer
/// arrived, so that what was read late moves no response time and decides nothing. Nothing was sent late.
#[test]
fn a_tenth_is_read_late() {
    let kept = held_up("");
    for row in &kept.rows() {
        let arrived = row.due + 2 * MS;
        let within = arrived % (100 * MS) / MS;
        let lag = if (50..60).contains(&within) { 60 - within } else { 0 };
        assert_eq!((row.sent, row.end), (row.due, arrived));
        assert_eq!(row.receive_lag_ns(), Some(lag * MS));
    }
    let trial = kept.trial(0);
    let audit = trial.audits.iter().find(|audit| audit.name == "receive_lag").unwrap();
    assert_eq!(audit.outcome, AuditOutcome::Ok, "{}", audit.detail);
    let figure = |name: &str| audit.figures.iter().find(|it| it.name == name).unwrap().value;
    assert_eq!((figure("p50"), figure("share_p50"), figure("share_max")), (0.0, 0.0, 0.0));
    // A thousand of ten thousand are late by 1 to 10 ms, a hundred by each.
    let near = |value: f64, exact: f64| (value - exact).abs() < exact / 100.0;
    assert!(near(figure("p99"), 9e6), "{}", figure("p99"));
    let send_lag = kept.audit(0, "send_lag");
    assert_eq!(send_lag.0, AuditOutcome::Ok, "{}", send_lag.1);
    assert_eq!(trial.verdict, Verdict::Pass, "{}", trial.reason);
}

/// Claim: what a server of 2 ms is asked to keep is answered for the server, whatever the client's machine did.
#[test]
fn promises_beside_it() {
    for (expr, answer, verdict) in [
        ("p99 < 3ms", Answer::Met, Verdict::Pass),
        ("max < 3ms", Answer::Met, Verdict::Pass),
        ("p50 < 1ms", Answer::Failed, Verdict::Fail),
    ] {
        let kept = held_up(&promise(expr));
        let trial = kept.trial(0);
        let told = (trial.thresholds[0].answer, trial.verdict);
        assert_eq!(told, (answer, verdict), "{expr}: {}", trial.reason);
    }
}

/// Claim: an innocent client and server give no alarm: everything was read when it arrived.
#[test]
fn read_in_time() {
    let script = || Script::unbounded(Law::Constant(Duration::from_millis(2)));
    let kept = run(&constant("1000/s", "10s", "", ""), script);
    let found = kept.audit(0, "receive_lag");
    assert_eq!(found.0, AuditOutcome::Ok, "{}", found.1);
    assert!(
        found.1.contains("receive lag p50 0 ns, p99 0 ns in 10,000 transactions"),
        "{}",
        found.1
    );
}
