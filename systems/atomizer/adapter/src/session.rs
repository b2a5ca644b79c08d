//! The protocol on a connection: submitting to an atomizer, following blocks, following errors. Bytes in, bytes and marks
//! out.

use std::sync::Arc;

use atomizer_node::protocol::block::{Part, Stream};
use atomizer_node::protocol::errors::{Why, read_errors};
use atomizer_node::protocol::request::{HEIGHT_AT, read_standing};
use atomizer_node::protocol::{ERRORS_BYTES_MAX, FRAME_HEADER_BYTES, Hash, Malformed, next_frame};
use model::{Class, Outcome, TxId};
use sut::{Abandon, Marks, ProtocolError, Session, Transaction};

use crate::known::Known;
use crate::wallet::{Sort, Wallet};

/// The ladder's only stage.
pub(crate) const COMMITTED: u8 = 0;

/// How far beyond the window a stale height lies, and how far ahead a future one: further than either side can be behind.
const BEYOND: u64 = 8;

/// The longest answer on a connection that submits.
const STANDING_BYTES_MAX: usize = 64;

fn not_of_the_protocol(what: &str, why: Malformed) -> ProtocolError {
    ProtocolError(format!("{what} that cannot be read: {}", why.name()))
}

/// A connection to an atomizer on which transactions are submitted.
pub(crate) struct SubmitSession {
    known: Arc<Known>,
    /// Heights are looked up each so many sends; 1: at each.
    refresh_every: u32,
    sends: u32,
    height: u64,
    /// How many heights back a transaction may be vouched for.
    depth: u64,
    in_flight_max: u32,
}

impl SubmitSession {
    pub(crate) const fn new(
        known: Arc<Known>,
        refresh_every: u32,
        depth: u64,
        in_flight_max: u32,
    ) -> Self {
        Self { known, refresh_every, sends: 0, height: 0, depth, in_flight_max }
    }
}

/// Where a transaction's name begins in a notification with its frame.
const ID_AT: usize = HEIGHT_AT + 8;

impl Session for SubmitSession {
    fn submit(&mut self, tx: &Transaction<'_>, out: &mut Vec<u8>) -> u32 {
        if self.sends == 0 {
            self.height = self.known.height();
            self.sends = self.refresh_every;
        }
        self.sends -= 1;
        let is = |sort: Sort| tx.kind == sort as u32;
        let height = if is(Sort::Stale) {
            self.height.saturating_sub(self.depth + BEYOND)
        } else if is(Sort::Future) {
            self.height + BEYOND
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

    /// Whoever answers a transaction does not lead.
    fn receive(
        &mut self,
        bytes: &[u8],
        _out: &mut Vec<u8>,
        marks: &mut Marks,
    ) -> Result<usize, ProtocolError> {
        let mut used = 0;
        let failed = |why| not_of_the_protocol("an answer", why);
        while let Some(frame) = next_frame(&bytes[used..], STANDING_BYTES_MAX).map_err(failed)? {
            used += frame.used;
            let standing = read_standing(frame.payload).map_err(failed)?;
            if standing.leader != standing.replica {
                self.known.leads(standing.leader);
                marks.close();
            }
        }
        Ok(used)
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        self.in_flight_max
    }

    fn reset(&mut self) {
        self.sends = 0;
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
}

impl BlockSession {
    pub(crate) fn new(known: Arc<Known>) -> Self {
        Self { known, stream: Stream::default(), seen: 0, is_old: false }
    }
}

impl Session for BlockSession {
    fn submit(&mut self, _tx: &Transaction<'_>, _out: &mut Vec<u8>) -> u32 {
        unreachable!("the engine submits nothing on an observer's connection")
    }

    fn receive(
        &mut self,
        bytes: &[u8],
        _out: &mut Vec<u8>,
        marks: &mut Marks,
    ) -> Result<usize, ProtocolError> {
        let Self { known, stream, seen, is_old } = self;
        let each = |part: Part<'_>| match part {
            Part::Begin { height, .. } => *is_old = height <= *seen,
            // What stands in two blocks is told twice: that is for the engine to count.
            Part::Transaction(transaction) if !*is_old => {
                if let Some(tx) = known.find(transaction.id) {
                    marks.reached(tx, COMMITTED, 0, 0);
                }
            }
            Part::Transaction(_) => {}
            Part::End { height } => {
                *seen = (*seen).max(height);
                known.saw(height);
            }
        };
        stream.read(bytes, each).map_err(|why| not_of_the_protocol("a block", why))
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn in_flight_max(&self) -> u32 {
        1
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
        Why::Unknown(_) => (Class::Invalid, 2, "inputs do not exist"),
        Why::Range => (Class::Expired, 3, "height out of range"),
        Why::Incomplete => (Class::Invalid, 4, "not all inputs vouched for"),
        Why::Spent(_) => (Class::Conflict, 5, "inputs spent"),
    }
}

impl Session for ErrorSession {
    fn submit(&mut self, _tx: &Transaction<'_>, _out: &mut Vec<u8>) -> u32 {
        unreachable!("the engine submits nothing on an observer's connection")
    }

    fn receive(
        &mut self,
        bytes: &[u8],
        _out: &mut Vec<u8>,
        marks: &mut Marks,
    ) -> Result<usize, ProtocolError> {
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

    fn in_flight_max(&self) -> u32 {
        1
    }

    fn reset(&mut self) {}
}
