//! Injects the planned faults at their times, and says what was really done and when.
//!
//! It runs on threads of its own beside the load and touches nothing but the nodes and their links. Whatever ends it,
//! no node stays paused, no link stays cut, and a node that a restart or a rotation took down is started again. It
//! must never report a fault that did not happen: what could not be done is an event of the phase `failed` with the
//! reason.

mod anew;
mod changes;
mod injection;
mod journal;
mod kinds;
mod scene;
mod stop;

use std::io;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, Instant};
use model::fault::{FaultEvent, FaultKind, Need};
use model::plan::{CLIENT, FaultPlan, LinksPlan, is_meant};

use crate::sampler::Watcher;
use crate::{BedControl, NodeCare, TestbedError};
use injection::Injection;
use journal::Journal;
use stop::Stop;

/// Takes each event as it happens, from any thread, one at a time. What it cannot keep is its own affair: an
/// injection is not ended by a full disk.
pub type FaultSink = Box<dyn FnMut(FaultEvent) + Send>;

/// What is to be done, and what it takes.
#[derive(Debug, Default)]
pub struct FaultSetup {
    /// What, to whom, when.
    pub faults: Vec<FaultPlan>,
    /// From the trial's start to that of the measured window, from which faults count.
    pub warmup: Duration,
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
    thread: Option<JoinHandle<()>>,
}

/// What every kind of fault declares, in the order in which they are named to people.
#[must_use]
pub fn fault_kinds() -> &'static [FaultKind] {
    static DECLARED: LazyLock<Vec<FaultKind>> =
        LazyLock::new(|| kinds::KINDS.iter().map(|kind| kind.declared).collect());
    &DECLARED
}

impl FaultSetup {
    /// Finds what cannot take place as things stand: a fault on what is not there, or one that asks what the system
    /// (called `system`) cannot do. To be asked before anything is sent: otherwise another experiment than the one
    /// asked for would be measured.
    ///
    /// # Errors
    /// The first that there is, for people.
    pub fn check(&self, control: &BedControl, system: &str) -> Result<(), String> {
        self.faults.iter().try_for_each(|fault| self.check_one(fault, control, system))
    }

    fn check_one(
        &self,
        fault: &FaultPlan,
        control: &BedControl,
        system: &str,
    ) -> Result<(), String> {
        let kind = kinds::of(&fault.kind).map(|kind| &kind.declared);
        let kind = kind.ok_or_else(|| format!("there is no fault called `{}`", fault.kind))?;
        let (called, is_of_links) = (kind.called, kind.is_of_links());
        let names: Vec<String> = if is_of_links {
            let links = control.links().ok_or_else(|| {
                format!("{called} is planned, and the trial has no network of its own; add [links]")
            })?;
            links.nodes()
        } else if kind.needs.contains(&Need::Disks) {
            let with_disk = control.nodes_with_disk();
            if with_disk.is_empty() {
                return Err(format!(
                    "{called} is planned, and no node has a disk of its own; add [disk]"
                ));
            }
            with_disk
        } else {
            control.nodes().into_iter().map(|node| node.name).collect()
        };
        for pattern in &fault.on {
            let is_client = is_of_links && pattern == CLIENT;
            if !is_client && !names.iter().any(|name| is_meant(pattern, name)) {
                let with = if kind.needs.contains(&Need::Disks) { " with a disk" } else { "" };
                let nodes = if names.is_empty() {
                    "this system has no node processes of ours".to_owned()
                } else {
                    format!("the nodes{with} are: {}", names.join(", "))
                };
                return Err(format!(
                    "{called} is planned for the node `{pattern}`, but no node{with} has that name; {nodes}"
                ));
            }
        }
        if kind.needs.contains(&Need::Care) && self.care.is_none() {
            return Err(format!(
                "{called} is planned, and the system `{system}` as it is deployed here does not say how its nodes are \
                 wiped and when they have caught up; write restart in place of {}",
                kind.word
            ));
        }
        Ok(())
    }
}

impl FaultRunner {
    /// Carries out faults on the nodes of `control`, and hands each event to `sink` as it happens. `trial_start` is
    /// asked until it knows when the trial has started; what is overdue then is done at once, and its event says when.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        clock: Clock,
        setup: FaultSetup,
        control: BedControl,
        trial_start: impl FnMut() -> Option<Instant> + Send + 'static,
        sink: FaultSink,
    ) -> Result<Self, TestbedError> {
        let stop = Arc::new(Stop::new(clock));
        let journal = Journal::new(clock, sink);
        let mut injection = Injection::new(clock, setup, control, journal, Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("testbed-faults".to_owned());
        let thread = thread.spawn(move || injection.run(trial_start)).map_err(host_error)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the injection: pauses, cuts and changes of links are undone, nodes that are down are started. When it
    /// returns, the sink has had every event and is gone.
    pub fn finish(mut self) {
        self.join();
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
