//! Reading the ledger back from a replica, over a connection of its own. Streamed; a ledger of any length takes the memory
//! of one part.

use kv_node::database::transaction::TRANSACTION_BYTES_MAX;
use kv_node::ledger::{HEAD_BYTES, read_entry};
use model::facts::LedgerEntry;
use sut::{Ledger, SutError};

use crate::control::Control;
use crate::session::client_number;

/// The ledger being read.
pub(crate) struct Reader {
    control: Control,
    run_mark: u64,
    from: String,
    /// Where the next part begins.
    next: u64,
    unread: Vec<u8>,
    used: usize,
}

impl Reader {
    /// The ledger of the replica that `control` asks, which is called `from`.
    pub(crate) fn new(control: Control, run_mark: u64, from: String) -> Self {
        Self { control, run_mark, from, next: 0, unread: Vec::new(), used: 0 }
    }

    /// Asks for more; `false`: there is none.
    fn more(&mut self) -> Result<bool, SutError> {
        let from = &self.from;
        if self.unread.len() - self.used > HEAD_BYTES + TRANSACTION_BYTES_MAX {
            return Err(SutError::Ledger(format!(
                "expected an entry of at most {TRANSACTION_BYTES_MAX} bytes from `{from}`, got a longer one"
            )));
        }
        let part = self.control.ledger(self.next).map_err(|error| {
            SutError::Ledger(format!("asking `{from}` for its ledger: {error}"))
        })?;
        if part.bytes.is_empty() && self.next < part.total {
            return Err(SutError::Ledger(format!("`{from}` gives nothing of its ledger any more")));
        }
        self.next += u64::try_from(part.bytes.len()).expect("bounded by the frame");
        self.unread.drain(..self.used);
        self.used = 0;
        self.unread.extend_from_slice(part.bytes);
        Ok(!part.bytes.is_empty())
    }
}

impl Ledger for Reader {
    fn next(&mut self, _content: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        while read_entry(&self.unread[self.used..]).is_none() {
            if !self.more()? {
                return Ok(None);
            }
        }
        let (entry, length) = read_entry(&self.unread[self.used..]).expect("found above");
        self.used += length;
        let client = u32::try_from(entry.client & u64::from(u32::MAX)).expect("masked");
        let is_ours = entry.client == client_number(self.run_mark, client) && entry.sequence > 0;
        let tx = entry.sequence.wrapping_sub(1);
        let is_refused = entry.status != 0;
        Ok(Some(LedgerEntry { is_refused, ..LedgerEntry::new(entry.position, tx, is_ours) }))
    }

    fn way(&self) -> String {
        format!("what `{}` says that it has executed, over a connection of its own", self.from)
    }
}
