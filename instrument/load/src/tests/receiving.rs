//! Late receiving: the engine says how late it read what had arrived.

use std::time::Duration;

use model::NO_STAMP;
use model::facts::ReceiveFacts;

use super::toy::{Act, Kept, Toy, ToySystem, closed, plan, run, with_each_driver};
use crate::threads::Choice;

const MS: i64 = 1_000_000;

/// A second and a half of four clients on a server of a few milliseconds; the sessions of all connections but the first
/// hold the thread up for so long at every tenth answer. What is known of receipts on the first one.
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

fn count(list: &[(i64, u64)]) -> u64 {
    list.iter().map(|(_, count)| count).sum()
}

/// Claim: a worker that was held up for 20 ms says that it read answers late that had arrived meanwhile, with each
/// driver; the response times of the same transactions have the lag in them, and without it they have not.
#[test]
fn a_held_up_worker_reads_late() {
    with_each_driver(|choice| {
        let (receive, kept) = held_up(choice, Duration::from_millis(20));
        assert!(receive.receipts > 0, "{choice:?}: the first connection is one of those");
        if receive.stamped == 0 {
            return eprintln!("this kernel stamps nothing");
        }
        let late = receive.lag.iter().filter(|(ns, _)| *ns > 10 * MS);
        let late: u64 = late.map(|(_, count)| count).sum();
        assert!(late > 0, "{choice:?}: {:?}", receive.lag);
        let of_first = kept.rows.iter().filter(|row| row.connection == 0);
        let committed = of_first.filter(|row| row.marks[0] != NO_STAMP).count() as u64;
        let samples = count(&receive.lag);
        assert!(samples > 0 && samples <= committed, "{choice:?}: {samples} of {committed}");
        assert_eq!((count(&receive.response), count(&receive.without)), (samples, samples));
        let slower = |list: &[(i64, u64)]| {
            let slow = list.iter().filter(|(ns, _)| *ns > 10 * MS);
            slow.map(|(_, count)| count).sum::<u64>()
        };
        let (with, without) = (slower(&receive.response), slower(&receive.without));
        assert!(without < with, "{choice:?}: {without} of {with} were slow without the lag");
    });
}

/// Claim: the relation of the two clocks is stated with its error, and nothing is stamped after it was read, unless
/// somebody sets the wall clock.
#[test]
fn stamps_are_before_readings() {
    with_each_driver(|choice| {
        let (receive, _) = held_up(choice, Duration::ZERO);
        if receive.stamped == 0 || receive.clock_moved_ns > 0 {
            return eprintln!("this kernel stamps nothing, or its clock was set");
        }
        assert_eq!(receive.impossible, 0, "{choice:?}: {receive:?}");
        assert!(receive.clock_error_ns > 0 && receive.clock_error_ns < MS, "{receive:?}");
    });
}
