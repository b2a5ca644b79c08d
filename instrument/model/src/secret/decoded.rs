//! Bytes as they are meant: percent-encoding (RFC 3986), escapes of JSON, JavaScript, Rust, Python and C, and numeric and
//! basic named references of HTML and XML are undone, once, all of them together. It keeps where each byte came from, so
//! that what is found in the meaning can be taken out of the writing.
//!
//! It must never fail: what is no escape stays as it is.

use std::ops::Range;

/// The most digits of a numeric reference.
const DIGITS_MAX: usize = 8;

/// Decoded bytes, and where each stood.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// The first byte of what each was written as, and the first after it.
    from: Vec<u32>,
    until: Vec<u32>,
}

impl Decoded {
    /// Undoes one layer of escapes; `None`: there is nothing to undo.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let first = bytes.iter().position(|byte| matches!(byte, b'%' | b'\\' | b'&'))?;
        u32::try_from(bytes.len()).ok()?;
        let mut all = Self { bytes: Vec::new(), from: Vec::new(), until: Vec::new() };
        let mut at = first;
        let mut has_any = false;
        while at < bytes.len() {
            match escape(&bytes[at..]) {
                Some((length, what)) => {
                    if !has_any {
                        has_any = true;
                        all.plain(bytes, 0..at);
                    }
                    all.push(what, at..at + length);
                    at += length;
                }
                None => {
                    if has_any {
                        all.plain(bytes, at..at + 1);
                    }
                    at += 1;
                }
            }
        }
        has_any.then_some(all)
    }

    /// The same with places in what `before` was decoded from.
    pub(super) fn over(mut self, before: &Self) -> Self {
        for from in &mut self.from {
            *from = before.from[*from as usize];
        }
        for until in &mut self.until {
            *until = before.until[*until as usize - 1];
        }
        self
    }

    /// Where a part of the decoded bytes stood.
    pub(super) fn written(&self, range: &Range<usize>) -> Range<usize> {
        self.from[range.start] as usize..self.until[range.end - 1] as usize
    }

    fn plain(&mut self, bytes: &[u8], range: Range<usize>) {
        for at in range {
            self.bytes.push(bytes[at]);
            self.place(at..at + 1);
        }
    }

    fn push(&mut self, what: What, range: Range<usize>) {
        match what {
            What::Byte(byte) => {
                self.bytes.push(byte);
                self.place(range);
            }
            What::Char(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    self.bytes.push(byte);
                    self.place(range.clone());
                }
            }
        }
    }

    fn place(&mut self, range: Range<usize>) {
        let number = |at| u32::try_from(at).expect("checked against the length");
        self.from.push(number(range.start));
        self.until.push(number(range.end));
    }
}

/// An escape's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Byte(u8),
    Char(char),
}

/// The escape that the bytes begin with, and its length.
fn escape(bytes: &[u8]) -> Option<(usize, What)> {
    match bytes.first()? {
        b'%' => Some((3, byte(number(bytes.get(1..3)?, 16)?)?)),
        b'\\' => backslash(bytes),
        b'&' => reference(bytes),
        _ => None,
    }
}

fn backslash(bytes: &[u8]) -> Option<(usize, What)> {
    let plain = |byte| Some((2, What::Byte(byte)));
    match bytes.get(1)? {
        b'u' if bytes.get(2) == Some(&b'{') => {
            let end = bytes.iter().take(3 + DIGITS_MAX).position(|byte| *byte == b'}')?;
            Some((end + 1, char_of(number(&bytes[3..end], 16)?)?))
        }
        b'u' => {
            let unit = number(bytes.get(2..6)?, 16)?;
            let low = || {
                let next = bytes.get(6..12)?;
                let low = next.starts_with(b"\\u").then(|| number(&next[2..], 16))??;
                (0xdc00..0xe000).contains(&low).then_some(low)
            };
            if (0xd800..0xdc00).contains(&unit) {
                let low = low()?;
                return Some((12, char_of(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))?));
            }
            Some((6, char_of(unit)?))
        }
        b'U' => Some((10, char_of(number(bytes.get(2..10)?, 16)?)?)),
        b'x' => Some((4, byte(number(bytes.get(2..4)?, 16)?)?)),
        b'0'..=b'3' if bytes.get(2..4).is_some_and(|more| number(more, 8).is_some()) => {
            Some((4, byte(number(bytes.get(1..4)?, 8)?)?))
        }
        b'0' => plain(0),
        b'n' => plain(b'\n'),
        b'r' => plain(b'\r'),
        b't' => plain(b'\t'),
        b'b' => plain(8),
        b'f' => plain(12),
        same @ (b'\\' | b'/' | b'"' | b'\'') => plain(*same),
        _ => None,
    }
}

fn reference(bytes: &[u8]) -> Option<(usize, What)> {
    const NAMED: [(&[u8], u8); 5] =
        [(b"&amp;", b'&'), (b"&lt;", b'<'), (b"&gt;", b'>'), (b"&quot;", b'"'), (b"&apos;", b'\'')];
    if bytes.get(1) != Some(&b'#') {
        let (name, byte) = NAMED.into_iter().find(|(name, _)| bytes.starts_with(name))?;
        return Some((name.len(), What::Byte(byte)));
    }
    let is_hex = matches!(bytes.get(2), Some(b'x' | b'X'));
    let (start, radix) = if is_hex { (3, 16) } else { (2, 10) };
    let digits = bytes.get(start..)?;
    let count = digits.iter().take(DIGITS_MAX).take_while(|digit| is_digit(**digit, radix)).count();
    let what = char_of(number(&digits[..count], radix)?)?;
    let end = start + count;
    // Browsers read a reference without its semicolon, too.
    Some((end + usize::from(bytes.get(end) == Some(&b';')), what))
}

fn is_digit(byte: u8, radix: u32) -> bool {
    char::from(byte).is_digit(radix)
}

/// A number of digits alone; `None` of nothing, or of anything else.
fn number(digits: &[u8], radix: u32) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(|digit| is_digit(*digit, radix)) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

fn byte(number: u32) -> Option<What> {
    u8::try_from(number).ok().map(What::Byte)
}

fn char_of(number: u32) -> Option<What> {
    char::from_u32(number).map(What::Char)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> String {
        Decoded::of(text.as_bytes())
            .map_or_else(|| text.to_owned(), |it| String::from_utf8_lossy(&it.bytes).into_owned())
    }

    /// Claim: every escape means what its language says, and what is none stays.
    #[test]
    fn meanings() {
        for (text, meaning) in [
            ("%5a%5A%zz%", "ZZ%zz%"),
            (r"\u005a\u{5a}\x5a\132\U0000005a", "ZZZZZ"),
            (r"\ud83d\ude00 \ud83d", "😀 \\ud83d"),
            (r#"a\/b\"c\\d\n\0\q"#, "a/b\"c\\d\n\0\\q"),
            ("&#90;&#x5a;&#X5A;&#90 &amp;lt;&nope;&#;", "ZZZZ &lt;&nope;&#;"),
            ("nothing", "nothing"),
            ("%", "%"),
            ("\\", "\\"),
            ("&#x110000;", "&#x110000;"),
        ] {
            assert_eq!(decoded(text), meaning, "{text}");
        }
    }

    /// Claim: a place in the meaning is that of all that it was written as, over two layers too.
    #[test]
    fn places() {
        let text = b"a%2541\\u00fcb";
        let once = Decoded::of(text).unwrap();
        assert_eq!(once.bytes, "a%41üb".as_bytes());
        assert_eq!(once.written(&(4..6)), 6..12);
        let twice = Decoded::of(&once.bytes).unwrap().over(&once);
        assert_eq!(twice.bytes, "aAüb".as_bytes());
        assert_eq!(twice.written(&(1..2)), 1..6);
        assert_eq!(twice.written(&(2..5)), 6..13);
        assert!(Decoded::of(&twice.bytes).is_none());
    }
}
