//! Recorded series: their declarations, and their lowest, mean and highest values over the window.

use std::collections::{BTreeMap, BTreeSet};

use model::NO_STAMP;
use model::facts::MetricSample;
use model::series::SeriesFacts;

use crate::figures::grid::Grid;

/// The declaration of each recorded series: as declared, then series made of these, then undeclared ones.
pub(crate) fn of(
    metrics: &[MetricSample],
    declared: &[SeriesFacts],
    made: Vec<SeriesFacts>,
) -> Vec<SeriesFacts> {
    let mut left: BTreeSet<&str> = metrics.iter().map(|it| it.name.as_str()).collect();
    let mut all: Vec<SeriesFacts> =
        declared.iter().filter(|it| left.remove(it.name.as_str())).cloned().collect();
    all.extend(made);
    all.extend(left.into_iter().map(SeriesFacts::undeclared));
    all
}

/// Lowest, mean and highest of every series over the measured window (over all of it where none fell inside).
#[expect(clippy::cast_precision_loss, reason = "a mean of a few thousand samples")]
pub(crate) fn resources(
    metrics: &[MetricSample],
    grid: &Grid,
) -> BTreeMap<String, (f64, f64, f64)> {
    let mut by_name: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    for sample in metrics.iter().filter(|sample| sample.value.is_finite() && sample.at != NO_STAMP)
    {
        let lists = by_name.entry(format!("{}.{}", sample.source, sample.name)).or_default();
        lists[usize::from(!grid.holds(sample.at))].push(sample.value);
    }
    by_name
        .into_iter()
        .map(|(name, [inside, outside])| {
            let values = if inside.is_empty() { outside } else { inside };
            let min = values.iter().copied().fold(f64::INFINITY, f64::min);
            let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (name, (min, values.iter().sum::<f64>() / values.len() as f64, max))
        })
        .collect()
}
