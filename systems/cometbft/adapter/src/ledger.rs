//! Reading the chain back, by another way than the load took: over HTTP from the last node that answers, block
//! after block. A transaction's position is its block's height and its index there. The chain is read when the
//! mempools are empty; if they have not become so in time, or others fill them too, that is said.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Blocks of a trial: at a thousand a second, those of four hours.
const BLOCKS_MAX: u64 = 1 << 24;

/// Blocks without a transaction of ours, one after the other, once the run is to stop: a moment.
const EMPTY_STOPPED_MAX: u32 = 1_000;

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
    /// Set when the run is to stop.
    stop: Arc<AtomicBool>,
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
        (clock, stop): (Clock, Arc<AtomicBool>),
    ) -> Result<Self, SutError> {
        let Settled { address, mut rpc, last, way: mempool } = settle(nodes, usage, clock)?;
        if last.saturating_sub(first) >= BLOCKS_MAX {
            return Err(SutError::Ledger(format!(
                "expected at most {BLOCKS_MAX} blocks from {first} on, at which the trial began, got {last} from {address}; \
                 is it the chain of the trial?"
            )));
        }
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
        let (next, ahead) = (first, None);
        Ok(Self { rpc, next, last, top, ahead, entries, run_mark, usage, way, stop })
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
        let mut empty = 0;
        while self.entries.is_empty() && self.next <= self.last {
            if empty >= EMPTY_STOPPED_MAX && self.stop.load(Ordering::Relaxed) {
                let (next, last) = (self.next, self.last);
                let words = format!("the run is to stop; blocks {next} to {last} were not read");
                return Err(SutError::Ledger(words));
            }
            self.read_block()?;
            empty += 1;
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use serde_json::{Value, json};

    use super::*;

    /// A node that answers each question of one connection with what `answer` makes of its method and parameters.
    fn node(answer: impl Fn(&str, &Value) -> Value + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut some = [0; 16 << 10];
            loop {
                match stream.read(&mut some) {
                    Ok(count @ 1..) => asked.extend_from_slice(&some[..count]),
                    _ => return,
                }
                let Some(head) = asked.windows(4).position(|it| it == b"\r\n\r\n") else {
                    continue;
                };
                let Ok(question) = serde_json::from_slice::<Value>(&asked[head + 4..]) else {
                    continue;
                };
                asked.clear();
                let one = |it: &Value| {
                    let result = answer(it["method"].as_str().unwrap(), &it["params"]);
                    json!({"jsonrpc": "2.0", "id": it["id"], "result": result})
                };
                let said = match question.as_array() {
                    Some(batch) => batch.iter().map(one).collect(),
                    None => one(&question),
                };
                let body = said.to_string();
                // In one piece, for which no acknowledgement is waited.
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        address
    }

    /// The chain of a node at this height whose blocks are empty, from block 6 on, as it is read once the run is to stop.
    fn chain(height: &str) -> Result<Chain, SutError> {
        let height = height.to_owned();
        let node = node(move |method, _| match method {
            "status" => json!({
                "node_info": {"network": "n", "version": "1"},
                "sync_info": {"latest_block_height": height, "catching_up": false},
            }),
            "num_unconfirmed_txs" => json!({"total": "0"}),
            _ => {
                json!({"block": {"header": {"time": "2026-11-21T06:50:32Z"}, "data": {"txs": null}}})
            }
        });
        Chain::open(&[node], 6, 7, Use::Own, false, (Clock::start(), Arc::new(true.into())))
    }

    /// Claim: heights that no chain can have, and more blocks than a trial can have, are said when the reading begins.
    #[test]
    fn heights_beyond_bounds() {
        for (height, words) in [
            ("18446744073709551615", "no node answers"),
            ("549755813889", "no node answers"),
            ("549755813888", "expected at most 16777216 blocks from 6 on"),
        ] {
            let error = chain(height).err().unwrap().to_string();
            assert!(error.contains(words), "{height}: {error}");
        }
    }

    /// Claim: empty blocks without end are left once the run is to stop.
    #[test]
    fn empty_blocks() {
        let mut chain = chain("1000000").unwrap();
        let error = chain.next(&mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("the run is to stop"), "{error}");
    }
}
