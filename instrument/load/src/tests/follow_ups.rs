//! Transactions that follow an answer, in virtual time: when they are due, whose they are, and what becomes of them at the end.

use std::sync::Arc;
use std::time::Duration;

use clock::Instant;
use model::plan::{Arrivals, SettingPlan};
use model::{NO_STAMP, Outcome, Row};

use super::toy::{REFUSE, ToySystem, closed, constant, plan};
use super::virtual_time::{Fixed, system, try_load_of, try_stopped_load_of};
use crate::Control;
use crate::scripted::{Agenda, Happening, Server};

const MS: i64 = 1_000_000;

fn flow(steps: u8, think_ms: u64) -> ToySystem {
    ToySystem { flow: Some((steps, Duration::from_millis(think_ms))), ..system() }
}

fn plan_of(arrivals: Arrivals, connections: u32) -> SettingPlan {
    let mut plan = plan(arrivals);
    (plan.load.connections, plan.load.connections_max) = (connections, connections);
    plan
}

/// Claim: users begin by the schedule, and each of their later transactions is due so long after the answer before it was
/// read, is sent exactly then on whatever connection is free, and is theirs; those who have begun go on in the drain.
#[test]
fn users_of_an_open_loop() {
    let plan = plan_of(constant(100), 40);
    let server = Fixed { held_up: Duration::from_millis(1), ..Fixed::default() };
    let (facts, kept) = try_load_of(&plan, &flow(3, 50), server).expect("the load begins");
    assert_eq!((kept.rows.len(), facts.workers[0].due), (90, 90), "30 users, 3 steps each");
    let first: Vec<&Row> = kept.rows.iter().filter(|row| row.kind == 0).collect();
    let dues: Vec<i64> = first.iter().map(|row| row.due / MS).collect();
    assert_eq!(dues, (0..30).map(|nth| nth * 10).collect::<Vec<_>>());
    for row in &kept.rows {
        // 3 ms to the answer, 1 ms until it is read, 50 ms of thinking.
        let user = row.due / MS % 10;
        assert!([0, 4, 8].contains(&user), "{row:?}");
        assert_eq!((row.sent, row.end), (row.due, row.due + 3 * MS), "{row:?}");
        assert_eq!(row.kind, u32::from(user != 0));
    }
    assert!(kept.rows.iter().any(|row| row.due >= 300 * MS), "in the drain");
    let mut ids: Vec<u64> = kept.rows.iter().map(|row| row.tx).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 90, "no id twice");
}

/// Claim: users who have begun go on in the drain also where the server closes each connection after its answer.
#[test]
fn users_go_on_over_new_connections() {
    struct Closing;
    impl Server for Closing {
        fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
            let Happening::Bytes(peer, bytes) = what else { return };
            let mut answer = [0; 9];
            answer[..8].copy_from_slice(&bytes[..8]);
            let at = now.plus(Duration::from_millis(3));
            agenda.send(peer, at, &answer);
            agenda.close(peer, at);
        }
    }
    let plan = plan_of(constant(100), 4);
    let (facts, kept) = try_load_of(&plan, &flow(3, 50), Closing).expect("the load begins");
    assert_eq!(kept.rows.len(), 90, "30 users, 3 steps each");
    let not = kept.rows.iter().find(|row| row.outcome != Outcome::Committed);
    assert!(not.is_none(), "{not:?}");
    assert!(kept.rows.iter().any(|row| row.due >= 300 * MS), "in the drain");
    assert!(facts.workers[0].connects > 80, "{}", facts.workers[0].connects);
}

/// Claim: a client of a closed loop begins anew when his flow has ended and not before, and the answers of his steps are
/// his: as many flows as there is time for.
#[test]
fn clients_of_a_closed_loop() {
    let (_, kept) =
        try_load_of(&plan_of(closed(2), 2), &flow(3, 7), Fixed::default()).expect("begins");
    for client in 0..2 {
        let mut rows: Vec<&Row> = kept.rows.iter().filter(|row| row.client == client).collect();
        rows.sort_by_key(|row| row.due);
        for (nth, row) in rows.iter().enumerate() {
            let (flow, step) = (i64::try_from(nth / 3).unwrap(), i64::try_from(nth % 3).unwrap());
            // Three answers of 3 ms, and 7 ms after the first two.
            assert_eq!(row.due, (flow * 23 + step * 10) * MS, "{row:?}");
            assert_eq!((row.sent, row.kind), (row.due, u32::from(step != 0)));
        }
        assert_eq!(rows.len(), 14 * 3, "13.04 flows of 23 ms in 300 ms, the last one in the drain");
    }
}

/// Claim: nothing follows an answer that came too late or never, and what waits for its time when the load is stopped is
/// shed: each user has a row that says how his flow ended.
#[test]
fn flows_that_do_not_go_on() {
    struct Silent {
        control: Arc<Control>,
        stops: bool,
    }
    impl Server for Silent {
        fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
            match what {
                Happening::Opened(_) if self.stops => agenda.wake(Instant::from_ns(100 * MS)),
                Happening::Woken => self.control.stop(),
                Happening::Bytes(peer, bytes) => {
                    for request in bytes.chunks_exact(9) {
                        // The first of each user is answered, the second only where the load is to be stopped.
                        let (is_first, mut answer) = (request[8] == 0, [0; 9]);
                        answer[..8].copy_from_slice(&request[..8]);
                        answer[8] = if self.stops { REFUSE } else { 0 };
                        if is_first || self.stops {
                            agenda.send(peer, now.plus(Duration::from_millis(3)), &answer);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    for stops in [false, true] {
        let mut plan = plan_of(constant(100), 40);
        plan.load.timeout = Duration::from_millis(40);
        let control = Arc::<Control>::default();
        let server = Silent { control: Arc::clone(&control), stops };
        let (facts, kept) =
            try_stopped_load_of(&plan, &flow(3, 50), server, control).expect("the load begins");
        let of = |outcome| kept.rows.iter().filter(move |row| row.outcome == outcome).count();
        let shed = kept.rows.iter().filter(|row| row.outcome == Outcome::Shed);
        if stops {
            // Begun at 0 to 100 ms; a refusal may be followed, too, if the session says so.
            let is_cut = |row: &Row| row.sent == NO_STAMP && row.kind == 1 && row.due <= 103 * MS;
            assert!(shed.clone().count() > 0 && shed.clone().all(is_cut));
            assert_eq!(facts.workers[0].shed, shed.count() as u64);
            let users = kept.rows.iter().filter(|row| row.kind == 0).count();
            assert!((10..=11).contains(&users), "{users}");
        } else {
            assert_eq!((of(Outcome::Committed), of(Outcome::Unknown), shed.count()), (30, 30, 0));
        }
    }
}

/// Claim: with one connection and no time to think the next step goes before a user who has not begun, and a bound on the
/// load's transactions counts users.
#[test]
fn steps_before_users() {
    let mut plan = plan_of(constant(1_000), 1);
    plan.load.transactions_max = 5;
    let (_, kept) = try_load_of(&plan, &flow(4, 0), Fixed::default()).expect("the load begins");
    assert_eq!(kept.rows.iter().filter(|row| row.kind == 0).count(), 5);
    assert_eq!(kept.rows.len(), 20);
    assert!(kept.rows.iter().all(|row| row.outcome == Outcome::Committed));
}
