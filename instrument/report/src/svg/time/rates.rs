//! Did the system keep up with what was offered? Offered, goodput, and failures by class.

use model::result::TimelineColumn;

use super::Trial;
use super::columns::Columns;
use super::frame::Frame;
use super::latency::from_cell;
use crate::paint::clean;
use crate::svg::canvas::Canvas;
use crate::svg::plot::{Plot, Sample};
use crate::svg::scale::{Scale, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// More classes than this are drawn as one; there are ten in all.
const CLASSES_MAX: usize = 6;
/// Fill classes of failures.
const FILLS: [&str; 7] = ["fbad", "fwarn", "f3", "f6", "f5", "f7", "fm"];

pub(super) fn figure(of: &Trial<'_>, columns: &Columns) -> Figure {
    let classes = classes(columns);
    let stack: Vec<Vec<f64>> =
        (0..columns.columns.len()).map(|index| stacked(columns, index, &classes)).collect();
    let lines = columns.columns.iter().enumerate();
    let lines = lines.flat_map(|(index, c)| {
        [columns.per_s(index, c.offered), columns.per_s(index, c.committed)]
    });
    let tops = stack.iter().filter_map(|column| column.last().copied());
    let y = Scale::from_zero(lines.chain(tops));
    let mut entries = vec![
        (Sample::Line("ln si d1".to_owned()), "offered".to_owned()),
        (Sample::Line("ln s2".to_owned()), "goodput".to_owned()),
    ];
    for (index, class) in classes.iter().enumerate() {
        let fill = format!("{} half", FILLS[index.min(FILLS.len() - 1)]);
        entries.push((Sample::Box(fill), clean(class)));
    }
    let frame = Frame {
        title: "per second",
        entries,
        names_bands: true,
        ..Frame::of(180.0, Some(y), Unit::Number)
    };
    let canvas = frame.draw(of, columns, |canvas, plot| {
        for index in (0..classes.len()).rev() {
            let fill = format!("{} half", FILLS[index.min(FILLS.len() - 1)]);
            draw_layer(canvas, plot, columns, &stack, index, &fill);
        }
        for (class, is_offered) in [("ln s2", false), ("ln si d1", true)] {
            let count = |column: &TimelineColumn| {
                if is_offered { column.offered } else { column.committed }
            };
            let points = columns.columns.iter().enumerate().map(|(index, column)| {
                plot.at(columns.middle_ns(index), columns.per_s(index, count(column)))
            });
            canvas.polyline(&points.collect::<Vec<_>>(), class);
        }
    });
    of.meta(
        Section::Time,
        "rates",
        "Offered, goodput and failures over time",
        &format!(
            "Per second: what was offered (by due time), what was committed and what failed (by end), failures \
             stacked by class. {}",
            columns.said()
        ),
    )
    .figure(canvas, table(of, &classes))
}

/// Classes of failures, most frequent first; those beyond the most as one.
fn classes(columns: &Columns) -> Vec<String> {
    let mut sums = std::collections::BTreeMap::<&str, u64>::new();
    for (class, count) in columns.columns.iter().flat_map(|column| &column.failed) {
        let sum = sums.entry(class).or_default();
        *sum = sum.saturating_add(*count);
    }
    let mut all: Vec<(&str, u64)> = sums.into_iter().filter(|(_, count)| *count > 0).collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut names: Vec<String> = all.iter().map(|(class, _)| (*class).to_owned()).collect();
    if names.len() > CLASSES_MAX + 1 {
        names.truncate(CLASSES_MAX);
        names.push(OTHER.to_owned());
    }
    names
}

const OTHER: &str = "other";

/// Upper edges of the layers of a column.
fn stacked(columns: &Columns, index: usize, classes: &[String]) -> Vec<f64> {
    let column = &columns.columns[index];
    let mut sum = 0.0;
    let layer = |class: &String| {
        sum += columns.per_s(index, count_of(column, class, classes));
        sum
    };
    classes.iter().map(layer).collect()
}

fn count_of(column: &TimelineColumn, class: &str, classes: &[String]) -> u64 {
    if class != OTHER {
        return column.failed.get(class).copied().unwrap_or(0);
    }
    let others = column.failed.iter().filter(|(name, _)| *name == OTHER || !classes.contains(name));
    others.map(|(_, count)| *count).fold(0, u64::saturating_add)
}

fn draw_layer(
    canvas: &mut Canvas,
    plot: &Plot,
    columns: &Columns,
    stack: &[Vec<f64>],
    layer: usize,
    class: &str,
) {
    let place = |index: usize, value: f64| {
        [plot.at(columns.start_of_ns(index), value), plot.at(columns.start_of_ns(index + 1), value)]
    };
    let below = |index: usize| if layer == 0 { 0.0 } else { stack[index][layer - 1] };
    // One outline for each stretch in which the layer is there at all.
    let mut index = 0;
    while index < stack.len() {
        if stack[index][layer] <= below(index) {
            index += 1;
            continue;
        }
        let from = index;
        while index < stack.len() && stack[index][layer] > below(index) {
            index += 1;
        }
        let upper = (from..index).flat_map(|i| place(i, stack[i][layer]));
        let lower = (from..index).rev().flat_map(|i| {
            let [a, b] = place(i, below(i));
            [b, a]
        });
        canvas.area(&upper.chain(lower).collect::<Vec<_>>(), class);
    }
}

fn table(of: &Trial<'_>, classes: &[String]) -> FigureTable {
    let mut columns = vec![
        ("from", ColumnType::Time),
        ("offered", ColumnType::Number),
        ("sent", ColumnType::Number),
        ("committed", ColumnType::Number),
    ];
    columns.extend(classes.iter().map(|class| (class.as_str(), ColumnType::Number)));
    let mut table = FigureTable::new(&columns);
    let rows = Columns::rows(&of.result.timeline);
    for (index, column) in rows.columns.iter().enumerate() {
        let mut row = vec![
            from_cell(&rows, index),
            FigureCell::count(column.offered),
            FigureCell::count(column.sent),
            FigureCell::count(column.committed),
        ];
        let counts = classes.iter().map(|class| count_of(column, class, classes));
        row.extend(counts.map(FigureCell::count));
        table.rows.push(row);
    }
    table
}
