//! How many transactions fell into each cell of time and latency.
//!
//! It must never drop a transaction from the picture: where there are too many cells, neighbours are merged.

use model::picture::{DENSITY_FROM_NS, DENSITY_PER_DECADE, TrialPicture};
use serde_json::{Value, json};

use super::arrays::Arrays;

/// Cells of a document. A cell of noise is about 1.3 bytes deflated, so that all are below 170 kB as text.
pub(super) const DENSITY_CELLS_MAX: usize = 100_000;
/// How often neighbouring buckets may be merged: 24 a factor of ten become 3.
const MERGES_MAX: u32 = 3;

/// How often neighbouring buckets are merged by two so that the cells of the document are few enough.
pub(super) fn merges(pictures: &[&TrialPicture]) -> u32 {
    let cells = |merged: u32| -> usize {
        let columns = pictures.iter().flat_map(|it| &it.density);
        columns.map(|column| merge(column, merged).len()).sum()
    };
    (0..MERGES_MAX).find(|merged| cells(*merged) <= DENSITY_CELLS_MAX).unwrap_or(MERGES_MAX)
}

/// A column with its buckets merged.
fn merge(column: &[(u8, u32)], merged: u32) -> Vec<(u8, u32)> {
    let mut done: Vec<(u8, u32)> = Vec::with_capacity(column.len());
    for (bucket, count) in column {
        let bucket = bucket >> merged;
        match done.last_mut() {
            Some((last, sum)) if *last == bucket => *sum = sum.saturating_add(*count),
            _ => done.push((bucket, *count)),
        }
    }
    done
}

pub(super) fn density(picture: &TrialPicture, merged: u32, arrays: &mut Arrays) -> Value {
    let columns: Vec<Vec<(u8, u32)>> =
        picture.density.iter().map(|column| merge(column, merged)).collect();
    let cells = columns.iter().map(|it| u64::try_from(it.len()).unwrap_or(u64::MAX));
    let cells = arrays.counts(cells);
    let bucket = arrays.counts(columns.iter().flatten().map(|(bucket, _)| u64::from(*bucket)));
    let count = arrays.counts(columns.iter().flatten().map(|(_, count)| u64::from(*count)));
    json!({
        "from_ns": DENSITY_FROM_NS, "per_decade": DENSITY_PER_DECADE >> merged,
        "cells": cells, "bucket": bucket, "count": count,
    })
}
