//! From `[system.deploy]` and `[workload]` to a system: every key typed, every mistake found, files read,
//! `env:` values looked up. Nothing is sent and no name is looked up here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::options::{Options, Problems, Section, Value};
use model::secret;
use sut::{Request, System, Tls};

use crate::flow::read as steps;
use crate::given::{BODY_BYTES_MAX, bytes_of, given, given_bytes, given_url, looked_up};
use crate::requests::{Requests, Wish};
use crate::rules::Rules;
use crate::server::HttpSystem;
use crate::targets::{self, Body, FILE_BYTES_MAX, Format, MISTAKES_MAX, Target};
use crate::tls::Trust;
use crate::url::{self, Origin, Place};
use crate::workload::Order;

/// The deepest pipeline. Beyond it nothing is gained (facts: the cost falls 40-fold at 64) and a lost
/// connection loses everything in it.
const PIPELINE_MAX: u64 = 1024;

/// Streams of an HTTP/2 connection, unless the experiment says otherwise: common servers take 100 and more.
const STREAMS: u64 = 64;

/// Builds the system, or reports everything that is wrong.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let system = read(request, problems)?;
    Some(Box::new(system))
}

/// The server that every request goes to: that of `url`, or the one that all targets of a file name.
pub(crate) fn servers(request: &Request<'_>) -> Vec<String> {
    match read(request, &mut Problems::default()) {
        Some(system) => vec![system.origin.to_string()],
        None => request.deploy.get("url").map(Options::labels).unwrap_or_default(),
    }
}

/// Reads all keys.
pub(crate) fn read(request: &Request<'_>, problems: &mut Problems) -> Option<HttpSystem> {
    let before = problems.list.len();
    let server = Server::read(request, problems);
    let mut workload = Section::open(request.workload, "workload", problems);
    let mut rules = Rules::read(&mut workload, problems);
    let headers = headers(&mut workload, problems);
    let pipeline = workload.integer("pipeline", 1, PIPELINE_MAX, problems).unwrap_or(1);
    let streams = streams(&mut workload, &server, pipeline, &rules, problems);
    let has_preflight = workload.boolean("preflight", problems).unwrap_or(true);
    let around = steps::Around {
        folder: request.folder,
        headers: &headers,
        load: request.load,
        kinds: 0,
        is_http2: server.is_http2,
    };
    let flows = steps::Given::read(&mut workload, &around, problems);
    let given = match &flows {
        Some(flows) if !flows.has_targets() => {
            without_targets(&mut workload, problems);
            None
        }
        _ => targets_of(&mut workload, request.folder, problems),
    };
    let order = order(&mut workload, problems);
    let places = Reading {
        workload: &workload,
        folder: request.folder,
        base: server.place.as_ref(),
        headers: headers.clone(),
        correlate: rules.correlate.as_deref(),
        is_http2: server.is_http2,
    };
    // A base URL that is wrong has been reported; targets are not judged by its absence.
    let given = given.filter(|_| server.place.is_some() || !server.has_url);
    let built = match (&flows, given) {
        (Some(flows), None) if !flows.has_targets() => {
            places.origin(&[], problems).map(|origin| (origin, Requests::default()))
        }
        (_, given) => given.and_then(|given| places.requests(&given, problems)),
    };
    workload.finish(problems);
    let (origin, mut requests) = built?;
    rules.expected.bind(&mut requests, problems);
    let kinds = u32::try_from(requests.kinds.len()).expect("bounded by KINDS_MAX");
    let around = steps::Around { kinds, ..around };
    let flows =
        flows.and_then(|given| given.flows(&origin, &around, &mut rules.expected, problems));
    if let Some(flows) = &flows {
        rules.serve_flows(flows.read_bodies(), flows.read_heads());
        fit_for_flows(request, pipeline, &rules, problems);
    }
    let tls = server.tls(&origin, problems);
    (problems.list.len() == before).then(|| HttpSystem {
        origin,
        tls: tls.flatten(),
        requests: Arc::new(requests),
        rules: Arc::new(rules),
        order,
        flows: flows.map(Arc::new),
        pipeline: u32::try_from(pipeline).expect("bounded by PIPELINE_MAX"),
        streams,
        has_preflight: has_preflight && !server.is_http2,
        is_insecure: server.is_insecure,
        patience: request.load.map_or(Duration::MAX, |load| load.timeout),
    })
}

/// How many requests are outstanding on an HTTP/2 connection; nothing: it is HTTP/1.1.
fn streams(
    workload: &mut Section<'_>,
    server: &Server,
    pipeline: u64,
    rules: &Rules,
    problems: &mut Problems,
) -> Option<u32> {
    let streams = workload.integer("streams", 1, PIPELINE_MAX, problems);
    if !server.is_http2 {
        if streams.is_some() {
            let message = "`workload.streams` is for HTTP/2";
            let help = "write http_version = \"2\" in [system.deploy], or leave it out";
            workload.reject("streams", message, Some(help.to_owned()), problems);
        }
        return None;
    }
    let unfit = [("pipeline", pipeline > 1), ("correlate", rules.correlate.is_some())];
    for (key, _) in unfit.iter().filter(|(_, is_given)| *is_given) {
        let message =
            format!("`workload.{key}` is for HTTP/1.1: over HTTP/2 each answer says whose it is");
        workload.reject(
            key,
            message,
            Some("leave it out; `streams` says how many are outstanding".to_owned()),
            problems,
        );
    }
    Some(u32::try_from(streams.unwrap_or(STREAMS)).expect("bounded by PIPELINE_MAX"))
}

/// A workload of flows alone has no other requests.
fn without_targets(workload: &mut Section<'_>, problems: &mut Problems) {
    workload.one_of("kind", &["flow"], problems);
    for key in ["format", "order", "method", "path", "body", "body_file", "targets", "targets_text"]
    {
        if workload.raw(key).is_some() {
            let message = format!("`workload.{key}` says nothing beside [[workload.step]]");
            let help = "leave it out, or give targets a weight: [workload.weights] targets = 1";
            workload.reject(key, message, Some(help.to_owned()), problems);
        }
    }
}

/// Reports keys that do not go with flows.
fn fit_for_flows(request: &Request<'_>, pipeline: u64, rules: &Rules, problems: &mut Problems) {
    let load = request.load;
    let unfit = [
        ("workload.pipeline", pipeline > 1),
        ("workload.correlate", rules.correlate.is_some()),
        ("load.batch", load.is_some_and(|load| load.batch.is_some())),
        ("load.resend", load.is_some_and(|load| load.resend.is_some())),
    ];
    for (key, _) in unfit.iter().filter(|(_, is_given)| *is_given) {
        let message = format!("`{key}` and [[workload.step]] do not go together");
        problems.add(request.workload.span, message, Some(format!("leave `{key}` out")));
    }
}

/// `[system.deploy]`.
struct Server {
    has_url: bool,
    place: Option<Place>,
    ca: Option<(String, Vec<u8>)>,
    server_name: Option<String>,
    is_insecure: bool,
    is_http2: bool,
    span: model::options::Span,
}

impl Server {
    fn read(request: &Request<'_>, problems: &mut Problems) -> Self {
        let mut deploy = Section::open(request.deploy, "system.deploy", problems);
        let url = deploy.raw("url");
        let (has_url, span) = (url.is_some(), url.map_or(deploy.span(), |url| url.span));
        let text = deploy.string("url", problems);
        let text = text.and_then(|text| match given_url(text) {
            Ok(text) => Some(text),
            Err(message) => {
                deploy.reject("url", message, None, problems);
                None
            }
        });
        let place = text.and_then(|text| match url::parse(&text) {
            Ok(Place { origin: None, .. }) => {
                deploy.reject(
                    "url",
                    format!("`{text}` names no server"),
                    Some("write http://HOST:PORT/".to_owned()),
                    problems,
                );
                None
            }
            Ok(place) => Some(place),
            Err(message) => {
                deploy.reject("url", message, None, problems);
                None
            }
        });
        let ca = deploy.string("ca", problems).and_then(|path| {
            match bytes_of(&request.folder.join(path), BODY_BYTES_MAX) {
                Ok(pem) => Some((path.to_owned(), pem)),
                Err(why) => {
                    deploy.reject("ca", format!("{path}: {why}"), None, problems);
                    None
                }
            }
        });
        let server_name = deploy.string("server_name", problems).map(str::to_owned);
        let is_insecure = deploy.boolean("insecure", problems).unwrap_or(false);
        let is_http2 = deploy.one_of("http_version", &["1.1", "2"], problems) == Some("2");
        deploy.finish(problems);
        Self { has_url, place, ca, server_name, is_insecure, is_http2, span }
    }

    /// `Some(None)` for http.
    fn tls(&self, origin: &Origin, problems: &mut Problems) -> Option<Option<Tls>> {
        if !origin.is_tls {
            if self.ca.is_some() || self.server_name.is_some() || self.is_insecure {
                let message = format!(
                    "`ca`, `server_name` and `insecure` of `system.deploy` are for https, but the server is {origin}"
                );
                problems.add(self.span, message, None);
            }
            return Some(None);
        }
        let name = self.server_name.as_deref().unwrap_or(&origin.host);
        let ca = self.ca.as_ref().map(|(path, pem)| (path.as_str(), pem.as_slice()));
        let trust = Trust { ca, is_insecure: self.is_insecure, is_http2: self.is_http2 };
        match crate::tls::tls(name, trust) {
            Ok(tls) => Some(Some(tls)),
            Err(message) => {
                problems.add(self.span, message, None);
                None
            }
        }
    }
}

/// What `[workload]` says to send.
enum Given {
    /// One request.
    One(Box<Target>),
    /// A target file: its name for messages, the folder that `@file` is relative to, its content.
    Many { name: String, folder: PathBuf, targets: Vec<Target> },
}

fn targets_of(workload: &mut Section<'_>, folder: &Path, problems: &mut Problems) -> Option<Given> {
    let kind = workload.one_of("kind", &["requests", "targets"], problems);
    let file = workload.string("targets", problems);
    let text = workload.string("targets_text", problems);
    let format = workload.one_of("format", &["auto", "http", "json", "list"], problems);
    let format = format.and_then(Format::from_word);
    let one = one_request(workload, problems);
    let is_many = match kind {
        Some(kind) => kind == "targets",
        None => file.is_some() || text.is_some(),
    };
    match (is_many, file, text) {
        (true, Some(_), Some(_)) => {
            let message = "`workload.targets` and `workload.targets_text` are two sources of targets; keep one";
            workload.reject("targets_text", message, None, problems);
            None
        }
        (true, None, None) => {
            workload.require::<()>("targets", None, "targets = \"targets.txt\"", problems);
            None
        }
        (true, file, text) => {
            if one.is_some_and(|one| one.is_described) {
                let message = "`method`, `path`, `body` and `body_file` describe a single request, but there are targets";
                problems.add(
                    workload.span(),
                    message,
                    Some("leave them out, or leave the targets out".to_owned()),
                );
            }
            let given = match file {
                Some(path) => from_file(path, folder, format),
                None => from_text("targets_text", folder, text.unwrap_or("").as_bytes(), format),
            };
            let key = if file.is_some() { "targets" } else { "targets_text" };
            given.map_err(|messages| list(key, messages, workload, problems)).ok()
        }
        (false, None, None) => one.map(|one| Given::One(Box::new(one.target))),
        (false, ..) => {
            let message = "there are targets, but `workload.kind` is `requests`";
            workload.reject("kind", message, Some("write kind = \"targets\"".to_owned()), problems);
            None
        }
    }
}

/// Reports a file's mistakes, up to a bound.
fn list(key: &str, messages: Vec<String>, workload: &Section<'_>, problems: &mut Problems) {
    let more = messages.len().saturating_sub(MISTAKES_MAX);
    for message in messages.into_iter().take(MISTAKES_MAX) {
        workload.reject(key, message, None, problems);
    }
    if more > 0 {
        workload.reject(key, format!("and {more} more mistakes in the targets"), None, problems);
    }
}

fn from_file(path: &str, folder: &Path, format: Option<Format>) -> Result<Given, Vec<String>> {
    let full = folder.join(path);
    let bytes = bytes_of(&full, FILE_BYTES_MAX).map_err(|why| vec![format!("{path}: {why}")])?;
    from_text(path, full.parent().unwrap_or(folder), &bytes, format)
}

fn from_text(
    name: &str,
    folder: &Path,
    bytes: &[u8],
    format: Option<Format>,
) -> Result<Given, Vec<String>> {
    let place =
        |mistake: &targets::Mistake| format!("{name}:{}: {}", mistake.line, mistake.message);
    let text = targets::text(bytes).map_err(|mistake| vec![place(&mistake)])?;
    let format = format.unwrap_or_else(|| Format::of(text));
    let targets = targets::parse(text, format)
        .map_err(|mistakes| mistakes.iter().map(place).collect::<Vec<_>>())?;
    Ok(Given::Many { name: name.to_owned(), folder: folder.to_path_buf(), targets })
}

struct OneRequest {
    target: Target,
    /// Whether any of its keys was given.
    is_described: bool,
}

/// `method`, `path`, `body` and `body_file`; `None` if one of them is wrong.
fn one_request(workload: &mut Section<'_>, problems: &mut Problems) -> Option<OneRequest> {
    let before = problems.list.len();
    let method = workload.string("method", problems);
    let path = workload.string("path", problems);
    let body = workload.string("body", problems);
    let file = workload.string("body_file", problems);
    if let Some(Err(message)) = method.map(targets::check_method) {
        workload.reject("method", message, None, problems);
    }
    let place = match path.map(|path| (path, url::parse(path))) {
        None => Place { origin: None, target: String::new() },
        Some((_, Ok(place @ Place { origin: None, .. }))) => place,
        Some((path, _)) => {
            let message =
                format!("`workload.path` must begin with `/`, but is `{}`", path.escape_debug());
            workload.reject("path", message, None, problems);
            return None;
        }
    };
    if body.is_some() && file.is_some() {
        workload.reject(
            "body_file",
            "`workload.body` and `workload.body_file` are two bodies; keep one",
            None,
            problems,
        );
    }
    let is_described = method.is_some() || path.is_some() || body.is_some() || file.is_some();
    let body = match (body, file) {
        (_, Some(file)) => Body::File(file.to_owned()),
        (Some(text), None) => Body::Bytes(text.as_bytes().to_vec()),
        (None, None) => Body::None,
    };
    let method = method.unwrap_or("GET").to_owned();
    let target = Target { line: 0, method, place, headers: Vec::new(), body };
    (problems.list.len() == before).then_some(OneRequest { target, is_described })
}

fn order(workload: &mut Section<'_>, problems: &mut Problems) -> Order {
    match workload.one_of("order", &["sequential", "round-robin", "random"], problems) {
        Some("random") => Order::Random,
        _ => Order::Sequential,
    }
}

/// `[workload.headers]`: name to a value or a list of values.
pub(crate) fn headers(
    workload: &mut Section<'_>,
    problems: &mut Problems,
) -> Vec<(String, String)> {
    headers_of("headers", workload, problems)
}

/// The same under another key.
pub(crate) fn headers_of(
    key: &'static str,
    workload: &mut Section<'_>,
    problems: &mut Problems,
) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    let Some(section) = workload.section(key, problems) else { return headers };
    for (name, span, value) in section.entries() {
        let values = match &value.value {
            Value::Array(values) => values.as_slice(),
            _ => std::slice::from_ref(value),
        };
        for value in values {
            let Value::String(text) = &value.value else {
                let message = format!(
                    "`workload.{key}.{name}` must be text in quotes, but is {}",
                    value.type_word()
                );
                problems.add(value.span, message, None);
                continue;
            };
            match targets::check_header(name, text).and_then(|()| looked_up(name, text)) {
                Ok(text) => headers.push((name.to_owned(), text)),
                Err(message) => problems.add(span, message, None),
            }
        }
    }
    headers
}

/// What targets are completed with.
struct Reading<'a, 'b> {
    workload: &'a Section<'b>,
    folder: &'a Path,
    base: Option<&'a Place>,
    headers: Vec<(String, String)>,
    correlate: Option<&'a str>,
    is_http2: bool,
}

impl Reading<'_, '_> {
    /// The server: that of the base URL, else the first that a target names.
    fn origin(&self, targets: &[Target], problems: &mut Problems) -> Option<Origin> {
        let first = || targets.iter().find_map(|target| target.place.origin.clone());
        let origin = self.base.and_then(|base| base.origin.clone()).or_else(first);
        if origin.is_none() {
            let help = "add a line such as: url = \"http://127.0.0.1:8080/\"".to_owned();
            let message = "`system.deploy.url` is missing, and no target names a server";
            problems.add(self.workload.span(), message, Some(help));
        }
        origin
    }

    /// Prepares every request, or reports what is wrong with each.
    fn requests(&self, given: &Given, problems: &mut Problems) -> Option<(Origin, Requests)> {
        let (targets, name, folder) = match given {
            Given::One(target) => (std::slice::from_ref(&**target), None, self.folder),
            Given::Many { name, folder, targets } => {
                (targets.as_slice(), Some(name), folder.as_path())
            }
        };
        let at = |target: &Target| {
            name.map_or_else(String::new, |name| format!("{name}:{}: ", target.line))
        };
        let origin = self.origin(targets, problems)?;
        let (mut requests, mut files, mut wrong) =
            (Requests::new(self.correlate).for_http2(self.is_http2), HashMap::new(), Vec::new());
        for target in targets {
            let prepared = self.wish(target, &origin, folder, &mut files);
            let prepared = prepared.and_then(|wish| requests.add(&origin, &wish));
            if let Err(message) = prepared {
                wrong.push(format!("{}{message}", at(target)));
            }
        }
        requests.finish();
        let key = if name.is_some_and(|name| name != "targets_text") {
            "targets"
        } else {
            "targets_text"
        };
        let key = if name.is_none() { "body_file" } else { key };
        let is_right = wrong.is_empty();
        list(key, wrong, self.workload, problems);
        is_right.then_some((origin, requests))
    }

    fn wish(
        &self,
        target: &Target,
        origin: &Origin,
        folder: &Path,
        files: &mut HashMap<String, Vec<u8>>,
    ) -> Result<Wish, String> {
        if let Some(other) = target.place.origin.as_ref().filter(|other| *other != origin) {
            return Err(format!(
                "targets of two servers, {origin} and {other}; a trial loads one, so split the targets or set system.deploy.url"
            ));
        }
        let path = match (target.place.target.as_str(), self.base) {
            ("", Some(base)) => base.target.clone(),
            ("", None) => "/".to_owned(),
            (path, _) => path.to_owned(),
        };
        let shown = secret::masked(&path, &secret::spans(&path));
        let path = given(&path)?;
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "`{shown}`: what a variable puts into a URL must be percent-encoded, and holds a space or something else \
                 that cannot stand there"
            ));
        }
        let mut headers = Vec::with_capacity(target.headers.len() + self.headers.len());
        for (name, text) in &target.headers {
            headers.push((name.clone(), looked_up(name, text)?));
        }
        let is_own =
            |name: &str| target.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        headers.extend(self.headers.iter().filter(|(name, _)| !is_own(name)).cloned());
        let body = match &target.body {
            Body::None => Vec::new(),
            Body::Bytes(bytes) => bytes.clone(),
            Body::File(path) => file(path, folder, files)?,
        };
        let body = given_bytes(&body).map_err(|why| format!("body: {why}"))?;
        Ok(Wish { method: target.method.clone(), target: path, shown, headers, body })
    }
}

/// A body's file, read once however many targets send it.
fn file(
    path: &str,
    folder: &Path,
    files: &mut HashMap<String, Vec<u8>>,
) -> Result<Vec<u8>, String> {
    if let Some(known) = files.get(path) {
        return Ok(known.clone());
    }
    let bytes = bytes_of(&folder.join(path), BODY_BYTES_MAX)
        .map_err(|why| format!("body {path}: {why}"))?;
    files.insert(path.to_owned(), bytes.clone());
    Ok(bytes)
}
