//! Questions to a node beside the load: JSON-RPC over HTTP through the questioner, one by one or many in one request. Never
//! used while transactions are timed.

use std::net::SocketAddr;
use std::time::Duration;

use clock::Clock;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sut::ask::Questioner;
use wire::http1::{Asked, Limits, write_request};

use crate::hex;

/// The longest wait for an answer: a node past its knee has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest answer: a pool of some hundred thousand transactions.
const ANSWER_BYTES_MAX: usize = 256 << 20;

const LIMITS: Limits = Limits::keeping(ANSWER_BYTES_MAX);

/// A node, asked by JSON-RPC.
pub struct Rpc {
    questioner: Questioner,
    path: &'static str,
}

#[derive(Deserialize)]
struct Answer<T> {
    id: Option<u64>,
    result: Option<T>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    #[serde(default)]
    message: String,
}

impl Rpc {
    /// Nothing is opened before something is asked.
    #[must_use]
    pub fn new(address: SocketAddr, clock: Clock) -> Self {
        Self::at_path(address, "/", clock)
    }

    /// The same where JSON-RPC is served at another path than the first.
    #[must_use]
    pub fn at_path(address: SocketAddr, path: &'static str, clock: Clock) -> Self {
        Self { questioner: Questioner::new(address, None, LIMITS, clock), path }
    }

    /// Where it asks.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.questioner.address()
    }

    /// Asks one thing; null is an answer like any other where `T` takes it.
    ///
    /// # Errors
    /// What was asked of whom, and why there is no such answer.
    pub fn ask<T: DeserializeOwned>(&mut self, method: &str, params: Value) -> Result<T, String> {
        let question = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let failed = self.failed(method);
        let body = self.post(&question).map_err(&failed)?;
        let answer: Answer<Value> =
            serde_json::from_slice(body).map_err(|error| failed(error.to_string()))?;
        result(answer).and_then(typed).map_err(failed)
    }

    /// Asks many things of one kind in one request; answers in the order of `questions`.
    ///
    /// # Errors
    /// As [`Rpc::ask`], of the first that failed.
    pub fn ask_all<T: DeserializeOwned>(
        &mut self,
        questions: &[(&str, Value)],
    ) -> Result<Vec<T>, String> {
        let batch = questions.iter().enumerate().map(|(id, (method, params))| {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
        });
        let batch: Vec<Value> = batch.collect();
        let method = questions.first().map_or("nothing", |(method, _)| *method);
        let failed = self.failed(method);
        let body = self.post(&Value::Array(batch)).map_err(&failed)?;
        let mut answers: Vec<Answer<Value>> =
            serde_json::from_slice(body).map_err(|error| failed(error.to_string()))?;
        answers.sort_by_key(|answer| answer.id);
        let ids = answers.iter().map(|answer| answer.id);
        if !ids.eq((0..questions.len()).map(|id| u64::try_from(id).ok())) {
            return Err(failed("it did not answer each question of a batch once".to_owned()));
        }
        answers.into_iter().map(|answer| result(answer).and_then(typed).map_err(&failed)).collect()
    }

    /// A quantity.
    ///
    /// # Errors
    /// As [`Rpc::ask`].
    pub fn number(&mut self, method: &str, params: Value) -> Result<u64, String> {
        let text: String = self.ask(method, params)?;
        hex::quantity(&text).ok_or_else(|| format!("`{method}` gave `{text}`, which is no number"))
    }

    /// The height of the latest block.
    ///
    /// # Errors
    /// As [`Rpc::ask`].
    pub fn height(&mut self) -> Result<u64, String> {
        let text: String = self.ask("eth_blockNumber", json!([]))?;
        hex::height(&text)
            .ok_or_else(|| format!("`eth_blockNumber` gave `{text}`, which is no height"))
    }

    fn failed(&self, method: &str) -> impl Fn(String) -> String + use<> {
        let (address, method) = (self.questioner.address(), method.to_owned());
        move |why| format!("asking {address} for `{method}`: {why}")
    }

    fn post(&mut self, question: &Value) -> Result<&[u8], String> {
        let mut request = Vec::new();
        let host = self.questioner.address().to_string();
        let headers: [(&str, &[u8]); 2] =
            [("Host", host.as_bytes()), ("Content-Type", b"application/json")];
        write_request(&mut request, "POST", self.path, &headers, question.to_string().as_bytes());
        let answer = self.questioner.ask(&request, Asked::Other, PATIENCE);
        Ok(answer.map_err(|error| error.to_string())?.body)
    }
}

fn result(answer: Answer<Value>) -> Result<Value, String> {
    match answer.error {
        Some(error) => Err(format!("{} ({})", error.message, error.code)),
        None => Ok(answer.result.unwrap_or(Value::Null)),
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}
