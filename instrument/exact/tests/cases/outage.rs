//! A server that is down for a second of four.

use std::time::Duration;

use exact::{Client, Law, Script};
use model::result::Verdict;
use model::{Class, Outcome};

use crate::{MS, constant, run, run_as};

fn down() -> Script {
    let (from, to) = (Duration::from_secs(1), Duration::from_secs(2));
    Script::unbounded(Law::Constant(Duration::from_micros(500))).down(from, to)
}

/// Claim: what falls due while no server listens is rejected as transport, nothing else is; a threshold that this fails has
/// failed, and one that holds in spite of it holds: an outage is the system's, and no fault of the measurement.
#[test]
fn a_second_of_four() {
    for (promise, verdict) in [("success > 99%", Verdict::Fail), ("success > 70%", Verdict::Pass)] {
        let promise = format!("[[threshold]]\nexpr = '{promise}'");
        let kept = run_as(
            Client::default(),
            &constant("1000/s", "4s", "connections_max = 1", &promise),
            |_, _| down(),
        );
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
        let trial = kept.trial(0);
        assert_eq!(trial.verdict, verdict, "{promise}: {}", trial.reason);
    }
}

/// Claim: with batches, what was under way when the server went down leaves again in one batch with what waits when it is
/// back, to the microsecond; only what fell due while no server listened is rejected.
#[test]
fn what_a_batch_lost_leaves_in_the_next() {
    let (from, to) = (Duration::from_secs(1), Duration::from_secs(2));
    let script = move || Script::unbounded(Law::Constant(Duration::from_millis(3))).down(from, to);
    let load = "timeout = '5s'\nbatch = { size_max = 8, delay_max = '5ms', in_flight_max = 1 }\n\
                resend = { attempts_max = 9, after = '5s' }";
    let kept = run(&constant("1000/s", "4s", load, ""), script);
    let rows = kept.rows();
    assert_eq!(rows.len(), 4_000);
    // From the first answer on a batch comes back every three milliseconds, and takes along what fell due meanwhile.
    let lost: Vec<i64> =
        rows.iter().filter(|row| row.attempts == 2).map(|row| row.due / MS).collect();
    let first = lost[0];
    assert!((995..=998).contains(&first) && lost == [first, first + 1, first + 2], "{lost:?}");
    let back = 2_130 * MS;
    for row in &rows {
        let due = row.due / MS;
        let is_refused = (first + 3..=1_630).contains(&due);
        let expected =
            if is_refused { Outcome::Rejected(Class::Transport) } else { Outcome::Committed };
        assert_eq!(row.outcome, expected, "{row:?}");
        if lost.contains(&due) {
            assert_eq!(row.end, back + 3 * MS, "{row:?}");
        } else if (1_631..1_636).contains(&due) {
            assert_eq!((row.sent, row.end, row.attempts), (back, back + 3 * MS, 1), "{row:?}");
        } else if !is_refused {
            assert_eq!(row.end - row.sent, 3 * MS, "{row:?}");
        }
    }
}
