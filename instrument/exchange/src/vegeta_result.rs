//! A result of vegeta and a row: what each becomes in the other.
//!
//! vegeta keeps when a request was sent and how long it took. It has no due time, so `due` and `ready` are set
//! to when it was sent, and the waiting that a stalled system causes before the sending is not in such rows.

use model::{NO_STAMP, Outcome, Row};

use crate::names::Names;
use crate::outcome_of_status::{NO_ANSWER, outcome};

/// One result, without its body and its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VegetaRecord<'a> {
    pub(crate) sent_unix_ns: i64,
    pub(crate) status: u16,
    pub(crate) latency_ns: i64,
    pub(crate) bytes_out: u64,
    pub(crate) bytes_in: u64,
    pub(crate) error: &'a str,
    pub(crate) sequence: u64,
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
}

impl VegetaRecord<'_> {
    /// The row, on the line of time that starts at `names.started_unix_ns`.
    pub(crate) fn row(&self, names: &mut Names) -> Result<Row, String> {
        let late = || "its time is out of range".to_owned();
        let sent = self.sent_unix_ns.checked_sub(names.started_unix_ns).ok_or_else(late)?;
        let end = sent.checked_add(self.latency_ns).ok_or_else(late)?;
        let outcome = outcome(self.status, self.error);
        let mut row =
            Row { tx: self.sequence, due: sent, ready: sent, sent, end, outcome, ..Row::EMPTY };
        if outcome == Outcome::Committed {
            row.marks[0] = end;
        }
        row.attempts = 1;
        row.code = self.status;
        if !self.error.is_empty() {
            row.error =
                u16::try_from(names.errors.number(self.error)).expect("bounded by ERRORS_MAX");
        }
        let kind = format!("{} {}", self.method, self.url);
        row.kind = names.kinds.number(kind.trim());
        // Rows count bodies in 32 bits; 4 GiB is more than any body that is read.
        row.bytes_out = u32::try_from(self.bytes_out).unwrap_or(u32::MAX);
        row.bytes_in = u32::try_from(self.bytes_in).unwrap_or(u32::MAX);
        Ok(row)
    }

    /// The result of a row; `None` for what was never sent, of which vegeta has no record.
    pub(crate) fn of<'a>(row: &Row, names: &'a Names) -> Option<VegetaRecord<'a>> {
        if row.sent == NO_STAMP || row.end == NO_STAMP {
            return None;
        }
        let kind = names.kind(row.kind);
        let is_method =
            |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase());
        let (method, url) =
            kind.split_once(' ').filter(|(word, _)| is_method(word)).unwrap_or(("", kind));
        let error = match (names.error(row.error), row.outcome) {
            ("", Outcome::Unknown) => NO_ANSWER,
            // Its code alone would make a success of it.
            ("", Outcome::Rejected(class)) if row.code == 0 || is_success(row.code) => class.word(),
            (text, _) => text,
        };
        Some(VegetaRecord {
            sent_unix_ns: names.started_unix_ns.checked_add(row.sent)?,
            status: if is_bare_success(row) { 200 } else { row.code },
            latency_ns: row.end.checked_sub(row.sent)?,
            bytes_out: row.bytes_out.into(),
            bytes_in: row.bytes_in.into(),
            error,
            sequence: row.tx,
            method,
            url,
        })
    }
}

/// A code that is a success to vegeta.
pub(crate) fn is_success(code: u16) -> bool {
    (200..400).contains(&code)
}

/// Committed by a system whose codes, if it has any, are not those of HTTP; vegeta knows a success by them only.
pub(crate) fn is_bare_success(row: &Row) -> bool {
    row.outcome == Outcome::Committed && !(100..600).contains(&row.code)
}
