//! The protocol on a connection: submitting to an atomizer, following blocks, following errors. Bytes in, bytes and marks
//! out.

use std::sync::Arc;
use std::time::Duration;

use atomizer_node::protocol::block::{HEAD_BYTES, Part, Stream};
use atomizer_node::protocol::errors::{Why, read_errors};
use atomizer_node::protocol::request::{
    HEIGHT_AT, STANDING_BYTES, read_standing, write_standing_request,
};
use atomizer_node::protocol::{
    BLOCK_BYTES_MAX, ERRORS_BYTES_MAX, FRAME_HEADER_BYTES, Hash, Malformed, frame_length,
    next_frame,
};
use model::plan::{Arrivals, LoadPlan, Schedule};
use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};

use crate::known::{Known, Lookup};
use crate::wallet::{Sort, Wallet};

/// The ladder's only stage.
pub(crate) const COMMITTED: u8 = 0;

/// How far beyond the window a stale height lies, and how far ahead a future one: further than either side can be behind.
const BEYOND: u64 = 8;

/// How often whoever leads is asked for the height: a fiftieth of the published interval of blocks.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// The longest answer on a connection that submits: how one stands, which is shorter than any block.
const STANDING_BYTES_MAX: usize = STANDING_BYTES - FRAME_HEADER_BYTES;
const _: () = assert!(STANDING_BYTES_MAX < HEAD_BYTES, "by its length a block is told from it");

pub(crate) fn not_of_the_protocol(what: &str, why: Malformed) -> ProtocolError {
    ProtocolError(format!("{what} that cannot be read: {}", why.name()))
}

/// How often heights are looked up: after so many sends of a generator, as the published ones do. Where the load's steps
/// count generators their sends are spread over all connections, so that what one connection sends between two looks
/// depends on how many generators are there.
#[derive(Clone, Debug)]
pub(crate) struct Refresh {
    /// From this number on, after so many sends of a connection; in order, the first from 0 on.
    spans: Vec<(TxId, u32)>,
}

impl Refresh {
    /// After so many sends of a connection.
    pub(crate) fn every(sends: u32) -> Self {
        Self { spans: vec![(0, sends)] }
    }

    /// After so many sends of a generator of this load.
    pub(crate) fn of(sends: u32, load: Option<&LoadPlan>) -> Self {
        let Some(load) = load else { return Self::every(sends) };
        let Arrivals::Open { schedule: Schedule::Steps { steps } } = &load.arrivals else {
            return Self::every(sends);
        };
        let connections = u64::from(load.connections.max(1));
        let mut spans = Vec::with_capacity(steps.len());
        let mut first = 0.0;
        for (step, at) in steps.iter().zip(0..) {
            let generators = if step.generators == 0 { connections } else { step.generators };
            let of_connection = (u64::from(sends) * generators / connections).max(1);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count of transactions, which a float holds up to 2^53"
            )]
            spans.push((first as TxId, u32::try_from(of_connection).unwrap_or(u32::MAX)));
            // The warm-up is of the first step's rate.
            let length = step.length + if at == 0 { load.warmup } else { Duration::ZERO };
            first += step.rate.as_per_second() * length.as_secs_f64();
        }
        if spans.is_empty() { Self::every(sends) } else { Self { spans } }
    }

    fn sends_from(&self, tx: TxId) -> u32 {
        let behind = self.spans.partition_point(|(first, _)| *first <= tx);
        self.spans[behind.saturating_sub(1)].1
    }
}

/// A connection to an atomizer on which transactions are submitted.
pub(crate) struct SubmitSession {
    known: Arc<Known>,
    refresh: Refresh,
    /// Sends until the height is looked up again.
    sends: u32,
    /// The last height, and that of the last block that was seen.
    height: u64,
    seen: u64,
    /// How many heights back a transaction may be vouched for.
    depth: u64,
    in_flight_max: u32,
    /// Blocks come here, too: what the published system does to whoever is connected.
    hears_blocks: bool,
    /// Bytes that are still to come of a block that is passed over.
    block_bytes: usize,
    /// Whoever leads is asked for the height now and then.
    asks: bool,
    is_asked: bool,
}

impl SubmitSession {
    pub(crate) const fn new(
        known: Arc<Known>,
        refresh: Refresh,
        depth: u64,
        in_flight_max: u32,
    ) -> Self {
        Self {
            known,
            refresh,
            sends: 0,
            height: 0,
            seen: 0,
            depth,
            in_flight_max,
            hears_blocks: false,
            block_bytes: 0,
            asks: false,
            is_asked: false,
        }
    }

    /// One to whom blocks are sent as well. They are passed over as they come, unread and not held: who follows blocks has a
    /// connection for it, and reading each of them once a connection would be the generator's work, not the system's.
    pub(crate) const fn hearing_blocks(mut self, hears_blocks: bool) -> Self {
        self.hears_blocks = hears_blocks;
        self
    }

    /// One that asks whoever leads for the height. Blocks say it, too, but late: they have to come first, and to be archived
    /// where the archiver is followed; under a load of which a block is tens of megabytes that alone can make transactions
    /// too old, which is a limit of who sends them and not of the atomizer.
    pub(crate) const fn asking(mut self, asks: bool) -> Self {
        self.asks = asks;
        self
    }

    /// Passes over what there is of a block, which may begin here; how many bytes that took.
    fn pass_over(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        if !self.hears_blocks {
            return Ok(0);
        }
        let mut begun = 0;
        if self.block_bytes == 0
            && let Some(length) = frame_length(bytes, BLOCK_BYTES_MAX)?
            && length >= HEAD_BYTES
        {
            (begun, self.block_bytes) = (FRAME_HEADER_BYTES, length);
        }
        let passed = self.block_bytes.min(bytes.len() - begun);
        self.block_bytes -= passed;
        Ok(begun + passed)
    }
}

/// Where a transaction's name begins in a notification with its frame.
const ID_AT: usize = HEIGHT_AT + 8;

impl Session for SubmitSession {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        if self.sends == 0 {
            (self.height, self.seen) = (self.known.latest(), self.known.height());
            self.sends = self.refresh.sends_from(tx.id);
        }
        self.sends -= 1;
        let is = |sort: Sort| tx.kind == sort as u32;
        let height = if is(Sort::Stale) {
            self.height.saturating_sub(self.depth + BEYOND)
        } else if is(Sort::Future) {
            self.height.saturating_add(BEYOND)
        } else if is(Sort::Double) {
            // At a height at which the inputs are spent nobody would vouch for them, and the atomizer does not look that far
            // back. What this one repeats has only just left: it may be in the last block that was seen, and in none before.
            self.seen.saturating_sub(1)
        } else if tx.attempt > 1 {
            // The same: an earlier attempt is in no block that was seen, but it may be in one that was not.
            self.seen
        } else {
            self.height
        };
        let id: &Hash = tx.payload[ID_AT..].first_chunk().expect("the workload wrote it");
        self.known.tell(id, tx.id);
        let mut at = out.len();
        out.extend_from_slice(tx.payload);
        // One message, or one for each input.
        while at < out.len() {
            let length = out[at..].first_chunk::<8>().expect("a frame begins with its length");
            let length =
                usize::try_from(u64::from_le_bytes(*length)).expect("the workload wrote it");
            out[at + HEIGHT_AT..at + HEIGHT_AT + 8].copy_from_slice(&height.to_le_bytes());
            at += FRAME_HEADER_BYTES + length;
        }
        u32::try_from(tx.payload.len()).expect("a few hundred bytes")
    }

    /// Whoever answers a transaction does not lead; whoever leads answers questions for the height.
    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        let failed = |why| not_of_the_protocol("an answer", why);
        loop {
            let passed = self.pass_over(&bytes[used..]).map_err(failed)?;
            used += passed;
            if passed > 0 {
                continue;
            }
            let next = next_frame(&bytes[used..], STANDING_BYTES_MAX).map_err(failed)?;
            let Some(frame) = next else { return Ok(used) };
            used += frame.used;
            let standing = read_standing(frame.payload).map_err(failed)?;
            self.is_asked = false;
            if standing.leader == standing.replica {
                self.known.said(standing.height);
            } else {
                self.known.leads(standing.leader);
                marks.close();
            }
        }
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    fn poll(&mut self, out: &mut Vec<u8>) -> Option<Duration> {
        if !self.asks {
            return None;
        }
        if !std::mem::replace(&mut self.is_asked, true) {
            write_standing_request(out);
        }
        Some(ASK_EVERY)
    }

    fn reset(&mut self) {
        self.sends = 0;
        self.block_bytes = 0;
        self.is_asked = false;
    }
}

/// A connection that is told blocks.
pub(crate) struct BlockSession {
    known: Arc<Known>,
    stream: Stream,
    /// The height up to which blocks were read already, on an earlier connection or this one.
    seen: u64,
    /// Whether the block that is being read is one of them.
    is_old: bool,
    lookup: Lookup,
}

impl BlockSession {
    pub(crate) fn new(known: Arc<Known>) -> Self {
        Self { known, stream: Stream::default(), seen: 0, is_old: false, lookup: Lookup::default() }
    }
}

impl Session for BlockSession {
    fn submit(&mut self, _tx: &Transaction<'_>, _out: &mut Vec<u8>) -> u32 {
        unreachable!("the engine submits nothing on an observer's connection")
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let Self { known, stream, seen, is_old, lookup } = self;
        let mut reached = |tx| marks.reached(tx, COMMITTED, 0, 0);
        let each = |part: Part<'_>| match part {
            Part::Pruned { .. } => {}
            Part::Begin { height, .. } => *is_old = height <= *seen,
            // What stands in two blocks is told twice: that is for the engine to count.
            Part::Transaction(transaction) if !*is_old => {
                lookup.push(known, transaction.id, &mut reached);
            }
            Part::Transaction(_) => {}
            Part::End { height } => {
                lookup.flush(known, &mut reached);
                *seen = (*seen).max(height);
                known.saw(height);
            }
        };
        let read = stream.read(bytes, each);
        lookup.flush(known, reached);
        read.map_err(|why| not_of_the_protocol("a block", why))
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn reset(&mut self) {
        self.stream = Stream::default();
    }
}

/// A connection that is told what was refused, and why.
pub(crate) struct ErrorSession {
    known: Arc<Known>,
    /// Where transactions are sent again: what may yet be committed by another attempt is not over.
    resends: Option<Wallet>,
}

impl ErrorSession {
    pub(crate) const fn new(known: Arc<Known>, resends: Option<Wallet>) -> Self {
        Self { known, resends }
    }
}

/// The outcome, the code and the words of a refusal.
const fn meaning(why: &Why<'_>) -> (Class, u16, &'static str) {
    match why {
        Why::NotTaken => (Class::Overloaded, 1, "not taken up"),
        Why::Unknown(_) => (Class::BadRequest, 2, "inputs do not exist"),
        Why::Range => (Class::Expired, 3, "height out of range"),
        Why::Incomplete => (Class::BadRequest, 4, "not all inputs vouched for"),
        Why::Spent(_) => (Class::Conflict, 5, "inputs spent"),
    }
}

impl Session for ErrorSession {
    fn submit(&mut self, _tx: &Transaction<'_>, _out: &mut Vec<u8>) -> u32 {
        unreachable!("the engine submits nothing on an observer's connection")
    }

    fn receive(&mut self, bytes: &[u8], _out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let mut used = 0;
        let failed = |why| not_of_the_protocol("a list of errors", why);
        while let Some(frame) = next_frame(&bytes[used..], ERRORS_BYTES_MAX).map_err(failed)? {
            used += frame.used;
            for error in read_errors(frame.payload).map_err(failed)?.iter() {
                let Some(tx) = self.known.find(error.id) else { continue };
                let is_over = self.resends.is_none_or(|wallet| !wallet.sort(tx).is_good());
                if is_over {
                    let (class, code, words) = meaning(&error.why);
                    marks.ended(tx, Outcome::Rejected(class), code, 0, words);
                }
            }
        }
        Ok(used)
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn reset(&mut self) {}
}
