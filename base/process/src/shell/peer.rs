//! Who a node dials.

use std::net::SocketAddr;

/// A peer of a node, which dials it by its place in the list.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(super) address: SocketAddr,
}

impl Peer {
    /// A peer at an address.
    #[must_use]
    pub const fn at(address: SocketAddr) -> Self {
        Self { address }
    }
}
