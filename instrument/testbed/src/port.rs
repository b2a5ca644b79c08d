//! Ports for nodes that must be told theirs. A node that can bind port 0 and say which one it got should.

use std::net::{Ipv4Addr, TcpListener};

use crate::TestbedError;

/// A port of 127.0.0.1 that was free a moment ago. Nothing keeps it: whoever starts next may take it, so use it
/// at once, and read the node's log if it says that the address is in use.
///
/// # Errors
/// When the kernel has none.
pub fn free_port() -> Result<u16, TestbedError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(TestbedError::Port)?;
    Ok(listener.local_addr().map_err(TestbedError::Port)?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the port can be bound.
    #[test]
    fn a_free_port_can_be_bound() {
        let port = free_port().unwrap();
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
