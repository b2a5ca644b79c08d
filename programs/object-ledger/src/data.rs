//! What the ledger is made of, and its exact bytes. Numbers are big-endian; each encoding begins with four bytes that say what
//! it is. What is read and written again is the same bytes: everything else is refused.
//!
//! It decides nothing: what is signed rightly says [`crate::verify`], what is on the main chain [`crate::chain`].

mod batch;
mod block;
mod reader;
mod tree;

use ring::digest::{Context, SHA256};

pub use batch::{Batch, BatchId, COUNT_MAX, TRANSACTION_BYTES_MAX, WHOLE_BYTES_MAX};
pub(crate) use block::signed_bytes;
pub use block::{ATTESTATION_BYTES, Attestation, Block, PROPOSAL_BYTES, Proposal, Token, VOID};
pub use reader::{Malformed, Reader};
pub use tree::{Proof, Tree, leaf, top_of};

/// A SHA-256 hash.
pub type Hash = [u8; 32];
/// An Ed25519 signature.
pub type Signature = [u8; 64];
/// An Ed25519 public key.
pub type PublicKey = [u8; 32];

/// What a hash is of: its first byte, so that no hash of one thing is ever one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// A leaf of a tree: batch id, transaction.
    Leaf = 0x00,
    /// An inner node of a tree: left, right.
    Node = 0x01,
    /// The root of a tree: batch id, count of leaves, topmost node.
    Root = 0x02,
    /// A transaction by itself, which is how it is looked for.
    Transaction = 0x03,
    /// A link to a block.
    Block = 0x10,
    /// A link to a timestamp token.
    Token = 0x11,
    /// One piece of a stored object.
    Piece = 0x20,
    /// The whole of a stored object, with its name.
    Whole = 0x21,
    /// Where a ledger begins: its name.
    Genesis = 0x30,
}

/// The hash of the parts, one behind the other.
#[must_use]
pub fn hash(domain: Domain, parts: &[&[u8]]) -> Hash {
    let mut context = Context::new(&SHA256);
    context.update(&[domain as u8]);
    for part in parts {
        context.update(part);
    }
    context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// What the first block of a ledger links to.
#[must_use]
pub fn genesis(name: &str) -> Hash {
    hash(Domain::Genesis, &[name.as_bytes()])
}

/// By what a transaction is looked for.
#[must_use]
pub fn transaction_id(transaction: &[u8]) -> Hash {
    hash(Domain::Transaction, &[transaction])
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes of lower-case hexadecimal; `None` of anything else, or of another length.
#[must_use]
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != N * 2 {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// Names of stored objects. A name says where to look and proves nothing.
pub mod names {
    use super::{BatchId, Hash, hex};

    /// Where a batch is stored.
    #[must_use]
    pub fn batch(id: &BatchId) -> String {
        format!("batch/{}", hex(id))
    }

    /// Where a block and its timestamp token are stored, by the link to the token.
    #[must_use]
    pub fn proposal(link: &Hash) -> String {
        format!("proposal/{}", hex(link))
    }

    /// Where a sequence attestation is stored: names are in the order of numbers.
    #[must_use]
    pub fn attestation(number: u64) -> String {
        format!("sequence/{number:020}")
    }

    /// Where a second attestation of a number is stored, as evidence of a fork.
    #[must_use]
    pub fn fork(number: u64, link: &Hash) -> String {
        format!("fork/{number:020}-{}", hex(link))
    }

    /// The number in the name of a sequence attestation.
    #[must_use]
    pub fn attestation_number(name: &str) -> Option<u64> {
        let digits = name.strip_prefix("sequence/")?;
        (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| digits.parse().ok())?
    }
}
