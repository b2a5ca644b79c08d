//! Following the archiver: the next block is asked for, and asked for again until it is there. A block is read as it comes,
//! and never held as a whole.

use std::sync::Arc;
use std::time::Duration;

use atomizer_node::protocol::block::{HEAD_BYTES, Head, read_head};
use atomizer_node::protocol::transaction::Transaction as Compact;
use atomizer_node::protocol::{BLOCK_BYTES_MAX, FRAME_HEADER_BYTES, Malformed, write_frame};
use model::TxId;
use sut::{Abandon, Marks, ProtocolError, Received, Session, Transaction};

use crate::known::{Known, Lookup};

/// How long after an answer that there is no such block yet it is asked for again: a fiftieth of the published interval.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// A connection to an archiver.
pub(crate) struct ArchiveSession {
    known: Arc<Known>,
    stage: u8,
    /// The last block that was read.
    height: u64,
    is_asked: bool,
    inside: Option<Inside>,
    lookup: Lookup,
}

/// What is still to come of a block.
#[derive(Clone, Copy)]
struct Inside {
    transactions: u64,
    bytes: usize,
}

/// What stands before the transactions of an answer: its length, whether there is such a block, and the block's head.
const FLAG_AT: usize = FRAME_HEADER_BYTES;

impl ArchiveSession {
    pub(crate) fn new(known: Arc<Known>, stage: u8) -> Self {
        let lookup = Lookup::default();
        Self { known, stage, height: 0, is_asked: false, inside: None, lookup }
    }

    fn ask(&mut self, out: &mut Vec<u8>) {
        write_frame(out, |out| out.extend_from_slice(&(self.height + 1).to_le_bytes()));
        self.is_asked = true;
    }

    /// The beginning of an answer; how many bytes it took.
    fn begin(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let Some(length) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else { return Ok(None) };
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| Malformed::Length)?;
        if length > BLOCK_BYTES_MAX + 1 {
            return Err(Malformed::Length);
        }
        if length == 0 {
            return Err(Malformed::Truncated);
        }
        let Some(flag) = bytes.get(FLAG_AT) else { return Ok(None) };
        match (flag, length) {
            (0, 1) => {
                self.is_asked = false;
                return Ok(Some(FLAG_AT + 1));
            }
            (1, _) if length > HEAD_BYTES => {}
            (0 | 1, _) => return Err(Malformed::Truncated),
            _ => return Err(Malformed::Tag),
        }
        let head = read_head(&bytes[FLAG_AT + 1..]);
        let Some(Head { height, count, .. }) = head else { return Ok(None) };
        if height != self.height + 1 {
            return Err(Malformed::Rest);
        }
        self.inside = Some(Inside { transactions: count, bytes: length - 1 - HEAD_BYTES });
        Ok(Some(FLAG_AT + 1 + HEAD_BYTES))
    }

    /// Transactions of the block, as far as they are there; how many bytes they took.
    fn read(&mut self, bytes: &[u8], marks: &mut Marks) -> Result<usize, Malformed> {
        let Some(inside) = &mut self.inside else { return Ok(0) };
        let own = &bytes[..bytes.len().min(inside.bytes)];
        let mut used = 0;
        let (known, lookup) = (&self.known, &mut self.lookup);
        let mut reached = |tx| marks.reached(tx, self.stage, 0, 0);
        while inside.transactions > 0 {
            match Compact::read(&own[used..]) {
                Ok(transaction) => {
                    used += transaction.bytes();
                    inside.transactions -= 1;
                    lookup.push(known, transaction.id, &mut reached);
                }
                Err(Malformed::Truncated) if own.len() < inside.bytes => break,
                Err(why) => {
                    lookup.flush(known, reached);
                    return Err(why);
                }
            }
        }
        lookup.flush(known, reached);
        inside.bytes -= used;
        if inside.transactions == 0 {
            if inside.bytes > 0 {
                return Err(Malformed::Rest);
            }
            self.inside = None;
            self.is_asked = false;
            self.height += 1;
            self.known.saw(self.height);
        }
        Ok(used)
    }
}

impl Session for ArchiveSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.ask(out);
    }

    fn submit(&mut self, _tx: &Transaction<'_>, _out: &mut Vec<u8>) -> u32 {
        unreachable!("the engine submits nothing on an observer's connection")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let failed = |why: Malformed| {
            ProtocolError(format!("an archived block that cannot be read: {}", why.name()))
        };
        let mut used = 0;
        loop {
            if self.inside.is_none() {
                match self.begin(&bytes[used..]).map_err(failed)? {
                    None => return Ok(used),
                    Some(more) => used += more,
                }
            }
            if self.inside.is_some() {
                used += self.read(&bytes[used..], marks).map_err(failed)?;
                if self.inside.is_some() {
                    return Ok(used);
                }
                // There was one, so there may be more.
                self.ask(out);
            }
        }
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn poll(&mut self, out: &mut Vec<u8>) -> Option<Duration> {
        if !self.is_asked && self.inside.is_none() {
            self.ask(out);
        }
        Some(ASK_EVERY)
    }

    fn reset(&mut self) {
        self.inside = None;
        self.is_asked = false;
    }
}
