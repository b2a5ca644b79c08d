//! The thread that carries faults out at their times. What takes time (a rotation) goes on beside it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, Instant};
use model::fault::{FaultDetail, FaultPhase};

use super::FaultSetup;
use super::changes::Changes;
use super::journal::{Fault, Journal};
use super::kinds::{self, Underway};
use super::scene::Scene;
use super::stop::Stop;
use crate::BedControl;

/// How often the start of the trial is asked for until it is known.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// One thing to do: a fault's beginning or its end.
#[derive(Clone, Copy, Debug)]
struct Action {
    at: Duration,
    /// Its place in the plan.
    fault: usize,
    is_end: bool,
}

/// The thread's state.
pub(super) struct Injection {
    faults: Vec<Fault>,
    scene: Scene,
    /// From the trial's start to that of the measured window.
    warmup: Duration,
    /// Latest first.
    actions: Vec<Action>,
    /// What is to be undone, by fault.
    underway: BTreeMap<usize, Box<dyn Underway>>,
}

impl Injection {
    pub fn new(
        clock: Clock,
        setup: FaultSetup,
        control: BedControl,
        journal: Journal,
        stop: Arc<Stop>,
    ) -> Self {
        let mut actions = Vec::with_capacity(setup.faults.len() * 2);
        for (fault, plan) in setup.faults.iter().enumerate() {
            actions.push(Action { at: plan.at, fault, is_end: false });
            // Where nothing is underway then (a kill, a rotation), it does nothing.
            actions.push(Action { at: plan.at + plan.length, fault, is_end: true });
        }
        // Stable, so that of two at one time the one written first comes first.
        actions.sort_by_key(|action| action.at);
        actions.reverse();
        let links = control.links().zip(setup.links).map(|(links, plan)| Changes::new(links, plan));
        let faults = setup.faults.into_iter().zip(0..).map(|(plan, index)| Fault { index, plan });
        Self {
            faults: faults.collect(),
            scene: Scene {
                clock,
                control,
                links,
                care: setup.care,
                watcher: setup.watcher,
                journal,
                stop,
                start: clock.now(),
                pauses: BTreeMap::new(),
                beside: Vec::new(),
            },
            warmup: setup.warmup,
            actions,
            underway: BTreeMap::new(),
        }
    }

    pub fn run(&mut self, trial_start: impl FnMut() -> Option<Instant>) {
        if let Some(start) = self.await_start(trial_start) {
            self.scene.journal.begins(start);
            self.scene.start = start.plus(self.warmup);
            while let Some(action) = self.actions.pop() {
                if self.scene.stop.comes_before(self.scene.start.plus(action.at)) {
                    self.actions.push(action);
                    break;
                }
                self.carry_out(action, false);
            }
        }
        self.undo();
        for beside in self.scene.beside.drain(..) {
            // A panic of it has been printed by the panic hook.
            let _ = beside.join();
        }
    }

    fn await_start(&self, mut trial_start: impl FnMut() -> Option<Instant>) -> Option<Instant> {
        loop {
            if let Some(start) = trial_start() {
                return Some(start);
            }
            if self.scene.stop.comes_before(self.scene.clock.now().plus(LOOK_EVERY)) {
                return None;
            }
        }
    }

    fn carry_out(&mut self, action: Action, cut_short: bool) {
        let fault = &self.faults[action.fault];
        if action.is_end {
            if let Some(underway) = self.underway.remove(&action.fault) {
                underway.end(fault, &mut self.scene, cut_short);
            }
            return;
        }
        match kinds::of(&fault.plan.kind) {
            Some(kind) => {
                if let Some(underway) = (kind.begin)(fault, &mut self.scene) {
                    self.underway.insert(action.fault, underway);
                }
            }
            None => {
                let text = format!("there is no fault called `{}`", fault.plan.kind);
                let why = FaultDetail::Why { text };
                self.scene.failed(fault, &fault.plan.subject(), why);
            }
        }
    }

    /// Undoes what can be undone, and notes what was planned and did not come to pass.
    fn undo(&mut self) {
        while let Some(action) = self.actions.pop() {
            if action.is_end {
                self.carry_out(action, true);
                continue;
            }
            let fault = &self.faults[action.fault];
            let (subject, detail) = (fault.plan.subject(), FaultDetail::NotReached);
            self.scene.note(FaultPhase::Failed, fault, &subject, detail);
        }
    }
}
