//! Reading the chain back, by another way than the load took: over HTTP from the last node that answers, block
//! after block. A transaction's position is its block's height and its index there. The chain is read when the
//! mempools are empty; if they have not become so in time, or others fill them too, that is said.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clock::{Clock, Instant};
use model::facts::LedgerEntry;
use sut::{Ledger, SutError};

use crate::rpc::Rpc;
use crate::transaction::Key;

/// How long the mempools may take to become empty, and another node to follow.
const SETTLE_WITHIN: Duration = Duration::from_secs(30);

/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A position is height × this + index: more transactions than a block of 21 MiB can hold.
const INDEX_BITS: u32 = 24;

/// Whose chain it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// This trial's alone: whatever stands in it must be explained.
    Own,
    /// Others submit too: what does not carry this run's mark is theirs and left out.
    Shared,
}

/// The chain being read.
pub(crate) struct Chain {
    rpc: Rpc,
    next: u64,
    last: u64,
    entries: VecDeque<LedgerEntry>,
    run_mark: u64,
    usage: Use,
    way: String,
}

impl Chain {
    /// Chooses a node and waits until what was loaded into the network is in blocks. `nodes` are all of them,
    /// `first` is the height to begin with.
    pub(crate) fn open(
        nodes: &[SocketAddr],
        first: u64,
        run_mark: u64,
        usage: Use,
        clock: Clock,
    ) -> Result<Self, SutError> {
        let mut alive: Vec<(SocketAddr, Rpc)> =
            nodes.iter().map(|address| (*address, Rpc::new(*address))).collect();
        alive.retain_mut(|(_, rpc)| rpc.height().is_ok());
        let deadline = clock.now().plus(SETTLE_WITHIN);
        let (left, last) = settle(&mut alive, usage, clock, deadline);
        let (Some(last), Some((address, mut rpc))) = (last, alive.pop()) else {
            let words = "no node answers; its blocks cannot be read";
            return Err(SutError::Ledger(words.to_owned()));
        };
        while rpc.height().map_err(SutError::Ledger)? < last {
            if clock.now() >= deadline {
                return Err(SutError::Ledger(format!(
                    "the node at {address} is not at height {last} after {} s, so its chain would lack blocks",
                    SETTLE_WITHIN.as_secs()
                )));
            }
            clock.sleep_until(clock.now().plus(LOOK_EVERY));
        }
        let mempool = match (left, usage) {
            (None, _) => "and no node said what its mempool held".to_owned(),
            (Some(0), _) => "with all mempools empty".to_owned(),
            (Some(left), Use::Own) => format!("with {left} transactions still in a mempool"),
            (Some(left), Use::Shared) => {
                format!("with {left} transactions, those of others included, in a mempool")
            }
        };
        let left_out = match usage {
            Use::Own => "",
            Use::Shared => ", transactions without this run's mark left out",
        };
        let way = format!("blocks {first} to {last} from {address} over HTTP, {mempool}{left_out}");
        Ok(Self { rpc, next: first, last, entries: VecDeque::new(), run_mark, usage, way })
    }
}

/// Waits until the mempools are empty; where others fill them too, for two more blocks at most, which had room
/// for what was there before. Gives what is left in the fullest, `None` if no node
/// says, and how high the highest node is.
fn settle(
    alive: &mut [(SocketAddr, Rpc)],
    usage: Use,
    clock: Clock,
    deadline: Instant,
) -> (Option<u64>, Option<u64>) {
    let mut begun = None;
    loop {
        let left = alive.iter_mut().filter_map(|(_, rpc)| rpc.unconfirmed().ok()).max();
        // Asked after the mempools: what has just left them is in a block that counts.
        let height = alive.iter_mut().filter_map(|(_, rpc)| rpc.height().ok()).max();
        let begun = *begun.get_or_insert(height);
        let is_enough = usage == Use::Shared && height >= begun.map(|begun| begun + 2);
        if left == Some(0) || is_enough || clock.now() >= deadline {
            return (left, height);
        }
        clock.sleep_until(clock.now().plus(LOOK_EVERY));
    }
}

impl Ledger for Chain {
    fn next(&mut self) -> Result<Option<LedgerEntry>, SutError> {
        while self.entries.is_empty() && self.next <= self.last {
            let txs = self.rpc.block(self.next).map_err(SutError::Ledger)?;
            for (index, tx) in (0_u64..).zip(&txs) {
                let position = (self.next << INDEX_BITS) + index;
                self.entries.extend(entry(tx, position, self.run_mark, self.usage)?);
            }
            self.next += 1;
        }
        Ok(self.entries.pop_front())
    }

    fn way(&self) -> String {
        self.way.clone()
    }
}

/// One transaction of a block; `None` if it is somebody else's.
pub(crate) fn entry(
    tx: &str,
    position: u64,
    run_mark: u64,
    usage: Use,
) -> Result<Option<LedgerEntry>, SutError> {
    let bytes = STANDARD.decode(tx).map_err(|error| {
        SutError::Ledger(format!("a transaction in a block is no base64: {error}"))
    })?;
    let key = Key::read(&bytes);
    let is_marked = key.is_some_and(|key| key.run_mark == run_mark);
    if usage == Use::Shared && !is_marked {
        return Ok(None);
    }
    let ours = is_marked && key.is_some_and(|key| key.holds(&bytes));
    Ok(Some(LedgerEntry::new(position, key.map_or(u64::MAX, |key| key.tx), ours)))
}
