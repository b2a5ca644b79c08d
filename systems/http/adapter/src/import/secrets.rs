//! What is a secret by its name, in headers, queries and bodies, and how it is taken out. A name too many costs
//! a value that a user puts back; a name too few would put a password into a file.

/// Parts of names.
const PARTS: [&str; 17] = [
    "authorization",
    "authentication",
    "cookie",
    "api-key",
    "apikey",
    "access-key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "signature",
    "credential",
    "session",
    "csrf",
    "xsrf",
    "jwt",
];
/// Whole words of names.
const WORDS: [&str; 8] = ["key", "auth", "sig", "pwd", "sid", "otp", "bearer", "pass"];

/// What stands where a secret stood.
pub(super) const REMOVED: &str = "REMOVED";

/// Whether a value is a secret by its name.
pub(super) fn is_secret(name: &str) -> bool {
    let mut plain = String::with_capacity(name.len());
    for (index, c) in name.char_indices() {
        // accessToken, access_token and Access-Token are one name.
        if c.is_ascii_uppercase() && index > 0 && name.as_bytes()[index - 1].is_ascii_lowercase() {
            plain.push('-');
        }
        plain.push(if c == '_' || c == '.' { '-' } else { c.to_ascii_lowercase() });
    }
    PARTS.iter().any(|part| plain.contains(part))
        || plain.split('-').any(|word| WORDS.contains(&word))
}

/// A query or a form without the values of its secrets, and how many there were.
pub(super) fn masked_pairs(pairs: &str) -> (String, usize) {
    let mut count = 0;
    let masked: Vec<String> = pairs
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret(&decoded(name)) => {
                count += 1;
                format!("{name}={REMOVED}")
            }
            _ => pair.to_owned(),
        })
        .collect();
    (masked.join("&"), count)
}

/// A URL, or the path of one, without the secrets of its query.
pub(super) fn masked_url(url: &str) -> (String, usize) {
    let Some((path, query)) = url.split_once('?') else { return (url.to_owned(), 0) };
    let (query, fragment) =
        query.split_once('#').map_or((query, ""), |(query, rest)| (query, rest));
    let (query, count) = masked_pairs(query);
    let fragment = if fragment.is_empty() { String::new() } else { format!("#{fragment}") };
    (format!("{path}?{query}{fragment}"), count)
}

/// `%5F` and the like, so that an encoded name is still known.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
