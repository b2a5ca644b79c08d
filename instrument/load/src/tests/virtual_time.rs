//! The engine in virtual time: stamps that are exact, and the same each time.

use std::sync::Arc;
use std::time::Duration;

use clock::{Instant, WallTime};
use model::facts::LoadFacts;
use model::plan::{Pacing, SettingPlan};
use model::{Class, NO_STAMP, Outcome};
use sut::{Deployment, System as _};

use super::toy::{Kept, ToySystem, closed, constant, plan};
use crate::scripted::{Agenda, Happening, Peer, Server, clock, run};
use crate::{Control, LoadError, Setup};

const MS: i64 = 1_000_000;

/// Answers each request after the same time; connections are taken until `open_until`, and are reset at `resets_at`.
pub(super) struct Fixed {
    pub delay: Duration,
    /// How much later than they arrive answers are read.
    pub held_up: Duration,
    pub opens_at: Instant,
    pub open_until: Instant,
    pub resets_at: Option<Instant>,
}

impl Default for Fixed {
    fn default() -> Self {
        let delay = Duration::from_millis(3);
        let held_up = Duration::ZERO;
        let opens_at = Instant::from_ns(i64::MIN);
        Self { delay, held_up, opens_at, open_until: Instant::FAR_FUTURE, resets_at: None }
    }
}

impl Server for Fixed {
    fn accepts(&mut self, now: Instant) -> Option<Instant> {
        Some(now).filter(|now| *now >= self.opens_at && *now < self.open_until)
    }

    fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
        match what {
            Happening::Opened(peer) => {
                if let Some(at) = self.resets_at {
                    agenda.reset(peer, at);
                }
            }
            Happening::Bytes(peer, bytes) => {
                for request in bytes.chunks_exact(9) {
                    let mut answer = [0; 9];
                    answer[..8].copy_from_slice(&request[..8]);
                    let arrived = now.plus(self.delay);
                    agenda.send_late(peer, arrived, arrived.plus(self.held_up), &answer);
                }
            }
            Happening::Closed(_) | Happening::Woken => {}
        }
    }
}

fn try_load(plan: &SettingPlan, server: Fixed) -> Result<(LoadFacts, Kept), LoadError> {
    try_load_of(plan, &system(), server)
}

/// One transaction a connection at a time, at an address that is never dialled.
pub(super) fn system() -> ToySystem {
    ToySystem::new("127.0.0.1:1".parse().expect("an address"))
}

/// A trial of this system in virtual time, against any server.
pub(super) fn try_load_of(
    plan: &SettingPlan,
    system: &ToySystem,
    server: impl Server + 'static,
) -> Result<(LoadFacts, Kept), LoadError> {
    try_stopped_load_of(plan, system, server, Arc::default())
}

/// The same, which somebody may end.
pub(super) fn try_stopped_load_of(
    plan: &SettingPlan,
    system: &ToySystem,
    server: impl Server + 'static,
    control: Arc<Control>,
) -> Result<(LoadFacts, Kept), LoadError> {
    let (clock, hand) = clock(WallTime::from_unix_ns(0));
    let mut kept = Kept::default();
    let setup = Setup {
        part: None,
        plan,
        stages: system.stages(),
        final_stages: model::FinalStages::all(0),
        system,
        deployment: &Deployment::new(clock),
        seed: model::Seed(1),
        control,
        live: Arc::default(),
    };
    let loaded = run(setup, &mut kept, hand, Box::new(server))?;
    let is_tried_again = loaded.facts.workers[0].connect_failures > 0;
    assert!(loaded.start == Instant::ZERO || is_tried_again, "connections open in no time");
    Ok((loaded.facts, kept))
}

fn load(plan: &SettingPlan, server: Fixed) -> (LoadFacts, Kept) {
    try_load(plan, server).expect("the load begins")
}

/// Claim: what is due is sent exactly then, and a mark is exactly the answer's time, whether the plan spins for it or sleeps.
#[test]
fn stamps_are_exact() {
    for pacing in [Pacing::Exact, Pacing::Balanced] {
        let mut plan = plan(constant(1_000));
        plan.load.pacing = pacing;
        let (facts, kept) = load(&plan, Fixed::default());
        assert_eq!(kept.rows.len(), 300);
        for (row, due) in kept.rows.iter().zip((0..).map(|nth| nth * MS)) {
            assert_eq!((row.due, row.ready, row.sent), (due, due, due), "{pacing:?}");
            assert_eq!((row.marks[0], row.end), (due + 3 * MS, due + 3 * MS), "{pacing:?}");
        }
        assert_eq!(facts.drain_end, 302 * MS, "when the last one was answered");
        assert_eq!((facts.driver.as_str(), facts.started), ("scripted", WallTime::from_unix_ns(0)));
    }
}

/// Claim: a mark is of when the kernel stamped its answer, whenever the engine read it, and how late that was stands in the
/// row: on all connections of a load that is light, on one in so many where it may be as fast as it can. What follows an
/// answer follows its reading; what waits for a connection could have gone when the answer arrived.
#[test]
fn read_late() {
    let held_up = Duration::from_millis(5);
    let is_any: fn(u32) -> bool = |_| true;
    for (arrivals, connections, is_stamped) in [
        (constant(1_000), 20, is_any),
        (closed(20), 20, is_any),
        (closed(40), 40, |connection| connection % 13 == 0),
        (constant(2_000), 4, is_any),
    ] {
        let mut plan = plan(arrivals);
        (plan.load.connections, plan.load.connections_max) = (connections, connections);
        let (facts, kept) = load(&plan, Fixed { held_up, ..Fixed::default() });
        let mut stamped = 0;
        for row in &kept.rows {
            let expected = match is_stamped(row.connection) {
                true => (row.sent + 3 * MS, Some(5 * MS)),
                false => (row.sent + 8 * MS, None),
            };
            assert_eq!((row.end, row.receive_lag_ns()), expected, "{row:?}");
            assert_eq!(row.marks[0], row.end);
            // Four connections carry a transaction each 8 ms: most wait, from an answer's arrival on for the client alone.
            let own = if row.ready > row.due { 5 * MS } else { 0 };
            assert_eq!(row.own_lag_ns(), Some(own), "{row:?}");
            stamped += u64::from(row.receive_lag_ns().is_some());
        }
        let receive = &facts.workers[0].receive;
        assert!(stamped > 100);
        let counted = (receive.receipts, receive.stamped, receive.impossible, receive.early);
        assert_eq!(counted, (stamped, stamped, 0, 0));
        assert_eq!((receive.clock_error_ns, receive.clock_moved_ns), (0, 0));
    }
}

/// Claim: a stamp that lies after the reading or before the sending is not used and not corrected: the mark is of when it
/// was read, the row says that there is no stamp, and it is counted.
#[test]
fn stamps_that_cannot_be() {
    struct Wrong(fn(Instant) -> Instant);
    impl Server for Wrong {
        fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
            let Happening::Bytes(peer, bytes) = what else { return };
            let mut answer = [0; 9];
            answer[..8].copy_from_slice(&bytes[..8]);
            let at = now.plus(Duration::from_millis(1));
            agenda.send_late(peer, self.0(at), at, &answer);
        }
    }
    let later: fn(Instant) -> Instant = |at| at.plus(Duration::from_nanos(1));
    let earlier: fn(Instant) -> Instant = |at| at.minus(Duration::from_nanos(1_000_001));
    for (wrong, is_early) in [(later, false), (earlier, true)] {
        let (facts, kept) =
            try_load_of(&plan(constant(100)), &system(), Wrong(wrong)).expect("the load begins");
        let count = kept.rows.len() as u64;
        let receive = &facts.workers[0].receive;
        let expected = if is_early { (0, count) } else { (count, 0) };
        assert_eq!((receive.impossible, receive.early), expected);
        assert_eq!(receive.stamped, count);
        let is_read = |row: &model::Row| {
            row.end == row.sent + MS && row.marks[0] == row.end && row.receive_lag == NO_STAMP
        };
        assert!(count > 0 && kept.rows.iter().all(is_read));
    }
}

/// Claim: in coalesced pacing nothing is sent before its time and nothing later than a quantum, and answers are read in
/// the same quanta, which the marks do not have.
#[test]
fn quanta() {
    let mut plan = plan(constant(10_000));
    plan.load.pacing = Pacing::Coalesced;
    plan.load.connections = 100;
    let (_, kept) = load(&plan, Fixed::default());
    assert_eq!(kept.rows.len(), 3_000);
    assert!(kept.rows.iter().all(|row| (0..=MS).contains(&(row.sent - row.due))));
    assert!(kept.rows.iter().all(|row| row.end == row.sent + 3 * MS));
    assert!(kept.rows.iter().all(|row| (0..=MS).contains(&row.receive_lag)));
}

/// Claim: a client's next transaction is due and sent the moment that its last one was answered.
#[test]
fn clients_follow_their_answers() {
    let (_, kept) = load(&plan(closed(2)), Fixed::default());
    assert_eq!(kept.rows.len(), 200, "two clients, one answer each 3 ms, for 300 ms");
    let is_on_time = |nth: usize| kept.rows[nth].sent == 3 * MS * i64::try_from(nth / 2).unwrap();
    assert!((0..200).all(is_on_time));
}

/// Claim: the same script gives the same rows, counters and order, however the threads of this process were run.
#[test]
fn the_same_each_time() {
    let once = || {
        let (facts, kept) = load(&plan(constant(20_000)), Fixed::default());
        (format!("{facts:?}"), kept.rows)
    };
    let first = once();
    assert_eq!(first.1.len(), 6_000);
    assert!((0..5).all(|_| once() == first));
}

/// Claim: a reset ends what was outstanding on the connection at its own time, and what cannot be opened again is refused.
#[test]
fn a_reset() {
    let resets_at = Instant::from_ns(100 * MS + 1);
    let server = Fixed { open_until: resets_at, resets_at: Some(resets_at), ..Fixed::default() };
    let (facts, kept) = load(&plan(constant(1_000)), server);
    let ended = |outcome| kept.rows.iter().filter(|row| row.outcome == outcome).count();
    assert_eq!(ended(Outcome::Committed), 98, "sent at 0 to 97 ms");
    assert_eq!(ended(Outcome::Unknown), 3, "outstanding on three of the four connections");
    let is_unknown = |row: &&model::Row| row.outcome == Outcome::Unknown;
    assert!(kept.rows.iter().filter(is_unknown).all(|row| row.end == resets_at.as_ns()));
    assert_eq!(ended(Outcome::Rejected(Class::Transport)), 199);
    let unsent = kept.rows.iter().filter(|row| row.sent == NO_STAMP).count();
    assert_eq!((unsent, facts.workers[0].connects), (199, 4));
    assert!(facts.workers[0].connect_failures > 4, "{}", facts.workers[0].connect_failures);
}

/// Claim: a server that takes no connection is an error of the load's beginning, and so is a second worker.
#[test]
fn what_cannot_begin() {
    let closed = Fixed { open_until: Instant::from_ns(i64::MIN), ..Fixed::default() };
    let error = try_load(&plan(constant(10)), closed).err().expect("nobody listens");
    assert!(matches!(error, LoadError::Connect { .. }), "{error}");
    let mut two = plan(constant(10));
    two.load.threads = 2;
    let error = try_load(&two, Fixed::default()).err().expect("two workers share no clock");
    assert!(error.to_string().contains("load.threads = 1"), "{error}");
}

/// Claim: a server that takes connections a little later than they are wanted is tried until it does, and the load is whole.
#[test]
fn a_late_beginning() {
    let late = Fixed { opens_at: Instant::from_ns(300 * MS), ..Fixed::default() };
    let (facts, kept) = load(&plan(constant(1_000)), late);
    assert!(
        kept.rows.len() == 300 && kept.rows.iter().all(|row| row.outcome == Outcome::Committed)
    );
    assert_eq!(facts.workers[0].connects, 4);
    assert!(facts.workers[0].connect_failures >= 4 * 5, "{}", facts.workers[0].connect_failures);
}

/// Claim: what happens, happens in the order of its times, and of one time in the order in which it was asked for.
#[test]
fn agenda_is_in_order() {
    let mut agenda = Agenda::default();
    let at = Instant::from_ns;
    agenda.send(Peer(1), at(5), b"b");
    agenda.wake(at(3));
    agenda.close(Peer(1), at(5));
    let mut taken = || agenda.take_due(at(5)).map(|occurrence| format!("{occurrence:?}"));
    let all = [taken(), taken(), taken(), taken()].map(Option::unwrap_or_default);
    let bytes = "Bytes { peer: Peer(1), bytes: [98], arrived: Instant(5) }";
    assert_eq!(all, ["Wake", bytes, "End(Peer(1), None)", ""]);
}
