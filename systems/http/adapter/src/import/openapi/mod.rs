//! OpenAPI 3.0 and 3.1: one request an operation. What the description does not say is made up by its schema,
//! and named.

mod parameters;
mod reference;
mod request_body;
mod schema;

use serde_json::{Map, Value};

use super::secrets::without_user;
use super::target_lines::{Request, TargetLines, graphic};
use super::{ImportOptions, Imported, counted, yaml};
use crate::targets::FILE_BYTES_MAX;
use crate::url;
use reference::Document;

/// The most operations; the largest published descriptions have some 20,000.
const OPERATIONS_MAX: usize = 100_000;
/// Methods, as OpenAPI writes them. TRACE is left out: servers refuse it.
const METHODS: [&str; 7] = ["get", "head", "post", "put", "patch", "delete", "options"];
/// Those that change nothing (RFC 9110, 9.2.1) and stand in most descriptions.
const SAFE: [&str; 2] = ["get", "head"];

pub(super) fn import_json(bytes: &[u8], options: &ImportOptions<'_>) -> Result<Imported, String> {
    check_length(bytes)?;
    let value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not whole JSON: {error}"))?;
    import(&value, options)
}

pub(super) fn import_yaml(bytes: &[u8], options: &ImportOptions<'_>) -> Result<Imported, String> {
    check_length(bytes)?;
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    import(&yaml::parse(text)?, options)
}

fn check_length(bytes: &[u8]) -> Result<(), String> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!(
            "it is longer than {} MiB, the longest description that is read",
            FILE_BYTES_MAX >> 20
        ));
    }
    Ok(())
}

fn import(value: &Value, options: &ImportOptions<'_>) -> Result<Imported, String> {
    // Unquoted, 3.1 is a number in YAML.
    let version = parameters::plain(value.get("openapi").unwrap_or(&Value::Null));
    if !version.starts_with("3.") {
        return Err(format!("it is OpenAPI `{}`; 3.0 and 3.1 are read", version.escape_debug()));
    }
    let document = Document { root: value };
    let server = server(value, options.host)?;
    let Some(paths) =
        value.get("paths").and_then(Value::as_object).filter(|paths| !paths.is_empty())
    else {
        return Err("it describes no path".to_owned());
    };
    let mut found = Found {
        document,
        notes: Vec::new(),
        lines: TargetLines::default(),
        other_methods: 0,
        failed: 0,
        elsewhere: 0,
        unresolved: 0,
    };
    for (path, item) in paths {
        found.path(&server, path, document.resolved(item), options.all_methods);
    }
    if found.lines.count == 0 {
        return Err(format!(
            "it describes no operation that can be loaded{}",
            if found.other_methods > 0 {
                "; it has some of other methods than GET and HEAD: --all-methods takes them"
            } else {
                ""
            }
        ));
    }
    let mut notes = server.notes;
    found.counted(&mut notes);
    let secret_headers = security(document, &mut notes);
    notes.append(&mut found.notes);
    Ok(Imported {
        form: format!("OpenAPI {version}"),
        url: server.url,
        target_count: found.lines.count,
        targets: Some(found.lines.text),
        steps: None,
        notes,
        secret_headers,
        ..Imported::default()
    })
}

/// Where the description says that the API is.
#[derive(Default)]
struct Server {
    url: Option<String>,
    /// What stands before every path.
    base: String,
    notes: Vec<String>,
}

fn server(root: &Value, host: Option<&str>) -> Result<Server, String> {
    let servers = root.get("servers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut read = servers.iter().filter_map(of_entry);
    let chosen = match host {
        None => read.next(),
        Some(host) => {
            let is_meant = |server: &Server| {
                server.url.as_deref().and_then(|url| url.split_once("://")).is_some_and(
                    |(_, authority)| {
                        authority.eq_ignore_ascii_case(host)
                            || authority
                                .rsplit_once(':')
                                .is_some_and(|(name, _)| name.eq_ignore_ascii_case(host))
                    },
                )
            };
            let found = read.find(is_meant);
            Some(found.ok_or_else(|| format!("none of its {} servers is {host}", servers.len()))?)
        }
    };
    let mut chosen = chosen.unwrap_or_default();
    if chosen.url.is_none() {
        let why = if servers.is_empty() {
            "it names no server"
        } else {
            "its server is relative to where the description was found"
        };
        chosen.notes.push(format!("{why}; put yours into system.deploy.url"));
    }
    Ok(chosen)
}

/// One entry of `servers`, its variables replaced by their defaults.
fn of_entry(entry: &Value) -> Option<Server> {
    let mut text = entry.get("url")?.as_str()?.to_owned();
    let variables = entry.get("variables").and_then(Value::as_object);
    for (name, variable) in variables.into_iter().flatten() {
        let first = || variable.get("enum").and_then(|values| values.get(0));
        // Unquoted, a port is a number in YAML.
        let default = variable.get("default").or_else(first).map(parameters::plain);
        text = text.replace(&format!("{{{name}}}"), &default.unwrap_or_default());
    }
    let text = graphic(without_user(text.trim()).as_str());
    let Ok(place) = url::parse(&text) else {
        // Relative to where the description was found, which nobody knows here.
        let path = text.trim_start_matches("./").trim_matches('/').to_owned();
        let is_path = !path.contains("://") && !path.contains('{');
        let base = if is_path && !path.is_empty() { format!("/{path}") } else { String::new() };
        return Some(Server { base, ..Server::default() });
    };
    let base = place.target.split('?').next().unwrap_or("").trim_end_matches('/').to_owned();
    let url = place.origin.map(|origin| {
        format!("{}://{}", if origin.is_tls { "https" } else { "http" }, origin.authority())
    });
    Some(Server { url, base, notes: Vec::new() })
}

/// What was found in the paths.
struct Found<'a> {
    document: Document<'a>,
    lines: TargetLines,
    notes: Vec<String>,
    other_methods: usize,
    /// Operations of which no request can be made.
    failed: usize,
    /// Operations that are served by another server.
    elsewhere: usize,
    /// Paths that stand in other files.
    unresolved: usize,
}

impl Found<'_> {
    /// All operations of a path.
    fn path(&mut self, server: &Server, path: &str, item: &Value, all_methods: bool) {
        self.unresolved += usize::from(item.is_null());
        for method in METHODS {
            let Some(operation) = item.get(method).and_then(Value::as_object) else { continue };
            if !all_methods && !SAFE.contains(&method) {
                self.other_methods += 1;
                continue;
            }
            if self.lines.count == OPERATIONS_MAX || self.lines.beyond > 0 {
                self.failed += 1;
                continue;
            }
            // Its own servers go before those of its path, and both before those of the description.
            let own = [operation.get("servers"), item.get("servers")];
            let own = own.into_iter().flatten().find_map(|own| of_entry(own.get(0)?));
            let base = match &own {
                Some(own) if own.url.is_some() && own.url != server.url => {
                    self.elsewhere += 1;
                    continue;
                }
                Some(own) => &own.base,
                None => &server.base,
            };
            self.operation(base, path, method, item, operation);
        }
    }

    fn operation(
        &mut self,
        base: &str,
        path: &str,
        method: &str,
        item: &Value,
        operation: &Map<String, Value>,
    ) {
        let mut made_up = Vec::new();
        let mut left_out = Vec::new();
        let filled =
            parameters::fill(self.document, path, item, operation, &mut made_up, &mut left_out);
        let mut request = Request {
            method: method.to_ascii_uppercase(),
            path: graphic(&format!("{base}{}", filled.path)),
            headers: filled.headers,
            body: Vec::new(),
        };
        if let Some(body) = operation.get("requestBody") {
            request_body::fill(self.document, body, &mut request, &mut made_up, &mut left_out);
        }
        let shown = format!("{} {path}", request.method);
        if !request.path.starts_with('/') || url::parse(&request.path).is_err() {
            self.failed += 1;
            return;
        }
        self.lines.push(&request);
        if !made_up.is_empty() {
            self.notes.push(format!("made up for {shown}: {}", made_up.join(", ")));
        }
        if !left_out.is_empty() {
            self.notes.push(format!("left out of {shown}: {}", left_out.join(", ")));
        }
    }

    /// Sentences about operations that are not among the targets.
    fn counted(&self, notes: &mut Vec<String>) {
        if self.other_methods > 0 {
            let others = counted(self.other_methods, "operation");
            notes.push(format!(
                "left out: {others} of other methods than GET and HEAD; --all-methods takes them"
            ));
        }
        if self.elsewhere > 0 {
            let elsewhere = counted(self.elsewhere, "operation");
            notes.push(format!(
                "left out: {elsewhere} on other servers than the one that is loaded"
            ));
        }
        if self.unresolved > 0 {
            let unresolved = counted(self.unresolved, "path");
            notes.push(format!(
                "left out: {unresolved} described in other files; bundle the description into one file"
            ));
        }
        let failed = self.failed + self.lines.beyond;
        if failed > 0 {
            let failed = counted(failed, "operation");
            notes.push(format!("left out: {failed} of which no request can be made"));
        }
    }
}

/// Headers that the security schemes ask for.
fn security(document: Document<'_>, notes: &mut Vec<String>) -> Vec<String> {
    let schemes = document.root.pointer("/components/securitySchemes").and_then(Value::as_object);
    let mut headers: Vec<String> = Vec::new();
    for (name, scheme) in schemes.into_iter().flatten() {
        let scheme = document.resolved(scheme);
        let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or("");
        let header = match (text("type"), text("in")) {
            ("apiKey", "header") => text("name"),
            ("apiKey", "cookie") => "Cookie",
            ("apiKey", place) => {
                notes.push(format!(
                    "security `{name}` wants a key in the {place}, which no target has"
                ));
                continue;
            }
            ("http" | "oauth2" | "openIdConnect", _) => "Authorization",
            _ => continue,
        };
        if !header.is_empty() && !headers.iter().any(|known| known.eq_ignore_ascii_case(header)) {
            headers.push(header.to_owned());
        }
    }
    headers
}
