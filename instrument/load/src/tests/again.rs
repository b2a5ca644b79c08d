//! Clients that stay on their connections, transactions that are sent again, and connections that go elsewhere in their
//! next life.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use model::plan::{Affinity, Arrivals, BatchPlan, ResendPlan, SettingPlan};
use model::{NO_STAMP, Outcome, Row};
use sut::Abandon;

use super::toy::{
    Act, Asked, Toy, ToySystem, closed, constant, count, plan, plan_of, run, with_each_driver,
};

fn resend(attempts_max: u8, after: Duration) -> Option<ResendPlan> {
    Some(ResendPlan { attempts_max, after })
}

/// A server that answers a request once it has had it as often as `nth` says.
fn answers_the(nth: impl Fn(u64) -> usize + Send + Sync + 'static) -> Toy {
    let seen = Mutex::new(BTreeMap::<u64, usize>::new());
    Toy::start(move |asked: Asked| {
        let mut seen = seen.lock().unwrap();
        let count = seen.entry(asked.id).or_default();
        *count += 1;
        if *count >= nth(asked.id) { vec![Act::Answer(asked.id, 0)] } else { vec![] }
    })
}

/// Claim: what a lost connection carried is sent again until it is answered, and a row says how often; without
/// `resend` it stays unknown.
#[test]
fn what_was_lost_is_sent_again() {
    with_each_driver(|choice| {
        for (in_flight_max, arrivals) in
            [(1, constant(1_000)), (16, constant(1_000)), (16, closed(32))]
        {
            let server = Toy::start(|asked| match asked.nth % 20 {
                7 => vec![Act::Close],
                _ => vec![Act::Answer(asked.id, 0)],
            });
            let system = ToySystem { in_flight_max, ..ToySystem::new(server.address) };
            let mut plan = plan_of(300, arrivals);
            let (_, once) = run(&plan, &system, choice);
            assert!(count(&once.rows, Outcome::Unknown) >= 5);
            assert!(once.rows.iter().all(|row| row.attempts <= 1));
            plan.load.resend = resend(100, plan.load.timeout);
            let (facts, kept) = run(&plan, &system, choice);
            assert_eq!((kept.rows.len(), count(&kept.rows, Outcome::Committed)), (300, 300));
            let again: u64 = kept.rows.iter().map(|row| u64::from(row.attempts) - 1).sum();
            let facts = &facts.workers[0];
            assert_eq!((facts.resent, facts.unanswered), (again, 0));
            assert!(again >= 5, "{again}");
        }
    });
}

/// Claim: what has no answer for long enough is sent again, on a connection that is closed for it or on one that is
/// kept; not before, and not oftener than is allowed.
#[test]
fn what_has_no_answer_is_sent_again() {
    with_each_driver(|choice| {
        for abandon in [Abandon::Keep, Abandon::Close] {
            let server = answers_the(|id| if id % 10 == 5 { 2 } else { 1 });
            let system = ToySystem { abandon, in_flight_max: 8, ..ToySystem::new(server.address) };
            let mut plan = plan(constant(200));
            let after = Duration::from_millis(60);
            plan.load.resend = resend(9, after);
            let (facts, kept) = run(&plan, &system, choice);
            assert_eq!((kept.rows.len(), count(&kept.rows, Outcome::Committed)), (60, 60));
            for row in kept.rows.iter().filter(|row| row.tx % 10 == 5) {
                assert!(row.attempts >= 2, "{row:?}");
                // One that is closed for another loses this one, too.
                let waited_ns = u128::try_from(row.end - row.sent).unwrap();
                assert!(abandon == Abandon::Close || waited_ns >= after.as_nanos(), "{row:?}");
            }
            let connects = facts.workers[0].connects;
            assert_eq!(connects > 4, abandon == Abandon::Close, "{connects}");
        }
    });
}

/// Claim: all attempts together end with the timeout after the due time, as unknown, however often one was sent.
#[test]
fn attempts_are_bounded_by_the_timeout_from_due() {
    with_each_driver(|choice| {
        let server = answers_the(|id| if id % 10 == 5 { usize::MAX } else { 1 });
        let keep = ToySystem {
            abandon: Abandon::Keep,
            in_flight_max: 50,
            ..ToySystem::new(server.address)
        };
        let mut plan = plan(constant(200));
        plan.load.timeout = Duration::from_secs(1);
        plan.load.resend = resend(3, Duration::from_millis(50));
        let (facts, kept) = run(&plan, &keep, choice);
        let given_up: Vec<&Row> = kept.rows.iter().filter(|row| row.tx % 10 == 5).collect();
        assert_eq!(given_up.len(), 6);
        for row in given_up {
            assert_eq!((row.outcome, row.attempts), (Outcome::Unknown, 3));
            assert!(row.end - row.due >= 1_000_000_000, "{row:?}");
            assert_eq!(facts.errors[usize::from(row.error)], "no answer within the timeout");
        }
        assert!(facts.workers[0].resent >= 12);
    });
}

/// Claim: the answers of several attempts are no duplicates of the system's; they are counted apart, and one that is
/// late ends the transaction.
#[test]
fn each_attempt_may_be_answered() {
    with_each_driver(|choice| {
        // The first attempt is answered with the second one.
        let seen = Mutex::new(HashSet::new());
        let server = Toy::start(move |asked| {
            let is_first = seen.lock().unwrap().insert(asked.id);
            match asked.id % 10 {
                5 if is_first => vec![],
                5 => vec![Act::Answer(asked.id, 0), Act::Answer(asked.id, 0)],
                _ => vec![Act::Answer(asked.id, 0)],
            }
        });
        let keep = ToySystem {
            abandon: Abandon::Keep,
            in_flight_max: 50,
            ..ToySystem::new(server.address)
        };
        let mut plan = plan(constant(200));
        plan.load.resend = resend(2, Duration::from_millis(60));
        let (facts, kept) = run(&plan, &keep, choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 60);
        let facts = &facts.workers[0];
        assert!((6..=60).contains(&facts.repeated_answers), "{}", facts.repeated_answers);
        assert_eq!((facts.duplicate_answers, facts.phantom_answers, facts.late_answers), (0, 0, 0));
    });
}

/// A plan with batches of at most eight, two of them outstanding on each of these connections.
fn batched(transactions: u64, connections: u32, arrivals: Arrivals) -> SettingPlan {
    let mut plan = plan_of(transactions, arrivals);
    plan.load.connections = connections;
    plan.load.connections_max = connections;
    let delay_max = Duration::from_millis(5);
    plan.load.batch = Some(BatchPlan { size_max: 8, delay_max, in_flight_max: 2 });
    plan
}

/// Claim: what lost connections carried leaves again in batches, until all of it is answered: nothing is unknown, every row
/// says how often it was sent, as many transactions are counted in batches as were sent, and no batch holds more than one may;
/// where clients stay on their connections, too.
#[test]
fn batches_that_were_lost_are_sent_again() {
    with_each_driver(|choice| {
        let affinities = [Affinity::Any, Affinity::Client];
        for (connections, affinity) in [(1, affinities[0]), (3, affinities[0]), (3, affinities[1])]
        {
            let server = Toy::start(|asked| match asked.nth % 60 {
                30 => vec![Act::Close],
                _ => vec![Act::Answer(asked.id, 0)],
            });
            let arrivals = if affinity == Affinity::Any { constant(2_000) } else { closed(40) };
            let mut plan = batched(400, connections, arrivals);
            plan.load.affinity = affinity;
            plan.load.resend = resend(100, plan.load.timeout);
            let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
            assert_eq!((kept.rows.len(), count(&kept.rows, Outcome::Committed)), (400, 400));
            let sent: u64 = kept.rows.iter().map(|row| u64::from(row.attempts)).sum();
            let facts = &facts.workers[0];
            assert_eq!((facts.resent, facts.unanswered), (sent - 400, 0));
            assert!(facts.resent >= 5, "{}", facts.resent);
            let batches = facts.batches;
            assert_eq!(batches.transactions, sent, "{batches:?}");
            assert!(batches.size_max <= 8 && batches.count >= sent / 8, "{batches:?}");
            let reasons = batches.full + batches.completion + batches.delay + batches.drain;
            assert_eq!(reasons, batches.count, "{batches:?}");
        }
    });
}

/// Claim: what has no answer for long enough leaves its batch, which is back without it, and leaves in another one, on
/// another connection; not before, and no more often than is allowed.
#[test]
fn what_a_batch_does_not_answer_is_sent_again() {
    with_each_driver(|choice| {
        let server = answers_the(|id| match id % 10 {
            5 => 2,
            7 => usize::MAX,
            _ => 1,
        });
        let mut plan = batched(100, 2, constant(500));
        // Enough that what is never answered leaves room for the rest.
        let delay_max = Duration::from_millis(5);
        plan.load.batch = Some(BatchPlan { size_max: 8, delay_max, in_flight_max: 64 });
        let after = Duration::from_millis(60);
        plan.load.timeout = Duration::from_millis(1_500);
        plan.load.resend = resend(3, after);
        let (facts, kept) = run(&plan, &ToySystem::gathering(&server), choice);
        assert_eq!((kept.rows.len(), count(&kept.rows, Outcome::Unknown)), (100, 10));
        for row in &kept.rows {
            let expected = match row.tx % 10 {
                5 => (Outcome::Committed, 2..=3),
                7 => (Outcome::Unknown, 2..=3),
                _ => (Outcome::Committed, 1..=3),
            };
            assert!(row.outcome == expected.0 && expected.1.contains(&row.attempts), "{row:?}");
            let waited_ns = u128::try_from(row.end - row.sent).unwrap();
            assert!(row.tx % 10 != 5 || waited_ns >= after.as_nanos(), "{row:?}");
        }
        assert!(facts.workers[0].resent >= 20, "{}", facts.workers[0].resent);
    });
}

/// By client: the connections that carried it, and whether it was sent in the order in which it was due.
fn by_client(rows: &[Row]) -> BTreeMap<u32, (HashSet<u32>, bool)> {
    let mut clients: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.sent != NO_STAMP) {
        clients.entry(row.client).or_default().push(*row);
    }
    let each = |mut rows: Vec<Row>| {
        rows.sort_by_key(|row| (row.due, row.tx));
        let in_order = rows.windows(2).all(|pair| pair[0].sent <= pair[1].sent);
        (rows.iter().map(|row| row.connection).collect(), in_order)
    };
    clients.into_iter().map(|(client, rows)| (client, each(rows))).collect()
}

/// Claim: with affinity each client has one connection and its order, also while others have to wait, also when the
/// connection is lost and opened anew; without it clients move about.
#[test]
fn clients_stay_on_their_connections() {
    with_each_driver(|choice| {
        for closes in [false, true] {
            let server = Toy::start(move |asked| match asked.nth % 25 {
                24 if closes => vec![Act::Close],
                _ => vec![Act::Pause(Duration::from_millis(3)), Act::Answer(asked.id, 0)],
            });
            // Client 0 brings half of all, so that its connection is behind while others are free.
            let system = ToySystem { clients: 6, ..ToySystem::new(server.address) };
            let mut plan = plan(constant(500));
            plan.load.duration = Duration::from_millis(400);
            let (_, anywhere) = run(&plan, &system, choice);
            assert!(by_client(&anywhere.rows).values().any(|(on, _)| on.len() > 1));
            plan.load.affinity = Affinity::Client;
            plan.load.resend = closes.then(|| resend(50, plan.load.timeout)).flatten();
            let (facts, kept) = run(&plan, &system, choice);
            let clients = by_client(&kept.rows);
            assert_eq!((clients.len(), kept.rows.len()), (6, 200));
            for (client, (connections, in_order)) in clients {
                assert_eq!((connections.len(), in_order), (1, true), "client {client}");
            }
            assert_eq!(count(&kept.rows, Outcome::Committed), 200);
            assert_eq!(facts.workers[0].connects > 4, closes);
            assert!(facts.workers[0].backlog_max > 0, "somebody waited");
        }
    });
}

/// Claim: what waits for its client's connection is bounded and shed like any backlog: beyond the bound, and beyond
/// the timeout.
#[test]
fn a_clients_backlog_is_bounded() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            vec![Act::Pause(Duration::from_millis(40)), Act::Answer(asked.id, 0)]
        });
        let system = ToySystem { clients: 6, ..ToySystem::new(server.address) };
        let mut plan = plan(constant(1_000));
        plan.load.affinity = Affinity::Client;
        plan.load.backlog_max = 20;
        let (facts, kept) = run(&plan, &system, choice);
        assert_eq!(kept.rows.len(), 300);
        assert!(facts.workers[0].backlog_full > 100 && facts.workers[0].backlog_max == 20);
        plan.load.backlog_max = 10_000;
        plan.load.timeout = Duration::from_millis(100);
        let (_, kept) = run(&plan, &system, choice);
        let shed = kept.rows.iter().filter(|row| row.outcome == Outcome::Shed);
        let waited = shed.map(|row| row.end - row.due).collect::<Vec<_>>();
        assert!(waited.len() > 100 && waited.iter().all(|ns| *ns >= 100_000_000), "{waited:?}");
    });
}

/// Claim: each client of a closed loop is a number of the trial, over all workers, and has one transaction at a time.
#[test]
fn clients_are_numbers_of_the_trial() {
    with_each_driver(|choice| {
        let server = Toy::prompt();
        let mut plan = plan_of(600, closed(10));
        plan.load.threads = 3;
        plan.load.affinity = Affinity::Client;
        let (_, kept) = run(&plan, &ToySystem::new(server.address), choice);
        assert_eq!(kept.rows.len(), 600);
        let clients = by_client(&kept.rows);
        assert_eq!(clients.keys().copied().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        for row in &kept.rows {
            assert_eq!(row.client % 3, u32::from(row.worker), "{row:?}");
        }
        for (client, (connections, in_order)) in clients {
            assert_eq!((connections.len(), in_order), (1, true), "client {client}");
            let mut own: Vec<&Row> = kept.rows.iter().filter(|row| row.client == client).collect();
            own.sort_by_key(|row| row.due);
            assert!(own.windows(2).all(|pair| pair[0].end <= pair[1].due), "one at a time");
        }
    });
}

/// Claim: in its next life a connection goes where the system says then.
#[test]
fn connections_go_elsewhere_when_they_are_lost() {
    with_each_driver(|choice| {
        let first = Toy::start(|asked| match asked.nth {
            30.. => vec![Act::Close],
            _ => vec![Act::Answer(asked.id, 0)],
        });
        let second = Toy::prompt();
        let system = ToySystem { next: Some(second.address), ..ToySystem::new(first.address) };
        let mut plan = plan(constant(500));
        // One may be lost on each of the four.
        plan.load.resend = resend(5, plan.load.timeout);
        let (facts, kept) = run(&plan, &system, choice);
        assert_eq!((kept.rows.len(), count(&kept.rows, Outcome::Committed)), (150, 150));
        assert_eq!(facts.workers[0].connects, 8, "each of four was lost once");
        assert!((1..=4).contains(&facts.workers[0].resent));
        // Without the way to the second they are lost again and again.
        plan.load.resend = None;
        let (facts, kept) = run(&plan, &ToySystem { next: None, ..system }, choice);
        assert!(count(&kept.rows, Outcome::Unknown) > 8 && facts.workers[0].connects > 8);
    });
}
