//! Before a chain is read: waiting until what was loaded is in blocks, and choosing the node to read from, the
//! last in order that follows the chain. A node that stands still while the others go on (its disk is full, its
//! consensus has failed) still answers questions: it is left out, and that is said.

use std::net::SocketAddr;
use std::time::Duration;

use clock::Clock;
use sut::SutError;

use crate::rpc::Rpc;

/// How long the mempools may take to become empty.
const SETTLE_WITHIN: Duration = Duration::from_secs(30);

/// How long the preferred node may take to be where the highest is.
const FOLLOW_WITHIN: Duration = Duration::from_secs(10);

/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A node that has no new block while the others have made as many stands still.
const BLOCKS_MISSED_MAX: u64 = 3;

/// Whose chain it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// This trial's alone: whatever stands in it must be explained.
    Own,
    /// Others submit too: what does not carry this run's mark is theirs and left out.
    Shared,
}

/// A chain that can be read.
pub(crate) struct Settled {
    /// The node to read from.
    pub(crate) address: SocketAddr,
    pub(crate) rpc: Rpc,
    /// The highest block that can hold what was loaded.
    pub(crate) last: u64,
    /// In which state the mempools were left, and who was not asked, in words.
    pub(crate) way: String,
}

/// A node that answered when the waiting began.
struct Reader {
    address: SocketAddr,
    rpc: Rpc,
    begun: u64,
    height: u64,
    /// Transactions in its mempool, if it says.
    left: Option<u64>,
}

/// All of them.
struct Readers {
    list: Vec<Reader>,
    begun: u64,
}

/// Waits until the mempools are empty; where others fill them too, for two more blocks at most, which had room
/// for what was there before.
pub(crate) fn settle(nodes: &[SocketAddr], usage: Use, clock: Clock) -> Result<Settled, SutError> {
    let mut readers = Readers::that_answer(nodes, clock);
    let deadline = clock.now().plus(SETTLE_WITHIN);
    let left = loop {
        readers.look();
        let left = readers.moving().filter_map(|reader| reader.left).max();
        let is_enough = usage == Use::Shared && readers.highest() >= readers.begun + 2;
        if left == Some(0) || is_enough || readers.list.is_empty() || clock.now() >= deadline {
            break left;
        }
        clock.sleep_until(clock.now().plus(LOOK_EVERY));
    };
    let last = readers.highest();
    let at = readers.choose(last, clock)?;
    let way = format!("{}{}", mempools(left, usage), readers.words_of_still());
    let Reader { address, rpc, .. } = readers.list.swap_remove(at);
    Ok(Settled { address, rpc, last, way })
}

fn mempools(left: Option<u64>, usage: Use) -> String {
    match (left, usage) {
        (None, _) => "and no node said what its mempool held".to_owned(),
        (Some(0), _) => "with all mempools empty".to_owned(),
        (Some(left), Use::Own) => format!("with {left} transactions still in a mempool"),
        (Some(left), Use::Shared) => {
            format!("with {left} transactions, those of others included, in a mempool")
        }
    }
}

impl Readers {
    fn that_answer(nodes: &[SocketAddr], clock: Clock) -> Self {
        let reader = |address: &SocketAddr| {
            let mut rpc = Rpc::new(*address, clock);
            let height = rpc.height().ok()?;
            Some(Reader { address: *address, rpc, begun: height, height, left: None })
        };
        let list: Vec<Reader> = nodes.iter().filter_map(reader).collect();
        let begun = list.iter().map(|reader| reader.height).max().unwrap_or(0);
        Self { list, begun }
    }

    /// Asks all for their mempools, and then how high they are: what has just left a mempool is in a block that
    /// counts.
    fn look(&mut self) {
        for reader in &mut self.list {
            reader.left = reader.rpc.unconfirmed().ok();
        }
        self.look_at_heights();
    }

    /// A node that ends meanwhile stays where it was, and so stands still.
    fn look_at_heights(&mut self) {
        for reader in &mut self.list {
            reader.height = reader.rpc.height().unwrap_or(reader.height);
        }
    }

    fn highest(&self) -> u64 {
        self.list.iter().map(|reader| reader.height).max().unwrap_or(0)
    }

    fn is_still(&self, reader: &Reader) -> bool {
        reader.height == reader.begun && self.highest() >= self.begun + BLOCKS_MISSED_MAX
    }

    fn moving(&self) -> impl Iterator<Item = &Reader> {
        self.list.iter().filter(|reader| !self.is_still(reader))
    }

    /// The place of the node to read from.
    fn choose(&mut self, last: u64, clock: Clock) -> Result<usize, SutError> {
        let patience = clock.now().plus(FOLLOW_WITHIN);
        loop {
            let preferred = self.list.iter().rposition(|reader| !self.is_still(reader));
            let Some(preferred) = preferred else {
                let words = "no node answers; its blocks cannot be read";
                return Err(SutError::Ledger(words.to_owned()));
            };
            if self.list[preferred].height >= last {
                return Ok(preferred);
            }
            if clock.now() >= patience {
                let high = self.list.iter().rposition(|reader| reader.height >= last);
                return Ok(high.expect("one of them is the highest"));
            }
            clock.sleep_until(clock.now().plus(LOOK_EVERY));
            self.look_at_heights();
        }
    }

    fn words_of_still(&self) -> String {
        let still = self.list.iter().filter(|reader| self.is_still(reader));
        let still: Vec<String> =
            still.map(|reader| format!("{} at height {}", reader.address, reader.height)).collect();
        match still.as_slice() {
            [] => String::new(),
            still => format!(", without what stands still: {}", still.join(", ")),
        }
    }
}
