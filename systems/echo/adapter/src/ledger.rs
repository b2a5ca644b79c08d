//! Reading the ledger back, by another way than the load took: the node's file where we started it, its own
//! listing where we attached. Streamed; a ledger of any length takes the memory of one piece.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};

use echo_node::ledger::{RECORD_BYTES, Record};
use model::facts::LedgerEntry;
use sut::{Ledger, SutError};

use crate::control::Control;

/// Where the bytes come from.
enum Source {
    File(PathBuf, &'static str, BufReader<File>),
    Node(Control, Vec<u8>),
}

/// The ledger being read.
pub(crate) struct Reader {
    source: Source,
    run_mark: u64,
    /// A record of this trial was read. Records of others that stand before it are of trials on the same node.
    has_begun: bool,
    /// Records that were read.
    position: u64,
}

impl Reader {
    /// The node's file, and in which state it is.
    pub(crate) fn of_file(
        path: &Path,
        state: &'static str,
        run_mark: u64,
    ) -> Result<Self, SutError> {
        let file = File::open(path)
            .map_err(|error| SutError::Ledger(format!("opening {}: {error}", path.display())))?;
        let source = Source::File(path.to_owned(), state, BufReader::with_capacity(1 << 20, file));
        Ok(Self { source, run_mark, has_begun: false, position: 0 })
    }

    /// The node's own listing.
    pub(crate) fn of_node(control: Control, run_mark: u64) -> Self {
        let source = Source::Node(control, Vec::new());
        // A node that ran already is everybody's.
        Self { source, run_mark, has_begun: true, position: 0 }
    }

    fn record(&mut self) -> Result<Option<[u8; RECORD_BYTES]>, SutError> {
        let mut bytes = [0; RECORD_BYTES];
        match &mut self.source {
            Source::File(path, _, file) => {
                let failed = |error: io::Error| {
                    SutError::Ledger(format!("reading {}: {error}", path.display()))
                };
                let mut filled = 0;
                while filled < RECORD_BYTES {
                    match file.read(&mut bytes[filled..]).map_err(failed)? {
                        // The end, or the last record of a node that was killed while it wrote: not an entry.
                        0 => return Ok(None),
                        count => filled += count,
                    }
                }
            }
            Source::Node(control, piece) => {
                if piece.is_empty() {
                    let more = control.ledger(self.position).map_err(|error| {
                        SutError::Ledger(format!("asking the node for its entries: {error}"))
                    })?;
                    // Taken from the end, so the other way round.
                    piece.extend(more.chunks_exact(RECORD_BYTES).rev().flatten());
                }
                if piece.is_empty() {
                    return Ok(None);
                }
                let start = piece.len() - RECORD_BYTES;
                bytes.copy_from_slice(&piece[start..]);
                piece.truncate(start);
            }
        }
        self.position += 1;
        Ok(Some(bytes))
    }
}

/// The ledgers of all nodes, one behind the other.
pub(crate) struct Ledgers {
    readers: Vec<Reader>,
    /// Which of them is read.
    at: usize,
    position: u64,
}

impl Ledgers {
    pub(crate) fn new(readers: Vec<Reader>) -> Self {
        Self { readers, at: 0, position: 0 }
    }
}

impl Ledger for Ledgers {
    /// An entry holds the run's mark and the checksum of its submission: what the check `content` reads.
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        let (record, is_ours) = loop {
            let Some(reader) = self.readers.get_mut(self.at) else { return Ok(None) };
            let Some(bytes) = reader.record()? else {
                self.at += 1;
                continue;
            };
            let record = Record::read(&bytes);
            let is_ours = record.is_some_and(|record| record.run == reader.run_mark);
            reader.has_begun |= is_ours;
            if reader.has_begun || record.is_none() {
                break (record, is_ours);
            }
        };
        let position = self.position;
        self.position += 1;
        let tx = record.map_or(u64::MAX, |record| record.tx);
        if let Some(record) = record {
            content.extend_from_slice(&record.run.to_le_bytes());
            content.extend_from_slice(&record.submit_crc.to_le_bytes());
        }
        let is_refused = record.is_some_and(|record| record.is_refused);
        Ok(Some(LedgerEntry { is_refused, ..LedgerEntry::new(position, tx, is_ours) }))
    }

    /// Entries of two nodes have no order.
    fn ordered_from(&self) -> Option<usize> {
        (self.readers.len() < 2).then_some(0)
    }

    fn way(&self) -> String {
        let ways: Vec<String> = self.readers.iter().map(Reader::way).collect();
        match ways.as_slice() {
            [only] => only.clone(),
            several => format!("each node's in turn: {}", several.join("; ")),
        }
    }
}

impl Reader {
    fn way(&self) -> String {
        match &self.source {
            Source::File(_, state, _) => format!("the node's file, {state}"),
            Source::Node(..) => "the node's own listing, over a connection of its own".to_owned(),
        }
    }
}
