//! Bodies without the secrets in them.

use serde_json::Value;

use super::secrets::{REMOVED, is_secret, masked_pairs};

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
        && let Ok(mut value) = serde_json::from_slice::<Value>(&body)
    {
        let mut count = 0;
        mask(&mut value, &mut count);
        // What holds no secret stays byte for byte as it was.
        let body = if count == 0 { body } else { value.to_string().into_bytes() };
        return Masked::Body(body, count);
    }
    if content_type.contains("x-www-form-urlencoded")
        && let Ok(text) = std::str::from_utf8(&body)
    {
        let (text, count) = masked_pairs(text);
        return Masked::Body(text.into_bytes(), count);
    }
    let text = String::from_utf8_lossy(&body).to_ascii_lowercase();
    let names_one = ["password", "passwd", "secret", "token", "api_key", "apikey", "authorization"];
    if names_one.iter().any(|word| text.contains(word)) {
        Masked::Opaque
    } else {
        Masked::Body(body, 0)
    }
}

/// Depth is bounded by the parser that made the value.
fn mask(value: &mut Value, count: &mut usize) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if is_secret(name) && !value.is_null() {
                    *count += 1;
                    *value = Value::from(REMOVED);
                } else {
                    mask(value, count);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, count)),
        _ => {}
    }
}
