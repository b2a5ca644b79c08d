//! Each operation of the REST API: which questions it takes, and what is made of their answers.

use std::sync::Arc;

use bytes::Bytes;

use super::{Gateway, Got, Spent, quantity};
use crate::answers::{Keep, Problem};
use crate::quantity::Quantity;
use crate::query::{At, Logs, Query, State};
use crate::routes::{Operation, ROUTES, Search};
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
        let block = |at: At, full: bool| Query::Block { at, full };
        match operation {
            Operation::Status => Ok((Bytes::from_static(b"{\"ok\":true}"), Keep::No)),
            Operation::Describe => Ok((describe(), Keep::No)),
            Operation::Transaction(hash) => {
                let query = Query::Transaction(hash.clone());
                present(self.answer(&query, spent).await?, "transaction")
            }
            Operation::Receipt(hash) => {
                let query = Query::Receipt(hash.clone());
                present(self.answer(&query, spent).await?, "receipt")
            }
            Operation::LastBlock { full } => {
                let query = match self.follower {
                    Some(_) => block(At::Latest, *full),
                    // Two calls, as it was published.
                    None => block(At::Height(self.height(spent).await?), *full),
                };
                present(self.answer(&query, spent).await?, "block")
            }
            Operation::LastHeight => {
                let height = Quantity::from(self.height(spent).await?);
                Ok((number("lastBlockHeight", height, form), Keep::No))
            }
            Operation::BlockByHash { hash, full } => {
                present(self.answer(&block(At::Hash(hash.clone()), *full), spent).await?, "block")
            }
            Operation::BlockByHeight { height, full } => {
                present(self.answer(&block(At::Height(*height), *full), spent).await?, "block")
            }
            Operation::BlockAt { at, full } => {
                present(self.answer(&block(at.clone(), *full), spent).await?, "block")
            }
            Operation::TransactionInBlock { height, index } => {
                let query = Query::TransactionInBlock { at: At::Height(*height), index: *index };
                present(self.answer(&query, spent).await?, "transaction")
            }
            Operation::GasPrice => {
                let got = self.answer(&Query::GasPrice, spent).await?;
                numeric("gasPrice", "eth_gasPrice", &got, form)
            }
            Operation::ChainId => {
                let got = self.answer(&Query::ChainId, spent).await?;
                let (body, _) = numeric("chainId", "eth_chainId", &got, form)?;
                Ok((body, Keep::No))
            }
            Operation::Balance { address, at } => {
                let got = self.state_of(State::balance(address), at, spent).await?;
                numeric("balance", "eth_getBalance", &got, form)
            }
            Operation::Nonce { address, at } => {
                let got = self.state_of(State::nonce(address), at, spent).await?;
                numeric("nonce", "eth_getTransactionCount", &got, form)
            }
            Operation::Code { address, at } => {
                let what = State { method: "eth_getCode", before: format!("\"{address}\"") };
                wrapped("code", "eth_getCode", &self.state_of(what, at, spent).await?)
            }
            Operation::Storage { address, slot, at } => {
                let before = format!("\"{address}\",\"{}\"", slot.to_hex());
                let what = State { method: "eth_getStorageAt", before };
                wrapped("value", "eth_getStorageAt", &self.state_of(what, at, spent).await?)
            }
            Operation::FeeHistory { count } => {
                let params = format!("[\"0x{count:x}\",\"latest\",[10,50,90]]");
                let call = Call::new("eth_feeHistory", params);
                let got = self.answer(&Query::Other(call), spent).await?;
                present_or(got, || Problem::Shape("eth_feeHistory"))
            }
            Operation::Logs { from, to, topic } => {
                let (from, to) = (At::Height(*from), At::Height(*to));
                let logs = Logs { filter: format!(",\"topics\":[\"{topic}\"]"), from, to };
                let got = self.answer(&Query::Logs(logs), spent).await?;
                present_or(got, || Problem::Shape("eth_getLogs"))
            }
            Operation::Search(search) => {
                let got = self.answer(&Query::Logs(of_search(search)), spent).await?;
                present_or(got, || Problem::Shape("eth_getLogs"))
            }
            Operation::Estimate { from, to, value, data } => {
                let value = value.to_hex();
                let params = format!(
                    "[{{\"from\":\"{from}\",\"to\":\"{to}\",\"value\":\"{value}\",\"data\":\"{data}\"}}]"
                );
                let call = Call::new("eth_estimateGas", params);
                let got = self.answer(&Query::Other(call), spent).await?;
                numeric("gas", "eth_estimateGas", &got, form)
            }
            Operation::Fate(hash) => {
                let fate = Box::pin(self.fate(hash, form, spent)).await?;
                Ok((fate, Keep::No))
            }
            Operation::Ready => {
                let call = Call::new("eth_blockNumber", "[]".to_owned());
                let got = self.answer(&Query::Other(call), spent).await?;
                let height = quantity(&got.result).ok_or(Problem::Shape("eth_blockNumber"))?;
                Ok((number("lastBlockHeight", height, form), Keep::No))
            }
            Operation::Call { .. } => Box::pin(self.call_contract(operation, spent)).await,
        }
    }

    async fn state_of(
        self: &Arc<Self>,
        what: State,
        at: &At,
        spent: &mut Spent,
    ) -> Result<Got, Problem> {
        self.answer(&Query::State { what, at: at.clone() }, spent).await
    }

    pub(super) async fn height(self: &Arc<Self>, spent: &mut Spent) -> Result<u64, Problem> {
        let got = self.answer(&Query::Height, spent).await?;
        let height = quantity(&got.result).and_then(Quantity::to_u64);
        height.ok_or(Problem::Shape("eth_blockNumber"))
    }

    /// The chain's number, in decimal digits.
    pub async fn chain_id(self: &Arc<Self>, spent: &mut Spent) -> Result<String, Problem> {
        let got = self.answer(&Query::ChainId, spent).await?;
        let id = quantity(&got.result).ok_or(Problem::Shape("eth_chainId"))?;
        Ok(id.to_decimal())
    }

    async fn call_contract(
        self: &Arc<Self>,
        operation: &Operation,
        spent: &mut Spent,
    ) -> Result<Body, Problem> {
        let Operation::Call { from, to, gas, value, data, at } = operation else {
            return Err(Problem::Shape("eth_call"));
        };
        let price = self.answer(&Query::GasPrice, spent).await?;
        let price = quantity(&price.result).ok_or(Problem::Shape("eth_gasPrice"))?.to_hex();
        let (gas, value) = (gas.to_hex(), value.to_hex());
        let before = format!(
            "{{\"from\":\"{from}\",\"to\":\"{to}\",\"gas\":\"{gas}\",\"gasPrice\":\"{price}\",\"value\":\"{value}\",\"data\":\"{data}\"}}"
        );
        let what = State { method: "eth_call", before };
        let got = self.state_of(what, at, spent).await?;
        present_or(got, || Problem::Shape("eth_call"))
    }
}

fn of_search(search: &Search) -> Logs {
    let mut filter = String::new();
    if let Some(address) = &search.address {
        filter.push_str(&format!(",\"address\":\"{address}\""));
    }
    let count = search.topics.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let topics: Vec<String> = search.topics[..count]
        .iter()
        .map(|topic| topic.as_ref().map_or("null".to_owned(), |topic| format!("\"{topic}\"")))
        .collect();
    filter.push_str(&format!(",\"topics\":[{}]", topics.join(",")));
    Logs { filter, from: search.from.clone(), to: search.to.clone() }
}

/// The result as it came, or that there is none.
fn present(got: Got, what: &'static str) -> Result<Body, Problem> {
    present_or(got, || Problem::Absent(what))
}

fn present_or(got: Got, none: impl FnOnce() -> Problem) -> Result<Body, Problem> {
    if got.is_null() {
        return Err(none());
    }
    let keep = keep(&got);
    Ok((got.result, keep))
}

fn keep(got: &Got) -> Keep {
    if got.is_final { Keep::Immutable } else { Keep::No }
}

/// A quantity as the only member of an object.
fn numeric(name: &str, method: &'static str, got: &Got, form: Form) -> Result<Body, Problem> {
    let value = quantity(&got.result).ok_or(Problem::Shape(method))?;
    Ok((number(name, value, form), keep(got)))
}

/// A text as the only member of an object.
fn wrapped(name: &str, method: &'static str, got: &Got) -> Result<Body, Problem> {
    let text = crate::json::plain_string(&got.result).ok_or(Problem::Shape(method))?;
    Ok((format!("{{\"{name}\":\"{text}\"}}").into(), keep(got)))
}

pub(super) fn number(name: &str, value: Quantity, form: Form) -> Bytes {
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
/// searched or executed, or a block that the node may not have, the node may well refuse it, and elsewhere it may not.
fn is_about_request(operation: &Operation, code: i64) -> bool {
    let is_chosen = match operation {
        Operation::Call { .. }
        | Operation::Logs { .. }
        | Operation::Search(_)
        | Operation::Estimate { .. }
        | Operation::FeeHistory { .. } => true,
        Operation::Balance { at, .. }
        | Operation::Nonce { at, .. }
        | Operation::Code { at, .. }
        | Operation::Storage { at, .. } => *at != At::Latest,
        _ => false,
    };
    is_chosen && !matches!(code, -32700 | -32603 | -32601 | -32600)
}
