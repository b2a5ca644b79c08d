//! The one way to read a user's file: every key typed, every mistake kept with its place, unknown keys named with the nearest
//! known one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Options, Span, Value};
use crate::quantity::{self, Rate};

/// One mistake in a user's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The mistake, in one sentence without a final stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

/// All mistakes found so far; reading goes on after each, so that the user sees them all at once.
#[derive(Clone, Debug, Default)]
pub struct Problems {
    /// In the order found.
    pub list: Vec<Problem>,
}

impl Problems {
    /// Adds one.
    pub fn add(&mut self, span: Span, message: impl Into<String>, help: Option<String>) {
        self.list.push(Problem { message: message.into(), span, help });
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// A table being read. Each getter notes its key as known, adds a problem if the value is not what it must be,
/// and then answers `None`, as for an absent key; [`Section::finish`] reports the keys that were not asked for.
#[derive(Debug)]
pub struct Section<'a> {
    table: Option<&'a BTreeMap<String, (Span, Options)>>,
    span: Span,
    path: String,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// Opens `options` as a table called `path` (dotted; empty for the whole file).
    pub fn open(options: &'a Options, path: &str, problems: &mut Problems) -> Self {
        let table = match &options.value {
            Value::Table(table) => Some(table),
            _ => {
                let message = format!("`{path}` must be a table, but is {}", options.type_word());
                problems.add(options.span, message, None);
                None
            }
        };
        Self { table, span: options.span, path: path.to_owned(), known: Vec::new() }
    }

    /// Where the table stands.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// The dotted name of `key` in this table.
    #[must_use]
    pub fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value as written.
    pub fn raw(&mut self, key: &'static str) -> Option<&'a Options> {
        self.known.push(key);
        self.table?.get(key).map(|(_, value)| value)
    }

    /// All entries, for tables whose keys are the user's (a matrix, headers). Marks every key as known.
    #[must_use]
    pub fn entries(self) -> Vec<(&'a str, Span, &'a Options)> {
        self.table.into_iter().flatten().map(|(k, (s, v))| (k.as_str(), *s, v)).collect()
    }

    /// A sub-table, or `None` if absent.
    pub fn section(&mut self, key: &'static str, problems: &mut Problems) -> Option<Section<'a>> {
        let value = self.raw(key)?;
        Some(Section::open(value, &self.full(key), problems))
    }

    /// Text.
    pub fn string(&mut self, key: &'static str, problems: &mut Problems) -> Option<&'a str> {
        let value = self.raw(key)?;
        match &value.value {
            Value::String(text) => Some(text),
            _ => self.wrong(key, value, "text in quotes", problems),
        }
    }

    /// true or false.
    pub fn boolean(&mut self, key: &'static str, problems: &mut Problems) -> Option<bool> {
        let value = self.raw(key)?;
        match value.value {
            Value::Boolean(b) => Some(b),
            _ => self.wrong(key, value, "true or false", problems),
        }
    }

    /// A whole number between `min` and `max`, both included.
    pub fn integer(
        &mut self,
        key: &'static str,
        min: u64,
        max: u64,
        problems: &mut Problems,
    ) -> Option<u64> {
        let value = self.raw(key)?;
        match value.value {
            Value::Integer(n) => match u64::try_from(n) {
                Ok(n) if (min..=max).contains(&n) => Some(n),
                _ => {
                    let message = format!(
                        "`{}` must lie between {min} and {max}, but is {n}",
                        self.full(key)
                    );
                    problems.add(value.span, message, None);
                    None
                }
            },
            _ => self.wrong(key, value, "a whole number", problems),
        }
    }

    /// A number (whole or not) between `min` and `max`, both included.
    pub fn number(
        &mut self,
        key: &'static str,
        min: f64,
        max: f64,
        problems: &mut Problems,
    ) -> Option<f64> {
        let value = self.raw(key)?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a user's number; beyond 2^53 it is out of any range here"
        )]
        let number = match value.value {
            Value::Integer(n) => n as f64,
            Value::Float(x) => x,
            _ => return self.wrong(key, value, "a number", problems),
        };
        if (min..=max).contains(&number) {
            return Some(number);
        }
        let message =
            format!("`{}` must lie between {min} and {max}, but is {number}", self.full(key));
        problems.add(value.span, message, None);
        None
    }

    /// A duration with its unit.
    pub fn duration(&mut self, key: &'static str, problems: &mut Problems) -> Option<Duration> {
        self.quantity(
            key,
            "a duration such as 250us, 30s or 1h30m",
            quantity::parse_duration,
            problems,
        )
    }

    /// A rate with its unit.
    pub fn rate(&mut self, key: &'static str, problems: &mut Problems) -> Option<Rate> {
        self.quantity(key, "a rate such as 50/s, 600/1m or max", Rate::parse, problems)
    }

    /// A size in bytes with its unit.
    pub fn size(&mut self, key: &'static str, problems: &mut Problems) -> Option<u64> {
        self.quantity(key, "a size such as 512B, 16kB or 1KiB", quantity::parse_size, problems)
    }

    /// A size in bytes with its unit, within a range.
    pub fn size_within(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        problems: &mut Problems,
    ) -> Option<u64> {
        let bytes = self.size(key, problems)?;
        if range.contains(&bytes) {
            return Some(bytes);
        }
        let [least, most, got] = [*range.start(), *range.end(), bytes].map(quantity::show_size);
        let message =
            format!("expected `{}` between {least} and {most}, got {got}", self.full(key));
        self.reject(key, message, None, problems);
        None
    }

    /// A percentage, as a fraction of one.
    pub fn percent(&mut self, key: &'static str, problems: &mut Problems) -> Option<f64> {
        self.quantity(key, "a percentage such as 99.9%", quantity::parse_percent, problems)
    }

    /// A bandwidth with its unit, as bytes a second; 0 = no limit.
    pub fn bandwidth(&mut self, key: &'static str, problems: &mut Problems) -> Option<u64> {
        let expected = "a bandwidth such as 100Mbit/s or 10MB/s";
        self.quantity(key, expected, quantity::parse_bandwidth, problems)
    }

    /// One of a few words.
    pub fn one_of(
        &mut self,
        key: &'static str,
        words: &[&'static str],
        problems: &mut Problems,
    ) -> Option<&'static str> {
        let text = self.string(key, problems)?;
        if let Some(word) = words.iter().find(|word| **word == text) {
            return Some(word);
        }
        let span = self.table?.get(key)?.1.span;
        let message =
            format!("`{}` cannot be `{text}`; it is one of {}", self.full(key), words.join(", "));
        problems.add(span, message, did_you_mean(text, words.iter().copied()));
        None
    }

    /// A list of anything.
    pub fn array(&mut self, key: &'static str, problems: &mut Problems) -> Option<&'a [Options]> {
        let value = self.raw(key)?;
        match &value.value {
            Value::Array(items) => Some(items),
            _ => self.wrong(key, value, "a list in brackets", problems),
        }
    }

    /// A list of texts; one text alone counts as a list of one.
    pub fn strings(&mut self, key: &'static str, problems: &mut Problems) -> Option<Vec<&'a str>> {
        let value = self.raw(key)?;
        let items = match &value.value {
            Value::String(text) => return Some(vec![text]),
            Value::Array(items) => items,
            _ => return self.wrong(key, value, "text in quotes or a list of texts", problems),
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match &item.value {
                Value::String(text) => texts.push(text.as_str()),
                _ => return self.wrong(key, item, "a list of texts", problems),
            }
        }
        Some(texts)
    }

    /// An address and a port; `example` is said where it is none.
    pub fn address(
        &mut self,
        key: &'static str,
        example: &str,
        problems: &mut Problems,
    ) -> Option<SocketAddr> {
        let text = self.string(key, problems)?;
        self.parsed(key, text, example, problems)
    }

    /// Addresses, one at least; one alone need not be a list.
    pub fn addresses(
        &mut self,
        key: &'static str,
        example: &str,
        problems: &mut Problems,
    ) -> Option<Vec<SocketAddr>> {
        let texts = self.strings(key, problems)?;
        if texts.is_empty() {
            self.reject(key, format!("expected an address such as {example}"), None, problems);
        }
        Some(texts.iter().filter_map(|text| self.parsed(key, text, example, problems)).collect())
    }

    fn parsed(
        &self,
        key: &str,
        text: &str,
        example: &str,
        problems: &mut Problems,
    ) -> Option<SocketAddr> {
        let address = text.parse().ok();
        if address.is_none() {
            let message = format!("expected an address such as {example}, got `{text}`");
            self.reject(key, message, None, problems);
        }
        address
    }

    /// Adds a problem at `key` (or at the table, if the key is absent).
    pub fn reject(
        &self,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
        problems: &mut Problems,
    ) {
        let span = self.table.and_then(|t| t.get(key)).map_or(self.span, |(_, value)| value.span);
        problems.add(span, message, help);
    }

    /// Adds a problem at each of `others` that stands beside `key`.
    pub fn reject_beside(
        &mut self,
        key: &'static str,
        others: &[&'static str],
        message: &str,
        problems: &mut Problems,
    ) {
        if self.raw(key).is_none() {
            return;
        }
        for other in others {
            if self.raw(other).is_some() {
                self.reject(other, message, Some(format!("remove it, or {key}")), problems);
            }
        }
    }

    /// Adds a problem if `key` is absent.
    pub fn require<T>(
        &self,
        key: &str,
        value: Option<T>,
        example: &str,
        problems: &mut Problems,
    ) -> Option<T> {
        let absent = self.table.is_some_and(|table| !table.contains_key(key));
        if value.is_none() && absent {
            let message = format!("`{}` is missing", self.full(key));
            problems.add(self.span, message, Some(format!("add a line such as: {example}")));
        }
        value
    }

    /// Reports every key that no getter asked for.
    pub fn finish(self, problems: &mut Problems) {
        for (key, (span, _)) in self.table.into_iter().flatten() {
            if !self.known.iter().any(|known| known == key) {
                let message = format!("`{}` is not a key that Assay knows", self.full(key));
                let known: Vec<&str> = self.known.clone();
                let help = did_you_mean(key, known.iter().copied()).or_else(|| {
                    let mut sorted = known;
                    sorted.sort_unstable();
                    sorted.dedup();
                    (!sorted.is_empty()).then(|| format!("known here: {}", sorted.join(", ")))
                });
                problems.add(*span, message, help);
            }
        }
    }

    fn quantity<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Result<T, String>,
        problems: &mut Problems,
    ) -> Option<T> {
        let value = self.raw(key)?;
        let Value::String(text) = &value.value else {
            return self.wrong(key, value, &format!("{expected}, in quotes"), problems);
        };
        match parse(text) {
            Ok(quantity) => Some(quantity),
            Err(message) => {
                problems.add(value.span, format!("`{}`: {message}", self.full(key)), None);
                None
            }
        }
    }

    fn wrong<T>(
        &self,
        key: &str,
        value: &Options,
        expected: &str,
        problems: &mut Problems,
    ) -> Option<T> {
        let message =
            format!("`{}` must be {expected}, but is {}", self.full(key), value.type_word());
        problems.add(value.span, message, None);
        None
    }
}

/// `did you mean …?` for the nearest of `known`, if one is near.
#[must_use]
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The known word that is nearest, if one is near at all.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| {
            // Of short words two letters that changed places leave little that is alike.
            let is_one_slip = strsim::osa_distance(word, candidate) == 1;
            let near = strsim::jaro_winkler(word, candidate);
            (if is_one_slip { near.max(0.9) } else { near }, candidate)
        })
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::super::bare;
    use super::*;

    /// Claim: one reading finds every mistake: a wrong type, a bad quantity and an unknown key.
    #[test]
    fn all_problems_at_once() {
        let mut root = Options::empty();
        root.set("rate", bare(Value::Integer(50)));
        root.set("timeout", bare(Value::String("30".into())));
        root.set("duratoin", bare(Value::String("1s".into())));
        let mut problems = Problems::default();
        let mut section = Section::open(&root, "load", &mut problems);
        assert_eq!(section.rate("rate", &mut problems), None);
        assert_eq!(section.duration("timeout", &mut problems), None);
        assert_eq!(section.duration("duration", &mut problems), None);
        section.finish(&mut problems);
        assert_eq!(problems.list.len(), 3, "{problems:?}");
        assert_eq!(problems.list[2].help.as_deref(), Some("did you mean `duration`?"));
    }
}
