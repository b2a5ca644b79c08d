//! Failures: connections that close, servers that are silent, gone or garbled, a full disk, a stop.

use std::sync::Arc;
use std::time::Duration;

use model::{Class, Outcome};
use sut::Abandon;

use super::toy::{
    Act, GARBAGE, Kept, Toy, ToySystem, closed, constant, count, plan, run, try_run,
    with_each_driver,
};
use crate::{Control, LoadError};

/// Claim: when the server closes connections under transactions, what was outstanding on them is unknown, the
/// rest goes on over new connections, and not one transaction is lost from the count.
#[test]
fn closing_connections_lose_nothing() {
    with_each_driver(|choice| {
        for in_flight_max in [1, 8] {
            let server = Toy::start(|asked| match asked.nth % 25 {
                24 => vec![Act::Close],
                _ => vec![Act::Answer(asked.id, 0)],
            });
            let system = ToySystem { in_flight_max, ..ToySystem::new(server.address) };
            let (facts, kept) = run(&plan(constant(1_000)), &system, choice);
            assert_eq!(kept.rows.len(), 300);
            let unknown = count(&kept.rows, Outcome::Unknown);
            assert!((8..=100).contains(&unknown), "{unknown}");
            assert!(count(&kept.rows, Outcome::Committed) >= 200);
            assert!(facts.workers[0].connects > 8, "reopened after each loss");
            let seen = facts.workers[0].connections;
            assert_eq!(seen.lost, unknown as u64, "each unknown one was lost with its connection");
            assert!(seen.closed + seen.reset >= 8 && seen.reopened >= 8, "{seen:?}");
            assert_eq!(seen.answers, count(&kept.rows, Outcome::Committed) as u64);
            assert!(seen.answers_min <= seen.answers / seen.opened, "{seen:?}");
            assert!(
                seen.answers_max >= seen.answers / seen.opened && seen.doubtful == 0,
                "{seen:?}"
            );
            let lost = kept.rows.iter().find(|row| row.outcome == Outcome::Unknown).unwrap();
            let text = &facts.errors[usize::from(lost.error)];
            assert!(text.starts_with("the connection was"), "{text}");
        }
    });
}

/// Claim: a timeout ends a transaction as unknown; where answers could no longer be told apart, the connection
/// is closed and opened anew, and the others on it end, too.
#[test]
fn timeouts_end_and_close() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| match asked.id % 10 {
            5 => vec![],
            _ => vec![Act::Answer(asked.id, 0)],
        });
        // So long that a busy machine does not run into it, and of connections so many that some are always free.
        let mut plan = plan(constant(100));
        plan.load.timeout = Duration::from_millis(400);
        plan.load.duration = Duration::from_millis(1_500);
        (plan.load.connections, plan.load.connections_max) = (16, 16);
        let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
        assert_eq!(count(&kept.rows, Outcome::Unknown), 15);
        assert_eq!(count(&kept.rows, Outcome::Committed), 135);
        // Those that time out after the last due time are not needed any more.
        assert!((24..=31).contains(&facts.workers[0].connects), "{}", facts.workers[0].connects);
        let keep = ToySystem {
            abandon: Abandon::Keep,
            in_flight_max: 50,
            ..ToySystem::new(server.address)
        };
        let (facts, kept) = run(&plan, &keep, choice);
        assert_eq!(count(&kept.rows, Outcome::Unknown), 15);
        assert_eq!(facts.workers[0].connects, 16);
    });
}

/// Claim: what no connection takes waits up to the bound with its due time; beyond it, and beyond the timeout,
/// it is shed and counted.
#[test]
fn backlog_is_bounded_and_shed() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            vec![Act::Pause(Duration::from_millis(40)), Act::Answer(asked.id, 0)]
        });
        let mut plan = plan(constant(1_000));
        plan.load.backlog_max = 20;
        let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
        let shed = count(&kept.rows, Outcome::Shed);
        assert_eq!(shed + count(&kept.rows, Outcome::Committed), 300);
        assert!(shed > 200, "4 connections take 100 a second: {shed} were shed");
        assert_eq!(facts.workers[0].backlog_max, 20);
        assert_eq!(facts.workers[0].backlog_full, shed as u64);
        plan.load.backlog_max = 100_000;
        plan.load.timeout = Duration::from_millis(100);
        let (_, kept) = run(&plan, &ToySystem::new(server.address), choice);
        for row in kept.rows.iter().filter(|row| row.outcome == Outcome::Shed) {
            assert!(row.end - row.due >= 100_000_000, "waited for the timeout first: {row:?}");
        }
        assert!(count(&kept.rows, Outcome::Shed) > 100);
    });
}

/// Claim: a load against an address that no server listens on does not begin, and says so with the address.
#[test]
fn nobody_listens() {
    with_each_driver(|choice| {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut kept = Kept::default();
        let system = ToySystem::new(address);
        let error = try_run(&plan(constant(10)), &system, choice, &mut kept, Arc::default());
        let error = error.unwrap_err();
        assert!(matches!(error, LoadError::Connect { .. }));
        assert_eq!(
            error.to_string(),
            format!(
                "opening connections to {address}: connection refused; is the system up, and is this its address?"
            )
        );
        assert!(kept.rows.is_empty());
    });
}

/// Claim: connections that the first node refuses before the load go where the system says next, and the load is whole.
#[test]
fn the_next_node_listens() {
    with_each_driver(|choice| {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let second = Toy::prompt();
        let system = ToySystem { next: Some(second.address), ..ToySystem::new(address) };
        let (facts, kept) = run(&plan(constant(500)), &system, choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 150);
        let worker = &facts.workers[0];
        assert_eq!((worker.connects, worker.connect_failures), (4, 4));
    });
}

/// Claim: when the server goes away in mid-trial, what was due afterwards is rejected as transport, with the
/// reason, not silently late.
#[test]
fn the_server_goes_away() {
    with_each_driver(|choice| {
        let server = std::sync::Mutex::new(Some(Toy::start(|asked| match asked.nth {
            50.. => vec![Act::Close],
            _ => vec![Act::Answer(asked.id, 0)],
        })));
        let address = server.lock().unwrap().as_ref().unwrap().address;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                drop(server.lock().unwrap().take());
            });
            let (facts, kept) = run(&plan(constant(500)), &ToySystem::new(address), choice);
            let refused: Vec<_> = kept
                .rows
                .iter()
                .filter(|row| row.outcome == Outcome::Rejected(Class::Transport))
                .collect();
            assert!(refused.len() > 20, "{}", refused.len());
            assert!(facts.errors.iter().any(|text| text == "connection refused"));
            assert_eq!(facts.workers[0].refused, refused.len() as u64);
            assert!(facts.workers[0].connect_failures > 0);
        });
    });
}

/// Claim: bytes that are not of the protocol end the connection and what is on it, and are counted.
#[test]
fn garbage_is_counted() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            vec![Act::Answer(asked.id, if asked.id == 40 { GARBAGE } else { 0 })]
        });
        let (facts, kept) = run(&plan(constant(500)), &ToySystem::new(server.address), choice);
        assert_eq!(facts.workers[0].protocol_errors, 1);
        let seen = facts.workers[0].connections;
        assert!((1..40).contains(&seen.doubtful), "what that connection had answered: {seen:?}");
        assert_eq!((seen.lost, seen.reopened, seen.answers), (1, 1, 149), "{seen:?}");
        assert_eq!(kept.rows[40].outcome, Outcome::Unknown);
        assert_eq!(
            facts.errors[usize::from(kept.rows[40].error)],
            "not the protocol: no such code"
        );
        assert_eq!(count(&kept.rows, Outcome::Committed), 149);
    });
}

/// Claim: a sink that can take no more stops the load at once; the facts say why and how many rows it cost.
#[test]
fn a_full_disk_stops_the_load() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let mut kept = Kept { errs_after: Some(100), ..Kept::default() };
        let mut plan = plan(closed(8));
        plan.load.duration = Duration::from_secs(30);
        let system = ToySystem::new(server.address);
        let facts = try_run(&plan, &system, choice, &mut kept, Arc::default()).unwrap().facts;
        assert!(
            facts
                .interrupted
                .starts_with("the record could not be written: no space left on device (")
        );
        assert!(facts.cut_at.is_some_and(|cut| cut < 10_000_000_000));
        let due: u64 = facts.workers.iter().map(|worker| worker.due).sum();
        let lost: u64 =
            facts.interrupted.split(['(', ' ']).filter_map(|word| word.parse::<u64>().ok()).sum();
        assert_eq!(due, kept.rows.len() as u64 + lost, "every row was kept or counted as lost");
    });
}

/// Claim: a stop ends the due times and drains; a quit cuts the drain. In both cases each transaction has a row.
#[test]
fn stop_and_quit() {
    with_each_driver(|choice| {
        for quits in [false, true] {
            let server = Toy::start(|asked| {
                vec![Act::Pause(Duration::from_millis(50)), Act::Answer(asked.id, 0)]
            });
            let control = Arc::new(Control::default());
            let asks = Arc::clone(&control);
            let stopper = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(120));
                asks.stop();
                if quits {
                    asks.quit();
                }
            });
            let mut plan = plan(closed(4));
            plan.load.duration = Duration::from_secs(30);
            let mut kept = Kept::default();
            let system = ToySystem::new(server.address);
            let facts = try_run(&plan, &system, choice, &mut kept, control).unwrap().facts;
            stopper.join().unwrap();
            let left = count(&kept.rows, Outcome::Unknown) as u64;
            assert_eq!(facts.drain_left, left);
            assert_eq!(left > 0, quits);
            assert_eq!(facts.drain_end == model::NO_STAMP, quits);
            assert!(facts.interrupted.starts_with("stopped by request"));
            assert!(facts.cut_at.is_some_and(|cut| cut < 1_000_000_000));
            assert_eq!(kept.rows.len() as u64, facts.workers[0].due);
        }
    });
}

/// Claim: a drain that takes too long is cut at its bound, and what is left is unknown and counted.
#[test]
fn the_drain_is_bounded() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| match asked.id {
            99 => vec![],
            _ => vec![Act::Answer(asked.id, 0)],
        });
        let mut plan = plan(constant(1_000));
        plan.load.duration = Duration::from_millis(100);
        plan.load.drain_max = Duration::from_millis(80);
        let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
        assert_eq!(facts.drain_left, 1);
        assert_eq!(kept.rows[99].outcome, Outcome::Unknown);
        assert!(kept.rows[99].end >= 170_000_000);
        assert!(facts.drain_end >= 170_000_000);
    });
}
