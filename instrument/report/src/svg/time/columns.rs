//! Columns of time merged to what a small chart has room for.

use model::result::{Timeline, TimelineColumn};

use crate::figures::plural;
use crate::svg::scale::{Scale, Unit, label};

/// The most columns of a small chart: two pixels each.
pub(crate) const COLUMNS_MAX: usize = 300;
/// The most rows of a table of time without the script.
const ROWS_MAX: usize = 60;

/// Merged columns.
pub(crate) struct Columns {
    /// Start of the first, nanoseconds after the trial's start.
    pub(crate) start_ns: f64,
    /// Length of one.
    pub(crate) width_ns: f64,
    /// How many columns of the timeline one holds.
    pub(crate) merged: usize,
    /// End of the last.
    pub(crate) end_ns: f64,
    pub(crate) columns: Vec<TimelineColumn>,
}

impl Columns {
    pub(crate) fn of(timeline: &Timeline, most: usize) -> Self {
        let merged = timeline.columns.len().div_ceil(most.max(1)).max(1);
        Self {
            end_ns: timeline.end_ns() as f64,
            start_ns: timeline.start_ns as f64,
            width_ns: (timeline.width_ns.max(1) as f64) * merged as f64,
            merged,
            columns: timeline.columns.chunks(merged).map(merge).collect(),
        }
    }

    /// For a table: fewer still.
    pub(crate) fn rows(timeline: &Timeline) -> Self {
        Self::of(timeline, ROWS_MAX)
    }

    /// The middle of a column, nanoseconds.
    pub(crate) fn middle_ns(&self, index: usize) -> f64 {
        self.start_ns + (index as f64 + 0.5) * self.width_ns
    }

    /// The start of a column.
    pub(crate) fn start_of_ns(&self, index: usize) -> f64 {
        self.start_ns + index as f64 * self.width_ns
    }

    /// The scale of time.
    pub(crate) fn scale(&self) -> Scale {
        Scale::linear(self.start_ns, self.end_ns)
    }

    /// A count of a column as a rate per second. The last has a length of its own.
    pub(crate) fn per_s(&self, index: usize, count: u64) -> f64 {
        let is_last = index + 1 == self.columns.len();
        let length = if is_last { self.end_ns - self.start_of_ns(index) } else { self.width_ns };
        count as f64 / (length.max(1.0) / 1e9)
    }

    /// A sentence on the width of a column.
    pub(crate) fn said(&self) -> String {
        let width = label(self.width_ns, self.width_ns, Unit::Ns);
        if self.merged == 1 {
            return format!("A column is {width} wide.");
        }
        format!(
            "Columns of {} are merged into one of {width}: counts are added up, of everything else the highest is \
             drawn.",
            plural(self.merged as u64, "measured column")
        )
    }
}

fn merge(columns: &[TimelineColumn]) -> TimelineColumn {
    let mut merged = TimelineColumn::default();
    for column in columns {
        merged.offered = merged.offered.saturating_add(column.offered);
        merged.sent = merged.sent.saturating_add(column.sent);
        merged.committed = merged.committed.saturating_add(column.committed);
        for (class, count) in &column.failed {
            let sum = merged.failed.entry(class.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (index, count) in column.reached.iter().enumerate() {
            if merged.reached.len() <= index {
                merged.reached.push(0);
            }
            merged.reached[index] = merged.reached[index].saturating_add(*count);
        }
        // None is below every value.
        merged.p50_ns = merged.p50_ns.max(column.p50_ns);
        merged.p99_ns = merged.p99_ns.max(column.p99_ns);
        merged.p999_ns = merged.p999_ns.max(column.p999_ns);
        merged.max_ns = merged.max_ns.max(column.max_ns);
        merged.own_lag_p99_ns = merged.own_lag_p99_ns.max(column.own_lag_p99_ns);
    }
    merged.outstanding = columns.iter().map(|column| column.outstanding).max().unwrap_or(0);
    merged
}
