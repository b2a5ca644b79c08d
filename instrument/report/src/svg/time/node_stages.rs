//! Which step inside the nodes falls behind? Throughput by stage on shared axes, with what came beyond what went on
//! shaded, and the time that each stage takes.

use model::result::{NodeStageColumn, NodeStagesResult, Timeline, TimelineColumn};

use super::columns::Columns;
use super::frame::Frame;
use super::latency::from_cell;
use super::{Trial, stages};
use crate::paint::clean;
use crate::svg::plot::{Sample, dashed_class};
use crate::svg::scale::{Scale, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// Stages beyond this are in the table of stages only.
const STAGES_MAX: usize = 12;
/// Rows of a chart's table: all of it stands on the page.
const ROWS_MAX: usize = 40;

/// Both charts, if nodes stamped anything.
pub(super) fn figures(of: &Trial<'_>) -> Vec<Figure> {
    let Some(all) = of.result.node_stages.as_ref().filter(|it| !it.stages.is_empty()) else {
        return Vec::new();
    };
    vec![throughput(of, all), times(of, all)]
}

fn names(all: &NodeStagesResult) -> Vec<String> {
    all.stages.iter().take(STAGES_MAX).map(|stage| stage.stage.clone()).collect()
}

/// A sentence on the stages that are not drawn.
fn left_out(all: &NodeStagesResult) -> String {
    match all.stages.len().saturating_sub(STAGES_MAX) {
        0 => String::new(),
        more => format!(" The last {more} of {} stages are not drawn.", all.stages.len()),
    }
}

/// Transactions that the nodes passed, as columns of time with a count for each stage.
fn timeline(all: &NodeStagesResult) -> Timeline {
    let count = all.stages.iter().map(|stage| stage.columns.len()).max().unwrap_or(0);
    let column = |index: usize| TimelineColumn {
        reached: all
            .stages
            .iter()
            .map(|it| it.columns.get(index).map_or(0, |it| it.count))
            .collect(),
        ..TimelineColumn::default()
    };
    Timeline {
        start_ns: all.start_ns,
        width_ns: all.width_ns.max(1),
        columns: (0..count).map(column).collect(),
        ..Timeline::default()
    }
}

fn throughput(of: &Trial<'_>, all: &NodeStagesResult) -> Figure {
    let (timeline, names) = (timeline(all), names(all));
    let columns = Columns::of(&timeline, of.room.columns);
    let canvas = stages::ladder(of, &columns, &names, "passed, per second");
    let meta = of.named(
        Section::Inside,
        "node-stages",
        "node-stages",
        "Throughput by stage inside the nodes",
        &format!(
            "How many passed each stage per second, as the nodes stamped it. Shaded: more had passed the stage before \
             than went on to the next. {}{}",
            columns.said(),
            left_out(all)
        ),
    );
    meta.figure(canvas, stages::table(&Columns::of(&timeline, ROWS_MAX), &names))
}

/// The highest of a stage's values in each of the merged columns.
fn highest(
    all: &NodeStagesResult,
    stage: usize,
    columns: &Columns,
    value: fn(&NodeStageColumn) -> Option<i64>,
) -> Vec<Option<i64>> {
    let mut merged: Vec<Option<i64>> = all.stages[stage]
        .columns
        .chunks(columns.merged)
        .map(|of| of.iter().filter_map(value).max())
        .collect();
    merged.resize(columns.columns.len(), None);
    merged
}

fn times(of: &Trial<'_>, all: &NodeStagesResult) -> Figure {
    let (timeline, names) = (timeline(all), names(all));
    let columns = Columns::of(&timeline, of.room.columns);
    let of_stages = |value: fn(&NodeStageColumn) -> Option<i64>| -> Vec<Vec<Option<i64>>> {
        (0..names.len()).map(|stage| highest(all, stage, &columns, value)).collect()
    };
    let (p50, p99) = (of_stages(|it| it.p50_ns), of_stages(|it| it.p99_ns));
    let values = p50.iter().chain(&p99).flatten().flatten().map(|ns| *ns as f64);
    let y = Scale::log_around(values);
    let mut entries: Vec<(Sample, String)> = names
        .iter()
        .enumerate()
        .map(|(index, stage)| (Sample::Line(dashed_class(index)), clean(stage)))
        .collect();
    entries.push((Sample::Line("ln thin si".to_owned()), "thin: p50, thick: p99".to_owned()));
    let frame = Frame {
        title: "time in the stage",
        empty: "no node says how long anything took",
        entries,
        ..Frame::of(200.0, y, Unit::Ns)
    };
    let canvas = frame.draw(of, &columns, |canvas, plot| {
        for (lines, more) in [(&p50, " thin"), (&p99, "")] {
            for (stage, line) in lines.iter().enumerate() {
                // A logarithm has no place for what took no time at all.
                let place = |(index, ns): (usize, &Option<i64>)| {
                    let ns = ns.filter(|ns| *ns > 0)?;
                    Some(plot.at(columns.middle_ns(index), ns as f64))
                };
                let class = format!("{}{more}", dashed_class(stage));
                canvas.broken_line(line.iter().enumerate().map(place), &class);
            }
        }
    });
    let meta = of.named(
        Section::Inside,
        "node-stage-times",
        "node-stage-times",
        "Time in each stage inside the nodes",
        &format!(
            "How long each stage took, as the nodes stamped it, by the second in which it was done, logarithmic: p50 and \
             p99 of all nodes together. Stages that took no time are not drawn. {}{}",
            columns.said(),
            left_out(all)
        ),
    );
    meta.figure(canvas, table_of_times(all, &timeline, &names))
}

fn table_of_times(all: &NodeStagesResult, timeline: &Timeline, names: &[String]) -> FigureTable {
    let rows = Columns::of(timeline, ROWS_MAX);
    let heads: Vec<String> =
        names.iter().flat_map(|name| [format!("{name} p50"), format!("{name} p99")]).collect();
    let mut columns = vec![("from", ColumnType::Time)];
    columns.extend(heads.iter().map(|head| (head.as_str(), ColumnType::Time)));
    let mut table = FigureTable::new(&columns);
    let of_stages: Vec<[Vec<Option<i64>>; 2]> = (0..names.len())
        .map(|stage| {
            [highest(all, stage, &rows, |it| it.p50_ns), highest(all, stage, &rows, |it| it.p99_ns)]
        })
        .collect();
    for index in 0..rows.columns.len() {
        let mut row = vec![from_cell(&rows, index)];
        row.extend(of_stages.iter().flatten().map(|values| FigureCell::ns(values[index])));
        table.rows.push(row);
    }
    table
}
