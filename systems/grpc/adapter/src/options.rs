//! From `[system.deploy]` and `[workload]` to a system: every key typed, every mistake found, `.proto` files read, `env:` values
//! looked up. Nothing is sent and no name is looked up here.

use std::sync::OnceLock;
use std::time::Duration;

use http_adapter::borrowed::{self, Expectation, Lines, Server, Text};
use model::options::{Options, Problems, Section, Value};
use prost_reflect::DescriptorPool;
use sut::{Request, System};

use crate::calls::{Call, Expects, Wish};
use crate::described;
use crate::status::{self, Outcomes};
use crate::system::{Description, GrpcSystem};

/// Streams of a connection, unless the experiment says otherwise: common servers take 100 and more.
const STREAMS: u64 = 64;
const STREAMS_MAX: u64 = 1024;
/// Calls of a workload.
const CALLS_MAX: usize = 1_000;
/// The longest message of an answer: what gRPC's own clients take.
const MESSAGE_BYTES: u64 = 4 << 20;
const MESSAGE_BYTES_MAX: u64 = 64 << 20;

const SCHEMES: [&str; 2] = ["grpc", "grpcs"];

/// Builds the system, or reports everything that is wrong.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    read(request, problems).map(|system| Box::new(system) as Box<dyn System>)
}

/// The server that every call goes to.
pub(crate) fn targets(request: &Request<'_>) -> Vec<String> {
    match read(request, &mut Problems::default()) {
        Some(system) => vec![system.server.url()],
        None => request.deploy.get("url").map(Options::labels).unwrap_or_default(),
    }
}

/// Reads all keys.
pub(crate) fn read(request: &Request<'_>, problems: &mut Problems) -> Option<GrpcSystem> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let server = Server::read(&mut deploy, request.folder, SCHEMES, true, problems);
    deploy.finish(problems);
    let mut workload = Section::open(request.workload, "workload", problems);
    let mut reading = Reading {
        folder: request.folder,
        lines: Lines::read(&mut workload, request.folder, problems),
        metadata: metadata(&mut workload, problems),
        target: server.as_ref().map_or("", |server| server.target.as_str()),
        problems,
    };
    let streams = workload.integer("streams", 1, STREAMS_MAX, reading.problems).unwrap_or(STREAMS);
    let outcomes = workload.section("status", reading.problems);
    let outcomes = Outcomes::read(outcomes, reading.problems);
    let bytes_max = workload
        .size_within("message_bytes_max", 0..=MESSAGE_BYTES_MAX, reading.problems)
        .unwrap_or(MESSAGE_BYTES);
    let has_preflight = workload.boolean("preflight", reading.problems).unwrap_or(true);
    let wishes = reading.wishes(&mut workload);
    let pool = pool(&mut workload, request, reading.problems);
    workload.finish(problems);
    let server = server?;
    let spans = wishes.iter().map(|(_, span)| *span).collect::<Vec<_>>();
    let system = GrpcSystem {
        server,
        wishes: wishes.into_iter().map(|(wish, _)| wish).collect(),
        outcomes,
        message_bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
        streams: u32::try_from(streams).expect("bounded by STREAMS_MAX"),
        has_preflight,
        patience: request.load.map_or(Duration::MAX, |load| load.timeout),
        description: match pool {
            None => return None,
            Some(None) => Description::Asked,
            Some(Some(pool)) => Description::Read(pool),
        },
        calls: OnceLock::new(),
    };
    if let Description::Read(pool) = &system.description {
        let mut calls = Vec::new();
        for (wish, span) in system.wishes.iter().zip(spans) {
            match Call::new(wish, pool, system.place()) {
                Ok(call) => calls.push(call),
                Err(message) => problems.add(span, message, None),
            }
        }
        system.set_calls(calls);
    }
    (problems.list.len() == before).then_some(system)
}

/// The files' description; nothing in it: the server is asked.
fn pool(
    workload: &mut Section<'_>,
    request: &Request<'_>,
    problems: &mut Problems,
) -> Option<Option<DescriptorPool>> {
    let files = workload.strings("proto", problems).unwrap_or_default();
    let imports = workload.strings("import", problems).unwrap_or_default();
    if files.is_empty() {
        if !imports.is_empty() {
            let help = "name the files: proto = \"service.proto\"".to_owned();
            workload.reject(
                "import",
                "`workload.import` says nothing without `workload.proto`",
                Some(help),
                problems,
            );
        }
        return Some(None);
    }
    match described::of_files(&files, &imports, request.folder) {
        Ok(pool) => Some(Some(pool)),
        Err(message) => {
            workload.reject("proto", message, None, problems);
            None
        }
    }
}

/// Metadata, which gRPC keeps some names of for itself.
fn metadata(section: &mut Section<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    let found = borrowed::headers("metadata", section, problems);
    for (name, _) in &found {
        let lower = name.to_ascii_lowercase();
        if lower.starts_with("grpc-") || ["te", "content-type", "host"].contains(&lower.as_str()) {
            let message = format!("`{name}` is gRPC's own and cannot be metadata");
            let help = (lower == "grpc-timeout").then(|| "write deadline = \"500ms\"".to_owned());
            section.reject("metadata", message, help, problems);
        }
    }
    found
}

/// The surroundings that calls are read in.
struct Reading<'a, 'p> {
    folder: &'a std::path::Path,
    lines: Lines,
    metadata: Vec<(String, String)>,
    /// Path of the server's URL: a method, where nothing else names one.
    target: &'a str,
    problems: &'p mut Problems,
}

impl Reading<'_, '_> {
    /// `[[workload.call]]`, or the one that `[workload]` itself describes.
    fn wishes(&mut self, workload: &mut Section<'_>) -> Vec<(Wish, model::options::Span)> {
        let Some(calls) = workload.array("call", self.problems) else {
            let span = workload.raw("message").or(workload.raw("method")).map(|value| value.span);
            let span = span.unwrap_or(workload.span());
            return self.wish(workload, 1).map(|wish| (wish, span)).into_iter().collect();
        };
        for key in ["method", "message", "message_file"] {
            if workload.raw(key).is_some() {
                let message = format!("`workload.{key}` says nothing beside [[workload.call]]");
                workload.reject(
                    key,
                    message,
                    Some("write it into a call".to_owned()),
                    self.problems,
                );
            }
        }
        if calls.is_empty() || calls.len() > CALLS_MAX {
            let message = format!("expected 1 to {CALLS_MAX} calls, got {}", calls.len());
            workload.reject("call", message, None, self.problems);
        }
        let mut wishes: Vec<(Wish, model::options::Span)> = Vec::new();
        for (at, call) in calls.iter().take(CALLS_MAX).enumerate() {
            let path = format!("workload.call[{at}]");
            let mut section = Section::open(call, &path, self.problems);
            let name = section.string("name", self.problems).map(str::to_owned);
            let weight = section.integer("weight", 1, 1_000_000, self.problems).unwrap_or(1);
            let own = metadata(&mut section, self.problems);
            let wish = self.wish(&mut section, weight);
            section.finish(self.problems);
            let Some(mut wish) = wish else { continue };
            wish.name = name.unwrap_or(wish.name);
            wish.metadata
                .retain(|(name, _)| !own.iter().any(|(it, _)| it.eq_ignore_ascii_case(name)));
            wish.metadata.extend(own);
            if wishes.iter().any(|(known, _)| known.name == wish.name) {
                let message = format!("two calls are called `{}`", wish.name);
                let help = Some("give one of them a name = \"…\"".to_owned());
                self.problems.add(call.span, message, help);
            }
            wishes.push((wish, call.span));
        }
        wishes
    }

    /// The keys of one call.
    fn wish(&mut self, section: &mut Section<'_>, weight: u64) -> Option<Wish> {
        let before = self.problems.list.len();
        let target = self.target.trim_matches('/');
        let method =
            section.string("method", self.problems).or((!target.is_empty()).then_some(target));
        let method =
            section.require("method", method, "method = \"pkg.Service/Method\"", self.problems);
        let parts = method.and_then(|method| match described::split(method) {
            Ok((service, name)) => Some((service.to_owned(), name.to_owned())),
            Err(message) => {
                section.reject("method", message, None, self.problems);
                None
            }
        });
        let message = self.message(section);
        let deadline = section.duration("deadline", self.problems);
        let expects = self.expects(section);
        if self.problems.list.len() > before {
            return None;
        }
        let ((service, method), message) = (parts?, message?);
        Some(Wish {
            name: format!("{service}/{method}"),
            service,
            method,
            message,
            deadline,
            metadata: self.metadata.clone(),
            weight,
            expects,
        })
    }

    /// `message`, text or a table, or `message_file`.
    fn message(&mut self, section: &mut Section<'_>) -> Option<Text> {
        let (given, file) = (section.raw("message"), section.string("message_file", self.problems));
        let key = if file.is_some() { "message_file" } else { "message" };
        let text = match (given.map(|given| &given.value), file) {
            (Some(_), Some(_)) => {
                Err("`message` and `message_file` are two messages; keep one".to_owned())
            }
            (None, None) => Ok(b"{}".to_vec()),
            (None, Some(path)) => borrowed::file(self.folder, path),
            (Some(Value::String(text)), None) => Ok(text.as_bytes().to_vec()),
            (Some(_), None) => {
                Err("expected JSON in quotes, such as message = '{\"id\": \"7\"}'".to_owned())
            }
        };
        let text = text.and_then(|text| borrowed::given_text(&text)).map_err(|why| vec![why]);
        let text = text.and_then(|text| {
            let text = Text::parse(&text, &self.lines)?;
            if text.has_time() {
                let why =
                    "`{{$time}}` is not known when a message of gRPC is made, ahead of its time";
                return Err(vec![why.to_owned()]);
            }
            Ok(text)
        });
        match text {
            Ok(text) => Some(text),
            Err(mistakes) => {
                let mut told = |mistake| section.reject(key, mistake, None, self.problems);
                mistakes.into_iter().for_each(&mut told);
                None
            }
        }
    }

    /// `expect`: `status`, `messages`, and what HTTP expects of bodies and headers.
    fn expects(&mut self, section: &mut Section<'_>) -> Expects {
        let path = section.full("expect");
        let Some(table) = section.raw("expect") else { return Expects::default() };
        let own = ["status", "messages"];
        let answer = Expectation::read(table, &path, &own, self.problems);
        let mut of_own = table.clone();
        if let Value::Table(entries) = &mut of_own.value {
            entries.retain(|key, _| own.contains(&key.as_str()));
        }
        let mut of_own = Section::open(&of_own, &path, self.problems);
        let names = of_own.strings("status", self.problems).unwrap_or_default();
        let mut statuses = Vec::new();
        for name in names {
            match status::code(name) {
                Ok(code) => statuses.push(code),
                Err(message) => of_own.reject("status", message, None, self.problems),
            }
        }
        let messages = of_own.integer("messages", 0, u64::MAX, self.problems);
        Expects { statuses, messages, answer }
    }
}
