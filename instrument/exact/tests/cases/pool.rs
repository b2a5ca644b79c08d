//! A server that answers in 300 ms, any number at once, and a client with a bounded pool of connections.

use std::time::Duration;

use exact::{Client, Law, Script};

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
}
