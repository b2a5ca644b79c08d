//! Rotation: nodes are stopped, wiped, started and waited for until they have what the others have, over and over
//! until the time is over. On a thread of its own, because what it asks of nodes may take as long as they like.
//!
//! It must never leave a node stopped without saying so, and never call a node caught up that did not say it itself.

use std::sync::Arc;
use std::time::Duration;

use clock::{Clock, Instant};
use model::quantity::show_ns;

use super::journal::{Happened, Journal, Of};
use super::stop::Stop;
use crate::sampler::Watcher;
use crate::{BedControl, NodeCare, TestbedError};

/// How long nodes may take to end by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// How often nodes that are to end are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How often nodes are asked whether they have caught up; the answer's own time comes on top.
const ASK_EVERY: Duration = Duration::from_millis(100);

const KIND: &str = "rotate";

/// One rotation.
#[derive(Debug)]
pub(super) struct Rotation {
    pub clock: Clock,
    pub control: BedControl,
    pub care: Arc<dyn NodeCare>,
    pub watcher: Option<Watcher>,
    pub journal: Journal,
    pub stop: Arc<Stop>,
    pub nodes: Vec<String>,
    /// When it was to begin, after the start of the measured window.
    pub planned: Duration,
    /// When its time is over.
    pub deadline: Instant,
    /// The most cycles; 0 = as many as there is time for.
    pub cycles_max: u32,
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

impl Rotation {
    pub fn run(&self) {
        for cycle in 1_u32.. {
            if self.is_over() || (self.cycles_max > 0 && cycle > self.cycles_max) {
                return;
            }
            if self.cycle(cycle) == Came::ToNothing && !self.is_over() {
                for node in &self.nodes {
                    let words = "given up: no node of the last cycle came back";
                    self.note(Happened::Failed, node, words);
                }
                return;
            }
        }
    }

    fn cycle(&self, cycle: u32) -> Came {
        self.end_all(cycle);
        let started: Vec<Started<'_>> =
            self.nodes.iter().filter_map(|node| self.begin_anew(node, cycle)).collect();
        self.await_all(started, cycle)
    }

    /// Ends every node: gently, and after a grace not.
    fn end_all(&self, cycle: u32) {
        for node in &self.nodes {
            self.note(Happened::Start, node, format!("cycle {cycle}"));
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
            self.note(Happened::End, node, format!("{error}, cycle {cycle}"));
            return None;
        }
        // What is not begun by the end of the time is left; the node is started all the same.
        let is_over = self.is_over();
        let wiped = if is_over { Err(self.why_over()) } else { self.care.wipe(node) };
        let at = self.clock.now();
        if let Err(error) = self.start(node) {
            let words =
                format!("could not be started again and stays down: {error}, cycle {cycle}");
            self.note(Happened::End, node, words);
            return None;
        }
        if let Err(why) = wiped {
            let words = format!("started again without being wiped: {why}, cycle {cycle}");
            self.note(Happened::End, node, words);
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
                let Some((words, has_caught_up)) = self.look_at(started, cycle) else {
                    return true;
                };
                self.note(Happened::End, started.node, words);
                if has_caught_up {
                    came = Came::Round;
                }
                false
            });
            if waiting.is_empty() {
                return came;
            }
            let next = self.clock.now().plus(ASK_EVERY).min(self.deadline);
            if self.stop.comes_before(next) || self.is_over() {
                break;
            }
        }
        for started in waiting {
            let mut words = format!(
                "had not caught up {} after its start, when {}",
                self.since(started.at),
                self.why_over()
            );
            if !started.said.is_empty() {
                words.push_str(&format!(" (it said last: {})", started.said));
            }
            self.note(Happened::End, started.node, format!("{words}, cycle {cycle}"));
        }
        came
    }

    /// Words for how a node's turn has ended, and whether well; `None`: it goes on.
    fn look_at(&self, started: &mut Started<'_>, cycle: u32) -> Option<(String, bool)> {
        // Only a look: a node that has ended cannot answer.
        if let Ok(Some(how)) = self.control.ended(started.node) {
            let after = self.since(started.at);
            return Some((
                format!("ended again {after} after its start: {how}, cycle {cycle}"),
                false,
            ));
        }
        match self.care.has_caught_up(started.node) {
            Ok(true) => {
                Some((format!("caught up after {}, cycle {cycle}", self.since(started.at)), true))
            }
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

    fn is_over(&self) -> bool {
        self.stop.is_set() || self.clock.now() >= self.deadline
    }

    fn why_over(&self) -> String {
        let why = if self.clock.now() >= self.deadline {
            "the time of the rotation was over"
        } else {
            "the trial had ended"
        };
        why.to_owned()
    }

    fn since(&self, at: Instant) -> String {
        show_ns(self.clock.now().ns_since(at))
    }

    fn note(&self, event: Happened, node: &str, detail: impl Into<String>) {
        self.journal.note(event, Of { kind: KIND, node, planned: self.planned }, detail);
    }
}
