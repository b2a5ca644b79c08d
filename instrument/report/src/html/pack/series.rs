//! Series of a long trial, at the resolution of the small charts that show them.
//!
//! It must never lose an extreme: merged columns keep the lowest and the highest of what they hold.

use model::picture::{Lane, LaneState, Lanes, Series};
use serde_json::{Value, json};

use super::arrays::Arrays;
use crate::paint::clean;
use crate::svg::scale::Unit;

/// Columns that a small chart, half as wide as the page, can tell apart.
const COLUMNS_MAX: usize = 600;
/// The fewest that still have a shape.
const COLUMNS_MIN: usize = 120;
/// Numbers of all series of a document: lowest, mean and highest of each column, about a byte each.
const NUMBERS_MAX: usize = 300_000;

/// How many columns each of so many series may tell apart.
pub(super) fn columns_max(series: usize) -> usize {
    (NUMBERS_MAX / 3 / series.max(1)).clamp(COLUMNS_MIN, COLUMNS_MAX)
}

/// How the script writes values of a unit.
pub(super) fn form(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => "bytes",
        Unit::Ns => "duration",
        _ => "number",
    }
}

/// Lanes for the script to draw: states (0 with the highest, 1 near, 2 far, 3 absent), how far each node has come and how far
/// it is behind, by column.
pub(super) fn lanes(of: &Lanes, columns_max: usize, arrays: &mut Arrays) -> Value {
    let lane = |it: &Lane| {
        let together = it.states.len().div_ceil(columns_max.max(1)).max(1);
        let worst = |states: &[LaneState]| states.iter().max().map_or(0, |it| *it as i64);
        let whole = |values: &[f64]| {
            let highest = values.iter().copied().fold(f64::NAN, f64::max);
            let is_whole = highest.is_finite() && highest.abs() < 2f64.powi(53);
            #[expect(clippy::cast_possible_truncation, reason = "below 2^53")]
            is_whole.then(|| highest.round() as i64)
        };
        let states: Vec<i64> = repeated(&it.states, together, worst);
        let reached = repeated(&it.reached, together, whole);
        let behind = repeated(&it.behind, together, whole);
        json!({ "source": clean(&it.source), "state": arrays.ints(states.into_iter()),
            "reached": arrays.maybes(reached.into_iter()), "behind": arrays.maybes(behind.into_iter()) })
    };
    let each: Vec<Value> = of.lanes.iter().map(lane).collect();
    json!({ "name": clean(&of.name), "unit": clean(&of.unit), "near_max": of.near_max, "lanes": each })
}

/// As many values as before, those of neighbours alike.
fn repeated<T, U: Clone>(values: &[T], together: usize, join: impl Fn(&[T]) -> U) -> Vec<U> {
    let chunks = values.chunks(together);
    chunks.flat_map(|chunk| std::iter::repeat_n(join(chunk), chunk.len())).collect()
}

/// The series with neighbouring columns alike where there are more than a chart has pixels: each then says the lowest,
/// the mean and the highest of its neighbours. As many columns as before, so that they lie on the same axis; deflate
/// finds those that repeat.
pub(super) fn few(of: &Series, columns_max: usize) -> Series {
    let together = of.mean.len().div_ceil(columns_max.max(1)).max(1);
    if together == 1 {
        return of.clone();
    }
    let merged = |values: &[f64], join: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
        let chunks = values.chunks(together);
        chunks
            .flat_map(|chunk| {
                let known: Vec<f64> = chunk.iter().copied().filter(|it| it.is_finite()).collect();
                let value = if known.is_empty() { f64::NAN } else { join(&known) };
                std::iter::repeat_n(value, chunk.len())
            })
            .collect()
    };
    #[expect(clippy::cast_precision_loss, reason = "a handful of columns")]
    let mean = |known: &[f64]| known.iter().sum::<f64>() / known.len() as f64;
    Series {
        source: of.source.clone(),
        name: of.name.clone(),
        min: merged(&of.min, &|known| known.iter().copied().fold(f64::INFINITY, f64::min)),
        mean: merged(&of.mean, &mean),
        max: merged(&of.max, &|known| known.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a long series keeps its length, its extremes and its gaps; a short one stays as it is.
    #[test]
    fn extremes_and_gaps_stay() {
        let values: Vec<f64> =
            (0..1_000_u32).map(|at| if at < 30 { f64::NAN } else { f64::from(at % 77) }).collect();
        let long = Series {
            source: "node".to_owned(),
            name: "height".to_owned(),
            min: values.clone(),
            mean: values.clone(),
            max: values,
        };
        let merged = few(&long, COLUMNS_MAX);
        assert_eq!(merged.mean.len(), 1_000);
        assert!(merged.mean[..30].iter().all(|it| it.is_nan()));
        assert_eq!(merged.max.iter().copied().fold(0.0, f64::max), 76.0);
        assert_eq!(merged.min.iter().copied().fold(99.0, f64::min), 0.0);
        assert_eq!((merged.min[30], merged.max[30], merged.mean[30]), (30.0, 31.0, 30.5));
        let short = Series { min: vec![1.0], mean: vec![2.0], max: vec![3.0], ..long };
        assert_eq!(few(&short, COLUMNS_MAX), short);
        assert_eq!((columns_max(0), columns_max(400), columns_max(5_000)), (600, 250, 120));
    }
}
