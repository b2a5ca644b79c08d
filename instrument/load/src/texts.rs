//! Texts of errors as indices into the trial's one table. Each worker remembers those that it has looked up, so
//! that a transaction which fails costs no lock: when a system is overloaded every transaction does.
//!
//! What is remembered is bounded by the trial's table: when that is full, its last text stands for all others, and
//! a worker that knows the whole table need never ask again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Error texts of a trial; the last one stands for all beyond it.
const ERRORS_MAX: usize = 1_000;
/// The index of that one.
const LAST: u16 = 999;
const _: () = assert!(LAST as usize == ERRORS_MAX - 1);

/// The table of one trial.
#[derive(Default)]
pub(crate) struct Texts(Mutex<Table>);

struct Table {
    texts: Vec<String>,
    index: HashMap<String, u16>,
}

impl Default for Table {
    fn default() -> Self {
        Self { texts: vec![String::new()], index: HashMap::new() }
    }
}

impl Texts {
    /// All of them; index 0 is no error.
    pub(crate) fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).texts.clone()
    }

    /// One thread's copy of the table: nothing yet.
    pub(crate) fn known(&self) -> Known<'_> {
        Known { of: self, index: HashMap::new(), is_whole: false, lookups: 0 }
    }
}

impl Table {
    fn index(&mut self, text: &str) -> u16 {
        if let Some(index) = self.index.get(text) {
            return *index;
        }
        let count = self.texts.len();
        if count == ERRORS_MAX {
            return LAST;
        }
        let text = match count == usize::from(LAST) {
            true => format!("(more than {} different errors)", LAST - 1),
            false => text.to_owned(),
        };
        let index = u16::try_from(count).expect("bounded by ERRORS_MAX");
        self.texts.push(text.clone());
        self.index.insert(text, index);
        index
    }
}

/// One thread's copy of the trial's table.
pub(crate) struct Known<'t> {
    of: &'t Texts,
    index: HashMap<String, u16>,
    /// The table is full, and all of it is known.
    is_whole: bool,
    /// Times that the table itself had to be asked.
    pub lookups: u64,
}

impl Known<'_> {
    /// The index of a text.
    pub(crate) fn index(&mut self, text: &str) -> u16 {
        if text.is_empty() {
            return 0;
        }
        match self.index.get(text) {
            Some(index) => *index,
            None if self.is_whole => LAST,
            None => self.ask(text),
        }
    }

    #[cold]
    fn ask(&mut self, text: &str) -> u16 {
        self.lookups += 1;
        let mut table = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = table.index(text);
        if table.texts.len() == ERRORS_MAX {
            self.index.clone_from(&table.index);
            self.is_whole = true;
        } else {
            self.index.insert(text.to_owned(), index);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: threads agree on a text's index and ask once for each; beyond the bound all texts are one, for which
    /// nobody asks again.
    #[test]
    fn each_text_is_asked_for_once() {
        let texts = Texts::default();
        let (mut one, mut other) = (texts.known(), texts.known());
        assert_eq!((one.index(""), one.index("a"), one.index("b")), (0, 1, 2));
        assert_eq!((other.index("b"), other.index("c"), one.index("c")), (2, 3, 3));
        for _ in 0..100 {
            assert_eq!((one.index("a"), other.index("b")), (1, 2));
        }
        assert_eq!((one.lookups, other.lookups), (3, 2));
        for number in 0..2 * ERRORS_MAX {
            one.index(&format!("text {number}"));
        }
        let asked = one.lookups;
        assert_eq!((one.index("yet another"), one.index("a")), (LAST, 1));
        assert_eq!((one.index("text 0"), one.lookups), (4, asked));
        assert_eq!(texts.list().len(), ERRORS_MAX);
        assert_eq!(texts.list()[usize::from(LAST)], "(more than 998 different errors)");
        assert_eq!((other.index("yet another"), other.index("something else")), (LAST, LAST));
        assert_eq!(other.lookups, 3, "one look at the full table is enough");
    }
}
