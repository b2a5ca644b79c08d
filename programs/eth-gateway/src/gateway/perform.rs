//! Each operation: which calls it takes, and what is made of their results.

use std::sync::Arc;

use bytes::Bytes;

use super::{Gateway, Got, Lasting, Spent, quantity};
use crate::answers::{Keep, Problem};
use crate::quantity::Quantity;
use crate::routes::{Operation, ROUTES};
use crate::rpc::{Call, Failure};

/// How numbers are written: as it was published they are JSON numbers, which many readers round beyond 53 bits; under
/// `/v1` they are strings of decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Under `/`.
    Published,
    /// Under `/v1`.
    Version1,
}

/// A body, and how long a client may keep it.
type Body = (Bytes, Keep);

impl Gateway {
    /// Does what is asked for.
    pub async fn perform(
        self: &Arc<Self>,
        operation: &Operation,
        form: Form,
        spent: &mut Spent,
    ) -> Result<Body, Problem> {
        let done = self.result_of(operation, form, spent).await;
        done.map_err(|problem| match problem {
            Problem::Node(Failure::Refused { code, message })
                if !is_about_request(operation, code) =>
            {
                Problem::NodeError { code, message }
            }
            problem => problem,
        })
    }

    async fn result_of(
        self: &Arc<Self>,
        operation: &Operation,
        form: Form,
        spent: &mut Spent,
    ) -> Result<Body, Problem> {
        match operation {
            Operation::Status => Ok((Bytes::from_static(b"{\"ok\":true}"), Keep::No)),
            Operation::Describe => Ok((describe(), Keep::No)),
            Operation::Transaction(hash) => {
                let call = Call::new("eth_getTransactionByHash", format!("[\"{hash}\"]"));
                present(self.get(call, Lasting::ItsBlock, spent).await?, "transaction")
            }
            Operation::Receipt(hash) => {
                let call = Call::new("eth_getTransactionReceipt", format!("[\"{hash}\"]"));
                present(self.get(call, Lasting::ItsBlock, spent).await?, "receipt")
            }
            Operation::LastBlock { full } => {
                let height = self.height(spent).await?;
                present(self.block_at(height, *full, Lasting::Last, spent).await?, "block")
            }
            Operation::LastHeight => {
                let height = Quantity::from(self.height(spent).await?);
                Ok((number("lastBlockHeight", height, form), Keep::No))
            }
            Operation::BlockByHash { hash, full } => {
                let call = Call::new("eth_getBlockByHash", format!("[\"{hash}\",{full}]"));
                present(self.get(call, Lasting::ForGood, spent).await?, "block")
            }
            Operation::BlockByHeight { height, full } => {
                let lasting = Lasting::Block(*height);
                present(self.block_at(*height, *full, lasting, spent).await?, "block")
            }
            Operation::TransactionInBlock { height, index } => {
                let call = Call::new(
                    "eth_getTransactionByBlockNumberAndIndex",
                    format!("[\"0x{height:x}\",\"0x{index:x}\"]"),
                );
                present(self.get(call, Lasting::Block(*height), spent).await?, "transaction")
            }
            Operation::GasPrice => {
                Ok((number("gasPrice", self.gas_price(spent).await?, form), Keep::No))
            }
            Operation::Balance(address) => {
                let call = Call::new("eth_getBalance", format!("[\"{address}\",\"latest\"]"));
                let got = self.get(call, Lasting::Last, spent).await?;
                let wei = quantity(&got.result).ok_or(Problem::Shape("eth_getBalance"))?;
                Ok((number("balance", wei, form), Keep::No))
            }
            Operation::Logs { from, to, topic } => {
                let call = Call::new(
                    "eth_getLogs",
                    format!(
                        "[{{\"fromBlock\":\"0x{from:x}\",\"toBlock\":\"0x{to:x}\",\"topics\":[\"{topic}\"]}}]"
                    ),
                );
                let got = self.get(call, Lasting::Block(*to), spent).await?;
                present_or(got, || Problem::Shape("eth_getLogs"))
            }
            Operation::Call { .. } => self.call_contract(operation, spent).await,
        }
    }

    /// The chain's number, in decimal digits.
    pub async fn chain_id(self: &Arc<Self>, spent: &mut Spent) -> Result<String, Problem> {
        let call = Call::new("eth_chainId", "[]".to_owned());
        let got = self.get(call, Lasting::ForGood, spent).await?;
        let id = quantity(&got.result).ok_or(Problem::Shape("eth_chainId"))?;
        Ok(id.to_decimal())
    }

    async fn block_at(
        self: &Arc<Self>,
        height: u64,
        full: bool,
        lasting: Lasting,
        spent: &mut Spent,
    ) -> Result<Got, Problem> {
        let call = Call::new("eth_getBlockByNumber", format!("[\"0x{height:x}\",{full}]"));
        self.get(call, lasting, spent).await
    }

    async fn gas_price(self: &Arc<Self>, spent: &mut Spent) -> Result<Quantity, Problem> {
        let call = Call::new("eth_gasPrice", "[]".to_owned());
        let got = self.get(call, Lasting::Last, spent).await?;
        quantity(&got.result).ok_or(Problem::Shape("eth_gasPrice"))
    }

    async fn call_contract(
        self: &Arc<Self>,
        operation: &Operation,
        spent: &mut Spent,
    ) -> Result<Body, Problem> {
        let Operation::Call { from, to, gas, value, data } = operation else {
            return Err(Problem::Shape("eth_call"));
        };
        let price = self.gas_price(spent).await?.to_hex();
        let (gas, value) = (gas.to_hex(), value.to_hex());
        let call = Call::new(
            "eth_call",
            format!(
                "[{{\"from\":\"{from}\",\"to\":\"{to}\",\"gas\":\"{gas}\",\"gasPrice\":\"{price}\",\"value\":\"{value}\",\"data\":\"{data}\"}},\"latest\"]"
            ),
        );
        present_or(self.get(call, Lasting::Last, spent).await?, || Problem::Shape("eth_call"))
    }
}

/// The result as it came, or that there is none.
fn present(got: Got, what: &'static str) -> Result<Body, Problem> {
    present_or(got, || Problem::Absent(what))
}

fn present_or(got: Got, none: impl FnOnce() -> Problem) -> Result<Body, Problem> {
    if *got.result == *b"null" {
        return Err(none());
    }
    Ok((got.result, if got.is_final { Keep::Immutable } else { Keep::No }))
}

fn number(name: &str, value: Quantity, form: Form) -> Bytes {
    let digits = value.to_decimal();
    let quote = if form == Form::Version1 { "\"" } else { "" };
    format!("{{\"{name}\":{quote}{digits}{quote}}}").into()
}

fn describe() -> Bytes {
    let routes = ROUTES.iter().filter(|route| !route.template.is_empty());
    let routes = routes.map(|route| {
        serde_json::json!({
            "name": route.name,
            "path": route.template,
            "methods": [if route.is_posted { "POST" } else { "GET" }],
            "summary": route.summary,
        })
    });
    serde_json::Value::Array(routes.collect()).to_string().into()
}

/// Whether an error of the node's is about what was asked, or the node's own failure: where a client chooses what is to be
/// searched or executed the node may well refuse it, and elsewhere it may not.
fn is_about_request(operation: &Operation, code: i64) -> bool {
    let is_chosen = matches!(operation, Operation::Call { .. } | Operation::Logs { .. });
    is_chosen && !matches!(code, -32700 | -32603 | -32601 | -32600)
}
