//! vegeta's `json` format: one object a line with method, url, an optional header table (name to a list of
//! values) and an optional body in base64. Unknown keys are refused, because a misspelt `header` that is
//! silently left out measures another request than the one meant.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::options::did_you_mean;
use serde_json::{Map, Value};

use super::{Body, Mistake, Target, header, method, place};

const KEYS: [&str; 4] = ["method", "url", "header", "body"];

/// One line: one object.
pub(super) fn parse(line: usize, text: &str) -> Result<Target, Mistake> {
    let wrong = |message: String| Mistake::new(line, message);
    let value: Value = serde_json::from_str(text)
        .map_err(|error| wrong(format!("this line is not one JSON object: {}", short(&error))))?;
    let Value::Object(object) = value else {
        return Err(wrong(format!(
            "a target is a JSON object, such as: {}",
            r#"{"method":"GET","url":"http://127.0.0.1:8080/"}"#
        )));
    };
    if let Some(unknown) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let help = did_you_mean(unknown, KEYS.into_iter())
            .unwrap_or_else(|| format!("known are {}", KEYS.join(", ")));
        return Err(wrong(format!("`{unknown}` is not a key of a target; {help}")));
    }
    Ok(Target {
        line,
        method: method(line, text_of(line, &object, "method")?)?,
        place: place(line, text_of(line, &object, "url")?)?,
        headers: headers(line, object.get("header"))?,
        body: body(line, object.get("body"))?,
    })
}

/// The parser's own position is within the line; only its column says something.
fn short(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text).to_owned();
    format!("{what} (column {})", error.column())
}

fn text_of<'a>(line: usize, object: &'a Map<String, Value>, key: &str) -> Result<&'a str, Mistake> {
    match object.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Mistake::new(line, format!("`{key}` must be a text"))),
        None => Err(Mistake::new(line, format!("the target has no `{key}`"))),
    }
}

fn headers(line: usize, value: Option<&Value>) -> Result<Vec<(String, String)>, Mistake> {
    let wrong =
        || Mistake::new(line, "`header` must be a table of lists, such as {\"Accept\":[\"*/*\"]}");
    let table = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(table)) => table,
        Some(_) => return Err(wrong()),
    };
    let mut headers = Vec::new();
    for (name, values) in table {
        let values = match values {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            headers.push(header(line, name, value.as_str().ok_or_else(wrong)?)?);
        }
    }
    Ok(headers)
}

fn body(line: usize, value: Option<&Value>) -> Result<Body, Mistake> {
    match value {
        None | Some(Value::Null) => Ok(Body::None),
        Some(Value::String(text)) => match STANDARD.decode(text) {
            Ok(bytes) if bytes.is_empty() => Ok(Body::None),
            Ok(bytes) => Ok(Body::Bytes(bytes)),
            Err(error) => Err(Mistake::new(line, format!("`body` is not base64: {error}"))),
        },
        Some(_) => Err(Mistake::new(line, "`body` must be a text in base64")),
    }
}
