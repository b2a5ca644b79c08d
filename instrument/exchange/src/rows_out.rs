//! Rows into texts, written as they come.

use std::io::Write;

use model::{Outcome, Row};

use crate::error::ExchangeError;
use crate::format::{Begin, Columns, Format, PutResult, PutRow, TextForm};
use crate::names::Names;
use crate::rows_in::{Notes, RowsInput};
use crate::vegeta_result::{VegetaRecord, is_bare_success, is_success};

/// Writes rows in one of the formats that stream: csv, ndjson, vegeta-csv, vegeta-ndjson.
///
/// # Errors
/// When the input cannot be read or the output cannot be written, or the format is not one of these.
pub fn write_rows(
    input: RowsInput<'_>,
    format: Format,
    out: &mut dyn Write,
) -> Result<Notes, ExchangeError> {
    let mut writer = match format.declared().text {
        TextForm::Rows { begin, put, .. } => Writer::Rows { begin, put, columns: None },
        TextForm::Results { put, .. } => Writer::Results { put, counts: ResultCounts::default() },
        TextForm::Percentiles { .. } | TextForm::Elsewhere => {
            let why = format!("rows do not stream into {}", format.word());
            return Err(ExchangeError::Refused(why));
        }
    };
    let mut text = Vec::new();
    let mut outside = 0;
    let (names, mut notes) = input.for_each(&mut |names, rows| {
        outside += names.outside(rows);
        text.clear();
        writer.rows(&mut text, names, rows);
        out.write_all(&text).map_err(ExchangeError::writing)
    })?;
    text.clear();
    writer.finish(&mut text, &names, &mut notes);
    notes.say_window(&names, outside);
    out.write_all(&text).and_then(|()| out.flush()).map_err(ExchangeError::writing)?;
    Ok(notes)
}

enum Writer {
    Rows { begin: Begin, put: PutRow, columns: Option<Columns> },
    Results { put: PutResult, counts: ResultCounts },
}

/// Rows of which vegeta's results do not say all.
#[derive(Default)]
struct ResultCounts {
    never_sent: u64,
    bare: u64,
    waited: u64,
    /// Committed with a code or a text of failures, or not committed with a code of successes.
    differ: u64,
}

impl Writer {
    fn rows(&mut self, out: &mut Vec<u8>, names: &Names, rows: &[Row]) {
        match self {
            Self::Rows { begin, put, columns: known } => {
                let columns = known.get_or_insert_with(|| begin(out, names));
                rows.iter().for_each(|row| put(out, columns, row, names));
            }
            Self::Results { put, counts } => {
                for row in rows {
                    let Some(result) = VegetaRecord::of(row, names) else {
                        counts.never_sent += 1;
                        continue;
                    };
                    counts.bare += u64::from(is_bare_success(row));
                    counts.waited += u64::from(row.sent > row.due);
                    let differs = match row.outcome {
                        Outcome::Committed => {
                            !is_success(result.status) || !result.error.is_empty()
                        }
                        _ => is_success(result.status),
                    };
                    counts.differ += u64::from(differs);
                    put(out, &result);
                }
            }
        }
    }

    fn finish(self, out: &mut Vec<u8>, names: &Names, notes: &mut Notes) {
        match self {
            // A file without rows still has its header.
            Self::Rows { begin, columns: None, .. } => drop(begin(out, names)),
            Self::Rows { .. } => {}
            Self::Results { counts: ResultCounts { never_sent, bare, waited, differ }, .. } => {
                if waited > 0 {
                    notes.lines.push(format!(
                        "vegeta records no due time: latencies count from the sending, so the waiting before it, of {waited} \
                         transactions, is not in them"
                    ));
                }
                if never_sent > 0 {
                    notes.lines.push(format!(
                        "{never_sent} transactions were never sent; vegeta has no record for them, and they were left out"
                    ));
                }
                if differ > 0 {
                    notes.lines.push(format!(
                        "{differ} outcomes differ from what vegeta takes their codes for: it counts 200 to 399 as successes, and \
                         a text is an error"
                    ));
                }
                if bare > 0 {
                    notes.lines.push(format!(
                        "{bare} transactions were committed with codes that are not those of HTTP and were written as 200"
                    ));
                }
            }
        }
    }
}
