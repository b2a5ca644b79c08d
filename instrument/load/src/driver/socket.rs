//! Opening a TCP socket the way a measurement needs it: not blocking, without Nagle's delay. It never waits.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

/// Begins to connect to `address`. Writability of the socket says that it is decided; [`outcome`] says how.
pub(super) fn open(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let socket = prepared(address, SocketFlags::NONBLOCK)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// A socket with the options that a connection to `address` gets.
fn prepared(address: SocketAddr, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if address.ip().to_canonical().is_loopback() {
        // There is nothing to be congested on loopback, and BBR, the default of some hosts, works out a bandwidth
        // and a pace for every answer: 3 % of the generator's processor time in the profile. A host that lacks
        // reno or forbids it keeps its default; the facts say which it is.
        let _ = sockopt::set_tcp_congestion(&socket, "reno");
    }
    Ok(socket)
}

/// How the connection attempt ended.
pub(super) fn outcome(socket: impl AsFd) -> Result<(), Errno> {
    sockopt::socket_error(socket)?
}

/// The congestion control that a connection to `address` gets, for the facts: the host's default, but on loopback.
pub(crate) fn congestion_control(address: SocketAddr) -> String {
    prepared(address, SocketFlags::empty())
        .and_then(|socket| sockopt::tcp_congestion(&socket))
        .unwrap_or_default()
}
