//! Watching one node's blocks: a subscription, and every transaction of this trial in every block. It submits
//! nothing. Blocks and not transactions are subscribed to: a node drops what a subscriber is slow to take after
//! 200 events, and a block is one.

use std::sync::Arc;

use model::TxId;
use serde::Deserialize;
use sut::{Abandon, Marks, ProtocolError, Session, Transaction};

use crate::answer::RpcError;
use crate::channel::Channel;
use crate::session::COMMITTED;
use crate::sightings::Sightings;
use crate::transaction::Claim;

/// The request that every observer begins with.
pub(crate) const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"subscribe","params":{"query":"tm.event='NewBlock'"}}"#;

/// An observer's connection.
pub(crate) struct ObserveSession {
    channel: Channel,
    run_mark: u64,
    /// What others see too; absent: there are no others.
    sightings: Option<Arc<Sightings>>,
    is_subscribed: bool,
}

impl ObserveSession {
    pub(crate) const fn new(
        channel: Channel,
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

    fn receive(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        marks: &mut Marks,
    ) -> Result<usize, ProtocolError> {
        let Self { channel, run_mark, sightings, is_subscribed } = self;
        channel.receive(bytes, out, marks, |text, marks| {
            block(text, *run_mark, sightings.as_deref(), marks)?;
            *is_subscribed = true;
            Ok(())
        })
    }

    fn abandon(&mut self, _tx: TxId) -> Abandon {
        Abandon::Keep
    }

    /// Nothing is submitted here; the contract wants at least one.
    fn in_flight_max(&self) -> u32 {
        1
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
    let told: Told<'_> = serde_json::from_str(text)
        .map_err(|error| ProtocolError(format!("an event that cannot be read: {error}")))?;
    if let Some(error) = told.error {
        let words = error.words();
        return Err(ProtocolError(format!("the node does not tell of its blocks: {words}")));
    }
    let Some(happened) = told.result else {
        return Err(ProtocolError("an event without a result".to_owned()));
    };
    let Some(data) = happened.data else { return Ok(()) };
    let block = data.value.block;
    if let Some(sightings) = sightings {
        let height = block.header.height;
        let number = height.parse().map_err(|_| {
            ProtocolError(format!("a block of the height `{height}`, which is no number"))
        })?;
        if !sightings.is_first(number) {
            return Ok(());
        }
    }
    for tx in block.data.txs.iter().flatten().filter_map(|text| ours(text, run_mark)) {
        marks.reached(tx, COMMITTED, 0, 0);
    }
    Ok(())
}

/// The number of a transaction of this trial. All of it is not looked at: that is the ledger's.
fn ours(text: &str, run_mark: u64) -> Option<TxId> {
    Claim::read_base64(text).filter(|claim| claim.run_mark == run_mark).map(|claim| claim.tx)
}
