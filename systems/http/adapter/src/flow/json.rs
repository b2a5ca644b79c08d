//! One value out of a JSON text by its pointer (RFC 6901), without building the tree around it.

use std::io::Write as _;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The steps of a pointer.
///
/// # Errors
/// When it is none.
pub(crate) fn pointer(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = text.strip_prefix('/') else {
        let help = text.trim_start_matches('$').trim_start_matches('.').replace('.', "/");
        return Err(format!(
            "`{text}` is not a JSON pointer, which begins with `/`; did you mean `/{help}`?"
        ));
    };
    Ok(rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

/// Appends the value at a pointer: a text without its quotes, anything else as JSON. Says whether it is there and not null.
///
/// # Errors
/// When the text is not JSON.
pub(crate) fn find(
    json: &[u8],
    path: &[String],
    out: &mut Vec<u8>,
) -> Result<bool, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let found = Seek { path, out }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(found)
}

struct Seek<'a> {
    path: &'a [String],
    out: &'a mut Vec<u8>,
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_any(self)
    }
}

impl Seek<'_> {
    fn scalar(self, value: &dyn std::fmt::Display) -> bool {
        if self.path.is_empty() {
            write!(self.out, "{value}").expect("a Vec takes any bytes");
        }
        self.path.is_empty()
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, value: bool) -> Result<bool, E> {
        Ok(self.scalar(&value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<bool, E> {
        Ok(self.scalar(&value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<bool, E> {
        Ok(self.scalar(&value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<bool, E> {
        Ok(self.scalar(&value))
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(self.scalar(&text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let Some((step, rest)) = self.path.split_first() else {
            let mut items = Vec::new();
            while let Some(item) = list.next_element::<Value>()? {
                items.push(item);
            }
            return Ok(self.scalar(&Value::Array(items)));
        };
        let wanted: Option<usize> = step.parse().ok();
        let (mut at, mut found) = (0, false);
        loop {
            if Some(at) == wanted {
                let seek = Seek { path: rest, out: &mut *self.out };
                let Some(there) = list.next_element_seed(seek)? else { break };
                found = there;
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            at += 1;
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let Some((step, rest)) = self.path.split_first() else {
            let mut object = serde_json::Map::new();
            while let Some((name, value)) = map.next_entry::<String, Value>()? {
                object.insert(name, value);
            }
            return Ok(self.scalar(&Value::Object(object)));
        };
        let (mut found, before) = (false, self.out.len());
        while let Some(is_it) = map.next_key_seed(Name(step))? {
            if is_it {
                // Of a name that stands twice the last counts, as most readers have it.
                self.out.truncate(before);
                found = map.next_value_seed(Seek { path: rest, out: &mut *self.out })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Whether a key is this one.
struct Name<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: whatever is asked, the value is that which the whole tree has, as text.
    #[test]
    fn as_the_tree_has_it() {
        let json =
            br#"{"a":{"b/c":[10,{"~d":"x\ny"},null,true]},"e":-1.5,"f":"","a2":"last","g":[]}"#;
        let tree: Value = serde_json::from_slice(json).unwrap();
        for at in [
            "",
            "/a",
            "/a/b~1c",
            "/a/b~1c/0",
            "/a/b~1c/1/~0d",
            "/a/b~1c/2",
            "/a/b~1c/3",
            "/a/b~1c/4",
            "/e",
            "/f",
            "/a2",
            "/none",
            "/e/deeper",
            "/g",
            "/g/0",
            "/a/b~1c/x",
        ] {
            let mut out = Vec::new();
            let found = find(json, &pointer(at).unwrap(), &mut out).unwrap();
            let expected = tree.pointer(at).filter(|value| !value.is_null());
            let text = expected.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
            let got = found.then(|| String::from_utf8(out).unwrap());
            assert_eq!(got, text, "{at}");
        }
    }

    /// Claim: what is not JSON to its end is not taken for it, and a path that is no pointer is told how one is written.
    #[test]
    fn not_json() {
        for text in ["", "{", "{\"a\":1}x", "<html>", "{\"a\":1", "[1,]"] {
            assert!(find(text.as_bytes(), &["a".to_owned()], &mut Vec::new()).is_err(), "{text}");
        }
        let wrong = pointer("$.data.token").unwrap_err();
        assert_eq!(
            wrong,
            "`$.data.token` is not a JSON pointer, which begins with `/`; did you mean `/data/token`?"
        );
    }
}
