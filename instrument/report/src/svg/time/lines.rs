//! One line over time: what is outstanding, and the instrument's own lag.

use super::Trial;
use super::columns::Columns;
use super::frame::Frame;
use super::latency::from_cell;
use crate::svg::canvas::Canvas;
use crate::svg::plot::Sample;
use crate::svg::scale::{Scale, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// Due and not ended.
pub(super) fn outstanding(of: &Trial<'_>, columns: &Columns) -> Figure {
    let y = Scale::from_zero(columns.columns.iter().map(|column| column.outstanding as f64));
    let value = |index: usize| Some(columns.columns[index].outstanding as f64);
    let canvas = draw(of, columns, Some(y), ("outstanding", "ln s0", Unit::Number), value);
    let mut table =
        FigureTable::new(&[("from", ColumnType::Time), ("outstanding", ColumnType::Number)]);
    let rows = Columns::rows(&of.result.timeline);
    for (index, column) in rows.columns.iter().enumerate() {
        table.rows.push(vec![from_cell(&rows, index), FigureCell::level(column.outstanding)]);
    }
    let text = format!("Transactions that were due and had not ended. {}", columns.said());
    of.meta(Section::Time, "outstanding", "Outstanding over time", &text).figure(canvas, table)
}

/// The instrument's part of the send lag.
pub(super) fn own_lag(of: &Trial<'_>, columns: &Columns) -> Figure {
    let lags = columns.columns.iter().filter_map(|column| column.own_lag_p99_ns);
    let y = Scale::log_around(lags.map(|ns| ns.max(1) as f64));
    let value = |index: usize| columns.columns[index].own_lag_p99_ns.map(|ns| ns.max(1) as f64);
    let canvas = draw(of, columns, y, ("own lag, p99", "ln s1", Unit::Ns), value);
    let mut table =
        FigureTable::new(&[("from", ColumnType::Time), ("own lag p99", ColumnType::Time)]);
    let rows = Columns::rows(&of.result.timeline);
    for (index, column) in rows.columns.iter().enumerate() {
        table.rows.push(vec![from_cell(&rows, index), FigureCell::ns(column.own_lag_p99_ns)]);
    }
    let text = format!(
        "How late the instrument itself sent, after a connection was free: p99 of each column by due time, \
         logarithmic. It is the error bar of every response time above. {}",
        columns.said()
    );
    of.meta(Section::Nodes, "lag", "Own lag over time", &text).figure(canvas, table)
}

fn draw(
    of: &Trial<'_>,
    columns: &Columns,
    y: Option<Scale>,
    (name, class, unit): (&str, &str, Unit),
    value: impl Fn(usize) -> Option<f64>,
) -> Canvas {
    let entries = vec![(Sample::Line(class.to_owned()), name.to_owned())];
    let frame = Frame { entries, ..Frame::of(120.0, y, unit) };
    frame.draw(of, columns, |canvas, plot| {
        let place =
            |index: usize| value(index).map(|value| plot.at(columns.middle_ns(index), value));
        canvas.broken_line((0..columns.columns.len()).map(place), class);
    })
}
