//! Known secrets, and their removal from text, documents and bytes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

use super::MARK;
use super::forms::{SEARCHED_MIN, forms};

/// The most values that are searched for. Targets may have a token each; what is beyond is still kept out of every file
/// by its place, and is counted.
const VALUES_MAX: usize = 2_000;
/// The shortest line of a value of several lines (a key in PEM) that is searched for by itself, in bytes.
const LINE_BYTES_MIN: usize = 16;

/// Bytes that a form is first known by.
const START_BYTES: usize = 4;

/// The secrets that this process knows. Nothing is locked where it knows none.
static KNOWN: LazyLock<RwLock<Secrets>> = LazyLock::new(RwLock::default);
static HAS_ANY: AtomicBool = AtomicBool::new(false);

/// Secret values, and what is searched for.
///
/// The search goes over the bytes once, however many values there are: a form is looked at only where its first bytes
/// stand.
#[derive(Default)]
pub struct Secrets {
    values: HashSet<String>,
    /// Forms by their first bytes.
    by_start: HashMap<[u8; START_BYTES], Vec<Vec<u8>>>,
    /// Which pairs of bytes any form begins with; empty = no form.
    begins: Vec<bool>,
    form_bytes_max: usize,
    /// Values that are not searched for. They come again and again, and are one each.
    left_out: HashSet<String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Adds a value. One that is shorter than six bytes is not searched for: it would be found by chance.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.is_empty() || value == MARK || self.values.contains(value) {
            return;
        }
        if value.len() < SEARCHED_MIN || self.values.len() >= VALUES_MAX {
            self.left_out.insert(value.to_owned());
            return;
        }
        self.values.insert(value.to_owned());
        let lines = value.lines().map(str::trim).filter(|line| line.len() >= LINE_BYTES_MIN);
        let parts: Vec<&str> = lines.filter(|line| *line != value).collect();
        for form in std::iter::once(value).chain(parts).flat_map(forms) {
            self.form_bytes_max = self.form_bytes_max.max(form.len());
            self.begins.resize(1 << 16, false);
            self.begins[pair(&form)] = true;
            let start = form.first_chunk().expect("a form has at least six bytes");
            let alike = self.by_start.entry(*start).or_default();
            if !alike.contains(&form) {
                alike.push(form);
            }
        }
    }

    /// How many values are not searched for: too short, or too many.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// Where values stand, in order, those that overlap as one.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        if self.begins.is_empty() {
            return found;
        }
        for (at, window) in bytes.windows(START_BYTES).enumerate() {
            if !self.begins[pair(window)] {
                continue;
            }
            let Some(alike) = window.first_chunk().and_then(|start| self.by_start.get(start))
            else {
                continue;
            };
            let longest =
                alike.iter().filter(|form| bytes[at..].starts_with(form)).map(Vec::len).max();
            let Some(length) = longest else { continue };
            match found.last_mut() {
                Some(last) if at < last.end => last.end = last.end.max(at + length),
                _ => found.push(at..at + length),
            }
        }
        found
    }

    /// A text with [`MARK`] in the place of each.
    #[must_use]
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = self.find(text.as_bytes());
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for range in found {
            // A value is whole characters, and so is each form; base64 and digits are ASCII.
            out.push_str(&text[end..range.start]);
            out.push_str(MARK);
            end = range.end;
        }
        out.push_str(&text[end..]);
        Cow::Owned(out)
    }

    /// A JSON document with [`MARK`] in the place of each that stands in a text. Names of members that are plain words
    /// stay, so that it still says what it says.
    #[must_use]
    pub fn scrub_json(&self, document: Vec<u8>) -> Vec<u8> {
        if self.find(&document).is_empty() {
            return document;
        }
        let text = String::from_utf8_lossy(&document);
        let mut out = String::with_capacity(text.len());
        let mut rest = &*text;
        while let Some(start) = rest.find('"') {
            out.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            let end = string_end(rest);
            let (inner, behind) = rest.split_at(end);
            let is_word =
                inner.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            let is_name = behind.get(1..).is_some_and(|rest| rest.trim_start().starts_with(':'));
            if is_name && is_word {
                out.push_str(inner)
            } else {
                out.push_str(&self.scrub(inner))
            }
            let quote = behind.len().min(1);
            out.push_str(&behind[..quote]);
            rest = &behind[quote..];
        }
        out.push_str(rest);
        out.into_bytes()
    }

    /// Bytes of the same length with `*` in the place of each.
    #[must_use]
    pub fn mask<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let found = self.find(bytes);
        if found.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut out = bytes.to_vec();
        found.into_iter().for_each(|range| out[range].fill(b'*'));
        Cow::Owned(out)
    }

    /// The longest form that is searched for, in bytes; 0 = none.
    #[must_use]
    pub const fn form_bytes_max(&self) -> usize {
        self.form_bytes_max
    }
}

/// The first two bytes as a number.
fn pair(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 8 | usize::from(bytes[1])
}

/// The end of the inside of a JSON string.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}

/// Makes a value known as secret to the whole process, for good.
pub fn taint(value: &str) {
    if value.trim().is_empty() {
        return;
    }
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).add(value);
    HAS_ANY.store(true, Ordering::Release);
}

/// Whether any secret is known.
#[must_use]
pub fn is_any() -> bool {
    HAS_ANY.load(Ordering::Acquire)
}

/// How many known values are not searched for: shorter than six bytes, or one too many.
#[must_use]
pub fn left_out() -> usize {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).left_out()
}

/// A text without the secrets that are known.
#[must_use]
pub fn scrub(text: &str) -> Cow<'_, str> {
    if !is_any() {
        return Cow::Borrowed(text);
    }
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).scrub(text)
}

/// A JSON document without them; see [`Secrets::scrub_json`].
#[must_use]
pub fn scrub_json(document: Vec<u8>) -> Vec<u8> {
    if !is_any() {
        return document;
    }
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).scrub_json(document)
}

/// Bytes of the same length without them.
#[must_use]
pub fn mask(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !is_any() {
        return Cow::Borrowed(bytes);
    }
    KNOWN.read().unwrap_or_else(PoisonError::into_inner).mask(bytes)
}

/// Shows what is known to somebody who searches by himself: a file that is longer than memory.
pub fn with_known<R>(f: impl FnOnce(&Secrets) -> R) -> R {
    f(&KNOWN.read().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add("hunter2-hunter2");
        secrets.add(" tok/en+99 ");
        secrets.add("abc");
        secrets
    }

    /// Claim: a value is taken out in each of its forms, overlapping ones as one, and what is too short stays and is
    /// counted.
    #[test]
    fn text() {
        let secrets = two();
        assert_eq!(secrets.left_out(), 1);
        assert_eq!(secrets.scrub("abc hunter2"), "abc hunter2");
        let text = "a hunter2-hunter2-hunter2 b tok%2Fen%2B99 c ü";
        assert_eq!(secrets.scrub(text), "a <redacted> b <redacted> c ü");
        assert_eq!(secrets.mask(b"\x00tok/en+99\xff"), &b"\x00*********\xff"[..]);
    }

    /// Claim: a document keeps its shape and the names of its members, even where a secret is one of them.
    #[test]
    fn documents() {
        let mut secrets = two();
        secrets.add("latency");
        let document = br#"{"latency": 1, "say \"latency\"": ["x tok/en+99\n"], "n": 99}"#.to_vec();
        let scrubbed = String::from_utf8(secrets.scrub_json(document)).unwrap();
        assert_eq!(
            scrubbed,
            r#"{"latency": 1, "say \"<redacted>\"": ["x <redacted>\n"], "n": 99}"#
        );
        assert!(serde_json::from_str::<serde_json::Value>(&scrubbed).is_ok());
    }
}
