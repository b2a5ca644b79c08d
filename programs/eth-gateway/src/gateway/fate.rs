//! The fate of a transaction that was signed elsewhere: it is sent, waits, is mined, becomes safe and final, or is
//! replaced by another of its account, or dropped.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Form, Gateway, Spent, quantity};
use crate::answers::Problem;
use crate::json;
use crate::query::{At, Query, State};
use crate::rpc::Call;
use crate::view::{Header, Id, hex};

/// Sent transactions that are remembered; of an older one that is gone it is not known why.
const SENT_MAX: usize = 10_000;

/// Transactions that came through here, with their account and its nonce.
#[derive(Default)]
pub struct Sent(Mutex<Remembered>);

#[derive(Default)]
struct Remembered {
    by_hash: HashMap<String, (String, u64)>,
    /// The oldest first.
    hashes: VecDeque<String>,
}

impl Sent {
    fn remember(&self, hash: &str, from: String, nonce: u64) {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.by_hash.insert(hash.to_owned(), (from, nonce)).is_some() {
            return;
        }
        sent.hashes.push_back(hash.to_owned());
        if sent.hashes.len() > SENT_MAX
            && let Some(oldest) = sent.hashes.pop_front()
        {
            sent.by_hash.remove(&oldest);
        }
    }

    fn of(&self, hash: &str) -> Option<(String, u64)> {
        let sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.by_hash.get(hash).cloned()
    }
}

impl Gateway {
    /// Sends a signed transaction, `0x` and bytes; gives its hash as a body.
    pub async fn send(self: &Arc<Self>, raw: &str, spent: &mut Spent) -> Result<Bytes, Problem> {
        let call = Call::new("eth_sendRawTransaction", format!("[\"{raw}\"]"));
        let result = self.answer(&Query::Other(call), spent).await?.result;
        let hash = json::plain_string(&result).ok_or(Problem::Shape("eth_sendRawTransaction"))?;
        self.remember(hash, spent).await;
        Ok(json!({ "hash": hash, "fate": format!("/tx/{hash}") }).to_string().into())
    }

    /// Remembers whose it is, so that its fate can be told when it is gone.
    async fn remember(self: &Arc<Self>, hash: &str, spent: &mut Spent) {
        let query = Query::Transaction(hash.to_owned());
        let Ok(got) = self.answer(&query, spent).await else { return };
        let text = |name: &str| json::member(&got.result, name).and_then(json::plain_string);
        let nonce = json::member(&got.result, "nonce").and_then(quantity);
        if let (Some(from), Some(nonce)) = (text("from"), nonce.and_then(|it| it.to_u64())) {
            self.sent.remember(hash, from.to_ascii_lowercase(), nonce);
        }
    }

    /// Its fate.
    pub(super) async fn fate(
        self: &Arc<Self>,
        hash: &str,
        form: Form,
        spent: &mut Spent,
    ) -> Result<Bytes, Problem> {
        let receipt = self.answer(&Query::Receipt(hash.to_owned()), spent).await?;
        if let Some(block) = Id::of_place(&receipt.result) {
            return self.mined(hash, block, &receipt.result, form, spent).await;
        }
        let transaction = self.answer(&Query::Transaction(hash.to_owned()), spent).await?;
        if !transaction.is_null() {
            return Ok(json!({ "hash": hash, "state": "pending" }).to_string().into());
        }
        let Some((from, nonce)) = self.sent.of(hash) else {
            return Ok(json!({ "hash": hash, "state": "unknown" }).to_string().into());
        };
        let query = Query::State { what: State::nonce(&from), at: At::Latest };
        let used = self.answer(&query, spent).await?;
        let used = quantity(&used.result).and_then(|used| used.to_u64());
        let is_replaced = used.is_some_and(|used| used > nonce);
        let state = if is_replaced { "replaced" } else { "dropped" };
        Ok(json!({ "hash": hash, "state": state }).to_string().into())
    }

    async fn mined(
        self: &Arc<Self>,
        hash: &str,
        block: Id,
        receipt: &Bytes,
        form: Form,
        spent: &mut Spent,
    ) -> Result<Bytes, Problem> {
        let head = self.height(spent).await?;
        let mut state = "mined";
        for (at, word) in [(At::Finalized, "finalized"), (At::Safe, "safe")] {
            if self.reaches(at, block.height, spent).await {
                state = word;
                break;
            }
        }
        let number = |value: u64| match form {
            Form::Published => Value::from(value),
            Form::Version1 => Value::from(value.to_string()),
        };
        let status = json::member(receipt, "status").and_then(quantity);
        let mut body = json!({
            "hash": hash,
            "state": state,
            "block": { "height": number(block.height), "hash": hex(&block.hash) },
            "confirmations": number(head.saturating_add(1).saturating_sub(block.height)),
        });
        // Before Byzantium a receipt said nothing of it.
        if let Some(status) = status.and_then(|status| status.to_u64()) {
            body["succeeded"] = (status == 1).into();
        }
        Ok(body.to_string().into())
    }

    /// Whether the last block of a kind is at a height or above it. A node that names none of it has none.
    async fn reaches(self: &Arc<Self>, at: At, height: u64, spent: &mut Spent) -> bool {
        let block = self.answer(&Query::Block { at, full: false }, spent).await;
        let header = block.ok().and_then(|block| Header::read(&block.result));
        header.is_some_and(|header| header.id.height >= height)
    }
}
