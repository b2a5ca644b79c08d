//! Watching a node's blocks: a subscription to heads, then for each head what is in its block, asked on the same connection.
//! It submits nothing. Receipts are asked for, because a transfer that reverts stands in a block like any other.

use std::sync::Arc;

use model::{Class, Outcome, Seed, TxId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sut::{Abandon, Marks, ProtocolError, Received, Session, Texts, Transaction};

use crate::answer::Reply;
use crate::hex::{self, Hash};
use crate::known::Known;
use crate::session::{COMMITTED, VERIFIED};
use crate::view::{Content, Header, Question, SUBSCRIPTION, View};

/// The request that every observer begins with.
const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"eth_subscribe","params":["newHeads"]}"#;

/// A connection to a node; an observer's begins with its request, and acknowledges what it hears.
pub(crate) fn texts(host: String, is_observer: bool, seed: Seed) -> Texts {
    match is_observer {
        true => Texts::new(host, "/", Some(SUBSCRIBE.to_owned()), seed).acknowledging(),
        false => Texts::new(host, "/", None, seed),
    }
}

/// What a reverted transfer is called in the report.
pub(crate) const REVERTED: &str = "reverted";

/// What is taken for success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Success {
    /// A receipt with status 1.
    Receipt,
    /// That it stands in a block: what many clients look for, and wrong for what reverts.
    Inclusion,
}

/// An observer's connection.
pub(crate) struct ObserveSession {
    channel: Texts,
    known: Arc<Known>,
    view: View,
    success: Success,
    is_subscribed: bool,
}

impl ObserveSession {
    pub(crate) const fn new(
        channel: Texts,
        known: Arc<Known>,
        view: View,
        success: Success,
    ) -> Self {
        Self { channel, known, view, success, is_subscribed: false }
    }
}

impl Session for ObserveSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.channel.open(out);
    }

    /// Ready when no head from now on can escape it.
    fn is_ready(&self) -> bool {
        self.is_subscribed
    }

    fn submit(&mut self, _tx: &Transaction<'_>, _out: &mut Vec<u8>) -> u32 {
        unreachable!("the engine submits nothing on an observer's connection")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let Self { channel, known, view, success, is_subscribed } = self;
        channel.receive(bytes, out, marks, |text, asks, marks| {
            let mut heard = Heard { known, view, success: *success, asks, marks };
            *is_subscribed |= heard.message(text)?;
            Ok(())
        })
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn reset(&mut self) {
        self.channel.reset();
        self.view.reconnect();
        self.is_subscribed = false;
    }
}

fn ask(id: u64, question: Question, success: Success) -> String {
    let (hash, receipts) = match question {
        Question::Content(hash) => (hash, success == Success::Receipt),
        Question::Header(hash) => (hash, false),
    };
    let (method, end) = match receipts {
        true => ("eth_getBlockReceipts", r#""]}"#),
        false => ("eth_getBlockByHash", r#"",false]}"#),
    };
    let hash = hex::text(&hash);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":["{hash}{end}"#)
}

/// One message, and what it goes into.
struct Heard<'a> {
    known: &'a Known,
    view: &'a mut View,
    success: Success,
    /// What is to be asked.
    asks: &'a mut Vec<String>,
    marks: &'a mut Marks,
}

/// What a subscription tells.
#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    params: Answer<Block<'a>>,
}

/// What was told or answered.
#[derive(Deserialize)]
struct Answer<R> {
    result: R,
}

/// What of a block, or of its header, is used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    hash: &'a str,
    parent_hash: &'a str,
    number: &'a str,
    #[serde(default)]
    gas_used: Option<&'a str>,
    #[serde(borrow, default)]
    transactions: Vec<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Receipt<'a> {
    transaction_hash: &'a str,
    status: &'a str,
}

impl Heard<'_> {
    /// Says whether it is the answer to the subscription.
    fn message(&mut self, text: &str) -> Result<bool, ProtocolError> {
        // Looked through for what it is, and then read for what is in it.
        let reply: Reply<'_, IgnoredAny> = read(text, "a message")?;
        if let Some(error) = &reply.error {
            let words = error.words();
            return Err(ProtocolError(format!("the node does not tell of its blocks: {words}")));
        }
        if reply.params.is_some() {
            let told: Told<'_> = read(text, "a head")?;
            self.head(&told.params.result)?;
            return Ok(false);
        }
        match reply.id {
            Some(SUBSCRIPTION) if reply.result.is_some() => Ok(true),
            Some(id) => {
                let question = self.view.answered(id).ok_or_else(|| {
                    ProtocolError("an answer to a question that was not asked".to_owned())
                })?;
                match reply.result {
                    // The node does not have it, or not yet.
                    None => self.view.unknown(question),
                    Some(_) => self.answer(question, text)?,
                }
                Ok(false)
            }
            None => Err(ProtocolError("a message that says nothing".to_owned())),
        }
    }

    fn head(&mut self, block: &Block<'_>) -> Result<(), ProtocolError> {
        let header = header(block)?;
        let (known, marks) = (self.known, &mut *self.marks);
        let asked = self.view.header(header, &mut |content| verified(content, known, marks));
        let success = self.success;
        self.asks.extend(asked.into_iter().map(|(id, question)| ask(id, question, success)));
        Ok(())
    }

    fn answer(&mut self, question: Question, text: &str) -> Result<(), ProtocolError> {
        let hash = match question {
            Question::Header(_) => {
                let answer: Answer<Block<'_>> = read(text, "a block")?;
                return self.head(&answer.result);
            }
            Question::Content(hash) => hash,
        };
        let content = match self.success {
            Success::Receipt => {
                let answer: Answer<Vec<Receipt<'_>>> = read(text, "receipts")?;
                answer.result.iter().map(of_receipt).collect::<Result<Vec<Content>, _>>()?
            }
            Success::Inclusion => {
                let answer: Answer<Block<'_>> = read(text, "a block")?;
                let hashes = answer.result.transactions.iter();
                hashes.map(|text| Ok((hash_of(text)?, true))).collect::<Result<_, _>>()?
            }
        };
        for (hash, had_effect) in &content {
            let Some(tx) = self.known.mark(hash, COMMITTED) else { continue };
            match had_effect {
                true => self.marks.reached(tx, COMMITTED, 0, 0),
                false => {
                    self.marks.ended(tx, Outcome::Rejected(Class::BadRequest), 0, 0, REVERTED);
                }
            }
        }
        // Deep already: the view keeps none of it.
        let late = content.clone();
        if self.view.content(&hash, content) {
            late.iter().for_each(|content| verified(content, self.known, self.marks));
        }
        Ok(())
    }
}

/// A transaction lies deep enough.
fn verified(content: &Content, known: &Known, marks: &mut Marks) {
    let (hash, had_effect) = content;
    if let Some(tx) = known.mark(hash, VERIFIED).filter(|_| *had_effect) {
        marks.reached(tx, VERIFIED, 0, 0);
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str, what: &str) -> Result<T, ProtocolError> {
    serde_json::from_str(text)
        .map_err(|error| ProtocolError(format!("{what} that cannot be read: {error}")))
}

fn header(block: &Block<'_>) -> Result<Header, ProtocolError> {
    let number = hex::height(block.number).ok_or_else(|| {
        let number = sut::shown(block.number.as_bytes());
        ProtocolError(format!("a block of the height `{number}`, which no chain has"))
    })?;
    Ok(Header {
        hash: hash_of(block.hash)?,
        parent: hash_of(block.parent_hash)?,
        number,
        is_empty: block.gas_used == Some("0x0"),
    })
}

/// Says whether a receipt of this status is of a success; `None`: there is no such status (EIP-658 has these two).
pub(crate) fn receipt_status(status: &str) -> Option<bool> {
    match status {
        "0x1" => Some(true),
        "0x0" => Some(false),
        _ => None,
    }
}

fn of_receipt(receipt: &Receipt<'_>) -> Result<Content, ProtocolError> {
    let had_effect = receipt_status(receipt.status).ok_or_else(|| {
        let status = sut::shown(receipt.status.as_bytes());
        ProtocolError(format!("expected a receipt of the status 0x1 or 0x0, got `{status}`"))
    })?;
    Ok((hash_of(receipt.transaction_hash)?, had_effect))
}

fn hash_of(text: &str) -> Result<Hash, ProtocolError> {
    hex::bytes(text).ok_or_else(|| {
        let text = sut::shown(text.as_bytes());
        ProtocolError(format!("`{text}` where a hash was to be"))
    })
}
