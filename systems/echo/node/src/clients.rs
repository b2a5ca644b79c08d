//! Which connection each client is on, and how far it is: for a server that keeps a session with each of its clients.
//! A client is on the connection that it came by until that is closed, and each of its transactions has a higher number
//! than the one before; on a new connection it begins anew.

use std::collections::HashMap;

use process::Connection;

/// Clients that are known. When there are more, all are forgotten, and each is taken where it comes next.
const CLIENTS_MAX: usize = 1 << 20;

/// Where the clients are.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    /// By run and client.
    at: HashMap<(u64, u32), Place>,
}

#[derive(Debug)]
struct Place {
    connection: Connection,
    /// The number of its last transaction.
    last: u64,
}

impl Clients {
    /// Whether it is this transaction's turn, here.
    pub(crate) fn admit(&mut self, connection: Connection, run: u64, client: u32, tx: u64) -> bool {
        if let Some(place) = self.at.get_mut(&(run, client)) {
            let is_next = place.connection == connection && tx > place.last;
            if is_next {
                place.last = tx;
            }
            return is_next;
        }
        if self.at.len() >= CLIENTS_MAX {
            self.at.clear();
        }
        self.at.insert((run, client), Place { connection, last: tx });
        true
    }

    /// A connection is closed: its clients come by another, if they come.
    pub(crate) fn forget(&mut self, connection: Connection) {
        self.at.retain(|_, place| place.connection != connection);
    }
}
