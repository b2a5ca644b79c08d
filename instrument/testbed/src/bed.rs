//! The nodes of one trial, by name: start, wait for, pause, kill, restart, stop.
//!
//! A testbed costs nothing until the first node is started (no folder, no thread). It never restarts a node
//! that has ended by itself: that a node died is a result.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use clock::Clock;
use model::Seed;
use model::facts::{DiskFacts, NetworkFacts, NodeFacts};
use model::plan::{DiskChange, DisksPlan, LinksPlan, PowerLoss, is_meant};
use rustix::process::Signal;

mod lives;

use crate::TestbedError;
use crate::disk::{Disks, EnteredDisks, PowerCut, Rotted};
use crate::keeper::Keeper;
use crate::log::LineSearch;
use crate::network::{Entered, LinkControl, Network};
use crate::node::{Asked, Node, NodeEnd, NodeSpec, Process};
use crate::processes::{LOOK_EVERY, Processes};

/// How long nodes are given to end by themselves when the testbed is dropped.
const DROP_GRACE: Duration = Duration::from_secs(3);

/// The nodes of one trial. Dropping it ends them all.
#[derive(Debug)]
pub struct Testbed {
    own_program: Option<(PathBuf, Vec<String>)>,
    seed: Seed,
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
}

/// What threads beside the testbed's owner may do: look, and inject faults, a restart included (see `lives`).
/// Copies act on the same nodes and do not keep them alive: when the testbed is gone, nothing can be started.
#[derive(Clone, Debug)]
pub struct BedControl {
    shared: Arc<Shared>,
}

/// What the owner and its controls share.
#[derive(Debug)]
struct Shared {
    processes: Arc<Processes>,
    /// Made with the first node; `None` again when the testbed is gone.
    keeper: Mutex<Option<Keeper>>,
    /// The trial's own network, where its plan has links.
    network: OnceLock<Network>,
}

impl std::ops::Deref for Shared {
    type Target = Processes;

    /// Most of what is asked of a bed is asked of its processes.
    fn deref(&self) -> &Processes {
        &self.processes
    }
}

impl Testbed {
    /// No nodes yet. Their logs will be in `folder`, which is made when the first one is started.
    #[must_use]
    pub fn new(folder: &Path, clock: Clock) -> Self {
        let processes = Arc::new(Processes::new(folder, clock));
        let (keeper, network) = (Mutex::default(), OnceLock::new());
        let shared = Arc::new(Shared { processes, keeper, network });
        Self { own_program: None, seed: Seed::default(), stop: Arc::default(), shared }
    }

    /// Where the logs are. Adapters may keep files of their nodes here too.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// The clock that node ends are stamped by.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// A handle for other threads.
    #[must_use]
    pub fn control(&self) -> BedControl {
        BedControl { shared: Arc::clone(&self.shared) }
    }

    /// Makes [`Testbed::spawn_self`] run this program, with these arguments before those of the node. For
    /// tests, whose own executable is not `assay`.
    pub fn set_own_program(&mut self, program: impl Into<PathBuf>, first_args: Vec<String>) {
        self.own_program = Some((program.into(), first_args));
    }

    /// What is random on the network's links (loss, jitter, reordering) is drawn from this, the trial's seed. To be
    /// called before [`Testbed::with_network`].
    pub const fn set_seed(&mut self, seed: Seed) {
        self.seed = seed;
    }

    /// Waiting for nodes to become ready is given up soon after `stop` is set.
    pub fn stop_on(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    /// Makes the network that the plan's links are on. To be called before the first node is started.
    ///
    /// # Errors
    /// When it has a network already, or the system does not let one be made; the message says what is missing.
    pub fn with_network(&mut self, plan: &LinksPlan) -> Result<(), TestbedError> {
        let network = Network::start(plan, self.shared.clock, self.seed.split("links"))?;
        self.shared.network.set(network).map_err(|_| TestbedError::Network {
            what: "there is one already; a testbed has one network".to_owned(),
        })
    }

    /// The address that the node called `name` is to listen on, where the trial has a network of its own; `None`:
    /// it has none, and the adapter chooses addresses of the host. A node that is started under a name that has been
    /// given an address is in a network namespace of its own, in which it may use every port.
    ///
    /// # Errors
    /// When the network cannot take one more node.
    pub fn network_address(&mut self, name: &str) -> Result<Option<Ipv4Addr>, TestbedError> {
        check_name(name)?;
        self.shared.network.get().map_or(Ok(None), |network| network.address(name))
    }

    /// The address that the end called `from` is to dial instead of `target`, on which the node called `to` listens,
    /// where the links are forwarders of TCP streams: what is sent there meets the link from `from` to `to`, and the
    /// answers the one back. `client` is the instrument's own end. `None`: dial `target`. The same question gets
    /// the same answer.
    ///
    /// # Errors
    /// When the host does not let one more address be listened on.
    pub fn forward(
        &mut self,
        from: &str,
        to: &str,
        target: SocketAddr,
    ) -> Result<Option<SocketAddr>, TestbedError> {
        self.shared.network.get().map_or(Ok(None), |network| network.forward(from, to, target))
    }

    /// Puts the calling thread, and every thread that it starts afterwards, where the instrument is on the trial's
    /// network, until the guard is dropped. Nothing of the host's network can be reached from there. Without a
    /// network it does nothing.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn enter_network(&self) -> Result<Entered, TestbedError> {
        self.shared.network.get().map_or_else(|| Ok(Entered::nothing()), Network::enter)
    }

    /// What the network has done so far, its own errors included; `None`: the trial has none.
    #[must_use]
    pub fn network_report(&self) -> Option<NetworkFacts> {
        self.shared.network.get().map(Network::report)
    }

    /// Processor time that the network has used in this process so far: it is no part of the generator's.
    #[must_use]
    pub fn network_cpu(&self) -> Duration {
        self.shared.network.get().map_or(Duration::ZERO, Network::cpu)
    }

    /// Gives the nodes that the plan means a disk each, which can lose its power and be slow, full or faulty. To be
    /// called before the first node is started; [`Testbed::node_folder`] then gives each its disk.
    ///
    /// # Errors
    /// When they have been given already, a node has been started, or the host cannot have them; the message says
    /// what is missing.
    pub fn with_disks(&mut self, plan: &DisksPlan) -> Result<(), TestbedError> {
        let refused = |what: &str| TestbedError::Disk { what: what.to_owned() };
        if self.shared.keeper().is_some() {
            return Err(refused("a node has been started already, where they do not show"));
        }
        let disks = Disks::start(plan, self.shared.clock, self.seed.split("disks"))?;
        self.shared.disks.set(disks).map_err(|_| refused("the testbed has been given them already"))
    }

    /// The folder for the files of the node called `name`, made if it is not there: on a disk of its own where the
    /// plan gives it one. The same question gets the same answer.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn node_folder(&mut self, name: &str) -> Result<PathBuf, TestbedError> {
        check_name(name)?;
        let host = |source| TestbedError::Host {
            what: format!("the folder of node `{name}` could not be made"),
            source,
        };
        let folder = std::path::absolute(self.shared.folder.join(name)).map_err(host)?;
        std::fs::create_dir_all(&folder).map_err(host)?;
        if let Some(disks) = self.shared.disks.get() {
            disks.provide(name, &folder)?;
        }
        Ok(folder)
    }

    /// Takes the calling thread, and every thread that it starts afterwards, to where the files on the nodes' disks
    /// can be seen, until the guard is dropped. Without disks it does nothing.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn enter_disks(&self) -> Result<EnteredDisks, TestbedError> {
        self.shared.enter_disks()
    }

    /// What the nodes' disks have done so far, their own cost included; empty: no node has one.
    #[must_use]
    pub fn disk_report(&self) -> Vec<DiskFacts> {
        self.shared.disks.get().map(Disks::report).unwrap_or_default()
    }

    /// Processor time that the disks have used in this process so far: it is no part of the generator's.
    #[must_use]
    pub fn disk_cpu(&self) -> Duration {
        self.shared.disks.get().map_or(Duration::ZERO, Disks::cpu)
    }

    /// Starts a program as a node.
    ///
    /// # Errors
    /// When the name cannot be used, the program cannot be started or the log cannot be written.
    pub fn spawn(&mut self, spec: NodeSpec) -> Result<Node, TestbedError> {
        check_name(&spec.name)?;
        if self.shared.state().nodes.iter().any(|node| node.spec.name == spec.name) {
            return Err(TestbedError::NameTaken(spec.name));
        }
        let process = self.shared.start(spec)?;
        let node = process.node();
        self.shared.state().nodes.push(process);
        self.shared.wake_keeper();
        Ok(node)
    }

    /// Starts this very program as a node, with other arguments, so that a node's cost is never mixed with the
    /// instrument's.
    ///
    /// # Errors
    /// As [`Testbed::spawn`].
    pub fn spawn_self<T: Into<String>>(
        &mut self,
        name: &str,
        args: impl IntoIterator<Item = T>,
    ) -> Result<Node, TestbedError> {
        let (program, first_args) = match &self.own_program {
            Some(own) => own.clone(),
            None => (own_program()?, Vec::new()),
        };
        self.spawn(NodeSpec::new(name, program).args(first_args).args(args))
    }

    /// Starts a node that is a program of its own ([`crate::program`]): one that is too heavy to be part of this one.
    ///
    /// # Errors
    /// When it is not there (the message says what to run), or as [`Testbed::spawn`].
    pub fn spawn_program<T: Into<String>>(
        &mut self,
        name: &str,
        program: &str,
        args: impl IntoIterator<Item = T>,
    ) -> Result<Node, TestbedError> {
        self.spawn(NodeSpec::new(name, crate::program::find(program)?).args(args))
    }

    /// Waits until `is_ready` says so, looking every 2 ms.
    ///
    /// # Errors
    /// When the node ends first, has not become ready in time, or the waiting was stopped.
    pub fn wait_ready(
        &mut self,
        name: &str,
        mut is_ready: impl FnMut() -> bool,
        timeout: Duration,
    ) -> Result<(), TestbedError> {
        self.wait(name, timeout, || is_ready().then_some(()))
    }

    /// Waits for a line of the node's output whose first word is `ready` and gives its `key=value` pairs.
    ///
    /// # Errors
    /// When the node ends first, has not written such a line in time, or the waiting was stopped.
    pub fn ready_line(
        &mut self,
        name: &str,
        timeout: Duration,
    ) -> Result<BTreeMap<String, String>, TestbedError> {
        let (path, from) = {
            let state = self.shared.state();
            let process = state.find(name)?;
            (process.log.clone(), process.log_start)
        };
        let log_error =
            |source| TestbedError::Log { node: name.to_owned(), path: path.clone(), source };
        let mut search = LineSearch::new(&path, from).map_err(log_error)?;
        let line = self.wait(name, timeout, || search.find("ready").transpose())?;
        Ok(pairs(&line.map_err(log_error)?))
    }

    /// Changes the arguments that a node is started with when it is started again: a port that it found, a file that
    /// it is to go on with.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn at_restart(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Vec<String>),
    ) -> Result<(), TestbedError> {
        let mut state = self.shared.state();
        let index = state.index(name)?;
        change(&mut state.nodes[index].spec.args);
        Ok(())
    }

    /// Starts a node again, with what it was started with before; ends it first if it runs. Its log goes on.
    ///
    /// # Errors
    /// When there is no such node, or as [`Testbed::spawn`].
    pub fn restart(&mut self, name: &str) -> Result<Node, TestbedError> {
        self.control().restart(name)
    }

    /// SIGSTOP to the node and its children.
    ///
    /// # Errors
    /// When there is no such node, or it has ended.
    pub fn pause(&mut self, name: &str) -> Result<(), TestbedError> {
        self.control().pause(name)
    }

    /// SIGCONT to the node and its children.
    ///
    /// # Errors
    /// When there is no such node, or it has ended.
    pub fn resume(&mut self, name: &str) -> Result<(), TestbedError> {
        self.control().resume(name)
    }

    /// SIGKILL to the node and its children.
    ///
    /// # Errors
    /// When there is no such node, or it has ended.
    pub fn kill(&mut self, name: &str) -> Result<(), TestbedError> {
        self.control().kill(name)
    }

    /// The nodes in the order started, and how those ended that did so before tear-down.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeFacts> {
        self.control().nodes()
    }

    /// Every end of a node so far, in the order noticed.
    #[must_use]
    pub fn ends(&self) -> Vec<NodeEnd> {
        self.control().ends()
    }

    /// Ends all nodes: end of file and SIGTERM, `grace` to end by themselves, then SIGKILL.
    ///
    /// # Errors
    /// When one does not end even then.
    pub fn stop_all(&mut self, grace: Duration) -> Result<(), TestbedError> {
        self.shared.stop_all(grace)
    }

    /// Looks at `found` until it gives something, the node ends or the time is up.
    fn wait<T>(
        &mut self,
        name: &str,
        timeout: Duration,
        mut found: impl FnMut() -> Option<T>,
    ) -> Result<T, TestbedError> {
        let clock = self.shared.clock;
        let deadline = clock.now().plus(timeout);
        loop {
            // Looked at before `found`, so that what a node said just before it ended still counts.
            self.shared.observe();
            let end = self.shared.state().find(name)?.ended().cloned();
            if let Some(value) = found() {
                return Ok(value);
            }
            if let Some(end) = end {
                let log = self.shared.state().find(name)?.log_tail();
                return Err(TestbedError::EndedBeforeReady { node: end.name, how: end.how, log });
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(TestbedError::Stopped(name.to_owned()));
            }
            let now = clock.now();
            if now >= deadline {
                let log = self.shared.state().find(name)?.log_tail();
                return Err(TestbedError::NotReady { node: name.to_owned(), waited: timeout, log });
            }
            clock.sleep_until(now.plus(LOOK_EVERY));
        }
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        // Nobody can take an error here. The end of the keeper's thread makes the kernel kill what is left.
        let _ = self.shared.stop_all(DROP_GRACE);
        // Taken out first: the thread that ends looks at what is shared.
        let keeper = self.shared.keeper().take();
        drop(keeper);
        self.shared.state().guard = None;
        if let Some(network) = self.shared.network.get() {
            network.close();
        }
        if let Some(disks) = self.shared.disks.get() {
            disks.close();
        }
    }
}

impl BedControl {
    /// SIGSTOP to the node and its children.
    ///
    /// # Errors
    /// When there is no such node, or it has ended.
    pub fn pause(&self, name: &str) -> Result<(), TestbedError> {
        self.signal(name, "pause", |node| node.signal(Signal::STOP))
    }

    /// SIGCONT to the node and its children.
    ///
    /// # Errors
    /// When there is no such node, or it has ended.
    pub fn resume(&self, name: &str) -> Result<(), TestbedError> {
        self.signal(name, "resume", |node| node.signal(Signal::CONT))
    }

    /// SIGKILL to the node and its children.
    ///
    /// # Errors
    /// When there is no such node, or it has ended.
    pub fn kill(&self, name: &str) -> Result<(), TestbedError> {
        self.signal(name, "end", |node| node.kill(Asked::Kill))
    }

    /// The links of the trial's own network, to be changed while it runs; `None`: it has none.
    #[must_use]
    pub fn links(&self) -> Option<LinkControl> {
        self.shared.network.get().map(Network::control)
    }

    /// Cuts the power of a node: it stands still, its disk does nothing any more (a sync that waits has not happened), then it
    /// ends with SIGKILL, and what was not synced is taken from its disk. It is not started again.
    ///
    /// # Errors
    /// When there is no such node, it does not end, or it has no disk.
    pub fn cut_power(&self, name: &str, loss: PowerLoss) -> Result<PowerCut, TestbedError> {
        let disks = self.disks(name)?;
        disks.check(name)?;
        if self.ended(name)?.is_none() {
            // It stands still before its disk does, so that it never learns of that; it may end by itself in this moment.
            let _ = self.pause(name);
            disks.go_dark(name)?;
            let _ = self.kill(name);
        }
        let cut = self.await_end(name).and_then(|()| disks.cut(name, loss));
        cut.or_else(|error| disks.go_on(name).and(Err(error)))
    }

    /// Ends a node with SIGKILL and flips bits of what it has stored lately. It is not started again.
    ///
    /// # Errors
    /// When there is no such node, it does not end, or it has no disk.
    pub fn rot(&self, name: &str, fault: u32, bits: u64) -> Result<Rotted, TestbedError> {
        let disks = self.disks(name)?;
        disks.check(name)?;
        if self.ended(name)?.is_none() {
            // It may end by itself in this moment.
            let _ = self.kill(name);
        }
        self.await_end(name)?;
        disks.rot(name, fault, bits)
    }

    /// Makes a node's disk slow, full or faulty, until [`BedControl::mend_disk`] of the same fault, beside what other
    /// faults do to it: of what two say, the later begun holds.
    ///
    /// # Errors
    /// When it has no disk.
    pub fn change_disk(
        &self,
        name: &str,
        fault: u32,
        change: DiskChange,
    ) -> Result<(), TestbedError> {
        self.disks(name)?.change(name, fault, Some(change))
    }

    /// Undoes what a fault has made of a node's disk.
    ///
    /// # Errors
    /// When it has no disk.
    pub fn mend_disk(&self, name: &str, fault: u32) -> Result<(), TestbedError> {
        self.disks(name)?.change(name, fault, None)
    }

    /// Names of the nodes that have a disk of their own.
    #[must_use]
    pub fn nodes_with_disk(&self) -> Vec<String> {
        self.shared.disks.get().map(Disks::nodes).unwrap_or_default()
    }

    fn disks(&self, node: &str) -> Result<&Disks, TestbedError> {
        self.shared.disks.get().ok_or_else(|| TestbedError::Disk {
            what: format!("`{node}` has none: the trial has no [disk]"),
        })
    }

    /// Names of the nodes that a pattern means: a name, or a beginning with `*` behind it.
    #[must_use]
    pub fn matching(&self, pattern: &str) -> Vec<String> {
        let state = self.shared.state();
        let names = state.nodes.iter().map(|node| &node.spec.name);
        names.filter(|name| is_meant(pattern, name)).cloned().collect()
    }

    /// The nodes in the order started, and how those ended that did so before tear-down.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeFacts> {
        self.shared.observe();
        let state = self.shared.state();
        let facts = |node: &Process| {
            let before_tear_down = node.ended().filter(|_| node.asked() != Asked::TearDown);
            NodeFacts {
                name: node.spec.name.clone(),
                pid: node.pid(),
                is_unasked: before_tear_down.is_some_and(|end| !end.asked),
                ended: before_tear_down.map(|end| end.how.clone()).unwrap_or_default(),
            }
        };
        state.nodes.iter().map(facts).collect()
    }

    /// Every end of a node so far, in the order noticed.
    #[must_use]
    pub fn ends(&self) -> Vec<NodeEnd> {
        self.shared.observe();
        self.shared.state().ends.clone()
    }

    fn signal(
        &self,
        name: &str,
        action: &'static str,
        act: impl FnOnce(&mut Process) -> io::Result<()>,
    ) -> Result<(), TestbedError> {
        self.shared.observe();
        let mut state = self.shared.state();
        let index = state.index(name)?;
        let process = &mut state.nodes[index];
        let node = name.to_owned();
        match process.ended() {
            Some(end) => Err(TestbedError::NotRunning { node, action, how: end.how.clone() }),
            None => act(process).map_err(|source| TestbedError::Signal { node, action, source }),
        }
    }
}

fn check_name(name: &str) -> Result<(), TestbedError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_allowed) {
        return Err(TestbedError::BadName(name.to_owned()));
    }
    Ok(())
}

/// This program's own path. If it has been replaced on disk (a rebuild during a run), the running one is still
/// reachable through /proc, and a node of another version than its adapter would be worse than an odd name.
fn own_program() -> Result<PathBuf, TestbedError> {
    let path = std::env::current_exe().map_err(|source| TestbedError::Host {
        what: "the path of this program could not be read from /proc/self/exe".to_owned(),
        source,
    })?;
    let is_there = path.exists();
    Ok(if is_there { path } else { PathBuf::from(format!("/proc/{}/exe", std::process::id())) })
}

/// `a=1 b=2`, read leniently: words without `=` are left out.
fn pairs(line: &str) -> BTreeMap<String, String> {
    line.split_whitespace()
        .filter_map(|word| word.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}
