//! Answers after their time, in virtual time: one clock, from when a transaction was due.

use std::time::Duration;

use clock::Instant;
use model::Outcome;
use sut::Abandon;

use super::toy::{ToySystem, constant, count, plan};
use super::virtual_time::{Fixed, system, try_load_of};
use crate::scripted::{Agenda, Happening, Server};

const MS: i64 = 1_000_000;

/// Answers at once, but what comes from second 1 on at second 8.
struct Stalled;

impl Server for Stalled {
    fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
        let Happening::Bytes(peer, bytes) = what else { return };
        let second = |n: i64| Instant::from_ns(n * 1_000 * MS);
        let at = if (second(1)..second(8)).contains(&now) { second(8) } else { now };
        for request in bytes.chunks_exact(9) {
            let mut answer = [0; 9];
            answer[..8].copy_from_slice(&request[..8]);
            agenda.send(peer, at, &answer);
        }
    }
}

fn patient(in_flight_max: u32) -> ToySystem {
    ToySystem { in_flight_max, abandon: Abandon::Keep, ..system() }
}

/// Claim: after a stall of seven seconds at 40,000/s with a timeout of one, every answer that was given up on is late,
/// however many they are: an honest server is accused of nothing.
#[test]
fn a_long_stall_makes_no_duplicates() {
    let mut plan = plan(constant(40_000));
    plan.load.duration = Duration::from_secs(9);
    plan.load.timeout = Duration::from_secs(1);
    let (facts, kept) = try_load_of(&plan, &patient(1 << 20), Stalled).expect("the load begins");
    let unknown = count(&kept.rows, Outcome::Unknown) as u64;
    assert_eq!(unknown, 6 * 40_000 + 1, "those due from second 1 to second 7");
    let worker = &facts.workers[0];
    let strange = (worker.duplicate_answers, worker.phantom_answers, worker.undecided_answers);
    assert_eq!((worker.late_answers, strange), (unknown, (0, 0, 0)));
}

/// Claim: the timeout counts from when a transaction was due, its wait for a connection included: nothing that took
/// longer is committed, what did is unknown from that moment on, and its answer is late.
#[test]
fn waiting_counts_towards_the_timeout() {
    let mut plan = plan(constant(5));
    plan.load.duration = Duration::from_secs(8);
    plan.load.timeout = Duration::from_secs(1);
    (plan.load.connections, plan.load.connections_max) = (1, 1);
    let server = Fixed { delay: Duration::from_millis(300), ..Fixed::default() };
    let (facts, kept) = try_load_of(&plan, &patient(1), server).expect("the load begins");
    let timeout = 1_000 * MS;
    let committed = kept.rows.iter().filter(|row| row.outcome == Outcome::Committed);
    assert!(committed.clone().any(|row| row.ready - row.due > timeout / 2), "some of them waited");
    assert!(committed.clone().all(|row| row.end - row.due < timeout));
    let unknown = kept.rows.iter().filter(|row| row.outcome == Outcome::Unknown);
    assert!(unknown.clone().count() > 5, "overloaded by a half");
    assert!(unknown.clone().all(|row| row.end - row.due == timeout));
    // The last one's answer comes when the wait is over.
    assert_eq!(facts.workers[0].late_answers, unknown.count() as u64 - 1);
}

/// Claim: an answer that comes at the very moment at which the timeout runs out is late, and a second one repeats it.
#[test]
fn the_moment_of_the_timeout() {
    let mut plan = plan(constant(100));
    plan.load.timeout = Duration::from_millis(300);
    let server = Fixed { delay: Duration::from_millis(300), ..Fixed::default() };
    let (facts, kept) = try_load_of(&plan, &patient(100), server).expect("the load begins");
    assert_eq!(count(&kept.rows, Outcome::Unknown), 30);
    assert!(kept.rows.iter().all(|row| row.end - row.due == 300 * MS));
    let worker = &facts.workers[0];
    assert_eq!((worker.late_answers, worker.duplicate_answers), (30, 0));
    let error = usize::from(kept.rows[0].error);
    assert_eq!(facts.errors[error], "no answer within the timeout");
}
