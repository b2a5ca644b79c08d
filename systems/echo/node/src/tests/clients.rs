//! A server that keeps each client's order.

use clock::Instant;
use process::Connection;
use process::rehearsal::Rehearsal;
use wire::frames::next_frame;

use super::RUN;
use crate::events::Events;
use crate::ledger::Ledger;
use crate::protocol::{Code, Reply, read_reply, write_of_client, write_submit};
use crate::{Confession, EchoNode, FRAMES_LISTENER, Options};

struct Server(Rehearsal<EchoNode>);

impl Server {
    fn new(ordered: bool) -> Self {
        let options = Options { ordered, ..Options::default() };
        let (ledger, confession) = (Ledger::in_memory(), Confession::none());
        Self(Rehearsal::new(EchoNode::new(options, ledger, confession, Events::none())))
    }

    fn say(&mut self, on: Connection, bytes: &[u8]) -> Option<Code> {
        self.0.send(on, bytes);
        self.0.advance(Instant::from_ns(self.0.now().as_ns() + 1_000_000));
        let said = self.0.take_bytes(on);
        let frame = next_frame(&said).unwrap()?;
        match read_reply(frame.payload) {
            Ok(Reply::Answer(answer)) => Some(answer.code),
            other => panic!("{other:?}"),
        }
    }

    fn submit(&mut self, on: Connection, run: u64, client: u32, tx: u64) -> Option<Code> {
        let mut bytes = Vec::new();
        write_of_client(&mut bytes, client, run, tx, 0, b"payload");
        self.say(on, &bytes)
    }
}

/// Claim: a client is taken in the order of its numbers on the connection that it came by, and refused as conflict out
/// of order or by another connection; when its own is closed it begins anew on another. Other clients and other runs
/// are not affected, and what is refused leaves no trace in the ledger.
#[test]
fn order_and_connection_are_kept() {
    let mut server = Server::new(true);
    let (one, other) = (server.0.open(FRAMES_LISTENER), server.0.open(FRAMES_LISTENER));
    let taken = Some(Code::Committed);
    let refused = Some(Code::Conflict);
    assert_eq!(server.submit(one, RUN, 5, 10), taken);
    assert_eq!(server.submit(one, RUN, 5, 12), taken);
    assert_eq!(server.submit(one, RUN, 5, 11), refused, "out of order");
    assert_eq!(server.submit(one, RUN, 5, 12), refused, "again");
    assert_eq!(server.submit(other, RUN, 5, 13), refused, "by another connection");
    assert_eq!(server.submit(other, RUN, 6, 13), taken, "another client");
    assert_eq!(server.submit(other, RUN + 1, 5, 3), taken, "another run");
    assert_eq!(server.submit(one, RUN, 5, 14), taken, "what was refused moved nothing");
    assert_eq!(server.0.node().ledger().entries(), 5);
    server.0.close(one);
    assert_eq!(server.submit(other, RUN, 5, 11), taken, "its connection is closed");
    assert_eq!(server.submit(other, RUN, 6, 12), refused, "the other's is not");
}

/// Claim: nobody's transaction has no turn where order is kept; where it is not, a server knows no word of clients.
#[test]
fn clients_only_where_asked_for() {
    let mut server = Server::new(true);
    let line = server.0.open(FRAMES_LISTENER);
    let mut bytes = Vec::new();
    write_submit(&mut bytes, RUN, 1, 0, b"payload");
    assert_eq!(server.say(line, &bytes), Some(Code::Conflict));
    let mut server = Server::new(false);
    let line = server.0.open(FRAMES_LISTENER);
    assert_eq!(server.say(line, &bytes), Some(Code::Committed));
    assert_eq!(server.submit(line, RUN, 1, 2), None);
    assert!(!server.0.is_open(line));
}

/// Claim: where the server itself closes a client's connection, the client begins anew on another, also if more of its
/// transactions were read together with what closed it.
#[test]
fn a_connection_that_the_server_closes() {
    let faults = crate::Faults::default().lie(crate::Lie::Close, 1);
    let options = Options { ordered: true, faults, ..Options::default() };
    let node = EchoNode::new(options, Ledger::in_memory(), Confession::none(), Events::none());
    let mut server = Server(Rehearsal::new(node));
    let mut bytes = Vec::new();
    for tx in 1..=3 {
        write_of_client(&mut bytes, 5, RUN, tx, 0, b"payload");
    }
    let line = server.0.open(FRAMES_LISTENER);
    server.0.send(line, &bytes);
    assert!(!server.0.is_open(line));
    assert_eq!(server.0.node().ledger().entries(), 1, "one was taken before it was closed");
    let line = server.0.open(FRAMES_LISTENER);
    server.0.send(line, &bytes);
    assert_eq!(server.0.node().ledger().entries(), 2, "and one on the next");
}
