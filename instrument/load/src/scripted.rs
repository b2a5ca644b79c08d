//! A load in virtual time, against a server that a test wrote: the engine is the one that measures, its event loop has no
//! kernel below it, and every stamp is exact and the same each time.
//!
//! For tests. It runs one worker, and what belongs to this machine (processor time, priorities) is left out of its facts.

pub(crate) mod agenda;
pub(crate) mod server;

use std::sync::{Mutex, PoisonError};

use clock::{Clock, Hand, Instant, WallTime};

pub use agenda::{Agenda, Peer};
pub use server::{Call, Happening, Server, Trouble};

use crate::driver::Driver as _;
use crate::driver::scripted::Scripted;
use crate::engine::{Seat, run as run_worker};
use crate::links::Links;
use crate::threads::{START_DELAY, Wires, carry_out};
use crate::trial::Trial;
use crate::{LoadError, Loaded, RowSink, Setup};

/// A clock of virtual time for one trial, and its hand. Stamp 0 of a trial is [`Instant::ZERO`] of it, if connections open
/// in no time: the engine leaves its workers a moment to wake up, and so much before that the clock begins.
#[must_use]
pub fn clock(origin_wall: WallTime) -> (Clock, Hand) {
    Clock::by_hand(Instant::ZERO.minus(START_DELAY), origin_wall)
}

/// Carries out one trial as [`crate::run`] does, in the virtual time of `hand`, whose clock the deployment has.
///
/// # Errors
/// Those of [`crate::run`], and when the plan asks for more than one worker or goes through a client library.
pub fn run(
    setup: Setup<'_>,
    sink: &mut dyn RowSink,
    hand: Hand,
    server: Box<dyn Server>,
) -> Result<Loaded, LoadError> {
    check(&setup)?;
    let driver = Mutex::new(Some(Scripted::new(hand, setup.deployment.clock, server)));
    let work = |trial: &Trial<'_>, seat: Seat| {
        let driver = driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        run_worker(trial, seat, |_| Ok(driver.expect("there is one worker")));
    };
    let mut loaded = carry_out(setup, sink, || Ok(Wires { name: Scripted::NAME, work }))?;
    leave_host_out(&mut loaded);
    Ok(loaded)
}

fn check(setup: &Setup<'_>) -> Result<(), LoadError> {
    if !setup.deployment.clock.is_virtual() {
        return Err(LoadError::Plan("a script needs a clock of virtual time".to_owned()));
    }
    if setup.plan.load.threads > 1 {
        return Err(LoadError::Plan("a script has one worker: load.threads = 1".to_owned()));
    }
    if Links::of(setup)?.has_calls() {
        return Err(LoadError::Plan("a client library has no virtual time".to_owned()));
    }
    Ok(())
}

/// Facts that differ from one machine, or from one execution, to the next.
fn leave_host_out(loaded: &mut Loaded) {
    loaded.facts.congestion_control.clear();
    for worker in &mut loaded.facts.workers {
        (worker.cpu_ns, worker.run_queue_ns, worker.idle_ns) = (0, 0, worker.wall_ns);
        (worker.nice, worker.record_waits) = (0, 0);
    }
}
