//! An object as pieces, one a bucket: of Reed–Solomon pieces any `required` rebuild it, of full copies each one does.
//!
//! A piece says which it is, and has the hash of the whole (with the object's name) and the hashes of all pieces of it. So a
//! piece of one object never passes for one of another, and a bucket that makes pieces up can only found a group of its own:
//! it neither spoils nor stops those of the others. Whoever writes enough buckets can write a whole of his own: what it is
//! worth its own signatures and links say, not its pieces; see `wanted` of `storage::Storage::fetch`.

use std::collections::BTreeMap;

use crate::data::{Domain, Hash, Malformed, Reader, WHOLE_BYTES_MAX, hash};

const TAG: [u8; 4] = *b"PIE2";
/// Bytes before the list of hashes.
const HEAD_BYTES: usize = 4 + 4 + 4 + 32;
/// More pieces an object does not have.
pub const TOTAL_MAX: u8 = 64;

/// How objects are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    let payloads = payloads(code, whole);
    let of_pieces: Vec<Hash> = (0..).zip(&payloads).map(|(i, it)| piece_hash(i, it)).collect();
    let head = Head { code, whole: whole.len(), of_whole: whole_hash(name, whole), of_pieces };
    (0..).zip(&payloads).map(|(index, payload)| head.piece(index, payload)).collect()
}

fn payloads(code: Code, whole: &[u8]) -> Vec<Vec<u8>> {
    let (required, total) = (usize::from(code.required), usize::from(code.total));
    if code.full_copies {
        return vec![whole.to_vec(); total];
    }
    let size = payload_bytes(code, whole.len());
    let mut padded = whole.to_vec();
    padded.resize(size * required, 0);
    let originals: Vec<&[u8]> = padded.chunks_exact(size).collect();
    let spare = match total - required {
        0 => Vec::new(),
        spare => reed_solomon_simd::encode(required, spare, &originals)
            .expect("the counts and the even size are ones that the code takes"),
    };
    originals.into_iter().map(<[u8]>::to_vec).chain(spare).collect()
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

fn piece_hash(index: u8, payload: &[u8]) -> Hash {
    hash(Domain::Piece, &[&[index], payload])
}

/// The head of a piece. Pieces with the same head belong together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    code: Code,
    whole: usize,
    of_whole: Hash,
    of_pieces: Vec<Hash>,
}

impl Head {
    fn piece(&self, index: u8, payload: &[u8]) -> Vec<u8> {
        let Code { full_copies, required, total } = self.code;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + 32 * usize::from(total) + payload.len());
        bytes.extend_from_slice(&TAG);
        bytes.extend_from_slice(&[u8::from(full_copies), index, required, total]);
        let whole = u32::try_from(self.whole).expect("at most 16 MiB");
        bytes.extend_from_slice(&whole.to_be_bytes());
        bytes.extend_from_slice(&self.of_whole);
        bytes.extend_from_slice(&self.of_pieces.concat());
        bytes.extend_from_slice(payload);
        bytes
    }
}

/// A piece that was read, by its hash the one that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    head: Head,
    /// Which piece it is.
    pub index: u8,
    payload: Vec<u8>,
}

impl Piece {
    /// How the object is kept.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.head.code
    }

    /// Its bytes.
    #[must_use]
    pub fn encoded(&self) -> Vec<u8> {
        self.head.piece(self.index, &self.payload)
    }

    /// Of a piece's bytes another piece with the same place and of the same whole, whose own hash fits and whose content does
    /// not: for services that lie on purpose. What is no piece comes back turned over.
    #[must_use]
    pub fn made_up(bytes: &[u8]) -> Vec<u8> {
        let Ok(mut piece) = Self::parse(bytes) else {
            return bytes.iter().map(|byte| !byte).collect();
        };
        piece.payload.iter_mut().for_each(|byte| *byte = !*byte);
        piece.head.of_pieces[usize::from(piece.index)] = piece_hash(piece.index, &piece.payload);
        piece.encoded()
    }

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
        let of_whole = reader.array()?;
        let of_pieces = (0..total).map(|_| reader.array()).collect::<Result<Vec<Hash>, _>>()?;
        let payload = reader.rest();
        let size = payload_bytes(code, whole);
        if payload.len() != size {
            let why = if payload.len() < size { Malformed::Short } else { Malformed::Trailing };
            return Err(why.into());
        }
        if of_pieces[usize::from(index)] != piece_hash(index, payload) {
            return Err(Unusable::Corrupted);
        }
        let head = Head { code, whole, of_whole, of_pieces };
        Ok(Self { head, index, payload: payload.to_vec() })
    }
}

/// Gathers the pieces of one object until they make it. Pieces that say that they are of different wholes are kept apart, so
/// that wrong ones cannot spoil right ones.
#[derive(Debug)]
pub struct Gather {
    name: String,
    groups: BTreeMap<Head, Group>,
}

#[derive(Debug, Default)]
struct Group {
    payloads: BTreeMap<u8, Vec<u8>>,
    /// It was rebuilt, and what came of it was given.
    is_over: bool,
}

impl Gather {
    /// Of the object with this name.
    #[must_use]
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), groups: BTreeMap::new() }
    }

    /// Takes what bucket `bucket` had; gives each whole that the pieces make, once, as soon as it is there.
    ///
    /// # Errors
    /// Why the piece is of no use; others may do.
    pub fn offer(&mut self, bucket: usize, bytes: &[u8]) -> Result<Option<Vec<u8>>, Unusable> {
        let Piece { head, index, payload } = Piece::parse(bytes)?;
        if usize::from(index) != bucket {
            return Err(Unusable::Misplaced);
        }
        let group = self.groups.entry(head.clone()).or_default();
        group.payloads.insert(index, payload);
        if group.is_over || group.payloads.len() < usize::from(head.code.enough()) {
            return Ok(None);
        }
        group.is_over = true;
        let made = rebuild(head.code, head.whole, &group.payloads);
        match made.filter(|whole| is_of(&head, &self.name, whole)) {
            Some(whole) => Ok(Some(whole)),
            None => Err(Unusable::NotTheWhole),
        }
    }

    /// How many pieces of a whole have come.
    #[must_use]
    pub fn count(&self, whole: &[u8]) -> usize {
        let of_whole = whole_hash(&self.name, whole);
        let groups = self.groups.iter().filter(|(head, _)| head.of_whole == of_whole);
        groups.map(|(_, group)| group.payloads.len()).max().unwrap_or(0)
    }
}

/// Whether a whole has the hash that its pieces say, and all pieces of it the hashes of their list: one who makes a list that
/// some pieces fit and others do not would show different readers different things.
fn is_of(head: &Head, name: &str, whole: &[u8]) -> bool {
    let hashes = || (0..).zip(payloads(head.code, whole)).map(|(i, it)| piece_hash(i, &it));
    whole_hash(name, whole) == head.of_whole && hashes().eq(head.of_pieces.iter().copied())
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
