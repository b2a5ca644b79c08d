//! How many connections there are: as many as what is due needs, up to the bound, and no more where that does not help.

use std::time::Duration;

use clock::Instant;
use model::facts::{LoadFacts, PoolFacts};
use model::plan::{Arrivals, Schedule, SettingPlan};
use model::quantity::Rate;
use model::{Outcome, Row};

use super::toy::{Act, Toy, ToySystem, constant, count, plan, run, with_each_driver};
use super::virtual_time::{Fixed, system, try_load_of};
use crate::scripted::{Agenda, Happening, Server};

/// The server's time for each in the exact tests, any number at once.
const SERVICE: Duration = Duration::from_millis(300);

fn pool(facts: &LoadFacts) -> &PoolFacts {
    &facts.workers[0].pool
}

fn grown(pool: &PoolFacts) -> u32 {
    pool.grown.iter().map(|grown| grown.count).sum()
}

/// Claim: a server that takes 300 ms, any number at once, is never blamed for 64 connections: at 100 and 200/s these
/// suffice, at 300/s exactly as many are opened as are missing, and each answer comes 300 ms after its transaction was
/// due. Where the 64 are all that there may be, transactions wait for them, and the facts say so.
#[test]
fn the_pool_grows_with_what_is_due() {
    for (per_second, connections_max, missing) in
        [(100, 1_024, 0), (200, 1_024, 0), (300, 1_024, 26), (300, 64, 0)]
    {
        let mut plan = plan(constant(per_second));
        plan.load.duration = Duration::from_secs(2);
        (plan.load.connections, plan.load.connections_max) = (64, connections_max);
        let server = Fixed { delay: SERVICE, ..Fixed::default() };
        let (facts, kept) = try_load_of(&plan, &system(), server).expect("the load begins");
        assert_eq!(count(&kept.rows, Outcome::Committed), kept.rows.len());
        let pool = pool(&facts);
        assert_eq!((pool.first, pool.bound, pool.carries), (64, connections_max, 1));
        assert_eq!(grown(pool), missing, "{per_second}/s: {pool:?}");
        let exact = kept.rows.iter().all(|row| row.end - row.due == 300_000_000);
        let is_short = connections_max == 64 && per_second == 300;
        assert_eq!((exact, pool.blocked > 0), (!is_short, is_short), "{per_second}/s: {pool:?}");
    }
}

/// Claim: connections that are refused are not multiplied: while one cannot be had no more are tried, however many
/// transactions wait for those that are busy.
#[test]
fn refused_connections_are_not_multiplied() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            let answer = [Act::Pause(Duration::from_millis(200)), Act::Answer(asked.id, 0)];
            let first = (asked.nth == 0).then_some(Act::StopListening);
            first.into_iter().chain(answer).collect()
        });
        let mut plan = plan(constant(500));
        plan.load.connections_max = 1_000;
        let (facts, kept) = run(&plan, &ToySystem::new(server.address), choice);
        let waited = kept.rows.iter().filter(|row| row.ready > row.due).count();
        assert!(waited > 20, "most of them wait: {waited}");
        let worker = &facts.workers[0];
        assert!((1..=30).contains(&worker.connect_failures), "{}", worker.connect_failures);
        assert_eq!(worker.pool.blocked, 0, "it is not the bound that keeps them waiting");
    });
}

/// A server whose connections, but for the first two, take 5 ms to open.
struct OpensLate(Fixed, u32);

impl Server for OpensLate {
    fn accepts(&mut self, now: Instant) -> Option<Instant> {
        self.1 += 1;
        let opening = Duration::from_millis(if self.1 <= 2 { 0 } else { 5 });
        self.0.accepts(now).map(|now| now.plus(opening))
    }

    fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
        self.0.step(now, what, agenda);
    }
}

/// So many at once, three times, over two connections and as many more as are needed.
fn bursts(of: u64) -> SettingPlan {
    let (rate, every) = (Rate::per_second(10 * of), Duration::from_millis(100));
    let mut plan = plan(Arrivals::Open { schedule: Schedule::Burst { rate, every } });
    (plan.load.connections, plan.load.connections_max) = (2, 1_000);
    plan
}

/// Claim: what waits for a connection to be opened waits before it is ready, to the nanosecond, so that the opening is
/// not taken for the instrument's own lag; one is opened for each that waits, and the bursts that follow need no more.
#[test]
fn opening_is_no_own_lag() {
    let server = OpensLate(Fixed { delay: Duration::from_millis(20), ..Fixed::default() }, 0);
    let (facts, kept) = try_load_of(&bursts(30), &system(), server).expect("the load begins");
    assert_eq!(count(&kept.rows, Outcome::Committed), 90);
    let waited = |row: &Row| (row.ready - row.due, row.sent - row.ready);
    for row in &kept.rows {
        let opening = if (2..30).contains(&row.tx) { 5_000_000 } else { 0 };
        assert_eq!(waited(row), (opening, 0), "{row:?}");
    }
    let pool = pool(&facts);
    assert_eq!((grown(pool), pool.grown[0].second, pool.blocked), (28, 0, 0));
}

/// Claim: over a kernel's connections as well, no more are opened than transactions waited for.
#[test]
fn none_is_opened_for_nothing() {
    with_each_driver(|choice| {
        let server = Toy::start(|asked| {
            vec![Act::Pause(Duration::from_millis(20)), Act::Answer(asked.id, 0)]
        });
        let (facts, kept) = run(&bursts(100), &ToySystem::new(server.address), choice);
        assert_eq!(count(&kept.rows, Outcome::Committed), 300);
        let waited = kept.rows.iter().filter(|row| row.ready > row.due).count() as u32;
        // Those of the first burst, and of the others what comes before the answers to it have.
        assert!((98..=298).contains(&waited), "{waited} waited");
        assert!((20..=waited).contains(&grown(pool(&facts))), "{waited} waited: {facts:?}");
        assert_eq!(pool(&facts).grown[0].second, 0);
    });
}
