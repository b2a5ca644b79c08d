//! What a session found in the bytes that arrived. The engine stamps all marks of one receipt with the time
//! at which the receipt came out of the kernel.

use model::{Outcome, TxId};

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
    /// What became of it.
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

/// A buffer of findings, reused for every receipt: nothing is allocated on the path of a transaction that
/// did not fail.
#[derive(Debug, Default)]
pub struct Marks {
    list: Vec<Mark>,
    texts: Vec<String>,
    text_count: usize,
    close: bool,
}

impl Marks {
    /// The transaction reached a stage.
    pub fn reached(&mut self, tx: TxId, stage: u8, code: u16, bytes_in: u32) {
        self.list.push(Mark::Reached { tx, stage, code, bytes_in });
    }

    /// The transaction ended without reaching the final stage; `text` is the error as a report would group it
    /// (`404 Not Found`), without ids or addresses that differ each time.
    pub fn ended(&mut self, tx: TxId, outcome: Outcome, code: u16, bytes_in: u32, text: &str) {
        let text = if text.is_empty() { Answer::NO_TEXT } else { self.keep(text) };
        self.list.push(Mark::Ended { tx, answer: Answer { outcome, code, text, bytes_in } });
    }

    /// The connection is to be closed after this receipt (`Connection: close`).
    pub fn close(&mut self) {
        self.close = true;
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
    }

    fn keep(&mut self, text: &str) -> u16 {
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
