//! A set of transaction numbers, one bit a number in pages, of which the highest stay in bounded memory. What it has
//! forgotten it says: no answer is called wrong on a memory with a hole.

use std::collections::BTreeMap;

/// Words of a page: 4,096 numbers.
const PAGE_WORDS: usize = 64;
const PAGE_NUMBERS: u64 = PAGE_WORDS as u64 * 64;
/// Pages of one set: 16 MiB, which are 134 million numbers where each is in it, or an hour of 40,000 a second where a few
/// of each page are.
const PAGES_MAX: usize = 32_768;

/// Numbers that something is true of.
#[derive(Debug)]
pub(crate) struct NumberSet {
    /// By number ÷ [`PAGE_NUMBERS`]; none is without a number.
    pages: BTreeMap<u64, Box<[u64; PAGE_WORDS]>>,
    pages_max: usize,
    /// Of those below this nothing is known any more.
    forgotten: u64,
}

impl Default for NumberSet {
    fn default() -> Self {
        Self::with_pages(PAGES_MAX)
    }
}

impl NumberSet {
    fn with_pages(pages_max: usize) -> Self {
        Self { pages: BTreeMap::new(), pages_max, forgotten: 0 }
    }

    /// Adds a number; the lowest ones are forgotten for it where there is no more room.
    pub(crate) fn insert(&mut self, number: u64) {
        if self.has_forgotten(number) {
            return;
        }
        let (page, word, bit) = place(number);
        self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_WORDS]))[word] |= bit;
        if self.pages.len() > self.pages_max
            && let Some((lowest, _)) = self.pages.pop_first()
        {
            self.forgotten = (lowest + 1) * PAGE_NUMBERS;
        }
    }

    /// Takes a number out. Says whether it was there.
    pub(crate) fn remove(&mut self, number: u64) -> bool {
        let (page, word, bit) = place(number);
        let Some(words) = self.pages.get_mut(&page) else { return false };
        let was_there = words[word] & bit != 0;
        words[word] &= !bit;
        if was_there && words.iter().all(|word| *word == 0) {
            self.pages.remove(&page);
        }
        was_there
    }

    /// Whether a number is known to be there.
    pub(crate) fn holds(&self, number: u64) -> bool {
        let (page, word, bit) = place(number);
        self.pages.get(&page).is_some_and(|words| words[word] & bit != 0)
    }

    /// Whether it cannot tell whether this number was there.
    pub(crate) fn has_forgotten(&self, number: u64) -> bool {
        number < self.forgotten
    }
}

fn place(number: u64) -> (u64, usize, u64) {
    let within = usize::try_from(number % PAGE_NUMBERS).expect("smaller than a page");
    (number / PAGE_NUMBERS, within / 64, 1 << (within % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a number that was put in is there, once, in any order, until there is no room for it; and from then on the
    /// set says that it cannot tell, of that number and of no higher one.
    #[test]
    fn it_says_what_it_has_forgotten() {
        let mut set = NumberSet::with_pages(3);
        let numbers = [5, 4_096, 4_095, 8_200, 2 * 4_096];
        numbers.into_iter().for_each(|number| set.insert(number));
        assert!(numbers.into_iter().all(|number| set.holds(number) && !set.has_forgotten(number)));
        assert!(!set.holds(6) && !set.holds(9 * 4_096));
        assert_eq!([set.remove(8_200), set.remove(8_200), set.holds(8_200)], [true, false, false]);
        set.insert(100 * 4_096);
        assert_eq!([set.has_forgotten(5), set.has_forgotten(4_095)], [true, true]);
        assert_eq!([set.has_forgotten(4_096), set.holds(4_096)], [false, true]);
        set.insert(7);
        assert!(!set.holds(7) && set.pages.len() == 3, "there is no way back");
        // A page without numbers makes room.
        assert!(set.remove(4_096));
        set.insert(200 * 4_096);
        assert_eq!([set.has_forgotten(2 * 4_096), set.holds(2 * 4_096)], [false, true]);
    }
}
