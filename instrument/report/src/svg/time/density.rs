//! Where the response times of each moment lay: a density of some hundred × 40 cells in five shades.

use model::picture::{DENSITY_BUCKETS, TrialPicture, density_edge_ns};
use model::result::Timeline;

use crate::svg::canvas::{Canvas, float, push_stroke};
use crate::svg::plot::Plot;

/// The most columns.
pub(super) const ACROSS_MAX: usize = 150;
/// The most rows.
pub(super) const DOWN_MAX: usize = 40;
/// Lower bounds of the shades, as shares of the fullest cell on a logarithmic scale.
const SHADES: usize = 5;

/// The smallest and largest edge of the buckets that hold anything, nanoseconds.
pub(crate) fn range_ns(picture: &TrialPicture) -> Option<(f64, f64)> {
    let filled = picture.density.iter().flatten().filter(|(_, count)| *count > 0);
    let (low, high) = filled.fold((u8::MAX, 0), |(low, high), (b, _)| (low.min(*b), high.max(*b)));
    (low <= high).then(|| (density_edge_ns(low), density_edge_ns(high.saturating_add(1))))
}

/// Draws the cells.
pub(crate) fn draw(
    canvas: &mut Canvas,
    plot: &Plot,
    picture: &TrialPicture,
    timeline: &Timeline,
    (across_max, down_max): (usize, usize),
) {
    let Some((low, high)) = bucket_range(picture) else { return };
    let across = picture.density.len().min(timeline.columns.len());
    let columns_each = across.div_ceil(across_max.max(1)).max(1);
    let buckets_each = (high - low + 1).div_ceil(down_max.max(1)).max(1);
    let cells: Vec<Vec<u64>> = picture.density[..across]
        .chunks(columns_each)
        .map(|columns| cells_of(columns, low, high, buckets_each))
        .collect();
    let most = cells.iter().flatten().copied().max().unwrap_or(0);
    let width_ns = timeline.width_ns.max(1) as f64 * float(columns_each);
    let at = |column: f64| plot.x.at(timeline.start_ns as f64 + column * width_ns);
    let edge = |row: usize| {
        let bucket = (low + row * buckets_each).min(DENSITY_BUCKETS);
        plot.y.at(density_edge_ns(u8::try_from(bucket).unwrap_or(u8::MAX)))
    };
    let mut shades = vec![String::new(); SHADES];
    for (index, column) in cells.iter().enumerate() {
        let x = at(float(index) + 0.5);
        let mut row = 0;
        while row < column.len() {
            let shade = shade(column[row], most);
            let from = row;
            while row < column.len() && self::shade(column[row], most) == shade {
                row += 1;
            }
            if let Some(shade) = shade {
                push_stroke(&mut shades[shade], x, edge(from), edge(row));
            }
        }
    }
    let width = (at(1.0) - at(0.0)).max(0.5);
    for (index, data) in shades.iter().enumerate().filter(|(_, data)| !data.is_empty()) {
        canvas.wide_path(data, &format!("k k{}", index + 1), width);
    }
}

fn bucket_range(picture: &TrialPicture) -> Option<(usize, usize)> {
    let filled = picture.density.iter().flatten().filter(|(_, count)| *count > 0);
    let buckets = filled.map(|(bucket, _)| usize::from(*bucket).min(DENSITY_BUCKETS - 1));
    let (low, high) = buckets.fold((usize::MAX, 0), |(l, h), b| (l.min(b), h.max(b)));
    (low <= high).then_some((low, high))
}

fn cells_of(columns: &[Vec<(u8, u32)>], low: usize, high: usize, each: usize) -> Vec<u64> {
    let mut cells = vec![0; (high - low) / each + 1];
    for (bucket, count) in columns.iter().flatten() {
        let bucket = usize::from(*bucket).clamp(low, high);
        cells[(bucket - low) / each] += u64::from(*count);
    }
    cells
}

/// Which of the five shades, if any: by the logarithm, so that a tail of single transactions is seen.
fn shade(count: u64, most: u64) -> Option<usize> {
    if count == 0 {
        return None;
    }
    let share = (count as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    Some(((share * float(SHADES)) as usize).min(SHADES - 1))
}
