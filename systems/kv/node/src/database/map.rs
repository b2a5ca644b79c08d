//! A map: its entries in an order of their own, which is the same in every replica, and beyond a handful an index of
//! their places. Small maps are searched from the front, which is faster than any hash.

use std::collections::HashMap;

use super::hash::BuildMix;
use super::list::List;
use super::text::Text;

/// Maps of more entries than this have an index.
const SEARCHED_MAX: usize = 16;

/// Entries that are looked at ahead.
const TOUCHED: usize = 4;

/// A value in a map. One cache line.
#[derive(Debug)]
pub struct Entry {
    /// Its key.
    pub key: Text,
    /// The position of the transaction that stored or changed the value itself.
    pub version: u64,
    /// What is stored.
    pub value: Value,
}

/// What can be stored.
#[derive(Debug)]
pub enum Value {
    /// A signed number.
    Integer(i64),
    /// Bytes that are meant as text; nothing checks that they are.
    String(Text),
    /// Bytes.
    Bytes(Text),
    /// A list of integers, strings and bytes.
    List(Box<List>),
    /// A map of any values.
    Map(Box<Map>),
}

/// Entries by key.
#[derive(Debug, Default)]
pub struct Map {
    entries: Vec<Entry>,
    #[expect(
        clippy::box_collection,
        reason = "most maps have none: so it takes them one word and not six"
    )]
    index: Option<Box<HashMap<Text, u32, BuildMix>>>,
}

impl Map {
    /// The entries, in their order: each behind those stored before it, but that the last one takes the place of one that
    /// is deleted.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The version of the first entry; 0 without one.
    #[must_use]
    pub fn first_version(&self) -> u64 {
        self.entries.first().map_or(0, |entry| entry.version)
    }

    /// Reads a little of each of the first entries and of what they hold, as far as two levels down.
    #[must_use]
    pub fn touch(&self) -> u64 {
        let touch = |entry: &Entry| match &entry.value {
            Value::Map(map) => match map.entries.first().map(|entry| &entry.value) {
                Some(Value::List(list)) => list.first_byte(),
                _ => 0,
            },
            Value::List(list) => list.first_byte(),
            Value::Integer(_) | Value::String(_) | Value::Bytes(_) => entry.version,
        };
        self.entries.iter().take(TOUCHED).fold(0, |all, entry| all ^ touch(entry))
    }

    /// The entry of `key`.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.place(key).map(|at| &self.entries[at])
    }

    /// The entry of `key`, to be changed; its key stays.
    pub fn get_mut(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.place(key).map(|at| &mut self.entries[at])
    }

    /// Appends an entry, whose key is not there yet.
    pub fn push(&mut self, entry: Entry) {
        let at = u32::try_from(self.entries.len()).expect("memory ends before");
        if self.entries.capacity() == 0 {
            // Most maps are small; the vector's own first step is four entries.
            self.entries.reserve_exact(1);
        }
        if let Some(index) = &mut self.index {
            index.insert(entry.key.clone(), at);
        }
        self.entries.push(entry);
        if self.index.is_none() && self.entries.len() > SEARCHED_MAX {
            let places = self.entries.iter().zip(0..).map(|(entry, at)| (entry.key.clone(), at));
            self.index = Some(Box::new(places.collect()));
        }
    }

    /// Takes out the entry that was pushed last.
    pub fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop()?;
        self.forget(entry.key.bytes());
        Some(entry)
    }

    /// Takes out the entry of `key`; the last entry takes its place. Gives the place, too.
    pub fn remove(&mut self, key: &[u8]) -> Option<(usize, Entry)> {
        let at = self.place(key)?;
        let entry = self.entries.swap_remove(at);
        self.forget(key);
        self.note(at);
        Some((at, entry))
    }

    /// Undoes a removal: the entry is at `at` again, and the one there at the end.
    pub fn put_back(&mut self, at: usize, entry: Entry) {
        self.push(entry);
        let last = self.entries.len() - 1;
        self.entries.swap(at, last);
        self.note(at);
        self.note(last);
    }

    /// Where in their order the entry of `key` stands.
    #[must_use]
    pub fn place(&self, key: &[u8]) -> Option<usize> {
        match &self.index {
            None => self.entries.iter().position(|entry| entry.key.bytes() == key),
            Some(index) => index.get(key).map(|at| *at as usize),
        }
    }

    fn forget(&mut self, key: &[u8]) {
        if let Some(index) = &mut self.index {
            index.remove(key);
        }
    }

    /// The entry at `at` is there now.
    fn note(&mut self, at: usize) {
        if let (Some(index), Some(entry)) = (&mut self.index, self.entries.get(at)) {
            let at = u32::try_from(at).expect("as in push");
            *index.get_mut(entry.key.bytes()).expect("every key is in the index") = at;
        }
    }
}

/// What the places of an entry, a list and a map count for in the bound on memory.
const ENTRY_BYTES: u64 = 64;
const LIST_BYTES: u64 = 128;
const MAP_BYTES: u64 = 64;

impl Entry {
    /// What it counts for in the bound on memory, with all that is in it: a function of what is stored alone, so that
    /// every replica comes to the same.
    #[must_use]
    pub fn cost(&self) -> u64 {
        ENTRY_BYTES + self.key.heap_bytes() + self.value.cost()
    }
}

impl Value {
    /// As [`Entry::cost`].
    #[must_use]
    pub fn cost(&self) -> u64 {
        match self {
            Self::Integer(_) => 0,
            Self::String(text) | Self::Bytes(text) => text.heap_bytes(),
            Self::List(list) => LIST_BYTES + list.bytes(),
            Self::Map(map) => MAP_BYTES + map.entries.iter().map(Entry::cost).sum::<u64>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Entry {
        let value = Value::Integer(i64::try_from(number).unwrap());
        Entry { key: Text::new(format!("key {number}").as_bytes()), version: number, value }
    }

    fn keys(map: &Map) -> Vec<Text> {
        map.entries().iter().map(|entry| entry.key.clone()).collect()
    }

    /// Claim: an entry is found by its key at every size, with and without an index, and a removal that is undone leaves
    /// every entry where it was.
    #[test]
    fn entries_are_found_and_put_back() {
        let mut map = Map::default();
        for number in 0..40 {
            map.push(entry(number));
            for known in 0..=number {
                let found = map.get(entry(known).key.bytes()).unwrap();
                assert_eq!(found.version, known);
            }
            for victim in 0..=number {
                let before = keys(&map);
                let (at, removed) = map.remove(entry(victim).key.bytes()).unwrap();
                assert!(map.get(removed.key.bytes()).is_none());
                assert_eq!(map.entries().len(), before.len() - 1);
                map.put_back(at, removed);
                assert_eq!(keys(&map), before);
                assert_eq!(map.get(entry(victim).key.bytes()).unwrap().version, victim);
            }
        }
        while let Some(last) = map.pop() {
            assert!(map.get(last.key.bytes()).is_none());
        }
    }

    /// Claim: an entry is one cache line.
    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<Entry>(), 64);
    }
}
