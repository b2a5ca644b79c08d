//! The ledger: the trial's keys in the order of the revisions at which they were made, from another member than
//! the load began with, by ranges that the member answers once it knows that it lags none (linearizable reads).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use model::TxId;
use model::facts::LedgerEntry;
use serde_json::{Value, json};
use sut::{Ledger, SutError};

use crate::gateway::{base64, bytes_of, prefix, transaction, value};
use crate::members::ask;

/// Keys of one range.
const PART: u32 = 2_000;

/// The keys being read.
pub(crate) struct Keys {
    member: SocketAddr,
    run_mark: u64,
    prefix: String,
    /// The revision that the next part begins at; `None`: all were read.
    next: Option<u64>,
    held: VecDeque<(LedgerEntry, Vec<u8>)>,
}

impl Keys {
    /// The keys at a member, whose first part is read at once: a member that cannot serve says so.
    pub(crate) fn new(member: SocketAddr, run_mark: u64) -> io::Result<Self> {
        let (prefix, held) = (prefix(run_mark), VecDeque::new());
        let mut keys = Self { member, run_mark, prefix, next: Some(1), held };
        keys.more()?;
        Ok(keys)
    }

    fn more(&mut self) -> io::Result<()> {
        let Some(from) = self.next else { return Ok(()) };
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            base64(bytes, &mut out);
            String::from_utf8(out).expect("letters")
        };
        // The end of a range is the first key that has no such beginning.
        let mut end = self.prefix.clone().into_bytes();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let body = json!({
            "key": text(self.prefix.as_bytes()), "range_end": text(&end), "limit": PART.to_string(),
            "min_create_revision": from.to_string(), "sort_target": "CREATE", "sort_order": "ASCEND",
        });
        let answer = ask(self.member, "/v3/kv/range", &body.to_string())?;
        let found = answer["kvs"].as_array().cloned().unwrap_or_default();
        let mut last = from;
        for key in &found {
            let entry = self.entry(key);
            let (entry, held, times) =
                entry.ok_or_else(|| io::Error::other(format!("a key that is none: {key}")))?;
            last = entry.position;
            // A key that was put twice is there once, and says so.
            for _ in 0..times {
                self.held.push_back((entry, held.clone()));
            }
        }
        let is_all = answer["more"].as_bool() != Some(true);
        self.next = (!is_all && !found.is_empty()).then_some(last + 1);
        Ok(())
    }

    fn entry(&self, key: &Value) -> Option<(LedgerEntry, Vec<u8>, u64)> {
        let number = |name: &str| key[name].as_str()?.parse::<u64>().ok();
        let name = bytes_of(key["key"].as_str()?)?;
        // A value of no bytes is left out.
        let held = bytes_of(key["value"].as_str().unwrap_or_default())?;
        let tx = transaction(&name, &self.prefix);
        let mut right = Vec::new();
        value(self.run_mark, tx.unwrap_or(TxId::MAX), held.len(), &mut right);
        let is_ours = tx.is_some() && right == held;
        let entry = LedgerEntry::new(number("create_revision")?, tx.unwrap_or(TxId::MAX), is_ours);
        Some((entry, held, number("version")?))
    }
}

impl Ledger for Keys {
    fn next(&mut self, content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while self.held.is_empty() {
            if self.next.is_none() {
                return Ok(None);
            }
            self.more().map_err(|error| SutError::Ledger(format!("reading the keys: {error}")))?;
        }
        let Some((entry, mut held)) = self.held.pop_front() else { return Ok(None) };
        content.append(&mut held);
        Ok(Some(entry))
    }

    fn way(&self) -> String {
        format!(
            "the keys by linearizable ranges from the member at {}, in the order of their revisions",
            self.member
        )
    }
}
