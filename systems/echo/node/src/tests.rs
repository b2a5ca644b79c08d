//! The node against theory, and every lie against what it should be; all in virtual time, printed seeds.

mod batches;
mod clients;
mod faces;
mod lies;
mod stamps;
mod theory;

use std::time::Duration;

use clock::Instant;
use process::Connection;
use process::rehearsal::Rehearsal;
use wire::frames::next_frame;

use crate::events::Events;
use crate::ledger::{Ledger, Record, records};
use crate::protocol::{
    Answer, Code, Reply, read_reply, write_ledger_request, write_submit, write_sync,
};
use crate::{Confession, EchoNode, FRAMES_LISTENER, Options};

const RUN: u64 = 7;

/// A node and one connection to it.
struct Stage {
    rehearsal: Rehearsal<EchoNode>,
    connection: Connection,
}

impl Stage {
    fn new(options: Options) -> Self {
        let node =
            EchoNode::new(options, Ledger::in_memory(), Confession::in_memory(), Events::none());
        let mut rehearsal = Rehearsal::new(node);
        let connection = rehearsal.open(FRAMES_LISTENER);
        Self { rehearsal, connection }
    }

    /// Submits `tx` at `at`, on a new connection if the node has closed the last one.
    fn submit(&mut self, at: Instant, tx: u64) {
        self.submit_kind(at, tx, 0);
    }

    fn submit_kind(&mut self, at: Instant, tx: u64, kind: u16) {
        self.rehearsal.advance(at);
        if !self.rehearsal.is_open(self.connection) {
            self.connection = self.rehearsal.open(FRAMES_LISTENER);
        }
        let mut bytes = Vec::new();
        write_submit(&mut bytes, RUN, tx, kind, b"payload");
        self.rehearsal.send(self.connection, &bytes);
    }

    /// Every answer since the last call, with its time.
    fn answers(&mut self) -> Vec<(Instant, Answer)> {
        let mut answers = Vec::new();
        for sent in self.rehearsal.take_sent() {
            let mut rest = sent.bytes.as_slice();
            while let Ok(Some(frame)) = next_frame(rest) {
                if let Ok(Reply::Answer(answer)) = read_reply(frame.payload) {
                    answers.push((sent.at, answer));
                }
                rest = &rest[frame.used..];
            }
        }
        answers
    }

    /// The ledger after a sync, as the node lists it.
    fn ledger(&mut self) -> Vec<Record> {
        self.rehearsal.take_sent();
        let control = self.rehearsal.open(FRAMES_LISTENER);
        let mut bytes = Vec::new();
        write_sync(&mut bytes);
        self.rehearsal.send(control, &bytes);
        self.rehearsal.take_sent();
        let mut found: Vec<Record> = Vec::new();
        loop {
            let mut bytes = Vec::new();
            write_ledger_request(&mut bytes, found.len() as u64, u32::MAX);
            self.rehearsal.send(control, &bytes);
            let reply = self.rehearsal.take_bytes(control);
            let frame = next_frame(&reply).unwrap().expect("a whole frame");
            let Ok(Reply::Ledger { records: bytes, .. }) = read_reply(frame.payload) else {
                panic!("not a listing")
            };
            if bytes.is_empty() {
                return found;
            }
            found.extend(records(bytes).map(|record| record.expect("intact")));
        }
    }

    fn confessed(&self, word: &str) -> Vec<u64> {
        let list = self.rehearsal.node().confession().list();
        list.iter().filter(|(lie, _)| *lie == word).map(|(_, tx)| *tx).collect()
    }
}

fn ms(ms: u64) -> Instant {
    Instant::ZERO.plus(Duration::from_millis(ms))
}

/// Transactions with a given code.
fn with(answers: &[(Instant, Answer)], code: Code) -> Vec<u64> {
    answers.iter().filter(|(_, a)| a.code == code).map(|(_, a)| a.tx).collect()
}
