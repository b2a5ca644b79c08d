//! Bodies without the secrets in them.

use serde_json::Value;

use super::secrets::{REMOVED, is_carried, is_secret, looks_secret, masked_pairs, names_secret};

/// What became of a body.
pub(super) enum Masked {
    /// It can be sent; so many values were taken out.
    Body(Vec<u8>, usize),
    /// It is neither JSON nor a form, and names a secret that cannot be taken out of it.
    Opaque,
}

/// Takes the secrets out of a body.
pub(super) fn masked(content_type: &str, body: Vec<u8>) -> Masked {
    let content_type = content_type.to_ascii_lowercase();
    if content_type.contains("json")
        && let Ok(mut values) = documents(&body)
    {
        let mut count = 0;
        values.iter_mut().for_each(|value| mask(value, &mut count));
        // What holds no secret stays byte for byte as it was.
        if count > 0 {
            let lines: Vec<String> = values.iter().map(Value::to_string).collect();
            return Masked::Body(lines.join("\n").into_bytes(), count);
        }
        return Masked::Body(body, 0);
    }
    if content_type.contains("x-www-form-urlencoded")
        && let Ok(text) = std::str::from_utf8(&body)
    {
        let (text, count) = masked_pairs(text);
        return Masked::Body(text.into_bytes(), count);
    }
    if names_secret(&String::from_utf8_lossy(&body)) {
        Masked::Opaque
    } else {
        Masked::Body(body, 0)
    }
}

/// One JSON document, or one a line.
fn documents(body: &[u8]) -> Result<Vec<Value>, serde_json::Error> {
    serde_json::Deserializer::from_slice(body).into_iter().collect()
}

/// Depth is bounded by the parser that made the value.
fn mask(value: &mut Value, count: &mut usize) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let is_carried = value.as_str().is_some_and(is_carried);
                if is_secret(name) && !value.is_null() && !is_carried {
                    *count += 1;
                    *value = Value::from(REMOVED);
                } else {
                    mask(value, count);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, count)),
        Value::String(text) if looks_secret(text) => {
            *count += 1;
            *value = Value::from(REMOVED);
        }
        _ => {}
    }
}
