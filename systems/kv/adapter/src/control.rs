//! Questions to a replica beside the load: how does it stand, what is in its ledger. A connection of its own, blocking and
//! bounded in time; never used while transactions are timed.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use kv_node::protocol::{self, Digest, KEY_BYTES, Reply, State, Why, read_reply};
use rustls::{ClientConnection, StreamOwned};
use sut::Tls;
use sut::asker::{Asker, Clock, connect};

/// The longest wait for a replica to take a connection or answer a question.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection for questions.
pub(crate) struct Control {
    replica: Asker<Box<dyn Stream>>,
}

/// Bytes both ways, encrypted or not.
trait Stream: io::Read + io::Write + Send {}

impl Stream for TcpStream {}
impl Stream for StreamOwned<ClientConnection, TcpStream> {}

/// The answer to an operator.
#[derive(Debug)]
pub(crate) enum Votes {
    /// The numbers of those that have a vote.
    Of(Vec<u8>),
    Refused {
        why: Why,
        /// Who leads, as far as the replica knows.
        leader: u8,
    },
}

/// A part of a ledger.
pub(crate) struct Part<'a> {
    pub(crate) total: u64,
    pub(crate) whole_to: u64,
    pub(crate) bytes: &'a [u8],
}

impl Control {
    pub(crate) fn open(replica: SocketAddr, tls: Option<&Tls>, clock: Clock) -> io::Result<Self> {
        let stream = connect(replica, PATIENCE)?;
        let stream: Box<dyn Stream> = match tls {
            None => Box::new(stream),
            Some(Tls { config, server_name }) => {
                let client = ClientConnection::new(config.clone(), server_name.clone());
                Box::new(StreamOwned::new(client.map_err(io::Error::other)?, stream))
            }
        };
        Ok(Self { replica: Asker::new(stream, clock) })
    }

    /// What everything but how the replica stands begins with; it waits until it is known who leads.
    pub(crate) fn hello(&mut self) -> io::Result<()> {
        match self.ask(|out| protocol::write_hello(out, 0))? {
            Reply::Welcome(_) => Ok(()),
            other => Err(strange(&other)),
        }
    }

    /// How the replica stands.
    pub(crate) fn state(&mut self) -> io::Result<State> {
        match self.ask(protocol::write_status_request)? {
            Reply::State(state) => Ok(state),
            other => Err(strange(&other)),
        }
    }

    /// What it holds, as two numbers; it goes through all of it.
    pub(crate) fn digest(&mut self) -> io::Result<Digest> {
        self.hello()?;
        match self.ask(protocol::write_digest_request)? {
            Reply::Digest(digest) => Ok(digest),
            other => Err(strange(&other)),
        }
    }

    /// Who has a vote, after a change of it, if any.
    pub(crate) fn votes(
        &mut self,
        change: Option<(u8, bool)>,
        key: &[u8; KEY_BYTES],
    ) -> io::Result<Votes> {
        self.hello()?;
        match self.ask(|out| protocol::write_votes_request(out, change, key))? {
            Reply::Voters(voters) => Ok(Votes::Of(voters.to_vec())),
            Reply::Refused { why, leader, .. } => Ok(Votes::Refused { why, leader }),
            other => Err(strange(&other)),
        }
    }

    /// A part of its ledger, from this byte on.
    pub(crate) fn ledger(&mut self, from: u64) -> io::Result<Part<'_>> {
        match self.ask(|out| protocol::write_ledger_request(out, from))? {
            Reply::Part { from: first, total, whole_to, bytes } if first == from => {
                Ok(Part { total, whole_to, bytes })
            }
            other => Err(strange(&other)),
        }
    }

    fn ask(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<Reply<'_>> {
        read_reply(self.replica.ask(write)?)
            .map_err(|_| io::Error::other("the replica's answer is none"))
    }
}

fn strange(reply: &Reply<'_>) -> io::Error {
    io::Error::other(format!("the replica answered another question: {reply:?}"))
}
