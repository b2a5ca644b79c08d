//! Transactions that leave together: when, how many, and what their stamps say.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Instant;
use model::facts::{BatchFacts, LoadFacts};
use model::plan::{Arrivals, BatchPlan, Schedule, SettingPlan};
use model::quantity::Rate;
use model::{NO_STAMP, Outcome, Row, Stamp};
use sut::Abandon;

use super::toy::{
    Act, Toy, ToySystem, closed, constant, count, plan, plan_of, run, with_each_driver,
};
use super::virtual_time::{self, try_load_of};
use crate::scripted::{Agenda, Happening, Server};

const LONG: Duration = Duration::from_secs(4);

/// A plan with batches on so many connections.
fn batched(
    arrivals: Arrivals,
    connections: u32,
    size_max: u32,
    delay_max: Duration,
    in_flight_max: u32,
) -> SettingPlan {
    let mut plan = plan(arrivals);
    plan.load.connections = connections;
    plan.load.connections_max = connections;
    plan.load.batch = Some(BatchPlan { size_max, delay_max, in_flight_max });
    plan
}

fn batches(facts: &LoadFacts) -> BatchFacts {
    facts.workers.iter().fold(BatchFacts::default(), |sum, worker| BatchFacts {
        count: sum.count + worker.batches.count,
        transactions: sum.transactions + worker.batches.transactions,
        size_max: sum.size_max.max(worker.batches.size_max),
        full: sum.full + worker.batches.full,
        completion: sum.completion + worker.batches.completion,
        delay: sum.delay + worker.batches.delay,
        drain: sum.drain + worker.batches.drain,
    })
}

/// Requests by connection and the moment at which they left, in that order.
fn sendings(rows: &[Row]) -> BTreeMap<(u32, Stamp), Vec<Row>> {
    let mut found = BTreeMap::<_, Vec<Row>>::new();
    for row in rows.iter().filter(|row| row.sent != NO_STAMP) {
        found.entry((row.connection, row.sent)).or_default().push(*row);
    }
    found
}

/// Asserts that no batch left a connection while as many as may be were outstanding on it.
#[track_caller]
fn expect_one_at_a_time(rows: &[Row]) {
    let sendings = sendings(rows);
    for (one, next) in sendings.iter().zip(sendings.iter().skip(1)) {
        if one.0.0 == next.0.0 {
            let back = one.1.iter().map(|row| row.end).max().expect("not empty");
            assert!(next.0.1 >= back, "{:?} left before {back}", next.0);
        }
    }
}

/// Claim: without batches a session is told once a flush that all was gathered, so that one which frames what leaves
/// together hides nothing.
#[test]
fn every_flush_is_gathered() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let (facts, kept) = run(&plan_of(2_000, closed(8)), &ToySystem::gathering(&server), choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 2_000);
        assert_eq!(batches(&facts), BatchFacts::default());
    });
}

/// Due times from a list, in milliseconds.
fn trace(due_ms: &[u64]) -> Arrivals {
    let due_ns = due_ms.iter().map(|ms| ms * 1_000_000).collect();
    Arrivals::Open { schedule: Schedule::Trace { due_ns } }
}

/// Claim: a batch leaves when it is full; what is left over leaves when a batch is back or in the drain, and not
/// after its delay.
#[test]
fn full_batches_leave() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let plan = batched(trace(&[0; 95]), 1, 10, LONG, 16);
        let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
        let found = batches(&facts);
        assert_eq!((found.count, found.transactions, found.full), (10, 95, 9), "{found:?}");
        assert_eq!((found.completion + found.drain, found.delay), (1, 0), "{found:?}");
        assert_eq!(found.size_max, 10);
        assert_eq!(count(&kept.rows, Outcome::Committed), 95);
        assert!(kept.rows.iter().all(|row| row.sent < 2_000_000_000));
    });
}

/// Claim: its transactions were ready when the last of a full batch fell due, so that waiting for company is no lag
/// of the engine.
#[test]
fn ready_is_when_the_batch_could_leave() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let plan = batched(trace(&[0, 0, 5, 30]), 1, 4, LONG, 1);
        let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
        assert_eq!(batches(&facts).full, 1);
        assert!(kept.rows.iter().all(|row| row.ready == 30_000_000 && row.sent >= row.ready));
    });
}

/// Claim: the oldest waits for the delay from its due time and no longer is asked of it; all that came meanwhile
/// leaves with it.
#[test]
fn the_delay_is_from_the_oldest() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let delay = Duration::from_millis(40);
        let plan = batched(constant(200), 2, 1_000, delay, 8);
        let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), kept.rows.len());
        let found = batches(&facts);
        assert!(found.delay >= 2 && found.full == 0, "{found:?}");
        assert!(found.transactions >= found.count * 2, "some had company: {found:?}");
        for (_, batch) in sendings(&kept.rows) {
            let oldest = batch.iter().map(|row| row.due).min().expect("not empty");
            let whole = oldest + 40_000_000;
            let is_drained = batch.iter().any(|row| row.sent >= 290_000_000);
            let is_good = |row: &Row| row.ready == whole.max(row.due) && row.sent >= whole;
            // An answer that took longer than ten milliseconds let the next batch leave earlier.
            let is_early = found.completion > 0;
            assert!(is_drained || is_early || batch.iter().all(is_good), "{batch:?}");
        }
    });
}

/// Claim: what waits when the last batch comes back leaves at once, although its delay has not passed, no other
/// transaction comes, and it is not full. (A published client leaves it until the next submission.)
#[test]
fn completion_flushes() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            let pause = Duration::from_millis(if asked.nth == 0 { 400 } else { 0 });
            vec![Act::Pause(pause), Act::Answer(asked.id, 0)]
        });
        let mut plan = batched(trace(&[0, 0, 10, 900, 900]), 1, 2, LONG, 1);
        plan.load.duration = Duration::from_secs(1);
        let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
        let found = batches(&facts);
        assert_eq!((found.count, found.full, found.completion), (3, 2, 1), "{found:?}");
        let rows = &kept.rows;
        let back = rows[0].end.max(rows[1].end);
        assert!(rows[2].ready == back && rows[2].sent >= back, "{rows:?}");
        assert!(rows[2].sent < rows[3].due, "{rows:?}");
        expect_one_at_a_time(rows);
    });
}

/// Claim: the delay holds on a connection whose batch was once outstanding for longer than it while another transaction
/// waited: what comes alone later leaves after its delay, and not in the drain.
#[test]
fn the_delay_holds_behind_a_slow_batch() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            let pause = Duration::from_millis(if asked.nth == 0 { 200 } else { 0 });
            vec![Act::Pause(pause), Act::Answer(asked.id, 0)]
        });
        let due = trace(&[0, 20, 1000, 3000]);
        let mut plan = batched(due, 1, 10, Duration::from_millis(5), 1);
        plan.load.duration = LONG;
        let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
        let rows = &kept.rows;
        assert_eq!(batches(&facts).completion, 1, "the second waited for the first: {rows:?}");
        assert_eq!(rows[2].ready, 1_005_000_000, "{rows:?}");
        assert!(rows[2].sent < rows[3].due, "{rows:?}");
    });
}

/// Claim: never more batches are outstanding on a connection than may be, open, closed and at full speed, and a load
/// at full speed sends full ones only.
#[test]
fn batches_in_flight_are_bounded() {
    with_each_driver(|choice| {
        let max = Arrivals::Open { schedule: Schedule::Constant { rate: Rate::MAX } };
        let one_ms = Duration::from_millis(1);
        for arrivals in [constant(20_000), closed(50), max] {
            let is_max = matches!(&arrivals, Arrivals::Open { schedule: Schedule::Constant { rate } } if rate.is_max());
            let server = Toy::prompt();
            let mut plan = batched(arrivals, 3, 16, one_ms, 1);
            plan.load.transactions_max = 3_200;
            plan.load.duration = Duration::from_secs(30);
            let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
            assert_eq!(count(&kept.rows, Outcome::Committed), kept.rows.len());
            expect_one_at_a_time(&kept.rows);
            let found = batches(&facts);
            let reasons = found.full + found.completion + found.delay + found.drain;
            assert_eq!((found.count, found.transactions), (reasons, kept.rows.len() as u64));
            let sendings = sendings(&kept.rows);
            assert!(sendings.values().all(|batch| batch.len() <= 16));
            let all: std::collections::BTreeSet<_> = sendings.keys().map(|key| key.0).collect();
            assert_eq!(all.len(), 3, "every connection has its turn");
            if is_max {
                assert_eq!((found.full, found.count), (200, 200), "{found:?}");
            }
        }
    });
}

/// Claim: a session that carries fewer than a batch holds gets batches that it can carry.
#[test]
fn a_batch_fits_its_connection() {
    let server = Toy::prompt();
    let system = ToySystem { in_flight_max: 4, ..ToySystem::gathering(&server) };
    let mut plan = batched(constant(5_000), 1, 100, Duration::from_millis(1), 2);
    plan.load.transactions_max = 500;
    let (facts, kept) = run(&plan, &system, crate::threads::Choice::Epoll);
    assert_eq!(count(&kept.rows, Outcome::Committed), 500);
    assert!(sendings(&kept.rows).values().all(|batch| batch.len() <= 4));
    assert!(batches(&facts).full > 0);
}

/// Answers all but the first ten requests, after 3 ms.
struct AllButTen(u32);

impl Server for AllButTen {
    fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
        let Happening::Bytes(peer, bytes) = what else { return };
        for request in bytes.chunks_exact(9) {
            self.0 += 1;
            if self.0 > 10 {
                let mut answer = [0; 9];
                answer[..8].copy_from_slice(&request[..8]);
                agenda.send(peer, now.plus(Duration::from_millis(3)), &answer);
            }
        }
    }
}

/// Claim: what waits for its batch longer than the timeout is shed, at that moment and never sent; what comes later is
/// served. In virtual time, so that a busy machine changes nothing.
#[test]
fn what_waits_too_long_is_shed() {
    let due: Vec<u64> = [vec![0; 30], vec![200; 5], vec![300]].concat();
    let mut plan = batched(trace(&due), 1, 10, Duration::from_millis(5), 1);
    plan.load.timeout = Duration::from_millis(100);
    plan.load.duration = Duration::from_millis(600);
    let system = ToySystem {
        gathers: true,
        in_flight_max: 1_000,
        abandon: Abandon::Keep,
        ..virtual_time::system()
    };
    let (_, kept) = try_load_of(&plan, &system, AllButTen(0)).expect("the load begins");
    let of = |row: &Row| (row.outcome, row.sent, row.end);
    let (ms, rows) = (1_000_000, &kept.rows);
    assert!(rows[..10].iter().all(|row| of(row) == (Outcome::Unknown, 0, 100 * ms)));
    assert!(rows[10..30].iter().all(|row| of(row) == (Outcome::Shed, NO_STAMP, 100 * ms)));
    assert!(rows[30..35].iter().all(|row| of(row) == (Outcome::Committed, 205 * ms, 208 * ms)));
    assert_eq!(rows.len(), 36);
}

/// Claim: what waits on a connection that is lost leaves on another one, or on the same when it is back; only what
/// had been sent is unknown.
#[test]
fn a_lost_connection_loses_only_what_was_sent() {
    for connections in [1, 3] {
        let server = Toy::start(|asked| match asked.nth {
            50 => vec![Act::Close],
            _ => vec![Act::Answer(asked.id, 0)],
        });
        let mut plan = batched(constant(2_000), connections, 8, Duration::from_millis(10), 1);
        plan.load.transactions_max = 400;
        let (_, kept) = run(&plan, &ToySystem::gathering(&server), crate::threads::Choice::Epoll);
        let unknown = count(&kept.rows, Outcome::Unknown);
        assert!((1..=8).contains(&unknown), "{unknown} of one batch");
        assert_eq!(count(&kept.rows, Outcome::Committed), 400 - unknown);
    }
}

/// Claim: several workers have queues of their own, and answers find their transactions although batches leave out
/// of the order of their numbers.
#[test]
fn batches_of_several_workers() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let mut plan = batched(constant(20_000), 8, 64, Duration::from_millis(3), 2);
        plan.load.threads = 2;
        plan.load.transactions_max = 4_000;
        let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 4_000);
        let strange =
            |worker: &model::facts::WorkerFacts| worker.phantom_answers + worker.duplicate_answers;
        assert_eq!(facts.workers.iter().map(strange).sum::<u64>(), 0);
    });
}
