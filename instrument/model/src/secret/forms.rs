//! The forms in which a value is searched for, beside those that decoding gives back ([`super::decoded`]): as it is, in any
//! case, reversed, with `+` for a blank, in hexadecimal, and in base64 of both alphabets at each of the three places that
//! it can have in a longer text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The shortest form that is searched for, in bytes: what is shorter is found everywhere by chance.
pub(super) const SEARCHED_MIN: usize = 6;

/// The shortest part of a value that is searched for by itself, in bytes.
const PART_BYTES_MIN: usize = 8;
/// Half of a long value is enough, and of a shorter one this much: what a log cuts short is still a key to be guessed.
const PART_BYTES_ENOUGH: usize = 12;

/// The forms that are known, for people.
pub const FORMS: &str = "as it is, in any case, reversed, or cut short (its first or last half, of at least 8 characters); \
     in base64 of both alphabets at any offset, and in hexadecimal; and each of these percent-encoded, escaped for JSON, \
     JavaScript or C (\\u005a, \\u{5a}, \\x5a, \\132), or as HTML or XML references (&#90; &#x5a; &amp;), up to three times over";

/// All forms of a value that are long enough, in lower case, each once.
pub(super) fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = vec![
        value.as_bytes().to_vec(),
        value.replace(' ', "+").into_bytes(),
        value.chars().rev().collect::<String>().into_bytes(),
        value.bytes().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes(),
    ];
    for before in 0..3 {
        all.push(in_base64(&STANDARD_NO_PAD, value.as_bytes(), before));
        all.push(in_base64(&URL_SAFE_NO_PAD, value.as_bytes(), before));
    }
    all.iter_mut().for_each(|form| form.make_ascii_lowercase());
    all.retain(|form| form.len() >= SEARCHED_MIN);
    all.sort();
    all.dedup();
    all
}

/// How many bytes of a form, from its beginning or its end, are taken for it: all of one that is short, or that begins
/// as others do (a path, a URL, words).
pub(super) fn enough(value: &str, form_bytes: usize) -> usize {
    let begins_as_others = value.starts_with('/') || value.contains("://") || value.contains(' ');
    if begins_as_others || form_bytes <= PART_BYTES_MIN {
        return form_bytes;
    }
    let part = PART_BYTES_ENOUGH.max(form_bytes / 2);
    part.min(form_bytes - 1).max(PART_BYTES_MIN)
}

/// The characters that the value alone decides where `before` bytes (modulo three) stand in front of it.
fn in_base64(engine: &impl Engine, value: &[u8], before: usize) -> Vec<u8> {
    let mut padded = vec![0; before];
    padded.extend_from_slice(value);
    let mut text = engine.encode(&padded).into_bytes();
    if !padded.len().is_multiple_of(3) {
        // The last character has bits of what follows.
        text.pop();
    }
    // Six bits a character: those that have bits of what stands before.
    text.drain(..(before * 8).div_ceil(6).min(text.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a value is found in base64 of any text that it stands in.
    #[test]
    fn base64_at_any_place() {
        for value in ["s3cret-value", "pässword/9", "0123456"] {
            for before in 0..7 {
                for after in 0..5 {
                    let whole = format!("{}{value}{}", "u".repeat(before), ":".repeat(after));
                    for text in [STANDARD_NO_PAD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                        let text = text.to_ascii_lowercase();
                        let is_found = forms(value)
                            .iter()
                            .any(|form| text.contains(std::str::from_utf8(form).unwrap()));
                        assert!(is_found, "{value} {before} bytes in, {after} follow: {text}");
                    }
                }
            }
        }
    }

    /// Claim: no form is shorter than what is searched for, and no part shorter than what chance brings.
    #[test]
    fn lengths() {
        assert!(forms("abc").iter().all(|form| form.len() >= SEARCHED_MIN));
        let of = |bytes| enough("k3y", bytes);
        assert_eq!([6, 8, 9, 12, 13, 24, 40].map(of), [6, 8, 8, 11, 12, 12, 20]);
        assert_eq!(enough("/etc/assay/key", 14), 14);
        assert_eq!(enough("http://127.0.0.1:80/", 20), 20);
    }
}
