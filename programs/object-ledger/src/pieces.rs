//! An object as pieces, one a bucket: of Reed–Solomon pieces any `required` rebuild it, of full copies each one does.
//!
//! A piece says which it is, and has the hash of the whole and its own. Both are of everything in them and of the object's
//! name, so that a piece of one object never passes for one of another. Whoever writes a bucket can write pieces with right
//! hashes: a whole is what its own signatures and links say, not what its pieces say.

use std::collections::BTreeMap;

use crate::data::{Domain, Hash, Malformed, Reader, WHOLE_BYTES_MAX, hash};

const TAG: [u8; 4] = *b"PIE1";
const HEAD_BYTES: usize = 4 + 4 + 4 + 32 + 32;
/// More pieces an object does not have.
pub const TOTAL_MAX: u8 = 64;

/// How objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Whether each piece is the whole object.
    pub full_copies: bool,
    /// How many pieces make an object durable; without full copies so many rebuild it, too.
    pub required: u8,
    /// How many pieces there are: one a bucket.
    pub total: u8,
}

impl Code {
    /// The published one: any three of six.
    pub const THREE_OF_SIX: Self = Self { full_copies: false, required: 3, total: 6 };

    /// Whether objects can be kept so.
    #[must_use]
    pub const fn is_possible(self) -> bool {
        0 < self.required && self.required <= self.total && self.total <= TOTAL_MAX
    }

    /// How many pieces rebuild an object.
    #[must_use]
    pub const fn enough(self) -> u8 {
        if self.full_copies { 1 } else { self.required }
    }
}

/// Why a piece is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no piece.
    #[error("the piece is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// Its bytes are not those that it was made of.
    #[error("the piece is corrupted: its hash is not that of its bytes")]
    Corrupted,
    /// It is the piece of another bucket, or of another code.
    #[error("the piece belongs to another place")]
    Misplaced,
    /// Enough pieces, but they do not make what they say.
    #[error("the pieces do not make the whole whose hash they have")]
    NotTheWhole,
}

/// The pieces of an object, in the order of buckets.
///
/// # Panics
/// If the object is empty or too large, or the code is not possible.
#[must_use]
pub fn split(code: Code, name: &str, whole: &[u8]) -> Vec<Vec<u8>> {
    assert!(code.is_possible(), "a code has pieces");
    assert!(!whole.is_empty() && whole.len() <= WHOLE_BYTES_MAX, "an object has 1 byte to 16 MiB");
    let of_whole = whole_hash(name, whole);
    let make = |index: usize, payload: &[u8]| {
        let index = u8::try_from(index).expect("at most TOTAL_MAX pieces");
        piece(code, index, whole.len(), &of_whole, payload)
    };
    if code.full_copies {
        return (0..usize::from(code.total)).map(|index| make(index, whole)).collect();
    }
    let size = payload_bytes(code, whole.len());
    let (required, total) = (usize::from(code.required), usize::from(code.total));
    let mut padded = whole.to_vec();
    padded.resize(size * required, 0);
    let originals: Vec<&[u8]> = padded.chunks_exact(size).collect();
    let spare = match total - required {
        0 => Vec::new(),
        spare => reed_solomon_simd::encode(required, spare, &originals)
            .expect("the counts and the even size are ones that the code takes"),
    };
    let originals = originals.iter().copied();
    originals
        .chain(spare.iter().map(Vec::as_slice))
        .enumerate()
        .map(|(i, it)| make(i, it))
        .collect()
}

/// The code wants pieces of an even size.
fn payload_bytes(code: Code, whole: usize) -> usize {
    if code.full_copies {
        return whole;
    }
    whole.div_ceil(usize::from(code.required)).next_multiple_of(2)
}

fn whole_hash(name: &str, whole: &[u8]) -> Hash {
    let length = u32::try_from(name.len()).expect("names are short").to_be_bytes();
    hash(Domain::Whole, &[&length, name.as_bytes(), whole])
}

fn piece(code: Code, index: u8, whole: usize, of_whole: &Hash, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + payload.len());
    bytes.extend_from_slice(&TAG);
    bytes.extend_from_slice(&[u8::from(code.full_copies), index, code.required, code.total]);
    bytes.extend_from_slice(&u32::try_from(whole).expect("at most 16 MiB").to_be_bytes());
    bytes.extend_from_slice(of_whole);
    let own = hash(Domain::Piece, &[&bytes, payload]);
    bytes.extend_from_slice(&own);
    bytes.extend_from_slice(payload);
    bytes
}

/// A piece that was read, by its own hash the one that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How the object is kept.
    pub code: Code,
    /// Which piece it is.
    pub index: u8,
    whole: usize,
    of_whole: Hash,
    payload: Vec<u8>,
}

impl Piece {
    /// Reads one.
    ///
    /// # Errors
    /// When the bytes are not those of a piece, to the last one, or its hash is another.
    pub fn parse(bytes: &[u8]) -> Result<Self, Unusable> {
        let mut reader = Reader::new(bytes);
        reader.tag(TAG)?;
        let [mode, index, required, total] = reader.array()?;
        let whole = usize::try_from(reader.u32()?).map_err(|_| Malformed::Range)?;
        let code = Code { full_copies: mode == 1, required, total };
        if mode > 1
            || !code.is_possible()
            || index >= total
            || whole == 0
            || whole > WHOLE_BYTES_MAX
        {
            return Err(Malformed::Range.into());
        }
        let (of_whole, own): (Hash, Hash) = (reader.array()?, reader.array()?);
        let payload = reader.rest();
        let size = payload_bytes(code, whole);
        if payload.len() != size {
            let why = if payload.len() < size { Malformed::Short } else { Malformed::Trailing };
            return Err(why.into());
        }
        if own != hash(Domain::Piece, &[&bytes[..HEAD_BYTES - 32], payload]) {
            return Err(Unusable::Corrupted);
        }
        Ok(Self { code, index, whole, of_whole, payload: payload.to_vec() })
    }
}

/// Gathers the pieces of one object until they make it. Pieces that say that they are of different wholes are kept apart, so
/// that wrong ones cannot spoil right ones.
#[derive(Debug)]
pub struct Gather {
    name: String,
    groups: BTreeMap<Of, BTreeMap<u8, Vec<u8>>>,
}

/// What pieces say that they are of: hash and bytes of the whole, full copies, required, total.
type Of = (Hash, usize, bool, u8, u8);

impl Gather {
    /// Of the object with this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), groups: BTreeMap::new() }
    }

    /// Takes what bucket `bucket` had; gives the object when it is there.
    ///
    /// # Errors
    /// Why the piece is of no use; others may do.
    pub fn offer(&mut self, bucket: usize, bytes: &[u8]) -> Result<Option<Vec<u8>>, Unusable> {
        let piece = Piece::parse(bytes)?;
        if usize::from(piece.index) != bucket {
            return Err(Unusable::Misplaced);
        }
        let code = piece.code;
        let key = (piece.of_whole, piece.whole, code.full_copies, code.required, code.total);
        let group = self.groups.entry(key).or_default();
        group.insert(piece.index, piece.payload);
        if group.len() < usize::from(code.enough()) {
            return Ok(None);
        }
        let made = rebuild(code, piece.whole, group);
        match made.filter(|whole| whole_hash(&self.name, whole) == piece.of_whole) {
            Some(whole) => Ok(Some(whole)),
            None => Err(Unusable::NotTheWhole),
        }
    }
}

fn rebuild(code: Code, whole: usize, pieces: &BTreeMap<u8, Vec<u8>>) -> Option<Vec<u8>> {
    if code.full_copies {
        return pieces.values().next().cloned();
    }
    let (required, total) = (usize::from(code.required), usize::from(code.total));
    let originals = || pieces.iter().filter(|(index, _)| **index < code.required);
    let restored = if originals().count() == required {
        BTreeMap::new()
    } else {
        let originals = originals().map(|(index, it)| (usize::from(*index), it));
        let spare = pieces.iter().filter(|(index, _)| **index >= code.required);
        let spare = spare.map(|(index, it)| (usize::from(*index) - required, it));
        reed_solomon_simd::decode(required, total - required, originals, spare).ok()?
    };
    let mut made = Vec::with_capacity(payload_bytes(code, whole) * required);
    for index in 0..code.required {
        let piece = pieces.get(&index).or_else(|| restored.get(&usize::from(index)))?;
        made.extend_from_slice(piece);
    }
    // What fills the last piece up is nothing; anything else there would be another encoding of the same object.
    if made[whole..].iter().any(|byte| *byte != 0) {
        return None;
    }
    made.truncate(whole);
    Some(made)
}
