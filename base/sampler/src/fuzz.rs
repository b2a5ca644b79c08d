//! What the fuzz target plays with: any bytes as a file of events.

use std::io::Cursor;

use crate::{Reader, StageTotals};

/// Reads bytes as a file; what was counted on the way must be what the records say.
pub fn file(bytes: &[u8]) {
    let Ok(mut reader) = Reader::open(Cursor::new(bytes)) else { return };
    let mut counted = vec![StageTotals::default(); reader.head().stages.len()];
    loop {
        let each = |record: &crate::Record| counted[usize::from(record.stage)].add(record);
        if !matches!(reader.next(each), Ok(true)) {
            break;
        }
    }
    if reader.problem().is_none() {
        assert_eq!(reader.totals().stages, counted);
    }
}
