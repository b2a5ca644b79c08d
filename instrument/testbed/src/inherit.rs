//! Descriptors that a node inherits from this process, for programs that are spoken with over a socket pair.
//!
//! Every descriptor here closes when a program is started. Which of them one program keeps is decided between fork and
//! exec of that program alone, so that no other node that is started meanwhile gets a copy: a copy would keep a channel
//! open whose program has died.
#![expect(
    unsafe_code,
    reason = "code between fork and exec has no safe form in the standard library"
)]

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::io::{FdFlags, fcntl_setfd};

/// The inheritance of one life of a node.
#[derive(Debug, Default)]
pub struct Inheritance {
    /// Descriptors that the node alone keeps open.
    pub descriptors: Vec<OwnedFd>,
    /// Set before this life is ended on request (a fault, the tear-down): whoever sees the descriptors' other ends close
    /// can tell that from an end of the node's own.
    pub is_asked_to_end: Arc<AtomicBool>,
}

/// Makes the inheritance of each life: a socket whose other end has spoken with one life says nothing that another
/// could read from its beginning.
#[derive(Clone, Default)]
pub(crate) struct Inherited {
    /// The variable that tells the node their numbers, with commas between them.
    pub(crate) variable: String,
    pub(crate) make: Option<Arc<dyn Fn() -> io::Result<Inheritance> + Send + Sync>>,
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inherited").field("variable", &self.variable).finish_non_exhaustive()
    }
}

impl Inherited {
    /// Has the program that `command` starts keep the descriptors of a new life, and tells it their numbers. Gives the mark
    /// that says whether that life was asked to end.
    ///
    /// # Errors
    /// When they cannot be made.
    pub(crate) fn hand_over(&self, command: &mut Command) -> io::Result<Arc<AtomicBool>> {
        let Some(make) = &self.make else { return Ok(Arc::default()) };
        let Inheritance { descriptors, is_asked_to_end } = make()?;
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
        Ok(is_asked_to_end)
    }
}
