//! Where in the pipeline? What reached each stage per second, with the space between neighbouring stages shaded.

use super::Trial;
use super::columns::Columns;
use super::frame::Frame;
use super::latency::from_cell;
use crate::paint::clean;
use crate::svg::canvas::Canvas;
use crate::svg::plot::{Sample, dashed_class};
use crate::svg::scale::{Scale, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// A ladder with more rungs is not drawn further.
const STAGES_MAX: usize = 8;

/// The chart, if there is more than one stage.
pub(super) fn figure(of: &Trial<'_>, columns: &Columns) -> Option<Figure> {
    let stages: Vec<String> = names(of).into_iter().take(STAGES_MAX).collect();
    if stages.len() < 2 {
        return None;
    }
    let canvas = ladder(of, columns, &stages, "reached, per second");
    let meta = of.meta(
        Section::Stages,
        "stages",
        "Throughput by stage over time",
        &format!(
            "How many reached each stage per second. Shaded: more had reached the stage before than went on to the \
             next. {}",
            columns.said()
        ),
    );
    Some(meta.figure(canvas, table(&Columns::rows(&of.result.timeline), &stages)))
}

/// Throughput of each stage on shared axes, what came beyond what went on shaded. `reached` of a column is by stage.
pub(super) fn ladder(of: &Trial<'_>, columns: &Columns, stages: &[String], title: &str) -> Canvas {
    let per_s = |index: usize, stage: usize| {
        let reached = &columns.columns[index].reached;
        columns.per_s(index, reached.get(stage).copied().unwrap_or(0))
    };
    let count = columns.columns.len();
    let all = (0..count).flat_map(|i| (0..stages.len()).map(move |stage| (i, stage)));
    let y = Scale::from_zero(all.map(|(index, stage)| per_s(index, stage)));
    let mut entries: Vec<(Sample, String)> = stages
        .iter()
        .enumerate()
        .map(|(index, stage)| (Sample::Line(dashed_class(index)), clean(stage)))
        .collect();
    entries.push((Sample::Box("fbad wash".to_owned()), "fewer went on than came".to_owned()));
    let frame =
        Frame { title, entries, names_bands: true, ..Frame::of(180.0, Some(y), Unit::Number) };
    frame.draw(of, columns, |canvas, plot| {
        let place = |index: usize, value: f64| plot.at(columns.middle_ns(index), value);
        for stage in 1..stages.len() {
            let upper = (0..count).map(|i| place(i, per_s(i, stage - 1).max(per_s(i, stage))));
            let lower = (0..count).rev().map(|index| place(index, per_s(index, stage)));
            canvas.area(&upper.chain(lower).collect::<Vec<_>>(), "fbad wash");
        }
        for stage in 0..stages.len() {
            let points = (0..count).map(|i| place(i, per_s(i, stage)));
            canvas.polyline(&points.collect::<Vec<_>>(), &dashed_class(stage));
        }
    })
}

/// The ladder: from the picture, or from the result if there is none.
fn names(of: &Trial<'_>) -> Vec<String> {
    if !of.picture.stages.is_empty() {
        return of.picture.stages.clone();
    }
    of.result.rates.reached_per_s.iter().map(|(stage, _)| stage.clone()).collect()
}

/// Transactions through each stage in each column.
pub(super) fn table(rows: &Columns, stages: &[String]) -> FigureTable {
    let mut columns = vec![("from", ColumnType::Time)];
    columns.extend(stages.iter().map(|stage| (stage.as_str(), ColumnType::Number)));
    let mut table = FigureTable::new(&columns);
    for (index, column) in rows.columns.iter().enumerate() {
        let mut row = vec![from_cell(rows, index)];
        let reached = |stage| column.reached.get(stage).copied().unwrap_or(0);
        row.extend((0..stages.len()).map(|stage| FigureCell::count(reached(stage))));
        table.rows.push(row);
    }
    table
}
