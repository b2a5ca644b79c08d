//! The lives of a node: started, asked to end, killed, started again. From any thread that holds a control,
//! because a fault is injected beside the load; every process is started by the keeper all the same.
//!
//! It must never start a node of a testbed that is being dropped.

use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::{BedControl, Shared};
use crate::TestbedError;
use crate::guard::Guard;
use crate::keeper::Keeper;
use crate::log;
use crate::node::{Asked, Node, NodeSpec, Process};
use crate::processes::KILL_WAIT_MAX;

impl BedControl {
    /// Asks a node to end: end of file on its standard input, and SIGTERM. It does not wait.
    ///
    /// # Errors
    /// When there is no such node, or it has ended.
    pub fn ask_to_end(&self, name: &str) -> Result<(), TestbedError> {
        self.signal(name, "end", |node| node.ask_to_end(Asked::Kill))
    }

    /// How the last life of a node ended, in words; `None`: it runs.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn ended(&self, name: &str) -> Result<Option<String>, TestbedError> {
        self.shared.observe();
        let state = self.shared.state();
        Ok(state.find(name)?.ended().map(|end| end.how.clone()))
    }

    /// Starts a node that has ended, with what it was started with before. Its log goes on.
    ///
    /// # Errors
    /// When there is no such node, it runs, the testbed is gone, or it cannot be started.
    pub fn start(&self, name: &str) -> Result<Node, TestbedError> {
        self.shared.observe();
        let spec = {
            let state = self.shared.state();
            let process = state.find(name)?;
            if process.ended().is_none() {
                return Err(TestbedError::Runs(name.to_owned()));
            }
            process.spec.clone()
        };
        let mut process = self.shared.start(spec)?;
        let node = process.node();
        let mut state = self.shared.state();
        if state.is_over {
            let _ = process.kill(Asked::TearDown);
            return Err(TestbedError::Over(name.to_owned()));
        }
        let index = state.index(name)?;
        state.nodes[index] = process;
        drop(state);
        self.shared.wake_keeper();
        Ok(node)
    }

    /// Ends a node with SIGKILL if it runs, and starts it again.
    ///
    /// # Errors
    /// When there is no such node, it does not end, or as [`BedControl::start`].
    pub fn restart(&self, name: &str) -> Result<Node, TestbedError> {
        {
            let mut state = self.shared.state();
            let index = state.index(name)?;
            if state.nodes[index].ended().is_none() {
                let _ = state.nodes[index].kill(Asked::Kill);
            }
        }
        self.await_end(name)?;
        self.start(name)
    }

    /// Waits until a node that was killed has ended.
    pub(crate) fn await_end(&self, name: &str) -> Result<(), TestbedError> {
        let deadline = self.shared.clock.now().plus(KILL_WAIT_MAX);
        if self.shared.all_end_by(deadline, Some(name)) {
            return Ok(());
        }
        Err(TestbedError::Stuck(format!("node `{name}`")))
    }
}

impl Shared {
    /// The lock is taken even if a thread panicked with it: nodes must be ended all the same.
    pub(super) fn keeper(&self) -> MutexGuard<'_, Option<Keeper>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a program; whose node it becomes is the caller's affair.
    pub(super) fn start(&self, spec: NodeSpec) -> Result<Process, TestbedError> {
        let guard_error = TestbedError::Guard;
        let path = self.folder.join(format!("{}.log", spec.name));
        let log_error =
            |source| TestbedError::Log { node: spec.name.clone(), path: path.clone(), source };
        let mut keeper = self.keeper();
        {
            let mut state = self.state();
            if state.is_over {
                return Err(TestbedError::Over(spec.name));
            }
            if state.guard.is_none() {
                state.guard = Some(Guard::start().map_err(guard_error)?);
            }
        }
        if keeper.is_none() {
            *keeper = Some(Keeper::start(Arc::clone(&self.processes)).map_err(guard_error)?);
        }
        let file = log::open(&path).map_err(log_error)?;
        let log_start = file.metadata().map_err(log_error)?.len();
        let mut command = spec.command(file).map_err(log_error)?;
        let inherited = spec.inherited.hand_over(&mut command);
        let is_asked_to_end = inherited.map_err(|source| start_error(&spec, source))?;
        if let Some(network) = self.network.get() {
            network.place(&spec.name, &mut command);
        }
        spec.settle(&mut command);
        let child = keeper.as_ref().expect("made above").spawn(command, spec.is_alone);
        drop(keeper);
        let child = child.map_err(|source| start_error(&spec, source))?;
        let mut process = Process::new(spec, path, log_start, child, is_asked_to_end);
        let told = self.state().guard.as_mut().map_or(Ok(()), |g| g.add(process.group()));
        if let Err(error) = told {
            let _ = process.kill(Asked::TearDown);
            return Err(guard_error(error));
        }
        Ok(process)
    }

    /// It has one more node to watch.
    pub(super) fn wake_keeper(&self) {
        if let Some(keeper) = self.keeper().as_ref() {
            keeper.wake();
        }
    }
}

fn start_error(spec: &NodeSpec, source: io::Error) -> TestbedError {
    let hint = match source.kind() {
        io::ErrorKind::NotFound => "install it, or give its full path",
        io::ErrorKind::PermissionDenied => "make the file executable",
        _ => "try the same command in a shell",
    };
    TestbedError::Start {
        node: spec.name.clone(),
        program: spec.program.clone(),
        source,
        hint: hint.to_owned(),
    }
}
