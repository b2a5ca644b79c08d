//! Which values of an experiment are secrets, by their place: headers, bodies, URLs, targets, and whatever has a
//! secret-looking name ([`model::secret`]). The run uses them; the copies in the run folder have references to the
//! environment instead (`${AUTHORIZATION}`), and say which variables to set.

use std::collections::BTreeMap;

use model::options::{Options, Problems, Span, Value};
use model::plan::Plan;
use model::secret::{self, SecretSpan};

use crate::parse;
use crate::quick::quoted;

/// An experiment file's text without its secrets, everything else byte for byte as it was, under a line that says which
/// variables to set to run it again. A text that is not TOML is given back without what is known to be secret: it cannot
/// be run either.
#[must_use]
pub fn redact(text: &str) -> String {
    let Some(tree) = parse::document(text, 0, &mut Problems::default()) else {
        return secret::scrub(text).into_owned();
    };
    let mut found = Vec::new();
    let mut variables = Variables::default();
    each(&tree, &Place::Any, &mut |span, text, spans| {
        if let Some(plain) = variables.plain(text, spans) {
            found.push((span, plain));
        }
    });
    if found.is_empty() {
        return secret::scrub(text).into_owned();
    }
    found.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut redacted = text.to_owned();
    for (span, plain) in found {
        redacted.replace_range(span.start..span.end, &quoted(&plain));
    }
    let scrubbed = secret::scrub(&redacted).into_owned();
    // A comment may repeat a secret. Where one is a word of the file's own language, the file counts for more.
    if parse::document(&scrubbed, 0, &mut Problems::default()).is_some() {
        redacted = scrubbed;
    }
    let names = secret::references(&redacted).join(", ");
    format!(
        "# Secrets were left out. To run this again, set in the environment: {names}\n{redacted}"
    )
}

/// A plan without its secrets, for plan.toml.
#[must_use]
pub fn redact_plan(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.question = secret::scrub(&plan.question).into_owned();
    let mut variables = Variables::default();
    for setting in &mut plan.settings {
        redact_with(&mut setting.system.deploy, &mut variables);
        redact_with(&mut setting.system.workload, &mut variables);
    }
    plan
}

/// Makes the secrets of an experiment file known, before anything of it can be told. Of a text that is not TOML, whatever
/// looks like one.
pub fn taint(text: &str) {
    match parse::document(text, 0, &mut Problems::default()) {
        Some(tree) => each(&tree, &Place::Any, &mut |_, text, spans| taint_spans(text, spans)),
        None => taint_spans(text, &secret::spans(text)),
    }
}

/// Makes the secrets of a plan known, from whatever layer they came.
pub fn taint_plan(plan: &Plan) {
    for setting in &plan.settings {
        for options in [&setting.system.deploy, &setting.system.workload] {
            each(options, &Place::Any, &mut |_, text, spans| taint_spans(text, spans));
        }
    }
}

fn taint_spans(text: &str, spans: &[SecretSpan]) {
    for span in spans {
        secret::taint(&text[span.range.clone()]);
    }
}

/// Redacts a tree in place.
pub(crate) fn redact_options(options: &mut Options) {
    redact_with(options, &mut Variables::default());
}

/// The label of a value of the axis that sets `path`, if it is or holds a secret.
pub(crate) fn label(path: &str, value: &Options, variables: &mut Variables) -> Option<String> {
    let Value::String(text) = &value.value else { return None };
    variables.plain(text, &of_path(path).spans(text))
}

/// The place that a dotted path leads to.
fn of_path(path: &str) -> Place {
    path.split('.').fold(Place::Any, |place, key| place.under(key.trim_matches('"')))
}

/// Variables by the secrets that they stand for.
#[derive(Default)]
pub(crate) struct Variables {
    by_value: BTreeMap<(String, String), String>,
    count: BTreeMap<String, usize>,
}

impl Variables {
    /// The text with a reference in the place of each secret; `None`: it has none.
    fn plain(&mut self, text: &str, spans: &[SecretSpan]) -> Option<String> {
        let mut plain = text.to_owned();
        let named: Vec<String> =
            spans.iter().map(|span| self.name(&span.variable, &text[span.range.clone()])).collect();
        for (span, name) in spans.iter().zip(named).rev() {
            plain.replace_range(span.range.clone(), &format!("${{{name}}}"));
        }
        let plain = secret::scrub(&plain).into_owned();
        (plain != text).then_some(plain)
    }

    fn name(&mut self, variable: &str, value: &str) -> String {
        let key = (variable.to_owned(), value.to_owned());
        if let Some(name) = self.by_value.get(&key) {
            return name.clone();
        }
        let count = self.count.entry(variable.to_owned()).or_insert(0);
        *count += 1;
        let name = if *count == 1 { variable.to_owned() } else { format!("{variable}_{count}") };
        self.by_value.insert(key, name.clone());
        name
    }
}

/// Where a value stands, as far as that makes it a secret.
#[derive(Clone, Debug)]
enum Place {
    /// Anywhere: a URL may hold one.
    Any,
    /// Under `headers`.
    Headers,
    /// Keys of the content that is sent: bodies, paths, targets.
    Sent,
    /// The value, or one of the values, of a secret name.
    Secret(String),
    /// Where axes of the matrix are named, and not what they set.
    Axes,
}

impl Place {
    fn under(&self, key: &str) -> Self {
        match (self, key) {
            (Self::Secret(name), _) => Self::Secret(name.clone()),
            // `take` says where an answer has a value, under the value's name.
            (Self::Axes, _) | (Self::Any, "include" | "exclude" | "expect" | "take") => Self::Axes,
            (_, "headers") => Self::Headers,
            (_, "body" | "url" | "path" | "targets_text") => Self::Sent,
            (_, name) if secret::is_secret_name(name) => Self::Secret(name.to_owned()),
            (place, _) => place.clone(),
        }
    }

    fn spans(&self, text: &str) -> Vec<SecretSpan> {
        match self {
            Self::Secret(name) if !is_quantity(text) => {
                secret::value_span(name, text).into_iter().collect()
            }
            Self::Secret(_) => Vec::new(),
            Self::Headers | Self::Sent => secret::spans(text),
            Self::Any if text.contains("://") => secret::spans(text),
            Self::Any | Self::Axes => Vec::new(),
        }
    }
}

/// `50/s`, `16kB`: a name such as `token_bucket` has a word of secrets in it.
fn is_quantity(text: &str) -> bool {
    text.len() <= 8
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_alphabetic() || c == '%')
}

fn redact_with(options: &mut Options, variables: &mut Variables) {
    let mut plain: BTreeMap<(u16, usize, String), String> = BTreeMap::new();
    each(options, &Place::Any, &mut |span, text, spans| {
        if let Some(redacted) = variables.plain(text, spans) {
            plain.insert((span.source, span.start, text.to_owned()), redacted);
        }
    });
    if !plain.is_empty() {
        replace(options, &plain);
    }
}

fn replace(options: &mut Options, plain: &BTreeMap<(u16, usize, String), String>) {
    match &mut options.value {
        Value::Table(table) => table.values_mut().for_each(|(_, value)| replace(value, plain)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, plain)),
        Value::String(text) => {
            let key = (options.span.source, options.span.start, text.clone());
            if let Some(redacted) = plain.get(&key) {
                *text = redacted.clone();
            }
        }
        _ => {}
    }
}

/// Passes every text of a tree with the secrets in it.
fn each(options: &Options, place: &Place, f: &mut impl FnMut(Span, &str, &[SecretSpan])) {
    match &options.value {
        Value::Table(table) => {
            // An axis of a matrix: its values stand where it sets them.
            let set = table.get("set").filter(|_| table.contains_key("values"));
            let set = set.and_then(|(_, set)| match &set.value {
                Value::String(path) => Some(path.as_str()),
                _ => None,
            });
            for (key, (_, value)) in table {
                let place = match (set, key.as_str()) {
                    (Some(path), "values") => of_path(path),
                    (Some(_), _) => Place::Axes,
                    (None, key) => {
                        key.split('.').fold(place.clone(), |place, key| place.under(key))
                    }
                };
                each(value, &place, f);
            }
        }
        Value::Array(items) if matches!(place, Place::Any) => {
            // The words of a command.
            let words: Option<Vec<String>> = items
                .iter()
                .map(|item| match &item.value {
                    Value::String(text) => Some(text.clone()),
                    _ => None,
                })
                .collect();
            match words {
                Some(words) => {
                    for (item, spans) in items.iter().zip(secret::command_spans(&words)) {
                        if let Value::String(text) = &item.value {
                            f(item.span, text, &spans);
                        }
                    }
                }
                None => items.iter().for_each(|item| each(item, place, f)),
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, place, f)),
        Value::String(text) => f(options.span, text, &place.spans(text)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: places that a flow fills in are no secrets, whatever they are called, and what stands beside them is.
    #[test]
    fn places_of_a_flow() {
        let flow = "[[workload.step]]\npath = \"/a?token={{token}}\"\ntake = { token = \"json:/data/token\" }\n\
                    headers = { Authorization = \"Bearer {{token}}\", X-Csrf-Token = \"{{csrf}}\" }\n\
                    body = '{\"password\":\"{{password | json}}\"}'\n";
        assert_eq!(redact(flow), flow);
        let with_secret = flow.replace("{{password | json}}", "hunter22");
        let redacted = redact(&with_secret);
        assert!(
            !redacted.contains("hunter22") && redacted.contains("Bearer {{token}}"),
            "{redacted}"
        );
    }

    /// Claim: secrets in header tables, header lines and URLs go; references, other values, comments and
    /// layout stay byte for byte, and the file says what to set.
    #[test]
    fn only_secrets_go() {
        let text = r#"
token_bucket = "50/s"   # no secret
url = "https://me:hunter2@example.org/x?page=1"
headers = { Authorization = "Bearer abc", Accept = "*/*", "X-Api-Key" = "env:KEY" }
[workload]
headers = ["Cookie: a=b", "Authorization: env:AUTH", 'Host: h']
body = '{"user":"me","password":"x"}'
command = ["tool", "--token", "t1", "-n", "3"]
"#;
        let expected = r#"# Secrets were left out. To run this again, set in the environment: AUTH, AUTHORIZATION, COOKIE, KEY, PASSWORD, TOKEN, URL_PASSWORD

token_bucket = "50/s"   # no secret
url = "https://me:${URL_PASSWORD}@example.org/x?page=1"
headers = { Authorization = "Bearer ${AUTHORIZATION}", Accept = "*/*", "X-Api-Key" = "env:KEY" }
[workload]
headers = ["Cookie: ${COOKIE}", "Authorization: env:AUTH", 'Host: h']
body = "{\"user\":\"me\",\"password\":\"${PASSWORD}\"}"
command = ["tool", "--token", "${TOKEN}", "-n", "3"]
"#;
        assert_eq!(redact(text), expected);
        assert_eq!(redact(expected), expected);
        assert_eq!(redact("not = = toml"), "not = = toml");
    }

    /// Claim: several values of one header, those of an axis, and targets in either of vegeta's formats, lose their
    /// secrets too.
    #[test]
    fn lists_and_targets() {
        for (text, expected) in [
            (
                r#"headers = { cookie = ["a", "b"] }"#,
                r#"headers = { cookie = ["${COOKIE}", "${COOKIE_2}"] }"#,
            ),
            (
                r#"auth = { set = "workload.headers.Authorization", values = ["Bearer a", "Bearer b"] }"#,
                r#"auth = { set = "workload.headers.Authorization", values = ["Bearer ${AUTHORIZATION}", "Bearer ${AUTHORIZATION_2}"] }"#,
            ),
            (
                r#"targets_text = "GET http://u:p@h/\nX-Token: abc\nAccept: a:b\n""#,
                r#"targets_text = "GET http://u:${URL_PASSWORD}@h/\nX-Token: ${X_TOKEN}\nAccept: a:b\n""#,
            ),
            (
                r#"targets_text = '{"header":{"Authorization":["a\"b","c"],"X":["token"]},"url":"http://h/"}'"#,
                r#"targets_text = "{\"header\":{\"Authorization\":[\"${AUTHORIZATION}\",\"${AUTHORIZATION_2}\"],\"X\":[\"token\"]},\"url\":\"http://h/\"}""#,
            ),
        ] {
            let redacted = redact(text);
            assert_eq!(redacted.split_once('\n').map(|(_, rest)| rest), Some(expected));
        }
    }
}
