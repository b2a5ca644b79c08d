//! What is in a namespace of the network: `lo`, and one TUN device whose other side the switch holds. Both are gone
//! with their namespace, the device already when its descriptor is closed.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::kernel::{self, Device};
use super::namespace::Namespace;
use super::netlink;
use crate::TestbedError;

/// The largest packet in bytes: Ethernet's, so that what TCP sends at once is what it sends on a real network.
pub(super) const PACKET_BYTES_MAX: u16 = 1_500;

/// Packets that the device holds until the switch reads them. The kernel's 500 are 6 ms of a busy stream; this is
/// a tenth of a second of one, longer than the switch is kept from running on a machine that can still measure.
const QUEUE_PACKETS_MAX: u32 = 10_000;

const TUN: &str = "/dev/net/tun";
/// Its name in each namespace; no other's devices are there.
const DEVICE: &str = "assay0";
/// The network's addresses: private, and in no routing table of the host.
const MASK: Ipv4Addr = Ipv4Addr::new(255, 255, 0, 0);

/// What a new namespace has by the kernel's default and not from the host, and what would make connections inside
/// differ from the host's.
const KEPT: [&str; 4] = [
    "net/core/somaxconn",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_tw_reuse",
];

/// A new namespace with its device, up, at this address. Gives the switch's side of the device, which never blocks.
pub(super) fn make(address: Ipv4Addr) -> Result<(Namespace, OwnedFd), TestbedError> {
    let namespace = Namespace::make().map_err(|error| missing("a network namespace", &error))?;
    let kept = KEPT.map(|name| fs::read_to_string(setting(name)).ok());
    let device = namespace.inside(|| {
        for (name, value) in KEPT.iter().zip(kept) {
            // A kernel without it has no such default either.
            let _ = value.map(|value| fs::write(setting(name), value));
        }
        fill(address)
    });
    let device = device.map_err(|error| missing("a TUN device", &error))?;
    Ok((namespace, device))
}

/// Takes this process, which has one thread, from the host's network to one of its own that has loopback alone.
pub(crate) fn leave_for_loopback() -> io::Result<()> {
    kernel::leave_network()?;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    kernel::configure(&socket, "lo", &Device::default())
}

/// Devices of the calling thread's namespace.
fn fill(address: Ipv4Addr) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    kernel::configure(&socket, "lo", &Device::default())?;
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tun = open(TUN, flags, Mode::empty()).map_err(|error| {
        io::Error::new(io::Error::from(error).kind(), format!("{TUN}: {error}"))
    })?;
    kernel::attach_tun(&tun, DEVICE)?;
    // The links are IPv4's; without this the kernel would send its own IPv6 questions over them.
    let _ = fs::write(setting(&format!("net/ipv6/conf/{DEVICE}/disable_ipv6")), "1");
    let device = Device {
        address: Some((address, MASK)),
        packet_bytes_max: Some(i32::from(PACKET_BYTES_MAX)),
    };
    kernel::configure(&socket, DEVICE, &device)?;
    netlink::set_queue(DEVICE, QUEUE_PACKETS_MAX)?;
    Ok(tun)
}

/// Packets for the switch that its device dropped, its queue being full.
pub(super) fn dropped(namespace: &Namespace) -> io::Result<u64> {
    let table = namespace.inside(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
    let wrong = || io::Error::other("the table of devices has another form");
    let row = table.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    // Eight columns of what is received, then bytes, packets, errs, drop of what is sent.
    let column = row.ok_or_else(wrong)?.split_whitespace().nth(11).ok_or_else(wrong)?;
    column.parse().map_err(|_| wrong())
}

/// A setting of the calling thread's namespace.
fn setting(name: &str) -> String {
    format!("/proc/sys/{name}")
}

fn missing(what: &str, error: &io::Error) -> TestbedError {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it takes a user namespace (or root, or CAP_SYS_ADMIN and CAP_NET_ADMIN), and /dev/net/tun open for writing"
        }
        io::ErrorKind::NotFound if !Path::new(TUN).exists() => {
            "there is no /dev/net/tun: load the kernel's module `tun`, or give the container that device"
        }
        _ => {
            "the kernel needs network namespaces and TUN devices, and this process descriptors (ulimit -n)"
        }
    };
    TestbedError::Network {
        what: format!(
            "{what} could not be made: {error}; {hint}; `through = \"forwarders\"` needs none of it"
        ),
    }
}
