//! Asks the kernel to kill a child when the thread that started it ends.
//!
//! It must do nothing in the child but two system calls.
#![expect(
    unsafe_code,
    reason = "code between fork and exec has no safe form in the standard library"
)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// The child that `command` starts is killed when the thread that starts it ends, this process' death included. For a program
/// that is waited for by the thread that started it; what it starts itself is not seen to.
pub fn end_with_thread(command: &mut Command) {
    kill_with_parent(command, false);
}

/// The child that `command` starts gets SIGKILL when the *thread* that starts it ends (prctl(2),
/// `PR_SET_PDEATHSIG`), so it must be started from a thread that lives as long as it should: the keeper.
///
/// In a namespace of processes of its own a child knows no parent; there the guard ends what is started in the moment in
/// which this process dies.
pub(crate) fn kill_with_parent(command: &mut Command, is_alone: bool) {
    let parent = getpid();
    let in_child = move || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have been killed between fork and the call above; then no signal would come.
        if getppid() != Some(parent) && !(is_alone && getppid().is_none()) {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
        }
        Ok(())
    };
    // SAFETY: between fork and exec of a process with threads only async-signal-safe work is allowed. The
    // closure makes two raw system calls (prctl, getppid), takes no lock and allocates nothing: an error from a
    // raw number is held inline. It captures an integer and a flag.
    unsafe {
        command.pre_exec(in_child);
    }
}
