//! What an experiment expects of answers, of all targets or of one: status, headers, length and body. An answer that is
//! not as expected is a failure of the server's (its code is kept), and its text says what was expected and what came.
//! Bodies are looked at only where something is expected of them; what this client did not keep is its own failure.

use std::fmt::Write as _;

use model::options::{Options, Problems, Section, Span, Value as Written, did_you_mean};
use model::{Class, Outcome};
use regex_lite::Regex;
use serde_json::Value;
use wire::http1::{Response, is_token};

use crate::outcome_table::range;
use crate::requests::Requests;

/// How much of what came is shown, in characters; what is expected is cut with the whole text.
const GOT_CHARS_MAX: usize = 60;

/// An answer, as the rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) response: Response,
    pub(crate) reason: &'a str,
    /// The kept part of the body.
    pub(crate) body: &'a [u8],
    /// Whether a body was asked for at all (not by HEAD).
    pub(crate) has_body: bool,
    /// The head, where headers are expected; else nothing.
    pub(crate) head: &'a [u8],
    /// As its request says: [`crate::requests::Prepared::expects`].
    pub(crate) expects: Option<u16>,
}

/// All that is expected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    list: Vec<Expectation>,
    /// Of targets that have none of their own; an index of the list.
    pub(crate) of_all: Option<u16>,
    of_target: Vec<(String, Span, u16)>,
}

/// What is expected of one answer.
#[derive(Clone, Debug, Default)]
struct Expectation {
    /// First and last of each range; empty: as the table of statuses says.
    statuses: Vec<(usize, usize)>,
    headers: Vec<(String, String)>,
    length: Option<u64>,
    body: Vec<OfBody>,
}

/// What is expected of a body.
#[derive(Clone, Debug)]
enum OfBody {
    Contains(String),
    Equals(String),
    Json(String, Value),
    Matches(Regex),
}

/// Why an answer is not as expected.
pub(crate) struct Unexpected {
    pub(crate) outcome: Outcome,
    pub(crate) text: String,
}

impl Unexpected {
    fn of_server(text: String) -> Self {
        Self { outcome: Outcome::Rejected(Class::Server), text }
    }
}

impl Expected {
    /// Reads `[workload.expect]` and `[workload.expect_of."METHOD /path"]`.
    pub(crate) fn read(workload: &mut Section<'_>, problems: &mut Problems) -> Self {
        let mut expected = Self::default();
        if let Some(of_all) = workload.section("expect", problems) {
            expected.of_all = expected.add(of_all, problems);
        }
        let of_target = workload.section("expect_of", problems);
        for (target, span, value) in of_target.map(Section::entries).unwrap_or_default() {
            let path = format!("workload.expect_of.\"{target}\"");
            let index = expected.add(Section::open(value, &path, problems), problems);
            expected.of_target.extend(index.map(|index| (target.to_owned(), span, index)));
        }
        expected
    }

    /// One more, of one request. Gives its place.
    pub(crate) fn add(&mut self, section: Section<'_>, problems: &mut Problems) -> Option<u16> {
        let index = u16::try_from(self.list.len()).ok()?;
        self.list.push(Expectation::read(section, problems));
        Some(index)
    }

    /// Tells each request what is expected of its answer.
    pub(crate) fn bind(&self, requests: &mut Requests, problems: &mut Problems) {
        for prepared in &mut requests.prepared {
            let own = self.of_target.iter().find(|(target, ..)| **target == *prepared.name);
            prepared.expects = own.map(|(.., index)| *index).or(self.of_all);
        }
        let names = || requests.prepared.iter().map(|it| &*it.name);
        for (target, span, _) in &self.of_target {
            if !names().any(|name| name == target) {
                let message = format!("`{target}` is not a target of this workload");
                let help = did_you_mean(target, names())
                    .or_else(|| names().next().map(|name| format!("a target is written `{name}`")));
                problems.add(*span, message, help);
            }
        }
    }

    /// Whether bodies have to be kept.
    pub(crate) fn reads_bodies(&self) -> bool {
        self.list.iter().any(|it| !it.body.is_empty())
    }

    /// Whether heads have to be kept.
    pub(crate) fn reads_headers(&self) -> bool {
        self.list.iter().any(|it| !it.headers.is_empty())
    }

    /// What the status comes to, which the table alone calls `by_table`.
    pub(crate) fn status(
        &self,
        answered: &Answered<'_>,
        by_table: Outcome,
    ) -> Result<Outcome, Unexpected> {
        let statuses = self.of(answered).map_or(&[][..], |it| it.statuses.as_slice());
        let status = usize::from(answered.response.status);
        if statuses.is_empty() {
            return Ok(by_table);
        }
        if statuses.iter().any(|(first, last)| (*first..=*last).contains(&status)) {
            return Ok(Outcome::Committed);
        }
        match by_table {
            Outcome::Committed => {
                let range = |(first, last): &(usize, usize)| match first == last {
                    true => first.to_string(),
                    false => format!("{first}-{last}"),
                };
                let wanted: Vec<String> = statuses.iter().map(range).collect();
                Err(Unexpected::of_server(format!("expected status {}", wanted.join(" or "))))
            }
            failed => Ok(failed),
        }
    }

    /// The first thing that is not as expected beside the status.
    pub(crate) fn unexpected(&self, answered: &Answered<'_>) -> Option<Unexpected> {
        self.unexpected_header(answered).or_else(|| self.unexpected_body(answered))
    }

    /// The header that is not as expected.
    pub(crate) fn unexpected_header(&self, answered: &Answered<'_>) -> Option<Unexpected> {
        self.of(answered)?.headers.iter().find_map(|header| of_header(answered, header))
    }

    /// Why the body is not as expected.
    pub(crate) fn unexpected_body(&self, answered: &Answered<'_>) -> Option<Unexpected> {
        let expectation = self.of(answered).filter(|_| answered.has_body)?;
        let length = answered.response.body_bytes;
        if let Some(wanted) = expectation.length.filter(|wanted| *wanted != length) {
            let text = format!("expected a body of {wanted} bytes, got {length}");
            return Some(Unexpected::of_server(text));
        }
        expectation.body.iter().find_map(|wanted| of_body(answered, wanted))
    }

    fn of(&self, answered: &Answered<'_>) -> Option<&Expectation> {
        self.list.get(usize::from(answered.expects?))
    }
}

/// A header that is not there, or has another value. Parameters behind the expected value are no difference:
/// `application/json` is met by `application/json; charset=utf-8`.
fn of_header(answered: &Answered<'_>, (name, wanted): &(String, String)) -> Option<Unexpected> {
    let found = wire::http1::header_of(answered.head, name);
    let is_met = |value: &str| {
        let rest = value.strip_prefix(wanted.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.trim_start().starts_with(';'))
    };
    let text = match found.map(String::from_utf8_lossy) {
        Some(value) if is_met(&value) => return None,
        Some(value) => {
            format!("expected header {name} `{wanted}`, got `{}`", shown(value.as_bytes()))
        }
        None => format!("expected header {name} `{wanted}`, got none"),
    };
    Some(Unexpected::of_server(text))
}

fn of_body(answered: &Answered<'_>, wanted: &OfBody) -> Option<Unexpected> {
    let body = answered.body;
    let is_cut = answered.response.body_bytes > body.len() as u64;
    let (is_met, mut text, is_sure) = match wanted {
        OfBody::Contains(part) => (
            contains(body, part.as_bytes()),
            format!("expected a body that contains `{part}`"),
            !is_cut,
        ),
        OfBody::Equals(all) => {
            let differs = all.len() as u64 != answered.response.body_bytes
                || !all.as_bytes().starts_with(body);
            (!differs && !is_cut, format!("expected the body `{all}`"), differs || !is_cut)
        }
        OfBody::Matches(pattern) => {
            let text = String::from_utf8_lossy(body);
            (pattern.is_match(&text), format!("expected a body that matches `{pattern}`"), !is_cut)
        }
        OfBody::Json(pointer, value) => {
            let json: Option<Value> = if is_cut { None } else { serde_json::from_slice(body).ok() };
            let found = json.as_ref().and_then(|json| json.pointer(pointer));
            let mut text = format!("expected {value} at `{pointer}` of a JSON body");
            if let Some(found) = found {
                let _ = write!(text, ", got {}", shown(found.to_string().as_bytes()));
            }
            let is_met = found.is_some_and(|found| is_same(found, value));
            if !is_met && found.is_some() {
                return Some(Unexpected::of_server(text));
            }
            (is_met, text, !is_cut)
        }
    };
    if is_met {
        return None;
    }
    if !is_sure {
        let text = "the body is longer than workload.body_kept_max".to_owned();
        return Some(Unexpected { outcome: Outcome::Rejected(Class::Client), text });
    }
    match body.is_empty() {
        true => text.push_str(", got an empty one"),
        false => write!(text, ", got `{}`", shown(body)).expect("a String takes any text"),
    }
    Some(Unexpected::of_server(text))
}

/// Numbers are the same by value: 1 and 1.0.
fn is_same(found: &Value, wanted: &Value) -> bool {
    match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) if found.is_finite() => found == wanted,
        _ => found == wanted,
    }
}

/// The beginning of what came, on one line.
fn shown(bytes: &[u8]) -> String {
    // A character takes four bytes at most.
    let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * GOT_CHARS_MAX)]);
    let mut text = String::new();
    for (n, c) in beginning.chars().enumerate() {
        if n == GOT_CHARS_MAX {
            text.push('…');
            break;
        }
        match c.is_control() {
            true => text.extend(c.escape_default()),
            false => text.push(c),
        }
    }
    text
}

fn contains(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

impl Expectation {
    fn read(mut section: Section<'_>, problems: &mut Problems) -> Self {
        let statuses = statuses(&mut section, problems);
        let length = section.integer("length", 0, u64::MAX, problems);
        let mut body = Vec::new();
        let parts = section.strings("contains", problems).unwrap_or_default();
        if parts.contains(&"") {
            let message = format!(
                "`{}` holds an empty text, which every body contains",
                section.full("contains")
            );
            section.reject("contains", message, None, problems);
        }
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        body.extend(parts.map(|part| OfBody::Contains(part.to_owned())));
        body.extend(section.string("equals", problems).map(|all| OfBody::Equals(all.to_owned())));
        for pattern in section.strings("regex", problems).unwrap_or_default() {
            match Regex::new(pattern) {
                Ok(pattern) => body.push(OfBody::Matches(pattern)),
                Err(why) => {
                    let message =
                        format!("`{}` is not a regular expression: {why}", section.full("regex"));
                    section.reject("regex", message, None, problems);
                }
            }
        }
        let json = section.section("json", problems).map(Section::entries).unwrap_or_default();
        for (pointer, span, value) in json {
            if pointer.is_empty() || pointer.starts_with('/') {
                body.push(OfBody::Json(pointer.to_owned(), json_of(value)));
                continue;
            }
            let message = format!("`{pointer}` is not a JSON pointer: it does not begin with `/`");
            let help = format!("did you mean `/{}`?", pointer.replace('.', "/"));
            problems.add(span, message, Some(help));
        }
        let headers = headers(&mut section, problems);
        section.finish(problems);
        Self { statuses, headers, length, body }
    }
}

/// `200`, `"2xx"`, `"200-299"`, or a list of them.
fn statuses(section: &mut Section<'_>, problems: &mut Problems) -> Vec<(usize, usize)> {
    let Some(written) = section.raw("status") else { return Vec::new() };
    let items = match &written.value {
        Written::Array(items) => items.as_slice(),
        _ => std::slice::from_ref(written),
    };
    let mut found = Vec::new();
    for item in items {
        match range(&item.label()) {
            Some(range) => found.push(range),
            None => {
                let message = format!(
                    "`{}` is not a status; write 200, \"2xx\" or \"200-204\"",
                    item.label()
                );
                problems.add(item.span, message, None);
            }
        }
    }
    found
}

fn headers(section: &mut Section<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let written = section.section("header", problems).map(Section::entries).unwrap_or_default();
    for (name, span, value) in written {
        match &value.value {
            Written::String(text) if is_token(name) => found.push((name.to_owned(), text.clone())),
            Written::String(_) => {
                problems.add(span, format!("`{}` is not a header name", name.escape_debug()), None);
            }
            _ => {
                let message =
                    format!("header `{name}` must be text in quotes, but is {}", value.type_word());
                problems.add(value.span, message, None);
            }
        }
    }
    found
}

fn json_of(written: &Options) -> Value {
    match &written.value {
        Written::String(text) => Value::from(text.as_str()),
        Written::Integer(n) => Value::from(*n),
        Written::Float(x) => Value::from(*x),
        Written::Boolean(b) => Value::from(*b),
        Written::Array(items) => items.iter().map(json_of).collect(),
        Written::Table(table) => Value::Object(
            table.iter().map(|(key, (_, value))| (key.clone(), json_of(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests;
