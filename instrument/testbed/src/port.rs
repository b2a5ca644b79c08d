//! Ports for nodes that must be told theirs. A node that can bind port 0 and say which one it got should.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

use crate::TestbedError;

/// Services of a machine listen below.
const FIRST: u16 = 10_000;
/// Where the kernel says nothing of the ports that it gives to connections.
const CONNECTIONS_FROM: u16 = 32_768;
/// So many ports are tried before one of the kernel's own is taken.
const TRIES: usize = 1_000;

/// A port of 127.0.0.1 that was free a moment ago, below those that the kernel gives to connections: one that is opened
/// meanwhile does not take it. Nothing else keeps it, so use it at once.
///
/// # Errors
/// When the kernel has none.
pub fn free_port() -> Result<u16, TestbedError> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let range = FIRST..connections_from();
    // Runs beside each other begin at different places.
    let from = std::process::id().wrapping_mul(0x9e37_79b1) >> 8;
    let is_free = |port: &u16| free_address(Ipv4Addr::LOCALHOST, *port).is_ok();
    let next = || nth(&range, from.wrapping_add(ASKED.fetch_add(1, Ordering::Relaxed)));
    if let Some(port) = std::iter::from_fn(next).take(TRIES).find(is_free) {
        return Ok(port);
    }
    free_address(Ipv4Addr::LOCALHOST, 0).map(|it| it.port()).map_err(TestbedError::Port)
}

/// An address with this port, or with one of the kernel's choice for 0, if nothing is bound to it. It is bound for a moment and
/// not listened on: a program that another thread starts just then has a copy of the socket until it is executed, which must
/// neither answer in a node's place nor keep the node from its address.
///
/// # Errors
/// When it is taken, or the kernel has none.
pub fn free_address(ip: Ipv4Addr, port: u16) -> io::Result<SocketAddr> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddrV4::new(ip, port))?;
    Ok(getsockname(&socket)?.try_into()?)
}

/// An address of a node's own, by its number in a trial. All of 127.0.0.0/8 is loopback, and in a part of it that a trial has
/// for itself no connection of another process takes a port between its choice and its use.
///
/// # Panics
/// If a trial has more than 255 nodes.
#[must_use]
pub fn own_loopback(run_mark: u64, number: usize) -> Ipv4Addr {
    let [_, .., a, b] = run_mark.to_be_bytes();
    let last = u8::try_from(number + 1).expect("few nodes");
    Ipv4Addr::new(127, 64 + a % 128, b, last)
}

/// The first port that the kernel gives to connections.
fn connections_from() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range.ok().and_then(|it| it.split_whitespace().next()?.parse().ok());
    first.unwrap_or(CONNECTIONS_FROM)
}

/// A port of the range; none where it is empty.
fn nth(range: &Range<u16>, n: u32) -> Option<u16> {
    let count = u32::try_from(range.len()).ok().filter(|count| *count > 0)?;
    let offset = u16::try_from(n % count).ok()?;
    Some(range.start + offset)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Claim: two calls give two ports. Both can be bound, and the kernel gives neither to a connection.
    #[test]
    fn a_free_port_can_be_bound() {
        let (one, other) = (free_port().unwrap(), free_port().unwrap());
        for port in [one, other] {
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
            assert!(connections_from() <= FIRST || port < connections_from(), "{port}");
        }
        assert_ne!(one, other);
    }

    /// Claim: an address that is listened on is not free; one that is free answers nothing and can be bound.
    #[test]
    fn a_free_address_answers_nothing() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = listener.local_addr().unwrap().port();
        assert!(free_address(Ipv4Addr::LOCALHOST, taken).is_err());
        let free = free_address(Ipv4Addr::LOCALHOST, 0).unwrap();
        assert!(TcpStream::connect(free).is_err());
        TcpListener::bind(free).unwrap();
    }

    /// Claim: where the kernel gives all ports to connections, there is nothing below them.
    #[test]
    fn the_range_may_be_empty() {
        assert_eq!(nth(&(FIRST..FIRST), 7), None);
        assert_eq!(nth(&(FIRST..FIRST + 3), 7), Some(FIRST + 1));
    }
}
