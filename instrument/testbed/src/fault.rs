//! Injects the planned faults at their times, and says what was really done and when.
//!
//! It runs on threads of its own beside the load and touches nothing but the nodes and their links. Whatever ends it,
//! no node stays paused, no link stays cut, and a node that a restart or a rotation took down is started again. It
//! must never report a fault that did not happen: what could not be done is a `fault_failed` event with the reason.

mod changes;
mod injection;
mod journal;
mod rotation;
mod stop;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use clock::{Clock, Instant};
use model::facts::Event;
use model::plan::{FaultPlan, LinksPlan};

use crate::sampler::Watcher;
use crate::{BedControl, NodeCare, TestbedError};
use injection::Injection;
use journal::Journal;
use stop::Stop;

/// What is to be done, and what it takes.
#[derive(Debug, Default)]
pub struct FaultSetup {
    /// What, to whom, when.
    pub faults: Vec<FaultPlan>,
    /// What the links are like by plan, where there are any.
    pub links: Option<LinksPlan>,
    /// Who looks after the nodes in a rotation.
    pub care: Option<Arc<dyn NodeCare>>,
    /// Who is told of each process that a fault has started.
    pub watcher: Option<Watcher>,
}

/// A running injection.
#[derive(Debug)]
pub struct FaultRunner {
    stop: Arc<Stop>,
    journal: Journal,
    thread: Option<JoinHandle<()>>,
}

impl FaultRunner {
    /// Carries out faults on the nodes of `control`. `measure_start` is asked until it knows when the measured
    /// window starts (or started: what is overdue then is done at once, and its event says when).
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        clock: Clock,
        setup: FaultSetup,
        control: BedControl,
        measure_start: impl FnMut() -> Option<Instant> + Send + 'static,
    ) -> Result<Self, TestbedError> {
        let (stop, journal) = (Arc::new(Stop::new(clock)), Journal::new(clock));
        let mut injection =
            Injection::new(clock, setup, control, journal.clone(), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("testbed-faults".to_owned());
        let thread = thread.spawn(move || injection.run(measure_start)).map_err(host_error)?;
        Ok(Self { stop, journal, thread: Some(thread) })
    }

    /// Ends the injection: pauses, cuts and changes of links are undone, nodes that are down are started. Gives what
    /// was done, as events stamped in nanoseconds after `trial_start`, and as the lines of faults.ndjson.
    #[must_use]
    pub fn finish(mut self, trial_start: Instant) -> (Vec<Event>, Vec<String>) {
        self.join();
        let done = self.journal.take();
        let events = done.iter().map(|entry| entry.event(trial_start)).collect();
        (events, done.iter().map(|entry| entry.line(trial_start)).collect())
    }

    fn join(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for FaultRunner {
    fn drop(&mut self) {
        self.join();
    }
}

fn host_error(source: io::Error) -> TestbedError {
    let what = "the thread that injects faults could not be started".to_owned();
    TestbedError::Host { what, source }
}
