//! The Merkle tree of a batch, as in RFC 6962 section 2.1 (a node without a neighbour goes up as it is), with the batch's id in
//! each leaf, and id and count of leaves in the root: no proof for one batch or place is one for another.

use super::{Batch, BatchId, Domain, Hash, Malformed, Reader, hash};

const PROOF_TAG: [u8; 4] = *b"PRF1";
/// More levels a tree of 2³² leaves does not have.
const SIBLINGS_MAX: usize = 32;

/// The hash of a transaction as a leaf of a batch.
#[must_use]
pub fn leaf(batch: &BatchId, transaction: &[u8]) -> Hash {
    hash(Domain::Leaf, &[batch, transaction])
}

fn node(left: &Hash, right: &Hash) -> Hash {
    hash(Domain::Node, &[left, right])
}

fn root(batch: &BatchId, count: u32, top: &Hash) -> Hash {
    hash(Domain::Root, &[batch, &count.to_be_bytes(), top])
}

/// All levels of a tree, leaves first.
#[derive(Clone, Debug)]
pub struct Tree {
    batch: BatchId,
    levels: Vec<Vec<Hash>>,
}

impl Tree {
    /// The tree of a batch.
    ///
    /// # Panics
    /// If the batch is empty.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        assert!(!batch.transactions.is_empty(), "a batch has a transaction");
        let leaves = batch.transactions.iter().map(|it| leaf(&batch.id, it)).collect();
        let mut levels: Vec<Vec<Hash>> = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            let pairs = below.chunks(2);
            let above = pairs.map(|pair| match pair {
                [left, right] => node(left, right),
                alone => alone[0],
            });
            let above = above.collect();
            levels.push(above);
        }
        Self { batch: batch.id, levels }
    }

    /// How many leaves it has.
    ///
    /// # Panics
    /// Never: batches are bounded.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.levels[0].len()).expect("bounded by COUNT_MAX")
    }

    /// Its root.
    #[must_use]
    pub fn root(&self) -> Hash {
        let top = self.levels.last().expect("a tree has a level");
        root(&self.batch, self.count(), &top[0])
    }

    /// The proof that a leaf is in it; `None` if there is no such leaf.
    #[must_use]
    pub fn proof(&self, index: u32) -> Option<Proof> {
        if index >= self.count() {
            return None;
        }
        let mut at = usize::try_from(index).ok()?;
        let mut siblings = Vec::new();
        for level in &self.levels {
            siblings.extend(level.get(at ^ 1).filter(|_| level.len() > 1));
            at >>= 1;
        }
        Some(Proof { index, siblings })
    }
}

/// The way from a leaf to the root: its place, and the neighbour on each level where it has one. Encoded: tag, place (4 bytes),
/// count of neighbours (1 byte), neighbours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Which leaf, from 0.
    pub index: u32,
    /// Neighbours, from the bottom.
    pub siblings: Vec<Hash>,
}

impl Proof {
    /// Its bytes.
    ///
    /// # Panics
    /// If it has more neighbours than a tree has levels.
    #[must_use]
    pub fn encoded(&self) -> Vec<u8> {
        let mut bytes = PROOF_TAG.to_vec();
        bytes.extend_from_slice(&self.index.to_be_bytes());
        bytes.push(u8::try_from(self.siblings.len()).expect("at most one a level"));
        self.siblings.iter().for_each(|it| bytes.extend_from_slice(it));
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are not those of a proof, to the last one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tag(PROOF_TAG)?;
        let index = reader.u32()?;
        let [count] = reader.array()?;
        if usize::from(count) > SIBLINGS_MAX {
            return Err(Malformed::Range);
        }
        let siblings = (0..count).map(|_| reader.array()).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { index, siblings })
    }

    /// The root that a transaction would make at this place of a tree with so many leaves; `None` if such a proof cannot be.
    #[must_use]
    pub fn root(&self, batch: &BatchId, count: u32, transaction: &[u8]) -> Option<Hash> {
        let top = top_of(leaf(batch, transaction), self.index, count, &self.siblings)?;
        Some(root(batch, count, &top))
    }
}

/// Where the way from a leaf ends; `None` if the neighbours are too few, too many, or the place is none.
#[must_use]
pub fn top_of(leaf: Hash, index: u32, count: u32, siblings: &[Hash]) -> Option<Hash> {
    if index >= count {
        return None;
    }
    let (mut at, mut size, mut top) = (index, count, leaf);
    let mut siblings = siblings.iter();
    while size > 1 {
        if at & 1 == 1 {
            top = node(siblings.next()?, &top);
        } else if at + 1 < size {
            top = node(&top, siblings.next()?);
        }
        at >>= 1;
        size = size.div_ceil(2);
    }
    siblings.next().is_none().then_some(top)
}
