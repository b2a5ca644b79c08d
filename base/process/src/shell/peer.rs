//! Who a node dials.

use std::net::SocketAddr;

use super::tls::{Dialling, Identity, TlsError};

/// A peer of a node, which dials it by its place in the list.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Dialling>,
}

impl Peer {
    /// A peer at an address.
    #[must_use]
    pub const fn at(address: SocketAddr) -> Self {
        Self { address, tls: None }
    }

    /// Dials it with TLS, as this process is; its certificate must have the name.
    ///
    /// # Errors
    /// When the name is none.
    pub fn encrypted(mut self, name: &str, identity: &Identity) -> Result<Self, TlsError> {
        self.tls = Some(Dialling::new(name, identity)?);
        Ok(self)
    }
}
