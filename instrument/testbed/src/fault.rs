//! Injects the planned faults at their times, and says what was really done and when.
//!
//! It runs on a thread of its own beside the load and touches nothing but the nodes. Whatever ends it, no node
//! stays paused. It must never report a fault that did not happen: what could not be done is a `fault_failed`
//! event with the reason.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, Instant};
use model::facts::Event;
use model::plan::{FaultKind, FaultPlan};
use model::quantity::{show_duration, show_ns};

use crate::{BedControl, TestbedError};

/// How often the start of the measured window is asked for until it is known.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A running injection.
#[derive(Debug)]
pub struct FaultRunner {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Vec<Done>>>,
}

/// Something that was done, or could not be.
#[derive(Debug)]
struct Done {
    at: Instant,
    /// `fault_start`, `fault_end`, `fault_failed`.
    event: &'static str,
    kind: FaultKind,
    node: String,
    /// When the plan wanted it, after the start of the measured window.
    planned: Duration,
    detail: String,
}

impl FaultRunner {
    /// Carries out `faults` on the nodes of `control`. `measure_start` is asked until it knows when the
    /// measured window starts (or started: what is overdue then is done at once, and its event says when).
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        clock: Clock,
        faults: Vec<FaultPlan>,
        control: BedControl,
        measure_start: impl FnMut() -> Option<Instant> + Send + 'static,
    ) -> Result<Self, TestbedError> {
        let (stop, stopped) = channel();
        let mut injection = Injection::new(clock, control, &faults);
        let thread = std::thread::Builder::new().name("testbed-faults".to_owned());
        let thread = thread.spawn(move || {
            injection.run(measure_start, &stopped);
            injection.done
        });
        let thread = thread.map_err(|source| TestbedError::Host {
            what: "the thread that injects faults could not be started".to_owned(),
            source,
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Ends the injection: pauses are undone. Gives what was done, as events stamped in nanoseconds after
    /// `trial_start`, and as the lines of faults.ndjson.
    #[must_use]
    pub fn finish(mut self, trial_start: Instant) -> (Vec<Event>, Vec<String>) {
        let done = self.join();
        let event = |done: &Done| Event {
            at: done.at.ns_since(trial_start),
            name: done.event.to_owned(),
            tx: None,
            detail: done.in_words(),
        };
        let line = |done: &Done| {
            serde_json::json!({
                "at_ns": done.at.ns_since(trial_start),
                "event": done.event,
                "kind": done.kind.word(),
                "node": done.node,
                "planned_ns_after_measure_start": u64::try_from(done.planned.as_nanos()).unwrap_or(u64::MAX),
                "detail": done.detail,
            })
            .to_string()
        };
        (done.iter().map(event).collect(), done.iter().map(line).collect())
    }

    fn join(&mut self) -> Vec<Done> {
        self.stop = None;
        // A panic of the thread has been printed by the panic hook.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for FaultRunner {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

impl Done {
    fn in_words(&self) -> String {
        let what = format!("{} {}", self.kind.word(), self.node);
        if self.detail.is_empty() { what } else { format!("{what}: {}", self.detail) }
    }
}

/// One thing to do.
#[derive(Clone, Debug)]
struct Action {
    at: Duration,
    kind: FaultKind,
    /// As planned: a name or a pattern.
    node: String,
    /// The other end of a pause.
    is_end: bool,
}

/// The thread's state.
struct Injection {
    clock: Clock,
    control: BedControl,
    /// Latest first.
    actions: Vec<Action>,
    /// When each paused node was paused, once for each pause that is on: they may overlap.
    paused: BTreeMap<String, Vec<Instant>>,
    done: Vec<Done>,
}

impl Injection {
    fn new(clock: Clock, control: BedControl, faults: &[FaultPlan]) -> Self {
        let mut actions = Vec::with_capacity(faults.len() * 2);
        for fault in faults {
            let action = |at, is_end| Action {
                at,
                kind: fault.kind.clone(),
                node: fault.kind.subject().into_owned(),
                is_end,
            };
            actions.push(action(fault.at, false));
            if matches!(fault.kind, FaultKind::Pause { .. }) {
                actions.push(action(fault.at + fault.length, true));
            }
        }
        // Stable, so that of two at one time the one written first comes first.
        actions.sort_by_key(|action| action.at);
        actions.reverse();
        Self { clock, control, actions, paused: BTreeMap::new(), done: Vec::new() }
    }

    fn run(&mut self, measure_start: impl FnMut() -> Option<Instant>, stopped: &Receiver<()>) {
        if let Some(start) = self.await_start(measure_start, stopped) {
            while let Some(action) = self.actions.pop() {
                if self.is_stopped_by(start.plus(action.at), stopped) {
                    self.actions.push(action);
                    break;
                }
                self.carry_out(&action);
            }
        }
        self.undo();
    }

    fn await_start(
        &self,
        mut measure_start: impl FnMut() -> Option<Instant>,
        stopped: &Receiver<()>,
    ) -> Option<Instant> {
        loop {
            if let Some(start) = measure_start() {
                return Some(start);
            }
            if self.is_stopped_by(self.clock.now().plus(LOOK_EVERY), stopped) {
                return None;
            }
        }
    }

    /// Waits until `due`. Gives whether it was stopped before.
    fn is_stopped_by(&self, due: Instant, stopped: &Receiver<()>) -> bool {
        loop {
            let wait = due.saturating_since(self.clock.now());
            match stopped.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) if self.clock.now() >= due => return false,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    fn carry_out(&mut self, action: &Action) {
        let names = self.control.matching(&action.node);
        if names.is_empty() && !action.is_end {
            let known: Vec<String> =
                self.control.nodes().into_iter().map(|node| node.name).collect();
            let detail = format!("there is no such node; there are: {}", known.join(", "));
            self.note("fault_failed", action, &action.node, detail);
        }
        for name in names {
            match (&action.kind, action.is_end) {
                (FaultKind::Pause { .. }, false) => self.begin(action, &name, BedControl::pause),
                (FaultKind::Pause { .. }, true) => self.resume(action, &name, ""),
                _ => self.begin(action, &name, BedControl::kill),
            }
        }
    }

    fn begin(
        &mut self,
        action: &Action,
        name: &str,
        act: fn(&BedControl, &str) -> Result<(), TestbedError>,
    ) {
        if let Err(error) = act(&self.control, name) {
            self.note("fault_failed", action, name, error.to_string());
            return;
        }
        self.note("fault_start", action, name, String::new());
        if matches!(action.kind, FaultKind::Pause { .. }) {
            self.paused.entry(name.to_owned()).or_default().push(self.clock.now());
        }
    }

    /// Ends the oldest pause of a node; the node goes on when none is left.
    fn resume(&mut self, action: &Action, name: &str, why: &str) {
        let Some(pauses) = self.paused.get_mut(name).filter(|pauses| !pauses.is_empty()) else {
            return;
        };
        let since = pauses.remove(0);
        let is_last = pauses.is_empty();
        let mut detail = vec![format!("after {}", show_ns(self.clock.now().ns_since(since)))];
        if !why.is_empty() {
            detail.push(why.to_owned());
        }
        if !is_last {
            detail.push("another pause goes on".to_owned());
        } else if let Err(error) = self.control.resume(name) {
            detail.push(error.to_string());
        }
        self.note("fault_end", action, name, detail.join(", "));
    }

    /// Lets every paused node go on, and notes what was planned and did not come to pass.
    fn undo(&mut self) {
        while let Some(action) = self.actions.pop() {
            if action.is_end {
                for name in self.control.matching(&action.node) {
                    self.resume(&action, &name, "the trial ended before its time");
                }
            } else {
                let detail = format!("the trial ended before {}", show_duration(action.at));
                self.note("fault_failed", &action, &action.node.clone(), detail);
            }
        }
    }

    fn note(&mut self, event: &'static str, action: &Action, node: &str, detail: String) {
        self.done.push(Done {
            at: self.clock.now(),
            event,
            kind: action.kind.clone(),
            node: node.to_owned(),
            planned: action.at,
            detail,
        });
    }
}
