//! A load that is asked to end, in virtual time: how long what is outstanding is waited for then.

use std::sync::Arc;
use std::time::Duration;

use clock::Instant;
use model::facts::LoadFacts;
use model::{NO_STAMP, Outcome};

use super::toy::{Kept, constant, plan};
use super::virtual_time::{system, try_stopped_load_of};
use crate::Control;
use crate::scripted::{Agenda, Happening, Server};

const MS: i64 = 1_000_000;

/// Answers after 3 ms until it falls silent; at a time the trial is asked to end.
struct FallsSilent {
    silent_from: Instant,
    stops_at: Instant,
    control: Arc<Control>,
}

impl Server for FallsSilent {
    fn step(&mut self, now: Instant, what: Happening<'_>, agenda: &mut Agenda) {
        match what {
            Happening::Opened(_) => agenda.wake(self.stops_at),
            Happening::Woken => self.control.stop(),
            Happening::Bytes(peer, bytes) if now < self.silent_from => {
                for request in bytes.chunks_exact(9) {
                    let mut answer = [0; 9];
                    answer[..8].copy_from_slice(&request[..8]);
                    agenda.send(peer, now.plus(Duration::from_millis(3)), &answer);
                }
            }
            Happening::Bytes(..) | Happening::Closed(_) => {}
        }
    }
}

/// A load of so many milliseconds at 1,000/s with a timeout of a minute.
fn load(load_ms: u64, silent_from_ms: i64, stops_at_ms: i64, drain_ms: u64) -> (LoadFacts, Kept) {
    let mut plan = plan(constant(1_000));
    (plan.load.connections, plan.load.connections_max) = (4, 4);
    plan.load.duration = Duration::from_millis(load_ms);
    plan.load.timeout = Duration::from_secs(60);
    plan.load.drain_max = Duration::from_millis(drain_ms);
    let control = Arc::<Control>::default();
    let server = FallsSilent {
        silent_from: Instant::from_ns(silent_from_ms * MS),
        stops_at: Instant::from_ns(stops_at_ms * MS),
        control: Arc::clone(&control),
    };
    try_stopped_load_of(&plan, &system(), server, control).expect("the load begins")
}

/// Claim: a stop ends a trial half a second later where a server is silent, in the load as in the drain; what has no
/// answer then is unknown or was never sent, and the record says that the drain was cut.
#[test]
fn silence_is_not_waited_out() {
    for (load_ms, stops_at_ms, ends) in [(10_000, 300, 800..=810), (100, 300, 800..=910)] {
        let (facts, kept) = load(load_ms, 50, stops_at_ms, 60_000);
        assert_eq!(facts.interrupted, "stopped by request, the drain was cut");
        assert_eq!(facts.drain_end, NO_STAMP);
        let left: Vec<_> =
            kept.rows.iter().filter(|row| row.outcome != Outcome::Committed).collect();
        assert_eq!(facts.drain_left, left.len() as u64);
        assert!(left.iter().any(|row| row.outcome == Outcome::Unknown));
        assert!(left.iter().all(|row| ends.contains(&(row.end / MS))), "{:?}", left[0]);
    }
}

/// Claim: where everything is answered the drain ends with the last answer and is whole, and a drain that is planned to
/// be shorter stays as short.
#[test]
fn a_stop_waits_no_longer_than_it_must() {
    let (facts, kept) = load(10_000, 10_000, 300, 60_000);
    assert_eq!(facts.interrupted, "stopped by request");
    assert_eq!((facts.drain_left, facts.drain_end / MS), (0, 303));
    assert!(kept.rows.iter().all(|row| row.outcome == Outcome::Committed));
    let (facts, _) = load(10_000, 50, 300, 200);
    assert_eq!(facts.interrupted, "stopped by request");
    assert!((500..=510).contains(&(facts.drain_end / MS)), "{}", facts.drain_end);
}
