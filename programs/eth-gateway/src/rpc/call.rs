//! Calls of the node, and how they fail.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;

/// Methods that a node answers by looking something up.
const QUICK: [&str; 18] = [
    "eth_blockNumber",
    "eth_chainId",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_maxPriorityFeePerGas",
    "eth_sendRawTransaction",
    "eth_syncing",
    "net_version",
    "web3_clientVersion",
];

/// One JSON-RPC call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The method.
    pub method: Cow<'static, str>,
    /// Its parameters: a JSON array.
    pub params: String,
}

impl Call {
    /// A call of `method`.
    #[must_use]
    pub fn new(method: impl Into<Cow<'static, str>>, params: String) -> Self {
        Self { method: method.into(), params }
    }

    /// Whether a node may take long for it, because it searches or executes what a client chose. Such a call never shares a
    /// post with others, which would wait for it.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        !QUICK.contains(&self.method.as_ref())
    }

    /// True if it changes the node: asked for the second time, a node refuses what it has taken the first time.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.method.starts_with("eth_send")
    }

    /// True if it may share a post with others. A call that changes the node never does: a post whose answer is too large is sent
    /// again in halves.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !self.is_slow() && !self.is_change()
    }

    /// Its name in the cache.
    #[must_use]
    pub fn key(&self) -> String {
        let mut key = String::with_capacity(self.method.len() + self.params.len());
        key.push_str(&self.method);
        key.push_str(&self.params);
        key
    }

    /// The call as JSON-RPC 2.0.
    pub fn write(&self, id: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(id.to_string().as_bytes());
        out.extend_from_slice(b",\"method\":\"");
        out.extend_from_slice(self.method.as_bytes());
        out.extend_from_slice(b"\",\"params\":");
        out.extend_from_slice(self.params.as_bytes());
        out.push(b'}');
    }
}

/// A result as the node wrote it, or what went wrong.
pub type Answer = Result<Bytes, Failure>;

/// Why there is no result. Each has its status; none of them is "absent", which is a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The node's limiter refused, or would.
    Limited {
        /// When it may be asked again.
        retry_after: Duration,
        /// Whether the gateway kept the call back by what it had learnt.
        early: bool,
    },
    /// No connection, or one that ended before the answer did.
    Unreachable(String),
    /// What came is no answer.
    Garbage(String),
    /// The answer is larger than allowed.
    TooLarge,
    /// There was no answer in time.
    Late,
    /// The node says that this call is wrong.
    Refused {
        /// Its code.
        code: i64,
        /// Its words.
        message: String,
    },
    /// The gateway itself has too much to do.
    Busy,
    /// The node is of another chain than the one that was there first.
    OtherChain(String),
}

impl Failure {
    /// Whether another node might answer what this one did not.
    #[must_use]
    pub fn is_of_node(&self) -> bool {
        !matches!(self, Self::Refused { .. } | Self::TooLarge | Self::Busy)
    }

    /// True if the node may have done what was sent to it, though it has not said so.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Late | Self::Unreachable(_) | Self::Garbage(_))
    }

    /// A word for metrics.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Limited { early: false, .. } => "limited",
            Self::Limited { early: true, .. } => "kept_back",
            Self::Unreachable(_) => "unreachable",
            Self::Garbage(_) => "garbage",
            Self::TooLarge => "too_large",
            Self::Late => "late",
            Self::Refused { .. } => "refused",
            Self::Busy => "busy",
            Self::OtherChain(_) => "other_chain",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: every method that sends a transaction changes the node and shares no post with others.
    #[test]
    fn changes() {
        for method in [
            "eth_sendRawTransaction",
            "eth_sendRawTransactionSync",
            "eth_sendRawTransactionConditional",
        ] {
            let call = Call::new(method, "[]".to_owned());
            assert!(call.is_change() && !call.is_shared(), "{method}");
        }
        let call = Call::new("eth_getBalance", "[]".to_owned());
        assert!(!call.is_change() && call.is_shared());
    }
}
