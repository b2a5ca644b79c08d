//! Blocks, timestamp tokens and sequence attestations: each links to the one before by its hash.

use super::{BatchId, COUNT_MAX, Domain, Hash, Malformed, Reader, Signature, hash};

const BLOCK_TAG: [u8; 4] = *b"BLK1";
const TOKEN_TAG: [u8; 4] = *b"TIM2";
const ATTESTATION_TAG: [u8; 4] = *b"SEQ2";

const BLOCK_BYTES: usize = 88;
const SIGNED_LENGTH: usize = 44;
/// The link of a void: a number that the sequencer signs for no token, because no block will ever have it.
pub const VOID: Hash = [0; 32];

/// Bytes that a service signs of a token or an attestation: the ledger's beginning, which is made of its name, and everything
/// but the signature. Tags differ, so that a token is never an attestation, and no statement of one ledger is one of another.
pub(crate) fn signed_bytes(ledger: &Hash, statement: &[u8]) -> Vec<u8> {
    [ledger, &statement[..SIGNED_LENGTH]].concat()
}

const STATEMENT_BYTES: usize = SIGNED_LENGTH + 64;
/// Bytes of an encoded attestation.
pub const ATTESTATION_BYTES: usize = STATEMENT_BYTES;
/// What a block and its token have together.
pub const PROPOSAL_BYTES: usize = BLOCK_BYTES + STATEMENT_BYTES;

/// A block: the root of one batch's tree, and a link to the timestamp token of the block before. Encoded: tag, batch id, count
/// of leaves (4 bytes), root, link: 88 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The batch.
    pub batch: BatchId,
    /// How many transactions it has.
    pub count: u32,
    /// The root of its tree.
    pub root: Hash,
    /// The link to the token of a preceding block, or the ledger's beginning.
    pub previous: Hash,
}

impl Block {
    /// Its bytes.
    #[must_use]
    pub fn encoded(&self) -> Vec<u8> {
        let count = self.count.to_be_bytes();
        [&BLOCK_TAG[..], &self.batch, &count, &self.root, &self.previous].concat()
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are not those of a block, to the last one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tag(BLOCK_TAG)?;
        let (batch, count) = (reader.array()?, reader.u32()?);
        if count == 0 || usize::try_from(count).map_or(true, |count| count > COUNT_MAX) {
            return Err(Malformed::Range);
        }
        let (root, previous) = (reader.array()?, reader.array()?);
        reader.end()?;
        Ok(Self { batch, count, root, previous })
    }

    /// The link to it.
    #[must_use]
    pub fn link(&self) -> Hash {
        hash(Domain::Block, &[&self.encoded()])
    }
}

/// What the timestamp service says: this link existed at this time. Encoded: tag, link, nanoseconds after the Unix epoch
/// (8 bytes, signed), signature: 108 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What was timestamped: the link to a block.
    pub link: Hash,
    /// When it was issued.
    pub issued_unix_ns: i64,
    /// The timestamp service's signature.
    pub signature: Signature,
}

impl Token {
    /// Its bytes.
    #[must_use]
    pub fn encoded(&self) -> Vec<u8> {
        let issued = self.issued_unix_ns.to_be_bytes();
        [&TOKEN_TAG[..], &self.link, &issued, &self.signature].concat()
    }

    /// Reads one; whether it is signed rightly is not looked at.
    ///
    /// # Errors
    /// When the bytes are not those of a token, to the last one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tag(TOKEN_TAG)?;
        let link = reader.array()?;
        let issued_unix_ns = i64::from_be_bytes(reader.array()?);
        if issued_unix_ns < 0 {
            return Err(Malformed::Range);
        }
        let signature = reader.array()?;
        reader.end()?;
        Ok(Self { link, issued_unix_ns, signature })
    }

    /// The link to it, signature included.
    #[must_use]
    pub fn link(&self) -> Hash {
        hash(Domain::Token, &[&self.encoded()])
    }
}

/// What the sequencer says: this link is the one with this number. Encoded: tag, number (8 bytes, from 1), link, signature:
/// 108 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attestation {
    /// The number.
    pub number: u64,
    /// What was numbered: the link to a timestamp token.
    pub link: Hash,
    /// The sequencer's signature.
    pub signature: Signature,
}

impl Attestation {
    /// Whether the number is void: it has no block, and the chain passes over it.
    #[must_use]
    pub fn is_void(&self) -> bool {
        self.link == VOID
    }

    /// Its bytes.
    #[must_use]
    pub fn encoded(&self) -> Vec<u8> {
        let number = self.number.to_be_bytes();
        [&ATTESTATION_TAG[..], &number, &self.link, &self.signature].concat()
    }

    /// Reads one; whether it is signed rightly is not looked at.
    ///
    /// # Errors
    /// When the bytes are not those of an attestation, to the last one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tag(ATTESTATION_TAG)?;
        let number = reader.u64()?;
        if number == 0 {
            return Err(Malformed::Range);
        }
        let (link, signature) = (reader.array()?, reader.array()?);
        reader.end()?;
        Ok(Self { number, link, signature })
    }
}

/// A block with its timestamp token: what is stored before a number is asked for. Encoded: the one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The block.
    pub block: Block,
    /// Its token.
    pub token: Token,
}

impl Proposal {
    /// Its bytes.
    #[must_use]
    pub fn encoded(&self) -> Vec<u8> {
        [self.block.encoded(), self.token.encoded()].concat()
    }

    /// Reads one; whether the token is the block's is not looked at.
    ///
    /// # Errors
    /// When the bytes are not those of a block and a token, to the last one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let block = Block::parse(reader.bytes(BLOCK_BYTES)?)?;
        Ok(Self { block, token: Token::parse(reader.rest())? })
    }
}
