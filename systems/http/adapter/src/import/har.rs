//! HAR 1.2 (W3C draft, J. Odvarko): the requests of a recording that went to one server, in their order. Answers
//! are read over.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};

use super::body::{Masked, masked};
use super::secrets::{is_secret, looks_secret, masked_url, without_user};
use super::target_lines::{Request, TargetLines, encoded, graphic};
use super::{ImportOptions, Imported, counted};
use crate::targets::{check_header, check_method};
use crate::url::{self, Origin};

/// Servers that a note names.
const HOSTS_NAMED_MAX: usize = 5;

/// A recording, of whose entries as much is read as is of use.
#[derive(Deserialize)]
pub(super) struct Har<E> {
    pub(super) log: Log<E>,
}

#[derive(Deserialize)]
pub(super) struct Log<E> {
    version: Option<String>,
    pub(super) entries: Vec<E>,
}

impl<E: for<'de> Deserialize<'de>> Har<E> {
    /// A file that was saved with `parts` of each entry.
    pub(super) fn read(bytes: &[u8], parts: &str) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| {
            format!("it is not a whole HAR recording: {error}; save it again with its {parts}")
        })
    }

    pub(super) fn form(&self) -> String {
        format!("HAR {}", self.log.version.as_deref().unwrap_or("1.2"))
    }
}

#[derive(Deserialize)]
struct Entry {
    request: Recorded,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recorded {
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) headers: Vec<Pair>,
    pub(super) post_data: Option<PostData>,
}

#[derive(Deserialize)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PostData {
    pub(super) mime_type: Option<String>,
    text: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    params: Vec<Pair>,
    encoding: Option<String>,
}

/// Some browsers' extensions and proxies write null where there is nothing.
pub(super) fn or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pair>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What was left out or changed.
#[derive(Default)]
struct Counts {
    not_http: usize,
    cannot_be_sent: usize,
    opaque: usize,
    without_body: usize,
    masked: usize,
    headers: usize,
    headers_not_sent: usize,
}

pub(super) fn import(bytes: &[u8], options: &ImportOptions<'_>) -> Result<Imported, String> {
    let har = Har::<Entry>::read(bytes, "requests")?;
    let (form, entries) = (har.form(), har.log.entries);
    let recorded = entries.len();
    let mut counts = Counts::default();
    let mut requests: Vec<(Origin, String, Recorded)> = Vec::new();
    for entry in entries {
        let address = without_user(&entry.request.url);
        let is_http = ["http://", "https://"].iter().any(|scheme| {
            address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        });
        match url::parse(&graphic(&address)) {
            _ if !is_http || opens_websocket(&entry.request) => counts.not_http += 1,
            Ok(url::Place { origin: Some(origin), target }) => {
                requests.push((origin, target, entry.request));
            }
            _ => counts.cannot_be_sent += 1,
        }
    }
    let (origin, others) = chosen(requests.iter().map(|(origin, ..)| origin), options.host)?;
    let mut lines = TargetLines::default();
    let mut secret_headers = Vec::new();
    for (_, target, recorded) in requests.into_iter().filter(|(other, ..)| *other == origin) {
        match request(&target, recorded, &mut counts, &mut secret_headers) {
            Some(request) => lines.push(&request),
            None => counts.cannot_be_sent += 1,
        }
    }
    if lines.count == 0 {
        return Err(format!("none of its {recorded} requests can be sent to {origin}"));
    }
    let scheme = if origin.is_tls { "https" } else { "http" };
    Ok(Imported {
        form,
        url: Some(format!("{scheme}://{}", origin.authority())),
        target_count: lines.count,
        notes: notes(&counts, &others, lines.beyond, &secret_headers),
        targets: Some(lines.text),
        steps: None,
        secret_headers,
        ..Imported::default()
    })
}

/// Some browsers record a websocket under the http URL that it began as.
fn opens_websocket(request: &Recorded) -> bool {
    request.headers.iter().any(|Pair { name, value }| {
        name.eq_ignore_ascii_case("upgrade")
            && value.as_deref().is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
    })
}

/// The server to load, and the others with how many requests went to them.
fn chosen<'a>(
    requests: impl Iterator<Item = &'a Origin>,
    host: Option<&str>,
) -> Result<(Origin, Vec<(Origin, usize)>), String> {
    let mut origins: Vec<(Origin, usize)> = Vec::new();
    for origin in requests {
        match origins.iter_mut().find(|(known, _)| known == origin) {
            Some((_, count)) => *count += 1,
            None => origins.push((origin.clone(), 1)),
        }
    }
    // The most frequent first; of equals the one that came first.
    origins.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let is_meant = |origin: &Origin| {
        host.is_none_or(|host| {
            let host = host.to_ascii_lowercase();
            origin.host == host.trim_matches(['[', ']'])
                || origin.authority() == host
                || format!("{}:{}", origin.host, origin.port) == host
        })
    };
    let at = origins.iter().position(|(origin, _)| is_meant(origin)).ok_or_else(|| {
        let named: Vec<String> =
            origins.iter().take(HOSTS_NAMED_MAX).map(|(origin, _)| origin.authority()).collect();
        match host {
            Some(host) => format!(
                "no request in it went to {host}; the most frequent hosts are: {}",
                named.join(", ")
            ),
            None => "there is no http or https request in it".to_owned(),
        }
    })?;
    let (origin, _) = origins.remove(at);
    Ok((origin, origins))
}

/// The server to load, of those that URLs name.
pub(super) fn most_frequent<'a>(
    urls: impl Iterator<Item = &'a str>,
    host: Option<&str>,
) -> Result<Origin, String> {
    let origins: Vec<Origin> =
        urls.filter_map(|url| url::parse(&graphic(&without_user(url))).ok()?.origin).collect();
    chosen(origins.iter(), host).map(|(origin, _)| origin)
}

const TYPE: &str = "Content-Type";
const FORM: &str = "application/x-www-form-urlencoded";

/// Headers of one connection, and those that are written anew (RFC 9110, section 7.6.1).
pub(super) const NOT_COPIED: [&str; 14] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "sec-websocket-key",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn request(
    target: &str,
    recorded: Recorded,
    counts: &mut Counts,
    secret_headers: &mut Vec<String>,
) -> Option<Request> {
    let (path, masked_count) = masked_url(target);
    counts.masked += masked_count;
    check_method(&recorded.method).ok()?;
    let mut headers = Vec::new();
    for Pair { name, value } in recorded.headers {
        let lower = name.to_ascii_lowercase();
        if NOT_COPIED.contains(&lower.as_str()) || name.starts_with(':') {
            continue;
        }
        if is_secret(&name) || value.as_deref().is_some_and(looks_secret) {
            counts.headers += 1;
            if !secret_headers.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                secret_headers.push(name);
            }
            continue;
        }
        let value = value.unwrap_or_default();
        let value = if lower == "referer" { masked_url(&without_user(&value)).0 } else { value };
        // A value that looks like a reference to the environment would be taken for one.
        if check_header(&name, &value).is_ok() && !value.starts_with("env:") {
            headers.push((name, value));
        } else {
            counts.headers_not_sent += 1;
        }
    }
    let content_type = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let content_type = content_type.map(|(_, value)| value.clone());
    let mut body = Vec::new();
    if let Some(data) = recorded.post_data {
        let is_recorded = content_type.is_some();
        let said = data.mime_type.clone().filter(|name| !name.is_empty());
        let of_params = (!data.params.is_empty()).then(|| FORM.to_owned());
        let content_type = content_type.or(said).or(of_params).unwrap_or_default();
        let Some(bytes) = bytes_of(data, &content_type) else {
            counts.without_body += 1;
            return None;
        };
        match masked(&content_type, bytes) {
            Masked::Body(bytes, masked_count) => {
                counts.masked += masked_count;
                body = bytes;
                // Without it the server would not know what the body is.
                if !is_recorded && !body.is_empty() && check_header(TYPE, &content_type).is_ok() {
                    headers.push((TYPE.to_owned(), content_type));
                }
            }
            Masked::Opaque => {
                counts.opaque += 1;
                return None;
            }
        }
    }
    Some(Request { method: recorded.method, path, headers, body })
}

/// The body, if the recording has it.
pub(super) fn bytes_of(data: PostData, content_type: &str) -> Option<Vec<u8>> {
    match (data.text, data.encoding.as_deref()) {
        (Some(text), Some("base64")) => STANDARD.decode(text).ok(),
        (Some(text), _) if !text.is_empty() || data.params.is_empty() => Some(text.into_bytes()),
        _ if data.params.is_empty() => Some(Vec::new()),
        _ if content_type.to_ascii_lowercase().contains("multipart") => None,
        _ => {
            let pairs: Vec<String> = data
                .params
                .iter()
                .map(|pair| {
                    format!(
                        "{}={}",
                        encoded(&pair.name),
                        encoded(pair.value.as_deref().unwrap_or(""))
                    )
                })
                .collect();
            Some(pairs.join("&").into_bytes())
        }
    }
}

fn notes(
    counts: &Counts,
    others: &[(Origin, usize)],
    beyond: usize,
    secret_headers: &[String],
) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |count: usize, words: String| {
        if count > 0 {
            notes.push(words);
        }
    };
    let left_out =
        |count: usize, why: &str| format!("left out: {}, {why}", counted(count, "request"));
    let to_others: usize = others.iter().map(|(_, count)| count).sum();
    let mut named: Vec<String> = others
        .iter()
        .take(HOSTS_NAMED_MAX)
        .map(|(origin, count)| format!("{} ({count})", origin.authority()))
        .collect();
    if others.len() > HOSTS_NAMED_MAX {
        named.push(format!("{} more", others.len() - HOSTS_NAMED_MAX));
    }
    let to = format!("to other servers: {}; --host chooses one", named.join(", "));
    note(to_others, left_out(to_others, &to));
    note(counts.not_http, left_out(counts.not_http, "neither http nor https, or a websocket"));
    let unsendable = counts.cannot_be_sent.saturating_sub(counts.opaque + counts.without_body);
    note(unsendable, left_out(unsendable, "whose method or URL cannot be sent"));
    note(
        counts.opaque,
        left_out(counts.opaque, "with a body that names a secret and is neither JSON nor a form"),
    );
    note(counts.without_body, left_out(counts.without_body, "whose body the recording lacks"));
    note(beyond, left_out(beyond, "beyond the largest target file"));
    let headers = counted(counts.headers, "header");
    note(
        counts.headers,
        format!("left out: {headers} with secrets: {}", secret_headers.join(", ")),
    );
    let not_sent = counted(counts.headers_not_sent, "header");
    note(counts.headers_not_sent, format!("left out: {not_sent} that cannot be sent"));
    let masked = counted(counts.masked, "secret");
    note(counts.masked, format!("replaced by REMOVED: {masked} in queries and bodies"));
    notes
}
