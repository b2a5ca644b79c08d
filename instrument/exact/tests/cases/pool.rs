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

/// Claim: with 64 connections a transaction waits for the 64th before it, and nothing else.
#[test]
fn the_client_is_the_limit() {
    let kept =
        run_as(Client::default(), &experiment("connections = 64\nconnections_max = 64"), |_, _| {
            slow()
        });
    let rows = kept.ran.rows(2).unwrap();
    assert_eq!(rows.len(), 3_000);
    for (nth, row) in rows.iter().enumerate() {
        let free = nth.checked_sub(64).map_or(0, |before| rows[before].end);
        assert_eq!((row.sent, row.end), (row.due.max(free), row.due.max(free) + 300 * MS));
    }
    for setting in [0, 1] {
        assert_eq!(kept.trial(setting).verdict, Verdict::Pass, "{}", kept.trial(setting).reason);
    }
    let (outcome, said) = kept.audit(2, "connections");
    let words =
        "all 64 connections were busy while service time was flat (300 ms where one was free";
    assert_eq!(outcome, AuditOutcome::Failed, "{said}");
    assert!(said.starts_with(words) && said.contains("the client's pool was the limit"), "{said}");
    assert!(!kept.audit(2, "backlog_drift").1.contains("the system is saturated"));
    let result = &kept.ran.result;
    assert!(result.knee.starts_with("none can be named: at rate=300/s"), "{}", result.knee);
    assert_eq!(result.load_series[0].knee, None, "the client's limit is no knee of the system");
    assert_eq!(result.verdict, Verdict::Invalid);
}

/// Claim: without a bound of its own the pool grows by exactly what is missing, each answer comes 300 ms after its
/// transaction was due, every rate passes, and there is no knee.
#[test]
fn the_pool_grows() {
    let kept = run_as(Client::default(), &experiment("connections = 64"), |_, _| slow());
    for (setting, grown) in [(0, 0), (1, 0), (2, 26)] {
        let rows = kept.ran.rows(setting).unwrap();
        assert!(rows.iter().all(|row| row.end == row.due + 300 * MS));
        let trial = kept.trial(setting);
        assert_eq!((trial.connections.grown, trial.connections.blocked), (grown, 0));
        assert_eq!(trial.rates.goodput_per_s, trial.rates.offered_per_s);
        assert_eq!(trial.verdict, Verdict::Pass, "{}", trial.reason);
    }
    assert_eq!(kept.trial(2).connections.grown_by_second, [(0, 26)]);
    assert_eq!(kept.ran.result.knee, "");
}
