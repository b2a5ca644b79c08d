//! What a fault acts on: the nodes, their links, the clock, and the journal in which it says what it did.
//!
//! It must never leave a node paused that no pause holds any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use clock::{Clock, Instant};
use model::fault::{FaultDetail, FaultPhase};

use super::changes::Changes;
use super::journal::{Fault, Journal};
use super::stop::Stop;
use crate::sampler::Watcher;
use crate::{BedControl, NodeCare, TestbedError};

/// The place of one injection.
pub(super) struct Scene {
    pub clock: Clock,
    pub control: BedControl,
    pub links: Option<Changes>,
    pub care: Option<Arc<dyn NodeCare>>,
    pub watcher: Option<Watcher>,
    pub journal: Journal,
    pub stop: Arc<Stop>,
    /// When the measured window began.
    pub start: Instant,
    /// How many pauses hold each node.
    pub(super) pauses: BTreeMap<String, u32>,
    /// What goes on beside the injection's own thread, and ends by itself.
    pub(super) beside: Vec<JoinHandle<()>>,
}

impl Scene {
    /// Nodes that a fault on nodes means. If there is none, that is noted.
    pub fn nodes(&self, of: &Fault) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for pattern in &of.plan.on {
            for name in self.control.matching(pattern) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        if names.is_empty() {
            let known = self.control.nodes().into_iter().map(|node| node.name).collect();
            self.failed(of, &of.plan.subject(), FaultDetail::NoSuchNode { known });
        }
        names
    }

    /// Does something to every node that a fault means, and notes for each that it began, or why it did not. Gives
    /// those for which it began, and when.
    pub fn each(
        &mut self,
        of: &Fault,
        detail: &FaultDetail,
        act: impl Fn(&mut Self, &str) -> Result<(), TestbedError>,
    ) -> Vec<(String, Instant)> {
        let mut begun = Vec::new();
        for name in self.nodes(of) {
            match act(self, &name) {
                Ok(()) => {
                    self.note(FaultPhase::Start, of, &name, detail.clone());
                    begun.push((name, self.clock.now()));
                }
                Err(error) => self.failed(of, &name, why(&error)),
            }
        }
        begun
    }

    /// Says whether a fault of this node's disk that ends the node finds one to end: whatever fails then, it fails after that,
    /// and the node is to be started again.
    pub fn would_end(&self, name: &str) -> bool {
        let has_disk = self.control.nodes_with_disk().iter().any(|node| node == name);
        has_disk && matches!(self.control.ended(name), Ok(None))
    }

    /// Holds a node: it stands still until nothing holds it any more.
    pub fn hold(&mut self, name: &str) -> Result<(), TestbedError> {
        self.control.pause(name)?;
        *self.pauses.entry(name.to_owned()).or_default() += 1;
        Ok(())
    }

    /// Lets go of a node once. Gives whether another hold goes on; the node goes on with the last.
    pub fn let_go(&mut self, name: &str) -> (bool, Result<(), TestbedError>) {
        let holds = self.pauses.entry(name.to_owned()).or_default();
        *holds = holds.saturating_sub(1);
        if *holds > 0 {
            return (true, Ok(()));
        }
        self.pauses.remove(name);
        (false, self.control.resume(name))
    }

    /// Starts a node again that has ended or is about to, and has it watched.
    pub fn start_again(&self, name: &str) -> Result<(), TestbedError> {
        self.control.await_end(name)?;
        let node = self.control.start(name)?;
        if let Some(watcher) = &self.watcher {
            watcher.watch(name, node.pid);
        }
        Ok(())
    }

    /// Nanoseconds since then.
    pub fn since(&self, at: Instant) -> i64 {
        self.clock.now().ns_since(at)
    }

    /// Notes that a fault ended after a time.
    pub fn over(
        &self,
        of: &Fault,
        node: &str,
        since: Instant,
        (cut_short, goes_on): (bool, bool),
        undone: &Result<(), TestbedError>,
    ) {
        let error = undone.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let detail = FaultDetail::After { ns: self.since(since), cut_short, goes_on, error };
        self.note(FaultPhase::End, of, node, detail);
    }

    /// Notes that a fault did not take place.
    pub fn failed(&self, of: &Fault, node: &str, detail: FaultDetail) {
        self.note(FaultPhase::Failed, of, node, detail);
    }

    /// Notes that a fault began when it took a while to be done.
    pub fn began_at(&self, at: Instant, of: &Fault, node: &str, detail: FaultDetail) {
        self.journal.note_at(at, FaultPhase::Start, of, (node, 0), detail);
    }

    /// Notes something of a fault that does not come round.
    pub fn note(&self, phase: FaultPhase, of: &Fault, node: &str, detail: FaultDetail) {
        self.journal.note(phase, of, (node, 0), detail);
    }
}

/// What the testbed says, as a detail.
pub(super) fn why(error: &TestbedError) -> FaultDetail {
    FaultDetail::Why { text: error.to_string() }
}
