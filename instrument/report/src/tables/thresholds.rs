//! Promises: each threshold once, with the value that it was compared with, or where it broke.
//!
//! It must never count a threshold that could not be evaluated as one that holds.

use model::result::ThresholdResult;

use super::Shown;
use crate::paint::{Paint, clean};

/// Places that are named where a threshold broke; the table of results has them all.
const NAMED_MAX: usize = 6;

/// One line of the section.
pub(crate) struct ThresholdLine {
    /// The mark and its paint.
    pub(crate) mark: &'static str,
    /// The paint.
    pub(crate) paint: Paint,
    /// As written, with the level's word if it is not `fail`.
    pub(crate) expr: String,
    /// The value, or where it broke.
    pub(crate) text: String,
    /// Whether it broke or could not be evaluated.
    pub(crate) is_broken: bool,
}

/// Every threshold once, in the order of the plan.
pub(crate) fn thresholds(shown: &[Shown<'_>]) -> Vec<ThresholdLine> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for threshold in shown.iter().flat_map(|row| &row.trial.thresholds) {
        let key = (threshold.expr.as_str(), threshold.level.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter().map(|key| line(key, shown)).collect()
}

fn line((expr, level): (&str, &str), shown: &[Shown<'_>]) -> ThresholdLine {
    let of: Vec<(&str, &ThresholdResult)> = shown
        .iter()
        .flat_map(|row| row.trial.thresholds.iter().map(move |it| (row.label.as_str(), it)))
        .filter(|(_, it)| it.expr == expr && it.level == level)
        .collect();
    let broken: Vec<&(&str, &ThresholdResult)> =
        of.iter().filter(|(_, it)| it.holds != Some(true)).collect();
    let is_refuted = broken.iter().any(|(_, it)| it.holds == Some(false));
    let (mark, paint) = match (broken.is_empty(), is_refuted, level) {
        (true, ..) => ("✓", Paint::Good),
        (_, true, "saturated") => ("○", Paint::Caution),
        (_, true, "warn" | "invalid") | (_, false, _) => ("!", Paint::Caution),
        (_, true, _) => ("✗", Paint::Bad),
    };
    let several = shown.len() > 1;
    let text = match (broken.is_empty(), several) {
        (true, false) => of.first().map(|(_, it)| clean(&it.actual)).unwrap_or_default(),
        (true, true) => format!("holds in {} of {}", of.len(), of.len()),
        (false, false) => broken.first().map(|(_, it)| value(it)).unwrap_or_default(),
        (false, true) => {
            let named = broken.iter().take(NAMED_MAX);
            let mut each: Vec<String> =
                named.map(|(label, it)| format!("{label} {}", value(it))).collect();
            if broken.len() > each.len() {
                each.push(format!("… and {} more", broken.len() - each.len()));
            }
            let verb = if is_refuted { "broken" } else { "cannot be told" };
            format!("{verb} in {} of {}: {}", broken.len(), of.len(), each.join(" · "))
        }
    };
    let level_word = if level == "fail" { String::new() } else { format!("  [{}]", clean(level)) };
    ThresholdLine {
        mark,
        paint,
        expr: format!("{}{level_word}", clean(expr)),
        text,
        is_broken: !broken.is_empty(),
    }
}

/// The value, or why there is none.
fn value(threshold: &ThresholdResult) -> String {
    match threshold.holds {
        None => format!("cannot be told: {}", clean(&threshold.detail)),
        Some(_) => clean(&threshold.actual),
    }
}
