//! The head that a server sent last. Most servers send the same one again and again, but for the date; then a
//! comparison replaces the parse (`examples/answer_cost.rs` measures both). A match must prove that the parse
//! would have found the same; anything else is no match.

use super::head::{Framing, Signals};

/// The most places in a head that may differ. A head with more (a few request ids and dates) is parsed.
const VARIABLE_MAX: usize = 4;

/// What a head says.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadFacts {
    pub(super) status: u16,
    pub(super) keep_alive: bool,
    /// As the headers give it, before the rules for HEAD, 1xx, 204 and 304.
    pub(super) framing: Option<Framing>,
    pub(super) reason: String,
    /// `Location` of a 3xx.
    pub(super) location: String,
}

/// A head and what it was found to say.
#[derive(Clone, Debug, Default)]
pub(super) struct Learned {
    head: Vec<u8>,
    /// Values that may differ: start and end, in order. They belong to headers that say nothing about
    /// framing, connection or place, so any value of the same length that ends no line means the same head.
    variable: [(usize, usize); VARIABLE_MAX],
    variable_count: usize,
    /// Where the value of the header stands that is watched, if the head has it once.
    pub(super) watched: Option<(usize, usize)>,
    pub(super) facts: HeadFacts,
}

impl Learned {
    /// The length of the head at the beginning of `bytes`, if it is this one.
    pub(super) fn matches(&self, bytes: &[u8]) -> Option<usize> {
        let length = self.head.len();
        if length == 0 || bytes.len() < length {
            return None;
        }
        let mut at = 0;
        for &(start, end) in &self.variable[..self.variable_count] {
            if bytes[at..start] != self.head[at..start] || !stays_in_line(&bytes[start..end]) {
                return None;
            }
            at = end;
        }
        (bytes[at..length] == self.head[at..]).then_some(length)
    }

    /// Takes `head`, whose headers are `headers`, as the one to expect. The values that differ from those of
    /// the last head at the same places are the ones that may differ from now on; the date's always may.
    /// The facts are the caller's to set.
    pub(super) fn learn(&mut self, head: &[u8], headers: &[httparse::Header<'_>]) {
        let mut variable = [(0, 0); VARIABLE_MAX];
        let mut count = 0;
        for header in headers.iter().filter(|header| !Signals::concern(header.name)) {
            let start = header.value.as_ptr() as usize - head.as_ptr() as usize;
            let place = (start, start + header.value.len());
            if count < VARIABLE_MAX && (header.name == "Date" || self.varies(head, place)) {
                variable[count] = place;
                count += 1;
            }
        }
        self.variable = variable;
        self.variable_count = count;
        self.head.clear();
        self.head.extend_from_slice(head);
    }

    /// Whether a value of a head as long as the last one differs from what the last one had in its place, or
    /// was already known to vary.
    fn varies(&self, head: &[u8], place: (usize, usize)) -> bool {
        self.head.len() == head.len()
            && (self.variable[..self.variable_count].contains(&place)
                || self.head[place.0..place.1] != head[place.0..place.1])
    }
}

/// Whether `value` is free of bytes that end a line or that no header may hold. Written without a short cut,
/// so that it compiles to vector instructions.
fn stays_in_line(value: &[u8]) -> bool {
    let bad = |byte: u8| (byte < 0x20 && byte != b'\t') | (byte == 0x7f);
    !value.iter().fold(false, |found, byte| found | bad(*byte))
}
