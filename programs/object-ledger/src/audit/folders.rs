//! Objects as folders of buckets hold them: a file each, which is a piece; what pieces make is computed from their own
//! words alone (README, "Data").

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::data::{Domain, Hash, Reader, WHOLE_BYTES_MAX, hash, names};

/// Bytes of a piece in front of its own hash: tag, four bytes about the code, length and hash of the whole.
const BEFORE_OWN_HASH: usize = 4 + 4 + 4 + 32;
/// Of so many pieces every choice is tried when the first does not make the object.
const PIECES_MAX: usize = 16;

/// The folders of buckets.
#[derive(Debug)]
pub(super) struct Folders(Vec<PathBuf>);

/// What there is of an object.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) whole: Option<Vec<u8>>,
    /// How many pieces there are, and what is wrong with others.
    pub(super) words: String,
    /// Whether as many folders as there are could never have enough pieces.
    pub(super) is_too_few_folders: bool,
}

/// What a piece says that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Of {
    hash: Hash,
    bytes: usize,
    is_full_copy: bool,
    required: u8,
    total: u8,
}

impl Folders {
    pub(super) fn new(folders: &[String]) -> Self {
        Self(folders.iter().map(PathBuf::from).collect())
    }

    /// The object with this name, if enough usable pieces are there.
    pub(super) fn object(&self, name: &str) -> Found {
        let mut groups: BTreeMap<Of, BTreeMap<u8, Vec<u8>>> = BTreeMap::new();
        let (mut count, mut trouble) = (0, String::new());
        for folder in &self.0 {
            let path = folder.join(name);
            match fs::read(&path) {
                Ok(bytes) => match piece(&bytes) {
                    Ok((of, index, payload)) => {
                        count += 1;
                        groups.entry(of).or_default().insert(index, payload.to_vec());
                    }
                    Err(why) => trouble = format!("; {}: {why}", path.display()),
                },
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => trouble = format!("; {}: {error}", path.display()),
            }
        }
        let whole = groups.iter().find_map(|(of, pieces)| rebuild(name, of, pieces));
        let folders = self.0.len();
        let words = format!("{count} usable pieces in {folders} folders{trouble}");
        let is_too_few_folders =
            whole.is_none() && groups.keys().any(|of| usize::from(of.enough()) > folders);
        Found { whole, words, is_too_few_folders }
    }

    /// Every sequence number of which some folder has a piece.
    pub(super) fn numbers(&self) -> Result<BTreeSet<u64>, String> {
        let mut numbers = BTreeSet::new();
        for folder in &self.0 {
            let path = folder.join("sequence");
            let entries = match fs::read_dir(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(|error| format!("{}: {error}", path.display()))?,
            };
            let of_entry = |entry: fs::DirEntry| {
                names::attestation_number(&format!("sequence/{}", entry.file_name().to_str()?))
            };
            numbers.extend(entries.flatten().filter_map(of_entry));
        }
        Ok(numbers)
    }
}

/// Reads a piece: of what, which, and its payload.
fn piece(bytes: &[u8]) -> Result<(Of, u8, &[u8]), String> {
    let mut reader = Reader::new(bytes);
    let malformed = |why: crate::data::Malformed| format!("no piece: {why}");
    reader.tag(*b"PIE1").map_err(malformed)?;
    let [mode, index, required, total] = reader.array().map_err(malformed)?;
    let whole = usize::try_from(reader.u32().map_err(malformed)?).unwrap_or(usize::MAX);
    let of_whole: Hash = reader.array().map_err(malformed)?;
    let own: Hash = reader.array().map_err(malformed)?;
    let payload = reader.rest();
    let is_possible = mode <= 1
        && 0 < required
        && required <= total
        && index < total
        && (1..=WHOLE_BYTES_MAX).contains(&whole);
    if !is_possible {
        return Err("no piece: a number is out of its range".to_owned());
    }
    if own != hash(Domain::Piece, &[&bytes[..BEFORE_OWN_HASH], payload]) {
        return Err("the piece is corrupted".to_owned());
    }
    let of = Of { hash: of_whole, bytes: whole, is_full_copy: mode == 1, required, total };
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

/// The object, from whichever of the pieces make one with the hash that they say.
fn rebuild(name: &str, of: &Of, pieces: &BTreeMap<u8, Vec<u8>>) -> Option<Vec<u8>> {
    let length = u32::try_from(name.len()).ok()?.to_be_bytes();
    let is_it =
        |whole: &Vec<u8>| hash(Domain::Whole, &[&length, name.as_bytes(), whole]) == of.hash;
    if of.is_full_copy {
        return pieces.values().find(|whole| is_it(whole)).cloned();
    }
    let required = usize::from(of.required);
    let pieces: Vec<(usize, &[u8])> =
        pieces.iter().map(|(index, payload)| (usize::from(*index), payload.as_slice())).collect();
    let first = pieces.get(..required).and_then(|first| decoded(of, first)).filter(is_it);
    if first.is_some() {
        return first;
    }
    // Somebody has put a piece there with right hashes that is of nothing: others may make it.
    let some = &pieces[..pieces.len().min(PIECES_MAX)];
    let choices = 0_u32..1 << some.len();
    let choices = choices.filter(|choice| choice.count_ones() as usize == required);
    let chosen = |choice: u32| {
        let pieces = some.iter().enumerate().filter(move |(at, _)| choice >> at & 1 == 1);
        pieces.map(|(_, piece)| *piece).collect::<Vec<_>>()
    };
    choices.filter_map(|choice| decoded(of, &chosen(choice))).find(is_it)
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
