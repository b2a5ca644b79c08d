//! Series of a long trial, at the resolution of the small charts that show them.
//!
//! It must never lose an extreme: merged columns keep the lowest and the highest of what they hold.

use model::picture::Series;

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
