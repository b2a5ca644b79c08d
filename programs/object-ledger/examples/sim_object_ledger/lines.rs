//! Connections of a node that asks others: dialled again when they end, and each question answered or given up in time.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Instant;
use object_ledger_node::protocol::{PAYLOAD_BYTES_MAX, next_frame, write_frame};
use process::{Connection, Input, Outputs};

/// After this a question is given up, and with it the connection: the other side may have lost its power.
const PATIENCE: Duration = Duration::from_millis(400);
const DIAL_AGAIN: Duration = Duration::from_millis(30);

/// What came of a question.
pub enum Came {
    Answer { question: u64, kind: u8, payload: Vec<u8> },
    Lost { question: u64 },
}

#[derive(Default)]
struct Line {
    connection: Option<Connection>,
    dial_at: Option<Instant>,
}

pub struct Lines {
    lines: Vec<Line>,
    questions: BTreeMap<u64, (usize, Instant)>,
    last: u64,
    came: Vec<Came>,
}

impl Lines {
    pub fn to(peers: usize) -> Self {
        let line = || Line { dial_at: Some(Instant::ZERO), ..Line::default() };
        let lines = (0..peers).map(|_| line()).collect();
        Self { lines, questions: BTreeMap::new(), last: 0, came: Vec::new() }
    }

    pub fn is_up(&self, peer: usize) -> bool {
        self.lines[peer].connection.is_some()
    }

    /// Asks; lost at once where there is no connection.
    pub fn ask(
        &mut self,
        now: Instant,
        peer: usize,
        kind: u8,
        parts: &[&[u8]],
        out: &mut Outputs,
    ) -> u64 {
        self.last += 1;
        match self.lines[peer].connection {
            Some(connection) => {
                self.questions.insert(self.last, (peer, now.plus(PATIENCE)));
                write_frame(out.send(connection), kind, self.last, parts);
            }
            None => self.came.push(Came::Lost { question: self.last }),
        }
        self.last
    }

    pub fn take(&mut self) -> Vec<Came> {
        std::mem::take(&mut self.came)
    }

    pub fn happened(&mut self, now: Instant, input: &Input<'_>, out: &mut Outputs) {
        match input {
            Input::Dialled { connection, peer } => self.lines[*peer].connection = Some(*connection),
            Input::Unreachable { peer } => self.lines[*peer].dial_at = Some(now.plus(DIAL_AGAIN)),
            Input::Closed(connection) => {
                if let Some(peer) = self.peer_of(*connection) {
                    self.ended(now, peer);
                }
            }
            Input::Bytes(_, bytes) => self.read(bytes, out),
            _ => {}
        }
        let late = |(_, until): &(usize, Instant)| *until <= now;
        let late: Vec<usize> =
            self.questions.values().filter(|it| late(it)).map(|it| it.0).collect();
        for peer in late {
            if let Some(connection) = self.lines[peer].connection {
                out.close(connection);
            }
            self.ended(now, peer);
        }
        for (peer, line) in self.lines.iter_mut().enumerate() {
            if line.dial_at.is_some_and(|at| at <= now) {
                line.dial_at = None;
                out.dial(peer);
            }
        }
    }

    /// When something is to be looked at again.
    pub fn wake(&self) -> Option<Instant> {
        let dials = self.lines.iter().filter_map(|line| line.dial_at);
        dials.chain(self.questions.values().map(|(_, until)| *until)).min()
    }

    fn peer_of(&self, connection: Connection) -> Option<usize> {
        self.lines.iter().position(|line| line.connection == Some(connection))
    }

    fn ended(&mut self, now: Instant, peer: usize) {
        if self.lines[peer].connection.take().is_some() {
            self.lines[peer].dial_at = Some(now.plus(DIAL_AGAIN));
        }
        let came = &mut self.came;
        self.questions.retain(|question, (asked, _)| {
            let is_lost = *asked == peer;
            if is_lost {
                came.push(Came::Lost { question: *question });
            }
            !is_lost
        });
    }

    fn read(&mut self, bytes: &[u8], out: &mut Outputs) {
        let mut used = 0;
        while let Some(frame) =
            next_frame(&bytes[used..], PAYLOAD_BYTES_MAX).expect("nodes send frames")
        {
            used += frame.used;
            if self.questions.remove(&frame.id).is_some() {
                let (question, kind, payload) = (frame.id, frame.kind, frame.payload.to_vec());
                self.came.push(Came::Answer { question, kind, payload });
            }
        }
        out.used(used);
    }
}
