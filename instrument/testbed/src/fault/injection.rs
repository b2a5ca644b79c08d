//! The thread that carries faults out at their times. What takes time (a rotation) goes on beside it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, Instant};
use model::plan::{FaultKind, FaultPlan};
use model::quantity::{show_duration, show_ns};

use super::changes::{Changes, Pair};
use super::journal::{Happened, Journal, Of};
use super::rotation::Rotation;
use super::stop::Stop;
use super::{FaultSetup, host_error};
use crate::sampler::Watcher;
use crate::{BedControl, NodeCare};

/// How often the start of the measured window is asked for until it is known.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// What is said of faults that the end of the trial cut short.
const CUT_SHORT: &str = "the trial ended before its time";

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
    clock: Clock,
    control: BedControl,
    faults: Vec<FaultPlan>,
    links: Option<Changes>,
    care: Option<Arc<dyn NodeCare>>,
    watcher: Option<Watcher>,
    journal: Journal,
    stop: Arc<Stop>,
    /// Latest first.
    actions: Vec<Action>,
    /// When each paused node was paused, once for each pause that is on: they may overlap.
    paused: BTreeMap<String, Vec<Instant>>,
    /// Nodes that a restart took down, and when, by fault.
    down: BTreeMap<usize, Vec<(String, Instant)>>,
    /// What a partition or a change of links did, and when, by fault.
    changed: BTreeMap<usize, Changed>,
    rotations: Vec<JoinHandle<()>>,
}

/// Links that are not as planned.
struct Changed {
    at: Instant,
    pairs: Vec<Pair>,
    /// Whom the journal names.
    nodes: Vec<String>,
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
            // A rotation ends by itself, a kill never.
            if !matches!(plan.kind, FaultKind::Kill { .. } | FaultKind::Rotate { .. }) {
                actions.push(Action { at: plan.at + plan.length, fault, is_end: true });
            }
        }
        // Stable, so that of two at one time the one written first comes first.
        actions.sort_by_key(|action| action.at);
        actions.reverse();
        let links = control.links().zip(setup.links).map(|(links, plan)| Changes::new(links, plan));
        Self {
            clock,
            control,
            faults: setup.faults,
            links,
            care: setup.care,
            watcher: setup.watcher,
            journal,
            stop,
            actions,
            paused: BTreeMap::new(),
            down: BTreeMap::new(),
            changed: BTreeMap::new(),
            rotations: Vec::new(),
        }
    }

    pub fn run(&mut self, measure_start: impl FnMut() -> Option<Instant>) {
        if let Some(start) = self.await_start(measure_start) {
            while let Some(action) = self.actions.pop() {
                if self.stop.comes_before(start.plus(action.at)) {
                    self.actions.push(action);
                    break;
                }
                self.carry_out(action, start);
            }
        }
        self.undo();
        for rotation in self.rotations.drain(..) {
            // A panic of it has been printed by the panic hook.
            let _ = rotation.join();
        }
    }

    fn await_start(&self, mut measure_start: impl FnMut() -> Option<Instant>) -> Option<Instant> {
        loop {
            if let Some(start) = measure_start() {
                return Some(start);
            }
            if self.stop.comes_before(self.clock.now().plus(LOOK_EVERY)) {
                return None;
            }
        }
    }

    fn carry_out(&mut self, action: Action, start: Instant) {
        if action.is_end {
            self.end(action, "");
            return;
        }
        let plan = self.faults[action.fault].clone();
        match &plan.kind {
            FaultKind::Pause { node } => self.each(action, node, Self::pause),
            FaultKind::Kill { node } => self.each(action, node, Self::kill),
            FaultKind::Restart { node } => self.each(action, node, Self::take_down),
            FaultKind::Rotate { node, cycles } => {
                self.rotate(action, node, *cycles, start.plus(plan.at + plan.length));
            }
            FaultKind::Partition { .. } | FaultKind::Link { .. } => {
                self.change_links(action, &plan)
            }
        }
    }

    /// Does something to every node that is meant, if there is any.
    fn each(&mut self, action: Action, pattern: &str, act: fn(&mut Self, Action, &str)) {
        let names = self.control.matching(pattern);
        if names.is_empty() {
            self.note(Happened::Failed, action, pattern, self.no_such_node());
        }
        for name in names {
            act(self, action, &name);
        }
    }

    fn no_such_node(&self) -> String {
        let known: Vec<String> = self.control.nodes().into_iter().map(|node| node.name).collect();
        format!("there is no such node; there are: {}", known.join(", "))
    }

    fn pause(&mut self, action: Action, name: &str) {
        match self.control.pause(name) {
            Ok(()) => {
                self.note(Happened::Start, action, name, "");
                self.paused.entry(name.to_owned()).or_default().push(self.clock.now());
            }
            Err(error) => self.note(Happened::Failed, action, name, error.to_string()),
        }
    }

    fn kill(&mut self, action: Action, name: &str) {
        match self.control.kill(name) {
            Ok(()) => self.note(Happened::Start, action, name, ""),
            Err(error) => self.note(Happened::Failed, action, name, error.to_string()),
        }
    }

    fn take_down(&mut self, action: Action, name: &str) {
        match self.control.kill(name) {
            Ok(()) => {
                self.note(Happened::Start, action, name, "");
                let down = self.down.entry(action.fault).or_default();
                down.push((name.to_owned(), self.clock.now()));
            }
            Err(error) => self.note(Happened::Failed, action, name, error.to_string()),
        }
    }

    fn rotate(&mut self, action: Action, pattern: &str, cycles_max: u32, deadline: Instant) {
        let nodes = self.control.matching(pattern);
        if nodes.is_empty() {
            self.note(Happened::Failed, action, pattern, self.no_such_node());
            return;
        }
        let Some(care) = self.care.clone() else {
            let words = "this system does not say how its nodes are wiped";
            self.note(Happened::Failed, action, pattern, words);
            return;
        };
        let rotation = Rotation {
            clock: self.clock,
            control: self.control.clone(),
            care,
            watcher: self.watcher.clone(),
            journal: self.journal.clone(),
            stop: Arc::clone(&self.stop),
            nodes,
            planned: action.at,
            deadline,
            cycles_max,
        };
        let thread = std::thread::Builder::new().name("testbed-rotation".to_owned());
        match thread.spawn(move || rotation.run()) {
            Ok(thread) => self.rotations.push(thread),
            Err(error) => {
                let words = host_error(error).to_string();
                self.note(Happened::Failed, action, pattern, words);
            }
        }
    }

    fn change_links(&mut self, action: Action, plan: &FaultPlan) {
        let subject = plan.kind.subject().into_owned();
        let Some(links) = &mut self.links else {
            let words = "the trial has no network of its own";
            self.note(Happened::Failed, action, &subject, words);
            return;
        };
        let (pairs, nodes, words, done) = match &plan.kind {
            FaultKind::Partition { nodes, way, client } => {
                let inside = links.nodes(nodes);
                let pairs = links.cut_by(&inside, *way, *client);
                let done = links.cut(&pairs);
                (pairs, inside, plan.kind.in_words(), done)
            }
            FaultKind::Link { from, to, change } => {
                let pairs = links.links(from, to);
                let done = links.change(action.fault, &pairs, *change);
                (pairs, vec![subject.clone()], plan.kind.in_words(), done)
            }
            _ => unreachable!("called for faults of links"),
        };
        if pairs.is_empty() {
            let words = "there is no such link between nodes that are on the network";
            self.note(Happened::Failed, action, &subject, words);
        } else if let Err(error) = done {
            self.note(Happened::Failed, action, &subject, error.to_string());
        } else {
            for node in &nodes {
                self.note(Happened::Start, action, node, words.clone());
            }
            self.changed.insert(action.fault, Changed { at: self.clock.now(), pairs, nodes });
        }
    }

    /// The end of a fault that has one.
    fn end(&mut self, action: Action, why: &str) {
        match self.faults[action.fault].kind.clone() {
            FaultKind::Pause { node } => {
                for name in self.control.matching(&node) {
                    self.resume(action, &name, why);
                }
            }
            FaultKind::Restart { .. } => {
                for (name, since) in self.down.remove(&action.fault).unwrap_or_default() {
                    self.bring_back(action, &name, since, why);
                }
            }
            FaultKind::Partition { .. } | FaultKind::Link { .. } => self.restore(action, why),
            FaultKind::Kill { .. } | FaultKind::Rotate { .. } => {}
        }
    }

    /// Ends the oldest pause of a node; the node goes on when none is left.
    fn resume(&mut self, action: Action, name: &str, why: &str) {
        let Some(pauses) = self.paused.get_mut(name).filter(|pauses| !pauses.is_empty()) else {
            return;
        };
        let since = pauses.remove(0);
        let is_last = pauses.is_empty();
        let mut words = self.after(since, why);
        if !is_last {
            words.push_str(", another pause goes on");
        } else if let Err(error) = self.control.resume(name) {
            words.push_str(&format!(", {error}"));
        }
        self.note(Happened::End, action, name, words);
    }

    fn bring_back(&mut self, action: Action, name: &str, since: Instant, why: &str) {
        let started = self.control.await_end(name).and_then(|()| self.control.start(name));
        let words = match started {
            Ok(node) => {
                if let Some(watcher) = &self.watcher {
                    watcher.watch(name, node.pid);
                }
                format!("started again {}", self.after(since, why))
            }
            Err(error) => format!("could not be started again: {error}"),
        };
        self.note(Happened::End, action, name, words);
    }

    fn restore(&mut self, action: Action, why: &str) {
        let Some(changed) = self.changed.remove(&action.fault) else { return };
        let Some(links) = &mut self.links else { return };
        let is_cut = matches!(self.faults[action.fault].kind, FaultKind::Partition { .. });
        let undone = match is_cut {
            true => links.join(&changed.pairs),
            false => links.restore(action.fault, &changed.pairs),
        };
        let mut words = self.after(changed.at, why);
        if let Err(error) = undone {
            words.push_str(&format!(", {error}"));
        }
        for node in &changed.nodes {
            self.note(Happened::End, action, node, words.clone());
        }
    }

    /// Undoes what can be undone, and notes what was planned and did not come to pass.
    fn undo(&mut self) {
        while let Some(action) = self.actions.pop() {
            if action.is_end {
                self.end(action, CUT_SHORT);
            } else {
                let words = format!("the trial ended before {}", show_duration(action.at));
                let subject = self.faults[action.fault].kind.subject().into_owned();
                self.note(Happened::Failed, action, &subject, words);
            }
        }
    }

    fn after(&self, since: Instant, why: &str) -> String {
        let after = format!("after {}", show_ns(self.clock.now().ns_since(since)));
        if why.is_empty() { after } else { format!("{after}, {why}") }
    }

    fn note(&self, event: Happened, action: Action, node: &str, detail: impl Into<String>) {
        let kind = self.faults[action.fault].kind.word();
        self.journal.note(event, Of { kind, node, planned: action.at }, detail);
    }
}
