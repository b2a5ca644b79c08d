//! The forms in which a value is found again in what a server sends back or a program logs: as it is, percent-encoded
//! (RFC 3986, and as forms and browsers do it), in base64 of both alphabets at each of the three places that it can have in
//! a longer text, in hexadecimal, and escaped for JSON, HTML, XML and a debugger.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The shortest form that is searched for, in bytes: what is shorter is found everywhere by chance.
pub(super) const SEARCHED_MIN: usize = 6;

/// All forms of a value that are long enough, each once.
pub(super) fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = vec![value.as_bytes().to_vec()];
    for kept in ["-._~", "-._~!'()*", "-._*", "-._~/:@", "-._~!$&'()*+,;=:@/?"] {
        for is_lower in [false, true] {
            all.push(percent_encoded(value, kept, false, is_lower));
            all.push(percent_encoded(value, kept, true, is_lower));
        }
    }
    let json = serde_json::to_string(value).expect("a text can be written");
    let json = &json[1..json.len() - 1];
    all.push(json.as_bytes().to_vec());
    all.push(json.replace('/', "\\/").into_bytes());
    all.push(escaped_unicode(json, false));
    all.push(escaped_unicode(json, true));
    // A document in a document: an error that quotes a body.
    let twice = serde_json::to_string(json).expect("a text can be written");
    all.push(twice.as_bytes()[1..twice.len() - 1].to_vec());
    all.push(value.escape_debug().to_string().into_bytes());
    all.push(value.escape_default().to_string().into_bytes());
    for (quote, apostrophe) in
        [("&quot;", "&#39;"), ("&#34;", "&apos;"), ("\"", "'"), ("&quot;", "&#x27;")]
    {
        let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        all.push(html.replace('"', quote).replace('\'', apostrophe).into_bytes());
    }
    all.push(value.bytes().map(|byte| format!("{byte:02x}")).collect::<String>().into_bytes());
    all.push(value.bytes().map(|byte| format!("{byte:02X}")).collect::<String>().into_bytes());
    for before in 0..3 {
        all.push(in_base64(&STANDARD_NO_PAD, value.as_bytes(), before));
        all.push(in_base64(&URL_SAFE_NO_PAD, value.as_bytes(), before));
    }
    all.retain(|form| form.len() >= SEARCHED_MIN);
    all.sort();
    all.dedup();
    all
}

/// With all but letters, digits and `kept` as `%2F`; a space as `+` in a form.
fn percent_encoded(value: &str, kept: &str, is_form: bool, is_lower: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) {
            out.push(byte);
        } else if is_form && byte == b' ' {
            out.push(b'+');
        } else {
            let digits = if is_lower { format!("%{byte:02x}") } else { format!("%{byte:02X}") };
            out.extend_from_slice(digits.as_bytes());
        }
    }
    out
}

/// JSON with `\u00e9` for what is not ASCII, and with `is_html` also for `<`, `>` and `&`, as some writers have it.
fn escaped_unicode(json: &str, is_html: bool) -> Vec<u8> {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() && !(is_html && "<>&".contains(c)) {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.into_bytes()
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
                        let is_found = forms(value)
                            .iter()
                            .any(|form| text.contains(std::str::from_utf8(form).unwrap()));
                        assert!(is_found, "{value} behind {before} before {after}: {text}");
                    }
                }
            }
        }
    }

    /// Claim: encoded and escaped forms are among them, and nothing that is too short.
    #[test]
    fn encodings() {
        let forms = forms("a b/ü\"&<x>");
        let has = |text: &str| forms.iter().any(|form| form == text.as_bytes());
        for text in [
            "a b/ü\"&<x>",
            "a%20b%2F%C3%BC%22%26%3Cx%3E",
            "a%20b%2f%c3%bc%22%26%3cx%3e",
            "a+b%2F%C3%BC%22%26%3Cx%3E",
            "a b/ü\\\"&<x>",
            "a b\\/ü\\\"&<x>",
            "a b/\\u00fc\\\"&<x>",
            "a b/\\u00fc\\\"\\u0026\\u003cx\\u003e",
            "a b/ü&quot;&amp;&lt;x&gt;",
        ] {
            assert!(has(text), "{text}");
        }
        assert!(super::forms("abc").iter().all(|form| form.len() >= SEARCHED_MIN));
    }
}
