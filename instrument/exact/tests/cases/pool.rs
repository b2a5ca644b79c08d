//! A server that answers in 300 ms, any number at once, and a client with a bounded pool of connections.

use std::time::Duration;

use exact::{Client, Law, Script};
use model::result::{AuditOutcome, Verdict};

use crate::{MS, run_as};

const EXPERIMENT: &str = "
name = 'pool'
question = 'Is the limit of the client pool told from that of the system?'
[system]
kind = 'script'
[load]
rate = '100/s'
duration = '10s'
warmup = '0s'
";
const MATRIX: &str = "
[matrix]
rate = { set = 'load.rate', values = ['100/s', '200/s', '300/s'] }
";

fn slow() -> Script {
    Script::unbounded(Law::Constant(Duration::from_millis(300)))
}

fn experiment(connections: &str) -> String {
    format!("{EXPERIMENT}{connections}\n{MATRIX}")
}

/// Claim: with 64 connections a transaction waits for the 64th before it, and nothing else; service stays flat while
/// response grows, that is the pool's limit, and no knee of the system is named there.
#[test]
fn the_client_is_the_limit() {
    let kept = run_as(
        Client::default(),
        &experiment("connections = 64\nconnections_max = 'fixed'"),
        |_, _| slow(),
    );
    let rows = kept.ran.rows(2).unwrap();
    assert_eq!(rows.len(), 3_000);
    for (nth, row) in rows.iter().enumerate() {
        let free = nth.checked_sub(64).map_or(0, |before| rows[before].end);
        assert_eq!((row.sent, row.end), (row.due.max(free), row.due.max(free) + 300 * MS));
    }
    let result = &kept.ran.result;
    assert!(result.load_series.iter().all(|series| series.knee.is_none()), "{}", result.knee);
    assert!(result.knee.contains("connections were the limit"), "{}", result.knee);
    for (setting, outcome) in
        [AuditOutcome::Ok, AuditOutcome::Ok, AuditOutcome::Failed].iter().enumerate()
    {
        let found = kept.audit(setting, "connections");
        assert_eq!(found.0, *outcome, "{}", found.1);
    }
}

/// Claim: connections grow on demand unless they are bounded, so that the system is what is measured.
#[test]
fn connections_grow() {
    let kept = run_as(Client::default(), &experiment(""), |_, _| slow());
    for setting in 0..3 {
        assert!(kept.ran.rows(setting).unwrap().iter().all(|row| row.end == row.due + 300 * MS));
        let trial = kept.trial(setting);
        assert_eq!(trial.verdict, Verdict::Pass, "{}", trial.reason);
    }
}
