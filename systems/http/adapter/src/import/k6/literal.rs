//! Literals of JavaScript, as they stand in the options of a script: objects, arrays, texts, numbers, words. A call, a
//! variable or a sum is no literal, and is kept as its text. Bounded in depth; nothing is run.

/// The deepest nesting that is read.
const DEPTH_MAX: usize = 32;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Number(f64),
    Boolean(bool),
    List(Vec<Value>),
    /// In the order written.
    Object(Vec<(String, Value)>),
    /// No literal: its beginning, on one line.
    Other(String),
}

impl Value {
    /// The value of a key of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) const fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn entries(&self) -> &[(String, Self)] {
        if let Self::Object(entries) = self { entries } else { &[] }
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }
}

/// The script's text without comments: texts in quotes stay as they are.
pub(super) fn without_comments(script: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(script.len()), script);
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
            out.push(' ');
        } else {
            let length = match first {
                '"' | '\'' | '`' => quoted_bytes(rest),
                _ => first.len_utf8(),
            };
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    out
}

/// How long a text in quotes is, with them.
fn quoted_bytes(text: &str) -> usize {
    let mut characters = text.char_indices();
    let Some((_, quote)) = characters.next() else { return 0 };
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Reads the value at the beginning of a text without comments. Gives it, and the rest.
pub(super) fn value(text: &str) -> (Value, &str) {
    value_at(text, 0)
}

fn value_at(text: &str, depth: usize) -> (Value, &str) {
    let text = text.trim_start();
    let read = match text.chars().next() {
        Some('{') if depth < DEPTH_MAX => object(&text[1..], depth),
        Some('[') if depth < DEPTH_MAX => list(&text[1..], depth),
        Some('"' | '\'' | '`') => quoted(text),
        _ => word(text),
    };
    // An expression that goes on after a literal, as `2 * 60` does, is none.
    match read {
        Some((value, rest)) if ends(rest) => (value, rest),
        _ => other(text),
    }
}

fn ends(rest: &str) -> bool {
    let after = rest.trim_start();
    let is_next_line = rest[..rest.len() - after.len()].contains('\n')
        && !after.starts_with(['.', '(', '[', '+', '-', '*', '/', '%', '?', '|', '&', '=']);
    after.is_empty() || after.starts_with([',', '}', ']', ';']) || is_next_line
}

fn object(mut text: &str, depth: usize) -> Option<(Value, &str)> {
    let mut entries = Vec::new();
    loop {
        text = text.trim_start();
        if let Some(rest) = text.strip_prefix('}') {
            return Some((Value::Object(entries), rest));
        }
        let (name, rest) = match text.chars().next()? {
            '"' | '\'' => {
                let (Value::Text(name), rest) = quoted(text)? else { return None };
                (name, rest)
            }
            _ => {
                let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
                let end = text.find(|c| !is_name(c))?;
                (text[..end].to_owned(), &text[end..])
            }
        };
        let rest = rest.trim_start();
        let rest = match rest.strip_prefix(':') {
            Some(rest) if !name.is_empty() => {
                let (value, rest) = value_at(rest, depth + 1);
                entries.push((name, value));
                rest
            }
            // A method, a spread, a name that stands for itself.
            _ => {
                let (value, rest) = other(text);
                entries.push((name, value));
                rest
            }
        };
        let rest = rest.trim_start();
        text = rest.strip_prefix(',').unwrap_or(rest);
        if !rest.starts_with([',', '}']) {
            return None;
        }
    }
}

fn list(mut text: &str, depth: usize) -> Option<(Value, &str)> {
    let mut items = Vec::new();
    loop {
        text = text.trim_start();
        if let Some(rest) = text.strip_prefix(']') {
            return Some((Value::List(items), rest));
        }
        let (item, rest) = value_at(text, depth + 1);
        items.push(item);
        let rest = rest.trim_start();
        text = rest.strip_prefix(',').unwrap_or(rest);
        if !rest.starts_with([',', ']']) {
            return None;
        }
    }
}

fn quoted(text: &str) -> Option<(Value, &str)> {
    let length = quoted_bytes(text);
    let inside = text.get(1..length - 1)?;
    if text.starts_with('`') && inside.contains("${") {
        return None;
    }
    let (mut out, mut characters) = (String::new(), inside.chars());
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next()? {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                other => out.push(other),
            },
            c => out.push(c),
        }
    }
    Some((Value::Text(out), &text[length..]))
}

fn word(text: &str) -> Option<(Value, &str)> {
    let is_of_word = |c: char| c.is_alphanumeric() || "_.+-".contains(c);
    let end = text.find(|c| !is_of_word(c)).unwrap_or(text.len());
    let value = match &text[..end] {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        number => {
            Value::Number(number.replace('_', "").parse().ok().filter(|n: &f64| n.is_finite())?)
        }
    };
    Some((value, &text[end..]))
}

/// An expression that is no literal: up to the comma or the bracket that ends it.
fn other(text: &str) -> (Value, &str) {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' | '\'' | '`' => {
                at += quoted_bytes(&text[at..]);
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            ')' | ']' | '}' | ',' | ';' if depth == 0 => break,
            _ => {}
        }
        at += c.len_utf8();
    }
    let shown: Vec<&str> = text[..at].split_whitespace().collect();
    let shown: String = shown.join(" ").chars().take(60).collect();
    (Value::Other(shown), &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        value(&without_comments(text)).0
    }

    /// Claim: literals come out as they are, with comments, commas at the end and either quotes; what is computed is none.
    #[test]
    fn literals() {
        let text = "{ a: 1_000, // one\n 'b-c': [\"x\\\"y\", '2', true,], /* no */ d: { e: -1.5 }, f: 2 * 60, g: __ENV.N || 3,\n h: `t`, }";
        let expected = Value::Object(vec![
            ("a".into(), Value::Number(1_000.0)),
            (
                "b-c".into(),
                Value::List(vec![
                    Value::Text("x\"y".into()),
                    Value::Text("2".into()),
                    Value::Boolean(true),
                ]),
            ),
            ("d".into(), Value::Object(vec![("e".into(), Value::Number(-1.5))])),
            ("f".into(), Value::Other("2 * 60".into())),
            ("g".into(), Value::Other("__ENV.N || 3".into())),
            ("h".into(), Value::Text("t".into())),
        ]);
        assert_eq!(read(text), expected);
        assert_eq!(
            read("makeOptions({ a: 1 }, 2);"),
            Value::Other("makeOptions({ a: 1 }, 2)".into())
        );
    }

    /// Claim: no text makes it panic, hang or recurse without end.
    #[test]
    fn garbage() {
        for text in ["", "{", "[", "{a", "{a:", "'", "`${", "{a:1 b:2}", "}{", "\"\\"] {
            let _ = read(text);
        }
        assert!(matches!(read(&"[".repeat(100_000)), Value::Other(_) | Value::List(_)));
        let whole = "{ a: [1, 'x', { b: `c`, d: f(1, [2]) }], e: true }";
        for cut in 0..whole.len() {
            let _ = read(&whole[..cut]);
            let _ = read(&whole[cut..]);
        }
    }
}
