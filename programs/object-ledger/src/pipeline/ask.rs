//! What a pipeline asks, and what it can be told.

use crate::data::{Attestation, BatchId, Hash, Proposal, Token};
use crate::protocol::GivenOut;

/// A question to somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To the queue: a batch.
    Pop,
    /// To the timestamp service.
    Timestamp {
        /// The link to a block.
        link: Hash,
    },
    /// To the buckets: keep this; answered when it is durable.
    Store {
        /// The name.
        name: String,
        /// The object.
        whole: Vec<u8>,
    },
    /// To the buckets: keep this unless it is there already.
    Ensure {
        /// The name.
        name: String,
        /// The object.
        whole: Vec<u8>,
    },
    /// To the sequencer: a number for a block.
    Sequence {
        /// The block with its token.
        proposal: Proposal,
    },
    /// To the sequencer: what numbers it has given.
    Attestations {
        /// From this one on.
        from: u64,
    },
    /// To the buckets: the block of a number.
    Fetch {
        /// The number.
        number: u64,
        /// The link to its token.
        link: Hash,
    },
    /// To the sequencer: the block of a number that is in no bucket. Who asked for the number may have crashed.
    Recall {
        /// The number.
        number: u64,
        /// The link to its token.
        link: Hash,
    },
    /// To the queue: this batch is on the main chain and stored.
    Done {
        /// Which.
        batch: BatchId,
    },
}

/// A question with the number that its answer has to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The number.
    pub id: u64,
    /// The question.
    pub ask: Ask,
    /// It has failed before: who carries it out waits a while first.
    pub is_again: bool,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a pop.
    Batch(GivenOut),
    /// To a pop: nothing came in time.
    Empty,
    /// A timestamp token.
    Token(Token),
    /// An attestation.
    Attestation(Attestation),
    /// Attestations.
    Attestations(Vec<Attestation>),
    /// The object that the buckets have under a name, or the sequencer under a number: the block with its token, if it is there and linked
    /// as asked.
    Fetched(Option<Proposal>),
    /// It is durable.
    Stored,
    /// It is noted, or had been done before.
    Done,
    /// It did not work: it is asked again.
    Failed,
}

/// What happened to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It came from the queue.
    Dequeued {
        /// The number of its first transaction in the queue.
        first: u64,
        /// How often it was given out.
        attempt: u32,
    },
    /// Its tree is made.
    TreeMade {
        /// How many leaves.
        count: u32,
    },
    /// Its block has a timestamp token.
    Timestamped,
    /// Batch, block and token are durable.
    ProposalStored,
    /// It has a number.
    Sequenced {
        /// Which.
        number: u64,
    },
    /// It is on the main chain.
    OnMainChain {
        /// At this height.
        height: u64,
        /// With this number.
        number: u64,
    },
    /// Another block was the successor: it is tried again.
    Lost,
    /// All of it is durable.
    Stored,
}

impl Step {
    /// Names by code.
    pub const NAMES: [&'static str; 8] = [
        "dequeued",
        "tree_made",
        "timestamped",
        "proposal_stored",
        "sequenced",
        "on_main_chain",
        "lost",
        "stored",
    ];

    /// Its place in [`Self::NAMES`].
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Dequeued { .. } => 0,
            Self::TreeMade { .. } => 1,
            Self::Timestamped => 2,
            Self::ProposalStored => 3,
            Self::Sequenced { .. } => 4,
            Self::OnMainChain { .. } => 5,
            Self::Lost => 6,
            Self::Stored => 7,
        }
    }

    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.code() as usize]
    }
}

/// A step of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stepped {
    /// Which batch.
    pub batch: BatchId,
    /// What.
    pub step: Step,
}
