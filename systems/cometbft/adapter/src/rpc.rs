//! Questions to a node beside the load: how high it is, what is in a block, would a transaction be taken. JSON-RPC
//! over the questioner; never used while transactions are timed.

use std::net::SocketAddr;
use std::time::Duration;

use clock::{Clock, WallTime};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sut::ask::Questioner;
use wire::http1::{Asked, Limits, write_request};

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest wait for a block: the largest has 28 MiB, and the node may be busy.
const BLOCK_PATIENCE: Duration = Duration::from_secs(60);

/// The longest answer: a block of 21 MiB is 28 MiB in base64.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// No chain is as high: of a thousand blocks a second it takes 17 years. Up to here, heights can be reckoned with.
const HEIGHT_MAX: u64 = 1 << 39;

const LIMITS: Limits = Limits::keeping(ANSWER_BYTES_MAX);

/// A node, asked by JSON-RPC.
pub(crate) struct Rpc {
    questioner: Questioner,
}

/// What of `/status` is used.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Status {
    pub(crate) node_info: NodeInfo,
    sync_info: SyncInfo,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeInfo {
    pub(crate) network: String,
    pub(crate) version: String,
}

#[derive(Clone, Debug, Deserialize)]
struct SyncInfo {
    latest_block_height: String,
    catching_up: bool,
}

/// What of a block is used.
pub(crate) struct Written {
    /// Of its header: when the votes for the block before it were cast, by their median.
    pub(crate) time: WallTime,
    /// Transactions, in base64.
    pub(crate) txs: Vec<String>,
}

#[derive(Deserialize)]
struct Answer<T> {
    result: Option<T>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Code {
    code: u32,
}

#[derive(Deserialize)]
struct NetInfo {
    n_peers: String,
}

#[derive(Deserialize)]
struct Unconfirmed {
    total: String,
}

#[derive(Deserialize)]
struct BlockAnswer {
    block: Block,
}

#[derive(Deserialize)]
struct Block {
    header: Header,
    data: BlockData,
}

#[derive(Deserialize)]
struct Header {
    time: String,
}

#[derive(Deserialize)]
struct BlockData {
    txs: Option<Vec<String>>,
}

impl Rpc {
    /// Nothing is opened before something is asked.
    pub(crate) fn new(address: SocketAddr, clock: Clock) -> Self {
        Self { questioner: Questioner::new(address, None, LIMITS, clock) }
    }

    /// The node's network, version and height.
    pub(crate) fn status(&mut self) -> Result<Status, String> {
        self.ask("status", json!({}))
    }

    /// Its latest height.
    pub(crate) fn height(&mut self) -> Result<u64, String> {
        self.status()?.height()
    }

    /// How many nodes it is connected to.
    pub(crate) fn peers(&mut self) -> Result<u64, String> {
        let answer: NetInfo = self.ask("net_info", json!({}))?;
        number(&answer.n_peers)
    }

    /// Transactions in its mempool.
    pub(crate) fn unconfirmed(&mut self) -> Result<u64, String> {
        let answer: Unconfirmed = self.ask("num_unconfirmed_txs", json!({}))?;
        number(&answer.total)
    }

    /// The code with which its application would check a transaction; nothing is submitted.
    pub(crate) fn check(&mut self, base64: &str) -> Result<u32, String> {
        let answer: Code = self.ask("check_tx", json!({ "tx": base64 }))?;
        Ok(answer.code)
    }

    /// A block.
    pub(crate) fn block(&mut self, height: u64) -> Result<Written, String> {
        let which = json!({ "height": height.to_string() });
        let answer: BlockAnswer = self.ask_within(BLOCK_PATIENCE, "block", which)?;
        let Block { header, data } = answer.block;
        let time = WallTime::parse_rfc3339(&header.time).ok_or_else(|| {
            format!("block {height} has the time `{}`, which is none", header.time)
        })?;
        Ok(Written { time, txs: data.txs.unwrap_or_default() })
    }

    fn ask<T: DeserializeOwned>(&mut self, method: &str, params: Value) -> Result<T, String> {
        self.ask_within(PATIENCE, method, params)
    }

    fn ask_within<T: DeserializeOwned>(
        &mut self,
        wait: Duration,
        method: &str,
        params: Value,
    ) -> Result<T, String> {
        let address = self.questioner.address();
        let failed =
            |why: &dyn std::fmt::Display| format!("asking {address} for `{method}`: {why}");
        let question = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = Vec::new();
        let host = address.to_string();
        let headers: [(&str, &[u8]); 2] =
            [("Host", host.as_bytes()), ("Content-Type", b"application/json")];
        write_request(&mut request, "POST", "/", &headers, question.to_string().as_bytes());
        // The status says nothing that the body does not: errors come as 500 with a body of JSON.
        let answer = self.questioner.ask(&request, Asked::Other, wait);
        let body = answer.map_err(|error| failed(&error))?.body;
        let answer: Answer<T> = serde_json::from_slice(body).map_err(|error| failed(&error))?;
        match (answer.result, answer.error) {
            (Some(result), None) => Ok(result),
            (_, Some(error)) => Err(failed(&error)),
            (None, None) => Err(failed(&"the answer has no result")),
        }
    }
}

impl Status {
    /// Whether it fetches blocks that the others have already.
    pub(crate) const fn is_catching_up(&self) -> bool {
        self.sync_info.catching_up
    }

    pub(crate) fn height(&self) -> Result<u64, String> {
        let height = number(&self.sync_info.latest_block_height)?;
        match height {
            ..=HEIGHT_MAX => Ok(height),
            _ => Err(format!("expected a height of at most {HEIGHT_MAX}, got {height}")),
        }
    }
}

/// CometBFT writes 64-bit numbers as text.
fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

/// For fuzzing: bytes as the answer to each question.
pub(crate) fn fuzz_answers(bytes: &[u8]) {
    let _ = serde_json::from_slice::<Answer<Status>>(bytes)
        .map(|answer| answer.result.map(|status| status.height()));
    let _ = serde_json::from_slice::<Answer<NetInfo>>(bytes);
    let _ = serde_json::from_slice::<Answer<Unconfirmed>>(bytes);
    let _ = serde_json::from_slice::<Answer<Code>>(bytes);
    let _ = serde_json::from_slice::<Answer<BlockAnswer>>(bytes)
        .map(|answer| answer.result.map(|it| WallTime::parse_rfc3339(&it.block.header.time)));
}
