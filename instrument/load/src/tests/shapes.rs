//! Due times of every schedule, and the connections that transactions go to.

use std::time::Duration;

use model::plan::{Arrivals, Pacing, ProbePlan, ProbeSchedule, Schedule, Step};
use model::quantity::Rate;
use model::{Outcome, PROBE_BASE, Seed};

use super::toy::{Toy, ToySystem, closed, constant, count, plan, plan_of, run, with_each_driver};
use crate::schedule::{DueTimes, Window};

/// Claim: for every open shape and any number of workers, the rows are the schedule: dense ids, each with
/// exactly its due time.
#[test]
fn rows_are_the_schedule() {
    let server = Toy::prompt();
    let rate = Rate::per_second(2_000);
    let shapes = [
        Schedule::Constant { rate },
        Schedule::Poisson { rate },
        Schedule::Ramp { from: Rate::per_second(500), to: Rate::per_second(4_000) },
        Schedule::Steps {
            steps: vec![
                Step { rate, length: Duration::from_millis(100), generators: 0 },
                Step {
                    rate: Rate::per_second(500),
                    length: Duration::from_millis(50),
                    generators: 0,
                },
            ],
        },
        Schedule::Burst { rate, every: Duration::from_millis(50) },
        Schedule::Trace { due_ns: vec![0, 7, 7, 50_000_000, 90_000_000] },
    ];
    with_each_driver(|choice| {
        for (schedule, threads) in shapes.iter().zip([1, 2, 3, 1, 2, 2]) {
            let mut plan = plan(Arrivals::Open { schedule: schedule.clone() });
            plan.load.threads = threads;
            plan.load.warmup = Duration::from_millis(50);
            plan.load.duration = Duration::from_millis(150);
            let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
            let window = Window {
                warmup: plan.load.warmup,
                duration: plan.load.duration,
                events_max: u64::MAX,
            };
            let expected: Vec<_> = DueTimes::new(schedule, window, Seed(42), 0, 1).collect();
            let got: Vec<_> = kept.rows.iter().map(|row| (row.tx, row.due)).collect();
            assert_eq!(got, expected, "{schedule:?}");
            assert_eq!(facts.workers.len(), threads as usize);
            assert!(kept.rows.iter().all(|row| row.outcome == Outcome::Committed), "{schedule:?}");
            assert!(kept.rows.iter().all(|row| u64::from(row.kind) == row.tx % 2));
            assert!(kept.rows.iter().all(|row| row.bytes_out == 8 && row.bytes_in == 9));
            assert_eq!(facts.cut_at, None, "{schedule:?}");
        }
    });
}

/// Claim: each pacing sends what is due, none before its time.
#[test]
fn every_pacing_keeps_the_rate() {
    let server = Toy::prompt();
    with_each_driver(|choice| {
        for pacing in [Pacing::Exact, Pacing::Balanced, Pacing::Coalesced] {
            let mut plan = plan(constant(1_000));
            plan.load.pacing = pacing;
            let (_, kept) = run(&plan, &ToySystem::new(server.address), choice);
            assert_eq!(kept.rows.len(), 300, "{pacing:?}");
        }
    });
}

/// Claim: in a closed loop each client's next transaction is due when its last one ended, or half to one and a half pauses
/// behind; never more are outstanding than there are clients.
#[test]
fn clients_wait_for_their_answers() {
    let server = Toy::prompt();
    with_each_driver(|choice| {
        for (clients, think_ms, threads) in [(3, 0, 1), (10, 0, 2), (5, 20, 2)] {
            let think = Duration::from_millis(think_ms);
            let arrivals = Arrivals::Closed {
                clients,
                think,
                window: 0,
                poll: Duration::ZERO,
                steps: Vec::new(),
            };
            let mut plan = plan(arrivals);
            plan.load.threads = threads;
            plan.load.duration = Duration::from_secs(1);
            let (_, kept) = run(&plan, &ToySystem::new(server.address), choice);
            let firsts = kept.rows.iter().filter(|row| row.due == 0).count();
            assert_eq!(firsts, clients as usize);
            let think_ns = i64::try_from(think.as_nanos()).unwrap();
            let ends: Vec<_> = kept.rows.iter().map(read_at).collect();
            for row in kept.rows.iter().filter(|row| row.due != 0) {
                let thought = |end: &i64| match think_ns {
                    0 => row.due == *end,
                    _ => (think_ns / 2..think_ns * 3 / 2).contains(&(row.due - end)),
                };
                assert!(ends.iter().any(thought), "{row:?} follows no end");
            }
            assert!(kept.rows.len() > if think_ms == 0 { 100 } else { 20 });
            assert!(kept.rows.iter().all(|row| row.due < 1_000_000_000));
        }
    });
}

/// Claim: with a window each connection carries that many at a time, and a session that only asks when it is
/// polled is polled.
#[test]
fn window_and_poll() {
    let server = Toy::prompt();
    with_each_driver(|choice| {
        let poll = Duration::from_millis(2);
        let arrivals = Arrivals::Closed {
            clients: 1_000,
            think: Duration::ZERO,
            window: 5,
            poll,
            steps: Vec::new(),
        };
        let system = ToySystem {
            in_flight_max: 100,
            polls: Some(Duration::from_secs(9)),
            ..ToySystem::new(server.address)
        };
        let mut plan = plan(arrivals);
        plan.load.timeout = Duration::from_secs(60);
        let (facts, kept) = run(&plan, &system, choice);
        let committed = kept.rows.iter().filter(|row| row.sent < 300_000_000).count();
        assert_eq!(count(&kept.rows, Outcome::Committed), kept.rows.len());
        // 4 connections × 5 a poll × 150 polls, less what a busy host takes.
        assert!((500..=3_100).contains(&committed), "{committed}");
        // At the end of the load the clients that never had a connection are still waiting.
        assert!(facts.workers[0].backlog_max >= 980);
    });
}

/// Claim: `max` keeps every connection busy, each transaction being due when its connection became free.
#[test]
fn max_is_as_fast_as_the_connections() {
    let server = Toy::prompt();
    with_each_driver(|choice| {
        let arrivals = Arrivals::Open { schedule: Schedule::Constant { rate: Rate::MAX } };
        let mut plan = plan_of(2_000, arrivals);
        plan.load.threads = 2;
        let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
        assert_eq!(kept.rows.len(), 2_000);
        assert_eq!(kept.rows.last().map(|row| row.tx), Some(1_999));
        assert!(kept.rows.iter().all(|row| row.ready == row.due));
        let last = kept.rows.iter().map(|row| row.due).max().unwrap();
        let cut_at = facts.cut_at.expect("the load ended before its time");
        assert!(cut_at > last, "the measured window ends where the load did");
        assert!(cut_at < 30_000_000_000);
    });
}

/// Claim: the probe runs beside the load on its own connection with ids of its own, and has its own timeout.
#[test]
fn the_probe_is_apart() {
    let server = Toy::prompt();
    with_each_driver(|choice| {
        for schedule in [ProbeSchedule::Open, ProbeSchedule::Sequential] {
            let mut plan = plan(constant(200));
            plan.load.threads = 2;
            plan.load.warmup = Duration::from_millis(50);
            plan.load.duration = Duration::from_secs(2);
            plan.probe = Some(ProbePlan {
                trials: 10,
                schedule,
                interval: Duration::from_millis(10),
                timeout: Duration::from_secs(1),
                connections: 1,
                until: String::new(),
            });
            let (_, kept) = run(&plan, &ToySystem::new(server.address), choice);
            let probes: Vec<_> = kept.rows.iter().filter(|row| row.stream == 1).collect();
            assert_eq!(kept.rows.len() - probes.len(), 410);
            let ids: Vec<_> = probes.iter().map(|row| row.tx - PROBE_BASE).collect();
            assert_eq!(ids, (0..10).collect::<Vec<_>>());
            assert!(probes.iter().all(|row| row.connection == 4 && row.worker == 0));
            for (n, pair) in probes.windows(2).enumerate() {
                let expected = match schedule {
                    ProbeSchedule::Open => 50_000_000 + (n as i64 + 1) * 10_000_000,
                    ProbeSchedule::Sequential => read_at(pair[0]) + 10_000_000,
                };
                assert_eq!(pair[1].due, expected);
            }
        }
    });
}

/// Claim: a server that stalls for 100 ms shows in the response times as the schedule says: who was due
/// during the stall waited for the rest of it.
#[test]
fn a_stall_is_charged_from_the_due_times() {
    use super::toy::Act;
    with_each_driver(|choice| {
        let server = Toy::start(|asked| match asked.nth {
            50 => vec![Act::Pause(Duration::from_millis(100)), Act::Answer(asked.id, 0)],
            _ => vec![Act::Answer(asked.id, 0)],
        });
        let mut plan = plan(constant(1_000));
        plan.load.connections = 1;
        plan.load.connections_max = 1;
        let (_, kept) = run(&plan, &ToySystem::new(server.address), choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 300);
        for (row, waited_ms) in [(60, 90), (100, 50), (140, 10)] {
            let (before, row) = (&kept.rows[row - 1], &kept.rows[row]);
            let response = row.response_ns(0).unwrap();
            assert!(response >= waited_ms * 1_000_000, "a stall leaves {waited_ms} ms: {row:?}");
            let service = row.service_ns(0).unwrap();
            assert!(service < response, "the rest of the wait was not the server's service");
            assert!(row.ready > row.due && row.ready == before.end, "{row:?} after {before:?}");
        }
        // None waits for anything but the one before it.
        for pair in kept.rows.windows(2) {
            assert_eq!(pair[1].ready, pair[1].due.max(pair[0].end), "{pair:?}");
        }
    });
}

/// Claim: the bound on connections is used when all are busy, and not before.
#[test]
fn connections_grow_to_their_bound() {
    use super::toy::Act;
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            vec![Act::Pause(Duration::from_millis(20)), Act::Answer(asked.id, 0)]
        });
        let mut plan = plan(constant(200));
        plan.load.connections = 1;
        plan.load.connections_max = 9;
        let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 60);
        let opened = facts.workers[0].connects;
        assert!((4..=9).contains(&opened), "{opened}");
        let few = super::toy::plan(closed(1));
        let (facts, _) = run(&few, &ToySystem::new(server.address), choice);
        assert_eq!(facts.workers[0].connects, 4, "one client needs no more than the first four");
    });
}

/// When a client has read what ended its transaction.
fn read_at(row: &model::Row) -> i64 {
    row.end + row.receive_lag_ns().unwrap_or(0)
}
