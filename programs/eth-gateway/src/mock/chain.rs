//! A chain made of a seed: blocks of transfers of one token, each with its log.

use std::collections::HashMap;
use std::fmt::Write as _;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

/// More blocks than this a chain never has.
pub const BLOCKS_MAX: u64 = 100_000;
/// When its first block was made, in seconds of the calendar, and how many lie between two.
const FIRST_TIME_S: u64 = 1_580_000_000;
const BLOCK_TIME_S: u64 = 13;
/// The topic of a transfer of a token (ERC-20): the hash of `Transfer(address,address,uint256)`.
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const ACCOUNTS: u64 = 100;
/// So far below the last block are those that it calls safe, and those that it calls final.
const SAFE_DEPTH: u64 = 32;
const FINAL_DEPTH: u64 = 64;
/// More logs than this no search finds.
const LOGS_MAX: u64 = 10_000;

/// An error's code and message.
type Refused = (i64, String);

/// See the module.
pub struct Chain {
    seed: u64,
    blocks: u64,
    transactions: u64,
    by_hash: HashMap<String, u64>,
    transaction_by_hash: HashMap<String, (u64, u64)>,
}

impl Chain {
    pub fn new(seed: u64, blocks: u64, transactions: u64) -> Self {
        let (by_hash, transaction_by_hash) = (HashMap::new(), HashMap::new());
        let mut chain = Self { seed, blocks: 0, transactions, by_hash, transaction_by_hash };
        chain.grow_to(blocks);
        chain
    }

    /// Adds blocks until there are so many.
    pub fn grow_to(&mut self, blocks: u64) {
        while self.blocks < blocks.min(BLOCKS_MAX) {
            let height = self.blocks;
            self.by_hash.insert(self.hash("block", height, 0), height);
            for index in 0..self.transactions {
                self.transaction_by_hash.insert(self.hash("tx", height, index), (height, index));
            }
            self.blocks += 1;
        }
    }

    /// The result of a call.
    pub fn answer(&self, method: &str, params: &Value) -> Result<Value, Refused> {
        let text = |index: usize| params[index].as_str().unwrap_or_default();
        let is_full = params[1].as_bool().unwrap_or_default();
        let last = self.blocks - 1;
        match method {
            "web3_clientVersion" => Ok(json!("mock/1")),
            "eth_chainId" => Ok(json!("0x539")),
            "eth_blockNumber" => Ok(json!(hex(last))),
            "eth_gasPrice" => Ok(json!("0x3b9aca00")),
            // More than 64 bits of wei, as many an account has.
            "eth_getBalance"
                if params[1].is_object()
                    && !self
                        .by_hash
                        .contains_key(params[1]["blockHash"].as_str().unwrap_or_default()) =>
            {
                Err((-32000, "header not found".to_owned()))
            }
            "eth_getBalance" => Ok(json!("0x152d02c7e14af6800000")),
            "eth_call" => Ok(json!(format!("0x{:064x}", 1_000_000))),
            "eth_getBlockByNumber" => {
                let height = self.height(text(0))?;
                Ok(if height > last { Value::Null } else { self.block(height, is_full) })
            }
            "eth_getBlockByHash" => {
                let height = self.by_hash.get(text(0));
                Ok(height.map_or(Value::Null, |height| self.block(*height, is_full)))
            }
            "eth_getTransactionByHash" => Ok(self.of_hash(text(0), Self::transaction)),
            "eth_getTransactionReceipt" => Ok(self.of_hash(text(0), Self::receipt)),
            "eth_getTransactionByBlockHashAndIndex" => {
                let (height, index) = (self.by_hash.get(text(0)), number(text(1))?);
                let height = height.filter(|_| index < self.transactions);
                Ok(height.map_or(Value::Null, |height| self.transaction(*height, index)))
            }
            "eth_getTransactionCount" => Ok(json!("0x7")),
            "eth_getCode" => Ok(json!("0x6080")),
            "eth_getStorageAt" => Ok(json!(format!("0x{:064x}", 1))),
            "eth_estimateGas" => Ok(json!("0x5208")),
            "eth_maxPriorityFeePerGas" => Ok(json!("0x1")),
            "eth_feeHistory" => Ok(json!({
                "oldestBlock": hex(last), "baseFeePerGas": ["0x3b9aca00", "0x3b9aca00"],
                "gasUsedRatio": [0.5], "reward": [["0x1", "0x2", "0x3"]],
            })),
            "eth_sendRawTransaction" => {
                Err((-32000, "the played node takes no transactions".to_owned()))
            }
            "eth_getTransactionByBlockNumberAndIndex" => {
                let (height, index) = (self.height(text(0))?, number(text(1))?);
                let is_there = height <= last && index < self.transactions;
                Ok(if is_there { self.transaction(height, index) } else { Value::Null })
            }
            "eth_getLogs" => self.logs(&params[0]),
            other => Err((-32601, format!("the method {other} does not exist"))),
        }
    }

    fn height(&self, text: &str) -> Result<u64, Refused> {
        let last = self.blocks - 1;
        match text {
            "latest" | "pending" => Ok(last),
            "safe" => Ok(last.saturating_sub(SAFE_DEPTH)),
            "finalized" => Ok(last.saturating_sub(FINAL_DEPTH)),
            "earliest" => Ok(0),
            text => number(text),
        }
    }

    fn of_hash(&self, hash: &str, make: fn(&Self, u64, u64) -> Value) -> Value {
        let place = self.transaction_by_hash.get(hash);
        place.map_or(Value::Null, |(height, index)| make(self, *height, *index))
    }

    fn block(&self, height: u64, is_full: bool) -> Value {
        let transactions = (0..self.transactions).map(|index| match is_full {
            true => self.transaction(height, index),
            false => json!(self.hash("tx", height, index)),
        });
        let transactions: Vec<Value> = transactions.collect();
        let parent = match height.checked_sub(1) {
            Some(parent) => self.hash("block", parent, 0),
            None => format!("0x{}", "0".repeat(64)),
        };
        json!({
            "number": hex(height), "hash": self.hash("block", height, 0), "parentHash": parent,
            "timestamp": hex(FIRST_TIME_S + height * BLOCK_TIME_S), "miner": self.account(height),
            "difficulty": "0x7d9cbc2ac5ae1", "totalDifficulty": "0x2f1d5e5a1b2c3d4e5f6",
            "gasLimit": "0x989680", "gasUsed": hex(self.transactions * 51_000),
            "nonce": "0x0000000000000000", "extraData": "0x", "size": "0x220",
            "logsBloom": format!("0x{}", "0".repeat(512)), "sha3Uncles": self.hash("uncles", height, 0),
            "stateRoot": self.hash("state", height, 0), "receiptsRoot": self.hash("receipts", height, 0),
            "transactionsRoot": self.hash("transactions", height, 0), "uncles": [],
            "transactions": transactions,
        })
    }

    fn transaction(&self, height: u64, index: u64) -> Value {
        let number = height * self.transactions + index;
        json!({
            "hash": self.hash("tx", height, index), "blockHash": self.hash("block", height, 0),
            "blockNumber": hex(height), "transactionIndex": hex(index),
            "from": self.account(number), "to": self.token(), "nonce": hex(number / ACCOUNTS),
            "value": "0x0", "gas": "0x186a0", "gasPrice": "0x3b9aca00", "type": "0x0",
            "input": format!("0xa9059cbb{:0>64}{:064x}", &self.account(number + 1)[2..], number + 1),
            "v": "0x25", "r": self.hash("r", height, index), "s": self.hash("s", height, index),
        })
    }

    fn receipt(&self, height: u64, index: u64) -> Value {
        json!({
            "transactionHash": self.hash("tx", height, index), "transactionIndex": hex(index),
            "blockHash": self.hash("block", height, 0), "blockNumber": hex(height),
            "from": self.account(height * self.transactions + index), "to": self.token(),
            "cumulativeGasUsed": hex((index + 1) * 51_000), "gasUsed": hex(51_000), "status": "0x1",
            "contractAddress": null, "logsBloom": format!("0x{}", "0".repeat(512)), "type": "0x0",
            "effectiveGasPrice": "0x3b9aca00", "logs": [self.log(height, index)],
        })
    }

    fn log(&self, height: u64, index: u64) -> Value {
        let number = height * self.transactions + index;
        let topic = |account: String| format!("0x{:0>64}", &account[2..]);
        json!({
            "address": self.token(),
            "topics": [TRANSFER, topic(self.account(number)), topic(self.account(number + 1))],
            "data": format!("0x{:064x}", number + 1), "blockNumber": hex(height),
            "blockHash": self.hash("block", height, 0), "logIndex": hex(index),
            "transactionHash": self.hash("tx", height, index), "transactionIndex": hex(index),
            "removed": false,
        })
    }

    fn logs(&self, filter: &Value) -> Result<Value, Refused> {
        let text = |name: &str| filter[name].as_str().unwrap_or("latest");
        let (from, to) = match filter["blockHash"].as_str() {
            Some(hash) => {
                let height = self.by_hash.get(hash);
                let height = height.ok_or((-32000, "unknown block".to_owned()))?;
                (*height, *height)
            }
            None => (self.height(text("fromBlock"))?, self.height(text("toBlock"))?),
        };
        if to < from {
            return Err((-32602, "invalid block range".to_owned()));
        }
        if filter["topics"][0].as_str().is_some_and(|topic| topic != TRANSFER) {
            return Ok(json!([]));
        }
        let to = to.min(self.blocks - 1);
        let count = (to + 1).saturating_sub(from).saturating_mul(self.transactions);
        if count > LOGS_MAX {
            return Err((-32005, format!("query returned more than {LOGS_MAX} results")));
        }
        let logs = (from..=to)
            .flat_map(|height| (0..self.transactions).map(move |index| self.log(height, index)));
        Ok(Value::Array(logs.collect()))
    }

    fn hash(&self, kind: &str, height: u64, index: u64) -> String {
        let text = format!("{}/{kind}/{height}/{index}", self.seed);
        let mut hash = "0x".to_owned();
        for byte in digest(&SHA256, text.as_bytes()).as_ref() {
            let _ = write!(hash, "{byte:02x}");
        }
        hash
    }

    fn account(&self, number: u64) -> String {
        self.hash("account", number % ACCOUNTS, 0)[..42].to_owned()
    }

    fn token(&self) -> String {
        self.hash("token", 0, 0)[..42].to_owned()
    }
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

fn number(text: &str) -> Result<u64, Refused> {
    let digits = text.strip_prefix("0x").unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| (-32602, format!("invalid argument: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the same seed makes the same chain, what a block lists is found by its hash, and blocks follow each other.
    #[test]
    fn a_chain() {
        let chain = Chain::new(7, 10, 3);
        let ask = |method: &str, params: Value| chain.answer(method, &params).unwrap();
        let block = ask("eth_getBlockByNumber", json!(["latest", true]));
        assert_eq!(block["number"], "0x9");
        assert_eq!(block["parentHash"], ask("eth_getBlockByNumber", json!(["0x8", false]))["hash"]);
        assert_eq!(ask("eth_getBlockByHash", json!([block["hash"], true])), block);
        let transaction = &block["transactions"][2];
        assert_eq!(&ask("eth_getTransactionByHash", json!([transaction["hash"]])), transaction);
        assert_eq!(ask("eth_getBlockByNumber", json!(["0xa", false])), Value::Null);
        assert_eq!(
            ask("eth_getLogs", json!([{"fromBlock": "0x1", "toBlock": "0x3"}]))
                .as_array()
                .unwrap()
                .len(),
            9
        );
        assert_eq!(Chain::new(7, 10, 3).hash("block", 4, 0), chain.hash("block", 4, 0));
        assert_ne!(Chain::new(8, 10, 3).hash("block", 4, 0), chain.hash("block", 4, 0));
    }
}
