//! The inputs that were spent lately: a set for the block that gathers and one for each of the last few.
//!
//! A set is a table of 64-bit slots (a tag and a place in a list of the names), so that a window of half a million names
//! is looked up in a few megabytes, and the names themselves are only looked at where the tag agrees. Names are SHA-256 and
//! need no hashing, but whoever sends them chooses them: they are mixed with a secret of the process before they choose a
//! slot. What is in a set never depends on the secret.

use std::collections::VecDeque;

use crate::protocol::Hash;

/// What names are mixed with: drawn at each start.
#[derive(Clone, Copy, Debug)]
pub struct Secret([u64; 4]);

impl Secret {
    /// From a number that nobody outside knows.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut at = seed;
        Self(std::array::from_fn(|_| {
            // SplitMix64 (Steele, Lea, Flood 2014).
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = at;
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        }))
    }

    /// Where a name goes: the high half chooses the slot, the low half is the tag.
    #[inline]
    #[must_use]
    pub fn place(&self, name: &Hash) -> u64 {
        let words = name.as_chunks::<8>().0;
        let word = |at: usize| u64::from_le_bytes(words[at]) ^ self.0[at];
        fold(word(0), word(1)) ^ fold(word(2), word(3))
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// A set of names.
#[derive(Clone, Debug)]
pub struct Set {
    /// Nothing (0), or the tag above the place in `names`, counted from 1.
    slots: Vec<u64>,
    names: Vec<Hash>,
    /// Times that the table was made anew because it had become too full.
    pub grown: u64,
}

impl Set {
    /// An empty set with room for so many.
    #[must_use]
    pub fn with_room(names: usize) -> Self {
        let slots = (names * 2).next_power_of_two().max(16);
        let mut set = Self { slots: vec![1; slots], names: Vec::with_capacity(names), grown: 0 };
        // Written, so that the pages are there before anything is in a hurry.
        set.slots.fill(0);
        set
    }

    /// The names, in the order in which they came.
    #[must_use]
    pub fn names(&self) -> &[Hash] {
        &self.names
    }

    fn slot(&self, place: u64) -> usize {
        let mask = self.slots.len() - 1;
        (place >> 32) as usize & mask
    }

    /// Reads the slot that a look-up will begin with, so that the memory is on its way: many of these wait together, where
    /// the look-ups would wait one after another.
    #[inline]
    pub fn touch(&self, place: u64) -> u64 {
        self.slots[self.slot(place)]
    }

    /// Whether a name is in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, place: u64, name: &Hash) -> bool {
        let mask = self.slots.len() - 1;
        let mut at = self.slot(place);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return false;
            }
            let is_alike = slot >> 32 == place & 0xffff_ffff;
            if is_alike && self.names[(slot as u32 - 1) as usize] == *name {
                return true;
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a name that is not in it.
    #[inline]
    pub fn insert(&mut self, secret: &Secret, place: u64, name: &Hash) {
        if self.names.len() * 3 >= self.slots.len() * 2 {
            self.grow(secret);
        }
        self.names.push(*name);
        self.fill(place, self.names.len());
    }

    fn fill(&mut self, place: u64, number: usize) {
        let mask = self.slots.len() - 1;
        let mut at = self.slot(place);
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = place << 32 | number as u64;
    }

    fn grow(&mut self, secret: &Secret) {
        self.grown += 1;
        let slots = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(slots, 0);
        let names = std::mem::take(&mut self.names);
        for (name, number) in names.iter().zip(1..) {
            self.fill(secret.place(name), number);
        }
        self.names = names;
    }

    fn clear(&mut self) {
        self.slots.fill(0);
        self.names.clear();
    }
}

/// The sets, the one that gathers first.
#[derive(Clone, Debug)]
pub struct Ring {
    secret: Secret,
    sets: VecDeque<Set>,
}

impl Ring {
    /// Empty sets: one for the block that gathers and `depth` for those before it.
    #[must_use]
    pub fn new(secret: Secret, depth: usize, names: usize) -> Self {
        let sets = (0..=depth).map(|_| Set::with_room(names)).collect();
        Self { secret, sets }
    }

    /// The sets, the one that gathers first.
    pub fn sets(&self) -> impl Iterator<Item = &Set> {
        self.sets.iter()
    }

    /// How many blocks back it goes.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.sets.len() as u64 - 1
    }

    /// Sets memory on its way for a look-up in the first `1 + offset` sets. What it gives is to be kept from being left out.
    #[inline]
    pub fn touch(&self, offset: u64, names: &[Hash]) -> u64 {
        let mut seen = 0;
        for name in names {
            let place = self.secret.place(name);
            for set in self.sets.iter().take(offset as usize + 1) {
                seen ^= set.touch(place);
            }
        }
        seen
    }

    /// Whether a name is in the one that gathers or in the `offset` before it.
    #[inline]
    #[must_use]
    pub fn contains(&self, offset: u64, name: &Hash) -> bool {
        let place = self.secret.place(name);
        self.sets.iter().take(offset as usize + 1).any(|set| set.contains(place, name))
    }

    /// Adds a name that is not there to the set that gathers.
    #[inline]
    pub fn insert(&mut self, name: &Hash) {
        let (secret, set) = (self.secret, &mut self.sets[0]);
        set.insert(&secret, secret.place(name), name);
    }

    /// Adds names to a set: for a snapshot that is read.
    pub(crate) fn insert_into(&mut self, set: usize, name: &Hash) {
        let secret = self.secret;
        self.sets[set].insert(&secret, secret.place(name), name);
    }

    /// A block was made: the oldest set is forgotten, and becomes the one that gathers.
    pub fn rotate(&mut self) {
        self.sets.rotate_right(1);
        self.sets[0].clear();
    }

    /// Times that a table was made anew because it had become too full.
    #[must_use]
    pub fn grown(&self) -> u64 {
        self.sets.iter().map(|set| set.grown).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u64) -> Hash {
        let mut name = [0; 32];
        name[..8].copy_from_slice(&number.to_le_bytes());
        name
    }

    /// Claim: what was added is there and nothing else is, also after a table has grown, and where all names begin alike.
    #[test]
    fn exact() {
        let mut ring = Ring::new(Secret::new(1), 1, 4);
        for number in 0..10_000 {
            assert!(!ring.contains(0, &name(number)));
            ring.insert(&name(number));
            assert!(ring.contains(0, &name(number)));
        }
        assert!(ring.grown() > 5);
        assert_eq!(ring.sets().next().unwrap().names().len(), 10_000);
        assert!((10_000..20_000).all(|number| !ring.contains(1, &name(number))));
        assert_eq!(ring.touch(1, &[name(1 << 40)]) & 1, ring.touch(1, &[name(1 << 40)]) & 1);
    }

    /// Claim: a name is forgotten with its set, after as many blocks as the ring is deep, and is seen before that only by who
    /// looks so far back.
    #[test]
    fn forgotten_in_time() {
        let mut ring = Ring::new(Secret::new(2), 2, 4);
        ring.insert(&name(1));
        ring.rotate();
        assert!(!ring.contains(0, &name(1)) && ring.contains(1, &name(1)));
        ring.rotate();
        assert!(!ring.contains(1, &name(1)) && ring.contains(2, &name(1)));
        ring.rotate();
        assert!(!ring.contains(2, &name(1)));
    }
}
