//! The course of each trial in its row of the results: p99 over time, or the longest where columns have too few samples
//! for it; all rows on one logarithmic scale.
//!
//! It must never draw a row on a scale of its own: a flat line of a slow setting would look like one of a fast one.

use model::result::{TimelineColumn, TrialResult};

use super::markup::Markup;
use crate::figures::latency;
use crate::svg::course;
use crate::tables::Shown;

/// Points of a curve: each is two pixels.
const POINTS_MAX: usize = 75;
/// The scale spans at least this factor, so that noise does not look like a cliff.
const FACTOR_MIN: f64 = 5.0;

/// A curve a trial, and what they are of; none if no trial has a line.
pub(super) fn curves(shown: &[Shown<'_>]) -> (Vec<Markup>, Option<&'static str>) {
    let has_p99 = shown.iter().all(|row| has_p99(row.trial));
    let (head, of): (_, fn(&TimelineColumn) -> Option<i64>) = match has_p99 {
        true => ("p99 over time", |it| it.p99_ns),
        false => ("longest over time", |it| it.max_ns),
    };
    let all: Vec<Vec<Option<i64>>> = shown.iter().map(|row| merged(row.trial, of)).collect();
    let known = || all.iter().flatten().flatten().copied().filter(|ns| *ns > 0);
    let (Some(low), Some(high)) = (known().min(), known().max()) else {
        return (vec![Markup::new(); shown.len()], None);
    };
    let (low, high) = (low as f64, high as f64);
    let range = (low, high.max(low * FACTOR_MIN));
    let draw = |values: &Vec<Option<i64>>| {
        let known = || values.iter().flatten().copied();
        match (known().min(), known().max()) {
            (Some(least), Some(most)) => {
                let said =
                    format!("{head}, from {} to {}", latency(Some(least)), latency(Some(most)));
                let values: Vec<Option<f64>> =
                    values.iter().map(|it| it.map(|ns| ns as f64)).collect();
                course(&values, range, &said).into()
            }
            _ => Markup::new(),
        }
    };
    (all.iter().map(draw).collect(), Some(head))
}

/// Whether most columns with response times have a p99.
fn has_p99(trial: &TrialResult) -> bool {
    let known = || trial.timeline.columns.iter().filter(|it| it.max_ns.is_some());
    2 * known().filter(|it| it.p99_ns.is_some()).count() > known().count()
}

/// A number of columns of time, the highest of those that share a point.
fn merged(trial: &TrialResult, of: fn(&TimelineColumn) -> Option<i64>) -> Vec<Option<i64>> {
    let columns = &trial.timeline.columns;
    let width = columns.len().div_ceil(POINTS_MAX).max(1);
    columns.chunks(width).map(|some| some.iter().filter_map(of).max()).collect()
}
