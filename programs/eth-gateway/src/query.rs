//! Questions to the chain: the same for a path of the REST API, a gRPC method and a JSON-RPC call, so that all three share
//! what is kept.

use std::fmt::{self, Write as _};

use crate::quantity::Quantity;
use crate::rpc::Call;

/// A block, as a client names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The last one.
    Latest,
    /// The last one that is safe, as the node says.
    Safe,
    /// The last one that is final, as the node says.
    Finalized,
    /// The block that the node would make next.
    Pending,
    /// The one at a height.
    Height(u64),
    /// The one with a hash: `0x` and 64 digits.
    Hash(String),
}

impl At {
    /// Reads a word that names a block, as JSON-RPC and the REST API have them.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "latest" | "last" => Self::Latest,
            "safe" => Self::Safe,
            "finalized" => Self::Finalized,
            "pending" => Self::Pending,
            "earliest" => Self::Height(0),
            _ => return None,
        })
    }
}

/// As a parameter of JSON-RPC, quoted.
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("\"latest\""),
            Self::Safe => f.write_str("\"safe\""),
            Self::Finalized => f.write_str("\"finalized\""),
            Self::Pending => f.write_str("\"pending\""),
            Self::Height(height) => write!(f, "\"0x{height:x}\""),
            Self::Hash(hash) => write!(f, "{{\"blockHash\":\"{hash}\"}}"),
        }
    }
}

/// Something about accounts or contracts, which is so at a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The method.
    pub method: &'static str,
    /// Its parameters before the block, with commas between them.
    pub before: String,
}

impl State {
    /// The balance of an account.
    #[must_use]
    pub fn balance(address: &str) -> Self {
        Self { method: "eth_getBalance", before: format!("\"{address}\"") }
    }

    /// How many transactions an account has sent.
    #[must_use]
    pub fn nonce(address: &str) -> Self {
        Self { method: "eth_getTransactionCount", before: format!("\"{address}\"") }
    }

    /// The call of it at a block.
    #[must_use]
    pub fn call(&self, at: &At) -> Call {
        Call::new(self.method, format!("[{},{at}]", self.before))
    }
}

/// Logs that are searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// Members of the filter beside the blocks, each with a comma before it.
    pub filter: String,
    /// The first block.
    pub from: At,
    /// The last block.
    pub to: At,
}

impl Logs {
    /// The search in these blocks.
    #[must_use]
    pub fn call(&self) -> Call {
        let filter = match (&self.from, &self.to) {
            (At::Hash(hash), _) => format!("\"blockHash\":\"{hash}\"{}", self.filter),
            (from, to) => format!("\"fromBlock\":{from},\"toBlock\":{to}{}", self.filter),
        };
        Call::new("eth_getLogs", format!("[{{{filter}}}]"))
    }
}

/// A question to the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The last height.
    Height,
    /// A block, with whole transactions or with their hashes.
    Block {
        /// Which.
        at: At,
        /// With whole transactions.
        full: bool,
    },
    /// A transaction by its hash.
    Transaction(String),
    /// The receipt of a transaction.
    Receipt(String),
    /// A transaction by its place in a block.
    TransactionInBlock {
        /// The block.
        at: At,
        /// Its place, from 0.
        index: u64,
    },
    /// The price of gas.
    GasPrice,
    /// The chain's number.
    ChainId,
    /// Something that is so at a block.
    State {
        /// What.
        what: State,
        /// The block.
        at: At,
    },
    /// A search.
    Logs(Logs),
    /// Anything else: it is passed on, and nothing of it is kept.
    Other(Call),
}

/// A text of parameters, in one piece of memory.
fn text(parameters: fmt::Arguments<'_>) -> String {
    let mut text = String::with_capacity(80);
    let _ = text.write_fmt(parameters);
    text
}

impl Query {
    /// A block by its height or a word.
    #[must_use]
    pub fn block_call(at: &At, full: bool) -> Call {
        match at {
            At::Hash(hash) => {
                Call::new("eth_getBlockByHash", text(format_args!("[\"{hash}\",{full}]")))
            }
            at => Call::new("eth_getBlockByNumber", text(format_args!("[{at},{full}]"))),
        }
    }

    /// A transaction by its place.
    #[must_use]
    pub fn place_call(at: &At, index: u64) -> Call {
        match at {
            At::Hash(hash) => Call::new(
                "eth_getTransactionByBlockHashAndIndex",
                format!("[\"{hash}\",\"0x{index:x}\"]"),
            ),
            at => Call::new(
                "eth_getTransactionByBlockNumberAndIndex",
                format!("[{at},\"0x{index:x}\"]"),
            ),
        }
    }

    /// Data at the word of a height as a result.
    #[must_use]
    pub fn height_result(height: u64) -> String {
        format!("\"{}\"", Quantity::from(height).to_hex())
    }
}
