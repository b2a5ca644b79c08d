//! Opening a TCP socket the way a measurement needs it: not blocking, without Nagle's delay. It never waits.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

/// Begins to connect to `address`. Writability of the socket says that it is decided; [`outcome`] says how.
pub(super) fn open(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// How the connection attempt ended.
pub(super) fn outcome(socket: impl AsFd) -> Result<(), Errno> {
    sockopt::socket_error(socket)?
}

/// The congestion control that new sockets of this host get, for the facts.
pub(crate) fn congestion_control() -> String {
    let flags = SocketFlags::CLOEXEC;
    socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))
        .and_then(|socket| sockopt::tcp_congestion(&socket))
        .unwrap_or_default()
}
