//! One `[[workload.step]]`: its keys as written, and the step that is made of them for a flow that has come so far.

use std::time::Duration;

use model::options::{Options, Problems, Section, Span, Value};
use model::quantity::parse_duration;

use super::{Around, REDIRECTS_MAX, add};
use crate::flow::condition::Condition;
use crate::flow::headers::Headers;
use crate::flow::take::{Source, Take};
use crate::flow::template::{Form, Names, Template};
use crate::flow::{Back, Step, Think, coding};
use crate::requests::USER_AGENT;
use crate::targets;
use crate::url::{self, Origin};

/// The most rounds of a loop.
const TIMES_MAX: u64 = 1_000_000;
/// The flow of steps that name none.
const ONLY_FLOW: &str = "flow";

/// A step as written.
pub(super) struct Written<'a> {
    pub(super) span: Span,
    pub(super) flow: &'a str,
    /// Another flow, whose steps stand in its place.
    pub(super) run: Option<(&'a str, Span)>,
    pub(super) name: Option<&'a str>,
    method: Option<(&'a str, Span)>,
    path: Option<(&'a str, Span)>,
    headers: Vec<(&'a str, Span, &'a Options)>,
    body: Option<(&'a str, Span)>,
    body_file: Option<(&'a str, Span)>,
    pub(super) takes: Vec<WrittenTake<'a>>,
    pub(super) when: Option<(&'a str, Span)>,
    think: Think,
    repeat: Option<u64>,
    pub(super) back_to: Option<(&'a str, Span)>,
    goes_on: Option<(&'a str, Span)>,
    times: Option<u64>,
    redirects: Option<u64>,
    pub(super) expect: Option<&'a Options>,
}

/// One entry of `take`.
pub(super) struct WrittenTake<'a> {
    pub(super) name: &'a str,
    span: Span,
    from: &'a str,
    otherwise: Option<&'a str>,
}

impl<'a> Written<'a> {
    pub(super) fn read(item: &'a Options, problems: &mut Problems) -> Self {
        let mut step = Section::open(item, "workload.step", problems);
        let span = step.span();
        let written = Self {
            span,
            flow: step.string("flow", problems).unwrap_or(ONLY_FLOW),
            run: text(&mut step, "run", problems),
            name: step.string("name", problems),
            method: text(&mut step, "method", problems),
            path: text(&mut step, "path", problems),
            headers: step.section("headers", problems).map(Section::entries).unwrap_or_default(),
            body: text(&mut step, "body", problems),
            body_file: text(&mut step, "body_file", problems),
            takes: takes(&mut step, problems),
            when: text(&mut step, "when", problems),
            think: think(&mut step, problems),
            repeat: step.integer("repeat", 1, TIMES_MAX, problems),
            back_to: text(&mut step, "back_to", problems),
            goes_on: text(&mut step, "while", problems),
            times: step.integer("times", 1, TIMES_MAX, problems),
            redirects: step.integer("redirects", 0, REDIRECTS_MAX, problems),
            expect: step.raw("expect"),
        };
        written.check(problems);
        step.finish(problems);
        written
    }

    /// Keys that say nothing together.
    fn check(&self, problems: &mut Problems) {
        let is_request = self.method.is_some() || self.path.is_some() || self.body.is_some();
        if let (Some((_, span)), true) = (self.run, is_request || !self.takes.is_empty()) {
            let message = "a step that runs a flow makes no request of its own; leave out method, path, body and take";
            problems.add(span, message, None);
        }
        if self.run.is_none() && self.path.is_none() {
            let help = "add a line such as: path = \"/login\"".to_owned();
            problems.add(self.span, "`workload.step.path` is missing", Some(help));
        }
        if let (Some(_), Some((_, span))) = (self.body, self.body_file) {
            problems.add(span, "`body` and `body_file` are two bodies; keep one", None);
        }
        if let (Some(_), Some((_, span))) = (self.repeat, self.back_to) {
            problems.add(span, "`repeat` and `back_to` are two loops of one step; keep one", None);
        }
        if let (Some((_, span)), None) = (self.back_to, self.times) {
            let help = "add a line such as: times = 5".to_owned();
            problems.add(span, "a loop without an end: `times` is missing", Some(help));
        }
        if self.back_to.is_none()
            && (self.times.is_some() || self.goes_on.is_some())
            && self.repeat.is_none()
        {
            let span = self.goes_on.map_or(self.span, |(_, span)| span);
            let help = "add back_to = \"…\", the step to go back to".to_owned();
            problems.add(
                span,
                "`while` and `times` are of a loop, and there is no `back_to`",
                Some(help),
            );
        }
    }

    pub(super) const fn goes_back(&self) -> bool {
        self.back_to.is_some() || matches!(self.repeat, Some(2..))
    }

    /// Its loop, without its places.
    pub(super) fn back(&self, names: &Names<'_>, problems: &mut Problems) -> Option<Back> {
        if !self.goes_back() {
            return None;
        }
        let times = self.times.unwrap_or_else(|| self.repeat.unwrap_or(1) - 1);
        let condition =
            self.goes_on.and_then(|(text, span)| condition(text, span, *names, problems));
        let times = u32::try_from(times).expect("bounded by TIMES_MAX");
        Some(Back { to: 0, counter: 0, times, condition })
    }

    /// The step, for a flow that knows so much.
    pub(super) fn make(&self, writing: &Writing<'_>, problems: &mut Problems) -> Option<Step> {
        let before = problems.list.len();
        let (path, path_span) = self.path?;
        let has_body = self.body.is_some() || self.body_file.is_some();
        let method =
            self.method.map_or(if has_body { "POST" } else { "GET" }, |(method, _)| method);
        if let (Some((_, span)), Err(message)) = (self.method, targets::check_method(method)) {
            add(problems, span, message, None);
        }
        check_path(path, path_span, problems);
        let target = writing.template(path, path_span, Form::Target, problems);
        let content = |name: &str| name.to_ascii_lowercase().starts_with("content-");
        let all = self.all_headers(writing, problems);
        let (of_body, of_head): (Vec<_>, Vec<_>) = all.iter().partition(|(name, ..)| content(name));
        let is_http2 = writing.around.is_http2;
        let mut header = |(name, value, span): &(String, String, Span)| {
            let value = writing.template(value, *span, Form::Header, problems);
            if is_http2 && name.eq_ignore_ascii_case("host") && value.as_text().is_none() {
                let message =
                    "over HTTP/2 `Host` is the same in each request of a step, and holds no value";
                add(problems, *span, message.to_owned(), None);
            }
            (name.clone(), value)
        };
        let mut headers = writing.own_headers(&all);
        headers.extend(of_head.into_iter().map(&mut header));
        let headers = Headers::to_server(is_http2, writing.origin, headers);
        let of_body = of_body.into_iter().map(&mut header).collect();
        let body_headers = Headers::new(is_http2, of_body);
        let name = self.name.map_or_else(|| format!("{method} {path}"), str::to_owned);
        let step = Step {
            name,
            kind: 0,
            kind_again: 0,
            kind_redirected: 0,
            method: method.to_owned(),
            target,
            headers,
            has_own_cookie: all.iter().any(|(name, ..)| name.eq_ignore_ascii_case("cookie")),
            body_headers,
            body: self.body_template(writing, problems),
            expects: None,
            takes: self.takes.iter().filter_map(|take| take.make(writing, problems)).collect(),
            when: self.when.and_then(|(text, span)| condition(text, span, writing.names, problems)),
            think: self.think,
            back: None,
            round_of: None,
            redirects_max: self
                .redirects
                .map_or(writing.redirects_max, |count| u8::try_from(count).expect("bounded")),
        };
        (problems.list.len() == before).then_some(step)
    }

    /// Its own headers, and those of every request that it does not write itself.
    fn all_headers(
        &self,
        writing: &Writing<'_>,
        problems: &mut Problems,
    ) -> Vec<(String, String, Span)> {
        let mut all = Vec::new();
        for (name, span, value) in &self.headers {
            let Value::String(text) = &value.value else {
                let message = format!(
                    "`workload.step.headers.{name}` must be text in quotes, but is {}",
                    value.type_word()
                );
                add(problems, value.span, message, None);
                continue;
            };
            let checked = targets::check_header(name, text);
            match checked.and_then(|()| crate::given::looked_up(name, text)) {
                Ok(text) => all.push(((*name).to_owned(), text, *span)),
                Err(message) => add(problems, *span, message, None),
            }
        }
        for (name, text) in writing.around.headers {
            if !all.iter().any(|(own, ..)| own.eq_ignore_ascii_case(name)) {
                all.push((name.clone(), text.clone(), self.span));
            }
        }
        all
    }

    fn body_template(&self, writing: &Writing<'_>, problems: &mut Problems) -> Option<Template> {
        if let Some((text, span)) = self.body {
            return Some(writing.template(text, span, Form::Raw, problems));
        }
        let (path, span) = self.body_file?;
        let read =
            crate::given::bytes_of(&writing.around.folder.join(path), crate::given::BODY_BYTES_MAX);
        match read {
            Ok(bytes) => Some(writing.bytes(&bytes, span, Form::Raw, problems)),
            Err(why) => {
                add(problems, span, format!("{path}: {why}"), None);
                None
            }
        }
    }
}

impl WrittenTake<'_> {
    fn make(&self, writing: &Writing<'_>, problems: &mut Problems) -> Option<Take> {
        let value = writing.all.iter().position(|name| name == self.name)?;
        match Source::parse(self.from) {
            Ok(source) => {
                let otherwise = self.otherwise.map(|text| text.as_bytes().into());
                Some(Take { value, written: self.from.into(), span: self.span, source, otherwise })
            }
            Err(message) => {
                add(problems, self.span, message, None);
                None
            }
        }
    }
}

/// The surroundings of a step.
pub(super) struct Writing<'a> {
    /// Names that are known before it.
    pub(super) names: Names<'a>,
    /// All names, by their place.
    pub(super) all: &'a [String],
    pub(super) around: &'a Around<'a>,
    pub(super) origin: &'a Origin,
    pub(super) redirects_max: u8,
    pub(super) has_compression: bool,
}

impl Writing<'_> {
    /// A text with the variables of the environment that it names, and places for values.
    fn template(&self, text: &str, span: Span, form: Form, problems: &mut Problems) -> Template {
        self.bytes(text.as_bytes(), span, form, problems)
    }

    fn bytes(&self, bytes: &[u8], span: Span, form: Form, problems: &mut Problems) -> Template {
        let parsed = crate::given::given_bytes(bytes)
            .map_err(|why| vec![why])
            .and_then(|bytes| Template::parse(&bytes, form, self.names));
        parsed.unwrap_or_else(|wrong| {
            wrong.into_iter().for_each(|why| add(problems, span, why, None));
            Template::default()
        })
    }

    /// Headers of ours that the step does not bring.
    fn own_headers(&self, brought: &[(String, String, Span)]) -> Vec<(String, Template)> {
        let authority = self.origin.authority();
        let coding = if self.has_compression { coding::ACCEPTED } else { "" };
        let own = [
            ("Host", authority.as_str()),
            ("User-Agent", USER_AGENT),
            ("Accept", "*/*"),
            ("Accept-Encoding", coding),
        ];
        let is_ours = |(name, value): &&(&str, &str)| {
            !value.is_empty() && !brought.iter().any(|(it, ..)| it.eq_ignore_ascii_case(name))
        };
        let text =
            |(name, value): &(&str, &str)| ((*name).to_owned(), Template::text(value.as_bytes()));
        own.iter().filter(is_ours).map(text).collect()
    }
}

/// A path begins with a slash, and what is no place for a value can stand in a URL.
fn check_path(path: &str, span: Span, problems: &mut Problems) {
    let (mut plain, mut rest) = (String::new(), path);
    while let Some((before, after)) = rest.split_once("{{") {
        plain.push_str(before);
        rest = after.split_once("}}").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    let is_value = path.starts_with("{{");
    match url::parse(&plain) {
        _ if is_value => {}
        Ok(place) if place.origin.is_none() => {}
        Ok(_) => {
            let message = "a step's path begins with `/`: all of a flow goes to the server of system.deploy.url";
            add(problems, span, message.to_owned(), None);
        }
        Err(message) if plain.starts_with('/') => add(problems, span, message, None),
        Err(_) => {
            let message = format!("a step's path must begin with `/`, but is `{path}`");
            add(problems, span, message, Some(format!("did you mean `/{path}`?")));
        }
    }
}

fn condition(
    text: &str,
    span: Span,
    names: Names<'_>,
    problems: &mut Problems,
) -> Option<Condition> {
    match Condition::parse(text, names) {
        Ok(condition) => Some(condition),
        Err(wrong) => {
            wrong.into_iter().for_each(|why| add(problems, span, why, None));
            None
        }
    }
}

fn text<'a>(
    step: &mut Section<'a>,
    key: &'static str,
    problems: &mut Problems,
) -> Option<(&'a str, Span)> {
    let span = step.raw(key)?.span;
    Some((step.string(key, problems)?, span))
}

/// `take = { token = "json:/token", note = { from = "header:x-note", else = "none" } }`.
fn takes<'a>(step: &mut Section<'a>, problems: &mut Problems) -> Vec<WrittenTake<'a>> {
    let entries = step.section("take", problems).map(Section::entries).unwrap_or_default();
    let mut takes = Vec::with_capacity(entries.len());
    for (name, span, value) in entries {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
        if !is_name {
            let message = format!(
                "`{name}` cannot be the name of a value; use letters, digits, `_`, `-` and `.`"
            );
            problems.add(span, message, None);
            continue;
        }
        if let Value::String(from) = &value.value {
            takes.push(WrittenTake { name, span: value.span, from, otherwise: None });
            continue;
        }
        let mut table = Section::open(value, "workload.step.take", problems);
        let from = table.string("from", problems);
        let otherwise = table.string("else", problems);
        let from = table.require("from", from, "from = \"json:/token\"", problems);
        table.finish(problems);
        takes.extend(from.map(|from| WrittenTake { name, span: value.span, from, otherwise }));
    }
    takes
}

/// `"500ms"`, or `"200ms..800ms"`.
fn think(step: &mut Section<'_>, problems: &mut Problems) -> Think {
    let Some(text) = step.string("think", problems) else { return Think::default() };
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let ends = parse_duration(low.trim()).and_then(|low| Ok((low, parse_duration(high.trim())?)));
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    match ends {
        Ok((low, high)) if low <= high => Think { low_ns: ns(low), high_ns: ns(high) },
        Ok(_) => {
            let help = Some("write the shorter time first: \"200ms..800ms\"".to_owned());
            step.reject("think", format!("`{text}` ends before it begins"), help, problems);
            Think::default()
        }
        Err(why) => {
            step.reject("think", format!("`workload.step.think`: {why}"), None, problems);
            Think::default()
        }
    }
}
