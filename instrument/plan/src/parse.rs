//! TOML text → Options with positions. Knows nothing of what the keys mean, and never panics on any text.

use std::collections::BTreeMap;
use std::ops::Range;

use model::options::{Options, Problems, Span, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::input::SOURCE_BYTES_MAX;

/// Deeper nesting than any sensible file has; the parser itself admits thousands of levels.
const DEPTH_MAX: usize = 64;

/// Syntax mistakes shown for one source: those after the first few are mostly echoes of the first.
const SYNTAX_MISTAKES_MAX: usize = 8;

/// Parses a whole document. `None` if it is not TOML; the mistakes are then among `problems`.
pub(crate) fn document(text: &str, source: u16, problems: &mut Problems) -> Option<Options> {
    if text.len() > SOURCE_BYTES_MAX {
        let message =
            format!("the text is {} bytes long; at most {SOURCE_BYTES_MAX} are read", text.len());
        problems.add(Span { source, start: 0, end: 0 }, message, None);
        return None;
    }
    let (tree, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        syntax_problems(&errors, text, source, 0, problems);
        return None;
    }
    let at = Placing { source, offset: 0 };
    let value = Value::Table(at.table(tree.into_inner(), 0, problems));
    Some(Options { value, span: Span { source, start: 0, end: 0 } })
}

/// Parses the right side of `path=value`: a TOML value, or text where it is not one (`80/s`, `30s`). What
/// begins like a list, a table or a quoted text must be one.
pub(crate) fn loose_value(
    text: &str,
    source: u16,
    offset: usize,
    problems: &mut Problems,
) -> Options {
    let start = offset + text.len() - text.trim_start().len();
    let trimmed = text.trim();
    let span = Span { source, start, end: start + trimmed.len() };
    let as_text = Options { value: Value::String(trimmed.to_owned()), span };
    let at = Placing { source, offset: start };
    match DeValue::parse(trimmed) {
        Ok(value) if matches!(value.get_ref(), DeValue::Datetime(_)) => as_text,
        Ok(value) => at.value(value, 0, problems).unwrap_or(as_text),
        Err(error) if trimmed.starts_with(['[', '{', '"', '\'']) => {
            syntax_problems(&[error], trimmed, source, start, problems);
            as_text
        }
        Err(_) => as_text,
    }
}

/// Parses a dotted path (`load.rate`, `workload."a.b"`) to its keys with their places.
pub(crate) fn dotted_path(
    text: &str,
    source: u16,
    offset: usize,
    problems: &mut Problems,
) -> Option<Vec<(String, Span)>> {
    let shown = Span { source, start: offset, end: offset + text.len() };
    let example = Some("write a path such as load.rate".to_owned());
    if text.trim().is_empty() {
        problems.add(shown, "there is no path before the `=`", example);
        return None;
    }
    let line = format!("{text} = 0");
    let Ok(tree) = DeTable::parse(&line) else {
        problems.add(shown, format!("`{text}` is not the path of a key"), example);
        return None;
    };
    let mut keys = Vec::new();
    let mut table = tree.get_ref();
    loop {
        let mut entries = table.iter();
        let (Some((key, value)), None) = (entries.next(), entries.next()) else {
            problems.add(shown, format!("`{text}` is not the path of one key"), example);
            return None;
        };
        let place = Placing { source, offset };
        keys.push((key.get_ref().clone().into_owned(), place.span(key.span())));
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(keys),
        }
    }
}

fn syntax_problems(
    errors: &[toml::de::Error],
    text: &str,
    source: u16,
    offset: usize,
    problems: &mut Problems,
) {
    for error in errors.iter().take(SYNTAX_MISTAKES_MAX) {
        let range = error.span().unwrap_or(0..0);
        let written = text.get(range.clone()).unwrap_or_default();
        let (message, help) = in_our_words(error.message(), written);
        let span = Span { source, start: offset + range.start, end: offset + range.end };
        problems.add(span, message, help);
    }
}

/// The parser's most frequent messages as people meet them; the others as they are.
fn in_our_words(message: &str, written: &str) -> (String, Option<String>) {
    if message.starts_with("string values must be quoted") {
        if written.trim().is_empty() {
            return ("a value is missing here".to_owned(), None);
        }
        let help = format!("write \"{written}\"");
        return (format!("`{written}` needs quotes around it"), Some(help));
    }
    if message == "duplicate key" {
        let help = "a key, or a table with its [header], stands in a file once".to_owned();
        return (format!("`{written}` is there already"), Some(help));
    }
    (format!("this is not TOML: {message}"), None)
}

/// Where the text that is being converted stands.
#[derive(Clone, Copy)]
struct Placing {
    source: u16,
    offset: usize,
}

impl Placing {
    fn span(self, range: Range<usize>) -> Span {
        Span { source: self.source, start: self.offset + range.start, end: self.offset + range.end }
    }

    fn table(
        self,
        table: DeTable<'_>,
        depth: usize,
        problems: &mut Problems,
    ) -> BTreeMap<String, (Span, Options)> {
        let mut entries = BTreeMap::new();
        for (key, value) in table {
            let span = self.span(key.span());
            if let Some(value) = self.value(value, depth + 1, problems) {
                entries.insert(key.into_inner().into_owned(), (span, value));
            }
        }
        entries
    }

    fn value(
        self,
        value: Spanned<DeValue<'_>>,
        depth: usize,
        problems: &mut Problems,
    ) -> Option<Options> {
        let span = self.span(value.span());
        if depth > DEPTH_MAX {
            problems.add(span, format!("nested deeper than {DEPTH_MAX} levels"), None);
            return None;
        }
        let value = match value.into_inner() {
            DeValue::String(text) => Value::String(text.into_owned()),
            DeValue::Boolean(boolean) => Value::Boolean(boolean),
            DeValue::Integer(number) => {
                let digits = number.as_str().replace('_', "");
                match i64::from_str_radix(&digits, number.radix()) {
                    Ok(number) => Value::Integer(number),
                    Err(_) => {
                        problems.add(span, format!("`{number}` is too large a number"), None);
                        return None;
                    }
                }
            }
            DeValue::Float(number) => match number.as_str().replace('_', "").parse::<f64>() {
                Ok(number) if number.is_finite() => Value::Float(number),
                _ => {
                    problems.add(span, format!("`{number}` is not a finite number"), None);
                    return None;
                }
            },
            DeValue::Datetime(date) => {
                let help = format!("put it in quotes if it is meant as text: \"{date}\"");
                problems.add(span, "no value here is a date or a time of day", Some(help));
                return None;
            }
            DeValue::Array(items) => Value::Array(
                items.into_iter().filter_map(|i| self.value(i, depth + 1, problems)).collect(),
            ),
            DeValue::Table(table) => Value::Table(self.table(table, depth, problems)),
        };
        Some(Options { value, span })
    }
}
