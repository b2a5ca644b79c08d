//! Rows and outcomes that another reader tells of.

use model::{Outcome, Row};
use stats::carry::Carry;

/// An outcome: mine, or the other's.
pub(crate) fn outcome(it: &mut Carry<'_>, mine: Outcome) -> Outcome {
    Outcome::from_code(it.told(mine.code())).unwrap_or_else(|| {
        it.is_foreign();
        mine
    })
}

/// A row: mine, or the other's.
pub(crate) fn row(it: &mut Carry<'_>, mine: &Row) -> Row {
    Row {
        tx: it.told(mine.tx),
        due: it.told(mine.due),
        ready: it.told(mine.ready),
        sent: it.told(mine.sent),
        marks: mine.marks.map(|mark| it.told(mark)),
        end: it.told(mine.end),
        receive_lag: it.told(mine.receive_lag),
        outcome: outcome(it, mine.outcome),
        code: it.told(mine.code),
        error: it.told(mine.error),
        kind: it.told(mine.kind),
        connection: it.told(mine.connection),
        worker: it.told(mine.worker),
        stream: it.told(mine.stream),
        attempts: it.told(mine.attempts),
        client: it.told(mine.client),
        bytes_out: it.told(mine.bytes_out),
        bytes_in: it.told(mine.bytes_in),
    }
}
