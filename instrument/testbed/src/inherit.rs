//! Descriptors that a node inherits from this process, for programs that are spoken with over a socket pair.
//!
//! Every descriptor here closes when a program is started. Which of them one program keeps is decided between fork and
//! exec of that program alone, so that no other node that is started meanwhile gets a copy: a copy would keep a channel
//! open whose program has died.
#![expect(
    unsafe_code,
    reason = "code between fork and exec has no safe form in the standard library"
)]

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::{FdFlags, fcntl_setfd};

/// What the first life of a node inherits. Later ones inherit nothing: a socket whose other end has spoken with one life
/// says nothing that another could read from its beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inherited {
    /// The variable that tells the node their numbers, with commas between them.
    pub(crate) variable: String,
    /// Taken when the node is started: nobody but the node may keep them open.
    pub(crate) descriptors: Arc<Mutex<Vec<OwnedFd>>>,
}

impl Inherited {
    /// Has the program that `command` starts keep the descriptors, and tells it their numbers.
    pub(crate) fn hand_over(&self, command: &mut Command) {
        if self.variable.is_empty() {
            return;
        }
        let mut list = self.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
        let descriptors = std::mem::take(&mut *list);
        let numbers: Vec<String> =
            descriptors.iter().map(|one| one.as_raw_fd().to_string()).collect();
        command.env(&self.variable, numbers.join(","));
        let in_child = move || -> io::Result<()> {
            for descriptor in &descriptors {
                fcntl_setfd(descriptor, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec of a process with threads only async-signal-safe work is allowed. The closure
        // makes one raw system call (fcntl) for each descriptor, takes no lock and allocates nothing: an error from a raw
        // number is held inline. It owns the descriptors, which close here when the command is dropped.
        unsafe {
            command.pre_exec(in_child);
        }
    }
}
