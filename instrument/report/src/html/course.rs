//! The course of each trial in its row of the results: p99 over time, all rows on one logarithmic scale.
//!
//! It must never draw a row on a scale of its own: a flat line of a slow setting would look like one of a fast one.

use model::result::TrialResult;

use super::markup::Markup;
use crate::figures::latency;
use crate::svg::course;
use crate::tables::Shown;

/// Points of a curve: each is two pixels.
const POINTS_MAX: usize = 75;
/// The scale spans at least this factor, so that noise does not look like a cliff.
const FACTOR_MIN: f64 = 5.0;

/// A curve a trial, and whether any has a line.
pub(super) fn curves(shown: &[Shown<'_>]) -> (Vec<Markup>, bool) {
    let all: Vec<Vec<Option<i64>>> = shown.iter().map(|row| merged(row.trial)).collect();
    let known = || all.iter().flatten().flatten().copied().filter(|ns| *ns > 0);
    let (Some(low), Some(high)) = (known().min(), known().max()) else {
        return (vec![Markup::new(); shown.len()], false);
    };
    let (low, high) = (low as f64, high as f64);
    let range = (low, high.max(low * FACTOR_MIN));
    let draw = |values: &Vec<Option<i64>>| {
        let known = || values.iter().flatten().copied();
        match (known().min(), known().max()) {
            (Some(least), Some(most)) => {
                let said = format!(
                    "p99 over time, from {} to {}",
                    latency(Some(least)),
                    latency(Some(most))
                );
                let values: Vec<Option<f64>> =
                    values.iter().map(|it| it.map(|ns| ns as f64)).collect();
                course(&values, range, &said).into()
            }
            _ => Markup::new(),
        }
    };
    (all.iter().map(draw).collect(), true)
}

/// The p99 of columns of time, the highest of those that share a point.
fn merged(trial: &TrialResult) -> Vec<Option<i64>> {
    let columns = &trial.timeline.columns;
    let width = columns.len().div_ceil(POINTS_MAX).max(1);
    columns.chunks(width).map(|of| of.iter().filter_map(|it| it.p99_ns).max()).collect()
}
