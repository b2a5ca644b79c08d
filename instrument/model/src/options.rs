//! A user's file as a tree with positions. The one way to read it is in `section`.
//!
//! The tree is made by `plan` from TOML (and from `--set`, `ASSAY_…` and flags); adapters read their own part
//! of it through [`Section`] without knowing where it came from.

mod section;

use std::collections::BTreeMap;

use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Serialize, Serializer};

pub use section::{Problem, Problems, Section, did_you_mean, nearest};

/// Where a value stands: which source (0 = the experiment file; others are listed by `plan`) and its bytes there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Index of the source text.
    pub source: u16,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Its value.
    pub value: Value,
    /// Where it was written.
    pub span: Span,
}

/// A value of a user's file. Dates are not among them.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    String(String),
    /// A whole number.
    Integer(i64),
    /// A number with a point.
    Float(f64),
    /// true or false.
    Boolean(bool),
    /// A list.
    Array(Vec<Options>),
    /// A table, with the place of each key.
    Table(BTreeMap<String, (Span, Options)>),
}

impl Options {
    /// An empty table that was written nowhere.
    #[must_use]
    pub fn empty() -> Self {
        Self { value: Value::Table(BTreeMap::new()), span: Span::default() }
    }

    /// The value under a dotted path, if all of it is there.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |at, key| match &at.value {
            Value::Table(table) => table.get(key).map(|(_, value)| value),
            _ => None,
        })
    }

    /// Puts `value` under a dotted path, making tables on the way and replacing what stood there.
    pub fn set(&mut self, path: &str, value: Options) {
        let (head, rest) = path.split_once('.').map_or((path, None), |(h, r)| (h, Some(r)));
        if !matches!(self.value, Value::Table(_)) {
            self.value = Value::Table(BTreeMap::new());
        }
        let Value::Table(table) = &mut self.value else { unreachable!("made a table above") };
        let span = value.span;
        match rest {
            None => {
                table.insert(head.to_owned(), (span, value));
            }
            Some(rest) => {
                let (_, inner) =
                    table.entry(head.to_owned()).or_insert_with(|| (span, Self::empty()));
                inner.set(rest, value);
            }
        }
    }

    /// The one value, or each of a list, as [`Self::label`] shows it.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        match &self.value {
            Value::Array(items) => items.iter().map(Self::label).collect(),
            _ => vec![self.label()],
        }
    }

    /// A word for the type, for messages.
    #[must_use]
    pub const fn type_word(&self) -> &'static str {
        match self.value {
            Value::String(_) => "text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Boolean(_) => "true or false",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The value as a short label: what a matrix axis shows (`50/s`, `4`, `true`).
    #[must_use]
    pub fn label(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            Value::Integer(n) => n.to_string(),
            Value::Float(x) => x.to_string(),
            Value::Boolean(b) => b.to_string(),
            Value::Array(items) => {
                format!("[{}]", items.iter().map(Self::label).collect::<Vec<_>>().join(","))
            }
            Value::Table(table) => {
                let inner: Vec<_> =
                    table.iter().map(|(k, (_, v))| format!("{k}={}", v.label())).collect();
                format!("{{{}}}", inner.join(","))
            }
        }
    }
}

impl Serialize for Options {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::String(text) => to.serialize_str(text),
            Value::Integer(n) => to.serialize_i64(*n),
            Value::Float(x) => to.serialize_f64(*x),
            Value::Boolean(b) => to.serialize_bool(*b),
            Value::Array(items) => {
                let mut seq = to.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Value::Table(table) => {
                let mut map = to.serialize_map(Some(table.len()))?;
                for (key, (_, value)) in table {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Options;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text, number, boolean, list or table")
            }
            fn visit_str<E>(self, text: &str) -> Result<Options, E> {
                Ok(bare(Value::String(text.to_owned())))
            }
            fn visit_i64<E>(self, n: i64) -> Result<Options, E> {
                Ok(bare(Value::Integer(n)))
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Options, E> {
                i64::try_from(n).map(|n| bare(Value::Integer(n))).map_err(E::custom)
            }
            fn visit_f64<E>(self, x: f64) -> Result<Options, E> {
                Ok(bare(Value::Float(x)))
            }
            fn visit_bool<E>(self, b: bool) -> Result<Options, E> {
                Ok(bare(Value::Boolean(b)))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<Options, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(bare(Value::Array(items)))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Options, A::Error> {
                let mut table = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Options>()? {
                    table.insert(key, (Span::default(), value));
                }
                Ok(bare(Value::Table(table)))
            }
        }
        from.deserialize_any(Visitor)
    }
}

fn bare(value: Value) -> Options {
    Options { value, span: Span::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a dotted path makes its tables and finds its value again.
    #[test]
    fn dotted_paths() {
        let mut root = Options::empty();
        root.set("a.b.c", bare(Value::Integer(1)));
        assert_eq!(root.get("a.b.c").map(Options::label).as_deref(), Some("1"));
        assert!(root.get("a.x").is_none());
    }
}
