//! Rows as one JSON object a line, with the columns of the CSV form.

use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

use model::Row;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::{Declared, Holds, PLAIN, Push, TextForm, is_object_with, percentiles_ndjson};
use crate::cells::{Cell, Column, Reading, cell, columns, layout, put_number};
use crate::error::ExchangeError;
use crate::lines::{Lines, wrong};
use crate::names::Names;

/// The most keys of the first line; ours has at most twenty.
const KEYS_MAX: usize = 64;

pub(super) const FORMAT: Declared = Declared {
    word: "ndjson",
    made_of: &[Holds::Rows, Holds::Distribution],
    endings: &["ndjson", "jsonl"],
    begins: |line| is_object_with(line, &["due_ns"]),
    text: TextForm::Rows { read, begin: |_, names| keys(columns(&names.stages)), put: put_row },
    of_percentiles: Some(percentiles_ndjson),
    ..PLAIN
};

fn read(
    name: &str,
    input: Box<dyn BufRead + '_>,
    names: &mut Names,
    rows: Push<'_>,
) -> Result<(), ExchangeError> {
    let mut lines = Lines::new(name, input);
    let mut layout_known = Vec::new();
    let mut index = 0;
    while let Some((line, text)) = lines.next()? {
        let at = |why: String| wrong(name, line, why);
        if index == 0 {
            let mut keys = Vec::new();
            object(text, |key, _| {
                keys.push(key.to_owned());
                if keys.len() > KEYS_MAX { Err("it has too many keys".to_owned()) } else { Ok(()) }
            })
            .map_err(at)?;
            layout_known = layout(keys.iter().map(String::as_str), names).map_err(at)?;
        }
        let mut reading = Reading::start(index);
        object(text, |key, cell| {
            let column = layout_known.iter().find(|(known, _)| known == key);
            let Some((_, column)) = column else {
                return Err(format!("`{}` is not a key of the first line", key.escape_debug()));
            };
            reading.set(*column, cell, names).map_err(|why| format!("{key}: {why}"))
        })
        .map_err(at)?;
        let row = reading.finish(index == 0, names).map_err(at)?;
        index += 1;
        rows(names, row)?;
    }
    Ok(())
}

/// Calls `f` for every key and value of a line.
fn object(line: &[u8], f: impl FnMut(&str, Cell<'_>) -> Result<(), String>) -> Result<(), String> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let mut failed = None;
    let keys = Keys { f, failed: &mut failed };
    let read = deserializer.deserialize_map(keys).and_then(|()| deserializer.end());
    match (failed, read) {
        (Some(why), _) => Err(why),
        (None, Err(error)) => {
            Err(format!("the line is not one flat JSON object: {}", short(&error)))
        }
        (None, Ok(())) => Ok(()),
    }
}

/// The parser's own position is within the line; only its column says something.
pub(crate) fn short(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} (column {})", error.column())
}

struct Keys<'a, F> {
    f: F,
    failed: &'a mut Option<String>,
}

impl<'de, F: FnMut(&str, Cell<'_>) -> Result<(), String>> Visitor<'de> for Keys<'_, F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object of numbers and texts")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Text)? {
            let value = map.next_value_seed(Value)?;
            let cell = match &value {
                Scalar::Absent => Cell::Absent,
                Scalar::Number(number) => Cell::Number(*number),
                Scalar::Text(text) => Cell::Text(text),
            };
            if let Err(why) = (self.f)(&key, cell) {
                *self.failed = Some(why);
                return Err(serde::de::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

/// A text, borrowed where it has no escapes.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

enum Scalar<'de> {
    Absent,
    Number(i128),
    Text(Cow<'de, str>),
}

/// A number, a text or null.
struct Value;

impl<'de> DeserializeSeed<'de> for Value {
    type Value = Scalar<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = Scalar<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a whole number, a text or null")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Absent)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Number(number.into()))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }
}

/// Columns, each with its name as it stands before a value: `"tx":`.
fn keys(columns: Vec<(String, Column)>) -> Vec<(String, Column)> {
    let key = |name: &str| {
        let mut key = Vec::new();
        put_text(&mut key, name);
        key.push(b':');
        String::from_utf8(key).expect("JSON is UTF-8")
    };
    columns.into_iter().map(|(name, column)| (key(&name), column)).collect()
}

/// Appends a row; `columns` are [`keys`].
fn put_row(out: &mut Vec<u8>, columns: &[(String, Column)], row: &Row, names: &Names) {
    for (index, (name, column)) in columns.iter().enumerate() {
        out.push(if index == 0 { b'{' } else { b',' });
        out.extend_from_slice(name.as_bytes());
        match cell(row, *column, names) {
            Cell::Absent => out.extend_from_slice(b"null"),
            Cell::Number(number) => put_number(out, number),
            Cell::Text(text) => put_text(out, text),
        }
    }
    out.extend_from_slice(b"}\n");
}

/// Appends a JSON text.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("memory takes every text");
}
