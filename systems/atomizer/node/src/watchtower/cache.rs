//! The last blocks, searched by output, and the last errors, by transaction.
//!
//! A block keeps the bytes of its transactions and a small table of places in them, one for each input and output. The table
//! of one block fits the processor's cache while it is filled, where one of all blocks would miss it with each entry; a
//! look-up goes through the tables from the last block on, and most questions are about the last blocks.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::protocol::Hash;
use crate::protocol::errors::{Error, Why};
use crate::protocol::status::Status;
use crate::protocol::transaction::Transaction;
use crate::spent::Secret;

/// Where the inputs of a transaction begin in its bytes.
const INPUTS_AT: usize = 40;

/// Places that are looked at without a look at the names there: with names of chance few look-ups go so far.
const LOOKED_AT_MAX: usize = 64;
/// Outputs of one name that are in the table of a block for certain; of more some are left out. A name is made of what makes an
/// output unlike all others, so more of one are there to make the table slow.
const SAME_MAX: usize = 8;

/// A block with its table.
#[derive(Debug, Default)]
pub struct Indexed {
    height: u64,
    bytes: Vec<u8>,
    /// Where each transaction begins.
    starts: Vec<u32>,
    /// Nothing (0), or where a name begins in `bytes`, counted from 1.
    slots: Vec<u32>,
    names: usize,
}

impl Indexed {
    fn begin(&mut self, height: u64, count: u64) {
        self.height = height;
        self.bytes.clear();
        self.starts.clear();
        self.names = 0;
        // Two inputs and two outputs each, and half of it empty.
        let wanted = usize::try_from(count * 8).unwrap_or(16).next_power_of_two().max(16);
        self.slots.clear();
        self.slots.resize(wanted.min(1 << 24), 0);
    }

    /// Adds a transaction.
    pub fn push(&mut self, secret: &Secret, it: &Transaction<'_>) {
        let start = self.bytes.len();
        // A block is shorter than 2³² bytes.
        self.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
        it.write(&mut self.bytes);
        let outputs_at = start + INPUTS_AT + 32 * it.inputs.len() + 8;
        let inputs = it.inputs.iter().zip((start + INPUTS_AT..).step_by(32));
        let outputs = it.outputs.iter().zip((outputs_at..).step_by(32));
        let inputs = inputs.map(|(name, at)| (name, at, false));
        for (name, at, is_output) in inputs.chain(outputs.map(|(name, at)| (name, at, true))) {
            if (self.names + 1) * 4 > self.slots.len() * 3 {
                self.grow(secret);
            }
            self.names += usize::from(self.fill(secret.place(name), at, is_output));
        }
    }

    /// True if it has a place now.
    fn fill(&mut self, place: u64, at: usize, is_output: bool) -> bool {
        let mask = self.slots.len() - 1;
        let mut slot = (place >> 32) as usize & mask;
        let (mut looked_at, mut same) = (0, 0);
        while self.slots[slot] != 0 {
            looked_at += 1;
            if is_output && looked_at > LOOKED_AT_MAX {
                let there = self.slots[slot] as usize - 1;
                same += usize::from(self.name(there) == self.name(at));
                if same >= SAME_MAX {
                    return false;
                }
            }
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = u32::try_from(at + 1).unwrap_or(u32::MAX);
        true
    }

    fn grow(&mut self, secret: &Secret) {
        let wanted = self.slots.len() * 2;
        let old = std::mem::replace(&mut self.slots, vec![0; wanted]);
        for at in old.into_iter().filter(|at| *at != 0) {
            let at = at as usize - 1;
            let place = secret.place(self.name(at));
            self.fill(place, at, false);
        }
    }

    fn name(&self, at: usize) -> &Hash {
        self.bytes[at..].first_chunk().expect("names are whole")
    }

    /// Each place at which a name stands: the transaction there, and whether it is spent there.
    fn places(&self, place: u64, name: &Hash) -> impl Iterator<Item = (&Hash, bool)> {
        let mask = self.slots.len().max(1) - 1;
        let first = (place >> 32) as usize & mask;
        let slots = (0..self.slots.len()).map(move |step| self.slots[(first + step) & mask]);
        let places = slots.take_while(|slot| *slot != 0).map(|slot| slot as usize - 1);
        places.filter(move |at| self.name(*at) == name).map(|at| {
            let number = self.starts.partition_point(|start| *start as usize <= at) - 1;
            let start = self.starts[number] as usize;
            let it = Transaction::read(&self.bytes[start..]).expect("it was written here");
            (it.id, at < start + INPUTS_AT + 32 * it.inputs.len())
        })
    }

    fn held_bytes(&self) -> usize {
        self.bytes.len() + 4 * (self.starts.len() + self.slots.len())
    }
}

/// The last blocks.
#[derive(Debug)]
pub struct Blocks {
    blocks_max: usize,
    bytes_max: usize,
    by_height: BTreeMap<u64, Indexed>,
    bytes: usize,
    spare: Option<Indexed>,
}

impl Blocks {
    /// None, of at most so many and so many bytes.
    #[must_use]
    pub const fn new(blocks_max: usize, bytes_max: usize) -> Self {
        Self { blocks_max, bytes_max, by_height: BTreeMap::new(), bytes: 0, spare: None }
    }

    /// A block that is to be filled and added.
    pub fn begin(&mut self, height: u64, count: u64) -> Indexed {
        let mut block = self.spare.take().unwrap_or_default();
        block.begin(height, count);
        block
    }

    /// Adds one; the oldest are forgotten.
    pub fn add(&mut self, block: Indexed) {
        self.bytes += block.held_bytes();
        if let Some(before) = self.by_height.insert(block.height, block) {
            self.bytes -= before.held_bytes();
        }
        while self.by_height.len() > self.blocks_max || self.bytes > self.bytes_max {
            let Some((_, oldest)) = self.by_height.pop_first() else { return };
            self.bytes -= oldest.held_bytes();
            self.spare = Some(oldest);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_height.len()
    }

    /// What the blocks say of an output of a transaction, and which block.
    #[must_use]
    pub fn find(&self, place: u64, id: &Hash, output: &Hash) -> Option<(Status, u64)> {
        let mut spent_at = None;
        for block in self.by_height.values().rev() {
            let mut made = false;
            for (by, is_spent) in block.places(place, output) {
                match (by == id, is_spent) {
                    (true, true) => return Some((Status::Spent, block.height)),
                    (true, false) => made = true,
                    (false, true) => spent_at = Some(block.height),
                    (false, false) => {}
                }
            }
            if made {
                return Some(match spent_at {
                    Some(height) => (Status::Spent, height),
                    None => (Status::Unspent, block.height),
                });
            }
        }
        None
    }
}

/// Why a transaction was discarded.
#[derive(Debug)]
enum Kept {
    CanBeSentAgain,
    Rejected,
    /// For these inputs.
    Inputs(Box<[Hash]>),
}

/// The last errors.
#[derive(Debug)]
pub struct Errors {
    errors_max: usize,
    by_id: HashMap<Hash, Kept>,
    order: VecDeque<Hash>,
}

impl Errors {
    /// None, of at most so many.
    #[must_use]
    pub fn new(errors_max: usize) -> Self {
        Self { errors_max, by_id: HashMap::new(), order: VecDeque::new() }
    }

    /// Adds one; the oldest are forgotten. Of one transaction the last counts.
    pub fn add(&mut self, error: &Error<'_>) {
        let kept = match error.why {
            Why::NotTaken | Why::Range => Kept::CanBeSentAgain,
            Why::Incomplete => Kept::Rejected,
            Why::Unknown(hashes) | Why::Spent(hashes) => Kept::Inputs(hashes.into()),
        };
        if self.by_id.insert(*error.id, kept).is_none() {
            self.order.push_back(*error.id);
        }
        while self.order.len() > self.errors_max {
            let oldest = self.order.pop_front().expect("there are too many");
            self.by_id.remove(&oldest);
        }
    }

    /// What they say of an output of a transaction.
    #[must_use]
    pub fn status(&self, id: &Hash, output: &Hash) -> Option<Status> {
        Some(match self.by_id.get(id)? {
            Kept::CanBeSentAgain => Status::InternalError,
            Kept::Rejected => Status::Rejected,
            Kept::Inputs(hashes) if hashes.contains(output) => Status::InvalidInput,
            Kept::Inputs(_) => Status::Rejected,
        })
    }
}
