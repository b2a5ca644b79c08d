//! The body of an operation: its example, or one made by its schema.

use serde_json::Value;

use super::super::body::{Masked, masked};
use super::super::target_lines::{Request, encoded};
use super::reference::Document;
use super::schema::{Example, example, given};
use crate::targets::check_header;

const TYPE: &str = "Content-Type";

/// Gives a request its body and content type.
pub(super) fn fill<'a>(
    document: Document<'a>,
    body: &'a Value,
    request: &mut Request,
    made_up: &mut Vec<String>,
    left_out: &mut Vec<String>,
) {
    let body = document.resolved(body);
    let Some(content) = body.get("content").and_then(Value::as_object) else { return };
    let is_json = |name: &str| name.contains("json");
    let is_form = |name: &str| name.contains("x-www-form-urlencoded");
    // A media type is a name in the description and a header in the request, which may hold less.
    let usable = || content.iter().filter(|(name, _)| check_header(TYPE, name).is_ok());
    let best = usable()
        .find(|(name, _)| is_json(name))
        .or_else(|| usable().find(|(name, _)| is_form(name)))
        .or_else(|| usable().find(|(name, _)| name.starts_with("text/")))
        .or_else(|| usable().next());
    let Some((content_type, media)) = best else {
        if !content.is_empty() {
            left_out.push("the body, whose media type cannot stand in a header".to_owned());
        }
        return;
    };
    let said = given(document, media);
    let schema = media.get("schema").unwrap_or(&Value::Null);
    let Example { value, is_made_up } = match said {
        Some(value) => Example { value, is_made_up: false },
        None => example(document, schema),
    };
    let bytes = match &value {
        _ if is_json(content_type) => value.to_string(),
        Value::Object(object) if is_form(content_type) => {
            let text =
                |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let pairs = object
                .iter()
                .map(|(name, value)| format!("{}={}", encoded(name), encoded(&text(value))));
            pairs.collect::<Vec<_>>().join("&")
        }
        Value::String(text) if !is_made_up || content_type.starts_with("text/") => text.clone(),
        _ => {
            left_out.push(format!("the body, of which there is no example as {content_type}"));
            return;
        }
    };
    // A description's example may hold a real key.
    match masked(content_type, bytes.into_bytes()) {
        Masked::Body(bytes, _) => request.body = bytes,
        Masked::Opaque => {
            left_out.push("the body, which names a secret".to_owned());
            return;
        }
    }
    request.headers.push((TYPE.to_owned(), content_type.clone()));
    if is_made_up {
        made_up.push("parts of the body".to_owned());
    }
}
