//! Reading one table of the file: [`model::options::Section`], and beside it the note of what each value is
//! in effect and where it came from.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::options::{Options, Problems, Section, Span, Value};
use model::quantity::{Rate, show_bandwidth, show_duration, show_percent};

use crate::input::{Outside, Source};
use crate::secret::redact_options;

/// The findings that gather while an experiment is read.
pub(crate) struct Reading<'a> {
    /// All texts; a trace file that was read joins them.
    pub sources: Vec<Source>,
    /// Every mistake so far.
    pub problems: Problems,
    /// Every effective value so far.
    pub effects: Vec<Effect>,
    /// Questions to others.
    pub outside: Outside<'a>,
    /// Traces that were read already, by path and speed; `None` = it was rejected.
    pub traces: BTreeMap<(PathBuf, String), Option<Vec<u64>>>,
    /// Changes by the command line, in words.
    pub remarks: Vec<String>,
}

/// An effective value; `span` is `None` for a default.
pub(crate) struct Effect {
    pub path: String,
    pub value: String,
    pub span: Option<Span>,
}

/// A table being read.
pub(crate) struct Table<'a> {
    section: Section<'a>,
}

impl<'a> Table<'a> {
    pub fn open(options: &'a Options, path: &str, reading: &mut Reading<'_>) -> Self {
        Self { section: Section::open(options, path, &mut reading.problems) }
    }

    pub fn span(&self) -> Span {
        self.section.span()
    }

    /// The dotted name of `key` in this table.
    pub fn full(&self, key: &str) -> String {
        self.section.full(key)
    }

    /// The value as written; the key counts as known from now on.
    pub fn given(&mut self, key: &'static str) -> Option<&'a Options> {
        self.section.raw(key)
    }

    pub fn finish(self, reading: &mut Reading<'_>) {
        self.section.finish(&mut reading.problems);
    }

    /// Adds a mistake at `key`.
    pub fn reject(
        &self,
        key: &str,
        message: impl Into<String>,
        help: Option<&str>,
        reading: &mut Reading<'_>,
    ) {
        self.section.reject(key, message, help.map(str::to_owned), &mut reading.problems);
    }

    /// Adds a mistake for a key that is understood but that nothing carries out yet.
    pub fn refuse_unbuilt(&mut self, key: &'static str, what: &str, reading: &mut Reading<'_>) {
        if self.given(key).is_some() {
            let message = format!("`{}` ({what}) is not built yet", self.full(key));
            let help = "remove it; nothing in a file is ever passed over in silence";
            self.reject(key, message, Some(help), reading);
        }
    }

    /// Adds a mistake if `key` is absent.
    pub fn require<T>(
        &self,
        key: &str,
        value: Option<T>,
        example: &str,
        reading: &mut Reading<'_>,
    ) -> Option<T> {
        self.section.require(key, value, example, &mut reading.problems)
    }

    pub fn duration(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Option<Duration> {
        let value = self.section.duration(key, &mut reading.problems);
        self.note(key, value.map(show_duration), reading);
        value
    }

    pub fn duration_or(
        &mut self,
        key: &'static str,
        default: Duration,
        reading: &mut Reading<'_>,
    ) -> Duration {
        let value = self.duration(key, reading);
        value.unwrap_or_else(|| self.fall_back(key, default, show_duration(default), reading))
    }

    pub fn rate(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Option<Rate> {
        let value = self.section.rate(key, &mut reading.problems);
        self.note(key, value.map(|rate| rate.to_string()), reading);
        value
    }

    pub fn percent(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Option<f64> {
        let value = self.section.percent(key, &mut reading.problems);
        self.note(key, value.map(show_percent), reading);
        value
    }

    pub fn bandwidth(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Option<u64> {
        let value = self.section.bandwidth(key, &mut reading.problems);
        self.note(key, value.map(show_bandwidth), reading);
        value
    }

    pub fn size(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Option<u64> {
        let value = self.section.size(key, &mut reading.problems);
        self.note(key, value.map(|bytes| format!("{bytes}B")), reading);
        value
    }

    pub fn integer(
        &mut self,
        key: &'static str,
        min: u64,
        max: u64,
        reading: &mut Reading<'_>,
    ) -> Option<u64> {
        let value = self.section.integer(key, min, max, &mut reading.problems);
        self.note(key, value.map(|number| number.to_string()), reading);
        value
    }

    pub fn integer_or(
        &mut self,
        key: &'static str,
        min: u64,
        max: u64,
        default: u64,
        reading: &mut Reading<'_>,
    ) -> u64 {
        let value = self.integer(key, min, max, reading);
        value.unwrap_or_else(|| self.fall_back(key, default, default.to_string(), reading))
    }

    /// As [`Table::integer_or`], for what is kept in 32 bits.
    pub fn count_or(
        &mut self,
        key: &'static str,
        min: u32,
        max: u32,
        default: u32,
        reading: &mut Reading<'_>,
    ) -> u32 {
        let value = self.integer_or(key, min.into(), max.into(), default.into(), reading);
        u32::try_from(value).expect("between two numbers of 32 bits")
    }

    pub fn number_or(
        &mut self,
        key: &'static str,
        min: f64,
        max: f64,
        default: f64,
        reading: &mut Reading<'_>,
    ) -> f64 {
        let value = self.section.number(key, min, max, &mut reading.problems);
        self.note(key, value.map(|number| number.to_string()), reading);
        value.unwrap_or_else(|| self.fall_back(key, default, default.to_string(), reading))
    }

    pub fn boolean_or(
        &mut self,
        key: &'static str,
        default: bool,
        reading: &mut Reading<'_>,
    ) -> bool {
        let value = self.section.boolean(key, &mut reading.problems);
        self.note(key, value.map(|boolean| boolean.to_string()), reading);
        value.unwrap_or_else(|| self.fall_back(key, default, default.to_string(), reading))
    }

    pub fn string(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Option<&'a str> {
        let value = self.section.string(key, &mut reading.problems);
        self.note(key, value.map(str::to_owned), reading);
        value
    }

    pub fn one_of(
        &mut self,
        key: &'static str,
        words: &[&'static str],
        reading: &mut Reading<'_>,
    ) -> Option<&'static str> {
        let value = self.section.one_of(key, words, &mut reading.problems);
        self.note(key, value.map(str::to_owned), reading);
        value
    }

    /// One of a few words, or the default. `None` only if another word was written.
    pub fn one_of_or(
        &mut self,
        key: &'static str,
        words: &[&'static str],
        default: &'static str,
        reading: &mut Reading<'_>,
    ) -> Option<&'static str> {
        let value = self.one_of(key, words, reading);
        if value.is_some() || self.given(key).is_some() {
            return value;
        }
        Some(self.fall_back(key, default, default.to_owned(), reading))
    }

    pub fn strings(
        &mut self,
        key: &'static str,
        reading: &mut Reading<'_>,
    ) -> Option<Vec<&'a str>> {
        self.section.strings(key, &mut reading.problems)
    }

    pub fn array(&mut self, key: &'static str, reading: &mut Reading<'_>) -> Option<&'a [Options]> {
        self.section.array(key, &mut reading.problems)
    }

    /// Notes an effective value that the table does not hold in so many words.
    pub fn note_derived<T>(
        &self,
        key: &str,
        value: T,
        shown: String,
        reading: &mut Reading<'_>,
    ) -> T {
        reading.effects.push(Effect { path: self.full(key), value: shown, span: None });
        value
    }

    /// The default, noted as such, unless the key is there and wrong (then the plan is rejected anyway).
    fn fall_back<T>(
        &mut self,
        key: &'static str,
        default: T,
        shown: String,
        reading: &mut Reading<'_>,
    ) -> T {
        if self.given(key).is_none() {
            reading.effects.push(Effect { path: self.full(key), value: shown, span: None });
        }
        default
    }

    /// Notes an effective value that was given.
    pub fn note(&mut self, key: &'static str, shown: Option<String>, reading: &mut Reading<'_>) {
        if let (Some(value), Some(given)) = (shown, self.given(key)) {
            reading.effects.push(Effect { path: self.full(key), value, span: Some(given.span) });
        }
    }
}

/// Entries of a table of the user's own keys, in the order written.
pub(crate) fn entries_as_written<'a>(
    options: &'a Options,
    path: &str,
    reading: &mut Reading<'_>,
) -> Vec<(&'a str, Span, &'a Options)> {
    let mut entries = Section::open(options, path, &mut reading.problems).entries();
    entries.sort_by_key(|(_, span, _)| (span.source, span.start));
    entries
}

/// Notes every leaf of a table that is handed on to an adapter, without its secrets.
pub(crate) fn note_leaves(options: &Options, path: &str, reading: &mut Reading<'_>) {
    let mut plain = options.clone();
    redact_options(&mut plain);
    note_leaves_of(&plain, path, reading);
}

fn note_leaves_of(options: &Options, path: &str, reading: &mut Reading<'_>) {
    match &options.value {
        Value::Table(table) => {
            for (key, (_, value)) in table {
                note_leaves_of(value, &format!("{path}.{key}"), reading);
            }
        }
        _ => reading.effects.push(Effect {
            path: path.to_owned(),
            value: options.label(),
            span: Some(options.span),
        }),
    }
}

/// Adds the mistake of one table, or of something else, where a list of tables is meant.
pub(crate) fn not_a_list(options: &Options, path: &str, reading: &mut Reading<'_>) {
    let is = match options.value {
        Value::Table(_) => "one table",
        _ => options.type_word(),
    };
    let message = format!("`{path}` must be a list of tables, but is {is}");
    let help = format!("write [[{path}]] with two brackets");
    reading.problems.add(options.span, message, Some(help));
}
