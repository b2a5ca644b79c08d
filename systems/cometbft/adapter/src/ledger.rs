//! Reading the chain back, by another way than the load took: over HTTP from the last node that answers, block
//! after block. A transaction's position is its block's height and its index there. The chain is read when the
//! mempools are empty; if they have not become so in time, or others fill them too, that is said.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clock::{Clock, WallTime};
use model::facts::LedgerEntry;
use sut::{Ledger, SutError};

use crate::rpc::{Rpc, Written};
use crate::session::COMMITTED;
use crate::settle::{Settled, Use, settle};
use crate::transaction::Claim;

/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long two more blocks are waited for: several times the interval of a network with default timeouts.
const FOLLOW_WITHIN: Duration = Duration::from_secs(10);

/// Blocks behind the last with transactions of ours: the first has its time, and the published report tool reads
/// up to the one before the second.
const FOLLOWING: u64 = 2;

/// A position is height × this + index: more transactions than a block of 21 MiB can hold.
const INDEX_BITS: u32 = 24;

/// The chain being read.
pub(crate) struct Chain {
    rpc: Rpc,
    next: u64,
    last: u64,
    /// The highest block that there was when the reading began.
    top: u64,
    /// The block at `next`, if it was read for its time.
    ahead: Option<Written>,
    entries: VecDeque<LedgerEntry>,
    run_mark: u64,
    usage: Use,
    way: String,
}

impl Chain {
    /// Chooses a node and waits until what was loaded into the network is in blocks, and if it is `timed`, until
    /// these are followed by enough to tell their times. `nodes` are all of them, `first` is the height to begin
    /// with.
    pub(crate) fn open(
        nodes: &[SocketAddr],
        first: u64,
        run_mark: u64,
        usage: Use,
        timed: bool,
        clock: Clock,
    ) -> Result<Self, SutError> {
        let Settled { address, mut rpc, last, way: mempool } = settle(nodes, usage, clock)?;
        let left_out = match usage {
            Use::Own => "",
            Use::Shared => ", transactions without this run's mark left out",
        };
        let top = follow(&mut rpc, if timed { last + FOLLOWING } else { last }, clock);
        let untimed = match top < last + FOLLOWING && timed {
            true => {
                ", not followed by two more blocks, so the last have no time that the published report tool would use"
            }
            false => "",
        };
        let way = format!(
            "blocks {first} to {last} from {address} over HTTP, {mempool}{left_out}{untimed}"
        );
        let entries = VecDeque::new();
        Ok(Self { rpc, next: first, last, top, ahead: None, entries, run_mark, usage, way })
    }

    /// The transactions of the next block, with the time that stands in the one behind it.
    fn read_block(&mut self) -> Result<(), SutError> {
        let height = self.next;
        let block = match self.ahead.take() {
            Some(block) => block,
            None => self.rpc.block(height).map_err(SutError::Ledger)?,
        };
        if height < self.top {
            self.ahead = Some(self.rpc.block(height + 1).map_err(SutError::Ledger)?);
        }
        let recorded = self.ahead.as_ref().map(|next| next.time);
        let place = Place { height, recorded, run_mark: self.run_mark, usage: self.usage };
        for (index, tx) in (0_u64..).zip(&block.txs) {
            self.entries.extend(entry(tx, index, place)?);
        }
        self.next += 1;
        Ok(())
    }
}

/// Waits a while until the node is at `height`; gives how high it is then.
fn follow(rpc: &mut Rpc, height: u64, clock: Clock) -> u64 {
    let deadline = clock.now().plus(FOLLOW_WITHIN);
    let mut top = 0;
    loop {
        // A node that ends meanwhile has told what it has told.
        top = rpc.height().unwrap_or(top);
        if top >= height || clock.now() >= deadline {
            return top;
        }
        clock.sleep_until(clock.now().plus(LOOK_EVERY));
    }
}

impl Ledger for Chain {
    /// No check of this adapter reads contents. Whether a transaction was refused stands in the results of a block,
    /// which are not read: the application of these networks takes what its check takes.
    fn next(&mut self, _content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.entries.is_empty() && self.next <= self.last {
            self.read_block()?;
        }
        Ok(self.entries.pop_front())
    }

    /// A mempool promises no order: another node may propose what came later first.
    fn ordered_from(&self) -> Option<usize> {
        Some(usize::from(COMMITTED))
    }

    fn way(&self) -> String {
        self.way.clone()
    }
}

/// Where a transaction stands, and in whose chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) height: u64,
    /// When its block was recorded, if the chain says so by now.
    pub(crate) recorded: Option<WallTime>,
    pub(crate) run_mark: u64,
    pub(crate) usage: Use,
}

/// The `index`-th transaction of a block; `None` if it is somebody else's.
pub(crate) fn entry(tx: &str, index: u64, place: Place) -> Result<Option<LedgerEntry>, SutError> {
    let bytes = STANDARD.decode(tx).map_err(|error| {
        SutError::Ledger(format!("a transaction in a block is no base64: {error}"))
    })?;
    let claim = Claim::read(&bytes);
    let marked = claim.filter(|claim| claim.run_mark == place.run_mark);
    if place.usage == Use::Shared && marked.is_none() {
        return Ok(None);
    }
    let ours = marked.is_some_and(|claim| claim.holds(&bytes));
    Ok(Some(LedgerEntry {
        position: (place.height << INDEX_BITS) + index,
        tx: claim.map_or(u64::MAX, |claim| claim.tx),
        ours,
        is_refused: false,
        is_waiting: false,
        block: place.height,
        submitted: marked.and_then(|claim| claim.submitted),
        recorded: place.recorded,
    }))
}
