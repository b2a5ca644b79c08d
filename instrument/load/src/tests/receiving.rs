//! Late receiving: a mark is of when its answer arrived, by the kernel, and its row says how late the engine read it.

use std::time::Duration;

use model::facts::ReceiveFacts;

use super::toy::{Act, Kept, Toy, ToySystem, closed, constant, plan, run, with_each_driver};
use super::transports::{start_tls, tls_system};
use crate::threads::Choice;

const MS: i64 = 1_000_000;

/// A second and a half of four clients on a server of a few milliseconds; the sessions hold the thread up for so long at
/// every tenth answer.
fn held_up(choice: Choice, holds: Duration) -> (ReceiveFacts, Kept) {
    let toy = Toy::start(|asked| {
        let pause = Duration::from_millis(1 + asked.nth % 7);
        vec![Act::Pause(pause), Act::Answer(asked.id, 0)]
    });
    let mut plan = plan(closed(4));
    plan.load.duration = Duration::from_millis(1_500);
    let system = ToySystem { holds, ..ToySystem::new(toy.address) };
    let (facts, kept) = run(&plan, &system, choice);
    (facts.workers[0].receive.clone(), kept)
}

/// Every row with a stamp, whatever the machine does: nothing is in it that cannot be. Says how many have one.
fn check_rows(choice: Choice, receive: &ReceiveFacts, kept: &Kept) -> usize {
    assert!(receive.clock_error_ns > 0 && receive.clock_error_ns < MS, "{choice:?}: {receive:?}");
    if receive.clock_moved_ns == 0 {
        assert_eq!((receive.impossible, receive.early), (0, 0), "{choice:?}: {receive:?}");
    }
    let mut stamped = 0;
    for row in &kept.rows {
        let Some(lag) = row.receive_lag_ns() else { continue };
        stamped += 1;
        assert!(lag >= 0 && row.marks[0] >= row.sent, "{choice:?}: {row:?}");
        assert_eq!(row.marks[0], row.end, "{choice:?}: {row:?}");
    }
    stamped
}

/// Claim: a worker that was held up for 20 ms says in the rows of what had arrived meanwhile that it read them late, with
/// each driver; the lag is in no mark, so that what the server answers in 7 ms at the most is not that late on account of it.
#[test]
fn a_held_up_worker_reads_late() {
    with_each_driver(|choice| {
        let (receive, kept) = held_up(choice, Duration::from_millis(20));
        assert!(receive.receipts > 0, "{choice:?}: all connections are those");
        if receive.stamped == 0 {
            return eprintln!("this kernel stamps nothing");
        }
        let stamped = check_rows(choice, &receive, &kept);
        if receive.clock_moved_ns == 0 {
            assert_eq!(stamped, kept.rows.len(), "{choice:?}: every row has a stamp");
        }
        let late = kept.rows.iter().filter(|row| row.receive_lag > 10 * MS).count();
        assert!(late > 0, "{choice:?}: nothing was read late");
    });
}

/// Claim: over TLS a mark is of when the kernel received the last byte of its record, in an open load as in a closed one.
#[test]
fn tls_is_stamped_too() {
    with_each_driver(|choice| {
        for arrivals in [constant(300), closed(3)] {
            let (address, roots) = start_tls();
            let system = tls_system(address, roots, "localhost");
            let (facts, kept) = run(&plan(arrivals), &system, choice);
            let receive = &facts.workers[0].receive;
            if receive.stamped == 0 {
                return eprintln!("this kernel stamps nothing");
            }
            let stamped = check_rows(choice, receive, &kept);
            assert!(stamped > 0 && (receive.clock_moved_ns > 0 || stamped == kept.rows.len()));
        }
    });
}
