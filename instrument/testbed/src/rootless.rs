//! A user namespace of this process's own, in which an ordinary user may have networks and mounts. Made before the first
//! other thread, because the kernel moves a process only while it has one.
//!
//! Inside, the user keeps his number: files are his as before, and a program that a trial starts has none of the rights,
//! because they end with `exec` of whoever is not root. It must never be made for root, whose rights outside it are
//! what gives the network's thread its priority (docs/decisions/018).
#![expect(unsafe_code, reason = "unshare has no safe form")]

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, unshare_unsafe};

use crate::TestbedError;
use crate::disk::leave_mounts;
use crate::network;

/// Settings of kernels and distributions that refuse user namespaces, with the value that does and what to set.
const SETTINGS: [(&str, &str, &str); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=10000"),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
];

/// Gives an ordinary user the right to a trial's own networks and mounts. Does nothing where he has it already. To be called
/// while this process has one thread.
///
/// Threads that enter a trial's mounts and networks go back afterwards, which only the owner of where they come from may: so
/// this process has mounts of its own from here on, and with `is_networked` a network of its own, with nothing but loopback.
///
/// # Errors
/// When the kernel refuses; the message names the setting.
pub fn take_own_namespaces(is_networked: bool) -> Result<(), TestbedError> {
    if may_mount() {
        return Ok(());
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let made = leave_user_namespace().and_then(|()| {
        // The kernel asks for this before a group is named: a user who could drop groups could get round a file that refuses one.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        leave_mounts()?;
        if is_networked {
            network::leave_for_loopback()?;
        }
        Ok(())
    });
    match made {
        Ok(()) if may_mount() => Ok(()),
        Ok(()) => Err(refused("its rights were taken away at once")),
        Err(error) => Err(refused(&error.to_string())),
    }
}

/// Whether this process may mount and make networks, where it is.
fn may_mount() -> bool {
    capabilities(None).is_ok_and(|all| all.effective.contains(CapabilitySet::SYS_ADMIN))
}

fn refused(why: &str) -> TestbedError {
    let setting = SETTINGS
        .iter()
        .find(|(path, value, _)| fs::read_to_string(path).is_ok_and(|text| text.trim() == *value));
    let remedy = match setting {
        Some((path, value, command)) => format!("{path} is {value}; as root: {command}"),
        None => "a container's seccomp profile may forbid it: give the container --security-opt seccomp=unconfined, \
                 or run as root"
            .to_owned(),
    };
    TestbedError::Host {
        what: format!(
            "disks and links take a user namespace, which this kernel refused to an ordinary user; {remedy}"
        ),
        source: io::Error::other(why.to_owned()),
    }
}

/// Puts this process into a user namespace of its own.
fn leave_user_namespace() -> io::Result<()> {
    // SAFETY: what makes unshare unsafe is CLONE_FILES, which would part the descriptors of threads; only the user
    // namespace is unshared, and the kernel refuses that to a process with other threads.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?)
}
