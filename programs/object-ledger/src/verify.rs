//! Verification by a client that trusts nobody but two public keys and the name of the ledger. It is given bytes, from wherever
//! they come, and looks at everything: each refusal is a reason of its own.
//!
//! It shares with those who make the ledger what data is ([`crate::data`]), and nothing else: the rule of the main chain is
//! written here once more, so that a fault in theirs is found and not repeated. It reads no file, socket or clock.

use std::collections::HashMap;

use ring::signature::{ED25519, UnparsedPublicKey};

use crate::data::{
    Attestation, BatchId, Hash, Malformed, Proof, Proposal, PublicKey, SIGNED_BYTES,
};

/// What a client believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// What the first block links to ([`crate::data::genesis`] of the ledger's name).
    pub genesis: Hash,
    /// The timestamp service's key.
    pub timestamp: PublicKey,
    /// The sequencer's key.
    pub sequencer: PublicKey,
}

/// What was malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The sequence attestation.
    Attestation,
    /// The block or its timestamp token.
    Proposal,
    /// The proof of inclusion.
    Proof,
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Attestation => "sequence attestation",
            Self::Proposal => "block and timestamp token",
            Self::Proof => "proof of inclusion",
        })
    }
}

/// Why something is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Bytes that are none of what they should be.
    #[error("the {what} is malformed: {why}")]
    Malformed {
        /// Of what.
        what: What,
        /// Why.
        why: Malformed,
    },
    /// The sequencer has not signed this.
    #[error("the sequence attestation of number {number} is not signed by the sequencer")]
    ForgedSequence {
        /// The number that it says.
        number: u64,
    },
    /// The timestamp service has not signed this.
    #[error("the timestamp token of number {number} is not signed by the timestamp service")]
    ForgedTimestamp {
        /// The number of what it belongs to.
        number: u64,
    },
    /// The attestation is of another token.
    #[error("the sequence attestation of number {number} is of another timestamp token")]
    OtherToken {
        /// The number.
        number: u64,
    },
    /// The token is of another block.
    #[error("the timestamp token of number {number} is of another block")]
    OtherBlock {
        /// The number.
        number: u64,
    },
    /// A number is missing: a block that may be the successor is withheld.
    #[error("number {number} is withheld, so that nothing behind it can be decided")]
    Withheld {
        /// The first number that is missing.
        number: u64,
    },
    /// The sequencer has given one number twice.
    #[error("the sequencer has signed number {number} for two timestamp tokens: a fork")]
    Fork {
        /// The number.
        number: u64,
    },
    /// The block is not on the main chain: when its turn came it did not link to the head.
    #[error(
        "the block with number {number} is not on the main chain: it does not link to the head"
    )]
    OffMainChain {
        /// Its number.
        number: u64,
    },
    /// The block is not on the main chain: its batch was there already.
    #[error(
        "the block with number {number} repeats a batch that is on the main chain at height {height}"
    )]
    Replayed {
        /// Its number.
        number: u64,
        /// Where the batch stands.
        height: u64,
    },
    /// The transaction is not at this place of the block's tree.
    #[error(
        "the proof does not lead from the transaction to the root of the block with number {number}"
    )]
    NotInTree {
        /// The block's number.
        number: u64,
    },
}

/// A block whose bytes and signatures hold; whether it is on the main chain is another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signed {
    attestation: Attestation,
    proposal: Proposal,
}

/// What holds of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The sequence number of its block.
    pub number: u64,
    /// The height of its block on the main chain; 0 where that was not looked at.
    pub height: u64,
    /// Its place in the batch.
    pub index: u32,
    /// The batch.
    pub batch: BatchId,
    /// When its block was timestamped.
    pub issued_unix_ns: i64,
}

/// Weak verification: what somebody says of a transaction is signed and complete in itself. Whether the block is on the main
/// chain is not looked at, so whoever says it is believed in that.
///
/// # Errors
/// The first thing that does not hold.
pub fn weak(
    trust: &Trust,
    transaction: &[u8],
    proof: &[u8],
    attestation: &[u8],
    proposal: &[u8],
) -> Result<Verified, Refusal> {
    let signed = signed(trust, attestation, proposal)?;
    let index = included(&signed.proposal, signed.attestation.number, transaction, proof)?;
    Ok(Verified {
        number: signed.attestation.number,
        height: 0,
        index,
        batch: signed.proposal.block.batch,
        issued_unix_ns: signed.proposal.token.issued_unix_ns,
    })
}

fn signed(trust: &Trust, attestation: &[u8], proposal: &[u8]) -> Result<Signed, Refusal> {
    let malformed = |what| move |why| Refusal::Malformed { what, why };
    let (signed_attestation, signed_proposal) = (attestation, proposal);
    let attestation =
        Attestation::parse(signed_attestation).map_err(malformed(What::Attestation))?;
    let number = attestation.number;
    if !is_signed(&trust.sequencer, signed_attestation, &attestation.signature) {
        return Err(Refusal::ForgedSequence { number });
    }
    let proposal = Proposal::parse(signed_proposal).map_err(malformed(What::Proposal))?;
    if !is_signed(&trust.timestamp, &proposal.token.encoded(), &proposal.token.signature) {
        return Err(Refusal::ForgedTimestamp { number });
    }
    if proposal.token.link != proposal.block.link() {
        return Err(Refusal::OtherBlock { number });
    }
    if attestation.link != proposal.token.link() {
        return Err(Refusal::OtherToken { number });
    }
    Ok(Signed { attestation, proposal })
}

fn is_signed(key: &PublicKey, statement: &[u8], signature: &[u8]) -> bool {
    let signed = &statement[SIGNED_BYTES];
    UnparsedPublicKey::new(&ED25519, key).verify(signed, signature).is_ok()
}

fn included(
    proposal: &Proposal,
    number: u64,
    transaction: &[u8],
    proof: &[u8],
) -> Result<u32, Refusal> {
    let malformed = |why| Refusal::Malformed { what: What::Proof, why };
    let proof = Proof::parse(proof).map_err(malformed)?;
    let block = &proposal.block;
    if proof.root(&block.batch, block.count, transaction) == Some(block.root) {
        Ok(proof.index)
    } else {
        Err(Refusal::NotInTree { number })
    }
}

/// Of a number what is kept: enough to recognise another with the same number, and to verify what is in its block.
#[derive(Clone, Copy, Debug)]
struct Kept {
    link: Hash,
    proposal: Proposal,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    On { height: u64 },
    Elsewhere,
    Repeats { height: u64 },
}

/// A client's own main chain, made of nothing but what it has verified: numbers in their order, from 1.
#[derive(Clone, Debug)]
pub struct Verifier {
    trust: Trust,
    head: Hash,
    height: u64,
    numbers: Vec<Kept>,
    batches: HashMap<BatchId, u64>,
    /// A number that was signed for two tokens: from there on nothing can be decided.
    forked: Option<u64>,
}

impl Verifier {
    /// Nothing is verified yet.
    #[must_use]
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            head: trust.genesis,
            height: 0,
            numbers: Vec::new(),
            batches: HashMap::new(),
            forked: None,
        }
    }

    /// The number that [`Verifier::admit`] takes next.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.numbers.len() as u64 + 1
    }

    /// How many blocks its main chain has.
    #[must_use]
    pub const fn height(&self) -> u64 {
        self.height
    }

    /// Takes the next number: its attestation, and the block with its token. One that was taken before is compared.
    ///
    /// # Errors
    /// What does not hold; then nothing was taken.
    pub fn admit(&mut self, attestation: &[u8], proposal: &[u8]) -> Result<(), Refusal> {
        if let Some(number) = self.forked {
            return Err(Refusal::Fork { number });
        }
        let Signed { attestation, proposal } = signed(&self.trust, attestation, proposal)?;
        let (number, link) = (attestation.number, attestation.link);
        if let Some(kept) = self.kept(number) {
            if kept.link == link {
                return Ok(());
            }
            self.forked = Some(number);
            return Err(Refusal::Fork { number });
        }
        if number != self.next() {
            return Err(Refusal::Withheld { number: self.next() });
        }
        let block = &proposal.block;
        let place = match self.batches.get(&block.batch) {
            Some(height) => Place::Repeats { height: *height },
            None if block.previous != self.head => Place::Elsewhere,
            None => {
                self.height += 1;
                self.head = link;
                self.batches.insert(block.batch, self.height);
                Place::On { height: self.height }
            }
        };
        self.numbers.push(Kept { link, proposal, place });
        Ok(())
    }

    /// Strong verification: the transaction stands in the block with this number, and that block is on the main chain.
    ///
    /// # Errors
    /// What does not hold. With [`Refusal::Withheld`] more numbers have to be admitted first.
    pub fn verify(
        &self,
        transaction: &[u8],
        proof: &[u8],
        number: u64,
    ) -> Result<Verified, Refusal> {
        let kept = self.kept(number).ok_or(Refusal::Withheld { number: self.next() })?;
        if let Some(forked) = self.forked.filter(|forked| *forked <= number) {
            return Err(Refusal::Fork { number: forked });
        }
        let height = match kept.place {
            Place::On { height } => height,
            Place::Elsewhere => return Err(Refusal::OffMainChain { number }),
            Place::Repeats { height } => return Err(Refusal::Replayed { number, height }),
        };
        let index = included(&kept.proposal, number, transaction, proof)?;
        Ok(Verified {
            number,
            height,
            index,
            batch: kept.proposal.block.batch,
            issued_unix_ns: kept.proposal.token.issued_unix_ns,
        })
    }

    /// The blocks of its main chain in their order, with their numbers.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, &Proposal)> {
        let on = |kept: &&Kept| matches!(kept.place, Place::On { .. });
        (1..)
            .zip(&self.numbers)
            .filter(move |(_, kept)| on(kept))
            .map(|(n, kept)| (n, &kept.proposal))
    }

    /// The height of a number's block, if that was admitted and is on the main chain.
    #[must_use]
    pub fn height_of(&self, number: u64) -> Option<u64> {
        match self.kept(number)?.place {
            Place::On { height } => Some(height),
            Place::Elsewhere | Place::Repeats { .. } => None,
        }
    }

    fn kept(&self, number: u64) -> Option<&Kept> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.numbers.get(index)
    }
}
