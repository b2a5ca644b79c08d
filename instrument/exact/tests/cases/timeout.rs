//! One clock for the timeout, from due.

use std::time::Duration;

use exact::{Client, Law, Script};
use model::{NO_STAMP, Outcome};

use crate::{MS, constant, run, run_as};

/// Claim: an answer that comes after the timeout is none, and the row ends exactly then.
#[test]
fn silence() {
    let answers = || Script::unbounded(Law::Constant(Duration::from_millis(5))).silent_every(10);
    let load = "timeout = '250ms'";
    let kept = run(&constant("100/s", "5s", load, ""), answers);
    let rows = kept.rows();
    for row in &rows {
        let (outcome, length) = match (row.tx + 1).is_multiple_of(10) {
            true => (Outcome::Unknown, 250),
            false => (Outcome::Committed, 5),
        };
        assert_eq!((row.outcome, row.end), (outcome, row.due + length * MS), "{row:?}");
    }
    assert_eq!(rows.len(), 500);
}

/// Claim: waiting for a connection and waiting for the answer share one timeout: nothing that took longer than it counts
/// as committed.
#[test]
fn one_clock() {
    let slow = || Script::unbounded(Law::Constant(Duration::from_millis(90)));
    let load = "timeout = '100ms'\nconnections_max = 'fixed'";
    let kept = run_as(Client::default(), &constant("20/s", "2s", load, ""), |_, _| slow());
    let rows = kept.rows();
    let late =
        |row: &&model::Row| row.outcome == Outcome::Committed && row.end - row.due > 100 * MS;
    assert_eq!(rows.iter().filter(late).count(), 0);
    let over = |row: &&model::Row| row.outcome == Outcome::Unknown || row.sent == NO_STAMP;
    assert!(rows.iter().filter(over).all(|row| row.end == row.due + 100 * MS));
}
