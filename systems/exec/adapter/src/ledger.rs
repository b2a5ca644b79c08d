//! What the system holds, as the program says: lines of entries on the control channel, read as they come.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model::facts::LedgerEntry;
use serde_json::json;
use sut::{Ledger, SutError};

use crate::control::Control;
use crate::line::Entry;

/// The ledger being read.
pub(crate) struct Entries {
    control: Arc<Mutex<Control>>,
    within: Duration,
    stop: Arc<AtomicBool>,
    /// Read and not given yet.
    ahead: VecDeque<Entry>,
    position: u64,
    way: Way,
    /// Whether the last line has come.
    is_over: bool,
}

/// How the program reads it.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// By which way, in words.
    pub(crate) words: String,
    /// Whether the order of entries is that in which they were recorded.
    pub(crate) is_ordered: bool,
}

impl Entries {
    /// Asks for it, and reads the first line.
    pub(crate) fn ask(
        control: Arc<Mutex<Control>>,
        way: Way,
        within: Duration,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, SutError> {
        let asked = control.lock().unwrap_or_else(PoisonError::into_inner).ask("ledger", json!({}));
        asked.map_err(SutError::Ledger)?;
        let ahead = VecDeque::new();
        let mut entries = Self {
            control,
            within,
            stop: Arc::clone(stop),
            ahead,
            position: 0,
            way,
            is_over: false,
        };
        entries.read_on()?;
        Ok(entries)
    }

    /// One more line.
    fn read_on(&mut self) -> Result<(), SutError> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let line = control.answer("ledger", self.within, Some(&self.stop));
        let line = line.map_err(SutError::Ledger)?;
        if let Some(why) = line.refused {
            return Err(SutError::Refused(sut::cut(&why).to_owned()));
        }
        self.ahead.extend(line.entries.unwrap_or_default());
        self.is_over = line.did.is_some();
        Ok(())
    }
}

impl Ledger for Entries {
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.ahead.is_empty() {
            if self.is_over {
                return Ok(None);
            }
            self.read_on()?;
        }
        let entry = self.ahead.pop_front().expect("looked at above");
        let position = self.position;
        self.position += 1;
        content.extend_from_slice(&entry.bytes().map_err(SutError::Ledger)?);
        let is_ours = entry.id.is_some() && !entry.foreign;
        let read = LedgerEntry::new(position, entry.id.unwrap_or(u64::MAX), is_ours);
        Ok(Some(LedgerEntry { is_refused: entry.refused, block: entry.block, ..read }))
    }

    fn ordered_from(&self) -> Option<usize> {
        self.way.is_ordered.then_some(0)
    }

    fn way(&self) -> String {
        self.way.words.clone()
    }
}
