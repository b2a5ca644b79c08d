//! Rows into the distribution of response times, and to whoever counts more of them. What belongs to the measured
//! window is decided by a transaction's due time, where the input says what the window is; what is reported is the
//! probe's if there is one, the main load's otherwise, as `analysis` does it.

use model::{FinalStages, NO_STAMP, Row};
use stats::Histogram;

use crate::error::ExchangeError;
use crate::percentiles::{Percentiles, of_histogram};
use crate::rows_in::{Notes, RowsInput};

/// What rows amount to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The stream that is reported: 0 the main load, 1 the probe.
    pub stream: u8,
    /// Response times to the final stage of that stream.
    pub percentiles: Percentiles,
    /// Error texts, by the number that rows have for them.
    pub errors: Vec<String>,
}

/// Reads all rows and counts them; those that count, of either stream, are given to `each` as well.
///
/// # Errors
/// When the input cannot be read.
pub fn summarise(
    input: RowsInput<'_>,
    each: &mut dyn FnMut(&Row),
) -> Result<(Summary, Notes), ExchangeError> {
    let mut streams = [Tally::default(), Tally::default()];
    let mut outside = 0_u64;
    let (names, mut notes) = input.for_each(&mut |names, rows| {
        for row in rows {
            if names.window.is_some_and(|(start, end)| row.due < start || row.due >= end) {
                outside += 1;
            } else {
                streams[usize::from(row.stream.min(1))].row(row, names.final_stages);
                each(row);
            }
        }
        Ok(())
    })?;
    if outside > 0 {
        notes.lines.push(format!(
            "{outside} of {} transactions were due outside the measured window and are not counted",
            notes.rows
        ));
    }
    let stream = u8::from(streams[1].due > 0);
    let tally = &streams[usize::from(stream)];
    let stage = names.final_stage_name(stream);
    if tally.without_mark > 0 {
        notes.lines.push(format!(
            "{} of {} transactions never reached {stage} and have no response time",
            tally.without_mark, tally.due
        ));
    }
    let percentiles = of_histogram(&tally.response, stage, tally.due);
    Ok((Summary { stream, percentiles, errors: names.facts().load.errors }, notes))
}

/// One stream.
#[derive(Default)]
struct Tally {
    due: u64,
    without_mark: u64,
    response: Histogram,
}

impl Tally {
    fn row(&mut self, row: &Row, ends: FinalStages) {
        self.due += 1;
        let mark = row.marks[ends.of(row.stream)];
        match mark.checked_sub(row.due) {
            Some(response) if mark != NO_STAMP && row.due != NO_STAMP => {
                self.response.record(response)
            }
            _ => self.without_mark += 1,
        }
    }
}
