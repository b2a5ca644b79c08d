//! A session's observations of a transaction's answers for the checks, in the forms of `isolation::observation`. Rows are kept
//! aside until the transaction has committed: what one saw that did not is dropped.

use isolation::observation::{self, Shown};
use isolation::{Element, GARBAGE};
use model::TxId;
use sut::Marks;

use crate::messages::oid;
use crate::workload::Answers;

/// Accounts of a bank at most, and more than that a server does not get rid of.
pub(crate) const BALANCES_MAX: usize = 4_096;

/// A connection's side of it.
#[derive(Default)]
pub(crate) struct Observer {
    shown: Option<Box<Shown>>,
    /// Elements of the lists of the transaction that is being answered, one list after another …
    elements: Vec<Element>,
    /// … each with its key and its end.
    lists: Vec<(u32, usize)>,
    balances: Vec<i64>,
    was_moved: Option<bool>,
    bytes: Vec<u8>,
}

impl Observer {
    /// Forgets what was shown on the connection before.
    pub(crate) fn reset(&mut self) {
        self.shown = None;
        self.begin();
    }

    /// Another transaction is being answered.
    pub(crate) fn begin(&mut self) {
        self.elements.clear();
        self.lists.clear();
        self.balances.clear();
        self.was_moved = None;
    }

    /// A row of a statement that answers lists or balances. Gives whether there may be one.
    pub(crate) fn row(&mut self, of: Answers, rows_before: u32, value: Option<&[u8]>) -> bool {
        match of {
            Answers::List(_) if rows_before == 0 => {
                list(value, &mut self.elements);
                true
            }
            Answers::Balances if self.balances.len() < BALANCES_MAX => {
                // An account that holds nothing that can be read makes the total wrong, as it is.
                let balance = value.and_then(|bytes| bytes.try_into().ok()).map(i64::from_be_bytes);
                self.balances.push(balance.unwrap_or(-1));
                true
            }
            _ => false,
        }
    }

    /// A statement is done.
    pub(crate) fn done(&mut self, of: Answers, tag: &[u8]) {
        match of {
            Answers::Nothing | Answers::Balances => {}
            Answers::Moved => self.was_moved = Some(tag == b"UPDATE 1"),
            Answers::List(key) => self.lists.push((key, self.elements.len())),
        }
    }

    /// The transaction has committed.
    pub(crate) fn committed(&mut self, tx: TxId, marks: &mut Marks) {
        self.bytes.clear();
        if let Some(was_moved) = self.was_moved {
            observation::put_transfer(was_moved, &mut self.bytes);
        } else if !self.balances.is_empty() {
            observation::put_balances(&self.balances, &mut self.bytes);
        } else if !self.lists.is_empty() {
            let shown = self.shown.get_or_insert_default();
            Shown::begin(&mut self.bytes);
            let mut start = 0;
            for (key, end) in &self.lists {
                shown.read(*key, &self.elements[start..*end], &mut self.bytes);
                start = *end;
            }
        } else {
            return;
        }
        marks.observed(tx, &self.bytes);
    }
}

/// The elements of an array of integers in the server's binary form: dimensions, flags, type of element, then of each
/// dimension length and lower bound, then length and bytes of each element. What is none is kept as garbage, so that a
/// check finds it.
fn list(value: Option<&[u8]>, out: &mut Vec<Element>) {
    let start = out.len();
    if value.and_then(|bytes| elements(bytes, out)).is_none() {
        out.truncate(start);
        out.push(GARBAGE);
    }
}

fn elements(bytes: &[u8], out: &mut Vec<Element>) -> Option<()> {
    let mut rest = bytes;
    let mut next = || -> Option<u32> {
        let (word, after) = rest.split_first_chunk()?;
        rest = after;
        Some(u32::from_be_bytes(*word))
    };
    let (dimensions, has_nulls, of) = (next()?, next()?, next()?);
    if (dimensions, has_nulls, of) != (1, 0, oid::INT4) {
        return None;
    }
    let (count, _lower_bound) = (next()?, next()?);
    for _ in 0..count {
        if next()? != 4 {
            return None;
        }
        out.push(observation::element(next()?.into()));
    }
    rest.is_empty().then_some(())
}

#[cfg(test)]
pub(crate) fn binary_list(elements: &[u32]) -> Vec<u8> {
    let count = u32::try_from(elements.len()).unwrap();
    let head = [1, 0, oid::INT4, count, 1];
    let each = elements.iter().flat_map(|element| [4, *element]);
    head.into_iter().chain(each).flat_map(u32::to_be_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a list comes out of the server's form, and what is no list of integers is garbage and not taken for one.
    #[test]
    fn lists_are_read() {
        let read = |bytes: Option<&[u8]>| {
            let mut out = vec![7];
            list(bytes, &mut out);
            out
        };
        let bytes = binary_list(&[3, 1, 2]);
        assert_eq!(read(Some(&bytes)), [7, 3, 1, 2]);
        assert_eq!(read(None), [7, GARBAGE]);
        for cut in 0..bytes.len() {
            assert_eq!(read(Some(&bytes[..cut])), [7, GARBAGE], "{cut}");
        }
        assert_eq!(read(Some(&[&bytes[..], &[0]].concat())), [7, GARBAGE]);
    }
}
