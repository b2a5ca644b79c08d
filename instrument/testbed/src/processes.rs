//! The processes of one testbed: which run, how the others ended, where their logs are. The keeper watches them here,
//! the bed and its controls act on them.
//!
//! It starts nothing: that is the keeper's, on whose thread every node begins.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use clock::{Clock, Instant};

use crate::TestbedError;
use crate::disk::{Disks, EnteredDisks};
use crate::guard::Guard;
use crate::log::{self, LOG_BYTES_MAX};
use crate::node::{Asked, NodeEnd, Process};

/// How long the kernel is given to carry out SIGKILL.
pub(crate) const KILL_WAIT_MAX: Duration = Duration::from_secs(5);
/// How often a condition is looked at while somebody waits for it.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// All of them, and what is theirs.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) clock: Clock,
    /// Where the logs are.
    pub(crate) folder: PathBuf,
    /// The nodes' disks, where the plan has any.
    pub(crate) disks: OnceLock<Disks>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) nodes: Vec<Process>,
    pub(crate) ends: Vec<NodeEnd>,
    pub(crate) guard: Option<Guard>,
    /// The testbed is being dropped: no node may be started any more.
    pub(crate) is_over: bool,
}

impl Processes {
    pub(crate) fn new(folder: &Path, clock: Clock) -> Self {
        let folder = folder.to_owned();
        Self { clock, folder, disks: OnceLock::new(), state: Mutex::default() }
    }

    /// The lock is taken even if a thread panicked with it: nodes must be ended all the same.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the calling thread to where the nodes' files are.
    pub(crate) fn enter_disks(&self) -> Result<EnteredDisks, TestbedError> {
        self.disks.get().map_or_else(|| Ok(EnteredDisks::nothing()), Disks::enter)
    }

    /// Notices ends.
    pub(crate) fn observe(&self) {
        let mut state = self.state();
        let State { nodes, ends, guard, .. } = &mut *state;
        for node in nodes {
            ends.extend(node.observe(self.clock, guard.as_mut()));
        }
    }

    /// What becomes readable when a running node ends, and whether there is one for each.
    pub(crate) fn watched(&self) -> (Vec<Arc<OwnedFd>>, bool) {
        let state = self.state();
        let running = || state.nodes.iter().filter(|node| node.ended().is_none());
        let watched: Vec<_> = running().filter_map(Process::end_signal).collect();
        let is_each_watched = watched.len() == running().count();
        (watched, is_each_watched)
    }

    /// Cuts logs that have grown too long. A log that cannot be cut is left: that is the disk's to report.
    pub(crate) fn bound_logs(&self) {
        let logs: Vec<PathBuf> = self.state().nodes.iter().map(|node| node.log.clone()).collect();
        for path in logs {
            let _ = log::bound(&path, LOG_BYTES_MAX);
        }
    }

    pub(crate) fn stop_all(&self, grace: Duration) -> Result<(), TestbedError> {
        self.observe();
        for node in self.state().nodes.iter_mut().filter(|node| node.ended().is_none()) {
            // It can only fail for a group that is gone, which the next look notices.
            let _ = node.ask_to_end(Asked::TearDown);
        }
        if self.all_end_by(self.clock.now().plus(grace), None) {
            return Ok(());
        }
        for node in self.state().nodes.iter_mut().filter(|node| node.ended().is_none()) {
            let _ = node.kill(Asked::TearDown);
        }
        if self.all_end_by(self.clock.now().plus(KILL_WAIT_MAX), None) {
            return Ok(());
        }
        let state = self.state();
        let left = state.nodes.iter().filter(|node| node.ended().is_none());
        let names: Vec<String> = left.map(|node| format!("node `{}`", node.spec.name)).collect();
        Err(TestbedError::Stuck(names.join(", ")))
    }

    /// Waits until all nodes, or one, have ended. Gives whether they did.
    pub(crate) fn all_end_by(&self, deadline: Instant, only: Option<&str>) -> bool {
        loop {
            self.observe();
            let is_meant = |node: &&Process| only.is_none_or(|name| node.spec.name == name);
            if self.state().nodes.iter().filter(is_meant).all(|node| node.ended().is_some()) {
                return true;
            }
            let now = self.clock.now();
            if now >= deadline {
                return false;
            }
            self.clock.sleep_until(now.plus(LOOK_EVERY));
        }
    }
}

impl State {
    pub(crate) fn index(&self, name: &str) -> Result<usize, TestbedError> {
        self.nodes.iter().position(|node| node.spec.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.nodes.iter().map(|node| node.spec.name.as_str()).collect();
            let known = match names.as_slice() {
                [] => "none has been started".to_owned(),
                _ => format!("there are: {}", names.join(", ")),
            };
            TestbedError::NoSuchNode { name: name.to_owned(), known }
        })
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Process, TestbedError> {
        Ok(&self.nodes[self.index(name)?])
    }
}
