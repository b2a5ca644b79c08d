//! The archiver as a value: blocks in, durable records out. It asks for what it has missed, and lets atomizers forget what it
//! has stored.
//!
//! Blocks are the records of a log, one each, from height 1 on without a gap: [`disk`] reads them from a folder. Each must
//! follow the one before by its hash; where what comes contradicts what is stored, or what is missing is nowhere any more, the
//! archiver has a [`Trouble`], and takes nothing more.

pub mod disk;
#[cfg(test)]
mod tests;
mod trouble;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use clock::Instant;
use process::{Connection, Input, Node, Outputs, Stored};

use crate::dials::Dials;
use crate::protocol::block::{Block, Head, read_block, read_head, read_pruned};
use crate::protocol::request::{write_archiver, write_get_block, write_prune};
use crate::protocol::{
    BLOCK_BYTES_MAX, Hash, Malformed, Reader, Refusals, next_frame, write_frame,
};
use crate::stamps::{Stage, Stamps};

pub use trouble::Trouble;

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
    /// Which of the archivers it is, and what it shows for it.
    number: u8,
    key: Hash,
    dials: Dials,
    /// The last block that was given to the log, and what it says of itself.
    appended: u64,
    last: Option<Head>,
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
    /// By atomizer: blocks below this are forgotten there, as it said when it was asked for one.
    forgotten: Vec<u64>,
    trouble: Option<Trouble>,
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
    "record {number} is not the block of height {height}: the archive was damaged, or was written when blocks had other hashes, or none; archive into an empty folder, or into a copy of another archiver's"
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
            number: 0,
            key: [0; 32],
            dials: Dials::new(atomizers),
            appended: 0,
            last: None,
            durable: 0,
            writing: VecDeque::new(),
            writing_bytes: 0,
            early: BTreeMap::new(),
            early_bytes: 0,
            heard: 0,
            ask_at: None,
            forgotten: vec![0; atomizers],
            trouble: None,
            recent: VecDeque::new(),
            recent_bytes: 0,
            says_metrics: Vec::new(),
            counts: Counts::default(),
            stamps: None,
            says_stored_early: false,
        };
        for (number, record) in stored.logs.iter().flat_map(|log| log.iter()) {
            let height = number + 1;
            let no_archive = NoArchive { number, height };
            let block = read_block(record).map_err(|_| no_archive)?;
            // The first that was read may be one of many: those before it stay where they are.
            let is_next = match &archiver.last {
                None if height > 1 => block.head.height == height,
                last => block.head.follows(last.as_ref()),
            };
            if !is_next || !block.is_as_hashed() {
                return Err(no_archive);
            }
            archiver.keep_recent(height, record);
            (archiver.appended, archiver.last) = (height, Some(block.head));
        }
        if let Some(log) = stored.logs.first() {
            archiver.appended = log.next();
        }
        archiver.durable = archiver.appended;
        archiver.heard = archiver.appended;
        Ok(archiver)
    }

    /// The one of this number, where there are several, with the key that the atomizers ask for.
    #[must_use]
    pub fn numbered(mut self, number: u8, key: Hash) -> Self {
        (self.number, self.key) = (number, key);
        self
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

    /// Why it takes nothing more, if that is so.
    #[must_use]
    pub const fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
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
        let read = out.read_pieces(bytes, |rest, out| {
            let Some(frame) = next_frame(rest, BLOCK_BYTES_MAX)? else { return Ok(None) };
            self.said(now, connection, frame.payload, out)?;
            Ok(Some(frame.used))
        });
        if let Err(why) = read {
            self.counts.refusals.count(why);
            self.dials.closed(now, connection);
            out.close(connection);
        }
    }

    /// A block, or that one is forgotten.
    fn said(
        &mut self,
        now: Instant,
        from: Connection,
        payload: &[u8],
        out: &mut Outputs,
    ) -> Result<(), Malformed> {
        let Some(peer) = self.dials.peer_of(from).filter(|_| self.trouble.is_none()) else {
            return Ok(());
        };
        if let Some(below) = read_pruned(payload) {
            self.forgotten[peer] = below;
            return Ok(());
        }
        let block = read_block(payload)?;
        let Head { height, ledger, hash, .. } = block.head;
        self.heard = self.heard.max(height);
        if let Some(own) = self.last.map(|it| it.ledger).filter(|own| *own != ledger) {
            self.trouble = Some(Trouble::Ledger { peer, own, ledger });
        } else if height <= self.appended {
            self.counts.repeated += 1;
            let is_other = |stored: Head| stored.hash != hash;
            if self.recent_head(height).is_some_and(is_other) {
                self.trouble = Some(Trouble::Differs { peer, height });
            }
        } else if self.early.contains_key(&height) {
            self.counts.repeated += 1;
        } else if !block.is_as_hashed() {
            return Err(Malformed::Hash);
        } else if self.writing_bytes > UNDURABLE_BYTES_MAX {
            self.ask_at.get_or_insert(now.plus(ASK_AGAIN));
        } else if height == self.appended + 1 {
            self.append(peer, block, payload, out);
            while let Some(next) = self.early.remove(&(self.appended + 1)) {
                self.early_bytes -= next.len();
                self.append(peer, read_block(&next)?, &next, out);
            }
        } else {
            if self.early_bytes + payload.len() <= EARLY_BYTES_MAX {
                self.early_bytes += payload.len();
                self.early.insert(height, payload.to_vec());
            }
            self.ask_at.get_or_insert(now);
        }
        Ok(())
    }

    /// What one of the last blocks says of itself.
    fn recent_head(&self, height: u64) -> Option<Head> {
        let first = self.recent.front()?.0;
        let place = usize::try_from(height.checked_sub(first)?).ok()?;
        let (_, block) = self.recent.get(place)?;
        read_head(block)
    }

    fn append(&mut self, peer: usize, block: Block<'_>, payload: &[u8], out: &mut Outputs) {
        let head = block.head;
        if self.trouble.is_some() || !head.follows(self.last.as_ref()) {
            let trouble = Trouble::Follows { peer, height: head.height };
            self.trouble.get_or_insert(trouble);
            return;
        }
        (self.appended, self.last) = (head.height, Some(head));
        let number = out.append(0, payload);
        let since_ns = self.stamps.as_mut().map_or(0, |it| it.now_ns());
        let followed = self.stamps.as_ref().map_or_else(Vec::new, |stamps| {
            let ids = block.transactions().map(|it| *it.id);
            ids.filter(|id| stamps.follows(id)).collect()
        });
        let (height, count, bytes) = (head.height, head.count, payload.len());
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
        if let Some(trouble) = self.nobody_has(first) {
            self.trouble = Some(trouble);
            return;
        }
        self.counts.asked += missing.len() as u64;
        for connection in self.dials.up_now() {
            missing.iter().for_each(|height| write_get_block(out.send(connection), *height));
        }
        self.ask_at = Some(now.plus(ASK_AGAIN));
    }

    /// Trouble, where all atomizers that can be reached have said that they have forgotten a block.
    fn nobody_has(&self, height: u64) -> Option<Trouble> {
        let mut below: Option<u64> = None;
        for connection in self.dials.up_now() {
            let forgotten = self.forgotten[self.dials.peer_of(connection)?];
            if forgotten <= height {
                return None;
            }
            below = Some(below.map_or(forgotten, |it| it.min(forgotten)));
        }
        Some(Trouble::Pruned { first: height, last: below? - 1 })
    }

    /// Who wants a block says its height (u64); the answer is a flag (u8) and the block, if it is one of the last.
    fn serve(&mut self, connection: Connection, bytes: &[u8], out: &mut Outputs) {
        let read = out.read_pieces(bytes, |rest, out| {
            let Some(frame) = next_frame(rest, 8)? else { return Ok(None) };
            if out.unsent(connection) > RECENT_BYTES_MAX {
                // It asks on and does not read.
                return Err(Malformed::Length);
            }
            let found = self.stored(Reader(frame.payload).u64()?);
            write_frame(out.send(connection), |out| {
                out.push(u8::from(found.is_some()));
                found.iter().for_each(|block| out.extend_from_slice(block));
            });
            Ok(Some(frame.used))
        });
        if let Err(why) = read {
            self.counts.refusals.count(why);
            out.close(connection);
        }
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
        wire::metrics::text(&numbers) + &self.counts.refusals.text("archiver_malformed_total")
    }
}

impl Node for Archiver {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Dialled { connection, peer } => {
                self.dials.up(peer, connection);
                self.forgotten[peer] = 0;
                let out = out.send(connection);
                write_archiver(out, self.number, &self.key);
                write_prune(out, self.durable + 1);
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
        if self.trouble.is_some() {
            // Nothing that comes can repair it; what was given to the log becomes durable all the same.
            return;
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
