//! What a session keeps of an answer, as bytes of an observation: written here, read here. What the transaction *asked* is
//! not in them; that is made again from its number ([`crate::workload`]), also of those that were never answered.
//!
//! All begin with a byte that says which it is. Numbers are varints (LEB128) unless a width is given; widths are
//! little-endian.
//!
//! | first | then |
//! | --- | --- |
//! | 1, list-append | of each read, in the transaction's order: *length* of the list; if it is not 0, *hash* of the list (8 bytes), and *shown*, how many of its last elements follow; if there are some and not all, *hash* of what stands before them (8 bytes); the elements (4 bytes each) |
//! | 2, bank, a transfer | 1 byte: 1 the money was moved, 0 there was not enough |
//! | 3, bank, a read | how many accounts, and of each the balance (zigzag, so that one below nothing can be told) |
//! | 4, key-value | how many results, and of each 0 (no such key), or 1, the length of the value and the value |
//!
//! A session shows of each list only what it has not shown before, so that an observation does not grow with the lists;
//! hashes are those of [`Prefix`].

use std::collections::HashMap;

use crate::prefix::{Element, GARBAGE, Key, Prefix};

const LISTS: u8 = 1;
const TRANSFER: u8 = 2;
const BALANCES: u8 = 3;
const VALUES: u8 = 4;

/// Bytes that are no observation of this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Lists that one session remembers to have shown; when there are more it begins anew.
const REMEMBERED_MAX: usize = 4_096;

/// How much of each list a session has shown: its side of the first form.
#[derive(Clone, Debug)]
pub struct Shown {
    lists: HashMap<Key, Prefix>,
}

impl Default for Shown {
    /// With all the memory that it will ever need, so that nothing is allocated on the path of a transaction.
    fn default() -> Self {
        Self { lists: HashMap::with_capacity(REMEMBERED_MAX) }
    }
}

impl Shown {
    /// Begins the observation of a transaction of lists in an empty buffer.
    pub fn begin(bytes: &mut Vec<u8>) {
        bytes.push(LISTS);
    }

    /// Adds what the transaction's next read returned. An element that cannot be one of ours is given as
    /// [`GARBAGE`]; see [`element`].
    pub fn read(&mut self, key: Key, list: &[Element], bytes: &mut Vec<u8>) {
        let remembered = self.lists.get(&key).copied().unwrap_or(Prefix::EMPTY);
        let (mut whole, mut before) = (Prefix::EMPTY, None);
        for element in list {
            if whole == remembered {
                before = Some(whole);
            }
            whole = whole.then(*element);
        }
        if whole == remembered {
            before = Some(whole);
        }
        varint(u64::from(whole.len), bytes);
        if whole.len == 0 {
            return;
        }
        bytes.extend_from_slice(&whole.hash.to_le_bytes());
        // Of an older state than was shown nothing new is to be said, but whether it is one cannot be seen here.
        let before = before.unwrap_or(Prefix::EMPTY);
        varint(u64::from(whole.len - before.len), bytes);
        if before.len == whole.len {
            return;
        }
        if before.len > 0 {
            bytes.extend_from_slice(&before.hash.to_le_bytes());
        }
        let new = usize::try_from(before.len).expect("part of a list in memory");
        list[new..].iter().for_each(|element| bytes.extend_from_slice(&element.to_le_bytes()));
        if whole.len > remembered.len {
            self.remember(key, whole);
        }
    }

    fn remember(&mut self, key: Key, whole: Prefix) {
        if self.lists.len() == REMEMBERED_MAX && !self.lists.contains_key(&key) {
            self.lists.clear();
        }
        self.lists.insert(key, whole);
    }
}

/// A number that stood in a list, as an element.
#[must_use]
pub fn element(number: u64) -> Element {
    Element::try_from(number).unwrap_or(GARBAGE)
}

/// What a read of a list returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRead<'a> {
    /// The list.
    pub found: Prefix,
    /// What of it had been shown before.
    pub before: Prefix,
    elements: &'a [u8],
}

impl ListRead<'_> {
    /// The elements behind that.
    pub fn elements(&self) -> impl Iterator<Item = Element> {
        self.elements.as_chunks().0.iter().map(|bytes| Element::from_le_bytes(*bytes))
    }
}

/// The reads of an observation of lists, in their order.
///
/// # Errors
/// If it is none, or its hashes do not fit its elements. Then nothing of it holds.
pub fn lists(bytes: &[u8]) -> Result<Vec<ListRead<'_>>, Malformed> {
    let mut bytes = Bytes::of(bytes, LISTS)?;
    let mut reads = Vec::new();
    while !bytes.0.is_empty() {
        reads.push(bytes.list()?);
    }
    Ok(reads)
}

/// Writes the observation of a transfer.
pub fn put_transfer(was_moved: bool, bytes: &mut Vec<u8>) {
    bytes.extend([TRANSFER, u8::from(was_moved)]);
}

/// Whether money was moved.
///
/// # Errors
/// If these bytes do not say it.
pub fn transfer(bytes: &[u8]) -> Result<bool, Malformed> {
    match bytes {
        [TRANSFER, moved @ (0 | 1)] => Ok(*moved == 1),
        _ => Err(Malformed),
    }
}

/// Writes the observation of a read of all accounts.
pub fn put_balances(balances: &[i64], bytes: &mut Vec<u8>) {
    bytes.push(BALANCES);
    varint(balances.len() as u64, bytes);
    for balance in balances {
        varint((balance.cast_unsigned() << 1) ^ (balance >> 63).cast_unsigned(), bytes);
    }
}

/// What the accounts held.
///
/// # Errors
/// If these bytes do not say it.
pub fn balances(bytes: &[u8]) -> Result<Vec<i64>, Malformed> {
    let mut bytes = Bytes::of(bytes, BALANCES)?;
    let count = bytes.count()?;
    let balance = |zigzag: u64| (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed();
    let balances = (0..count).map(|_| Ok(balance(bytes.varint()?))).collect::<Result<_, _>>()?;
    bytes.end(balances)
}

/// Writes the observation of the values that a key-value transaction returned; nothing = no such key.
pub fn put_values<'a>(
    values: impl ExactSizeIterator<Item = Option<&'a [u8]>>,
    bytes: &mut Vec<u8>,
) {
    bytes.push(VALUES);
    varint(values.len() as u64, bytes);
    for value in values {
        bytes.push(u8::from(value.is_some()));
        if let Some(value) = value {
            varint(value.len() as u64, bytes);
            bytes.extend_from_slice(value);
        }
    }
}

/// The values that a key-value transaction returned.
///
/// # Errors
/// If these bytes do not say it.
pub fn values(bytes: &[u8]) -> Result<Vec<Option<&[u8]>>, Malformed> {
    let mut bytes = Bytes::of(bytes, VALUES)?;
    let count = bytes.count()?;
    let values = (0..count).map(|_| bytes.value()).collect::<Result<_, _>>()?;
    bytes.end(values)
}

/// Reads any bytes as each form, for fuzzing: what is read back and written again says the same.
pub fn fuzz(bytes: &[u8]) {
    if let Ok(reads) = lists(bytes) {
        for read in reads {
            let elements: Vec<Element> = read.elements().collect();
            assert_eq!(read.before.then_all(&elements), read.found);
        }
    }
    if let Ok(was_moved) = transfer(bytes) {
        assert_eq!(transfer(&[TRANSFER, u8::from(was_moved)]), Ok(was_moved));
    }
    if let Ok(read) = balances(bytes) {
        let mut again = Vec::new();
        put_balances(&read, &mut again);
        assert_eq!(balances(&again), Ok(read));
    }
    if let Ok(read) = values(bytes) {
        let mut again = Vec::new();
        put_values(read.iter().copied(), &mut again);
        assert_eq!(values(&again), Ok(read));
    }
}

fn varint(mut number: u64, bytes: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

/// What is left to be read.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn of(bytes: &'a [u8], form: u8) -> Result<Self, Malformed> {
        match bytes {
            [first, rest @ ..] if *first == form => Ok(Self(rest)),
            _ => Err(Malformed),
        }
    }

    fn end<T>(&self, read: T) -> Result<T, Malformed> {
        if self.0.is_empty() { Ok(read) } else { Err(Malformed) }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                return Err(Malformed);
            }
            number |= low << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    /// How many things of at least a byte follow.
    fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
        if count <= self.0.len() { Ok(count) } else { Err(Malformed) }
    }

    fn hash(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?.try_into().map_err(|_| Malformed)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn list(&mut self) -> Result<ListRead<'a>, Malformed> {
        let len = u32::try_from(self.varint()?).map_err(|_| Malformed)?;
        if len == 0 {
            return Ok(ListRead { found: Prefix::EMPTY, before: Prefix::EMPTY, elements: &[] });
        }
        let found = Prefix { len, hash: self.hash()? };
        let shown = u32::try_from(self.varint()?).map_err(|_| Malformed)?;
        if shown == 0 {
            return Ok(ListRead { found, before: found, elements: &[] });
        }
        let before = match len.checked_sub(shown).ok_or(Malformed)? {
            0 => Prefix::EMPTY,
            len => Prefix { len, hash: self.hash()? },
        };
        let bytes = usize::try_from(shown).map_err(|_| Malformed)?.checked_mul(4);
        let read = ListRead { found, before, elements: self.take(bytes.ok_or(Malformed)?)? };
        let says_the_same = read.elements().fold(before, Prefix::then) == found;
        if says_the_same { Ok(read) } else { Err(Malformed) }
    }

    fn value(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.byte()? {
            0 => Ok(None),
            1 => {
                let count = self.count()?;
                self.take(count).map(Some)
            }
            _ => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read back of lists that one session reads after each other.
    fn seen(shown: &mut Shown, key: Key, list: &[Element]) -> (Prefix, Vec<Element>) {
        let mut bytes = Vec::new();
        Shown::begin(&mut bytes);
        shown.read(key, list, &mut bytes);
        let reads = lists(&bytes).unwrap();
        let [read] = reads[..] else { panic!("one read") };
        assert_eq!(read.found, Prefix::of(list));
        (read.before, read.elements().collect())
    }

    /// Claim: a session shows of a list what it has not shown, all of one that goes on otherwise, and nothing of one that
    /// it has shown; of an older state it shows all, and goes on from the longest.
    #[test]
    fn a_session_shows_what_is_new() {
        let mut shown = Shown::default();
        assert_eq!(seen(&mut shown, 1, &[]), (Prefix::EMPTY, vec![]));
        assert_eq!(seen(&mut shown, 1, &[5, 6]), (Prefix::EMPTY, vec![5, 6]));
        assert_eq!(seen(&mut shown, 1, &[5, 6]), (Prefix::of(&[5, 6]), vec![]));
        assert_eq!(seen(&mut shown, 1, &[5, 6, 7]), (Prefix::of(&[5, 6]), vec![7]));
        assert_eq!(seen(&mut shown, 1, &[5]), (Prefix::EMPTY, vec![5]));
        assert_eq!(seen(&mut shown, 1, &[5, 6, 7, 8]), (Prefix::of(&[5, 6, 7]), vec![8]));
        assert_eq!(seen(&mut shown, 1, &[9, 6, 7, 8, 1]).1, [9, 6, 7, 8, 1]);
        assert_eq!(seen(&mut shown, 2, &[GARBAGE]), (Prefix::EMPTY, vec![GARBAGE]));
    }

    /// Claim: a session that has shown as many lists as it remembers shows a new one all the same, and needs no more memory.
    #[test]
    fn memory_is_bounded() {
        let mut shown = Shown::default();
        let room = shown.lists.capacity();
        for key in 0..10_000 {
            assert_eq!(seen(&mut shown, key, &[key]), (Prefix::EMPTY, vec![key]));
        }
        assert!(shown.lists.len() <= REMEMBERED_MAX && shown.lists.capacity() == room);
    }

    /// Claim: every form comes back, and no part of one, no other form and no changed byte of a list is taken for it.
    #[test]
    fn forms_come_back() {
        let mut all = [vec![], vec![], vec![], vec![]];
        Shown::begin(&mut all[0]);
        let mut shown = Shown::default();
        for list in [&[1, 2, 3][..], &[], &[1, 2, 3, 4]] {
            shown.read(7, list, &mut all[0]);
        }
        put_transfer(true, &mut all[1]);
        put_balances(&[0, -1, i64::MAX, i64::MIN], &mut all[2]);
        put_values([Some(&b"ab"[..]), None, Some(b"")].into_iter(), &mut all[3]);
        assert_eq!(lists(&all[0]).unwrap().len(), 3);
        assert_eq!(transfer(&all[1]), Ok(true));
        assert_eq!(balances(&all[2]).unwrap(), [0, -1, i64::MAX, i64::MIN]);
        assert_eq!(values(&all[3]).unwrap(), [Some(&b"ab"[..]), None, Some(b"")]);
        for (n, bytes) in all.iter().enumerate() {
            fuzz(bytes);
            let is_read =
                [lists(bytes).is_ok(), transfer(bytes).is_ok(), balances(bytes).is_ok(), {
                    values(bytes).is_ok()
                }];
            assert_eq!(is_read, [0, 1, 2, 3].map(|form| form == n));
            for cut in 0..bytes.len() {
                fuzz(&bytes[..cut]);
                assert!(
                    n == 0 || transfer(&bytes[..cut]).is_err() && balances(&bytes[..cut]).is_err()
                );
                assert!(values(&bytes[..cut]).is_err());
            }
        }
        for place in 1..all[0].len() {
            let mut changed = all[0].clone();
            changed[place] ^= 0x10;
            fuzz(&changed);
        }
        assert!(balances(&[3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).is_err());
    }
}
