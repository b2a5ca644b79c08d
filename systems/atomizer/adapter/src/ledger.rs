//! Reading the archiver's disk: its files, not its memory, and not over its connections. Each transaction of each block is
//! held, byte for byte, against what its number says that it holds.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use atomizer_node::archiver::disk::{Archived, read_archive};
use atomizer_node::protocol::transaction::Transaction;
use model::facts::LedgerEntry;
use sut::{Ledger, SutError};

use crate::known::{Known, short};
use crate::wallet::{Maker, Wallet};

/// A position is a height times this, and the place in the block: more than the longest block holds.
pub(crate) const HEIGHT_SHIFT: u32 = 24;

/// Blocks that are read ahead of who takes their entries.
const AHEAD: usize = 4;

/// The chain as it lies on the disk.
pub(crate) struct Chain {
    blocks: Receiver<Result<Vec<LedgerEntry>, SutError>>,
    reader: Option<JoinHandle<()>>,
    entries: VecDeque<LedgerEntry>,
    way: String,
}

/// By the first bytes of its hash, whose a transaction is.
struct Names {
    /// Short and number, by short; 0 = none.
    slots: Vec<(u64, u64)>,
}

impl Names {
    fn of(known: &Known) -> Self {
        let count = known.all().count();
        let mut slots = vec![(0, 0); (count * 2).next_power_of_two().max(2)];
        let mask = slots.len() - 1;
        for (short, tx) in known.all() {
            let mut place = Self::place(short, mask);
            while slots[place].0 != 0 {
                place = (place + 1) & mask;
            }
            slots[place] = (short, tx);
        }
        Self { slots }
    }

    fn place(short: u64, mask: usize) -> usize {
        usize::try_from(short >> 16).expect("64 bits") & mask
    }

    fn find(&self, short: u64) -> Option<u64> {
        let mask = self.slots.len() - 1;
        let mut place = Self::place(short, mask);
        loop {
            match self.slots[place] {
                (0, _) => return None,
                (found, tx) if found == short => return Some(tx),
                _ => place = (place + 1) & mask,
            }
        }
    }
}

impl Chain {
    /// Reads the archive in `folder` from its first block on.
    pub(crate) fn open(folder: &Path, known: &Known, wallet: Wallet) -> Result<Self, SutError> {
        let (names, maker) = (Names::of(known), Maker::new(wallet));
        let (give, blocks) = sync_channel(AHEAD);
        let way = format!("the archiver's files in {}", folder.display());
        let folder = folder.to_owned();
        let read = move || {
            let mut breaks_at = None;
            let ended = read_archive(&folder, |Archived { block, follows }| {
                let height = block.head.height;
                if !follows {
                    breaks_at.get_or_insert(height);
                }
                let entries: Vec<LedgerEntry> = (0..)
                    .zip(block.transactions())
                    .map(|(index, transaction)| {
                        let entry = entry(height, index, &transaction, &names, &maker);
                        // Where the chain breaks they stand in no block. One without transactions hands that on.
                        if breaks_at.is_some() { LedgerEntry { block: 0, ..entry } } else { entry }
                    })
                    .collect();
                if !entries.is_empty() {
                    breaks_at = None;
                }
                // Whoever takes them may have stopped.
                let _ = give.send(Ok(entries));
            });
            let words = match (ended, breaks_at) {
                (Err(error), _) => error.to_string(),
                (Ok(_), Some(height)) => {
                    format!("block {height} does not follow the one before by its hash")
                }
                (Ok(_), None) => return,
            };
            let _ = give.send(Err(SutError::Ledger(words)));
        };
        let thread = std::thread::Builder::new().name("archive".to_owned()).spawn(read);
        let thread =
            thread.map_err(|error| SutError::Ledger(format!("starting a thread: {error}")));
        Ok(Self { blocks, reader: Some(thread?), entries: VecDeque::new(), way })
    }
}

fn entry(
    height: u64,
    index: u64,
    transaction: &Transaction<'_>,
    names: &Names,
    maker: &Maker,
) -> LedgerEntry {
    let position = (height << HEIGHT_SHIFT) + index;
    let tx = names.find(short(transaction.id));
    let is_ours = tx.is_some_and(|tx| maker.transaction(tx).as_transaction() == *transaction);
    LedgerEntry { block: height, ..LedgerEntry::new(position, tx.unwrap_or(u64::MAX), is_ours) }
}

impl Ledger for Chain {
    /// What entries hold is known by their numbers: nothing has to be kept of it.
    fn next(&mut self, _content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.entries.is_empty() {
            match self.blocks.recv() {
                Ok(block) => self.entries = block?.into(),
                Err(_) => {
                    let ended = self.reader.take().map(JoinHandle::join);
                    return match ended {
                        Some(Err(_)) => Err(SutError::Ledger("its reader has panicked".to_owned())),
                        _ => Ok(None),
                    };
                }
            }
        }
        Ok(self.entries.pop_front())
    }

    fn way(&self) -> String {
        self.way.clone()
    }
}
