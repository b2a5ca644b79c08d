//! The order of each list's elements, put together from the pieces that clients handed over.

use std::collections::HashMap;

use crate::prefix::{Element, Key, Prefix};
use crate::{at, small};

/// The lists as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    pub(crate) lists: Vec<List>,
    /// What did not join the list of its key when it came.
    pub(crate) strays: Vec<Stray>,
    /// Lists that say something else than the one that was settled on.
    pub(crate) rivals: HashMap<Key, Vec<List>>,
}

/// A list, and the hash of each of its prefixes.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) elements: Vec<Element>,
    pub(crate) hashes: Vec<u64>,
}

/// A piece of a list that could not be joined when it came.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(crate) key: Key,
    pub(crate) from: Prefix,
    pub(crate) elements: Vec<Element>,
}

impl List {
    pub(crate) fn prefix(&self, len: u32) -> Option<Prefix> {
        match len.checked_sub(1) {
            None => Some(Prefix::EMPTY),
            Some(last) => self.hashes.get(at(last)).map(|hash| Prefix { len, hash: *hash }),
        }
    }

    pub(crate) fn holds(&self, prefix: Prefix) -> bool {
        self.prefix(prefix.len) == Some(prefix)
    }

    /// Goes on with a piece, if it begins here and says nothing else.
    pub(crate) fn join(&mut self, from: Prefix, elements: &[Element]) -> bool {
        if !self.holds(from) {
            return false;
        }
        let known = &self.elements[at(from.len)..];
        let common = known.len().min(elements.len());
        if known[..common] != elements[..common] {
            return false;
        }
        let mut prefix = self.prefix(small(self.elements.len())).expect("of the whole list");
        for element in &elements[common..] {
            prefix = prefix.then(*element);
            self.elements.push(*element);
            self.hashes.push(prefix.hash);
        }
        true
    }
}

impl Orders {
    pub(crate) fn list(&mut self, key: Key, from: Prefix, elements: &[Element]) {
        if self.lists.len() <= at(key) {
            self.lists.resize_with(at(key) + 1, List::default);
        }
        if !self.lists[at(key)].join(from, elements) {
            self.strays.push(Stray { key, from, elements: elements.to_vec() });
        }
    }

    pub(crate) fn seen(&self) -> impl Iterator<Item = (Key, Element)> {
        let strays = self.strays.iter().map(|stray| (stray.key, &stray.elements));
        let lists = self.lists.iter().enumerate().map(|(key, list)| (small(key), &list.elements));
        let all = lists.chain(strays);
        all.flat_map(|(key, elements)| elements.iter().map(move |element| (key, *element)))
    }
}
