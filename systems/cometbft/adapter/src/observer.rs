//! Watching one node's blocks: a subscription, and every transaction of this trial in every block. It submits
//! nothing. Blocks and not transactions are subscribed to: a node drops what a subscriber is slow to take after
//! 200 events, and a block is one.

use std::sync::Arc;

use model::TxId;
use serde::Deserialize;
use sut::{Abandon, Marks, ProtocolError, Received, Session, Texts, Transaction, shown};

use crate::answer::RpcError;
use crate::session::COMMITTED;
use crate::sightings::Sightings;
use crate::transaction::Claim;

/// The request that every observer begins with.
pub(crate) const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"subscribe","params":{"query":"tm.event='NewBlock'"}}"#;

/// An observer's connection.
pub(crate) struct ObserveSession {
    channel: Texts,
    run_mark: u64,
    /// What others see too; absent: there are no others.
    sightings: Option<Arc<Sightings>>,
    is_subscribed: bool,
}

impl ObserveSession {
    pub(crate) const fn new(
        channel: Texts,
        run_mark: u64,
        sightings: Option<Arc<Sightings>>,
    ) -> Self {
        Self { channel, run_mark, sightings, is_subscribed: false }
    }
}

impl Session for ObserveSession {
    fn open(&mut self, out: &mut Vec<u8>) {
        self.channel.open(out);
    }

    /// Ready when no block from now on can escape it.
    fn is_ready(&self) -> bool {
        self.is_subscribed
    }

    fn submit(&mut self, _tx: &Transaction<'_>, _out: &mut Vec<u8>) -> u32 {
        unreachable!("the engine submits nothing on an observer's connection")
    }

    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>, marks: &mut Marks) -> Received {
        let Self { channel, run_mark, sightings, is_subscribed } = self;
        channel.receive(bytes, out, marks, |text, _, marks| {
            block(text, *run_mark, sightings.as_deref(), marks)?;
            *is_subscribed = true;
            Ok(())
        })
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    fn reset(&mut self) {
        self.channel.reset();
        self.is_subscribed = false;
    }
}

#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    result: Option<Happened<'a>>,
    #[serde(borrow)]
    error: Option<RpcError<'a>>,
}

/// Empty in the answer to the subscription.
#[derive(Deserialize)]
struct Happened<'a> {
    #[serde(borrow)]
    data: Option<Data<'a>>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    value: NewBlock<'a>,
}

#[derive(Deserialize)]
struct NewBlock<'a> {
    #[serde(borrow)]
    block: Block<'a>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    header: Header<'a>,
    #[serde(borrow)]
    data: Transactions<'a>,
}

#[derive(Deserialize)]
struct Header<'a> {
    height: &'a str,
}

#[derive(Deserialize)]
struct Transactions<'a> {
    /// Base64, which needs no escape in JSON, so nothing is copied. Null or a list.
    #[serde(borrow)]
    txs: Option<Vec<&'a str>>,
}

/// One message: the answer to the subscription, or a block.
fn block(
    text: &str,
    run_mark: u64,
    sightings: Option<&Sightings>,
    marks: &mut Marks,
) -> Result<(), ProtocolError> {
    let seen = match Seen::quickly(text) {
        Some(seen) => Some(seen),
        None => Seen::by_json(text)?,
    };
    let Some(Seen { height, txs }) = seen else { return Ok(()) };
    let number = height.parse().map_err(|_| {
        let height = shown(height.as_bytes());
        ProtocolError(format!("a block of the height `{height}`, which is no number"))
    })?;
    if sightings.is_some_and(|sightings| !sightings.is_first(number)) {
        return Ok(());
    }
    for tx in txs.into_iter().filter_map(|text| ours(text, run_mark)) {
        marks.reached(tx, COMMITTED, 0, 0);
    }
    Ok(())
}

/// What of a block is used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen<'a> {
    pub(crate) height: &'a str,
    /// In base64.
    pub(crate) txs: Vec<&'a str>,
}

impl<'a> Seen<'a> {
    /// A block in the very words of version 0.38, read up to the end of its transactions: what the application said
    /// of each of them comes behind, is longer than they are, and is of no use here. Anything else, down to a blank,
    /// is `None` and is taken apart as JSON.
    ///
    /// What is searched for begins with a comma and a bare quote, so it cannot stand inside of a string.
    pub(crate) fn quickly(text: &'a str) -> Option<Self> {
        const HEADER: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"query":"tm.event='NewBlock'","data":{"type":"tendermint/event/NewBlock","value":{"block":{"header":{"#;
        const DATA: &str = r#"},"data":{"txs":["#;
        const HEIGHT: &str = r#","height":""#;
        let (header, rest) = text.strip_prefix(HEADER)?.split_once(DATA)?;
        let (height, _) = header.split_once(HEIGHT)?.1.split_once('"')?;
        if height.contains('\\') {
            return None;
        }
        let mut txs = Vec::new();
        let mut rest = rest.strip_prefix('"')?;
        loop {
            let (tx, behind) = rest.split_once('"')?;
            txs.push(tx);
            match behind.strip_prefix(",\"") {
                Some(next) => rest = next,
                // Base64 has no backslash, so a quote behind one ends no transaction.
                None if behind.starts_with("]}") => break,
                None => return None,
            }
        }
        let are_plain = txs.iter().all(|tx| !tx.ends_with('\\'));
        are_plain.then_some(Self { height, txs })
    }

    /// A block as any JSON; `None` in the answer to the subscription.
    pub(crate) fn by_json(text: &'a str) -> Result<Option<Self>, ProtocolError> {
        let told: Told<'_> = serde_json::from_str(text)
            .map_err(|error| ProtocolError(format!("an event that cannot be read: {error}")))?;
        if let Some(error) = told.error {
            let words = error.words();
            return Err(ProtocolError(format!("the node does not tell of its blocks: {words}")));
        }
        let Some(happened) = told.result else {
            return Err(ProtocolError("an event without a result".to_owned()));
        };
        let Some(data) = happened.data else { return Ok(None) };
        let Block { header, data } = data.value.block;
        Ok(Some(Self { height: header.height, txs: data.txs.unwrap_or_default() }))
    }
}

/// The number of a transaction of this trial. All of it is not looked at: that is the ledger's.
fn ours(text: &str, run_mark: u64) -> Option<TxId> {
    Claim::read_base64(text).filter(|claim| claim.run_mark == run_mark).map(|claim| claim.tx)
}
