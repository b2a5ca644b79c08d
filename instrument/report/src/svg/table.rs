//! The numbers of a chart as a table, each with its place in the result document.
//!
//! A number that stands in summary.json says where; one that does not has no place, and only tables of time may have
//! such ones.

use std::fmt;

use model::quantity::{show_count, show_ns};

use crate::figures::{NONE, latency, rate};

/// The numbers of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FigureTable {
    /// Heads with their types.
    pub columns: Vec<(String, ColumnType)>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<FigureCell>>,
}

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Words.
    Text,
    /// Counts, rates, shares.
    Number,
    /// Durations, in nanoseconds when raw.
    Time,
}

impl ColumnType {
    /// The word on the page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Time => "time",
        }
    }
}

/// A cell of a figure's table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FigureCell {
    /// As shown, not escaped.
    pub text: String,
    /// The number in the document's unit.
    pub value: Option<Raw>,
    /// Its place in summary.json, as a JSON pointer.
    pub pointer: Option<String>,
    /// Whether it rests on fewer than ten samples.
    pub grey: bool,
}

/// A number as the result document holds it. It prints as JSON does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw {
    /// A count, or nanoseconds.
    Int(i64),
    /// A rate or a share; finite.
    Real(f64),
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            // JSON as serde_json writes it, so that a reader of both finds the same text.
            Self::Real(value) => f.write_str(
                &serde_json::Number::from_f64(*value).map_or_else(String::new, |n| n.to_string()),
            ),
        }
    }
}

impl FigureTable {
    pub(crate) fn new(columns: &[(&str, ColumnType)]) -> Self {
        let columns = columns.iter().map(|(head, kind)| ((*head).to_owned(), *kind)).collect();
        Self { columns, rows: Vec::new() }
    }
}

impl FigureCell {
    /// Words.
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Nanoseconds, or a dash.
    pub(crate) fn ns(value: Option<i64>) -> Self {
        Self { text: latency(value), value: value.map(Raw::Int), ..Self::default() }
    }

    /// Events a second, or a dash.
    pub(crate) fn per_s(value: f64) -> Self {
        let raw = value.is_finite().then_some(Raw::Real(value));
        let text = if raw.is_some() { rate(value) } else { NONE.to_owned() };
        Self { text, value: raw, ..Self::default() }
    }

    /// A number that is printed as given.
    pub(crate) fn real(value: f64, text: String) -> Self {
        let raw = value.is_finite().then_some(Raw::Real(value));
        let text = if raw.is_some() { text } else { NONE.to_owned() };
        Self { text, value: raw, ..Self::default() }
    }

    /// A count.
    pub(crate) fn count(value: u64) -> Self {
        let raw = i64::try_from(value).ok().map(Raw::Int);
        Self { text: show_count(value), value: raw, ..Self::default() }
    }

    /// A number of things that may be below zero.
    pub(crate) fn level(value: i64) -> Self {
        Self { text: value.to_string(), value: Some(Raw::Int(value)), ..Self::default() }
    }

    /// A moment, from the trial's start.
    pub(crate) fn moment(ns: i64) -> Self {
        Self { text: show_ns(ns), value: Some(Raw::Int(ns)), ..Self::default() }
    }

    /// With its place in summary.json; only where there is a number.
    pub(crate) fn at(mut self, pointer: impl Into<String>) -> Self {
        if self.value.is_some() {
            self.pointer = Some(pointer.into());
        }
        self
    }

    /// Marked as resting on too few samples.
    pub(crate) fn greyed(mut self, grey: bool) -> Self {
        if grey && self.value.is_some() && !self.grey {
            self.grey = true;
            self.text = format!("~{}", self.text);
        }
        self
    }
}
