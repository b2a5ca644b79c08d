//! Checkpoints of the ledger as signed notes (c2sp.org/signed-note, c2sp.org/tlog-checkpoint), over a tree of RFC 6962 whose
//! leaves are the numbers: existing witnesses and verifiers read them.
//!
//! The origin is `object-ledger/NAME`. A leaf is the sequence attestation and the height of its block on the main chain (8
//! bytes, 0: it is not on it). The hashes are those of RFC 6962, without the domains of [`crate::data`].

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::data::{Attestation, Hash, PublicKey};
use crate::keys::Key;

/// A note has at most so many bytes.
pub const NOTE_BYTES_MAX: usize = 64 << 10;
/// Algorithms of signatures in notes: the sequencer's, and a witness's cosignature.
const ED25519_NOTE: u8 = 0x01;
const COSIGNATURE: u8 = 0x04;

/// The origin of a ledger's checkpoints, which is also the name of the sequencer's key in notes.
#[must_use]
pub fn origin(name: &str) -> String {
    format!("object-ledger/{name}")
}

/// The leaf of a number.
#[must_use]
pub fn leaf_of(attestation: &Attestation, height: Option<u64>) -> Vec<u8> {
    [attestation.encoded(), height.unwrap_or(0).to_be_bytes().to_vec()].concat()
}

fn sha256(parts: &[&[u8]]) -> Hash {
    *digest(&SHA256, &parts.concat()).as_ref().first_chunk().expect("SHA-256 has 32 bytes")
}

/// The hash of a leaf (RFC 6962, section 2.1).
#[must_use]
pub fn leaf_hash(leaf: &[u8]) -> Hash {
    sha256(&[&[0], leaf])
}

fn node_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[1], left, right])
}

/// The tree of all numbers: hashes of leaves, and of every full subtree, so that a root is a few of them and not all.
#[derive(Clone, Debug, Default)]
pub struct LogTree {
    /// Roots of full subtrees of 1, 2, 4, … leaves, each row from the left.
    rows: Vec<Vec<Hash>>,
}

impl LogTree {
    /// Adds the leaf of the next number.
    pub fn push(&mut self, leaf: Vec<u8>) {
        let mut hash = leaf_hash(&leaf);
        for level in 0.. {
            if level == self.rows.len() {
                self.rows.push(Vec::new());
            }
            let row = &mut self.rows[level];
            row.push(hash);
            match row.as_slice() {
                [.., left, right] if row.len().is_multiple_of(2) => hash = node_hash(left, right),
                _ => return,
            }
        }
    }

    /// How many leaves it has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.rows.first().map_or(0, |row| row.len() as u64)
    }

    /// The root of its first `size` leaves.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn root(&self, size: u64) -> Hash {
        self.top(self.first(size))
    }

    /// The way from leaf `index` to the root of the first `size` (RFC 6962, section 2.1.1).
    ///
    /// # Panics
    /// If there is no such leaf.
    #[must_use]
    pub fn inclusion(&self, index: u64, size: u64) -> Vec<Hash> {
        assert!(index < size, "a leaf is one of the tree's");
        self.path(self.first(size), usize::try_from(index).expect("it is in memory"))
    }

    /// That the first `old` leaves are the beginning of the first `size` (RFC 6962, section 2.1.2).
    ///
    /// # Panics
    /// If there are fewer, or `old` is 0 or larger.
    #[must_use]
    pub fn consistency(&self, old: u64, size: u64) -> Vec<Hash> {
        assert!(0 < old && old <= size, "a beginning is shorter than the whole");
        self.subproof(self.first(size), usize::try_from(old).expect("it is in memory"), true)
    }

    fn first(&self, size: u64) -> Range<usize> {
        assert!(size <= self.size(), "the tree has so many leaves");
        0..usize::try_from(size).expect("it is in memory")
    }

    /// The root of some leaves, those of a subtree: it begins at a multiple of the power of two that is not below its size.
    fn top(&self, leaves: Range<usize>) -> Hash {
        match leaves.len() {
            0 => sha256(&[]),
            size if size.is_power_of_two() => self.rows[size.ilog2() as usize][leaves.start / size],
            _ => {
                let (left, right) = halves(&leaves);
                node_hash(&self.top(left), &self.top(right))
            }
        }
    }

    fn path(&self, leaves: Range<usize>, index: usize) -> Vec<Hash> {
        if leaves.len() <= 1 {
            return Vec::new();
        }
        let (left, right) = halves(&leaves);
        let (mut way, other) = if index < left.end {
            (self.path(left, index), self.top(right))
        } else {
            (self.path(right, index), self.top(left))
        };
        way.push(other);
        way
    }

    fn subproof(&self, leaves: Range<usize>, old: usize, is_whole: bool) -> Vec<Hash> {
        if old == leaves.end {
            return if is_whole { Vec::new() } else { vec![self.top(leaves)] };
        }
        let (left, right) = halves(&leaves);
        let (mut way, other) = if old <= left.end {
            (self.subproof(left, old, is_whole), self.top(right))
        } else {
            (self.subproof(right, old, false), self.top(left))
        };
        way.push(other);
        way
    }
}

/// Two subtrees: the left one has the largest power of two below the size.
fn halves(leaves: &Range<usize>) -> (Range<usize>, Range<usize>) {
    let middle = leaves.start + leaves.len().next_power_of_two() / 2;
    (leaves.start..middle, middle..leaves.end)
}

/// The root to which a way leads from a leaf (RFC 9162, section 2.1.3.2); `None` if it is none.
#[must_use]
pub fn root_of_inclusion(leaf: Hash, index: u64, size: u64, way: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let (mut at, mut last, mut root) = (index, size - 1, leaf);
    for it in way {
        if last == 0 {
            return None;
        }
        if at & 1 == 1 || at == last {
            root = node_hash(it, &root);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            root = node_hash(&root, it);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    (last == 0).then_some(root)
}

/// Whether a tree with `old` leaves and its root is the beginning of one with `size` (RFC 9162, section 2.1.4.2).
#[must_use]
pub fn is_consistent(old: u64, old_root: &Hash, size: u64, root: &Hash, way: &[Hash]) -> bool {
    if old == size {
        return way.is_empty() && old_root == root;
    }
    if old == 0 || old > size {
        return old == 0 && way.is_empty();
    }
    let mut rest = way.iter();
    let (mut at, mut last) = (old - 1, size - 1);
    while at & 1 == 1 {
        (at, last) = (at >> 1, last >> 1);
    }
    let first = if old.is_power_of_two() { Some(old_root) } else { rest.next() };
    let Some(first) = first else { return false };
    let (mut one, mut two) = (*first, *first);
    for it in rest {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            one = node_hash(it, &one);
            two = node_hash(it, &two);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            two = node_hash(&two, it);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && one == *old_root && two == *root
}

/// The body of a checkpoint.
#[must_use]
pub fn body(name: &str, size: u64, root: &Hash) -> String {
    format!("{}\n{size}\n{}\n", origin(name), BASE64.encode(root))
}

fn key_id(name: &str, algorithm: u8, key: &PublicKey) -> [u8; 4] {
    let hash = sha256(&[name.as_bytes(), b"\n", &[algorithm], key]);
    *hash.first_chunk().expect("it is longer")
}

fn signature_line(name: &str, id: [u8; 4], signature: &[u8]) -> String {
    format!("\u{2014} {name} {}\n", BASE64.encode([&id, signature].concat()))
}

/// A note with a signature of the key that `name` has.
#[must_use]
pub fn signed(body: &str, name: &str, key: &Key) -> String {
    let id = key_id(name, ED25519_NOTE, &key.public());
    format!("{body}\n{}", signature_line(name, id, &key.sign(body.as_bytes())))
}

/// A line that cosigns a note at a time (c2sp.org/tlog-cosignature, version 1).
#[must_use]
pub fn cosignature(body: &str, name: &str, key: &Key, unix_seconds: u64) -> String {
    let id = key_id(name, COSIGNATURE, &key.public());
    let message = format!("cosignature/v1\ntime {unix_seconds}\n{body}");
    let signature = [&unix_seconds.to_be_bytes()[..], &key.sign(message.as_bytes())].concat();
    signature_line(name, id, &signature)
}

/// A checkpoint that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The text that is signed.
    pub body: String,
    /// Where it is from.
    pub origin: String,
    /// How many leaves.
    pub size: u64,
    /// The root of their tree.
    pub root: Hash,
    /// Names and bytes of signatures.
    signatures: Vec<(String, Vec<u8>)>,
}

impl Checkpoint {
    /// Reads a note; who signed it is not looked at.
    #[must_use]
    pub fn parse(note: &str) -> Option<Self> {
        if note.len() > NOTE_BYTES_MAX {
            return None;
        }
        let at = note.rfind("\n\n")?;
        let (body, lines) = (&note[..=at], &note[at + 2..]);
        let mut words = body.lines();
        let origin = words.next()?.to_owned();
        let size_text = words.next()?;
        let size: u64 = size_text.parse().ok().filter(|it: &u64| it.to_string() == size_text)?;
        let root = Hash::try_from(BASE64.decode(words.next()?).ok()?).ok()?;
        let signatures = lines.lines().map(|line| {
            let (name, text) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
            Some((name.to_owned(), BASE64.decode(text).ok()?))
        });
        let signatures = signatures.collect::<Option<Vec<_>>>()?;
        Some(Self { body: body.to_owned(), origin, size, root, signatures })
    }

    /// Whether a key that this name has has signed it.
    #[must_use]
    pub fn is_signed(&self, name: &str, key: &PublicKey) -> bool {
        let id = key_id(name, ED25519_NOTE, key);
        self.of(name, id).any(|it| is_signature(key, self.body.as_bytes(), it))
    }

    /// When a witness has cosigned it; `None`: it has not.
    #[must_use]
    pub fn cosigned(&self, name: &str, key: &PublicKey) -> Option<u64> {
        let id = key_id(name, COSIGNATURE, key);
        self.of(name, id).find_map(|it| {
            let (time, signature) = it.split_first_chunk::<8>()?;
            let seconds = u64::from_be_bytes(*time);
            let message = format!("cosignature/v1\ntime {seconds}\n{}", self.body);
            is_signature(key, message.as_bytes(), signature).then_some(seconds)
        })
    }

    fn of<'a>(&'a self, name: &'a str, id: [u8; 4]) -> impl Iterator<Item = &'a [u8]> {
        let ours = self.signatures.iter().filter(move |(of, _)| of == name);
        ours.filter_map(move |(_, bytes)| bytes.strip_prefix(&id[..]))
    }
}

fn is_signature(key: &PublicKey, message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
}

/// The size that a checkpoint says.
#[must_use]
pub fn size_of(note: &str) -> Option<u64> {
    Checkpoint::parse(note).map(|it| it.size)
}

/// Hashes as lines of base64.
#[must_use]
pub fn lines_of(hashes: &[Hash]) -> String {
    hashes.iter().map(|it| BASE64.encode(it) + "\n").collect()
}

/// A hash of a line of base64.
#[must_use]
pub fn hash_of(line: &str) -> Option<Hash> {
    Hash::try_from(BASE64.decode(line).ok()?).ok()
}

/// Bytes as base64.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Bytes of base64.
#[must_use]
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(count: u8) -> LogTree {
        let mut tree = LogTree::default();
        (0..count).for_each(|it| tree.push(vec![it; 3]));
        tree
    }

    /// Claim: the roots are those of RFC 6962: of nothing, of one leaf, and of the eight leaves of the test vectors of
    /// certificate-transparency's own implementation.
    #[test]
    fn roots() {
        let hex = crate::data::hex;
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(&LogTree::default().root(0)), empty);
        let leaves: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let mut tree = LogTree::default();
        leaves.iter().for_each(|it| tree.push(it.to_vec()));
        let one = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
        assert_eq!(hex(&tree.root(1)), one);
        let all = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328";
        assert_eq!(hex(&tree.root(8)), all);
    }

    /// Claim: every leaf of every tree is proven to be in it and at no other place, every beginning is proven to be one, and
    /// another root, a shorter way or a longer one proves nothing.
    #[test]
    fn proofs() {
        let tree = tree(20);
        for size in 1..=20 {
            let root = tree.root(size);
            for index in 0..size {
                let leaf = leaf_hash(&[u8::try_from(index).unwrap(); 3]);
                let way = tree.inclusion(index, size);
                assert_eq!(root_of_inclusion(leaf, index, size, &way), Some(root));
                let elsewhere = root_of_inclusion(leaf, (index + 1) % size, size, &way);
                assert!(size == 1 || elsewhere != Some(root), "{index} of {size}");
                let longer = [&way[..], &[root]].concat();
                assert_ne!(root_of_inclusion(leaf, index, size, &longer), Some(root));
            }
            for old in 1..=size {
                let (way, old_root) = (tree.consistency(old, size), tree.root(old));
                assert!(is_consistent(old, &old_root, size, &root, &way), "{old} of {size}");
                assert!(!is_consistent(old, &[7; 32], size, &root, &way));
                assert!(!is_consistent(old, &old_root, size, &[7; 32], &way));
                if !way.is_empty() {
                    assert!(!is_consistent(old, &old_root, size, &root, &way[1..]));
                }
            }
        }
    }

    /// Claim: a checkpoint is read as it was written, is signed by its key and cosigned by its witness, and by no other key;
    /// one changed letter is noticed.
    #[test]
    fn checkpoints() {
        let (key, witness) = (Key::of_seed(&[2; 32]), Key::of_seed(&[9; 32]));
        let text = body("tests", 7, &[5; 32]);
        let note = signed(&text, &origin("tests"), &key) + &cosignature(&text, "w", &witness, 99);
        let read = Checkpoint::parse(&note).unwrap();
        assert_eq!(
            (read.size, read.root, read.origin.as_str()),
            (7, [5; 32], "object-ledger/tests")
        );
        assert!(read.is_signed("object-ledger/tests", &key.public()));
        assert!(!read.is_signed("object-ledger/tests", &witness.public()));
        assert_eq!(read.cosigned("w", &witness.public()), Some(99));
        assert_eq!(read.cosigned("w", &key.public()), None);
        let changed = Checkpoint::parse(&note.replace("\n7\n", "\n8\n")).unwrap();
        assert!(!changed.is_signed("object-ledger/tests", &key.public()));
        assert_eq!(changed.cosigned("w", &witness.public()), None);
        for none in ["", "a\nb\n", "a\n07\nAAAA\n\n", "a\n7\nAAAA\n\nx"] {
            assert_eq!(Checkpoint::parse(none), None, "{none:?}");
        }
    }
}
