//! The ledger: the entries of the trial's table in the order of their positions, over a fresh connection. Rows are
//! taken as they come, so a ledger of any length takes the memory of a few.

use model::TxId;
use model::facts::LedgerEntry;
use sut::content::letters;
use sut::{Ledger, SutError};

use crate::control::{Control, ControlError, UNDEFINED_TABLE};
use crate::statements::Tables;

/// The entries being read.
pub(crate) struct Entries {
    /// Absent: the table is gone, and all of it.
    control: Option<Control>,
    run_mark: u64,
    right: Vec<u8>,
    /// The row that was taken to see whether there is a table.
    first: Option<Vec<Option<String>>>,
}

impl Entries {
    pub(crate) fn new(mut control: Control, tables: Tables) -> Result<Self, SutError> {
        control.begin(&tables.all_entries()).map_err(|error| failed(&error))?;
        let run_mark = tables.run_mark;
        match control.next_row() {
            Ok(first) => {
                // After the last row nothing more comes.
                let control = first.is_some().then_some(control);
                Ok(Self { control, run_mark, right: Vec::new(), first })
            }
            // A server that lost even the making of the table has lost all entries, by its own word.
            Err(ControlError::Server { code, .. }) if code == UNDEFINED_TABLE => {
                Ok(Self { control: None, run_mark, right: Vec::new(), first: None })
            }
            Err(error) => Err(failed(&error)),
        }
    }

    fn entry(&mut self, row: &[Option<String>]) -> Option<LedgerEntry> {
        let [Some(position), Some(tx), Some(held)] = row else { return None };
        let tx: TxId = tx.parse().ok()?;
        self.right.clear();
        letters(self.run_mark, tx, held.len(), &mut self.right);
        let is_ours = self.right == held.as_bytes();
        Some(LedgerEntry::new(position.parse().ok()?, tx, is_ours))
    }
}

fn failed(error: &ControlError) -> SutError {
    SutError::Ledger(format!("reading the entries: {error}"))
}

impl Ledger for Entries {
    fn next(&mut self, held: &mut Vec<u8>) -> Result<Option<LedgerEntry>, SutError> {
        let row = match (self.first.take(), &mut self.control) {
            (Some(row), _) => Some(row),
            (None, Some(control)) => control.next_row().map_err(|error| failed(&error))?,
            (None, None) => None,
        };
        let Some(row) = row else {
            self.control = None;
            return Ok(None);
        };
        held.extend_from_slice(
            row.last().and_then(Option::as_deref).unwrap_or_default().as_bytes(),
        );
        let entry = self.entry(&row);
        let entry = entry.ok_or_else(|| SutError::Ledger(format!("a row is no entry: {row:?}")))?;
        Ok(Some(entry))
    }

    fn way(&self) -> String {
        "the rows of its table in the order of their positions, over a fresh connection".to_owned()
    }
}
