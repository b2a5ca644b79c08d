//! A small ledger, made with keys of the tests.

use crate::data::{Attestation, Batch, BatchId, Block, Hash, Proposal, Tree, genesis};
use crate::keys::Key;
use crate::verify::{Keys, Trust};

/// The keys of the two services, and of nobody.
pub(crate) fn keys() -> (Key, Key, Key) {
    (Key::of_seed(&[1; 32]), Key::of_seed(&[2; 32]), Key::of_seed(&[3; 32]))
}

pub(crate) fn trust() -> Trust {
    let (timestamp, sequencer, _) = keys();
    Trust {
        genesis: genesis("tests"),
        timestamp: Keys::one(timestamp.public()),
        sequencer: Keys::one(sequencer.public()),
    }
}

/// A batch of so many transactions of different lengths.
pub(crate) fn batch(id: u8, count: u32) -> Batch {
    let transaction = |it: u32| format!("{id}:{it}{}", "x".repeat(it as usize % 40)).into_bytes();
    Batch { id: [id; 16], transactions: (0..count).map(transaction).collect() }
}

/// A block with its number, as it is stored.
#[derive(Clone)]
pub(crate) struct Made {
    pub batch: Batch,
    pub tree: Tree,
    pub proposal: Proposal,
    pub attestation: Attestation,
}

impl Made {
    pub(crate) fn new(number: u64, batch: Batch, previous: Hash) -> Self {
        let (timestamp, sequencer, _) = keys();
        let tree = Tree::of(&batch);
        let (count, root) = (tree.count(), tree.root());
        let block = Block { batch: batch.id, count, root, previous };
        let token = timestamp.token(
            &genesis("tests"),
            block.link(),
            1_700_000_000_000_000_000 + number.cast_signed(),
        );
        let attestation = sequencer.attestation(&genesis("tests"), number, token.link());
        Self { batch, tree, proposal: Proposal { block, token }, attestation }
    }

    pub(crate) fn link(&self) -> Hash {
        self.proposal.token.link()
    }

    pub(crate) fn proof(&self, index: u32) -> Vec<u8> {
        self.tree.proof(index).unwrap().encoded()
    }

    pub(crate) fn id(&self) -> BatchId {
        self.batch.id
    }
}

/// Blocks that follow each other, with these counts of transactions.
pub(crate) fn row(counts: &[u32]) -> Vec<Made> {
    let mut previous = genesis("tests");
    let mut row: Vec<Made> = Vec::new();
    for (number, count) in (1..).zip(counts) {
        let id = u8::try_from(number).unwrap();
        let made = Made::new(number, batch(id, *count), previous);
        previous = made.link();
        row.push(made);
    }
    row
}
