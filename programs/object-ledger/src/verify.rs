//! Verification by a client that trusts nobody but two public keys and the name of the ledger. It is given bytes, from wherever
//! they come, and looks at everything: each refusal is a reason of its own.
//!
//! It shares with those who make the ledger what data is ([`crate::data`]), and nothing else: the rule of the main chain is
//! written here once more, so that a fault in theirs is found and not repeated. It reads no file, socket or clock.

use std::collections::HashMap;

use ring::signature::{ED25519, UnparsedPublicKey};

use crate::data::{
    Attestation, BatchId, Hash, Malformed, Proof, Proposal, PublicKey, Token, signed_bytes,
};

mod keys;

pub use keys::{Endorsement, Keys, Role, endorsed_bytes};

/// What a client believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The link of the first block ([`crate::data::genesis`] of the ledger's name). It is part of all that is signed.
    pub genesis: Hash,
    /// The timestamp service's keys.
    pub timestamp: Keys,
    /// The sequencer's keys.
    pub sequencer: Keys,
}

impl Trust {
    /// Whether the sequencer has signed an attestation.
    #[must_use]
    pub fn has_signed(&self, it: &Attestation) -> bool {
        let mut keys = self.sequencer.of(it.number);
        keys.any(|key| is_signed(key, &signed_bytes(&self.genesis, &it.encoded()), &it.signature))
    }

    /// Whether the timestamp service has signed a token whose block has this number, or will have it.
    #[must_use]
    pub fn has_stamped(&self, it: &Token, number: u64) -> bool {
        let mut keys = self.timestamp.of(number);
        keys.any(|key| is_signed(key, &signed_bytes(&self.genesis, &it.encoded()), &it.signature))
    }
}

/// Two attestations of one number for two tokens, both signed by the sequencer: whoever has them can show that it lied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The one that was known.
    pub one: Attestation,
    /// The other one.
    pub other: Attestation,
}

impl std::fmt::Display for Fork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::data::hex;
        let [one, other] = [self.one, self.other].map(|it| hex(&it.encoded()));
        write!(f, "evidence: {one} and {other}")
    }
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
    /// The block is not on the main chain: its timestamp is earlier than that of the head.
    #[error(
        "the block with number {number} is not on the main chain: its timestamp is earlier than the head's"
    )]
    Earlier {
        /// Its number.
        number: u64,
    },
    /// The number is void: the sequencer has signed that no block has it.
    #[error("number {number} is void: the sequencer has signed that no block has it")]
    Void {
        /// The number.
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

/// A number whose bytes and signatures hold; whether its block is on the main chain is another question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signed {
    attestation: Attestation,
    /// Missing of a void.
    proposal: Option<Proposal>,
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
    let Signed { attestation, proposal } = signed(trust, attestation, proposal)?;
    let number = attestation.number;
    let proposal = proposal.ok_or(Refusal::Void { number })?;
    let index = included(&proposal, number, transaction, proof)?;
    let (batch, issued_unix_ns) = (proposal.block.batch, proposal.token.issued_unix_ns);
    Ok(Verified { number, height: 0, index, batch, issued_unix_ns })
}

fn signed(trust: &Trust, attestation: &[u8], proposal: &[u8]) -> Result<Signed, Refusal> {
    let malformed = |what| move |why| Refusal::Malformed { what, why };
    let attestation = Attestation::parse(attestation).map_err(malformed(What::Attestation))?;
    let number = attestation.number;
    if !trust.has_signed(&attestation) {
        return Err(Refusal::ForgedSequence { number });
    }
    if attestation.is_void() && proposal.is_empty() {
        return Ok(Signed { attestation, proposal: None });
    }
    let proposal = Proposal::parse(proposal).map_err(malformed(What::Proposal))?;
    if !trust.has_stamped(&proposal.token, number) {
        return Err(Refusal::ForgedTimestamp { number });
    }
    if proposal.token.link != proposal.block.link() {
        return Err(Refusal::OtherBlock { number });
    }
    if attestation.link != proposal.token.link() {
        return Err(Refusal::OtherToken { number });
    }
    Ok(Signed { attestation, proposal: Some(proposal) })
}

fn is_signed(key: &PublicKey, signed: &[u8], signature: &[u8]) -> bool {
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
    attestation: Attestation,
    /// Missing of a void.
    proposal: Option<Proposal>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    On { height: u64 },
    Elsewhere,
    Earlier,
    Repeats { height: u64 },
    Void,
}

/// A client's own main chain, made of nothing but what it has verified: numbers in their order, from 1.
#[derive(Clone, Debug)]
pub struct Verifier {
    trust: Trust,
    head: Hash,
    /// When the head was timestamped.
    head_issued_unix_ns: i64,
    height: u64,
    numbers: Vec<Kept>,
    batches: HashMap<BatchId, u64>,
    /// A number that was signed for two tokens: from there on nothing can be decided.
    fork: Option<Fork>,
}

impl Verifier {
    /// Nothing is verified yet.
    #[must_use]
    pub fn new(trust: Trust) -> Self {
        Self {
            head: trust.genesis,
            trust,
            head_issued_unix_ns: 0,
            height: 0,
            numbers: Vec::new(),
            batches: HashMap::new(),
            fork: None,
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

    /// Keys and name that it believes.
    #[must_use]
    pub const fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The two attestations of a number that was signed twice, if one was.
    #[must_use]
    pub const fn fork(&self) -> Option<&Fork> {
        self.fork.as_ref()
    }

    /// Takes the next number: its attestation, and the block with its token (nothing of a void). One that was taken before is
    /// compared.
    ///
    /// # Errors
    /// What does not hold; then nothing was taken.
    pub fn admit(&mut self, attestation: &[u8], proposal: &[u8]) -> Result<(), Refusal> {
        self.not_forked()?;
        let Signed { attestation, proposal } = signed(&self.trust, attestation, proposal)?;
        let number = attestation.number;
        if self.kept(number).is_some() {
            return self.compare(&attestation);
        }
        if number != self.next() {
            return Err(Refusal::Withheld { number: self.next() });
        }
        let place = self.place_of(attestation.link, proposal.as_ref());
        self.numbers.push(Kept { attestation, proposal, place });
        Ok(())
    }

    /// Decides about the next number: the rule of the main chain.
    fn place_of(&mut self, link: Hash, proposal: Option<&Proposal>) -> Place {
        let Some(Proposal { block, token }) = proposal else { return Place::Void };
        match self.batches.get(&block.batch) {
            Some(height) => Place::Repeats { height: *height },
            None if block.previous != self.head => Place::Elsewhere,
            None if token.issued_unix_ns < self.head_issued_unix_ns => Place::Earlier,
            None => {
                self.height += 1;
                self.head = link;
                self.head_issued_unix_ns = token.issued_unix_ns;
                self.batches.insert(block.batch, self.height);
                Place::On { height: self.height }
            }
        }
    }

    /// Compares another attestation of a number that was taken: it may be a fork. One without a valid signature is no attestation.
    ///
    /// # Errors
    /// [`Refusal::Fork`], from now on of everything from that number on; [`Verifier::fork`] has the evidence.
    pub fn compare(&mut self, other: &Attestation) -> Result<(), Refusal> {
        self.not_forked()?;
        let number = other.number;
        let Some(one) = self.kept(number).map(|it| it.attestation) else { return Ok(()) };
        if one.link == other.link || !self.trust.has_signed(other) {
            return Ok(());
        }
        self.fork = Some(Fork { one, other: *other });
        Err(Refusal::Fork { number })
    }

    fn not_forked(&self) -> Result<(), Refusal> {
        self.fork.map_or(Ok(()), |fork| Err(Refusal::Fork { number: fork.one.number }))
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
        if let Some(forked) = self.fork.map(|it| it.one.number).filter(|it| *it <= number) {
            return Err(Refusal::Fork { number: forked });
        }
        let (height, proposal) = match (kept.place, &kept.proposal) {
            (Place::On { height }, Some(proposal)) => (height, proposal),
            (Place::Earlier, _) => return Err(Refusal::Earlier { number }),
            (Place::Repeats { height }, _) => return Err(Refusal::Replayed { number, height }),
            (Place::Void, _) | (_, None) => return Err(Refusal::Void { number }),
            (Place::Elsewhere, _) => return Err(Refusal::OffMainChain { number }),
        };
        let index = included(proposal, number, transaction, proof)?;
        Ok(Verified {
            number,
            height,
            index,
            batch: proposal.block.batch,
            issued_unix_ns: proposal.token.issued_unix_ns,
        })
    }

    /// The blocks of its main chain in their order, with their numbers.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, &Proposal)> {
        let on = |kept: &&Kept| matches!(kept.place, Place::On { .. });
        (1..)
            .zip(&self.numbers)
            .filter(move |(_, kept)| on(kept))
            .filter_map(|(n, kept)| Some((n, kept.proposal.as_ref()?)))
    }

    /// The height of a number's block, if that was admitted and is on the main chain.
    #[must_use]
    pub fn height_of(&self, number: u64) -> Option<u64> {
        match self.kept(number)?.place {
            Place::On { height } => Some(height),
            Place::Elsewhere | Place::Earlier | Place::Repeats { .. } | Place::Void => None,
        }
    }

    /// The record admitted under a number: its attestation, and its block with the token (none of a void).
    #[must_use]
    pub fn admitted(&self, number: u64) -> Option<(Attestation, Option<Proposal>)> {
        self.kept(number).map(|it| (it.attestation, it.proposal))
    }

    fn kept(&self, number: u64) -> Option<&Kept> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.numbers.get(index)
    }
}
