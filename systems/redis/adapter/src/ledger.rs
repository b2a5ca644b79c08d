//! What the server holds: its keys by SCAN and their values by MGET, over a connection of its own. A store of keys has
//! no order, and says so.

use std::collections::{HashSet, VecDeque};
use std::io;

use model::TxId;
use model::facts::LedgerEntry;
use sut::content::letters;
use sut::{Ledger, SutError};

use crate::control::Control;
use crate::session::{prefix, transaction};

/// The server's keys being read.
pub(crate) struct Keys {
    control: Control,
    run_mark: u64,
    prefix: String,
    /// The right value.
    right: Vec<u8>,
    of: &'static str,
    /// Where SCAN goes on; `None`: it is through.
    next: Option<u64>,
    /// Read and not given yet.
    found: VecDeque<(Option<TxId>, Vec<u8>)>,
    /// SCAN may say a key twice; a key is there once.
    seen: HashSet<Vec<u8>>,
    position: u64,
}

impl Keys {
    pub(crate) fn new(control: Control, run_mark: u64, of: &'static str) -> Self {
        Self {
            control,
            run_mark,
            prefix: prefix(run_mark),
            right: Vec::new(),
            of,
            next: Some(0),
            found: VecDeque::new(),
            seen: HashSet::new(),
            position: 0,
        }
    }

    fn read_on(&mut self, from: u64) -> io::Result<()> {
        let (next, keys) = self.control.scan(from, &self.prefix)?;
        self.next = (next != 0).then_some(next);
        let new: Vec<Vec<u8>> =
            keys.into_iter().filter(|key| self.seen.insert(key.clone())).collect();
        if new.is_empty() {
            return Ok(());
        }
        for (key, value) in new.iter().zip(self.control.get(&new)?) {
            // One that is gone in between is not held.
            if let Some(value) = value {
                self.found.push_back((transaction(key, &self.prefix), value));
            }
        }
        Ok(())
    }
}

impl Ledger for Keys {
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.found.is_empty() {
            let Some(from) = self.next else { return Ok(None) };
            self.read_on(from)
                .map_err(|error| SutError::Ledger(format!("reading the keys back: {error}")))?;
        }
        let (tx, held) = self.found.pop_front().expect("there is one");
        self.right.clear();
        letters(self.run_mark, tx.unwrap_or(TxId::MAX), held.len(), &mut self.right);
        let is_ours = tx.is_some() && self.right == held;
        content.extend_from_slice(&held);
        let entry = LedgerEntry::new(self.position, tx.unwrap_or(TxId::MAX), is_ours);
        self.position += 1;
        Ok(Some(entry))
    }

    fn ordered_from(&self) -> Option<usize> {
        None
    }

    fn way(&self) -> String {
        format!("the {} keys by SCAN and their values by MGET, over a fresh connection", self.of)
    }
}
