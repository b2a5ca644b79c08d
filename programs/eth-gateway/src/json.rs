//! JSON that is passed on as it came: where the parts of a text begin and end, without building a value of it.
//!
//! Blocks and logs go through the gateway byte for byte, so that no quantity loses a digit and nothing is paid for what
//! nobody reads. Nothing here panics, whatever the bytes; [`is_valid`] says beforehand whether they are JSON.

/// Whether the bytes are one JSON value and nothing else.
#[must_use]
pub fn is_valid(text: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

/// Members of the object that the text is: name (as it stands between its quotes) and value. Empty for what is no object.
#[must_use]
pub fn members(text: &[u8]) -> Members<'_> {
    Members(Parts::of(text, b'{'))
}

/// Elements of the array that the text is. Empty for what is no array.
#[must_use]
pub fn elements(text: &[u8]) -> Elements<'_> {
    Elements(Parts::of(text, b'['))
}

/// The value of one member of an object.
#[must_use]
pub fn member<'a>(text: &'a [u8], name: &str) -> Option<&'a [u8]> {
    members(text).find(|(found, _)| *found == name.as_bytes()).map(|(_, value)| value)
}

/// What stands between the quotes of a string without escapes.
#[must_use]
pub fn plain_string(value: &[u8]) -> Option<&str> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let is_plain = !inner.contains(&b'\\') && !inner.contains(&b'"');
    std::str::from_utf8(inner).ok().filter(|_| is_plain)
}

/// See [`members`].
#[derive(Debug)]
pub struct Members<'a>(Parts<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.0.value()?;
        let name = name.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        self.0.skip(b':')?;
        let value = self.0.value()?;
        self.0.part_ended();
        Some((name, value))
    }
}

/// See [`elements`].
#[derive(Debug)]
pub struct Elements<'a>(Parts<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let value = self.0.value()?;
        self.0.part_ended();
        Some(value)
    }
}

/// What is left between the brackets.
#[derive(Debug)]
struct Parts<'a> {
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(text: &'a [u8], opens: u8) -> Self {
        let rest = text.trim_ascii().strip_prefix(&[opens]);
        Self { rest: rest.unwrap_or_default() }
    }

    /// Takes the value that comes next; `None` at a closing bracket, at the end and where nothing can begin.
    fn value(&mut self) -> Option<&'a [u8]> {
        self.rest = self.rest.trim_ascii_start();
        let length = value_length(self.rest)?;
        let (value, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(value)
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.trim_ascii_start().strip_prefix(&[byte])?;
        Some(())
    }

    /// Behind a part comes a comma, or nothing more.
    fn part_ended(&mut self) {
        if self.skip(b',').is_none() {
            self.rest = &[];
        }
    }
}

/// How long the value is that the text begins with.
fn value_length(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at += string_length(&text[at..])?;
                if depth == 0 {
                    return Some(at);
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                // A bracket that closes what was not opened here ends a number or a word before it.
                let Some(less) = depth.checked_sub(1) else { break };
                depth = less;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    (depth == 0 && at > 0).then_some(at)
}

/// How long the string is that the text begins with, with its quotes.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: members and elements are found with their bytes untouched, whatever brackets and quotes stand in strings.
    #[test]
    fn parts() {
        let text = br#" { "a" : 1 , "b":{"c":"}\"],"}, "d":[1,[2],"x"] ,"e":"","f":null} "#;
        let found: Vec<_> = members(text)
            .map(|(name, value)| (String::from_utf8_lossy(name), String::from_utf8_lossy(value)))
            .collect();
        let wanted = [
            ("a", "1"),
            ("b", r#"{"c":"}\"],"}"#),
            ("d", r#"[1,[2],"x"]"#),
            ("e", r#""""#),
            ("f", "null"),
        ];
        assert_eq!(found, wanted.map(|(name, value)| (name.into(), value.into())));
        let list: Vec<_> = elements(member(text, "d").unwrap()).collect();
        assert_eq!(list, [&b"1"[..], b"[2]", br#""x""#]);
        assert_eq!(elements(b"[]").count() + members(b"{}").count() + elements(b"7").count(), 0);
        assert_eq!(plain_string(br#""0x1""#), Some("0x1"));
        assert_eq!(plain_string(br#""a\"b""#), None);
    }

    /// Claim: what is no JSON gives parts or none, and never more bytes than there are.
    #[test]
    fn no_json() {
        for text in [&b""[..], b"{", b"[", b"{\"a", b"{\"a\":", b"[\"\\", b"[1,,2]", b"{:}", b"[}"]
        {
            assert!(!is_valid(text));
            assert!(members(text).count() < 4 && elements(text).count() < 4);
        }
    }
}
