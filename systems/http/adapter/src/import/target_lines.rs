//! Targets in vegeta's JSON form: one object a line, bodies in base64, paths without the server, so that the
//! experiment names it once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::secret::escaped;
use serde_json::{Map, Value};

use crate::targets::FILE_BYTES_MAX;

/// One request.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// Lines, up to the largest target file.
#[derive(Debug, Default)]
pub(super) struct TargetLines {
    pub(super) text: String,
    pub(super) count: usize,
    /// Targets that found no room.
    pub(super) beyond: usize,
}

impl TargetLines {
    /// Appends a target.
    pub(super) fn push(&mut self, request: &Request) {
        let mut object = Map::new();
        object.insert("method".to_owned(), request.method.as_str().into());
        object.insert("url".to_owned(), literally(&request.path).into());
        let mut headers: Map<String, Value> = Map::new();
        for (name, value) in &request.headers {
            let values = headers.entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
            values.as_array_mut().expect("only arrays are put in").push(literally(value).into());
        }
        if !headers.is_empty() {
            object.insert("header".to_owned(), headers.into());
        }
        if !request.body.is_empty() {
            object.insert("body".to_owned(), STANDARD.encode(escaped(&request.body)).into());
        }
        let line = Value::from(object).to_string();
        if (self.text.len() + line.len()) as u64 >= FILE_BYTES_MAX {
            self.beyond += 1;
            return;
        }
        self.text.push_str(&line);
        self.text.push('\n');
        self.count += 1;
    }
}

/// A text that names no variable of this host.
fn literally(text: &str) -> String {
    String::from_utf8(escaped(text.as_bytes())).expect("text with a dollar put in")
}

/// A text as it may stand in a URL: what is no graphic ASCII is percent-encoded, the rest stays.
pub(super) fn graphic(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_graphic() {
            out.push(char::from(byte))
        } else {
            out.push_str(&format!("%{byte:02X}"))
        }
    }
    out
}

/// A value as it may stand in a path or a query: all but unreserved characters are percent-encoded (RFC 3986).
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
