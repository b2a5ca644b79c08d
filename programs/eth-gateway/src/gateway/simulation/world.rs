//! A tree of blocks, and which of them each replica had for its head at which time.

use std::collections::HashSet;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::quantity::Quantity;
use crate::query::At;
use crate::routes::Operation;
use crate::rpc::{Answer, Call, Failure};
use crate::view::{Hash, hex};

/// Accounts that have balances.
pub const ACCOUNTS: u64 = 5;
/// So many blocks below the head are final as soon as every replica has them.
pub const FINAL_DEPTH: u64 = 10;
/// That of every log.
pub const TOPIC: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
/// Blocks that there are at the start.
const BLOCKS: u64 = 30;

struct Block {
    height: u64,
    parent: usize,
    hash: Hash,
    /// The number of its only transaction, which may also stand in another block of this height.
    transaction: u64,
}

/// A node, or one of several behind one address.
pub struct Replica {
    head: usize,
    /// Blocks that it ever had.
    known: HashSet<usize>,
    /// Its heads, each with the time from which on it was.
    heads: Vec<(u64, usize)>,
    pub down_until: u64,
}

/// See the module.
pub struct World {
    blocks: Vec<Block>,
    pub replicas: Vec<Replica>,
    last_final: usize,
    head_max: u64,
}

pub fn transaction_hash(number: u64) -> String {
    hex(&sha(&format!("transaction {number}")))
}

fn sha(text: &str) -> Hash {
    digest(&SHA256, text.as_bytes()).as_ref().try_into().unwrap()
}

impl World {
    pub fn new(replicas: usize) -> Self {
        let genesis = Block { height: 0, parent: 0, hash: sha("genesis"), transaction: 0 };
        let mut world =
            Self { blocks: vec![genesis], replicas: Vec::new(), last_final: 0, head_max: 0 };
        let mut head = 0;
        for _ in 0..BLOCKS {
            head = world.child(head, 0);
        }
        world.replicas = (0..replicas)
            .map(|_| Replica {
                head,
                known: (0..world.blocks.len()).collect(),
                heads: vec![(0, head)],
                down_until: 0,
            })
            .collect();
        world.settle();
        world
    }

    fn child(&mut self, parent: usize, choice: u64) -> usize {
        let height = self.blocks[parent].height + 1;
        let hash = sha(&format!("block {}", self.blocks.len()));
        self.blocks.push(Block { height, parent, hash, transaction: height * 2 + choice % 2 });
        self.blocks.len() - 1
    }

    pub fn head_height(&self) -> u64 {
        self.blocks[self.replicas[0].head].height
    }

    fn ancestor(&self, of: usize, height: u64) -> Option<usize> {
        let mut at = of;
        if height > self.blocks[at].height {
            return None;
        }
        while self.blocks[at].height > height {
            at = self.blocks[at].parent;
        }
        Some(at)
    }

    fn has(&self, head: usize, block: usize) -> bool {
        self.ancestor(head, self.blocks[block].height) == Some(block)
    }

    fn set_head(&mut self, now: u64, replica: usize, head: usize) {
        let mut at = head;
        while self.replicas[replica].known.insert(at) {
            at = self.blocks[at].parent;
        }
        let replica = &mut self.replicas[replica];
        replica.head = head;
        replica.heads.push((now, head));
        self.settle();
    }

    /// Makes final what every replica has deep enough.
    fn settle(&mut self) {
        let head = self.replicas[0].head;
        self.head_max = self.head_max.max(self.blocks[head].height);
        let deep = self.blocks[head].height.saturating_sub(FINAL_DEPTH);
        if deep <= self.blocks[self.last_final].height {
            return;
        }
        let Some(block) = self.ancestor(head, deep) else { return };
        if self.replicas.iter().all(|replica| self.has(replica.head, block)) {
            self.last_final = block;
        }
    }

    /// The lowest height that the chain may be cut back to: also where what is final is told by depth.
    fn lowest(&self) -> u64 {
        let by_depth = self.head_max.saturating_sub(FINAL_DEPTH);
        if self.replicas.len() == 1 { by_depth } else { self.blocks[self.last_final].height }
    }

    fn fork(&self, depth: u64) -> usize {
        let head = self.replicas[0].head;
        let (height, lowest) = (self.blocks[head].height, self.lowest());
        let deepest = height.saturating_sub(lowest);
        if deepest == 0 {
            return head;
        }
        // Shallow ones are the rule.
        let depth =
            1 + if depth.is_multiple_of(3) { depth % deepest } else { depth % deepest.min(2) };
        self.ancestor(head, height - depth).unwrap()
    }

    pub fn grow(&mut self, now: u64, choice: u64) {
        let head = self.child(self.replicas[0].head, choice);
        self.set_head(now, 0, head);
    }

    /// Another branch, which may end lower, at the same height, or higher.
    pub fn reorganise(&mut self, now: u64, depth: u64, more: u64) {
        let fork = self.fork(depth);
        let dropped = self.head_height() - self.blocks[fork].height;
        let length = (dropped + more).saturating_sub(1).max(1);
        let mut head = fork;
        for place in 0..length {
            head = self.child(head, depth >> place);
        }
        self.set_head(now, 0, head);
    }

    pub fn roll_back(&mut self, now: u64, depth: u64) {
        let fork = self.fork(depth);
        self.set_head(now, 0, fork);
    }

    /// It is away for a while and comes back with less.
    pub fn restart(&mut self, now: u64, down: u64, depth: u64) {
        self.roll_back(now, depth);
        self.replicas[0].down_until = now + down;
    }

    pub fn catch_up(&mut self, now: u64, replica: usize) {
        let head = self.replicas[0].head;
        if self.replicas[replica].head != head {
            self.set_head(now, replica, head);
        }
    }

    /// Heads that any replica had at some time between these two.
    pub fn heads_between(&self, from: u64, to: u64) -> Vec<usize> {
        let mut found = Vec::new();
        for replica in &self.replicas {
            for (place, (since, head)) in replica.heads.iter().enumerate() {
                let until = replica.heads.get(place + 1).map_or(u64::MAX, |(since, _)| *since);
                if *since <= to && until >= from {
                    found.push(*head);
                }
            }
        }
        found
    }

    pub fn name(&self, block: usize) -> String {
        format!("{} at {}", &hex(&self.blocks[block].hash)[..10], self.blocks[block].height)
    }

    fn block(&self, block: usize, full: bool) -> Value {
        let it = &self.blocks[block];
        let transaction = match full {
            true => self.transaction(block),
            false => json!(transaction_hash(it.transaction)),
        };
        json!({
            "number": format!("0x{:x}", it.height), "hash": hex(&it.hash),
            "parentHash": hex(&self.blocks[it.parent].hash), "transactions": [transaction],
        })
    }

    fn transaction(&self, block: usize) -> Value {
        let it = &self.blocks[block];
        json!({
            "hash": transaction_hash(it.transaction), "blockHash": hex(&it.hash),
            "blockNumber": format!("0x{:x}", it.height), "transactionIndex": "0x0",
        })
    }

    fn with_transaction(&self, head: usize, hash: &str) -> Option<usize> {
        let mut at = head;
        while at > 0 {
            if transaction_hash(self.blocks[at].transaction) == hash {
                return Some(at);
            }
            at = self.blocks[at].parent;
        }
        None
    }

    fn quantity(&self, block: usize, address: &str, method: &str) -> u64 {
        let text = format!("{} {address} {method}", hex(&self.blocks[block].hash));
        u64::from_be_bytes(sha(&text)[..8].try_into().unwrap())
    }

    fn logs(&self, head: usize, from: u64, to: u64) -> Value {
        let blocks = (from..=to).filter_map(|height| self.ancestor(head, height));
        blocks.map(|block| self.transaction(block)).collect()
    }

    /// The REST API's answer where this block is the head.
    pub fn says(&self, head: usize, operation: &Operation) -> String {
        let or_absent =
            |value: Option<Value>| value.map_or("absent".to_owned(), |it| it.to_string());
        match operation {
            Operation::LastHeight => {
                format!("{{\"lastBlockHeight\":\"{}\"}}", self.blocks[head].height)
            }
            Operation::LastBlock { full } => self.block(head, *full).to_string(),
            Operation::BlockByHeight { height, full } => {
                or_absent(self.ancestor(head, *height).map(|block| self.block(block, *full)))
            }
            Operation::Transaction(hash) | Operation::Receipt(hash) => {
                let block = self.with_transaction(head, hash);
                or_absent(block.map(|block| self.transaction(block)))
            }
            Operation::TransactionInBlock { height, index } => {
                let block = self.ancestor(head, *height).filter(|_| *index == 0);
                or_absent(block.map(|block| self.transaction(block)))
            }
            Operation::Logs { from, to, .. } => self.logs(head, *from, *to).to_string(),
            Operation::Balance { address, at } => {
                let block = match at {
                    At::Height(height) => self.ancestor(head, *height),
                    _ => Some(head),
                };
                block.map_or("refused".to_owned(), |block| {
                    let wei = self.quantity(block, address, "eth_getBalance");
                    format!("{{\"balance\":\"{wei}\"}}")
                })
            }
            Operation::Nonce { address, .. } => {
                let nonce = self.quantity(head, address, "eth_getTransactionCount");
                format!("{{\"nonce\":\"{nonce}\"}}")
            }
            other => panic!("{other:?}"),
        }
    }

    /// Whether an answer is one that every chain that may still come gives.
    pub fn is_final_answer(&self, operation: &Operation, text: &str) -> bool {
        let lowest = self.ancestor(self.replicas[0].head, self.lowest());
        lowest.is_some_and(|lowest| self.says(lowest, operation) == text)
    }

    /// A replica's answer now.
    pub fn answer(
        &self,
        replica: usize,
        call: &Call,
        names_final: bool,
        knows_hashes: bool,
    ) -> Answer {
        let params: Value = serde_json::from_str(&call.params).unwrap();
        let replica = &self.replicas[replica];
        let refused = |code, message: &str| Failure::Refused { code, message: message.to_owned() };
        let by_hash = |hash: &str| {
            let found = replica.known.iter().find(|block| hex(&self.blocks[**block].hash) == hash);
            found.copied()
        };
        let at = |parameter: &Value| -> Result<Option<usize>, Failure> {
            if let Some(hash) = parameter["blockHash"].as_str() {
                if !knows_hashes {
                    return Err(refused(-32602, "invalid argument 1"));
                }
                return by_hash(hash).map(Some).ok_or(refused(-32000, "header not found"));
            }
            let word = parameter.as_str().unwrap();
            match word {
                "latest" => Ok(Some(replica.head)),
                "finalized" if !names_final => Err(refused(-39001, "unknown block")),
                "finalized" => Ok(Some(self.last_final)),
                number => {
                    let height = Quantity::from_hex(number).and_then(Quantity::to_u64).unwrap();
                    Ok(self.ancestor(replica.head, height))
                }
            }
        };
        let full = params[1].as_bool().unwrap_or(false);
        let text = |place: usize| params[place].as_str().unwrap_or_default();
        let value = match call.method.as_ref() {
            "eth_getBlockByNumber" => at(&params[0])?.map(|block| self.block(block, full)),
            "eth_getBlockByHash" => by_hash(text(0)).map(|block| self.block(block, full)),
            "eth_getTransactionByHash" | "eth_getTransactionReceipt" => {
                self.with_transaction(replica.head, text(0)).map(|block| self.transaction(block))
            }
            "eth_getTransactionByBlockHashAndIndex" => {
                by_hash(text(0)).filter(|_| text(1) == "0x0").map(|block| self.transaction(block))
            }
            "eth_getTransactionByBlockNumberAndIndex" => {
                let block = at(&params[0])?.filter(|_| text(1) == "0x0");
                block.map(|block| self.transaction(block))
            }
            method @ ("eth_getBalance" | "eth_getTransactionCount") => {
                let block = at(&params[1])?.ok_or(refused(-32000, "header not found"))?;
                Some(json!(format!("0x{:x}", self.quantity(block, text(0), method))))
            }
            "eth_getLogs" => {
                let filter = &params[0];
                if let Some(hash) = filter["blockHash"].as_str() {
                    let block = by_hash(hash).ok_or(refused(-32000, "unknown block"))?;
                    Some(json!([self.transaction(block)]))
                } else {
                    let number = |name: &str| {
                        filter[name]
                            .as_str()
                            .and_then(Quantity::from_hex)
                            .and_then(Quantity::to_u64)
                    };
                    let (from, to) = (number("fromBlock").unwrap(), number("toBlock").unwrap());
                    Some(self.logs(replica.head, from, to))
                }
            }
            other => panic!("{other}"),
        };
        Ok(Bytes::from(value.unwrap_or(Value::Null).to_string()))
    }
}
