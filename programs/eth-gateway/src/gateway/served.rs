//! JSON-RPC as clients speak it: which methods are served, what each asks of the chain, and its reply. What is kept and what is
//! limited is the same as for the REST API.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::{Gateway, Spent};
use crate::answers::{self, Problem};
use crate::json;
use crate::quantity::Quantity;
use crate::query::{At, Logs, Query, State};
use crate::routes::is_hex;
use crate::rpc::{Call, Failure};

/// Calls of a client's batch; a larger one is refused as a whole.
const BATCH_MAX: usize = 100;

/// Error codes of JSON-RPC: no JSON, no call, an unknown method, a failure at the node, and a limit.
const PARSE: i64 = -32700;
const INVALID: i64 = -32600;
const NO_METHOD: i64 = -32601;
const INTERNAL: i64 = -32603;
const LIMITED: i64 = -32005;

/// Said of what a batch has no room for.
const NO_ROOM: &str =
    "the results of this batch are together larger than upstream_bytes_max; ask for less at once";

/// Methods of a node's owner, and those that would sign with a key of the node's, are not passed on.
const SERVED: [&str; 3] = ["eth_", "net_", "web3_"];
const NOT_SERVED: [&str; 9] = [
    "eth_resend",
    "eth_sendTransaction",
    "eth_sign",
    "eth_signTransaction",
    "eth_signTypedData",
    "eth_signTypedData_v3",
    "eth_signTypedData_v4",
    "eth_submitWork",
    "eth_subscribe",
];

/// How many calls a body has; none where it is no JSON. What is limited is limited by it.
#[must_use]
pub fn calls_of(body: &[u8]) -> Option<usize> {
    json::is_valid(body).then(|| match body.trim_ascii_start().first() {
        Some(b'[') => json::elements(body).count(),
        _ => 1,
    })
}

impl Gateway {
    /// Replies to one call or to a batch of them; nothing where only notifications came.
    pub async fn serve_rpc(self: &Arc<Self>, body: &Bytes, spent: &mut Spent) -> Option<Bytes> {
        let Some(count) = calls_of(body) else {
            return Some(Reply::error(null(), PARSE, "the body is no JSON").whole());
        };
        if body.trim_ascii_start().first() != Some(&b'[') {
            return self.reply(body, spent).await.map(|reply| reply.whole());
        }
        if count == 0 || count > BATCH_MAX {
            let words = format!("expected a batch of 1 to {BATCH_MAX} calls, got {count}");
            return Some(Reply::error(null(), INVALID, &words).whole());
        }
        let mut replies = Vec::with_capacity(count);
        let mut room = self.batch_bytes_max;
        let mut tasks = tokio::task::JoinSet::new();
        for (place, call) in json::elements(body).enumerate() {
            let (this, call) = (Arc::clone(self), body.slice_ref(call));
            tasks.spawn(async move {
                let mut spent = Spent::default();
                (place, this.reply(&call, &mut spent).await, spent)
            });
        }
        while let Some(done) = tasks.join_next().await {
            let Ok((place, reply, its)) = done else { continue };
            spent.node = spent.node.max(its.node);
            let Some(mut reply) = reply else { continue };
            match room.checked_sub(reply.value.len()) {
                Some(left) => room = left,
                None if reply.is_result => reply = Reply::error(reply.id, LIMITED, NO_ROOM),
                None => {}
            }
            replies.push((place, reply));
        }
        if replies.is_empty() {
            return None;
        }
        replies.sort_unstable_by_key(|(place, _)| *place);
        let mut out = Vec::with_capacity(replies.iter().map(|(_, it)| it.length() + 1).sum());
        for (index, (_, reply)) in replies.into_iter().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            reply.write(&mut out);
        }
        out.push(b']');
        Some(out.into())
    }

    async fn reply(self: &Arc<Self>, call: &Bytes, spent: &mut Spent) -> Option<Reply> {
        let id = json::member(call, "id").map(|id| call.slice_ref(id));
        let method = json::member(call, "method").and_then(json::plain_string);
        let Some(method) = method else {
            let words = "expected an object with `method`";
            return Some(Reply::error(id.unwrap_or_else(null), INVALID, words));
        };
        // A call without an id is a notification, and no read is asked for that way.
        let id = id?;
        if NOT_SERVED.contains(&method) || !SERVED.iter().any(|it| method.starts_with(it)) {
            return Some(Reply::error(id, NO_METHOD, &format!("`{method}` is not served here")));
        }
        let params = json::member(call, "params").unwrap_or(b"[]");
        let query = query(method, params);
        Some(match self.answer(&query, spent).await {
            Ok(got) => Reply { id, is_result: true, value: got.result },
            Err(problem) => failed(id, &problem),
        })
    }
}

/// The id of a reply to what has none.
fn null() -> Bytes {
    Bytes::from_static(b"null")
}

/// A reply, not yet written: the result is still one with what is kept and with what others are given.
struct Reply {
    id: Bytes,
    /// Else the value is an error.
    is_result: bool,
    value: Bytes,
}

impl Reply {
    fn error(id: Bytes, code: i64, message: &str) -> Self {
        let error = serde_json::json!({ "code": code, "message": message }).to_string();
        Self { id, is_result: false, value: error.into() }
    }

    fn parts(&self) -> [&[u8]; 5] {
        let name: &[u8] = if self.is_result { b",\"result\":" } else { b",\"error\":" };
        [b"{\"jsonrpc\":\"2.0\",\"id\":", &self.id, name, &self.value, b"}"]
    }

    fn length(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.parts().iter().for_each(|part| out.extend_from_slice(part));
    }

    fn whole(&self) -> Bytes {
        self.parts().concat().into()
    }
}

fn failed(id: Bytes, problem: &Problem) -> Reply {
    match problem {
        Problem::Node(Failure::Refused { code, message })
        | Problem::NodeError { code, message } => Reply::error(id, *code, message),
        Problem::Node(Failure::Limited { .. }) => {
            Reply::error(id, LIMITED, &answers::detail(problem))
        }
        other => Reply::error(id, INTERNAL, &answers::detail(other)),
    }
}

/// The question that a call is. What is not understood is passed on as it came.
fn query(method: &str, params: &[u8]) -> Query {
    known(method, params).unwrap_or_else(|| {
        let params = String::from_utf8_lossy(params).into_owned();
        Query::Other(Call::new(method.to_owned(), params))
    })
}

fn known(method: &str, params: &[u8]) -> Option<Query> {
    let params: Vec<Value> = serde_json::from_slice(params).ok()?;
    let text = |place: usize| params.get(place)?.as_str();
    let at = |place: usize| match params.get(place) {
        None | Some(Value::Null) => Some(At::Latest),
        Some(value) => block(value),
    };
    let full = || params.get(1).is_none_or(Value::is_boolean);
    let is_full = || params.get(1).and_then(Value::as_bool).unwrap_or(false);
    let index = |place: usize| Quantity::from_hex(text(place)?)?.to_u64();
    let state = |method: &'static str, before: usize| {
        let is_plain = params.len() <= before + 1 && params.len() >= before;
        let parts: Vec<String> = params.iter().take(before).map(Value::to_string).collect();
        let at = at(before).filter(|_| is_plain)?;
        Some(Query::State { what: State { method, before: parts.join(",") }, at })
    };
    match method {
        "eth_blockNumber" => Some(Query::Height),
        "eth_chainId" => Some(Query::ChainId),
        "eth_gasPrice" => Some(Query::GasPrice),
        "eth_getBlockByNumber" if full() && params.len() <= 2 => {
            let at = params.first().and_then(block).filter(|at| !matches!(at, At::Hash(_)))?;
            Some(Query::Block { at, full: is_full() })
        }
        "eth_getBlockByHash" if full() => {
            Some(Query::Block { at: At::Hash(hash(text(0)?)?), full: is_full() })
        }
        "eth_getTransactionByHash" => Some(Query::Transaction(hash(text(0)?)?)),
        "eth_getTransactionReceipt" => Some(Query::Receipt(hash(text(0)?)?)),
        "eth_getTransactionByBlockHashAndIndex" => {
            Some(Query::TransactionInBlock { at: At::Hash(hash(text(0)?)?), index: index(1)? })
        }
        "eth_getTransactionByBlockNumberAndIndex" => {
            let at = params.first().and_then(block).filter(|at| !matches!(at, At::Hash(_)))?;
            Some(Query::TransactionInBlock { at, index: index(1)? })
        }
        "eth_getBalance" => state("eth_getBalance", 1),
        "eth_getTransactionCount" => state("eth_getTransactionCount", 1),
        "eth_getCode" => state("eth_getCode", 1),
        "eth_getStorageAt" => state("eth_getStorageAt", 2),
        "eth_call" => state("eth_call", 1),
        "eth_getLogs" if params.len() == 1 => logs(params[0].as_object()?).map(Query::Logs),
        _ => None,
    }
}

fn logs(filter: &serde_json::Map<String, Value>) -> Option<Logs> {
    let range = |name: &str| match filter.get(name) {
        None | Some(Value::Null) => Some(At::Latest),
        Some(value) => block(value).filter(|at| !matches!(at, At::Hash(_))),
    };
    let rest = filter
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "fromBlock" | "toBlock" | "blockHash"));
    let rest: String =
        rest.map(|(name, value)| format!(",{}:{value}", Value::from(name.as_str()))).collect();
    match filter.get("blockHash") {
        Some(by_hash) if !filter.contains_key("fromBlock") && !filter.contains_key("toBlock") => {
            let at = At::Hash(hash(by_hash.as_str()?)?);
            Some(Logs { filter: rest, from: at, to: At::Latest })
        }
        Some(_) => None,
        None => Some(Logs { filter: rest, from: range("fromBlock")?, to: range("toBlock")? }),
    }
}

/// A block as JSON-RPC names it: a word, a height, or an object with either.
fn block(value: &Value) -> Option<At> {
    match value {
        Value::String(word) => At::of_word(word)
            .filter(|_| word != "last")
            .or_else(|| Some(At::Height(Quantity::from_hex(word)?.to_u64()?))),
        Value::Object(named) if named.len() == 1 => match named.iter().next()? {
            (name, Value::String(text)) if name == "blockHash" => Some(At::Hash(hash(text)?)),
            (name, number @ Value::String(_)) if name == "blockNumber" => block(number),
            _ => None,
        },
        _ => None,
    }
}

fn hash(text: &str) -> Option<String> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 64 && is_hex(digits))?;
    Some(format!("0x{}", digits.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use clock::Clock;

    use super::*;
    use crate::metrics::Metrics;
    use crate::options::Options;
    use crate::upstream::{Asked, Node};

    /// A node all of whose results are as large as this.
    struct Large(usize);

    impl Node for Large {
        fn ask(&self, _: Call) -> Asked<'_> {
            let result = format!("\"{}\"", "x".repeat(self.0 - 2));
            Box::pin(async move { Ok(Bytes::from(result)) })
        }
    }

    /// Claim: of a batch of a hundred equal calls for one large result as many are given it as have room together, and the
    /// others are told so, each by its id; a single call has it always.
    #[tokio::test]
    async fn a_large_result_a_hundred_times() {
        const LARGE: usize = 1 << 20;
        let mut options = Options::read(&[]).unwrap();
        options.upstream_bytes_max = 3 * LARGE + LARGE / 2;
        let node = Arc::new(Large(LARGE));
        let gateway = Gateway::before(node, &options, Clock::start(), Arc::new(Metrics::default()));
        let hash = format!("0x{}", "ab".repeat(32));
        let call = |id: usize| {
            serde_json::json!({
                "jsonrpc": "2.0", "id": id, "method": "eth_getLogs", "params": [{ "blockHash": hash }],
            })
        };
        let batch = Value::from_iter((0..100).map(call)).to_string();
        let spent = &mut Spent::default();
        let reply = gateway.serve_rpc(&batch.into(), spent).await.unwrap();
        assert!(reply.len() < 4 * LARGE, "{} bytes", reply.len());
        let replies: Vec<Value> = serde_json::from_slice(&reply).unwrap();
        assert!(
            replies.iter().map(|reply| &reply["id"]).eq(&Vec::from_iter((0..100).map(Value::from)))
        );
        let given = replies.iter().filter(|reply| reply["result"].is_string()).count();
        let refused = replies.iter().filter(|reply| reply["error"]["code"] == LIMITED).count();
        assert_eq!((given, refused), (3, 97));
        let alone = gateway.serve_rpc(&call(1).to_string().into(), spent).await.unwrap();
        assert!(alone.len() > LARGE && alone.ends_with(b"x\"}"));
    }

    /// Claim: calls whose answers may be kept are understood, whatever notation names the block; all others, and those with
    /// anything more than that, go to the node byte for byte.
    #[test]
    fn questions() {
        let address = format!("0x{:040x}", 7);
        let of = |method: &str, params: &str| query(method, params.as_bytes());
        let balance = |at| Query::State { what: State::balance(&address), at };
        for (params, at) in [
            (format!("[\"{address}\"]"), At::Latest),
            (format!("[\"{address}\",\"safe\"]"), At::Safe),
            (format!("[\"{address}\", \"0x10\"]"), At::Height(16)),
            (format!("[\"{address}\",{{\"blockNumber\":\"0x10\"}}]"), At::Height(16)),
            (
                format!("[\"{address}\",{{\"blockHash\":\"0x{}\"}}]", "AB".repeat(32)),
                At::Hash(format!("0x{}", "ab".repeat(32))),
            ),
        ] {
            assert_eq!(of("eth_getBalance", &params), balance(at), "{params}");
        }
        for params in [
            format!("[\"{address}\",\"last\"]"),
            format!("[\"{address}\",\"latest\",{{}}]"),
            format!("[\"{address}\",{{\"blockHash\":\"0x1\",\"requireCanonical\":true}}]"),
            "{}".to_owned(),
        ] {
            let other = Query::Other(Call::new("eth_getBalance", params.clone()));
            assert_eq!(of("eth_getBalance", &params), other);
        }
        let logs = of("eth_getLogs", r#"[{"fromBlock":"0x1","toBlock":"0x2","topics":[null]}]"#);
        let Query::Logs(logs) = logs else { panic!("{logs:?}") };
        assert_eq!(logs.call().params, r#"[{"fromBlock":"0x1","toBlock":"0x2","topics":[null]}]"#);
    }
}
