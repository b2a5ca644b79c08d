//! From `[system.deploy]` and `[workload]` to a system: every key typed, every mistake found, files read, `env:` values looked up.
//! Nothing is sent and no name is looked up here.

use std::sync::Arc;
use std::time::Duration;

use http_adapter::borrowed::{self, Expectation, Filler, Lines, Server, Text};
use model::Class;
use model::options::{Options, Problems, Section, Span};
use sut::{Request, System};
use wire::websocket::{Limits, Opening};

use crate::messages::{ErrorRule, Matching, Message, Messages};
use crate::session::Greeting;
use crate::system::WebSocketSystem;

/// Messages outstanding on a connection where answers carry an id, unless the experiment says otherwise.
const IN_FLIGHT: u64 = 64;
const IN_FLIGHT_MAX: u64 = 1024;
/// Messages of a workload.
const MESSAGES_MAX: usize = 1_000;
/// The longest message of a server's.
const MESSAGE_BYTES: u64 = 16 << 20;
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

const SCHEMES: [&str; 2] = ["ws", "wss"];

/// Builds the system, or reports everything that is wrong.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    read(request, problems).map(|system| Box::new(system) as Box<dyn System>)
}

/// The server that every message goes to.
pub(crate) fn targets(request: &Request<'_>) -> Vec<String> {
    match read(request, &mut Problems::default()) {
        Some(system) => vec![system.server.url()],
        None => request.deploy.get("url").map(Options::labels).unwrap_or_default(),
    }
}

/// Reads all keys.
pub(crate) fn read(request: &Request<'_>, problems: &mut Problems) -> Option<WebSocketSystem> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let server = Server::read(&mut deploy, request.folder, SCHEMES, false, problems);
    deploy.finish(problems);
    let mut workload = Section::open(request.workload, "workload", problems);
    let matching = matching(&mut workload, problems);
    let error = error_rule(&mut workload, problems);
    let in_flight = in_flight(&mut workload, &matching, problems);
    let limits = limits(&mut workload, problems);
    let headers = headers(&mut workload, problems);
    let protocols = workload.strings("subprotocol", problems).unwrap_or_default();
    let texts = workload.strings("greeting", problems).unwrap_or_default();
    let texts = texts.iter().filter_map(|text| match borrowed::given_text(text.as_bytes()) {
        Ok(text) => Some(text),
        Err(why) => {
            workload.reject("greeting", why, None, problems);
            None
        }
    });
    let texts = texts.collect();
    let has_preflight = workload.boolean("preflight", problems).unwrap_or(true);
    let lines = Lines::read(&mut workload, request.folder, problems);
    let read = several_messages(&mut workload, request, &lines, problems);
    workload.finish(problems);
    let (list, spans): (Vec<_>, Vec<_>) = read.into_iter().unzip();
    let messages = Messages { list, matching, error };
    for (message, span) in messages.list.iter().zip(spans) {
        let written = messages.write(message, &mut Filler::new(1), (1, 1), &mut Vec::new());
        if let Err(why) = written {
            problems.add(span, why, None);
        }
    }
    let server = server?;
    let opening = Opening {
        host: server.authority().to_owned(),
        target: server.target.clone(),
        headers,
        protocols: protocols.into_iter().map(str::to_owned).collect(),
    };
    let in_flight = u32::try_from(in_flight).expect("bounded by IN_FLIGHT_MAX");
    (problems.list.len() == before).then(|| WebSocketSystem {
        server,
        messages: Arc::new(messages),
        greeting: Arc::new(Greeting { opening, texts, limits, in_flight }),
        has_preflight,
        patience: request.load.map_or(Duration::MAX, |load| load.timeout),
    })
}

/// `id` and `answer_id`, or `await`.
fn matching(workload: &mut Section<'_>, problems: &mut Problems) -> Matching {
    let sent = pointer("id", workload, problems);
    let answered = pointer("answer_id", workload, problems);
    let wanted = workload.raw("await").map(|table| {
        let wanted = expectation(table, "workload.await", problems);
        if !wanted.reads_bodies() {
            let message = "`workload.await` says nothing of the message that is awaited";
            let help = "write await = { contains = \"…\" }, or equals, json, regex";
            problems.add(table.span, message, Some(help.to_owned()));
        }
        wanted
    });
    match (sent, answered, wanted) {
        (Some(_), _, Some(_)) => {
            let message = "`workload.id` and `workload.await` are two ways to know an answer";
            workload.reject("await", message, Some("keep one".to_owned()), problems);
            Matching::First(None)
        }
        (Some(sent), answered, None) => {
            Matching::Id { answered: answered.unwrap_or_else(|| sent.clone()), sent }
        }
        (None, Some(_), _) => {
            let message = "`workload.answer_id` says nothing without `workload.id`";
            let help = "name the id's place in the message: id = \"/id\"";
            workload.reject("answer_id", message, Some(help.to_owned()), problems);
            Matching::First(None)
        }
        (None, None, wanted) => Matching::First(wanted),
    }
}

/// Expectations of a message, which has no headers.
fn expectation(table: &Options, path: &str, problems: &mut Problems) -> Expectation {
    if let Some(header) = table.get("header") {
        let message = format!("`{path}.header` cannot be met: a message has no headers");
        problems.add(header.span, message, Some("leave it out".to_owned()));
    }
    Expectation::read(table, path, &[], problems)
}

fn error_rule(workload: &mut Section<'_>, problems: &mut Problems) -> Option<ErrorRule> {
    let found = pointer("error_pointer", workload, problems);
    let words = Class::ALL.map(Class::word);
    // The last two are not a system's answers.
    let class = workload.one_of("error_class", &words[..6], problems).and_then(Class::from_word);
    if found.is_none() && class.is_some() {
        let message = "`workload.error_class` says nothing without `workload.error_pointer`";
        let help = "add a line such as: error_pointer = \"/error\"";
        workload.reject("error_class", message, Some(help.to_owned()), problems);
    }
    Some(ErrorRule { pointer: found?, class: class.unwrap_or(Class::BadRequest) })
}

/// A JSON pointer (RFC 6901).
fn pointer(
    key: &'static str,
    workload: &mut Section<'_>,
    problems: &mut Problems,
) -> Option<String> {
    let text = workload.string(key, problems)?;
    if text.starts_with('/') {
        return Some(text.to_owned());
    }
    let message = format!("expected a JSON pointer for `workload.{key}`, got `{text}`");
    let help = format!("did you mean `/{}`?", text.replace('.', "/"));
    workload.reject(key, message, Some(help), problems);
    None
}

fn in_flight(workload: &mut Section<'_>, matching: &Matching, problems: &mut Problems) -> u64 {
    let given = workload.integer("in_flight", 1, IN_FLIGHT_MAX, problems);
    match matching {
        Matching::Id { .. } => given.unwrap_or(IN_FLIGHT),
        Matching::First(_) => {
            if given.is_some_and(|given| given > 1) {
                let message =
                    "several messages outstanding on a connection need answers that carry an id";
                let help = "name its place: id = \"/id\"";
                workload.reject("in_flight", message, Some(help.to_owned()), problems);
            }
            1
        }
    }
}

fn limits(workload: &mut Section<'_>, problems: &mut Problems) -> Limits {
    let bytes_max = workload
        .size_within("message_bytes_max", 0..=MESSAGE_BYTES_MAX, problems)
        .unwrap_or(MESSAGE_BYTES);
    let message_bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    Limits { frame_bytes_max: bytes_max, message_bytes_max, ..Limits::CLIENT }
}

/// Headers of the handshake, which has some of its own.
fn headers(workload: &mut Section<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    let mut found = borrowed::headers("headers", workload, problems);
    for (name, _) in &found {
        let lower = name.to_ascii_lowercase();
        if ["host", "upgrade", "connection"].contains(&lower.as_str())
            || lower.starts_with("sec-websocket-")
        {
            let message = format!("`{name}` is the handshake's own and cannot be given");
            let is_protocol = lower == "sec-websocket-protocol";
            let help = is_protocol.then(|| "write subprotocol = \"…\"".to_owned());
            workload.reject("headers", message, help, problems);
        }
    }
    if !found.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        found.push(("User-Agent".to_owned(), borrowed::USER_AGENT.to_owned()));
    }
    found
}

/// `[[workload.call]]`, or the one message that `[workload]` itself describes; each with its place in the file.
fn several_messages(
    workload: &mut Section<'_>,
    request: &Request<'_>,
    lines: &Lines,
    problems: &mut Problems,
) -> Vec<(Message, Span)> {
    let Some(calls) = workload.array("call", problems) else {
        return message("message", workload, request, lines, problems).into_iter().collect();
    };
    for key in ["message", "message_file", "binary", "expect"] {
        if workload.raw(key).is_some() {
            let message = format!("`workload.{key}` says nothing beside [[workload.call]]");
            workload.reject(key, message, Some("write it into a call".to_owned()), problems);
        }
    }
    if calls.is_empty() || calls.len() > MESSAGES_MAX {
        let message = format!("expected 1 to {MESSAGES_MAX} calls, got {}", calls.len());
        workload.reject("call", message, None, problems);
    }
    let mut read: Vec<(Message, Span)> = Vec::new();
    for (at, call) in calls.iter().take(MESSAGES_MAX).enumerate() {
        let mut section = Section::open(call, &format!("workload.call[{at}]"), problems);
        let name = section.string("name", problems);
        let name = section.require("name", name, "name = \"…\"", problems).unwrap_or_default();
        let weight = section.integer("weight", 1, 1_000_000, problems).unwrap_or(1);
        let found = message(name, &mut section, request, lines, problems);
        section.finish(problems);
        if read.iter().any(|(known, _)| known.name == name) {
            problems.add(call.span, format!("two calls are called `{name}`"), None);
        }
        read.extend(found.map(|(message, span)| (Message { weight, ..message }, span)));
    }
    read
}

fn message(
    name: &str,
    section: &mut Section<'_>,
    request: &Request<'_>,
    lines: &Lines,
    problems: &mut Problems,
) -> Option<(Message, Span)> {
    let given = section.raw("message");
    let (text, file) =
        (section.string("message", problems), section.string("message_file", problems));
    let key = if file.is_some() { "message_file" } else { "message" };
    let span = section.raw(key).map_or(section.span(), |value| value.span);
    let is_binary = section.boolean("binary", problems).unwrap_or(false);
    let path = section.full("expect");
    let expects = section.raw("expect");
    let expects = expects.map(|table| expectation(table, &path, problems));
    let bytes = match (text, file) {
        (Some(_), Some(_)) => {
            Err("`message` and `message_file` are two messages; keep one".to_owned())
        }
        (Some(text), None) => Ok(text.as_bytes().to_vec()),
        (None, Some(path)) => borrowed::file(request.folder, path),
        // Of another type, which has been said.
        (None, None) if given.is_some() => return None,
        (None, None) => {
            return section.require("message", None, "message = '{\"id\": {{$tx}}}'", problems);
        }
    };
    let bytes = bytes.and_then(|bytes| borrowed::given_text(&bytes)).map_err(|why| vec![why]);
    let read = bytes.and_then(|bytes| {
        let text = Text::parse(&bytes, lines)?;
        if text.has_time() {
            let why = "`{{$time}}` is not known when a message is made, ahead of its time";
            return Err(vec![why.to_owned()]);
        }
        Ok(text)
    });
    match read {
        Ok(text) => {
            let (name, expects) = (name.to_owned(), expects.unwrap_or_default());
            Some((Message { name, text, is_binary, weight: 1, expects }, span))
        }
        Err(mistakes) => {
            mistakes.into_iter().for_each(|mistake| section.reject(key, mistake, None, problems));
            None
        }
    }
}
