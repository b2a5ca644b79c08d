//! Values that a user takes from an answer: its status, a header, a cookie, a place in its JSON, what a pattern finds in its body.

use model::options::Span;
use model::{Class, Outcome};
use regex_lite::Regex;
use wire::http1::{header_of, is_token};

use crate::expect::Answered;
use crate::flow::cookies::Jar;
use crate::flow::json;

/// Where a value is.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Status,
    Body,
    Header(String),
    Cookie(String),
    Json(Vec<String>),
    /// Its first group, or all that it matches.
    Regex(Regex),
}

/// A value that is taken.
#[derive(Clone, Debug)]
pub(crate) struct Take {
    /// Its place among the user's values.
    pub(crate) value: usize,
    /// As the experiment writes it, for messages, and where.
    pub(crate) written: Box<str>,
    pub(crate) span: Span,
    pub(crate) source: Source,
    /// Its stand-in where the answer has none; absent: the step has failed.
    pub(crate) otherwise: Option<Box<[u8]>>,
}

/// Why there is no value.
pub(crate) struct NotFound {
    pub(crate) outcome: Outcome,
    pub(crate) why: &'static str,
}

impl Source {
    /// Reads `json:/token`.
    ///
    /// # Errors
    /// When it is none of the forms.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "status" => Ok(Self::Status),
            None if text == "body" => Ok(Self::Body),
            Some(("header", name)) if is_token(name) => Ok(Self::Header(name.to_owned())),
            Some(("cookie", name)) if is_token(name) => Ok(Self::Cookie(name.to_owned())),
            Some(("json", at)) => json::pointer(at).map(Self::Json),
            Some(("regex", pattern)) => match Regex::new(pattern) {
                Ok(pattern) => Ok(Self::Regex(pattern)),
                Err(error) => Err(format!("`{pattern}` is not a regular expression: {error}")),
            },
            _ => Err(format!(
                "`{text}` is no place of an answer; there are status, body, header:NAME, cookie:NAME, json:/POINTER and \
                 regex:PATTERN"
            )),
        }
    }

    pub(crate) const fn reads_body(&self) -> bool {
        matches!(self, Self::Body | Self::Json(_) | Self::Regex(_))
    }
}

impl Take {
    /// Puts the value of this answer in the place of what stood in `out`.
    ///
    /// # Errors
    /// When there is none, and nothing stands for it.
    pub(crate) fn take(
        &self,
        answered: &Answered<'_>,
        jar: &Jar,
        out: &mut Vec<u8>,
    ) -> Result<(), NotFound> {
        out.clear();
        let is_cut = answered.response.body_bytes > answered.body.len() as u64;
        let failed = match self.find(answered, jar, out) {
            Ok(true) => return Ok(()),
            Ok(false) => "the answer has no value there",
            Err(_) => "the body is not JSON",
        };
        out.clear();
        if self.source.reads_body() && is_cut {
            let why = "the body is longer than workload.body_kept_max";
            return Err(NotFound { outcome: Outcome::Rejected(Class::Client), why });
        }
        match &self.otherwise {
            Some(otherwise) => {
                out.extend_from_slice(otherwise);
                Ok(())
            }
            None => Err(NotFound { outcome: Outcome::Rejected(Class::Server), why: failed }),
        }
    }

    fn find(
        &self,
        answered: &Answered<'_>,
        jar: &Jar,
        out: &mut Vec<u8>,
    ) -> Result<bool, serde_json::Error> {
        let found = match &self.source {
            Source::Status => {
                let status = answered.response.status;
                let digits = [status / 100 % 10, status / 10 % 10, status % 10];
                out.extend(digits.iter().map(|digit| b'0' + (*digit as u8)));
                return Ok(true);
            }
            Source::Body => {
                let is_whole = answered.response.body_bytes == answered.body.len() as u64;
                Some(answered.body).filter(|_| is_whole)
            }
            Source::Header(name) => header_of(answered.head, name),
            Source::Cookie(name) => jar.value(name.as_bytes()),
            Source::Json(path) => return json::find(answered.body, path, out),
            Source::Regex(pattern) => {
                let text = std::str::from_utf8(answered.body).unwrap_or_else(|error| {
                    let valid = &answered.body[..error.valid_up_to()];
                    std::str::from_utf8(valid).unwrap_or_default()
                });
                let found = pattern.captures(text);
                let group = found.and_then(|found| found.get(1).or_else(|| found.get(0)));
                group.map(|group| group.as_str().as_bytes())
            }
        };
        out.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::cookies::Place;
    use wire::http1::Response;

    /// Claim: a value is taken from each place of an answer; one that is not there is said, or stands in for.
    #[test]
    fn places() {
        let mut jar = Jar::default();
        let place = Place { host: "h", is_tls: false, target: b"/", now_ns: 0 };
        jar.set(&place, b"sid=s1");
        let body = br#"{"token":"abc","list":[{"id":7}],"none":null}<b name="csrf" value="x9">"#;
        let head = b"HTTP/1.1 201 Created\r\nLocation: /a\r\n\r\n";
        let take = |source: &str, body: &[u8], otherwise: Option<&str>| {
            let take = Take {
                value: 0,
                written: source.into(),
                span: Span::default(),
                source: Source::parse(source).unwrap(),
                otherwise: otherwise.map(|text| text.as_bytes().into()),
            };
            let response =
                Response { status: 201, body_bytes: body.len() as u64, keep_alive: true };
            let answered =
                Answered { response, reason: "", body, has_body: true, head, expects: None };
            let mut out = b"before".to_vec();
            match take.take(&answered, &jar, &mut out) {
                Ok(()) => String::from_utf8(out).unwrap(),
                Err(not_found) => format!("{} {}", not_found.outcome, not_found.why),
            }
        };
        let json_end = body.iter().position(|byte| *byte == b'<').unwrap();
        let (json, html) = body.split_at(json_end);
        for (source, expected) in [
            ("status", "201"),
            ("header:location", "/a"),
            ("header:x", "rejected(server) the answer has no value there"),
            ("cookie:sid", "s1"),
            ("json:/token", "abc"),
            ("json:/list/0/id", "7"),
            ("json:/none", "rejected(server) the answer has no value there"),
        ] {
            assert_eq!(take(source, json, None), expected, "{source}");
        }
        assert_eq!(take("regex:value=\"([^\"]+)\"", html, None), "x9");
        assert_eq!(take("regex:val..", html, None), "value");
        assert_eq!(take("json:/token", html, None), "rejected(server) the body is not JSON");
        assert_eq!(take("json:/token", html, Some("none")), "none");
        assert_eq!(take("body", b"all", None), "all");
        for (source, expected) in [
            ("jsn:/a", "`jsn:/a` is no place of an answer; "),
            (
                "json:a.b",
                "`a.b` is not a JSON pointer, which begins with `/`; did you mean `/a/b`?",
            ),
            ("regex:(", "`(` is not a regular expression: "),
        ] {
            let wrong = Source::parse(source).unwrap_err();
            assert!(wrong.starts_with(expected), "{wrong}");
        }
    }
}
