//! What replicas agree on: which inputs are spent, what gathers for the next block, and the blocks that nobody has stored
//! yet. Entries in, blocks and errors out; the same entries make the same of it everywhere.

mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use replicated::Value;

use crate::chain::{Block, Kept};
use crate::protocol::block::Hashing;
use crate::protocol::entry::{Batch, Complete, Entry, read_entry};
use crate::protocol::errors::{Error, Why};
use crate::protocol::{BLOCK_BYTES_MAX, ERRORS_BYTES_MAX, Hash};
use crate::spent::{Ring, Secret};

pub use snapshot::Damaged;

/// For how many transactions memory is set on its way together.
const AHEAD: usize = 24;

/// What gathers ends as a block of this size at the latest: what comes behind it is not taken.
const GATHERED_BYTES_MAX: u64 = BLOCK_BYTES_MAX as u64 - (1 << 20);

/// What a machine is told once.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How many blocks back the inputs of a transaction may have been seen unspent.
    pub depth: u64,
    /// Inputs of a block, about: the sets are made for so many.
    pub inputs: usize,
    /// Blocks that were not asked to be kept are forgotten beyond so many. All replicas must have the same.
    pub blocks_max: Option<u64>,
    /// What names are mixed with.
    pub secret: Secret,
    /// Fidelity switch: blocks are copied as often as in the published system.
    pub copies_blocks: bool,
    /// For tests of tests only.
    #[doc(hidden)]
    pub broken: Broken,
}

/// Faults that a simulator must find.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Broken {
    /// Nothing is.
    #[default]
    Nothing,
    /// Only the set that gathers is looked into.
    LooksBackTooShort,
    /// A snapshot lacks the inputs that were spent.
    SnapshotLacksSpent,
    /// A transaction is complete once one of its inputs is vouched for.
    CompletesWithOne,
    /// Of the heights of a transaction's inputs the highest counts.
    HighestHeight,
    /// Whoever says so has blocks forgotten.
    AnybodyPrunes,
}

impl Rules {
    /// The published system's: one block back, half a million inputs a block.
    #[must_use]
    pub const fn published(secret: Secret) -> Self {
        Self {
            depth: 1,
            inputs: 500_000,
            blocks_max: None,
            secret,
            copies_blocks: false,
            broken: Broken::Nothing,
        }
    }
}

/// What has become of transactions, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Admitted: in a block, or in what gathers for the next.
    pub admitted: u64,
    /// Discarded because their height was too old or not there yet.
    pub expired: u64,
    /// Discarded because an input was spent.
    pub spent: u64,
    /// Discarded because the block that gathers was full.
    pub not_taken: u64,
    /// Those in blocks.
    pub in_blocks: u64,
}

/// Where what a machine says of discarded transactions goes.
#[derive(Debug, Default)]
pub struct Discarded {
    /// Errors, one behind the other.
    pub bytes: Vec<u8>,
    /// How many.
    pub count: u64,
    /// The ends of frames of half the bytes that one may have, and the errors that stand before each.
    ends: Vec<(usize, u64)>,
}

impl Discarded {
    /// Adds one.
    pub fn push(&mut self, error: &Error<'_>) {
        error.write(&mut self.bytes);
        self.count += 1;
        let begun = self.ends.last().map_or(0, |end| end.0);
        if self.bytes.len() - begun >= ERRORS_BYTES_MAX / 2 {
            self.ends.push((self.bytes.len(), self.count));
        }
    }

    /// The frames: of each the number of its errors, and their bytes.
    pub fn frames(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut begun = (0, 0);
        let ends = self.ends.iter().copied().chain([(self.bytes.len(), self.count)]);
        ends.filter_map(move |end| {
            let (from, before) = std::mem::replace(&mut begun, end);
            (end.1 > before).then(|| (end.1 - before, &self.bytes[from..end.0]))
        })
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.ends.clear();
    }
}

/// What came of an entry.
#[derive(Clone, Debug)]
pub enum Done {
    /// Its transactions are admitted or discarded.
    Transactions,
    /// It has made a block.
    Block(Arc<Block>),
    /// Blocks were forgotten.
    Pruned,
    /// The ledger has begun, or had before.
    Begun,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Machine {
    rules: Rules,
    /// The ledger's number; 0: it has not begun.
    ledger: u64,
    height: u64,
    /// The hash of the last block.
    last: Hash,
    ring: Ring,
    gathered: Block,
    /// The hash of what has gathered, so far.
    hashing: Hashing,
    kept: Kept,
    fates: Fates,
    /// Of all admitted transactions in their order, for comparing replicas.
    digest: u64,
}

impl Machine {
    /// An empty one.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        let depth = usize::try_from(rules.depth).expect("a few blocks");
        Self {
            rules,
            ledger: 0,
            height: 0,
            last: [0; 32],
            ring: Ring::new(rules.secret, depth, rules.inputs),
            gathered: Block::default(),
            hashing: Hashing::default(),
            kept: Kept::default(),
            fates: Fates::default(),
            digest: 0,
        }
    }

    /// The ledger's number; 0: it has not begun, and no block is to be made.
    #[must_use]
    pub const fn ledger(&self) -> u64 {
        self.ledger
    }

    /// The first block that may be asked for; behind the last one where none is kept.
    #[must_use]
    pub fn kept_from(&self) -> u64 {
        self.kept.iter().next().map_or(self.height + 1, |block| block.height)
    }

    /// The height of the last block.
    #[must_use]
    pub const fn height(&self) -> u64 {
        self.height
    }

    /// Whether a transaction that was seen unspent at `height` can be admitted now, as far as its height goes.
    #[inline]
    #[must_use]
    pub fn is_in_range(&self, height: u64) -> bool {
        // A height that is not there yet wraps around to a large offset, as in the published system.
        self.height.wrapping_sub(height) <= self.rules.depth
    }

    /// Blocks that may be asked for.
    #[must_use]
    pub const fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Bytes that have gathered for the next block.
    #[must_use]
    pub const fn gathered_bytes(&self) -> u64 {
        self.gathered.bytes
    }

    /// What has become of transactions.
    #[must_use]
    pub const fn fates(&self) -> Fates {
        self.fates
    }

    /// Times that a set had to be made anew because it was too small.
    #[must_use]
    pub fn grown(&self) -> u64 {
        self.ring.grown()
    }

    /// A number that is the same where the same was admitted in the same order, and blocks were made at the same places.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// The first bytes of the last block's hash, which is made of all blocks before it.
    #[must_use]
    pub fn chain(&self) -> u64 {
        u64::from_le_bytes(*self.last.first_chunk().expect("a hash has 32 bytes"))
    }

    /// Applies an entry; `discarded` is told of transactions that are not admitted, where it is wanted.
    ///
    /// # Panics
    /// If the entry is none: it was made by a replica.
    pub fn apply(&mut self, value: &Value, discarded: Option<&mut Discarded>) -> Done {
        match read_entry(value).expect("entries are made by replicas") {
            Entry::Transactions(batch) => {
                self.apply_batch(value, batch, discarded);
                Done::Transactions
            }
            Entry::MakeBlock => Done::Block(self.make_block()),
            Entry::Prune(below) => {
                self.kept.prune(below.min(self.height + 1));
                Done::Pruned
            }
            Entry::Ledger(number) => {
                // One that was proposed by two leaders begins with the first.
                if self.ledger == 0 {
                    self.ledger = number;
                }
                Done::Begun
            }
        }
    }

    fn apply_batch(
        &mut self,
        value: &Value,
        batch: Batch<'_>,
        mut discarded: Option<&mut Discarded>,
    ) {
        self.gathered.begin_part(value, batch.count());
        let (mut ahead, mut rest) = (batch.iter(), batch.iter().peekable());
        while rest.peek().is_some() {
            let touched = ahead.by_ref().take(AHEAD).fold(0, |seen, it| seen ^ self.touch(&it));
            std::hint::black_box(touched);
            for it in rest.by_ref().take(AHEAD) {
                self.insert_complete(value, &it, discarded.as_deref_mut());
            }
        }
        self.gathered.end_part();
    }

    fn touch(&self, it: &Complete<'_>) -> u64 {
        let offset = self.height.wrapping_sub(it.height).min(self.rules.depth);
        self.ring.touch(offset, it.transaction.inputs)
    }

    /// One transaction, by the published system's rules.
    fn insert_complete(
        &mut self,
        value: &Value,
        it: &Complete<'_>,
        discarded: Option<&mut Discarded>,
    ) {
        let (id, inputs) = (it.transaction.id, it.transaction.inputs);
        let offset = self.height.wrapping_sub(it.height);
        let why = if offset > self.rules.depth && !inputs.is_empty() {
            self.fates.expired += 1;
            Some(Why::Range)
        } else if self.is_any_spent(offset, inputs) {
            self.fates.spent += 1;
            return self.say_spent(offset, it, discarded);
        } else if self.gathered.bytes >= GATHERED_BYTES_MAX {
            self.fates.not_taken += 1;
            Some(Why::NotTaken)
        } else {
            None
        };
        if let Some(why) = why {
            if let Some(discarded) = discarded {
                discarded.push(&Error { id, why });
            }
            return;
        }
        inputs.iter().for_each(|input| self.ring.insert(input));
        let bytes = it.transaction.bytes();
        self.gathered.push(it.at, bytes);
        self.hashing.add(&value[it.at..it.at + bytes]);
        self.fates.admitted += 1;
        self.digest = mix(self.digest, id);
    }

    #[inline]
    fn is_any_spent(&self, offset: u64, inputs: &[Hash]) -> bool {
        let back = match self.rules.broken {
            Broken::LooksBackTooShort => 0,
            _ => offset.min(self.rules.depth),
        };
        let is_twice = |(place, input): (usize, &Hash)| inputs[..place].contains(input);
        inputs.iter().any(|input| self.ring.contains(back, input))
            || inputs.iter().enumerate().any(is_twice)
    }

    #[cold]
    fn say_spent(&self, offset: u64, it: &Complete<'_>, discarded: Option<&mut Discarded>) {
        let Some(discarded) = discarded else { return };
        let inputs = it.transaction.inputs;
        let is_spent = |place: &usize| {
            self.ring.contains(offset.min(self.rules.depth), &inputs[*place])
                || inputs[..*place].contains(&inputs[*place])
        };
        let spent: Vec<Hash> = (0..inputs.len()).filter(is_spent).map(|at| inputs[at]).collect();
        discarded.push(&Error { id: it.transaction.id, why: Why::Spent(&spent) });
    }

    fn make_block(&mut self) -> Arc<Block> {
        self.height += 1;
        let mut block = std::mem::take(&mut self.gathered);
        (block.height, block.ledger, block.previous) = (self.height, self.ledger, self.last);
        block.hash = self.hashing.end(&block.head());
        self.last = block.hash;
        self.fates.in_blocks += block.count;
        self.digest = mix(self.digest, &[0; 32]);
        if self.rules.copies_blocks {
            let _ = block.copy_as_published();
        }
        let block = Arc::new(block);
        self.kept.push(Arc::clone(&block));
        if let Some(blocks_max) = self.rules.blocks_max {
            self.kept.prune((self.height + 1).saturating_sub(blocks_max));
        }
        self.ring.rotate();
        block
    }
}

fn mix(digest: u64, name: &Hash) -> u64 {
    let words = name.as_chunks::<8>().0;
    words.iter().fold(digest, |digest, word| {
        (digest ^ u64::from_le_bytes(*word)).rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}
