//! The archiver as a value: blocks in, durable records out. It asks for what it has missed, and lets atomizers forget what it
//! has stored.
//!
//! Blocks are the records of a log, one each, from height 1 on without a gap: [`disk`] reads them from a folder.

pub mod disk;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs, Stored};

use crate::dials::Dials;
use crate::metrics;
use crate::protocol::block::read_block;
use crate::protocol::request::{write_get_block, write_prune};
use crate::protocol::{
    BLOCK_BYTES_MAX, Hash, Malformed, Reader, Refusals, next_frame, write_frame,
};
use crate::stamps::{Stage, Stamps};

/// The listener for who wants blocks.
pub const CLIENTS_LISTENER: usize = 0;
/// The listener that says metrics over HTTP.
pub const METRICS_LISTENER: usize = 1;

/// Blocks that came before those in front of them, in bytes at most: more are asked for again.
const EARLY_BYTES_MAX: usize = 256 << 20;
/// Blocks that are asked for at once.
const ASKED_MAX: u64 = 8;
/// After this what was asked for is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(300);
/// Bytes of the last blocks that can be asked for here; older ones are on the disk.
const RECENT_BYTES_MAX: usize = 64 << 20;
/// What one of them takes beside its bytes, about.
const RECENT_OVERHEAD_BYTES: usize = 64;
/// With so many bytes that are not durable yet no more is taken: what comes is asked for again.
const UNDURABLE_BYTES_MAX: usize = 256 << 20;

/// Numbers that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks stored.
    pub blocks: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Blocks that came and were there already.
    pub repeated: u64,
    /// Blocks that were asked for because they had been missed.
    pub asked: u64,
    /// Connections closed for what they sent, by reason.
    pub refusals: Refusals,
}

/// A block that is being made durable.
#[derive(Debug)]
struct Writing {
    number: u64,
    height: u64,
    count: u64,
    bytes: usize,
    since_ns: u64,
    followed: Vec<Hash>,
}

/// An archiver.
pub struct Archiver {
    dials: Dials,
    /// The last block that was given to the log.
    appended: u64,
    /// The last one that is durable.
    durable: u64,
    writing: VecDeque<Writing>,
    writing_bytes: usize,
    /// Blocks that came too early, by height.
    early: BTreeMap<u64, Vec<u8>>,
    early_bytes: usize,
    /// The highest block heard of.
    heard: u64,
    /// When what is missing is asked for (again).
    ask_at: Option<Instant>,
    recent: VecDeque<(u64, Vec<u8>)>,
    recent_bytes: usize,
    /// By connection: who wants metrics.
    says_metrics: Vec<bool>,
    counts: Counts,
    stamps: Option<Box<dyn Stamps + Send>>,
    says_stored_early: bool,
}

/// What is on the disk is not a row of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "record {number} is not the block of height {height}; the archive was damaged or is of something else"
)]
pub struct NoArchive {
    /// The record.
    pub number: u64,
    /// The block that it should be.
    pub height: u64,
}

impl Archiver {
    /// An archiver of so many atomizers, as its disk left it.
    ///
    /// # Errors
    /// When what is there is no archive.
    pub fn new(atomizers: usize, stored: &Stored) -> Result<Self, NoArchive> {
        let mut archiver = Self {
            dials: Dials::new(atomizers),
            appended: 0,
            durable: 0,
            writing: VecDeque::new(),
            writing_bytes: 0,
            early: BTreeMap::new(),
            early_bytes: 0,
            heard: 0,
            ask_at: None,
            recent: VecDeque::new(),
            recent_bytes: 0,
            says_metrics: Vec::new(),
            counts: Counts::default(),
            stamps: None,
            says_stored_early: false,
        };
        for (number, record) in stored.logs.iter().flat_map(|log| log.iter()) {
            let height = number + 1;
            if read_block(record).map(|block| block.height) != Ok(height) {
                return Err(NoArchive { number, height });
            }
            archiver.keep_recent(height, record);
            archiver.appended = height;
        }
        if let Some(log) = stored.logs.first() {
            archiver.appended = log.next();
        }
        archiver.durable = archiver.appended;
        archiver.heard = archiver.appended;
        Ok(archiver)
    }

    /// Tells somebody when blocks are durable.
    #[must_use]
    pub fn stamping(mut self, stamps: Box<dyn Stamps + Send>) -> Self {
        self.stamps = Some(stamps);
        self
    }

    /// Says that blocks are stored before they are. For tests of tests only.
    #[doc(hidden)]
    #[must_use]
    pub fn saying_stored_early(mut self) -> Self {
        self.says_stored_early = true;
        self
    }

    /// The last blocks: height and bytes.
    pub fn recent(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.recent.iter().map(|(height, block)| (*height, &block[..]))
    }

    /// The last block that is durable.
    #[must_use]
    pub const fn durable(&self) -> u64 {
        self.durable
    }

    /// Its numbers.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    fn keep_recent(&mut self, height: u64, block: &[u8]) {
        self.recent_bytes += block.len() + RECENT_OVERHEAD_BYTES;
        self.recent.push_back((height, block.to_vec()));
        while self.recent_bytes > RECENT_BYTES_MAX {
            let Some((_, oldest)) = self.recent.pop_front() else { return };
            self.recent_bytes -= oldest.len() + RECENT_OVERHEAD_BYTES;
        }
    }

    fn read_blocks(
        &mut self,
        now: Instant,
        connection: Connection,
        bytes: &[u8],
        out: &mut Outputs,
    ) {
        let mut used = 0;
        loop {
            let read = match next_frame(&bytes[used..], BLOCK_BYTES_MAX) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    used += frame.used;
                    self.block(now, frame.payload, out)
                }
                Err(why) => Err(why),
            };
            if let Err(why) = read {
                self.counts.refusals.count(why);
                self.dials.closed(now, connection);
                out.close(connection);
                used = bytes.len();
                break;
            }
        }
        out.used(used);
    }

    fn block(&mut self, now: Instant, payload: &[u8], out: &mut Outputs) -> Result<(), Malformed> {
        let block = read_block(payload)?;
        self.heard = self.heard.max(block.height);
        if block.height <= self.appended || self.early.contains_key(&block.height) {
            self.counts.repeated += 1;
        } else if self.writing_bytes > UNDURABLE_BYTES_MAX {
            self.ask_at.get_or_insert(now.plus(ASK_AGAIN));
        } else if block.height == self.appended + 1 {
            self.append(payload, out);
            while let Some(next) = self.early.remove(&(self.appended + 1)) {
                self.early_bytes -= next.len();
                self.append(&next, out);
            }
        } else {
            if self.early_bytes + payload.len() <= EARLY_BYTES_MAX {
                self.early_bytes += payload.len();
                self.early.insert(block.height, payload.to_vec());
            }
            self.ask_at.get_or_insert(now);
        }
        Ok(())
    }

    fn append(&mut self, payload: &[u8], out: &mut Outputs) {
        let Ok(block) = read_block(payload) else { return };
        self.appended = block.height;
        let number = out.append(0, payload);
        let since_ns = self.stamps.as_mut().map_or(0, |it| it.now_ns());
        let followed = self.stamps.as_ref().map_or_else(Vec::new, |stamps| {
            let ids = block.transactions().map(|it| *it.id);
            ids.filter(|id| stamps.follows(id)).collect()
        });
        let (height, count, bytes) = (block.height, block.count, payload.len());
        self.writing.push_back(Writing { number, height, count, bytes, since_ns, followed });
        self.writing_bytes += bytes;
        self.keep_recent(height, payload);
        if self.says_stored_early {
            self.say_stored(height + 1, out);
        }
    }

    fn persisted(&mut self, below: u64, out: &mut Outputs) {
        while self.writing.front().is_some_and(|it| it.number < below) {
            let Some(done) = self.writing.pop_front() else { break };
            self.writing_bytes -= done.bytes;
            self.durable = done.height;
            self.counts.blocks += 1;
            self.counts.transactions += done.count;
            if let Some(stamps) = &mut self.stamps {
                stamps.stage(Stage::Archive, done.since_ns, done.count);
                done.followed.iter().for_each(|id| stamps.trace(Stage::Archive, id, done.since_ns));
            }
        }
        self.say_stored(self.durable + 1, out);
    }

    /// Nobody has to keep what is durable here.
    fn say_stored(&self, below: u64, out: &mut Outputs) {
        for connection in self.dials.up_now() {
            write_prune(out.send(connection), below);
        }
    }

    /// Asks for blocks that were missed, of everybody: whoever has them sends them.
    fn ask(&mut self, now: Instant, out: &mut Outputs) {
        let first = self.appended + 1;
        let missing: Vec<u64> = (first..=self.heard)
            .filter(|height| !self.early.contains_key(height))
            .take(usize::try_from(ASKED_MAX).expect("a few"))
            .collect();
        if missing.is_empty() {
            self.ask_at = None;
            return;
        }
        self.counts.asked += missing.len() as u64;
        for connection in self.dials.up_now() {
            missing.iter().for_each(|height| write_get_block(out.send(connection), *height));
        }
        self.ask_at = Some(now.plus(ASK_AGAIN));
    }

    /// Who wants a block says its height (u64); the answer is a flag (u8) and the block, if it is one of the last.
    fn serve(&mut self, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let mut used = 0;
        loop {
            let height = match next_frame(&bytes[used..], 8) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    used += frame.used;
                    Reader(frame.payload).u64()
                }
                Err(why) => Err(why),
            };
            match height {
                Ok(height) => {
                    let found = self.stored(height);
                    write_frame(out.send(connection), |out| {
                        out.push(u8::from(found.is_some()));
                        found.iter().for_each(|block| out.extend_from_slice(block));
                    });
                }
                Err(why) => {
                    self.counts.refusals.count(why);
                    out.close(connection);
                    used = bytes.len();
                    break;
                }
            }
        }
        out.used(used);
    }

    /// One of the last blocks, if it is durable.
    fn stored(&self, height: u64) -> Option<&[u8]> {
        let first = self.recent.front()?.0;
        let place = usize::try_from(height.checked_sub(first)?).ok()?;
        let (_, block) = self.recent.get(place).filter(|_| height <= self.durable)?;
        Some(block)
    }

    fn text(&self) -> String {
        let numbers: [wire::metrics::Number; 5] = [
            ("archiver_height", false, "The last block that is durable.", self.durable),
            ("archiver_blocks_total", true, "Blocks stored.", self.counts.blocks),
            (
                "archiver_transactions_total",
                true,
                "Transactions in them.",
                self.counts.transactions,
            ),
            (
                "archiver_repeated_total",
                true,
                "Blocks that were there already.",
                self.counts.repeated,
            ),
            (
                "archiver_asked_total",
                true,
                "Blocks asked for because they were missed.",
                self.counts.asked,
            ),
        ];
        wire::metrics::text(&numbers)
            + &metrics::refusals("archiver_malformed_total", &self.counts.refusals)
    }
}

impl Node for Archiver {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Dialled { connection, peer } => {
                self.dials.up(peer, connection);
                write_prune(out.send(connection), self.durable + 1);
            }
            Input::Unreachable { peer } => self.dials.unreachable(now, peer),
            Input::Opened { connection, listener } => {
                if self.says_metrics.len() <= connection.index() {
                    self.says_metrics.resize(connection.index() + 1, false);
                }
                self.says_metrics[connection.index()] = listener == METRICS_LISTENER;
            }
            Input::Bytes(connection, bytes) if self.dials.peer_of(connection).is_some() => {
                self.read_blocks(now, connection, bytes, out);
            }
            Input::Bytes(connection, bytes) => {
                if self.says_metrics.get(connection.index()) == Some(&true) {
                    let (used, is_over) =
                        wire::metrics::serve(bytes, || self.text(), out.send(connection));
                    out.used(used);
                    if is_over {
                        out.close(connection);
                    }
                } else {
                    self.serve(connection, bytes, out);
                }
            }
            Input::Closed(connection) => {
                self.dials.closed(now, connection);
            }
            Input::Persisted { below, .. } => self.persisted(below, out),
            _ => {}
        }
        if self.ask_at.is_some_and(|at| at <= now) {
            self.ask(now, out);
        }
        if let Some(at) = self.ask_at {
            out.wake_at(at);
        }
        self.dials.dial(now, out);
    }
}
