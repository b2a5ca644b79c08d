//! Answers that come too late, or never.

use std::time::Duration;

use exact::{Law, Script};
use model::Outcome;

use crate::{MS, constant, run};

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
