//! A server that is down for a second of four.

use std::time::Duration;

use exact::{Client, Law, Script};
use model::{Class, Outcome};

use crate::{MS, constant, run_as};

fn down() -> Script {
    let (from, to) = (Duration::from_secs(1), Duration::from_secs(2));
    Script::unbounded(Law::Constant(Duration::from_micros(500))).down(from, to)
}

/// Claim: what falls due while nobody listens is rejected as transport, nothing else is, and who still waits when the
/// connection is back goes in turn.
#[test]
fn a_second_of_four() {
    let experiment = constant("1000/s", "4s", "connections_max = 1", "");
    let kept = run_as(Client::default(), &experiment, |_, _| down());
    let rows = kept.rows();
    assert_eq!(rows.len(), 4_000);
    // It is dialled again after 10, 20, 40, 80, 160, 320 and 500 ms; who waits for a dial that fails is refused.
    let (refused, waiting) = (1_000..=1_630, 1_631..=2_130);
    for row in &rows {
        let due = row.due / MS;
        let is_refused = row.outcome == Outcome::Rejected(Class::Transport);
        assert_eq!(is_refused, refused.contains(&due), "{row:?}");
        assert_eq!(is_refused, row.outcome != Outcome::Committed, "{row:?}");
        if waiting.contains(&due) {
            // One after another, each half a millisecond.
            let turn = 2_130 * MS + (due - 1_631) * MS / 2;
            assert_eq!((row.sent, row.end), (turn, turn + MS / 2), "{row:?}");
        }
    }
}
