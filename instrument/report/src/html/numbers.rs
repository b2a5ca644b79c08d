//! The way of a number from the result document to a cell of the page: the raw number and its place stand beside what
//! is shown.
//!
//! It must never take a number from anywhere but the document that is written as summary.json: a cell that says where
//! its number stands is filled from there.

use serde_json::Value;

use crate::grid::Source;

/// The document, as summary.json holds it.
pub(super) struct Document(Value);

impl Document {
    pub(super) fn of(run: &model::result::RunResult) -> Self {
        Self(serde_json::to_value(run).expect("every map of a result has text keys"))
    }

    /// The attributes of an element that shows a number: ` data-v="…" data-k="…"`. Empty if there is no number.
    pub(super) fn attributes(&self, source: &Source) -> String {
        match source {
            Source::At(at) => match self.raw(at) {
                Some(raw) => format!(" data-v=\"{raw}\" data-k=\"{}\"", super::markup::text(at)),
                None => String::new(),
            },
            Source::Between(low, high) => {
                let end = |at: &str| self.raw(at).unwrap_or_default();
                match (end(low), end(high)) {
                    (low, high) if low.is_empty() && high.is_empty() => String::new(),
                    (from, to) => {
                        format!(
                            " data-from=\"{from}\" data-to=\"{to}\" data-between=\"{low} {high}\""
                        )
                    }
                }
            }
            Source::Sum(parts) => self.sum(parts).map_or_else(String::new, |sum| {
                format!(" data-v=\"{sum}\" data-sum=\"{}\"", joined(parts))
            }),
            Source::Share(parts, whole) => {
                let share = self.total(parts).zip(self.number(whole));
                self.made(share, "share", &format!("{} / {whole}", joined(parts)))
            }
            Source::PerSecond(count, window) => {
                let parts = self.number(count).zip(self.number(window).map(|ns| ns / 1e9));
                self.made(parts, "per-second", &format!("{count} / {window}"))
            }
        }
    }

    /// The attributes of `part ÷ whole`.
    fn made(&self, of: Option<(f64, f64)>, how: &str, pointers: &str) -> String {
        let value = of.map(|(part, whole)| part / whole).and_then(serde_json::Number::from_f64);
        let pointers = super::markup::text(pointers);
        value.map_or_else(String::new, |value| {
            format!(" data-v=\"{value}\" data-{how}=\"{pointers}\"")
        })
    }

    /// The number there, as JSON prints it.
    pub(super) fn raw(&self, pointer: &str) -> Option<String> {
        match self.0.pointer(pointer) {
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        }
    }

    fn number(&self, pointer: &str) -> Option<f64> {
        self.0.pointer(pointer).and_then(Value::as_f64)
    }

    fn sum(&self, parts: &[String]) -> Option<i64> {
        let each = parts.iter().map(|part| self.0.pointer(part).and_then(Value::as_i64));
        each.sum()
    }

    fn total(&self, parts: &[String]) -> Option<f64> {
        parts.iter().map(|part| self.number(part)).sum()
    }
}

fn joined(parts: &[String]) -> String {
    super::markup::text(&parts.join(" "))
}
