//! Nodes begin anew: they are ended, wiped, started and waited for until they have what the others have, once or over and
//! over. On a thread of its own, because what it asks of nodes may take as long as they like.
//!
//! It must never leave a node stopped without saying so, and never call a node caught up that did not say it itself.

use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, Instant};
use model::fault::{FaultDetail, FaultPhase, RotationOver};

use super::host_error;
use super::journal::{Fault, Journal};
use super::scene::{Scene, why};
use super::stop::Stop;
use crate::sampler::Watcher;
use crate::{BedControl, NodeCare, TestbedError};

/// How long nodes may take to end by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// How often nodes that are to end are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How often nodes are asked whether they have caught up; the answer's own time comes on top.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// How nodes end, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Killed, once, and away for so long; they are waited for as long as the trial lasts.
    Once {
        /// From the end of a node to its start.
        away: Duration,
    },
    /// Asked to end, round after round until the time of the fault is over.
    Rounds {
        /// The most of them; absent: as many as there is time for.
        max: Option<u64>,
    },
}

/// Begins anew what a fault means. It ends by itself, so nothing is left to undo.
pub(super) fn begin(of: &Fault, scene: &mut Scene, way: Way) {
    let nodes = scene.nodes(of);
    if nodes.is_empty() {
        return;
    }
    let Some(care) = scene.care.clone() else {
        return scene.failed(of, of.plan.node(), FaultDetail::NoCare);
    };
    let deadline = match way {
        Way::Once { .. } => Instant::FAR_FUTURE,
        Way::Rounds { .. } => scene.start.plus(of.plan.at + of.plan.length),
    };
    let anew = Anew {
        clock: scene.clock,
        control: scene.control.clone(),
        care,
        watcher: scene.watcher.clone(),
        journal: scene.journal.clone(),
        stop: Arc::clone(&scene.stop),
        nodes,
        of: of.clone(),
        deadline,
        way,
    };
    let thread = std::thread::Builder::new().name("testbed-anew".to_owned());
    match thread.spawn(move || anew.run()) {
        Ok(thread) => scene.beside.push(thread),
        Err(error) => scene.failed(of, of.plan.node(), why(&host_error(error))),
    }
}

/// One fault of this sort.
#[derive(Debug)]
struct Anew {
    clock: Clock,
    control: BedControl,
    care: Arc<dyn NodeCare>,
    watcher: Option<Watcher>,
    journal: Journal,
    stop: Arc<Stop>,
    nodes: Vec<String>,
    of: Fault,
    /// When its time is over.
    deadline: Instant,
    way: Way,
}

/// A node that was started again and has not caught up yet.
struct Started<'a> {
    node: &'a str,
    at: Instant,
    /// What it said last, if it said anything but no.
    said: String,
}

/// How a cycle came out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    /// At least one node has caught up.
    Round,
    /// None has, and there is time left: it would be the same again.
    ToNothing,
}

impl Anew {
    fn run(&self) {
        let Way::Rounds { max } = self.way else {
            self.cycle(0);
            return;
        };
        for cycle in 1_u32.. {
            if self.over().is_some() || max.is_some_and(|max| u64::from(cycle) > max) {
                return;
            }
            if self.cycle(cycle) == Came::ToNothing && self.over().is_none() {
                for node in &self.nodes {
                    self.note(FaultPhase::Failed, (node, cycle), FaultDetail::GivenUp);
                }
                return;
            }
        }
    }

    fn cycle(&self, cycle: u32) -> Came {
        match self.way {
            Way::Once { away } => {
                for node in &self.nodes {
                    self.note(FaultPhase::Start, (node, cycle), FaultDetail::Killed);
                    // One that has ended already needs no killing.
                    let _ = self.control.kill(node);
                }
                let _ = self.stop.comes_before(self.clock.now().plus(away));
            }
            Way::Rounds { .. } => self.ask_all_to_end(cycle),
        }
        let started: Vec<Started<'_>> =
            self.nodes.iter().filter_map(|node| self.begin_anew(node, cycle)).collect();
        self.await_all(started, cycle)
    }

    /// Ends every node: gently, and after a grace not.
    fn ask_all_to_end(&self, cycle: u32) {
        for node in &self.nodes {
            self.note(FaultPhase::Start, (node, cycle), FaultDetail::Nothing);
            // One that has ended already needs no asking.
            let _ = self.control.ask_to_end(node);
        }
        let grace_over = self.clock.now().plus(GRACE);
        let has_ended = |node: &String| !matches!(self.control.ended(node), Ok(None));
        while !self.nodes.iter().all(has_ended) && self.clock.now() < grace_over {
            self.clock.sleep_until(self.clock.now().plus(LOOK_EVERY));
        }
        for node in self.nodes.iter().filter(|node| !has_ended(node)) {
            let _ = self.control.kill(node);
        }
    }

    /// Wipes a node and starts it. Gives it if it is now to catch up.
    fn begin_anew<'a>(&self, node: &'a str, cycle: u32) -> Option<Started<'a>> {
        if let Err(error) = self.control.await_end(node) {
            self.note(FaultPhase::End, (node, cycle), why(&error));
            return None;
        }
        // What is not begun by the end of the time is left; the node is started all the same.
        let over = self.over();
        let refused = if over.is_none() { self.care.wipe(node).err() } else { None };
        let at = self.clock.now();
        if let Err(error) = self.start(node) {
            let detail = FaultDetail::Down { why: error.to_string() };
            self.note(FaultPhase::End, (node, cycle), detail);
            return None;
        }
        if over.is_some() || refused.is_some() {
            let detail = FaultDetail::NotWiped { why: refused, over };
            self.note(FaultPhase::End, (node, cycle), detail);
            return None;
        }
        Some(Started { node, at, said: String::new() })
    }

    fn start(&self, node: &str) -> Result<(), TestbedError> {
        let started = self.control.start(node)?;
        if let Some(watcher) = &self.watcher {
            watcher.watch(node, started.pid);
        }
        Ok(())
    }

    fn await_all(&self, mut waiting: Vec<Started<'_>>, cycle: u32) -> Came {
        let mut came = Came::ToNothing;
        loop {
            waiting.retain_mut(|started| {
                let Some(detail) = self.look_at(started) else { return true };
                if matches!(detail, FaultDetail::CaughtUp { .. }) {
                    came = Came::Round;
                }
                self.note(FaultPhase::End, (started.node, cycle), detail);
                false
            });
            if waiting.is_empty() {
                return came;
            }
            let next = self.clock.now().plus(ASK_EVERY).min(self.deadline);
            let _ = self.stop.comes_before(next);
            let Some(over) = self.over() else { continue };
            for started in waiting {
                let ns = self.since(started.at);
                let detail = FaultDetail::NotCaughtUp { ns, over, said: started.said };
                self.note(FaultPhase::End, (started.node, cycle), detail);
            }
            return came;
        }
    }

    /// How a node's turn has ended; `None`: it goes on.
    fn look_at(&self, started: &mut Started<'_>) -> Option<FaultDetail> {
        // Only a look: a node that has ended cannot answer.
        if let Ok(Some(how)) = self.control.ended(started.node) {
            return Some(FaultDetail::EndedAgain { ns: self.since(started.at), how });
        }
        match self.care.has_caught_up(started.node) {
            Ok(true) => Some(FaultDetail::CaughtUp { ns: self.since(started.at) }),
            Ok(false) => {
                started.said.clear();
                None
            }
            Err(said) => {
                started.said = said;
                None
            }
        }
    }

    /// Why there is no more time, if there is none.
    fn over(&self) -> Option<RotationOver> {
        if self.clock.now() >= self.deadline {
            return Some(RotationOver::Time);
        }
        self.stop.is_set().then_some(RotationOver::Trial)
    }

    fn since(&self, at: Instant) -> i64 {
        self.clock.now().ns_since(at)
    }

    fn note(&self, phase: FaultPhase, of_whom: (&str, u32), detail: FaultDetail) {
        self.journal.note(phase, &self.of, of_whom, detail);
    }
}
