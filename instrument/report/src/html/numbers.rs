//! The way of a number from the result document to a cell of the page: the raw number and its place stand beside what
//! is shown.
//!
//! It must never take a number from anywhere but the document that is written as summary.json: a cell that says where
//! its number stands is filled from there.

use serde_json::Value;

use super::markup::Attributes;
use crate::grid::Source;

/// The document, as summary.json holds it.
pub(super) struct Document(Value);

impl Document {
    pub(super) fn of(run: &model::result::RunResult) -> Self {
        Self(serde_json::to_value(run).expect("every map of a result has text keys"))
    }

    /// One without a number, for pages that are not of a result.
    pub(super) const fn empty() -> Self {
        Self(Value::Null)
    }

    /// The attributes of an element that shows a number: `data-v` and `data-k`. None if there is no number.
    pub(super) fn attributes(&self, source: &Source) -> Attributes {
        match source {
            Source::At(at) => match self.raw(at) {
                Some(raw) => vec![("data-v", raw), ("data-k", at.clone())],
                None => Vec::new(),
            },
            Source::Between(low, high) => {
                let end = |at: &str| self.raw(at).unwrap_or_default();
                match (end(low), end(high)) {
                    (low, high) if low.is_empty() && high.is_empty() => Vec::new(),
                    (from, to) => vec![
                        ("data-from", from),
                        ("data-to", to),
                        ("data-between", format!("{low} {high}")),
                    ],
                }
            }
            Source::Sum(parts) => self.sum(parts).map_or_else(Vec::new, |sum| {
                vec![("data-v", sum.to_string()), ("data-sum", parts.join(" "))]
            }),
            Source::Share(parts, whole) => {
                let share = self.total(parts).zip(self.number(whole));
                made(share, "data-share", format!("{} / {whole}", parts.join(" ")))
            }
            Source::PerSecond(count, window) => {
                let parts = self.number(count).zip(self.number(window).map(|ns| ns / 1e9));
                made(parts, "data-per-second", format!("{count} / {window}"))
            }
        }
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

/// The attributes of `part ÷ whole`.
fn made(of: Option<(f64, f64)>, how: &'static str, pointers: String) -> Attributes {
    let value = of.map(|(part, whole)| part / whole).and_then(serde_json::Number::from_f64);
    value.map_or_else(Vec::new, |value| vec![("data-v", value.to_string()), (how, pointers)])
}
