//! The versions of each list: one order of its elements is settled on by what transactions read, and says of each version
//! who made it and who ended it.

use std::collections::HashMap;

use crate::history::{Effect, History, MicroOp};
use crate::orders::{List, Orders, Stray};
use crate::prefix::{Element, Key, Prefix};
use crate::{NONE, at, small};

/// Orders of one key that are held against each other, at most.
const RIVALS_MAX: usize = 16;

impl Orders {
    /// Joins what came too early. Of lists that say different things that one stays which most reads agree with, so that
    /// one wrong answer does not bring the others under suspicion.
    pub(crate) fn settle(&mut self, history: &History) {
        let mut strays = std::mem::take(&mut self.strays);
        strays.sort_by_key(|stray| (stray.key, stray.from.len));
        let mut rivals: HashMap<Key, Vec<List>> = HashMap::new();
        for Stray { key, from, elements } in strays {
            let list = &mut self.lists[at(key)];
            let others = rivals.entry(key).or_default();
            if std::iter::once(&mut *list).chain(&mut *others).any(|one| one.join(from, &elements))
                || others.len() == RIVALS_MAX
            {
                continue;
            }
            if let Some(base) = std::iter::once(&*list).chain(&*others).find(|one| one.holds(from))
            {
                let mut other = List {
                    elements: base.elements[..at(from.len)].to_vec(),
                    hashes: base.hashes[..at(from.len)].to_vec(),
                };
                assert!(other.join(from, &elements), "it holds what the piece begins behind");
                others.push(other);
            }
        }
        rivals.retain(|_, others| !others.is_empty());
        if !rivals.is_empty() {
            self.elect(&mut rivals, history);
        }
        self.rivals = rivals;
    }

    fn elect(&mut self, rivals: &mut HashMap<Key, Vec<List>>, history: &History) {
        let mut votes: HashMap<Key, Vec<u64>> = HashMap::new();
        for place in history.places().filter(|place| history.effects[at(*place)] == Effect::Certain)
        {
            for op in history.ops_of(place).1 {
                let MicroOp::Read { key, found: Some(found) } = op.get() else { continue };
                let Some(others) = rivals.get(&key) else { continue };
                let votes = votes.entry(key).or_insert_with(|| vec![0; others.len() + 1]);
                let all = std::iter::once(&self.lists[at(key)]).chain(others);
                for (vote, list) in votes.iter_mut().zip(all) {
                    *vote += u64::from(list.holds(found));
                }
            }
        }
        for (key, others) in rivals {
            let Some(votes) = votes.get(key) else { continue };
            // The longest of those with the most votes; of equal ones the first.
            let length = |n: usize| match n.checked_sub(1) {
                None => self.lists[at(*key)].elements.len(),
                Some(other) => others[other].elements.len(),
            };
            let best = (0..votes.len()).rev().max_by_key(|n| (votes[*n], length(*n)));
            if let Some(other) = best.and_then(|best| best.checked_sub(1)) {
                std::mem::swap(&mut self.lists[at(*key)], &mut others[other]);
            }
        }
    }

    /// What there is to know of every version of every list.
    pub(crate) fn versions(&mut self, history: &History) -> Versions {
        // A list in which nothing was seen may have been read as empty.
        self.lists.resize_with(self.lists.len().max(history.keys()), List::default);
        let rivals = std::mem::take(&mut self.rivals);
        Versions { rivals, ..Versions::new(&self.lists, history) }
    }
}

/// Every version of every list, a *slot* each: a list of n elements has n + 1, the empty one first.
pub(crate) struct Versions {
    /// The first slot of each key; one more at the end.
    starts: Vec<u32>,
    hashes: Vec<u64>,
    /// The element that made the version; [`NONE`] for the empty list.
    pub(crate) elements: Vec<Element>,
    /// Who made the version: the writer of its last element that was committed.
    pub(crate) made_by: Vec<u32>,
    /// Who made the next one; [`NONE`] = none, as far as was seen.
    pub(crate) ended_by: Vec<u32>,
    /// Versions that their writer went on from.
    intermediate: Vec<bool>,
    /// How long a list is up to each element; 0 = the element was never seen.
    lengths: Vec<u32>,
    /// Transactions that had their effect: those committed, and those of unknown outcome that were seen.
    pub(crate) is_in: Vec<bool>,
    /// Keys whose lists hold what they should not, with how long a list is that has it.
    pub(crate) spoilt: HashMap<Key, Spoilt>,
    /// Lists that say something else.
    rivals: HashMap<Key, Vec<List>>,
}

/// The shortest lists of a key that hold something wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spoilt {
    /// An element that was never appended there.
    pub(crate) garbage: Option<u32>,
    /// An element that stands there already.
    pub(crate) twice: Option<u32>,
    /// An element of a transaction that was refused.
    pub(crate) refused: Option<u32>,
    /// A refused element, and a committed one behind it.
    pub(crate) dirty: Option<(Element, Element)>,
}

impl Versions {
    fn new(lists: &[List], history: &History) -> Self {
        let slots = lists.iter().map(|list| list.elements.len() + 1).sum();
        let certain = |effect: &Effect| *effect == Effect::Certain;
        let mut versions = Self {
            starts: Vec::with_capacity(lists.len() + 1),
            hashes: Vec::with_capacity(slots),
            elements: Vec::with_capacity(slots),
            made_by: Vec::with_capacity(slots),
            ended_by: vec![NONE; slots],
            intermediate: Vec::with_capacity(slots),
            lengths: vec![0; history.elements()],
            is_in: history.effects.iter().map(certain).collect(),
            spoilt: HashMap::new(),
            rivals: HashMap::new(),
        };
        for (key, list) in lists.iter().enumerate() {
            versions.add(small(key), list, history);
        }
        versions.starts.push(small(versions.elements.len()));
        versions
    }

    fn add(&mut self, key: Key, list: &List, history: &History) {
        let start = self.elements.len();
        self.starts.push(small(start));
        self.push(NONE, Prefix::EMPTY.hash, NONE, false);
        let mut by = NONE;
        for (n, element) in (1..).zip(&list.elements) {
            let mut goes_on = false;
            if let Some((writer, again)) = history.writer(key, *element) {
                let effect = history.effects[at(writer)];
                self.count(key, n, *element, effect);
                if effect != Effect::None {
                    self.is_in[at(writer)] = true;
                    (by, goes_on) = (writer, again);
                }
            } else {
                self.spoilt.entry(key).or_default().garbage.get_or_insert(n);
            }
            self.push(*element, list.hashes[at(n) - 1], by, goes_on);
        }
        let mut next = NONE;
        for slot in (start..self.elements.len()).rev() {
            self.ended_by[slot] = next;
            // Who made it, unless it is what stands there since an earlier version.
            if slot > start && self.made_by[slot] != self.made_by[slot - 1] {
                next = self.made_by[slot];
            }
        }
    }

    fn push(&mut self, element: Element, hash: u64, by: u32, goes_on: bool) {
        self.elements.push(element);
        self.hashes.push(hash);
        self.made_by.push(by);
        self.intermediate.push(goes_on);
    }

    /// An element of the right list: where it stands first, and what it does to those behind it.
    fn count(&mut self, key: Key, len: u32, element: Element, effect: Effect) {
        let length = &mut self.lengths[at(element)];
        if *length != 0 {
            self.spoilt.entry(key).or_default().twice.get_or_insert(len);
            return;
        }
        *length = len;
        if effect == Effect::None {
            let spoilt = self.spoilt.entry(key).or_default();
            if spoilt.refused.is_none() {
                (spoilt.refused, spoilt.dirty) = (Some(len), Some((element, NONE)));
            }
        } else if effect == Effect::Certain
            && let Some(spoilt) = self.spoilt.get_mut(&key)
            && let Some((_, behind)) = &mut spoilt.dirty
            && *behind == NONE
        {
            *behind = element;
        }
    }

    /// The slot of a version, if it is one of the list.
    #[inline]
    pub(crate) fn slot(&self, key: Key, found: Prefix) -> Option<u32> {
        let slot = self.starts.get(at(key))?.checked_add(found.len)?;
        let end = *self.starts.get(at(key) + 1)?;
        (slot < end && self.hashes[at(slot)] == found.hash).then_some(slot)
    }

    /// The slots of a key, first and last; none where no list of it was handed over.
    pub(crate) fn slots(&self, key: Key) -> Option<(u32, u32)> {
        Some((*self.starts.get(at(key))?, *self.starts.get(at(key) + 1)? - 1))
    }

    /// Whether what was read is certainly none of the versions: one of that length is known, or it is of a list that says
    /// something else.
    pub(crate) fn contradicts(&self, key: Key, found: Prefix) -> bool {
        self.slots(key).is_some_and(|(first, last)| found.len <= last - first)
            || self.rivals.get(&key).is_some_and(|all| all.iter().any(|list| list.holds(found)))
    }

    /// How long the list is up to an element; 0 = it was never seen.
    #[inline]
    pub(crate) fn length(&self, element: Element) -> u32 {
        self.lengths[at(element)]
    }

    #[inline]
    pub(crate) fn is_intermediate(&self, slot: u32) -> bool {
        self.intermediate[at(slot)]
    }

    pub(crate) fn count_slots(&self) -> usize {
        self.elements.len()
    }

    pub(crate) fn keys(&self) -> usize {
        self.starts.len() - 1
    }
}
