//! The calls of disks that have no safe form: leaving the namespace of mounts, and the folder that threads share.
#![expect(unsafe_code, reason = "unshare has no safe form")]

use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives the calling thread mounts of its own, a copy of those that it had.
pub(crate) fn leave_mounts() -> io::Result<()> {
    // SAFETY: what makes unshare unsafe is CLONE_FILES, which would part the descriptors of threads; only mounts and
    // the current folder are unshared.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?)
}

/// Gives the calling thread, and those that it starts, a current folder of its own: only then may it go to
/// other mounts.
pub(super) fn leave_folder() -> io::Result<()> {
    // SAFETY: as above.
    Ok(unsafe { unshare_unsafe(UnshareFlags::FS) }?)
}
