//! What may not be stored: values of secret headers, and passwords in URLs. The run uses them; the copies in
//! the run folder do not have them. A header value `env:NAME` is a reference, not a secret, and stays.

use model::options::{Options, Problems, Span, Value};
use model::plan::Plan;

use crate::parse;
use crate::quick::quoted;

/// What stands in a stored file instead of a secret.
pub const REDACTED: &str = "redacted";

/// An experiment file's text without its secrets, everything else byte for byte as it was. A text that is not
/// TOML is given back as it is: it cannot be run either.
#[must_use]
pub fn redact(text: &str) -> String {
    let Some(tree) = parse::document(text, 0, &mut Problems::default()) else {
        return text.to_owned();
    };
    let mut found = Vec::new();
    find(&tree, Place::Any, &mut found);
    found.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut redacted = text.to_owned();
    for (span, plain) in found {
        redacted.replace_range(span.start..span.end, &quoted(&plain));
    }
    redacted
}

/// A plan without its secrets, for plan.toml.
#[must_use]
pub fn redact_plan(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for setting in &mut plan.settings {
        redact_options(&mut setting.system.deploy);
        redact_options(&mut setting.system.workload);
    }
    plan
}

/// Redacts a tree in place.
pub(crate) fn redact_options(options: &mut Options) {
    walk(options, Place::Any);
}

/// Where a value stands, as far as that makes it a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Anywhere.
    Any,
    /// Under `headers`.
    Headers,
    /// The value, or one of the values, of a secret header.
    Secret,
    /// Targets in vegeta's formats.
    Targets,
}

impl Place {
    fn under(self, key: &str) -> Self {
        match (self, key) {
            (Self::Headers, name) if is_secret_header(name) => Self::Secret,
            (_, "headers") => Self::Headers,
            (_, "targets_text") => Self::Targets,
            (place, _) => place,
        }
    }

    /// What to write instead of `text`, if it is or holds a secret.
    fn plain(self, text: &str) -> Option<String> {
        match self {
            Self::Secret => (!text.starts_with("env:")).then(|| REDACTED.to_owned()),
            Self::Headers => header_line(text),
            Self::Targets => {
                let lines: Vec<String> = text.split('\n').map(target_line).collect();
                let plain = lines.join("\n");
                (plain != text).then_some(plain)
            }
            Self::Any => password(text),
        }
    }
}

fn walk(options: &mut Options, place: Place) {
    match &mut options.value {
        Value::Table(table) => {
            for (key, (_, value)) in table {
                walk(value, place.under(key));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, place)),
        Value::String(text) => {
            if let Some(plain) = place.plain(text) {
                *text = plain;
            }
        }
        _ => {}
    }
}

fn find(options: &Options, place: Place, found: &mut Vec<(Span, String)>) {
    match &options.value {
        Value::Table(table) => {
            for (key, (_, value)) in table {
                find(value, place.under(key), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find(item, place, found)),
        Value::String(text) => found.extend(place.plain(text).map(|plain| (options.span, plain))),
        _ => {}
    }
}

/// `Name: secret`.
fn header_line(text: &str) -> Option<String> {
    let (name, value) = text.split_once(':')?;
    let hidden = is_secret_header(name.trim()) && !value.trim().starts_with("env:");
    hidden.then(|| format!("{name}: {REDACTED}"))
}

/// A line of targets: a header, a request line with a URL, or a JSON object.
fn target_line(line: &str) -> String {
    if line.trim_start().starts_with('{') {
        return json_line(line);
    }
    if let Some(plain) = header_line(line) {
        return plain;
    }
    let words: Vec<String> =
        line.split(' ').map(|word| password(word).unwrap_or_else(|| word.to_owned())).collect();
    words.join(" ")
}

/// A JSON object of one line: the strings that are the value of a secret name, alone or in a list.
fn json_line(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    let (mut name, mut hiding, mut in_list) = (String::new(), false, false);
    while let Some(at) = rest.find(['"', ':', '[', ']', ',', '{', '}']) {
        plain.push_str(&rest[..at]);
        let mark = rest.as_bytes()[at];
        rest = &rest[at..];
        if mark == b'"' {
            let end = string_end(rest);
            let text = &rest[..end];
            rest = &rest[end..];
            if hiding {
                plain.push_str(&format!("\"{REDACTED}\""));
            } else {
                name = text.trim_matches('"').to_owned();
                plain.push_str(&password(text).unwrap_or_else(|| text.to_owned()));
            }
            continue;
        }
        match mark {
            b':' => hiding = is_secret_header(&name),
            b'[' => in_list = true,
            b']' | b'{' | b'}' => (in_list, hiding) = (false, false),
            _ => hiding &= in_list,
        }
        plain.push(char::from(mark));
        rest = &rest[1..];
    }
    plain.push_str(rest);
    plain
}

/// The byte after the closing quote of the JSON string that `text` begins with.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A URL with a password.
fn password(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let name = user.split_once(':')?.0;
    Some(format!("{scheme}://{name}:{REDACTED}{}", &rest[user.len()..]))
}

/// Whether a header's value is a secret by its name: the credentials of RFC 9110 and RFC 6265, and names
/// that say key, token, secret, password or signature.
fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = ["authorization", "cookie", "api-key", "apikey", "access-key", "token", "secret"];
    words.iter().chain(&["password", "signature"]).any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: secrets in header tables, header lines and URLs go; references, other values, comments and
    /// layout stay byte for byte.
    #[test]
    fn only_secrets_go() {
        let text = r#"
token_bucket = "50/s"   # no header
url = "https://me:hunter2@example.org/x?token=1"
headers = { Authorization = "Bearer abc", Accept = "*/*", "X-Api-Key" = "env:KEY" }
[workload]
headers = ["Cookie: a=b", "Authorization: env:AUTH", 'Host: h']
"#;
        let expected = r#"
token_bucket = "50/s"   # no header
url = "https://me:redacted@example.org/x?token=1"
headers = { Authorization = "redacted", Accept = "*/*", "X-Api-Key" = "env:KEY" }
[workload]
headers = ["Cookie: redacted", "Authorization: env:AUTH", 'Host: h']
"#;
        assert_eq!(redact(text), expected);
        assert_eq!(redact(expected), expected);
        assert_eq!(redact("not = = toml"), "not = = toml");
    }

    /// Claim: several values of one header, and targets in either of vegeta's formats, lose their secrets too.
    #[test]
    fn lists_and_targets() {
        for (text, expected) in [
            (
                r#"headers = { cookie = ["a", "b"] }"#,
                r#"headers = { cookie = ["redacted", "redacted"] }"#,
            ),
            (
                r#"targets_text = "GET http://u:p@h/\nX-Token: abc\nAccept: a:b\n""#,
                r#"targets_text = "GET http://u:redacted@h/\nX-Token: redacted\nAccept: a:b\n""#,
            ),
            (
                r#"targets_text = '{"header":{"Authorization":["a\"b","c"],"X":["token"]},"url":"http://h/"}'"#,
                r#"targets_text = "{\"header\":{\"Authorization\":[\"redacted\",\"redacted\"],\"X\":[\"token\"]},\"url\":\"http://h/\"}""#,
            ),
        ] {
            assert_eq!(redact(text), expected);
        }
    }
}
