//! A value for a schema: what the description gives as an example, or a plain value of the right type. Bounded
//! in depth and size, because schemas refer to themselves.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::reference::Document;

/// Schemas inside schemas; a tree of that depth is as good an example as a deeper one.
const DEPTH_MAX: usize = 8;
/// Values of one example.
const NODES_MAX: usize = 2_000;
/// Characters that are put before a made-up text to make it long enough.
const LENGTH_MAX: u64 = 4_096;
/// Bytes of the examples that go into one value; a description may refer to a long one any number of times.
const BYTES_MAX: usize = 1 << 20;
/// Properties of a schema that are looked at, and names that it requires.
const PROPERTIES_MAX: usize = 10_000;

/// A value, and whether any of it was made up.
pub(super) struct Example {
    pub(super) value: Value,
    pub(super) is_made_up: bool,
}

/// The example that an object with `example` or `examples` gives (parameters and media types have them).
pub(super) fn given(document: Document<'_>, holder: &Value) -> Option<Value> {
    let fits = |example: &&Value| length(example, BYTES_MAX) <= BYTES_MAX;
    if let Some(example) = holder.get("example").filter(fits) {
        return Some(example.clone());
    }
    let examples = holder.get("examples")?.as_object()?;
    let values = examples.values().filter_map(|example| document.resolved(example).get("value"));
    values.take(PROPERTIES_MAX).find(fits).cloned()
}

/// A value for a schema.
pub(super) fn example(document: Document<'_>, schema: &Value) -> Example {
    let mut making =
        Making { document, is_made_up: false, nodes_left: NODES_MAX, bytes_left: BYTES_MAX };
    let value = making.value(schema, &BTreeSet::new(), 0);
    Example { value, is_made_up: making.is_made_up }
}

struct Making<'a> {
    document: Document<'a>,
    is_made_up: bool,
    nodes_left: usize,
    bytes_left: usize,
}

/// Bytes of a value, roughly; counting ends above `max`.
fn length(value: &Value, max: usize) -> usize {
    let mut sum = 8;
    let mut add = |value: &Value, key: usize| {
        sum += key;
        if sum <= max {
            sum += length(value, max - sum);
        }
        sum <= max
    };
    match value {
        Value::String(text) => return 8 + text.len(),
        Value::Array(items) => drop(items.iter().all(|item| add(item, 0))),
        Value::Object(object) => drop(object.iter().all(|(key, item)| add(item, key.len()))),
        _ => {}
    }
    sum
}

/// The names that a schema requires.
fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).take(PROPERTIES_MAX)
}

impl<'a> Making<'a> {
    /// `also` is what is required of it by what it is a part of.
    fn value(&mut self, schema: &'a Value, also: &BTreeSet<&'a str>, depth: usize) -> Value {
        let schema = self.document.resolved(schema);
        self.nodes_left = self.nodes_left.saturating_sub(1);
        if depth > DEPTH_MAX || self.nodes_left == 0 {
            self.is_made_up = true;
            return Value::Null;
        }
        if let Some(said) = said(schema) {
            let length = length(said, self.bytes_left);
            if length <= self.bytes_left {
                self.bytes_left -= length;
                return said.clone();
            }
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.all_of(schema, parts, also, depth);
        }
        for key in ["oneOf", "anyOf"] {
            let parts = schema.get(key).and_then(Value::as_array);
            if let Some(first) =
                parts.and_then(|parts| parts.iter().find(|part| type_of(part) != "null"))
            {
                return self.value(first, also, depth + 1);
            }
        }
        match type_of(schema) {
            "object" => self.object(schema, also, depth),
            "array" => {
                let items = schema.get("items").unwrap_or(&Value::Null);
                Value::Array(vec![self.value(items, &BTreeSet::new(), depth + 1)])
            }
            plain => {
                self.is_made_up = true;
                made_up(schema, plain)
            }
        }
    }

    /// Properties of all parts together; where they are no objects, the first part.
    fn all_of(
        &mut self,
        schema: &'a Value,
        parts: &'a [Value],
        also: &BTreeSet<&'a str>,
        depth: usize,
    ) -> Value {
        // One part may require what another describes.
        let mut also = also.clone();
        also.extend(required(schema));
        for part in parts.iter().take(NODES_MAX) {
            also.extend(required(self.document.resolved(part)));
        }
        let mut merged = Map::new();
        let mut first = None;
        let mut add = |value: Value| match value {
            Value::Object(object) => merged.extend(object),
            other if first.is_none() => first = Some(other),
            _ => {}
        };
        for part in parts.iter().take(NODES_MAX) {
            add(self.value(part, &also, depth + 1));
        }
        if schema.get("properties").is_some() {
            add(self.object(schema, &also, depth));
        }
        match first {
            Some(first) if merged.is_empty() => first,
            _ => Value::Object(merged),
        }
    }

    /// The properties that are required, and those that have an example.
    fn object(&mut self, schema: &'a Value, also: &BTreeSet<&'a str>, depth: usize) -> Value {
        let required: BTreeSet<&str> = required(schema).chain(also.iter().copied()).collect();
        let mut object = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten().take(PROPERTIES_MAX) {
            let resolved = self.document.resolved(property);
            let is_read_only = resolved.get("readOnly").and_then(Value::as_bool) == Some(true);
            let is_wanted = required.contains(&name.as_str()) || said(resolved).is_some();
            if is_wanted && !is_read_only && self.nodes_left > 0 {
                let value = self.value(property, &BTreeSet::new(), depth + 1);
                object.insert(name.clone(), value);
            }
        }
        Value::Object(object)
    }
}

/// What the schema itself gives as a value.
fn said(schema: &Value) -> Option<&Value> {
    let first =
        |key: &str| schema.get(key).and_then(Value::as_array).and_then(|values| values.first());
    schema
        .get("example")
        .or_else(|| first("examples"))
        .or_else(|| schema.get("default"))
        .or_else(|| schema.get("const"))
        .or_else(|| first("enum"))
}

/// The type; of several (3.1) the first that is not null.
fn type_of(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("required").is_some_and(Value::is_array) => "object",
        _ if schema.get("items").is_some() => "array",
        _ => "string",
    }
}

fn made_up(schema: &Value, name: &str) -> Value {
    match name {
        "integer" | "number" => {
            let bound = |key: &str| schema.get(key).filter(|bound| bound.is_number()).cloned();
            // 3.0 says `exclusiveMinimum: true` beside the minimum, 3.1 gives the number there.
            let above = |bound: &Value| {
                bound.as_i64().and_then(|bound| bound.checked_add(1)).map(Value::from)
            };
            let is_exclusive =
                schema.get("exclusiveMinimum").and_then(Value::as_bool) == Some(true);
            let minimum = bound("minimum");
            let minimum = if is_exclusive { minimum.as_ref().and_then(above) } else { minimum };
            let at_most = |one: &Value| {
                bound("maximum")
                    .and_then(|max| max.as_f64())
                    .filter(|max| *max < one.as_f64().unwrap_or(1.0))
            };
            let lowest = minimum.or_else(|| bound("exclusiveMinimum").as_ref().and_then(above));
            lowest.unwrap_or_else(|| {
                if at_most(&json!(1)).is_some() {
                    bound("maximum").unwrap_or(json!(0))
                } else {
                    json!(1)
                }
            })
        }
        "boolean" => Value::Bool(true),
        "null" => Value::Null,
        _ => Value::from(text(schema)),
    }
}

fn text(schema: &Value) -> String {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or("");
    let text = match format {
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "date" => "2026-01-01",
        "date-time" => "2026-01-01T00:00:00Z",
        "time" => "00:00:00Z",
        "duration" => "PT1S",
        "email" => "user@example.org",
        "uri" | "url" => "http://example.org/",
        "hostname" => "example.org",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "byte" => "YQ==",
        _ => "text",
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let (shortest, longest) =
        (bound("minLength").unwrap_or(0).min(LENGTH_MAX), bound("maxLength").unwrap_or(u64::MAX));
    let mut text: String =
        text.chars().take(usize::try_from(longest).unwrap_or(usize::MAX)).collect();
    while (text.len() as u64) < shortest {
        text.push('x');
    }
    text
}
