//! Reading the chain back, by another way than the load took: over HTTP, block after block with receipts, and what waits in
//! the pool after them. A transaction's position is its block's height and its index there. One that reverted is refused:
//! it stands in the chain, cost its fee, and moved nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clock::{Clock, WallTime};
use model::facts::LedgerEntry;
use serde::Deserialize;
use serde_json::{Value, json};
use sut::{Ledger, SutError};

use crate::hex::{self, Hash};
use crate::known::Known;
use crate::observer::receipt_status;
use crate::rpc::Rpc;
use crate::session::COMMITTED;
use crate::settle::{self, Pool, Waiting};

/// Blocks that are asked for in one request.
const BLOCKS_AT_ONCE: u64 = 32;

/// Blocks of a trial: at a thousand a second, those of four hours.
const BLOCKS_MAX: u64 = 1 << 24;

/// Requests for blocks without a transaction of ours, one after the other, once the run is to stop: a moment.
const EMPTY_STOPPED_MAX: u32 = 100;

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
    /// Set when the run is to stop.
    stop: Arc<AtomicBool>,
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
        (clock, stop): (Clock, Arc<AtomicBool>),
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
        if last.saturating_sub(begun) > BLOCKS_MAX {
            return Err(SutError::Ledger(format!(
                "expected at most {BLOCKS_MAX} blocks after {begun}, at which the trial began, got {last} from {}; is it \
                 the chain of the trial?",
                rpc.address()
            )));
        }
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
        Ok(Self { rpc, known, usage, next: begun + 1, last, entries, waiting, way, stop })
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
            let is_refused = !receipt_status(&receipt.status).ok_or_else(|| {
                let status = sut::shown(receipt.status.as_bytes());
                SutError::Ledger(format!(
                    "expected receipts of the status 0x1 or 0x0, got `{status}` in block {height}"
                ))
            })?;
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
        let mut empty = 0;
        while self.entries.is_empty() && self.next <= self.last {
            if empty >= EMPTY_STOPPED_MAX && self.stop.load(Ordering::Relaxed) {
                let (next, last) = (self.next, self.last);
                let words = format!("the run is to stop; blocks {next} to {last} were not read");
                return Err(SutError::Ledger(words));
            }
            self.read_blocks()?;
            empty += 1;
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};

    use super::*;

    /// A node that answers each question of one connection with what `answer` makes of its method and parameters.
    fn node(answer: impl Fn(&str, &Value) -> Value + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut some = [0; 16 << 10];
            loop {
                match stream.read(&mut some) {
                    Ok(count @ 1..) => asked.extend_from_slice(&some[..count]),
                    _ => return,
                }
                let Some(head) = asked.windows(4).position(|it| it == b"\r\n\r\n") else {
                    continue;
                };
                let Ok(question) = serde_json::from_slice::<Value>(&asked[head + 4..]) else {
                    continue;
                };
                asked.clear();
                let one = |it: &Value| {
                    let result = answer(it["method"].as_str().unwrap(), &it["params"]);
                    json!({"jsonrpc": "2.0", "id": it["id"], "result": result})
                };
                let said = match question.as_array() {
                    Some(batch) => batch.iter().map(one).collect(),
                    None => one(&question),
                };
                let body = said.to_string();
                // In one piece, for which no acknowledgement is waited.
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        address
    }

    /// The chain of a node at this height whose blocks hold `transactions`, with receipts of this status, after block 5.
    fn chain(
        height: &str,
        transactions: usize,
        status: &str,
        stop: bool,
    ) -> Result<Chain, SutError> {
        let (height, status) = (height.to_owned(), status.to_owned());
        let hash = hex::text(&[7; 32]);
        let node = node(move |method, _| match method {
            "txpool_status" => json!({"pending": "0x0", "queued": "0x0"}),
            "eth_blockNumber" => json!(height),
            "eth_getBlockByNumber" => {
                json!({"timestamp": "0x1", "transactions": vec![&hash; transactions]})
            }
            _ => json!([{"transactionHash": hash, "status": status}]),
        });
        let (clock, known) = (Clock::start(), Arc::default());
        Chain::open(Rpc::new(node, clock), known, 5, Use::Own, (clock, Arc::new(stop.into())))
    }

    /// Claim: heights that no chain can have, and more blocks than a trial can have, are said when the reading begins.
    #[test]
    fn heights_beyond_bounds() {
        for (height, words) in [
            ("0x8000000000000000", "no height"),
            ("0xffffffffffffffff", "no height"),
            ("0x8000000000", "expected at most 16777216 blocks after 5"),
        ] {
            let error = chain(height, 0, "0x1", false).err().unwrap().to_string();
            assert!(error.contains(words), "{height}: {error}");
        }
    }

    /// Claim: empty blocks without end are left once the run is to stop.
    #[test]
    fn empty_blocks() {
        let mut chain = chain("0x100000", 0, "0x1", true).unwrap();
        let error = chain.next(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("the run is to stop"), "{error}");
    }

    /// Claim: a receipt is of a success or of a refusal by its two statuses, and of neither by any other, which is said.
    #[test]
    fn statuses() {
        for (status, is_refused) in [("0x1", false), ("0x0", true)] {
            let entry = chain("0x6", 1, status, false).unwrap().next(&mut Vec::new());
            assert_eq!(entry.unwrap().unwrap().is_refused, is_refused, "{status}");
        }
        for status in ["", "0x00", "0x2", "0x01", "1"] {
            let error = chain("0x6", 1, status, false).unwrap().next(&mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains(&format!("got `{status}` in block 6")), "{error}");
        }
    }
}
