//! Which blocks are on the main chain, for those who make and watch it.
//!
//! From the ledger's beginning on, the successor of the head is the block with the lowest sequence number that links to the
//! head's timestamp token and whose batch is not on the chain yet. Numbers are decided in their order and without a gap:
//! what comes early waits, so that nobody can hide a lower number. It believes what it is given; [`crate::verify`] does not,
//! and shares nothing with it.

use std::collections::{BTreeMap, HashMap};

use crate::data::{BatchId, Hash, Proposal};

/// What became of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// On the main chain, as the block of this height (from 1).
    On {
        /// The height.
        height: u64,
    },
    /// Another block was the head when its turn came.
    Elsewhere,
    /// Its batch was on the chain already.
    Replayed,
    /// It was timestamped before the head was.
    Earlier,
    /// The number is void.
    Void,
}

/// A number that was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The number.
    pub number: u64,
    /// Its batch; none of a void.
    pub batch: Option<BatchId>,
    /// What became of it.
    pub standing: Standing,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    link: Hash,
    /// Missing of a void.
    proposal: Option<Proposal>,
}

/// The main chain as far as it is known.
#[derive(Clone, Debug)]
pub struct Chain {
    head: Hash,
    /// When the head was timestamped.
    head_issued_unix_ns: i64,
    height: u64,
    next: u64,
    on: HashMap<BatchId, u64>,
    /// Links of numbers that were decided, from 1 on.
    links: Vec<Hash>,
    waiting: BTreeMap<u64, Waiting>,
}

/// Numbers that may wait for lower ones; those beyond are asked for again.
pub const WAITING_MAX: usize = 65_536;

impl Chain {
    /// A chain with nothing on it.
    #[must_use]
    pub fn new(genesis: Hash) -> Self {
        let (on, waiting) = (HashMap::new(), BTreeMap::new());
        Self {
            head: genesis,
            head_issued_unix_ns: 0,
            height: 0,
            next: 1,
            on,
            links: Vec::new(),
            waiting,
        }
    }

    /// The link that the next block has to have: to the head's token.
    #[must_use]
    pub const fn head(&self) -> Hash {
        self.head
    }

    /// When the head was timestamped: the next block must not be earlier.
    #[must_use]
    pub const fn head_issued_unix_ns(&self) -> i64 {
        self.head_issued_unix_ns
    }

    /// How many blocks are on it.
    #[must_use]
    pub const fn height(&self) -> u64 {
        self.height
    }

    /// The first number that is not decided.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Numbers that wait for the next one: none, or somebody withholds it.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The height at which a batch stands.
    #[must_use]
    pub fn height_of(&self, batch: &BatchId) -> Option<u64> {
        self.on.get(batch).copied()
    }

    /// The link of a number that was decided.
    #[must_use]
    pub fn link_of(&self, number: u64) -> Option<Hash> {
        self.links.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
    }

    /// Whether a number needs to be told.
    #[must_use]
    pub fn wants(&self, number: u64) -> bool {
        number >= self.next && !self.waiting.contains_key(&number)
    }

    /// Tells which token has a number (its link) and its block (none of a void); gives what can be decided now, in order. What
    /// is known already is passed over.
    pub fn tell(&mut self, number: u64, link: Hash, proposal: Option<Proposal>) -> Vec<Decided> {
        if self.wants(number) && (number == self.next || self.waiting.len() < WAITING_MAX) {
            self.waiting.insert(number, Waiting { link, proposal });
        }
        let mut decided = Vec::new();
        while let Some(Waiting { link, proposal }) = self.waiting.remove(&self.next) {
            let standing = proposal.map_or(Standing::Void, |it| self.decide(link, &it));
            let batch = proposal.map(|it| it.block.batch);
            decided.push(Decided { number: self.next, batch, standing });
            self.links.push(link);
            self.next += 1;
        }
        decided
    }

    fn decide(&mut self, link: Hash, Proposal { block, token }: &Proposal) -> Standing {
        if self.on.contains_key(&block.batch) {
            return Standing::Replayed;
        }
        if block.previous != self.head {
            return Standing::Elsewhere;
        }
        if token.issued_unix_ns < self.head_issued_unix_ns {
            return Standing::Earlier;
        }
        self.head = link;
        self.head_issued_unix_ns = token.issued_unix_ns;
        self.height += 1;
        self.on.insert(block.batch, self.height);
        Standing::On { height: self.height }
    }
}
