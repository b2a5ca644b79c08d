//! Parameters into the path, the query and the headers: those of the path, and those that are required.

use serde_json::{Map, Value};

use super::super::secrets::{REMOVED, is_secret};
use super::super::target_lines::encoded;
use super::reference::Document;
use super::schema::{Example, example, given};
use crate::targets::check_header;

/// A made-up value as a comment shows it.
const SHOWN_CHARS_MAX: usize = 40;

/// Parameters of a path, and as many of an operation.
const PARAMETERS_MAX: usize = 256;

/// What parameters make of a path.
pub(super) struct Filled {
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
}

/// Fills a path and makes the query and the headers of an operation.
pub(super) fn fill<'a>(
    document: Document<'a>,
    path: &str,
    item: &'a Value,
    operation: &'a Map<String, Value>,
    made_up: &mut Vec<String>,
    left_out: &mut Vec<String>,
) -> Filled {
    let (mut path, mut query, mut headers) = (path.to_owned(), Vec::new(), Vec::new());
    for Parameter { name, place, is_required, value } in all(document, item, operation) {
        let hole = format!("{{{name}}}");
        let is_needed = is_required || (place == "path" && path.contains(&hole));
        if !is_needed {
            continue;
        }
        if place != "path" && is_secret(name) || place == "cookie" {
            left_out.push(format!("{name} ({place}), which may be a secret"));
            continue;
        }
        // A description's example may hold a real one.
        let Example { value: example, is_made_up } = if is_secret(name) {
            Example { value: Value::from(REMOVED), is_made_up: true }
        } else {
            of(document, value)
        };
        if is_made_up {
            made_up.push(format!("{name} = {}", shown(&example)));
        }
        let style = value.get("style").and_then(Value::as_str).unwrap_or("");
        let explode = value.get("explode").and_then(Value::as_bool);
        match place {
            "path" => path = path.replace(&hole, &in_path(name, &example, style)),
            "query" => query.extend(in_query(name, &example, style, explode.unwrap_or(true))),
            "header" => {
                let text = plain(&example);
                let is_written_elsewhere =
                    ["accept", "content-type"].iter().any(|other| name.eq_ignore_ascii_case(other));
                if !is_written_elsewhere && check_header(name, &text).is_ok() {
                    headers.push((name.to_owned(), text));
                }
            }
            _ => {}
        }
    }
    // Holes that no parameter describes.
    while let Some((start, end)) = hole(&path) {
        made_up.push(format!("{} = 1", &path[start + 1..end - 1]));
        path.replace_range(start..end, "1");
    }
    if !query.is_empty() {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str(&query.join("&"));
    }
    Filled { path, headers }
}

struct Parameter<'a> {
    name: &'a str,
    place: &'a str,
    is_required: bool,
    value: &'a Value,
}

/// The parameters of the path, overridden by those of the operation.
fn all<'a>(
    document: Document<'a>,
    item: &'a Value,
    operation: &'a Map<String, Value>,
) -> Vec<Parameter<'a>> {
    let of_item = item.get("parameters");
    let of_operation = operation.get("parameters");
    let mut found: Vec<Parameter<'a>> = Vec::new();
    let listed = [of_item, of_operation].into_iter().flatten().filter_map(Value::as_array);
    for value in listed.flat_map(|values| values.iter().take(PARAMETERS_MAX)) {
        let value = document.resolved(value);
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let (Some(name), Some(place)) = (text("name"), text("in")) else { continue };
        let is_required = value.get("required").and_then(Value::as_bool).unwrap_or(false);
        let parameter = Parameter { name, place, is_required, value };
        match found.iter_mut().find(|known| known.name == name && known.place == place) {
            Some(known) => *known = parameter,
            None => found.push(parameter),
        }
    }
    found
}

/// The value of a parameter.
fn of<'a>(document: Document<'a>, parameter: &'a Value) -> Example {
    if let Some(value) = given(document, parameter) {
        return Example { value, is_made_up: false };
    }
    let content = parameter
        .get("content")
        .and_then(Value::as_object)
        .and_then(|content| content.values().next());
    if let Some(value) = content.and_then(|content| given(document, content)) {
        return Example { value: Value::from(value.to_string()), is_made_up: false };
    }
    let schema = parameter.get("schema").or_else(|| content?.get("schema")).unwrap_or(&Value::Null);
    example(document, schema)
}

fn shown(value: &Value) -> String {
    plain(value).chars().take(SHOWN_CHARS_MAX).collect()
}

/// A value as a text: texts without quotes, lists with commas.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn in_path(name: &str, value: &Value, style: &str) -> String {
    let text = match value {
        Value::Array(items) => {
            items.iter().map(|item| encoded(&plain(item))).collect::<Vec<_>>().join(",")
        }
        other => encoded(&plain(other)),
    };
    // A path with nothing in it is another path.
    let text = if text.is_empty() { "1".to_owned() } else { text };
    match style {
        "matrix" => format!(";{}={text}", encoded(name)),
        "label" => format!(".{text}"),
        _ => text,
    }
}

fn in_query(name: &str, value: &Value, style: &str, explode: bool) -> Vec<String> {
    let pair = |name: &str, value: &Value| format!("{}={}", encoded(name), encoded(&plain(value)));
    match value {
        Value::Array(items) if explode => items.iter().map(|item| pair(name, item)).collect(),
        Value::Object(object) if style == "deepObject" => {
            object.iter().map(|(key, value)| pair(&format!("{name}[{key}]"), value)).collect()
        }
        Value::Object(object) if explode => {
            object.iter().map(|(key, value)| pair(key, value)).collect()
        }
        other => vec![pair(name, other)],
    }
}

/// The first `{…}` of a path.
fn hole(path: &str) -> Option<(usize, usize)> {
    let start = path.find('{')?;
    let end = start + path[start..].find('}')? + 1;
    Some((start, end))
}
