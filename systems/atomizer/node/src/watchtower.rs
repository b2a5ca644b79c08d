//! The watchtower as a value: it hears of blocks and of errors, keeps the last of both, and says what became of
//! transactions.

pub mod cache;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use clock::Instant;
use process::{Connection, Input, Node, Outputs};

use crate::dials::Dials;
use crate::protocol::block::{Part, Stream};
use crate::protocol::errors::read_errors;
use crate::protocol::request::write_get_block;
use crate::protocol::status::{
    Question, Status, read_question, write_best_height, write_status_answer,
};
use crate::protocol::{ERRORS_BYTES_MAX, Malformed, Refusals, STATUS_BYTES_MAX, next_frame};
use crate::spent::Secret;
use cache::{Blocks, Errors, Indexed};

/// The listener for questions.
pub const CLIENTS_LISTENER: usize = 0;
/// The listener that says metrics over HTTP.
pub const METRICS_LISTENER: usize = 1;

/// What a watchtower is told once.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many atomizers there are: its peers are their listeners for blocks, and behind these those for errors.
    pub atomizers: usize,
    /// Blocks that it keeps.
    pub blocks_max: usize,
    /// Bytes of blocks that it keeps.
    pub blocks_bytes_max: usize,
    /// Errors that it keeps.
    pub errors_max: usize,
    /// Fidelity switch: it keeps the height of the last block only, and calls all outputs unspent.
    pub says_unspent: bool,
    /// What names are mixed with.
    pub secret: Secret,
}

/// Numbers that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks heard of.
    pub blocks: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Errors heard of.
    pub errors: u64,
    /// Questions answered.
    pub questions: u64,
    /// Outputs that were asked for.
    pub outputs: u64,
    /// Connections closed for what they sent, by reason.
    pub refusals: Refusals,
}

/// A connection to an atomizer's blocks.
#[derive(Default)]
struct Reading {
    stream: Stream,
    block: Option<Indexed>,
}

/// A watchtower.
pub struct Watchtower {
    options: Options,
    dials: Dials,
    readings: HashMap<Connection, Reading>,
    best_height: u64,
    blocks: Blocks,
    errors: Errors,
    says_metrics: Vec<bool>,
    counts: Counts,
}

impl Watchtower {
    /// One that has heard nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            dials: Dials::new(2 * options.atomizers),
            readings: HashMap::new(),
            best_height: 0,
            blocks: Blocks::new(options.blocks_max, options.blocks_bytes_max),
            errors: Errors::new(options.errors_max),
            says_metrics: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Its numbers.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The height of the last block.
    #[must_use]
    pub const fn best_height(&self) -> u64 {
        self.best_height
    }

    /// What is known of an output of a transaction, and the height that says so.
    #[must_use]
    pub fn status(
        &self,
        id: &crate::protocol::Hash,
        output: &crate::protocol::Hash,
    ) -> (Status, u64) {
        if self.options.says_unspent {
            return (Status::Unspent, self.best_height);
        }
        // What is in a block is settled, whatever was said of it when it was sent once more.
        let place = self.options.secret.place(output);
        if let Some(found) = self.blocks.find(place, id, output) {
            return found;
        }
        (self.errors.status(id, output).unwrap_or(Status::NoHistory), self.best_height)
    }

    fn read_blocks(
        &mut self,
        connection: Connection,
        bytes: &[u8],
    ) -> Result<(usize, Option<u64>), Malformed> {
        let Self { readings, blocks, counts, best_height, options, .. } = self;
        let reading = readings.entry(connection).or_default();
        let (secret, is_kept) = (options.secret, !options.says_unspent);
        let Reading { stream, block } = reading;
        let mut missing = None;
        let used = stream.read(bytes, |part| match part {
            // It is too old for a watchtower to keep.
            Part::Pruned { .. } => {}
            Part::Begin { height, count } => {
                if is_kept {
                    *block = Some(blocks.begin(height, count));
                }
            }
            Part::Transaction(it) => {
                counts.transactions += 1;
                if let Some(block) = block {
                    block.push(&secret, &it);
                }
            }
            Part::End { height } => {
                counts.blocks += 1;
                if height > *best_height + 1 && *best_height > 0 {
                    missing = Some(*best_height + 1);
                }
                *best_height = (*best_height).max(height);
                if let Some(block) = block.take() {
                    blocks.add(block);
                }
            }
        })?;
        Ok((used, missing))
    }

    fn read_errors(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut used = 0;
        while let Some(frame) = next_frame(&bytes[used..], ERRORS_BYTES_MAX)? {
            used += frame.used;
            let errors = read_errors(frame.payload)?;
            self.counts.errors += errors.count();
            if !self.options.says_unspent {
                errors.iter().for_each(|it| self.errors.add(&it));
            }
        }
        Ok(used)
    }

    fn answer(
        &mut self,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs,
    ) -> Result<usize, Malformed> {
        let mut used = 0;
        while let Some(frame) = next_frame(&bytes[used..], STATUS_BYTES_MAX)? {
            used += frame.used;
            let question = read_question(frame.payload)?;
            self.counts.questions += 1;
            let out = out.send(connection);
            let mut outputs = 0;
            match question {
                Question::BestHeight => write_best_height(out, self.best_height),
                Question::Status(asked) => write_status_answer(out, &asked, |id, output| {
                    outputs += 1;
                    self.status(id, output)
                }),
            }
            self.counts.outputs += outputs;
        }
        Ok(used)
    }

    fn read(&mut self, now: Instant, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let peer = self.dials.peer_of(connection);
        let read = match peer {
            Some(peer) if peer < self.options.atomizers => {
                self.read_blocks(connection, bytes).map(|(used, missing)| {
                    // One is asked for at a time: a watchtower keeps few, and those that it has missed are nearly gone.
                    missing.iter().for_each(|it| write_get_block(out.send(connection), *it));
                    used
                })
            }
            Some(_) => self.read_errors(bytes),
            None => self.answer(connection, bytes, out),
        };
        match read {
            Ok(used) => out.used(used),
            Err(why) => {
                self.counts.refusals.count(why);
                self.forget(now, connection);
                out.close(connection);
                out.used(bytes.len());
            }
        }
    }

    fn forget(&mut self, now: Instant, connection: Connection) {
        self.dials.closed(now, connection);
        self.readings.remove(&connection);
    }

    fn text(&self) -> String {
        let numbers: [wire::metrics::Number; 6] = [
            ("watchtower_height", false, "The height of the last block.", self.best_height),
            ("watchtower_blocks_total", true, "Blocks heard of.", self.counts.blocks),
            (
                "watchtower_transactions_total",
                true,
                "Transactions in them.",
                self.counts.transactions,
            ),
            ("watchtower_errors_total", true, "Errors heard of.", self.counts.errors),
            ("watchtower_questions_total", true, "Questions answered.", self.counts.questions),
            ("watchtower_outputs_total", true, "Outputs asked for.", self.counts.outputs),
        ];
        wire::metrics::text(&numbers) + &self.counts.refusals.text("watchtower_malformed_total")
    }
}

impl Node for Watchtower {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Dialled { connection, peer } => self.dials.up(peer, connection),
            Input::Unreachable { peer } => self.dials.unreachable(now, peer),
            Input::Opened { connection, listener } => {
                if self.says_metrics.len() <= connection.index() {
                    self.says_metrics.resize(connection.index() + 1, false);
                }
                self.says_metrics[connection.index()] = listener == METRICS_LISTENER;
            }
            Input::Bytes(connection, bytes) => {
                let is_peer = self.dials.peer_of(connection).is_some();
                if !is_peer && self.says_metrics.get(connection.index()) == Some(&true) {
                    let (used, is_over) =
                        wire::metrics::serve(bytes, || self.text(), out.send(connection));
                    out.used(used);
                    if is_over {
                        out.close(connection);
                    }
                } else {
                    self.read(now, connection, bytes, out);
                }
            }
            Input::Closed(connection) => self.forget(now, connection),
            _ => {}
        }
        self.dials.dial(now, out);
    }
}
