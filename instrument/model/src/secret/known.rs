//! Known secrets, and their removal from text, documents and bytes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

use super::MARK;
use super::decoded::Decoded;
use super::forms::{SEARCHED_MIN, enough, forms};

/// The most values that are searched for. Targets may have a token each; what is beyond is still kept out of every file
/// by its place, and is counted.
const VALUES_MAX: usize = 2_000;
/// The shortest line of a value of several lines (a key in PEM) that is searched for by itself, in bytes.
const LINE_BYTES_MIN: usize = 16;

/// Bytes that a form is first known by.
const START_BYTES: usize = 4;
/// How often escapes are undone: an error in JSON that quotes a URL that holds a URL is three deep.
const LAYERS_MAX: usize = 3;
/// Bytes that one byte of a form may be written as: a reference with eight digits.
const WRITTEN_BYTES_MAX: usize = 12;

/// The secrets that this process knows. Nothing is locked where it knows none.
static KNOWN: LazyLock<RwLock<Secrets>> = LazyLock::new(RwLock::default);
static HAS_ANY: AtomicBool = AtomicBool::new(false);

/// Secret values, and what is searched for.
///
/// The search goes over the bytes once for each layer of escapes, however many values there are: a form is looked at
/// only where its first bytes stand.
#[derive(Default)]
pub struct Secrets {
    values: HashSet<String>,
    /// All forms, in lower case.
    forms: Vec<Form>,
    known: HashSet<Vec<u8>>,
    /// Parts of forms by their first bytes.
    by_start: HashMap<[u8; START_BYTES], Vec<Part>>,
    /// Which pairs of bytes any part begins with; empty = no form.
    begins: Vec<bool>,
    form_bytes_max: usize,
    /// Values that are not searched for. They come again and again, and are one each.
    left_out: HashSet<String>,
}

/// One form of a value, and how much of it, from its beginning or to its end, is taken for it.
struct Form {
    bytes: Vec<u8>,
    enough: usize,
}

/// The beginning of a form, or the part that it must end with to be known when its beginning is cut off.
#[derive(Clone, Copy)]
struct Part {
    form: usize,
    at: usize,
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
        // The first and the last line of a key in PEM are everybody's.
        let lines: Vec<&str> =
            lines.filter(|line| *line != value && !line.starts_with("-----")).collect();
        for whole in std::iter::once(value).chain(lines) {
            for bytes in forms(whole) {
                let enough = enough(whole, bytes.len());
                self.add_form(Form { bytes, enough });
            }
        }
    }

    fn add_form(&mut self, form: Form) {
        if !self.known.insert(form.bytes.clone()) {
            return;
        }
        let index = self.forms.len();
        self.form_bytes_max = self.form_bytes_max.max(form.bytes.len());
        self.begins.resize(1 << 16, false);
        let tail = form.bytes.len() - form.enough;
        for at in [0, tail].into_iter().take(if tail == 0 { 1 } else { 2 }) {
            let part = &form.bytes[at..];
            self.begins[pair(part)] = true;
            let start = part.first_chunk().expect("a part has at least six bytes");
            self.by_start.entry(*start).or_default().push(Part { form: index, at });
        }
        self.forms.push(form);
    }

    /// How many values are not searched for: too short, or too many.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// Where values stand, in order, those that overlap as one: in what the bytes are and in what they mean.
    #[must_use]
    pub fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        if self.begins.is_empty() {
            return Vec::new();
        }
        let mut found = self.search(bytes);
        let mut layer = Decoded::of(bytes);
        for _ in 0..LAYERS_MAX {
            let Some(decoded) = layer else { break };
            found.extend(self.search(&decoded.bytes).iter().map(|range| decoded.written(range)));
            layer = Decoded::of(&decoded.bytes).map(|next| next.over(&decoded));
        }
        found.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// Where forms, or enough of them, stand in one layer.
    fn search(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (at, window) in bytes.windows(START_BYTES).enumerate() {
            let lower = [window[0].to_ascii_lowercase(), window[1].to_ascii_lowercase()];
            if !self.begins[pair(&lower)] {
                continue;
            }
            let start = [lower[0], lower[1], window[2], window[3]].map(|b| b.to_ascii_lowercase());
            let Some(parts) = self.by_start.get(&start) else { continue };
            found.extend(parts.iter().filter_map(|part| self.matched(*part, bytes, at)));
        }
        found
    }

    /// The range of the form that a part at `at` belongs to, if enough of it stands there.
    fn matched(&self, part: Part, bytes: &[u8], at: usize) -> Option<Range<usize>> {
        let form = &self.forms[part.form];
        let wanted = &form.bytes[part.at..];
        let alike = |(one, other): &(&u8, &u8)| one.eq_ignore_ascii_case(other);
        let length = bytes[at..].iter().zip(wanted).take_while(alike).count();
        if length < form.enough {
            return None;
        }
        let before = bytes[..at].iter().rev().zip(form.bytes[..part.at].iter().rev());
        Some(at - before.take_while(alike).count()..at + length)
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
            // A part of a form may end within a character.
            let whole = whole_characters(text, range);
            out.push_str(&text[end..whole.start.max(end)]);
            out.push_str(MARK);
            end = whole.end;
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
                out.push_str(inner);
            } else {
                out.push_str(&self.scrub_string(inner));
            }
            let quote = behind.len().min(1);
            out.push_str(&behind[..quote]);
            rest = &behind[quote..];
        }
        out.push_str(rest);
        out.into_bytes()
    }

    /// The inside of a JSON string without them, each taken out with the whole of the escapes that it begins and ends with.
    fn scrub_string(&self, inner: &str) -> String {
        let mut out = String::with_capacity(inner.len());
        let mut end = 0;
        for range in self.find(inner.as_bytes()) {
            let mut whole = whole_characters(inner, range);
            whole.start -= usize::from(is_in_escape(inner, whole.start));
            out.push_str(&inner[end..whole.start.max(end)]);
            out.push_str(MARK);
            if is_in_escape(inner, whole.end) {
                whole.end += 1;
            }
            end = whole_characters(inner, whole).end;
        }
        out.push_str(&inner[end..]);
        out
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

    /// The most bytes that the longest form may be written as; 0 = none.
    #[must_use]
    pub const fn form_bytes_max(&self) -> usize {
        self.form_bytes_max * WRITTEN_BYTES_MAX
    }
}

/// The characters that a range of bytes touches.
fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    let start = (0..=range.start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = (range.end..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    start..end
}

/// Whether an odd number of backslashes stands before a place of a JSON string, so that the escape is not over there.
fn is_in_escape(inner: &str, at: usize) -> bool {
    inner.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
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

    /// Claim: a value is found in every way of writing it that the page on secrets lists, and taken out whole.
    #[test]
    fn every_form_is_taken_out() {
        const VALUE: &str = "Zq7xKp2mWv9-TopSecret_é/42";
        let mut secrets = Secrets::default();
        secrets.add(VALUE);
        let each = |f: &dyn Fn(u8) -> String| VALUE.bytes().map(f).collect::<String>();
        let every =
            |f: &dyn Fn(u32) -> String| VALUE.chars().map(|c| f(u32::from(c))).collect::<String>();
        let percent = each(&|b| format!("%{b:02X}"));
        let swapped = VALUE.chars().map(|c| match c {
            c if c.is_ascii_lowercase() => c.to_ascii_uppercase(),
            c => c.to_ascii_lowercase(),
        });
        let unicode: String = every(&|c| format!("\\u{c:04x}"));
        let texts: Vec<String> = vec![
            VALUE.to_owned(),
            percent.replace('%', "%25"),
            percent.to_ascii_lowercase(),
            percent,
            unicode.replace('\\', "\\\\"),
            unicode,
            every(&|c| format!("\\u{{{c:x}}}")),
            every(&|c| format!("&#{c};")),
            every(&|c| format!("&#x{c:X};")),
            each(&|b| format!("\\x{b:02x}")),
            each(&|b| format!("{b:02x}")),
            each(&|b| format!("{b:02X}")),
            VALUE.to_ascii_uppercase(),
            VALUE.to_ascii_lowercase(),
            swapped.collect(),
            VALUE.chars().rev().collect(),
            VALUE[..VALUE.len() - 1].to_owned(),
            VALUE[..VALUE.len() / 2].to_owned(),
            VALUE[1..].to_owned(),
            VALUE[VALUE.len() - 14..].to_owned(),
        ];
        for text in texts {
            let around = format!("id=7 <{text}> ü");
            let scrubbed = secrets.scrub(&around);
            assert_eq!(scrubbed, "id=7 <<redacted>> ü", "{text}");
        }
        assert_eq!(secrets.scrub("Zq7xKp2mWv"), "Zq7xKp2mWv", "less than half says little");
    }

    /// Claim: what is taken out of a document takes the whole of an escape with it, so that the document still parses.
    #[test]
    fn documents_with_escapes() {
        let mut secrets = Secrets::default();
        secrets.add("new-line-begins-so");
        let document =
            br#"{"a": "x\\new-line-begins-so\\ y", "b": "\new-line-begins-so"}"#.to_vec();
        let scrubbed = secrets.scrub_json(document);
        let value: serde_json::Value = serde_json::from_slice(&scrubbed).unwrap();
        assert_eq!(value["a"], "x\\<redacted>\\ y");
        assert_eq!(value["b"], "<redacted>");
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
