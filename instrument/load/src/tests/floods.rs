//! A connection that sends without end: it may not cost the others their answers, nor the user the end of the trial.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use model::Outcome;

use super::toy::{
    Act, Kept, NOISE, Toy, ToySystem, closed, count, plan, plan_of, run, try_run, with_each_driver,
};
use crate::Control;
use crate::connection::REPLIES_MAX;

/// Longer than any of these trials may take: a trial that waits for its end has been held up by it.
const FLOOD: Duration = Duration::from_secs(12);

/// The first request is answered by noise without end, the others as they should be.
fn flooding() -> Toy {
    Toy::start(|asked| match asked.nth {
        0 => vec![Act::Flood(FLOOD)],
        _ => vec![Act::Answer(asked.id, 0)],
    })
}

/// Claim: while one connection floods, a hundred others have their answers, the flooded one has its timeout, and the
/// trial ends without waiting for the flood.
#[test]
fn a_flood_starves_nobody() {
    with_each_driver(|choice| {
        let server = flooding();
        let mut plan = plan(closed(101));
        plan.load.connections = 101;
        plan.load.connections_max = 101;
        plan.load.transactions_max = 1_000;
        plan.load.duration = Duration::from_secs(3);
        plan.load.timeout = Duration::from_secs(1);
        let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
        assert_eq!(kept.rows.len(), 1_000, "{choice:?}");
        assert_eq!(count(&kept.rows, Outcome::Committed), 999, "{choice:?}");
        let flooded = kept.rows.iter().find(|row| row.outcome == Outcome::Unknown).unwrap();
        assert_eq!(facts.errors[usize::from(flooded.error)], "no answer within the timeout");
        assert_eq!(
            server.floods_ended.load(Relaxed),
            0,
            "{choice:?}: the trial waited for the flood"
        );
    });
}

/// Claim: a stop ends the load, and a quit the drain, while a connection floods.
#[test]
fn a_flood_does_not_keep_from_stopping() {
    with_each_driver(|choice| {
        let server = flooding();
        let control = Arc::new(Control::default());
        let asks = Arc::clone(&control);
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            asks.stop();
            std::thread::sleep(Duration::from_millis(300));
            asks.quit();
        });
        let mut plan = plan(closed(4));
        plan.load.duration = Duration::from_secs(30);
        plan.load.timeout = Duration::from_secs(30);
        let mut kept = Kept::default();
        let system = ToySystem::new(server.address);
        let facts = try_run(&plan, &system, choice, &mut kept, control).unwrap().facts;
        stopper.join().unwrap();
        // Well before the flood and the load would end by themselves.
        assert!(facts.cut_at.is_some_and(|cut| cut < 10_000_000_000), "{choice:?}: {facts:?}");
        assert_eq!(facts.drain_left, 1, "{choice:?}: what is outstanding is the flooded one");
        assert_eq!(
            server.floods_ended.load(Relaxed),
            0,
            "{choice:?}: the trial waited for the flood"
        );
    });
}

/// Claim: a connection that makes its session answer without end, and takes none of the answers, is ended for it long before
/// its answers fill the memory, and said to break the protocol; the others have theirs.
#[test]
fn a_flood_of_questions_is_ended() {
    with_each_driver(|choice| {
        let server = flooding();
        let mut plan = plan(closed(8));
        plan.load.connections = 8;
        plan.load.connections_max = 8;
        plan.load.transactions_max = 200;
        plan.load.duration = FLOOD;
        plan.load.timeout = 2 * FLOOD;
        plan.load.drain_max = 2 * FLOOD;
        let system = ToySystem { replies: true, ..ToySystem::new(server.address) };
        let (facts, kept) = run(&plan, &system, choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), kept.rows.len() - 1, "{choice:?}");
        let flooded = kept.rows.iter().find(|row| row.outcome == Outcome::Unknown).unwrap();
        let why = &facts.errors[usize::from(flooded.error)];
        assert_eq!(why, "the system asks without end and takes no answer", "{choice:?}");
        assert_eq!(facts.workers.iter().map(|it| it.protocol_errors).sum::<u64>(), 1);
        assert_eq!(server.floods_ended.load(Relaxed), 0, "{choice:?}: the flood was waited for");
    });
}

/// Claim: a connection whose session says more than may wait, to a system that takes all of it, stands to the end.
#[test]
fn many_questions_are_answered() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| match asked.id {
            NOISE => Vec::new(),
            id => [vec![Act::Answer(NOISE, 0); 1_000], vec![Act::Answer(id, 0)]].concat(),
        });
        let mut plan = plan_of(400, closed(1));
        (plan.load.connections, plan.load.connections_max) = (1, 1);
        plan.load.timeout = Duration::from_secs(10);
        let system = ToySystem { replies: true, ..ToySystem::new(server.address) };
        let (facts, kept) = run(&plan, &system, choice);
        const { assert!(400 * 1_000 * 9 > 3 * REPLIES_MAX) };
        assert_eq!(count(&kept.rows, Outcome::Committed), 400, "{choice:?}: {:?}", facts.errors);
    });
}
