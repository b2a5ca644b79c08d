//! Objects as buckets hold them: what pieces make is computed from their own words alone (README, "Data"), beside the code
//! that makes them.

use std::collections::BTreeMap;

use super::source::Source;
use crate::data::{Domain, Hash, Reader, WHOLE_BYTES_MAX, hash};

/// Bytes of a piece before its list of hashes: tag, four bytes about the code, length and hash of the whole.
const BEFORE_LIST: usize = 4 + 4 + 4 + 32;

/// The pieces of an object that exist.
#[derive(Debug)]
pub(super) struct Found {
    /// Everything that its pieces make.
    pub(super) wholes: Vec<Whole>,
    /// How many pieces there are, and what is wrong with others.
    pub(super) words: String,
    /// Pieces that could be read, of whatever.
    pub(super) pieces: usize,
    /// Whether as many buckets as there are could never have enough pieces.
    pub(super) is_too_few_buckets: bool,
}

/// An object that its pieces make.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    /// How many buckets have a right piece of it.
    pub(super) pieces: usize,
    pub(super) required: usize,
    pub(super) total: usize,
    /// Buckets that have something under the name that is no piece of it.
    pub(super) wrong: Vec<usize>,
}

/// The head of a piece: which object it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Of {
    hash: Hash,
    bytes: usize,
    is_full_copy: bool,
    required: u8,
    total: u8,
    list: Vec<Hash>,
}

/// The objects with these names.
pub(super) fn objects(source: &Source, names: &[String]) -> Vec<Found> {
    let copies = source.read(names);
    names.iter().zip(copies).map(|(name, copies)| object(source, name, &copies)).collect()
}

fn object(source: &Source, name: &str, copies: &[Result<Option<Vec<u8>>, String>]) -> Found {
    let mut groups: BTreeMap<Of, BTreeMap<u8, (usize, Vec<u8>)>> = BTreeMap::new();
    let (mut count, mut trouble, mut there) = (0, String::new(), Vec::new());
    for (bucket, copy) in copies.iter().enumerate() {
        match copy {
            Ok(None) => {}
            Err(error) => trouble = format!("; {}/{name}: {error}", source.name(bucket)),
            Ok(Some(bytes)) => {
                there.push(bucket);
                match piece(bytes) {
                    Ok((of, index, payload)) => {
                        count += 1;
                        let group = groups.entry(of).or_default();
                        group.insert(index, (bucket, payload.to_vec()));
                    }
                    Err(why) => trouble = format!("; {}/{name}: {why}", source.name(bucket)),
                }
            }
        }
    }
    let wholes = groups.iter().filter_map(|(of, pieces)| {
        let bytes = rebuild(name, of, pieces)?;
        let is_of = |bucket: &usize| pieces.values().any(|(of, _)| of == bucket);
        Some(Whole {
            bytes,
            pieces: pieces.len(),
            required: of.required.into(),
            total: of.total.into(),
            wrong: there.iter().copied().filter(|it| !is_of(it)).collect(),
        })
    });
    let wholes: Vec<Whole> = wholes.collect();
    let buckets = source.count();
    let words = format!("{count} usable pieces in {buckets} buckets{trouble}");
    let is_too_few_buckets =
        wholes.is_empty() && groups.keys().any(|of| usize::from(of.enough()) > buckets);
    Found { wholes, words, pieces: count, is_too_few_buckets }
}

/// Reads a piece: of what, which, and its payload.
fn piece(bytes: &[u8]) -> Result<(Of, u8, &[u8]), String> {
    let mut reader = Reader::new(bytes);
    let malformed = |why: crate::data::Malformed| format!("no piece: {why}");
    reader.tag(*b"PIE2").map_err(malformed)?;
    let [mode, index, required, total] = reader.array().map_err(malformed)?;
    let whole = usize::try_from(reader.u32().map_err(malformed)?).unwrap_or(usize::MAX);
    let of_whole: Hash = reader.array().map_err(malformed)?;
    let is_possible = mode <= 1
        && 0 < required
        && required <= total
        && index < total
        && (1..=WHOLE_BYTES_MAX).contains(&whole);
    if !is_possible {
        return Err("no piece: a number is out of its range".to_owned());
    }
    let list = (0..total).map(|_| reader.array().map_err(malformed));
    let list = list.collect::<Result<Vec<Hash>, _>>()?;
    let payload = &bytes[BEFORE_LIST + 32 * usize::from(total)..];
    if list[usize::from(index)] != hash(Domain::Piece, &[&[index], payload]) {
        return Err("the piece is corrupted".to_owned());
    }
    let is_full_copy = mode == 1;
    let of = Of { hash: of_whole, bytes: whole, is_full_copy, required, total, list };
    if payload.len() != of.payload_bytes() {
        return Err("the piece has another length than it says".to_owned());
    }
    Ok((of, index, payload))
}

impl Of {
    /// How many pieces make the whole.
    const fn enough(&self) -> u8 {
        if self.is_full_copy { 1 } else { self.required }
    }

    /// A full copy has all bytes, a piece of a code its share, made even.
    fn payload_bytes(&self) -> usize {
        if self.is_full_copy {
            self.bytes
        } else {
            self.bytes.div_ceil(usize::from(self.required)).next_multiple_of(2)
        }
    }
}

/// The object, if there are enough pieces and they make one with the hash that they say.
fn rebuild(name: &str, of: &Of, pieces: &BTreeMap<u8, (usize, Vec<u8>)>) -> Option<Vec<u8>> {
    let length = u32::try_from(name.len()).ok()?.to_be_bytes();
    let is_it =
        |whole: &Vec<u8>| hash(Domain::Whole, &[&length, name.as_bytes(), whole]) == of.hash;
    if of.is_full_copy {
        return pieces.values().map(|(_, whole)| whole).find(|whole| is_it(whole)).cloned();
    }
    let pieces: Vec<(usize, &[u8])> = pieces
        .iter()
        .map(|(index, (_, payload))| (usize::from(*index), payload.as_slice()))
        .collect();
    let some = pieces.get(..usize::from(of.required))?;
    decoded(of, some).filter(is_it)
}

fn decoded(of: &Of, pieces: &[(usize, &[u8])]) -> Option<Vec<u8>> {
    let (required, total) = (usize::from(of.required), usize::from(of.total));
    let (originals, spare): (Vec<_>, Vec<_>) =
        pieces.iter().copied().partition(|(index, _)| *index < required);
    let mut parts: BTreeMap<usize, Vec<u8>> =
        originals.iter().map(|(index, payload)| (*index, payload.to_vec())).collect();
    if !spare.is_empty() {
        let spare = spare.iter().map(|(index, payload)| (index - required, *payload));
        let restored =
            reed_solomon_simd::decode(required, total - required, originals.iter().copied(), spare);
        parts.extend(restored.ok()?);
    }
    let mut whole: Vec<u8> = parts.into_values().flatten().collect();
    let is_padded = whole.len() >= of.bytes && whole[of.bytes..].iter().all(|byte| *byte == 0);
    whole.truncate(of.bytes);
    is_padded.then_some(whole)
}
