//! Reading the chain back, by another way than the load took: over HTTP, block after block with receipts, and what waits in
//! the pool after them. A transaction's position is its block's height and its index there. One that reverted is refused:
//! it stands in the chain, cost its fee, and moved nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use clock::{Clock, WallTime};
use model::facts::LedgerEntry;
use serde::Deserialize;
use serde_json::{Value, json};
use sut::{Ledger, SutError};

use crate::hex::{self, Hash};
use crate::known::Known;
use crate::rpc::Rpc;
use crate::session::COMMITTED;
use crate::settle::{self, Pool, Waiting};

/// Blocks that are asked for in one request.
const BLOCKS_AT_ONCE: u64 = 32;

/// A position is height × this + index: more transactions than a block can hold.
const INDEX_BITS: u32 = 24;

/// Written before the hash in the content of an entry that waits.
const PENDING: &str = "pending ";
const QUEUED: &str = "queued ";

/// Whose chain it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// This trial's alone: whatever stands in it must be explained.
    Own,
    /// Others submit too: what is not ours is left out.
    Shared,
}

/// The chain being read.
pub(crate) struct Chain {
    rpc: Rpc,
    known: Arc<Known>,
    usage: Use,
    next: u64,
    last: u64,
    entries: VecDeque<Found>,
    /// What waits in the pool; taken when the blocks are read.
    waiting: Vec<(Hash, Waiting)>,
    way: String,
}

/// A transaction of the chain or of the pool. Its content is how it waits, if it does, and its hash: the name by which
/// every other program knows it.
struct Found {
    entry: LedgerEntry,
    waits: &'static str,
    hash: Hash,
}

#[derive(Deserialize)]
struct Block {
    timestamp: String,
    #[serde(default)]
    transactions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt {
    transaction_hash: String,
    status: String,
}

impl Chain {
    /// Waits until the pool is empty or stands still, and begins after the block `begun`.
    pub(crate) fn open(
        mut rpc: Rpc,
        known: Arc<Known>,
        begun: u64,
        usage: Use,
        clock: Clock,
    ) -> Result<Self, SutError> {
        let (pool, waiting) = match settle::settle(&mut rpc, clock) {
            Ok(Pool { pending: 0, queued: 0 }) => ("with an empty pool".to_owned(), Vec::new()),
            Ok(Pool { pending, queued }) => {
                let waiting = settle::waiting(&mut rpc).map_err(SutError::Ledger)?;
                let words = format!(
                    "with {pending} transactions pending in the pool and {queued} queued behind a gap"
                );
                (words, waiting)
            }
            Err(why) => (format!("what waits in the pool is not known ({why})"), Vec::new()),
        };
        let last = rpc.height().map_err(SutError::Ledger)?;
        let left_out = match usage {
            Use::Own => "",
            Use::Shared => ", transactions of others left out",
        };
        let way = format!(
            "blocks {} to {last} and their receipts from {} over HTTP, {pool}{left_out}",
            begun + 1,
            rpc.address()
        );
        let entries = VecDeque::new();
        Ok(Self { rpc, known, usage, next: begun + 1, last, entries, waiting, way })
    }

    fn read_blocks(&mut self) -> Result<(), SutError> {
        let end = self.last.min(self.next + BLOCKS_AT_ONCE - 1);
        let numbers: Vec<u64> = (self.next..=end).collect();
        let blocks: Vec<Option<Block>> = self.of(&numbers, "eth_getBlockByNumber", true)?;
        let mut full = Vec::new();
        for (number, block) in numbers.iter().zip(blocks) {
            let Some(block) = block else {
                let words = format!("block {number} is gone; the chain ends before it");
                return Err(SutError::Ledger(words));
            };
            if !block.transactions.is_empty() {
                full.push((*number, block));
            }
        }
        let with_content: Vec<u64> = full.iter().map(|(number, _)| *number).collect();
        if !with_content.is_empty() {
            let receipts: Vec<Vec<Receipt>> =
                self.of(&with_content, "eth_getBlockReceipts", false)?;
            for ((number, block), receipts) in full.iter().zip(receipts) {
                self.take(*number, block, &receipts)?;
            }
        }
        self.next = end + 1;
        Ok(())
    }

    fn of<T: serde::de::DeserializeOwned>(
        &mut self,
        numbers: &[u64],
        method: &str,
        is_block: bool,
    ) -> Result<Vec<T>, SutError> {
        let question = |number: &u64| -> (&str, Value) {
            let height = format!("0x{number:x}");
            (method, if is_block { json!([height, false]) } else { json!([height]) })
        };
        let questions: Vec<(&str, Value)> = numbers.iter().map(question).collect();
        self.rpc.ask_all(&questions).map_err(SutError::Ledger)
    }

    fn take(&mut self, height: u64, block: &Block, receipts: &[Receipt]) -> Result<(), SutError> {
        if receipts.len() != block.transactions.len() {
            return Err(SutError::Ledger(format!(
                "block {height} has {} transactions and {} receipts",
                block.transactions.len(),
                receipts.len()
            )));
        }
        let seconds = hex::quantity(&block.timestamp).and_then(|s| i64::try_from(s).ok());
        let recorded = seconds.and_then(|s| s.checked_mul(1_000_000_000));
        let recorded = recorded.map(WallTime::from_unix_ns);
        for (index, receipt) in (0_u64..).zip(receipts) {
            let hash = hex::bytes(&receipt.transaction_hash).ok_or_else(|| {
                SutError::Ledger(format!("block {height} has a receipt of no transaction"))
            })?;
            let is_refused = receipt.status == "0x0";
            let entry = LedgerEntry {
                block: height,
                recorded,
                is_refused,
                ..LedgerEntry::new((height << INDEX_BITS) + index, 0, false)
            };
            let claimed = self.claimed(&hash, entry);
            self.entries.extend(claimed.map(|entry| Found { entry, waits: "", hash }));
        }
        Ok(())
    }

    /// The entry with whose it is; `None` if it is another client's business.
    fn claimed(&self, hash: &Hash, entry: LedgerEntry) -> Option<LedgerEntry> {
        match (self.known.find(hash), self.usage) {
            // The hash is over all that the transaction says, its signature included.
            (Some(given), _) => {
                Some(LedgerEntry { tx: given.tx, ours: true, submitted: Some(given.due), ..entry })
            }
            (None, Use::Own) => Some(LedgerEntry { tx: u64::MAX, ..entry }),
            (None, Use::Shared) => None,
        }
    }

    fn take_waiting(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for (index, (hash, how)) in (0_u64..).zip(waiting) {
            let position = ((self.last + 1) << INDEX_BITS) + index;
            let entry = LedgerEntry { is_waiting: true, ..LedgerEntry::new(position, 0, false) };
            let waits = match how {
                Waiting::Pending => PENDING,
                Waiting::Queued => QUEUED,
            };
            let claimed = self.claimed(&hash, entry).filter(|entry| entry.ours);
            self.entries.extend(claimed.map(|entry| Found { entry, waits, hash }));
        }
    }
}

impl Ledger for Chain {
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.entries.is_empty() && self.next <= self.last {
            self.read_blocks()?;
        }
        if self.entries.is_empty() {
            self.take_waiting();
        }
        let Some(Found { entry, waits, hash }) = self.entries.pop_front() else { return Ok(None) };
        content.extend_from_slice(waits.as_bytes());
        content.extend_from_slice(hex::text(&hash).as_bytes());
        Ok(Some(entry))
    }

    /// A mempool promises no order: another node may propose what came later first.
    fn ordered_from(&self) -> Option<usize> {
        Some(usize::from(COMMITTED))
    }

    fn way(&self) -> String {
        self.way.clone()
    }
}
