//! Progress as lanes: one a node, as full as the node is near the highest of all, and empty where it did not answer.
//!
//! Thirteen lines of height lie on each other and hide what matters: who fell behind, who was down, and when it was
//! back. How each node stands is in the picture; here it is only drawn. It must never draw over a gap.

use model::picture::{Lane, LaneState, Lanes};

use super::Trial;
use super::bands;
use super::columns::Columns;
use super::latency::from_cell;
use crate::metrics::Declared;
use crate::paint::clean;
use crate::svg::canvas::{Canvas, fitted, float, text_width};
use crate::svg::plot::{Area, Plot, Sample, WIDTH, legend, legend_height};
use crate::svg::scale::{Scale, Unit, label};
use crate::svg::settings::stem;
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// Height of a lane with the space below it.
const ROW: f64 = 14.0;
/// Rows of the table without a script.
const ROWS_MAX: usize = 60;

/// Thickness and class: colour is never alone.
const fn look(state: LaneState) -> Option<(f64, &'static str)> {
    match state {
        LaneState::With => Some((10.0, "f2")),
        LaneState::Near => Some((6.0, "f4")),
        LaneState::Far => Some((3.0, "f1")),
        LaneState::Absent => None,
    }
}

/// The charts: one for each series of progress that several nodes have.
pub(super) fn figures(of: &Trial<'_>) -> Vec<Figure> {
    of.picture.lanes.iter().map(|lanes| figure(of, lanes)).collect()
}

fn figure(of: &Trial<'_>, of_nodes: &Lanes) -> Figure {
    let Lanes { name, unit, with_max, near_max, lanes } = of_nodes;
    let columns = Columns::of(&of.result.timeline, of.room.columns);
    let unit = clean(unit);
    let entries = [
        (LaneState::With, "with the highest node".to_owned()),
        (LaneState::Near, format!("up to {near_max} {unit} behind")),
        (LaneState::Far, "more".to_owned()),
    ]
    .map(|(state, text)| {
        let (_, class) = look(state).expect("not absent");
        (Sample::Box(class.to_owned()), text)
    });
    let top = legend_height(WIDTH, &entries) + 12.0;
    let height = ROW * float(lanes.len());
    let widest = lanes.iter().map(|it| text_width(&clean(&it.source))).fold(20.0, f64::max);
    let left = (widest + 8.0).min(140.0);
    let mut canvas = Canvas::new(WIDTH, top + height + 22.0);
    let area = Area { left, top, width: WIDTH - left - 8.0, height };
    let plot = Plot::new(area, columns.scale(), Scale::from_zero([float(lanes.len())]));
    bands::draw(&mut canvas, &plot, of.picture, false);
    for (row, node) in lanes.iter().enumerate() {
        let middle = top + ROW * (float(row) + 0.5);
        canvas.text(left - 6.0, middle + 4.0, "e", &fitted(&clean(&node.source), left - 8.0));
        canvas.line((left, middle), (area.right(), middle), "g");
        lane(&mut canvas, &plot, &columns, &node.states, middle);
    }
    plot.x_axis(&mut canvas, Unit::Clock, "");
    legend(&mut canvas, 0.0, 0.0, WIDTH, &entries);
    let names = lanes.iter().map(|it| format!("{}.{name}", it.source));
    let names = names.collect::<Vec<_>>().join(" ");
    let (words, ..) = Declared(&of.result.series).named(name);
    let meta = of.named(
        Section::Nodes,
        "lanes",
        &format!("lanes-{}", stem(name)),
        &format!("{}, a lane a node", super::series::capital(&words)),
        &format!(
            "How far each node is behind the highest, in {unit}: a full lane is at most {with_max} behind, a thinner one \
             up to {near_max}, the thinnest more. A lane is empty where the node did not answer."
        ),
    );
    meta.of_series(names).figure(canvas, table(lanes, &columns))
}

/// Stretches of one state, each a bar.
fn lane(canvas: &mut Canvas, plot: &Plot, columns: &Columns, states: &[LaneState], middle: f64) {
    let merged: Vec<LaneState> = states
        .chunks(columns.merged)
        .map(|chunk| chunk.iter().copied().max().unwrap_or(LaneState::Absent))
        .collect();
    let mut from = 0;
    for stretch in merged.chunk_by(|a, b| a == b) {
        let to = from + stretch.len();
        if let Some((thick, class)) = look(stretch[0]) {
            let (start, end) =
                (columns.start_of_ns(from), columns.start_of_ns(to).min(columns.end_ns));
            let (x, end) = (plot.x.at(start), plot.x.at(end));
            canvas.rect(x, middle - thick / 2.0, end - x, thick, class);
        }
        from = to;
    }
}

/// How far each has come.
fn table(lanes: &[Lane], columns: &Columns) -> FigureTable {
    let mut heads = vec![("from", ColumnType::Time)];
    heads.extend(lanes.iter().map(|it| (it.source.as_str(), ColumnType::Number)));
    let mut table = FigureTable::new(&heads);
    let count = columns.columns.len();
    for index in (0..count).step_by(count.div_ceil(ROWS_MAX).max(1)) {
        let mut row = vec![from_cell(columns, index)];
        for Lane { reached, .. } in lanes {
            let from = (index * columns.merged).min(reached.len());
            let merged = &reached[from..(from + columns.merged).min(reached.len())];
            let reached = merged.iter().copied().fold(f64::NAN, f64::max);
            row.push(FigureCell::real(reached, label(reached, 1.0, Unit::Number)));
        }
        table.rows.push(row);
    }
    table
}
