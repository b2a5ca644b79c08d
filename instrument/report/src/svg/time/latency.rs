//! When was it slow? p50, p99 and the largest response time over the density of all of them.

use model::quantity::show_ns;

use super::columns::Columns;
use super::frame::Frame;
use super::{Trial, density};
use crate::svg::plot::Sample;
use crate::svg::scale::{Scale, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// Name, class, and whether the largest values of a column may be thin.
const LINES: [(&str, &str); 3] = [("p50", "ln si"), ("p99", "ln s1"), ("max", "ln thin s3 d2")];

pub(super) fn figure(of: &Trial<'_>, columns: &Columns) -> Figure {
    let values = |index: usize| {
        let column = &columns.columns[index];
        [column.p50_ns, column.p99_ns, column.max_ns]
    };
    let all = (0..columns.columns.len()).flat_map(values).flatten().map(|ns| ns as f64);
    let range = density::range_ns(of.picture);
    let y = Scale::log_around(all.chain(range.into_iter().flat_map(|(low, high)| [low, high])));
    let mut entries: Vec<(Sample, String)> = LINES
        .iter()
        .map(|(name, class)| (Sample::Line((*class).to_owned()), (*name).to_owned()))
        .collect();
    if range.is_some() {
        let text = "how many took this long, darker is more".to_owned();
        entries.push((Sample::Box("f0 half".to_owned()), text));
    }
    let frame = Frame {
        title: "response time",
        empty: "no transaction reached the final stage",
        entries,
        ..Frame::of(230.0, y, Unit::Ns)
    };
    let canvas = frame.draw(of, columns, |canvas, plot| {
        density::draw(canvas, plot, of.picture, &of.result.timeline, of.room.density);
        // The largest first, so that the median lies on top.
        for (line, (_, class)) in LINES.iter().enumerate().rev() {
            let place =
                |index: usize| Some(plot.at(columns.middle_ns(index), values(index)[line]? as f64));
            canvas.broken_line((0..columns.columns.len()).map(place), class);
        }
    });
    let stage = crate::paint::clean(&of.result.final_stage);
    of.meta(
        Section::Time,
        "latency",
        "Response time over time",
        &format!(
            "Response time to {stage} by the time at which transactions were due, logarithmic: p50, p99 and the \
             largest of each column; in the cells, how many took so long: darker is more. {}",
            columns.said()
        ),
    )
    .figure(canvas, table(of))
}

fn table(of: &Trial<'_>) -> FigureTable {
    let mut table = FigureTable::new(&[
        ("from", ColumnType::Time),
        ("p50", ColumnType::Time),
        ("p99", ColumnType::Time),
        ("p99.9", ColumnType::Time),
        ("max", ColumnType::Time),
    ]);
    let rows = Columns::rows(&of.result.timeline);
    for (index, column) in rows.columns.iter().enumerate() {
        table.rows.push(vec![
            from_cell(&rows, index),
            FigureCell::ns(column.p50_ns),
            FigureCell::ns(column.p99_ns),
            FigureCell::ns(column.p999_ns),
            FigureCell::ns(column.max_ns),
        ]);
    }
    table
}

/// The start of a column.
pub(super) fn from_cell(columns: &Columns, index: usize) -> FigureCell {
    let ns = columns.start_of_ns(index);
    let whole = crate::figures::whole_ns(ns).unwrap_or(0);
    let text = if whole == 0 { "0 s".to_owned() } else { show_ns(whole) };
    FigureCell { text, ..FigureCell::moment(whole) }
}
