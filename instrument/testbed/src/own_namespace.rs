//! Nodes of programs that start programs: in a namespace of processes of its own a node is process 1, and with it the
//! kernel ends all that it has started, whatever group they went to (pid_namespaces(7)). A database whose backends call
//! `setsid` would else go on without its first process after a SIGKILL, which is not what a crash of a machine does. And
//! the account that a node runs as, for programs that refuse to be root.
//!
//! It takes the right to make namespaces; without it a node is started where this process is.
#![expect(
    unsafe_code,
    reason = "unshare, and code between fork and exec, have no safe form in the standard library"
)]

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::process::{Gid, Pid, Signal, Uid, geteuid, kill_process};
use rustix::thread::{
    LinkNameSpaceType, UnshareFlags, move_into_link_name_space, set_thread_gid, set_thread_groups,
    set_thread_uid, unshare_unsafe,
};

/// The processes of the calling thread's children.
const OWN: &str = "/proc/thread-self/ns/pid";
/// Where a program that runs as another account has its folder.
pub const FOLDER_AT: &str = "/mnt";
const FOLDER_AT_C: &CStr = c"/mnt";
/// How often one looks for processes that were started while one looked.
const LOOKS: u32 = 3;

/// A user of this host and its group, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The user.
    pub user: u32,
    /// Its group.
    pub group: u32,
}

impl Account {
    /// Whether this process may start programs as another user.
    #[must_use]
    pub fn can_be_chosen() -> bool {
        geteuid().is_root()
    }

    /// The account with this name, from /etc/passwd; `None`: there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::find(&fs::read_to_string("/etc/passwd").ok()?, name)
    }

    /// Whether it may do everything.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.user == 0
    }

    fn find(accounts: &str, name: &str) -> Option<Self> {
        let mut lines = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let line = lines.find(|fields| fields.first() == Some(&name))?;
        Some(Self { user: line.get(2)?.parse().ok()?, group: line.get(3)?.parse().ok()? })
    }
}

/// Prepares the program that `command` starts: where `is_alone`, with shared memory of its own, which is gone with it; and
/// as the account of `lent`, if there is one. To be called before anything that is lost with a change of user (a death
/// signal is).
pub(crate) fn enter(command: &mut Command, lent: Option<&(Account, PathBuf)>, is_alone: bool) {
    let is_alone = is_alone && geteuid().is_root();
    if is_alone {
        let in_child = || -> io::Result<()> {
            // SAFETY: what makes unshare unsafe is CLONE_FILES, which would part the descriptors of threads; only
            // System V shared memory and message queues are unshared.
            Ok(unsafe { unshare_unsafe(UnshareFlags::NEWIPC) }?)
        };
        // SAFETY: between fork and exec of a process with threads only async-signal-safe work is allowed. The closure
        // makes one raw system call, takes no lock and allocates nothing, and captures nothing.
        unsafe {
            command.pre_exec(in_child);
        }
    }
    if let Some((account, folder)) = lent {
        account.lend(command, folder);
    }
}

impl Account {
    /// Has the program that `command` starts run as this account, with `folder` at [`FOLDER_AT`] for it alone:
    /// the folders of a run are closed to other users. It takes root.
    pub fn lend(&self, command: &mut Command, folder: &Path) {
        let Self { user, group } = *self;
        let folder = CString::new(folder.as_os_str().as_bytes());
        let in_child = move || -> io::Result<()> {
            let Ok(folder) = &folder else { return Err(io::ErrorKind::InvalidInput.into()) };
            // SAFETY: as above; only mounts are unshared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
            let own = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change(c"/", own)?;
            mount_bind(folder.as_c_str(), FOLDER_AT_C)?;
            let group = Gid::from_raw(group);
            set_thread_groups(&[group])?;
            set_thread_gid(group)?;
            set_thread_uid(Uid::from_raw(user))?;
            Ok(())
        };
        // SAFETY: between fork and exec of a process with threads only async-signal-safe work is allowed. The closure
        // makes six raw system calls with texts that were made before, takes no lock and allocates nothing: an error
        // from a raw number is held inline. The child has one thread, so what is set for the thread is set for the
        // process. It owns the text, which is freed when the command is dropped.
        unsafe {
            command.pre_exec(in_child);
        }
    }
}

/// Starts a program as process 1 of a namespace of processes, from the calling thread, whose later children are where
/// they would have been.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    if !geteuid().is_root() {
        return command.spawn();
    }
    let before = File::open(OWN)?;
    // SAFETY: as above; only the namespace of later children is changed. The thread starts no thread meanwhile, which
    // the kernel would refuse.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
    let child = command.spawn();
    move_into_link_name_space(before.as_fd(), Some(LinkNameSpaceType::ProcessID))?;
    child
}

/// Sends a signal to all processes in the namespace of `first`, if it is not that of this process.
pub(crate) fn signal_all(first: Pid, signal: Signal) {
    let namespace = |pid: &str| fs::metadata(format!("/proc/{pid}/ns/pid")).map(|it| it.ino()).ok();
    let own = namespace("self");
    let inside = namespace(&first.as_raw_nonzero().to_string());
    if inside.is_none() || inside == own {
        return;
    }
    for _ in 0..LOOKS {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        for process in processes.flatten() {
            let name = process.file_name();
            let Some(name) = name.to_str() else { continue };
            let pid = name.parse().ok().and_then(Pid::from_raw);
            if let Some(pid) = pid.filter(|_| namespace(name) == inside) {
                // It may have ended since.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: an account is found by its whole name, and a line that is none is not taken for one.
    #[test]
    fn accounts() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:8::/:\npostgres:x:101:104::/:/bin/sh\nbad:x\n";
        let found = |name| Account::find(accounts, name);
        assert_eq!(found("postgres"), Some(Account { user: 101, group: 104 }));
        assert!(found("root").is_some_and(|account| account.is_root()));
        assert_eq!((found("post"), found("bad"), found("")), (None, None, None));
    }
}
