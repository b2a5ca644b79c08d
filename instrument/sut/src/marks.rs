//! Findings of a session in the bytes that arrived. The engine stamps all marks of one receipt with the time
//! at which the receipt came out of the kernel.

use std::ops::Range;
use std::time::Duration;

use model::observation::{OBSERVATION_BYTES_MAX, Observation, Observations};
use model::{NO_STAMP, Outcome, TxId};

/// One finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The transaction reached a stage of the ladder. Reaching the stage that the experiment calls final ends it.
    Reached {
        /// Which.
        tx: TxId,
        /// Index into [`crate::System::stages`].
        stage: u8,
        /// The system's own code (an HTTP status); 0 where there is none.
        code: u16,
        /// Body bytes of the answer.
        bytes_in: u32,
    },
    /// The transaction ended without reaching the final stage.
    Ended {
        /// Which.
        tx: TxId,
        /// How, and with which code and text.
        answer: Answer,
    },
}

/// How a transaction ended, when it did not simply reach its final stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its outcome.
    pub outcome: Outcome,
    /// The system's own code.
    pub code: u16,
    /// Index of the error's text in the [`Marks`] it came with, or [`Answer::NO_TEXT`].
    pub text: u16,
    /// Body bytes of the answer.
    pub bytes_in: u32,
}

impl Answer {
    /// No error text.
    pub const NO_TEXT: u16 = u16::MAX;
}

/// A transaction that follows another one's answer, of the same client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Index into [`crate::System::kinds`].
    pub kind: u32,
    /// How long after the answer was read it is due.
    pub after: Duration,
}

/// The longest payload of a transaction that follows another one.
pub const FOLLOW_UP_BYTES_MAX: usize = 1 << 20;

/// The longest text of an error that is kept, in characters: what a server says is for people, and there are many.
pub const TEXT_CHARS_MAX: usize = 200;

/// The answer, as words for people: as text, and not longer than is kept.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    // No character is longer than four bytes.
    let some = &bytes[..bytes.len().min(4 * TEXT_CHARS_MAX)];
    let text = String::from_utf8_lossy(some);
    let cut = cut(&text);
    if cut.len() < text.len() || some.len() < bytes.len() {
        format!("{cut}…")
    } else {
        text.into()
    }
}

/// As much of a text as is kept.
#[must_use]
pub fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT_CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}

/// A buffer of findings, reused for every receipt: nothing is allocated on the path of a transaction that
/// did not fail.
#[derive(Debug, Default)]
pub struct Marks {
    list: Vec<Mark>,
    texts: Vec<String>,
    text_count: usize,
    close: bool,
    drain: bool,
    unasked_bytes: u64,
    observations: Observations,
    observations_left_out: u64,
    follow_ups: Vec<(TxId, Next, Range<usize>)>,
    payloads: Vec<u8>,
}

/// The most bytes of observations that one receipt may bring: several times what a receipt is long, for answers that
/// came in many.
const OBSERVED_BYTES_MAX: usize = 1 << 20;

impl Marks {
    /// The transaction reached a stage.
    pub fn reached(&mut self, tx: TxId, stage: u8, code: u16, bytes_in: u32) {
        self.list.push(Mark::Reached { tx, stage, code, bytes_in });
    }

    /// The transaction ended without reaching the final stage; `text` is the error as a report would group it
    /// (`404 Not Found`), without ids or addresses that differ each time; no more than [`TEXT_CHARS_MAX`] of it is kept.
    pub fn ended(&mut self, tx: TxId, outcome: Outcome, code: u16, bytes_in: u32, text: &str) {
        let text = if text.is_empty() { Answer::NO_TEXT } else { self.keep(text) };
        self.list.push(Mark::Ended { tx, answer: Answer { outcome, code, text, bytes_in } });
    }

    /// The transaction was seen to return something: what a read gave, in the system's own form. Kept beside its row,
    /// for checks. A transaction may be observed any number of times. One that is longer than
    /// [`OBSERVATION_BYTES_MAX`], or for which this receipt has no room left, is left out and counted.
    pub fn observed(&mut self, tx: TxId, bytes: &[u8]) {
        let is_too_long = bytes.len() > OBSERVATION_BYTES_MAX;
        if is_too_long || self.observations.byte_count() + bytes.len() > OBSERVED_BYTES_MAX {
            self.observations_left_out += 1;
            return;
        }
        self.observations.push(Observation { tx, at: NO_STAMP, bytes });
    }

    /// Another transaction of its client follows `tx`, which this receipt ends: said before the mark that ends it, and only of
    /// one that was submitted on this connection. `write` appends the payload that a session will be given with it, up to
    /// [`FOLLOW_UP_BYTES_MAX`]; a longer one is not kept, and nothing follows: says so with `false`. Nothing follows either
    /// where the answer came too late, or the load is stopped.
    pub fn follows(&mut self, tx: TxId, next: Next, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let start = self.payloads.len();
        write(&mut self.payloads);
        let end = self.payloads.len();
        if end - start > FOLLOW_UP_BYTES_MAX {
            self.payloads.truncate(start);
            return false;
        }
        self.follow_ups.push((tx, next, start..end));
        true
    }

    /// The follow-up of a transaction, with its payload.
    #[must_use]
    pub fn follow_up(&self, tx: TxId) -> Option<(Next, &[u8])> {
        let (_, next, place) = self.follow_ups.iter().find(|(of, ..)| *of == tx)?;
        Some((*next, &self.payloads[place.clone()]))
    }

    /// Observations, without stamps: the engine puts the receipt's.
    #[must_use]
    pub const fn observations(&self) -> &Observations {
        &self.observations
    }

    /// How many observations were left out.
    #[must_use]
    pub const fn observations_left_out(&self) -> u64 {
        self.observations_left_out
    }

    /// The connection is to be closed after this receipt (`Connection: close`).
    pub fn close(&mut self) {
        self.close = true;
    }

    /// No transaction can follow on the connection, and those that are outstanding are still answered (a GOAWAY): it is closed
    /// when the last of them has ended.
    pub const fn drain(&mut self) {
        self.drain = true;
    }

    /// Whether [`Marks::drain`] was called since the last [`Marks::clear`].
    #[must_use]
    pub const fn wants_drain(&self) -> bool {
        self.drain
    }

    /// So many bytes came that no request had asked for. Said beside the `ProtocolError`, or without one where they do no
    /// harm (after the last answer of a connection that is closing).
    pub const fn unasked(&mut self, bytes: u64) {
        self.unasked_bytes += bytes;
    }

    /// How many bytes came that no request had asked for.
    #[must_use]
    pub const fn unasked_bytes(&self) -> u64 {
        self.unasked_bytes
    }

    /// Whether [`Marks::close`] was called since the last [`Marks::clear`].
    #[must_use]
    pub const fn wants_close(&self) -> bool {
        self.close
    }

    /// The findings, in the order found.
    #[must_use]
    pub fn list(&self) -> &[Mark] {
        &self.list
    }

    /// The text of an answer.
    #[must_use]
    pub fn text(&self, answer: &Answer) -> &str {
        self.texts[..self.text_count].get(usize::from(answer.text)).map_or("", String::as_str)
    }

    /// Empties the buffer and keeps its memory.
    pub fn clear(&mut self) {
        self.list.clear();
        self.text_count = 0;
        self.close = false;
        self.drain = false;
        self.unasked_bytes = 0;
        self.observations.clear();
        self.observations_left_out = 0;
        self.follow_ups.clear();
        self.payloads.clear();
    }

    fn keep(&mut self, text: &str) -> u16 {
        let text = cut(text);
        if let Some(index) = self.texts[..self.text_count].iter().position(|known| known == text) {
            return u16::try_from(index).expect("bounded below");
        }
        let Ok(index) = u16::try_from(self.text_count) else { return Answer::NO_TEXT };
        if index >= 1000 {
            return Answer::NO_TEXT;
        }
        if self.text_count == self.texts.len() {
            self.texts.push(String::new());
        }
        let slot = &mut self.texts[self.text_count];
        slot.clear();
        slot.push_str(text);
        self.text_count += 1;
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: of a text no more is kept than may be, however long, and whatever its characters are.
    #[test]
    fn texts_are_bounded() {
        let mut marks = Marks::default();
        for text in ["x".repeat(100_000), "ü€".repeat(50_000), "short".to_owned()] {
            marks.ended(1, Outcome::Unknown, 0, 0, &text);
            let is_short = shown(text.as_bytes()).chars().count() <= TEXT_CHARS_MAX + 1;
            assert!(is_short && shown(text.as_bytes()).starts_with(&text[..2]));
        }
        let text = |mark: &Mark| match mark {
            Mark::Ended { answer, .. } => marks.text(answer).chars().count(),
            Mark::Reached { .. } => 0,
        };
        let lengths: Vec<usize> = marks.list().iter().map(text).collect();
        assert_eq!(lengths, [TEXT_CHARS_MAX, TEXT_CHARS_MAX, 5]);
        assert_eq!((shown(b"ok"), shown(b"\xff").as_str()), ("ok".to_owned(), "\u{fffd}"));
    }

    /// Claim: what is longer than is kept, and what one receipt has no room left for, is left out and counted; the rest
    /// is there; and the next receipt begins with nothing.
    #[test]
    fn observations_are_bounded() {
        let mut marks = Marks::default();
        let longest = vec![7; OBSERVATION_BYTES_MAX];
        marks.observed(1, &[&longest[..], &[7]].concat());
        let room = u64::try_from(OBSERVED_BYTES_MAX / OBSERVATION_BYTES_MAX).unwrap();
        for tx in 0..room + 3 {
            marks.observed(tx, &longest);
        }
        marks.observed(99, b"");
        assert_eq!(marks.observations_left_out(), 1 + 3);
        let kept: Vec<TxId> = marks.observations().iter().map(|one| one.tx).collect();
        assert_eq!(kept, (0..room).chain([99]).collect::<Vec<_>>());
        marks.clear();
        assert!(marks.observations().is_empty() && marks.observations_left_out() == 0);
    }
}
