//! What an answer means: the status by the table, and where the experiment asks for it, what its body says.
//! Never touches the bytes of a connection, and looks at a body only if a rule needs it.

use std::borrow::Cow;
use std::fmt::Write as _;

use model::options::{Problems, Section};
use model::{Class, Outcome, secret};
use serde_json::Value;
use wire::http1::{Limits, is_token};

use crate::expect::{Answered, Expected, Unexpected};
use crate::outcome_table::OutcomeTable;

/// How much of a body is kept for the rules, unless the experiment says otherwise.
const BODY_KEPT_DEFAULT: u64 = 64 << 10;

/// The most that an experiment may ask to keep, for each connection.
const BODY_KEPT_MAX: u64 = 16 << 20;

/// The one stage of the ladder.
pub(crate) const COMMITTED: u8 = 0;

/// The longest error text: longer ones do not fit a table and are cut.
const TEXT_BYTES_MAX: usize = 160;

/// Everything that decides an answer's outcome.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    statuses: OutcomeTable,
    error: Option<ErrorRule>,
    limited_pointer: Option<String>,
    limited_texts: Vec<String>,
    /// One of these three looks at bodies, however little of them is kept.
    judges_bodies: bool,
    pub(crate) expected: Expected,
    body_kept_max: usize,
    /// The same, where something reads bodies.
    body_kept_wanted: usize,
    /// Whether flows read heads.
    keeps_heads: bool,
    /// The header that carries a request's id there and back.
    pub(crate) correlate: Option<String>,
}

/// An error inside a 2xx body.
#[derive(Clone, Debug)]
struct ErrorRule {
    pointer: String,
    class: Class,
    text_pointer: String,
}

impl ErrorRule {
    fn read(workload: &mut Section<'_>, problems: &mut Problems) -> Option<Self> {
        let at = pointer(workload, "error_pointer", problems);
        let words = Class::ALL.map(Class::word);
        // The last two are not a system's answers.
        let class =
            workload.one_of("error_class", &words[..6], problems).and_then(Class::from_word);
        let text_pointer = pointer(workload, "error_text_pointer", problems);
        let given =
            [("error_class", class.is_some()), ("error_text_pointer", text_pointer.is_some())];
        for (key, _) in given.into_iter().filter(|(_, is_given)| *is_given && at.is_none()) {
            let message = format!("`workload.{key}` says nothing without `workload.error_pointer`");
            let help = "add a line such as: error_pointer = \"/error\"".to_owned();
            workload.reject(key, message, Some(help), problems);
        }
        at.map(|pointer| Self {
            class: class.unwrap_or(Class::BadRequest),
            text_pointer: text_pointer.unwrap_or_else(|| format!("{pointer}/message")),
            pointer,
        })
    }
}

impl Rules {
    /// Reads the keys of `[workload]` that concern answers.
    pub(crate) fn read(workload: &mut Section<'_>, problems: &mut Problems) -> Self {
        let status = workload.section("status", problems);
        let statuses = OutcomeTable::read(status, problems);
        let error = ErrorRule::read(workload, problems);
        let limited_pointer = pointer(workload, "limited_pointer", problems);
        let texts = workload.strings("limited_text", problems).unwrap_or_default();
        if texts.contains(&"") {
            let message = "`workload.limited_text` holds an empty text, which every body contains";
            workload.reject("limited_text", message, None, problems);
        }
        let limited_texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let kept = workload
            .size_within("body_kept_max", 0..=BODY_KEPT_MAX, problems)
            .unwrap_or(BODY_KEPT_DEFAULT);
        let expected = Expected::read(workload, problems);
        let judges_bodies =
            error.is_some() || limited_pointer.is_some() || !limited_texts.is_empty();
        let reads_bodies = judges_bodies || expected.reads_bodies();
        let wanted = usize::try_from(kept.min(BODY_KEPT_MAX)).expect("bounded by BODY_KEPT_MAX");
        let correlate = correlate(workload, problems);
        Self {
            statuses,
            error,
            limited_pointer,
            limited_texts,
            judges_bodies,
            expected,
            body_kept_max: if reads_bodies { wanted } else { 0 },
            body_kept_wanted: wanted,
            keeps_heads: false,
            correlate,
        }
    }

    /// Flows read bodies, or heads, or expect something of a step's answer.
    pub(crate) fn serve_flows(&mut self, read_bodies: bool, read_heads: bool) {
        if read_bodies || self.expected.reads_bodies() {
            self.body_kept_max = self.body_kept_wanted;
        }
        self.keeps_heads = read_heads;
    }

    /// Whether heads have to be kept.
    pub(crate) fn reads_heads(&self) -> bool {
        self.keeps_heads || self.expected.reads_headers()
    }

    /// Bounds on answers: bodies are kept only if a rule reads them.
    pub(crate) const fn limits(&self) -> Limits {
        Limits { body_kept_max: self.body_kept_max, ..Limits::CLIENT }
    }

    /// Whether a status counts as committed, and the experiment did not say so.
    pub(crate) fn counts_as_committed_unasked(&self, status: u16) -> bool {
        self.statuses.outcome(status) == Outcome::Committed && !self.statuses.is_told(status)
    }

    /// What the answer means. Writes the error's text to `text` unless it is committed: the status line as
    /// vegeta shows it (`404 Not Found`), then what the body says.
    pub(crate) fn judge(&self, answered: &Answered<'_>, text: &mut String) -> Outcome {
        text.clear();
        let by_table = self.statuses.outcome(answered.response.status);
        let by_status = match self.expected.status(answered, by_table) {
            Ok(outcome) => outcome,
            Err(unexpected) => return told(answered, unexpected, text),
        };
        let (outcome, said) = if !self.judges_bodies || !answered.has_body {
            (by_status, Said::Nothing)
        } else {
            self.by_body(answered, by_status)
        };
        if outcome != Outcome::Committed {
            status_line(answered, text);
            said.append(text);
            return outcome;
        }
        match self.expected.unexpected(answered) {
            Some(unexpected) => told(answered, unexpected, text),
            None => outcome,
        }
    }

    fn by_body<'a>(&'a self, answered: &Answered<'a>, by_status: Outcome) -> (Outcome, Said) {
        let is_2xx = matches!(answered.response.status, 200..=299)
            && !matches!(answered.response.status, 204 | 205);
        let reads_error = self.error.is_some() && is_2xx;
        let needs_json = reads_error || self.limited_pointer.is_some();
        let is_cut = answered.response.body_bytes > answered.body.len() as u64;
        let json: Option<Value> =
            if needs_json && !is_cut { serde_json::from_slice(answered.body).ok() } else { None };
        let is_there = |pointer: &str| {
            json.as_ref()
                .and_then(|json| json.pointer(pointer))
                .is_some_and(|value| !value.is_null())
        };

        let error = self.error.as_ref().filter(|rule| reads_error && is_there(&rule.pointer));
        let limited = Outcome::Rejected(Class::Limited);
        if self.limited_pointer.as_deref().is_some_and(is_there) {
            return (limited, Said::Limited);
        }
        // Texts only where something failed: a good answer may well speak of rate limits.
        let failed = by_status != Outcome::Committed || error.is_some();
        if failed && self.limited_texts.iter().any(|text| contains(answered.body, text.as_bytes()))
        {
            return (limited, Said::Limited);
        }
        if let Some(rule) = error {
            let value = json.as_ref().and_then(|json| {
                json.pointer(&rule.text_pointer).or_else(|| json.pointer(&rule.pointer))
            });
            return (
                Outcome::Rejected(rule.class),
                Said::Error(value.map(plain).unwrap_or_default()),
            );
        }
        match (by_status, reads_error, &json) {
            // Not knowing is not success.
            (Outcome::Committed, true, None) if is_cut => {
                (Outcome::Rejected(Class::Client), Said::TooLong)
            }
            (Outcome::Committed, true, None) => (Outcome::Rejected(Class::Server), Said::NotJson),
            _ => (by_status, Said::Nothing),
        }
    }
}

/// The outcome and the text of an answer that is not as expected.
fn told(answered: &Answered<'_>, unexpected: Unexpected, text: &mut String) -> Outcome {
    status_line(answered, text);
    Said::Error(unexpected.text).append(text);
    unexpected.outcome
}

/// What a body added to the status.
enum Said {
    Nothing,
    Limited,
    NotJson,
    TooLong,
    Error(String),
}

impl Said {
    fn append(self, text: &mut String) {
        match self {
            Self::Nothing => {}
            Self::Limited => text.push_str(": limited, says the body"),
            Self::NotJson => text.push_str(": the body is not JSON"),
            Self::TooLong => text.push_str(": the body is longer than workload.body_kept_max"),
            Self::Error(said) => {
                text.push_str(": ");
                let printable = said.chars().map(|c| if c.is_control() { ' ' } else { c });
                text.extend(printable.take(TEXT_BYTES_MAX));
                cut(text);
            }
        }
    }
}

/// `404 Not Found`, as the server wrote it.
pub(crate) fn status_line(answered: &Answered<'_>, text: &mut String) {
    write!(text, "{}", answered.response.status).expect("a String takes any text");
    if !answered.reason.is_empty() {
        text.push(' ');
        text.push_str(answered.reason);
    }
    cut(text);
}

pub(crate) fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        // Half a secret would not be known for one later.
        if let Cow::Owned(scrubbed) = secret::scrub(text) {
            *text = scrubbed;
        }
        if text.len() <= TEXT_BYTES_MAX {
            return;
        }
        let is_whole = |at: &usize| text.is_char_boundary(*at);
        let end = (0..=TEXT_BYTES_MAX).rev().find(is_whole).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Without regard to ASCII case: limiters write `Rate limit` and `rate limit`.
fn contains(body: &[u8], text: &[u8]) -> bool {
    body.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text))
}

/// `header:NAME`.
fn correlate(workload: &mut Section<'_>, problems: &mut Problems) -> Option<String> {
    let text = workload.string("correlate", problems)?;
    if let Some(name) = text.strip_prefix("header:").filter(|name| is_token(name)) {
        return Some(name.to_owned());
    }
    let message = format!("`workload.correlate` must be a header, but is `{text}`");
    let help = "write correlate = \"header:x-request-id\"".to_owned();
    workload.reject("correlate", message, Some(help), problems);
    None
}

/// A JSON pointer (RFC 6901).
fn pointer(
    workload: &mut Section<'_>,
    key: &'static str,
    problems: &mut Problems,
) -> Option<String> {
    let text = workload.string(key, problems)?;
    if text.starts_with('/') {
        return Some(text.to_owned());
    }
    let message =
        format!("`workload.{key}` must be a JSON pointer, but `{text}` does not begin with `/`");
    workload.reject(
        key,
        message,
        Some(format!("did you mean `/{}`?", text.replace('.', "/"))),
        problems,
    );
    None
}

#[cfg(test)]
mod tests {
    use model::options::{Options, Span, Value as Written};

    use wire::http1::Response;

    use super::*;

    fn rules(entries: &[(&str, &str)]) -> (Rules, Vec<String>) {
        let mut options = Options::empty();
        for (key, word) in entries {
            options.set(
                key,
                Options { value: Written::String((*word).into()), span: Span::default() },
            );
        }
        let mut problems = Problems::default();
        let mut section = Section::open(&options, "workload", &mut problems);
        let rules = Rules::read(&mut section, &mut problems);
        section.finish(&mut problems);
        (rules, problems.list.into_iter().map(|p| p.message).collect())
    }

    fn judge(rules: &Rules, status: u16, reason: &str, body: &str) -> String {
        let response = Response { status, body_bytes: body.len() as u64, keep_alive: true };
        let kept = &body.as_bytes()[..body.len().min(rules.body_kept_max)];
        let mut text = String::new();
        let answered =
            Answered { response, reason, body: kept, has_body: true, head: &[], expects: None };
        let outcome = rules.judge(&answered, &mut text);
        format!("{outcome} {text}")
    }

    /// Claim: without rules for bodies the status alone decides, and the text is the status line.
    #[test]
    fn statuses_alone() {
        let (rules, _) = rules(&[]);
        assert_eq!(rules.limits().body_kept_max, 0);
        assert_eq!(judge(&rules, 200, "OK", "{\"error\":1}"), "committed ");
        assert_eq!(judge(&rules, 404, "Not Found", ""), "rejected(bad_request) 404 Not Found");
        assert_eq!(judge(&rules, 500, "", ""), "rejected(server) 500");
    }

    /// Claim: an error inside a 200 is found by its pointer, with its text; no error, a null one and a body
    /// that cannot be judged are each what they are.
    #[test]
    fn errors_in_bodies() {
        let (rules, problems) = rules(&[
            ("error_pointer", "/error"),
            ("error_class", "conflict"),
            ("body_kept_max", "64B"),
        ]);
        assert_eq!(problems, Vec::<String>::new());
        for (status, body, expected) in [
            (200, "{\"result\":1}", "committed "),
            (200, "{\"error\":null}", "committed "),
            (
                200,
                "{\"error\":{\"message\":\"spent\\ntwice\"}}",
                "rejected(conflict) 200 OK: spent twice",
            ),
            (200, "{\"error\":\"no\"}", "rejected(conflict) 200 OK: no"),
            (200, "{\"error\":{\"code\":7}}", "rejected(conflict) 200 OK: {\"code\":7}"),
            (200, "<html>", "rejected(server) 200 OK: the body is not JSON"),
            (204, "", "committed "),
            (302, "<html>", "committed "),
            (404, "{\"error\":1}", "rejected(bad_request) 404 OK"),
        ] {
            assert_eq!(judge(&rules, status, "OK", body), expected, "{body}");
        }
        let long = format!("{{\"x\":\"{}\"}}", "y".repeat(100));
        assert_eq!(
            judge(&rules, 200, "OK", &long),
            "rejected(client) 200 OK: the body is longer than workload.body_kept_max"
        );
    }

    /// Claim: with nothing kept a body that a rule has to read is a failure of this client's, and no commit.
    #[test]
    fn bodies_of_which_nothing_is_kept() {
        let (rules, problems) = rules(&[("error_pointer", "/error"), ("body_kept_max", "0B")]);
        assert_eq!(problems, Vec::<String>::new());
        let too_long = "rejected(client) 200 OK: the body is longer than workload.body_kept_max";
        assert_eq!(judge(&rules, 200, "OK", "{\"error\":1}"), too_long);
        assert_eq!(judge(&rules, 204, "OK", ""), "committed ");
        assert_eq!(judge(&rules, 404, "X", "{\"error\":1}"), "rejected(bad_request) 404 X");
    }

    /// Claim: a limiter that hides in a 404 or in a 200 is told apart by pointer or by text, and a good answer
    /// that speaks of limits is good.
    #[test]
    fn limiters_in_bodies() {
        let (rules, _) = rules(&[
            ("error_pointer", "/error"),
            ("limited_pointer", "/error/data/see"),
            ("limited_text", "rate limit"),
        ]);
        for (status, body, expected) in [
            (404, "project exceeded Rate Limit", "rejected(limited) 404 X: limited, says the body"),
            (404, "no such block", "rejected(bad_request) 404 X"),
            (
                200,
                "{\"error\":{\"data\":{\"see\":\"u\"}}}",
                "rejected(limited) 200 X: limited, says the body",
            ),
            (
                200,
                "{\"error\":{\"message\":\"rate limit\"}}",
                "rejected(limited) 200 X: limited, says the body",
            ),
            (200, "{\"text\":\"about a rate limit\"}", "committed "),
        ] {
            assert_eq!(judge(&rules, status, "X", body), expected, "{body}");
        }
    }

    /// Claim: an error text is bounded, whatever a server sends.
    #[test]
    fn texts_are_bounded() {
        let (rules, _) = rules(&[("error_pointer", "/e")]);
        let said = judge(&rules, 200, "OK", &format!("{{\"e\":\"{}\"}}", "\u{e4}".repeat(5000)));
        assert!(said.len() < 200 && said.ends_with('…'), "{said}");
        assert!(judge(&rules, 500, &"x".repeat(9000), "").len() < 200);
    }

    /// Claim: rules that cannot work are refused.
    #[test]
    fn broken_rules() {
        let (_, problems) = rules(&[
            ("error_class", "client"),
            ("error_text_pointer", "/m"),
            ("limited_pointer", "error.data"),
            ("limited_text", ""),
            ("body_kept_max", "1GiB"),
        ]);
        assert_eq!(
            problems,
            [
                "`workload.error_class` cannot be `client`; it is one of bad_request, conflict, expired, limited, overloaded, server",
                "`workload.error_text_pointer` says nothing without `workload.error_pointer`",
                "`workload.limited_pointer` must be a JSON pointer, but `error.data` does not begin with `/`",
                "`workload.limited_text` holds an empty text, which every body contains",
                "expected `workload.body_kept_max` between 0B and 16MiB, got 1GiB",
            ]
        );
    }
}
