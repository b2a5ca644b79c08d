//! The calls of the network that have no safe form: leaving a namespace, devices' ioctls, entering a namespace
//! between fork and exec, and running before every thread that shares processors by turns.
//!
//! Everything unsafe of the network stands here, and nothing else does: what a device is to be is decided in
//! `device.rs`.
#![expect(
    unsafe_code,
    reason = "ioctl, unshare, scheduling and code between fork and exec have no safe form"
)]

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// `struct ifreq` of netdevice(7): a name and a union of 24 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    name: [u8; NAME_BYTES],
    value: [u8; 24],
}

/// `IFNAMSIZ`.
const NAME_BYTES: usize = 16;

/// `_IOW('T', 202, int)` of linux/if_tun.h.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);
/// From linux/sockios.h, where numbers are written out.
const SIOCSIFFLAGS: Opcode = 0x8914;
const SIOCSIFADDR: Opcode = 0x8916;
const SIOCSIFNETMASK: Opcode = 0x891c;
const SIOCSIFMTU: Opcode = 0x8922;

impl Request {
    fn new(device: &str) -> Self {
        let mut name = [0; NAME_BYTES];
        assert!(device.len() < NAME_BYTES, "a device's name has at most 15 bytes");
        name[..device.len()].copy_from_slice(device.as_bytes());
        Self { name, value: [0; 24] }
    }

    fn flags(device: &str, flags: u16) -> Self {
        let mut request = Self::new(device);
        request.value[..2].copy_from_slice(&flags.to_ne_bytes());
        request
    }

    fn number(device: &str, number: i32) -> Self {
        let mut request = Self::new(device);
        request.value[..4].copy_from_slice(&number.to_ne_bytes());
        request
    }

    /// `struct sockaddr_in`: family, port, address in network order.
    fn address(device: &str, address: Ipv4Addr) -> Self {
        const AF_INET: u16 = 2;
        let mut request = Self::new(device);
        request.value[..2].copy_from_slice(&AF_INET.to_ne_bytes());
        request.value[4..8].copy_from_slice(&address.octets());
        request
    }
}

/// Puts the calling thread into a network namespace of its own, new and empty.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: what makes unshare unsafe is CLONE_FILES, which would part the descriptors of threads; only the
    // network is unshared.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// `SCHED_FIFO` of linux/sched.h.
const SCHED_FIFO: i32 = 1;

unsafe extern "C" {
    fn pthread_self() -> usize;
    fn pthread_setschedparam(thread: usize, policy: i32, priority: *const i32) -> i32;
}

/// Makes the calling thread run as soon as it can, before all that is not real-time, by the lowest of the real-time
/// priorities.
pub(crate) fn run_first() -> io::Result<()> {
    let lowest = 1;
    // SAFETY: `pthread_t` is an unsigned long (glibc) or a pointer (musl), both of a `usize`; the call reads one
    // `struct sched_param`, which on Linux begins with the priority, an int (musl has 40 bytes behind it, which it
    // never reads).
    match unsafe { pthread_setschedparam(pthread_self(), SCHED_FIFO, &raw const lowest) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Makes the device `device` in the namespace that `tun` (a descriptor of /dev/net/tun) was opened in: packets of
/// IP, without a header before them. It lives as long as the descriptor.
pub(crate) fn attach_tun(tun: impl AsFd, device: &str) -> io::Result<()> {
    const IFF_TUN: u16 = 0x0001;
    const IFF_NO_PI: u16 = 0x1000;
    set::<TUNSETIFF>(tun, Request::flags(device, IFF_TUN | IFF_NO_PI))
}

/// Gives a device its address, its network's mask and the largest packet in bytes, by any socket of its namespace, and switches it on. What is `None` stays as it is.
pub(crate) fn configure(socket: impl AsFd, device: &str, as_told: &Device) -> io::Result<()> {
    const IFF_UP: u16 = 0x0001;
    const IFF_RUNNING: u16 = 0x0040;
    if let Some((address, mask)) = as_told.address {
        set::<SIOCSIFADDR>(&socket, Request::address(device, address))?;
        set::<SIOCSIFNETMASK>(&socket, Request::address(device, mask))?;
    }
    if let Some(bytes) = as_told.packet_bytes_max {
        set::<SIOCSIFMTU>(&socket, Request::number(device, bytes))?;
    }
    set::<SIOCSIFFLAGS>(&socket, Request::flags(device, IFF_UP | IFF_RUNNING))
}

/// What a device is to be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Device {
    pub(crate) address: Option<(Ipv4Addr, Ipv4Addr)>,
    pub(crate) packet_bytes_max: Option<i32>,
}

fn set<const OPCODE: Opcode>(descriptor: impl AsFd, mut request: Request) -> io::Result<()> {
    // SAFETY: each opcode above reads one `struct ifreq`, 40 bytes, which `Request` is, and at most writes it back
    // (TUNSETIFF does, with the device's name).
    Ok(unsafe { ioctl(descriptor, Updater::<OPCODE, Request>::new(&mut request)) }?)
}

/// The child that `command` starts is in the namespace that this descriptor holds, from before its first instruction.
pub(crate) fn start_inside(command: &mut Command, namespace: Arc<OwnedFd>) {
    let in_child = move || -> io::Result<()> {
        Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
    };
    // SAFETY: between fork and exec of a process with threads only async-signal-safe work is allowed. The closure
    // makes one system call (setns) on a descriptor that it keeps open, takes no lock and allocates nothing: an
    // error from a raw number is held inline.
    unsafe {
        command.pre_exec(in_child);
    }
}
