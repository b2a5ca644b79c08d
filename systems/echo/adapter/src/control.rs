//! Questions to the node beside the load: is a kind taken, is everything stored, what is in the ledger. A
//! connection of its own, blocking and bounded in time; never used while transactions are timed.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use echo_node::protocol::{Reply, read_reply, write_check, write_ledger_request, write_sync};
use sut::asker::{Asker, Clock, connect};

/// The longest wait for the node to take a connection or answer a question.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection for questions.
pub(crate) struct Control {
    node: Asker,
}

impl Control {
    pub(crate) fn open(node: SocketAddr, clock: Clock) -> io::Result<Self> {
        Ok(Self { node: Asker::new(connect(node, PATIENCE)?, clock) })
    }

    /// Has everything stored that the node holds. Gives the number of entries; `None`: it only counts them and keeps none.
    pub(crate) fn sync(&mut self) -> io::Result<Option<u64>> {
        match self.ask(write_sync)? {
            Reply::Synced { entries, is_kept } => Ok(is_kept.then_some(entries)),
            other => Err(strange(&other)),
        }
    }

    /// Whether a kind would be taken.
    pub(crate) fn check(&mut self, kind: u16) -> io::Result<bool> {
        match self.ask(|out| write_check(out, kind))? {
            Reply::Checked { is_taken, .. } => Ok(is_taken),
            other => Err(strange(&other)),
        }
    }

    /// The bytes of stored entries from position `from`; as many as the node gives at once.
    pub(crate) fn ledger(&mut self, from: u64) -> io::Result<&[u8]> {
        match self.ask(|out| write_ledger_request(out, from, u32::MAX))? {
            Reply::Ledger { from: first, records } if first == from => Ok(records),
            other => Err(strange(&other)),
        }
    }

    fn ask(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<Reply<'_>> {
        read_reply(self.node.ask(write)?).map_err(io::Error::other)
    }
}

fn strange(reply: &Reply<'_>) -> io::Error {
    io::Error::other(format!("the node answered another question: {reply:?}"))
}
