//! One node: a child process in a process group of its own. It is started by the keeper; here it is signalled,
//! watched and buried.
//!
//! The order at an end matters: the leader is a zombie, so its id, which is also the group's, is still ours; the
//! rest of the group is killed and the guard told to forget the group; only then is the leader reaped. Nothing
//! here may signal an id that has been reaped.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clock::{Clock, Instant};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};

use crate::death_signal;
use crate::guard::Guard;
use crate::inherit::{Inheritance, Inherited};
use crate::log;
use crate::own_namespace::{self, Account};
use crate::surroundings;

/// What to start.
#[derive(Clone, Debug, Default)]
pub struct NodeSpec {
    /// Its name: letters, digits, `-`, `_` and `.`. Its log is `<name>.log` in the testbed's folder.
    pub name: String,
    /// A path, or a name to look for in PATH.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Set beside what any program gets of this process's environment.
    pub env: Vec<(String, String)>,
    /// Variables of this process's environment that it gets, too.
    pub passed: Vec<String>,
    /// Where it runs; `None`: where this process runs.
    pub cwd: Option<PathBuf>,
    /// Who runs it, and what that account is lent; `None`: who runs this process.
    pub(crate) lent: Option<(Account, PathBuf)>,
    /// Whether it is process 1 of a namespace of processes.
    pub(crate) is_alone: bool,
    /// Descriptors that each of its lives inherits.
    pub(crate) inherited: Inherited,
}

impl NodeSpec {
    /// `program` without arguments, to be called `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), program: program.into(), ..Self::default() }
    }

    /// With these arguments behind those that it has.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// With one more variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// With these variables of this process's environment, as far as they are set.
    #[must_use]
    pub fn pass(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.passed.extend(names);
        self
    }

    /// Run in this folder.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Run as this account, with `folder` at [`crate::FOLDER_AT`]: see [`Account::lend`].
    #[must_use]
    pub fn as_account(mut self, account: Account, folder: impl Into<PathBuf>) -> Self {
        self.lent = Some((account, folder.into()));
        self
    }

    /// Started as process 1 of a namespace of processes of its own, where this process may make one (it takes root): with
    /// it end all that it has started, and a pause holds them, too. For programs whose children leave their process group.
    /// A program that handles no SIGTERM is not asked to end by one there.
    #[must_use]
    pub const fn in_own_namespace(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// With the descriptors that `make` gives for each life of the node, which inherits them; this process closes them when
    /// it has started it. Their numbers, with commas between them, are in the environment variable `variable`.
    #[must_use]
    pub fn inherit(
        mut self,
        variable: &str,
        make: impl Fn() -> io::Result<Inheritance> + Send + Sync + 'static,
    ) -> Self {
        self.inherited = Inherited { variable: variable.to_owned(), make: Some(Arc::new(make)) };
        self
    }

    /// The command, with its output in `log` and a pipe to its standard input. [`NodeSpec::settle`] completes it.
    pub(crate) fn command(&self, log: std::fs::File) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(surroundings::of(&self.program))
            .envs(self.passed.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        if let Some(folder) = &self.cwd {
            command.current_dir(folder);
        }
        Ok(command)
    }

    /// The last steps before the program begins: after them there are no rights to do anything else.
    pub(crate) fn settle(&self, command: &mut Command) {
        own_namespace::enter(command, self.lent.as_ref(), self.is_alone);
        death_signal::kill_with_parent(command, self.is_alone);
    }
}

/// A node that has been started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its process id, which is its process group's too.
    pub pid: u32,
    /// Its log.
    pub log: PathBuf,
}

impl Node {
    /// The last lines that it wrote, for messages; empty: none, or its log cannot be read.
    #[must_use]
    pub fn last_lines(&self) -> String {
        log::tail(&self.log, 0)
    }
}

/// How a node ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEnd {
    /// The node.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    /// When that was noticed: within a millisecond on an idle machine.
    pub at: Instant,
    /// How, in words: `exited with status 1`, `killed by SIGKILL, as asked`.
    pub how: String,
    /// Whether the testbed had been asked for it (a kill, a restart, the tear-down).
    pub asked: bool,
}

/// Why a node is being ended by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    No,
    Kill,
    TearDown,
}

/// One incarnation of a node.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) spec: NodeSpec,
    pub(crate) log: PathBuf,
    /// Where in the log this incarnation begins.
    pub(crate) log_start: u64,
    child: Child,
    group: Pid,
    /// Becomes readable when the leader ends; `None` if there was no descriptor left for it.
    end_signal: Option<Arc<OwnedFd>>,
    asked: Asked,
    /// The same for whoever holds the other ends of what it inherited.
    is_asked_to_end: Arc<AtomicBool>,
    ended: Option<NodeEnd>,
}

impl Process {
    pub(crate) fn new(
        spec: NodeSpec,
        log: PathBuf,
        log_start: u64,
        child: Child,
        is_asked_to_end: Arc<AtomicBool>,
    ) -> Self {
        let group = Pid::from_child(&child);
        let end_signal = pidfd_open(group, PidfdFlags::empty()).ok().map(Arc::new);
        let (asked, ended) = (Asked::No, None);
        Self { spec, log, log_start, child, group, end_signal, asked, is_asked_to_end, ended }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) const fn group(&self) -> Pid {
        self.group
    }

    pub(crate) fn end_signal(&self) -> Option<Arc<OwnedFd>> {
        self.end_signal.clone()
    }

    pub(crate) const fn asked(&self) -> Asked {
        self.asked
    }

    pub(crate) const fn ended(&self) -> Option<&NodeEnd> {
        self.ended.as_ref()
    }

    pub(crate) fn node(&self) -> Node {
        Node { name: self.spec.name.clone(), pid: self.pid(), log: self.log.clone() }
    }

    /// Looks whether the leader has ended, and if so buries it and its group. Gives its end the first time.
    pub(crate) fn observe(&mut self, clock: Clock, guard: Option<&mut Guard>) -> Option<NodeEnd> {
        if self.ended.is_some() {
            return None;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.group), options) {
            Ok(None) => return None,
            // ECHILD: another part of this process has reaped it; then its id is no longer ours to signal.
            Err(Errno::CHILD) => {}
            _ => {
                let _ = kill_process_group(self.group, Signal::KILL);
            }
        }
        if let Some(guard) = guard {
            // A guard that has been killed cannot be told; then only the kernel's death signal is left.
            let _ = guard.forget(self.group);
        }
        let how = match self.child.wait() {
            Ok(status) => self.words(status),
            Err(error) => format!("ended, and its status is lost ({error})"),
        };
        let end = NodeEnd {
            name: self.spec.name.clone(),
            pid: self.pid(),
            at: clock.now(),
            how,
            asked: self.asked != Asked::No,
        };
        self.ended = Some(end.clone());
        Some(end)
    }

    /// Sends a signal to the whole group. The leader must not have been reaped.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        assert!(self.ended.is_none(), "a reaped process is not signalled");
        kill_process_group(self.group, signal)?;
        if self.spec.is_alone && (signal == Signal::STOP || signal == Signal::CONT) {
            own_namespace::signal_all(self.group, signal);
        }
        Ok(())
    }

    /// Asks it to end: end of file on its standard input, and SIGTERM.
    pub(crate) fn ask_to_end(&mut self, asked: Asked) -> io::Result<()> {
        self.asks(asked);
        self.child.stdin = None;
        self.signal(Signal::TERM)?;
        self.signal(Signal::CONT)
    }

    /// Ends it and its group at once.
    pub(crate) fn kill(&mut self, asked: Asked) -> io::Result<()> {
        self.asks(asked);
        self.signal(Signal::KILL)
    }

    /// Notes that its end is asked for, before it can be seen.
    fn asks(&mut self, asked: Asked) {
        self.asked = asked;
        self.is_asked_to_end.store(true, Ordering::SeqCst);
    }

    /// The last lines of this incarnation's log.
    pub(crate) fn log_tail(&self) -> String {
        log::tail(&self.log, self.log_start)
    }

    fn words(&self, status: ExitStatus) -> String {
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exited with status {code}"),
            (None, Some(number)) => format!("killed by {}", signal_name(number)),
            (None, None) => status.to_string(),
        };
        match self.asked {
            Asked::No => how,
            Asked::Kill | Asked::TearDown => format!("{how}, as asked"),
        }
    }
}

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}
