//! The slowest transactions of each column of time, with their stamps: what a click on a point shows.
//!
//! It must never keep a faster one and drop a slower one of the same column.

use model::outcome::{Class, Outcome};
use model::picture::{SLOWEST_MAX, SlowTransaction, TrialPicture};
use model::row::{NO_STAMP, Stamp};
use serde_json::{Value, json};

use super::arrays::Arrays;

/// Slow transactions of a document. One with its stamps is about 16 bytes deflated, 21 as text: all are below 110 kB.
pub(in crate::html) const SLOW_ROWS_MAX: usize = 5_000;

/// How many slow transactions are kept, so that the document holds at most [`SLOW_ROWS_MAX`].
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Of each column.
    a_column: usize,
    /// Of each trial, where even one a column is too many.
    a_trial: usize,
}

impl Room {
    /// The most of each column that still fits.
    pub(super) fn of(pictures: &[&TrialPicture]) -> Self {
        let total =
            |cap: usize| -> usize { pictures.iter().map(|picture| kept(picture, cap).len()).sum() };
        let fits = (1..=SLOWEST_MAX).rev().find(|cap| total(*cap) <= SLOW_ROWS_MAX);
        match fits {
            Some(a_column) => Self { a_column, a_trial: SLOW_ROWS_MAX },
            None => Self { a_column: 1, a_trial: SLOW_ROWS_MAX / pictures.len().max(1) },
        }
    }

    fn rows(self, picture: &TrialPicture) -> Vec<&SlowTransaction> {
        let mut rows = kept(picture, self.a_column);
        if rows.len() > self.a_trial {
            let length = |it: &&SlowTransaction| it.row.end.saturating_sub(it.row.due);
            rows.sort_by_key(|it| (std::cmp::Reverse(length(it)), it.row.tx));
            rows.truncate(self.a_trial);
        }
        rows
    }
}

/// The slowest `cap` of each column; they come slowest first.
fn kept(picture: &TrialPicture, cap: usize) -> Vec<&SlowTransaction> {
    let mut kept: Vec<&SlowTransaction> = Vec::new();
    let mut of_column = (usize::MAX, 0);
    for it in &picture.slowest {
        if of_column.0 != it.column {
            of_column = (it.column, 0);
        }
        of_column.1 += 1;
        if of_column.1 <= cap {
            kept.push(it);
        }
    }
    kept
}

pub(super) fn slow(picture: &TrialPicture, room: Room, arrays: &mut Arrays) -> Value {
    let mut rows = room.rows(picture);
    rows.sort_by_key(|it| (it.column, it.row.due, it.row.tx));
    let rows = &rows;
    let each = || rows.iter().map(|it| &it.row);
    let column = arrays.counts(rows.iter().map(|it| u64::try_from(it.column).unwrap_or(u64::MAX)));
    let tx = arrays.counts(each().map(|row| row.tx));
    let due = arrays.ints(each().map(|row| row.due));
    let after = |stamp: Stamp, due: Stamp| (stamp != NO_STAMP).then(|| stamp.saturating_sub(due));
    let ready = arrays.maybes(each().map(|row| after(row.ready, row.due)));
    let sent = arrays.maybes(each().map(|row| after(row.sent, row.due)));
    let stages = picture.stages.len().min(model::row::STAGES_MAX);
    let marks: Vec<Value> = (0..stages)
        .map(|stage| arrays.maybes(each().map(|row| after(row.marks[stage], row.due))))
        .collect();
    // After the marks: for a committed transaction it repeats the last of them, which deflate finds.
    let end = arrays.maybes(each().map(|row| after(row.end, row.due)));
    let outcome = arrays.counts(each().map(|row| place(row.outcome)));
    let code = arrays.counts(each().map(|row| u64::from(row.code)));
    let error = arrays.counts(each().map(|row| u64::from(row.error)));
    let kind = arrays.counts(each().map(|row| u64::from(row.kind)));
    let connection = arrays.counts(each().map(|row| u64::from(row.connection)));
    let worker = arrays.counts(each().map(|row| u64::from(row.worker)));
    let stream = arrays.counts(each().map(|row| u64::from(row.stream)));
    json!({
        "column": column, "tx": tx, "due": due, "ready": ready, "sent": sent, "marks": marks, "end": end,
        "outcome": outcome, "code": code, "error": error, "kind": kind, "connection": connection,
        "worker": worker, "stream": stream,
    })
}

/// The words of outcomes, by [`place`].
pub(super) fn outcomes() -> Vec<&'static str> {
    let mut words = vec!["committed"];
    words.extend(Class::ALL.map(Class::word));
    words.extend(["unknown", "shed"]);
    words
}

fn place(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Committed => 0,
        Outcome::Rejected(class) => class as u64,
        Outcome::Unknown => 9,
        Outcome::Shed => 10,
    }
}
