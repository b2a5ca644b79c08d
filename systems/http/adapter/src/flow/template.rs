//! Text with places for values: `{{token}}`, `{{$uuid}}`, `{{name | json}}`. Read once, with every mistake in it; filled in for
//! each request without an allocation. Everything random in it comes from the user's own generator.

use std::io::Write as _;

use model::options::did_you_mean;

use crate::flow::data::Data;
use crate::flow::user::User;

/// The most bytes of a value that are written into a request's head.
const HEAD_VALUE_BYTES_MAX: usize = 16 << 10;

/// A value that is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A value that the user knows under a name.
    Value(usize),
    /// A column of his line of the data.
    Column(usize),
    /// His number.
    User,
    /// Which time he walks through the flow, from 1.
    Iteration,
    /// Which time the loop around the step is run, from 1.
    Loop,
    /// The id of the transaction.
    Transaction,
    /// Milliseconds of Unix time.
    Time,
    /// A new one each time (RFC 9562, version 4).
    Uuid,
    /// A number of a range, a new one each time.
    Random(u64, u64),
    /// Two opening braces.
    Braces,
}

/// Where a value is written, and so what it may not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is.
    Raw,
    /// Into a path or a query as a whole: what cannot stand in a URL is percent-encoded.
    Target,
    /// Into a header: control characters become spaces.
    Header,
    /// Into a text of a JSON body.
    Json,
    /// Into one value of a query or a form: all but unreserved characters is percent-encoded.
    Url,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<[u8]>),
    Value(Slot, Form),
}

/// The text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

/// The names that a template may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    /// Of values, by their place; those that are not known yet at the place of the template are empty.
    pub(crate) values: &'a [String],
    /// Of columns of the data.
    pub(crate) columns: &'a [String],
}

/// Facts of the moment that a template is filled in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment<'a> {
    pub(crate) data: Option<&'a Data>,
    pub(crate) transaction: u64,
    pub(crate) unix_ms: i64,
    pub(crate) round: u32,
}

impl Template {
    /// Reads a text whose values are written in `form` unless they say otherwise.
    ///
    /// # Errors
    /// With every name in it that is not known.
    pub(crate) fn parse(text: &[u8], form: Form, names: Names<'_>) -> Result<Self, Vec<String>> {
        let (mut parts, mut wrong) = (Vec::new(), Vec::new());
        let (mut rest, mut plain) = (text, Vec::new());
        while let Some(open) = rest.windows(2).position(|two| two == b"{{") {
            plain.extend_from_slice(&rest[..open]);
            let inside = &rest[open + 2..];
            let close = inside.windows(2).position(|two| two == b"}}");
            let word = close.and_then(|close| word_of(&inside[..close]));
            let (Some(close), Some(word)) = (close, word) else {
                plain.extend_from_slice(b"{{");
                rest = inside;
                continue;
            };
            match value_of(word, form, names) {
                Ok((Slot::Braces, _)) => plain.extend_from_slice(b"{{"),
                Ok((slot, form)) => {
                    push_text(&mut parts, &mut plain);
                    parts.push(Part::Value(slot, form));
                }
                Err(message) => wrong.push(message),
            }
            rest = &inside[close + 2..];
        }
        plain.extend_from_slice(rest);
        push_text(&mut parts, &mut plain);
        if wrong.is_empty() { Ok(Self(parts)) } else { Err(wrong) }
    }

    /// Text that is always the same.
    pub(crate) fn text(bytes: &[u8]) -> Self {
        let mut parts = Vec::new();
        push_text(&mut parts, &mut bytes.to_vec());
        Self(parts)
    }

    /// The text, where it is always the same.
    pub(crate) fn as_text(&self) -> Option<&[u8]> {
        match self.0.as_slice() {
            [] => Some(&[]),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// This one with another after it.
    pub(crate) fn then(mut self, other: Self) -> Self {
        for part in other.0 {
            match (self.0.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(after)) => {
                    *before = [&**before, &*after].concat().into_boxed_slice();
                }
                (_, part) => self.0.push(part),
            }
        }
        self
    }

    /// Appends the text with its values.
    pub(crate) fn fill(&self, user: &mut User, moment: &Moment<'_>, out: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Part::Text(bytes) => out.extend_from_slice(bytes),
                Part::Value(slot, form) => fill(*slot, *form, user, moment, out),
            }
        }
    }
}

fn push_text(parts: &mut Vec<Part>, plain: &mut Vec<u8>) {
    if !plain.is_empty() {
        parts.push(Part::Text(std::mem::take(plain).into_boxed_slice()));
    }
}

/// The word between braces, if it can be a name: other text is sent as it is.
fn word_of(inside: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(inside).ok()?.trim();
    let can_be = |c: char| c.is_ascii_alphanumeric() || "_-.$: |".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
    (begins && text.chars().all(can_be)).then_some(text)
}

fn value_of(word: &str, form: Form, names: Names<'_>) -> Result<(Slot, Form), String> {
    let (name, filter) = match word.split_once('|') {
        None => (word, None),
        Some((name, filter)) => (name.trim(), Some(filter.trim())),
    };
    let form = match filter {
        None => form,
        Some("json") => Form::Json,
        Some("url") => Form::Url,
        Some(other) => {
            return Err(format!(
                "`{{{{{word}}}}}`: `{other}` is not a filter; there are json and url"
            ));
        }
    };
    let slot = match name.strip_prefix('$') {
        Some(built_in) => built_in_slot(built_in)?,
        None => named_slot(name, names)?,
    };
    Ok((slot, form))
}

const BUILT_IN: [&str; 7] = ["user", "iteration", "loop", "tx", "time", "uuid", "random:LOW:HIGH"];

fn built_in_slot(name: &str) -> Result<Slot, String> {
    Ok(match name {
        "user" => Slot::User,
        "iteration" => Slot::Iteration,
        "loop" => Slot::Loop,
        "tx" => Slot::Transaction,
        "time" => Slot::Time,
        "uuid" => Slot::Uuid,
        "braces" => Slot::Braces,
        _ => {
            let range = name.strip_prefix("random:").and_then(|range| range.split_once(':'));
            let ends = range.and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
            match ends {
                Some((low, high)) if low <= high => Slot::Random(low, high),
                _ => {
                    let known = BUILT_IN.map(|name| format!("${name}")).join(", ");
                    return Err(format!("`{{{{${name}}}}}` is not a value; there are {known}"));
                }
            }
        }
    })
}

fn named_slot(name: &str, names: Names<'_>) -> Result<Slot, String> {
    if let Some(at) = names.values.iter().position(|known| known == name) {
        return Ok(Slot::Value(at));
    }
    if let Some(at) = names.columns.iter().position(|known| known == name) {
        return Ok(Slot::Column(at));
    }
    let known = names.values.iter().chain(names.columns).map(String::as_str);
    let help = match did_you_mean(name, known.filter(|known| !known.is_empty())) {
        Some(help) => help,
        None => format!(
            "write take = {{ {name} = \"json:/{name}\" }} in an earlier step, or give it in [workload.values]"
        ),
    };
    Err(format!(
        "`{{{{{name}}}}}` is missing: no earlier step takes it, and it is no column of workload.data; {help}"
    ))
}

fn fill(slot: Slot, form: Form, user: &mut User, moment: &Moment<'_>, out: &mut Vec<u8>) {
    let mut number = |n: &dyn std::fmt::Display| {
        write!(out, "{n}").expect("a Vec takes any bytes");
    };
    match slot {
        Slot::User => number(&user.number),
        Slot::Iteration => number(&(u64::from(user.iteration) + 1)),
        Slot::Loop => number(&(u64::from(moment.round) + 1)),
        Slot::Transaction => number(&moment.transaction),
        Slot::Time => number(&moment.unix_ms),
        Slot::Random(low, high) => number(&user.random.between(low, high)),
        Slot::Uuid => {
            let high = user.random.next() & !0xf000 | 0x4000;
            let low = user.random.next() & !(0b11 << 62) | 0b10 << 62;
            let parts =
                (high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48, low & 0xffff_ffff_ffff);
            write!(
                out,
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                parts.0, parts.1, parts.2, parts.3, parts.4
            )
            .expect("a Vec takes any bytes");
        }
        Slot::Braces => out.extend_from_slice(b"{{"),
        Slot::Value(at) => put(user.values.get(at).map_or(&[][..], Vec::as_slice), form, out),
        Slot::Column(at) => {
            put(moment.data.map_or(&[][..], |data| data.cell(user.line, at)), form, out);
        }
    }
}

fn put(bytes: &[u8], form: Form, out: &mut Vec<u8>) {
    let in_head = &bytes[..bytes.len().min(HEAD_VALUE_BYTES_MAX)];
    match form {
        Form::Raw => out.extend_from_slice(bytes),
        Form::Header => {
            out.extend(in_head.iter().map(|b| if b.is_ascii_control() { b' ' } else { *b }));
        }
        Form::Target => {
            percent(in_head, |b| b.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&b), out)
        }
        Form::Url => percent(bytes, |b| b.is_ascii_alphanumeric() || b"-._~".contains(&b), out),
        Form::Json => bytes.iter().for_each(|byte| match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            0..=0x1f => write!(out, "\\u{byte:04x}").expect("a Vec takes any bytes"),
            _ => out.push(*byte),
        }),
    }
}

fn percent(bytes: &[u8], may_stand: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    for byte in bytes {
        if may_stand(*byte) {
            out.push(*byte);
        } else {
            write!(out, "%{byte:02X}").expect("a Vec takes any bytes");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::user::Sizes;

    fn names() -> (Vec<String>, Vec<String>) {
        (vec!["token".into(), String::new()], vec!["mail".into()])
    }

    fn filled(text: &str, form: Form, token: &str) -> String {
        let (values, columns) = names();
        let names = Names { values: &values, columns: &columns };
        let template = Template::parse(text.as_bytes(), form, names).unwrap();
        let mut user = User::default();
        user.begin(7, 1, 3, Sizes { loops: 0, values: 2 });
        user.values[0].extend_from_slice(token.as_bytes());
        let data = Data::parse("d.csv", "mail\na@b\nc@d\n").unwrap();
        user.line = 1;
        let moment = Moment { data: Some(&data), transaction: 12, unix_ms: 1_000, round: 4 };
        let mut out = Vec::new();
        template.fill(&mut user, &moment, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// Claim: each place gets its value in the form that it can stand there, and braces that name nothing are text.
    #[test]
    fn values_in_their_places() {
        for (text, form, token, expected) in [
            ("a {{token}} {{ token }}", Form::Raw, "x\"y", "a x\"y x\"y"),
            ("{{mail}}/{{$user}}/{{$iteration}}/{{$loop}}", Form::Raw, "", "c@d/7/2/5"),
            ("{{$tx}} {{$time}} {{$random:4:4}}", Form::Raw, "", "12 1000 4"),
            (
                "/i?x={{token}}&y={{token | url}}",
                Form::Target,
                "a&b c/é",
                "/i?x=a&b%20c/%C3%A9&y=a%26b%20c%2F%C3%A9",
            ),
            ("Bearer {{token}}", Form::Header, "a\r\nb", "Bearer a  b"),
            (
                "{\"t\":\"{{token|json}}\"}",
                Form::Raw,
                "\"\\\n\u{1}",
                "{\"t\":\"\\\"\\\\\\n\\u0001\"}",
            ),
            ("{{ {{1}} {{\"a\":1}} }} {{", Form::Raw, "", "{{ {{1}} {{\"a\":1}} }} {{"),
            ("{{$braces}}token}}", Form::Raw, "x", "{{token}}"),
        ] {
            assert_eq!(filled(text, form, token), expected, "{text}");
        }
        let uuid = filled("{{$uuid}}", Form::Raw, "");
        assert_eq!((uuid.len(), &uuid[14..15], uuid.matches('-').count()), (36, "4", 4), "{uuid}");
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    }

    /// Claim: every name that is not known is said, with the nearest that is.
    #[test]
    fn missing_names() {
        let (values, columns) = names();
        let names = Names { values: &values, columns: &columns };
        let text = b"{{tokn}} {{other}} {{$uid}} {{token|xml}}";
        let wrong = Template::parse(text, Form::Raw, names).unwrap_err();
        assert_eq!(
            wrong,
            [
                "`{{tokn}}` is missing: no earlier step takes it, and it is no column of workload.data; did you mean `token`?",
                "`{{other}}` is missing: no earlier step takes it, and it is no column of workload.data; write take = { other \
                 = \"json:/other\" } in an earlier step, or give it in [workload.values]",
                "`{{$uid}}` is not a value; there are $user, $iteration, $loop, $tx, $time, $uuid, $random:LOW:HIGH",
                "`{{token|xml}}`: `xml` is not a filter; there are json and url",
            ]
        );
    }
}
