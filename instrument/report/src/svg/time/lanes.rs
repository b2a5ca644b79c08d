//! Heights as lanes: one a node, as full as the node is near the highest of all, and empty where it did not answer.
//!
//! Thirteen lines of height lie on each other and hide what matters: who fell behind, who was down, and when it was
//! back. It must never draw over a gap.

use model::picture::{Series, TrialPicture, is_node};

use super::Trial;
use super::bands;
use super::columns::Columns;
use super::latency::from_cell;
use super::series::usual_distance;
use crate::metrics::source_rank;
use crate::paint::clean;
use crate::svg::canvas::{Canvas, fitted, float, text_width};
use crate::svg::plot::{Area, Plot, Sample, WIDTH, legend, legend_height};
use crate::svg::scale::{Scale, Unit, label};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// Lanes of one chart; a run with more nodes has no heights of each.
const LANES_MAX: usize = 32;
/// At most this far behind, a node is with the others: nodes are not asked at the same instant.
pub(super) const WITH_MAX: f64 = 1.0;
/// At most this far behind, it is a little behind.
pub(super) const NEAR_MAX: f64 = 10.0;
/// Height of a lane with the space below it.
const ROW: f64 = 14.0;
/// Rows of the table without a script.
const ROWS_MAX: usize = 60;

/// How a node stands in a column, from the best; merged columns show the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    With,
    Near,
    Far,
    Absent,
}

impl State {
    /// Thickness and class: colour is never alone.
    const fn look(self) -> Option<(f64, &'static str)> {
        match self {
            Self::With => Some((10.0, "f2")),
            Self::Near => Some((6.0, "f4")),
            Self::Far => Some((3.0, "f1")),
            Self::Absent => None,
        }
    }
}

/// The series of heights, if several nodes have one: that of the metric that says just that, before others such as
/// that of the latest block.
fn heights(picture: &TrialPicture) -> Vec<&Series> {
    let is_height =
        |it: &&Series| is_node(&it.source) && it.name.split('_').any(|word| word == "height");
    let of_nodes = || picture.series.iter().filter(is_height);
    let name =
        of_nodes().map(|it| it.name.as_str()).min_by_key(|it| (!it.starts_with("height"), *it));
    let mut found: Vec<&Series> = of_nodes().filter(|it| Some(it.name.as_str()) == name).collect();
    found.sort_by_cached_key(|it| source_rank(&it.source));
    found.truncate(LANES_MAX);
    if found.len() > 1 { found } else { Vec::new() }
}

/// Heights by column, as sampled.
fn sampled(of: &Series) -> Vec<Option<f64>> {
    of.max.iter().map(|value| value.is_finite().then_some(*value)).collect()
}

/// The last of what is known, by column; where samples are rarer than columns, one holds until the next, but for less than
/// twice the usual time between two.
fn held<T: Copy>(values: &[Option<T>]) -> Vec<Option<T>> {
    let reach = 2 * usual_distance(values);
    let mut last: Option<(usize, T)> = None;
    let each = values.iter().enumerate().map(|(at, value)| {
        last = value.map(|value| (at, value)).or(last);
        last.filter(|(seen, _)| at - seen < reach).map(|(_, value)| value)
    });
    each.collect()
}

/// The state of each node in each column of the timeline. It is told at each sample, by the highest of its time, and holds
/// until the next: a height that is held would fall behind by itself.
fn states(heights: &[Vec<Option<f64>>]) -> Vec<Vec<State>> {
    let columns = heights.iter().map(Vec::len).max().unwrap_or(0);
    let known: Vec<Vec<Option<f64>>> = heights.iter().map(|node| held(node)).collect();
    let highest: Vec<f64> = (0..columns)
        .map(|column| {
            let of_nodes = known.iter().filter_map(|node| node.get(column).copied().flatten());
            of_nodes.fold(f64::NEG_INFINITY, f64::max)
        })
        .collect();
    let told = |(column, height): (usize, &Option<f64>)| {
        height.map(|height| match highest[column] - height {
            behind if behind <= WITH_MAX => State::With,
            behind if behind <= NEAR_MAX => State::Near,
            _ => State::Far,
        })
    };
    let states = heights.iter().map(|node| {
        let told: Vec<Option<State>> = node.iter().enumerate().map(told).collect();
        let held = held(&told).into_iter().map(|state| state.unwrap_or(State::Absent));
        held.chain(std::iter::repeat(State::Absent)).take(columns).collect()
    });
    states.collect()
}

/// The chart, if several nodes have heights.
pub(super) fn figure(of: &Trial<'_>) -> Option<Figure> {
    let series = heights(of.picture);
    if series.is_empty() {
        return None;
    }
    let heights: Vec<Vec<Option<f64>>> = series.iter().map(|it| sampled(it)).collect();
    let columns = Columns::of(&of.result.timeline, of.room.columns);
    let entries = [
        (State::With, "with the highest node"),
        (State::Near, "up to 10 blocks behind"),
        (State::Far, "more"),
    ]
    .map(|(state, text)| {
        let (_, class) = state.look().expect("not absent");
        (Sample::Box(class.to_owned()), text.to_owned())
    });
    let top = legend_height(WIDTH, &entries) + 12.0;
    let height = ROW * float(series.len());
    let widest = series.iter().map(|it| text_width(&clean(&it.source))).fold(20.0, f64::max);
    let left = (widest + 8.0).min(140.0);
    let mut canvas = Canvas::new(WIDTH, top + height + 22.0);
    let area = Area { left, top, width: WIDTH - left - 8.0, height };
    let plot = Plot::new(area, columns.scale(), Scale::from_zero([float(series.len())]));
    bands::draw(&mut canvas, &plot, of.picture, false);
    for (row, (series, states)) in series.iter().zip(states(&heights)).enumerate() {
        let middle = top + ROW * (float(row) + 0.5);
        canvas.text(left - 6.0, middle + 4.0, "e", &fitted(&clean(&series.source), left - 8.0));
        canvas.line((left, middle), (area.right(), middle), "g");
        lane(&mut canvas, &plot, &columns, &states, middle);
    }
    plot.x_axis(&mut canvas, Unit::Clock, "");
    legend(&mut canvas, 0.0, 0.0, WIDTH, &entries);
    let names = series.iter().map(|it| format!("{}.{}", it.source, it.name));
    let names = names.collect::<Vec<_>>().join(" ");
    let meta = of.named(
        Section::Nodes,
        "lanes",
        "lanes-height",
        "Heights, a lane a node",
        "How far each node is behind the highest: a full lane is at most one block behind, a thinner one up to ten, the \
         thinnest more. A lane is empty where the node did not answer.",
    );
    Some(meta.of_series(names).figure(canvas, table(&series, &heights, &columns)))
}

/// Stretches of one state, each a bar.
fn lane(canvas: &mut Canvas, plot: &Plot, columns: &Columns, states: &[State], middle: f64) {
    let merged: Vec<State> = states
        .chunks(columns.merged)
        .map(|chunk| chunk.iter().copied().max().unwrap_or(State::Absent))
        .collect();
    let mut from = 0;
    for stretch in merged.chunk_by(|a, b| a == b) {
        let to = from + stretch.len();
        if let Some((thick, class)) = stretch[0].look() {
            let (start, end) =
                (columns.start_of_ns(from), columns.start_of_ns(to).min(columns.end_ns()));
            let (x, end) = (plot.x.at(start), plot.x.at(end));
            canvas.rect(x, middle - thick / 2.0, end - x, thick, class);
        }
        from = to;
    }
}

/// The heights themselves.
fn table(series: &[&Series], heights: &[Vec<Option<f64>>], columns: &Columns) -> FigureTable {
    let mut heads = vec![("from", ColumnType::Time)];
    heads.extend(series.iter().map(|it| (it.source.as_str(), ColumnType::Number)));
    let mut table = FigureTable::new(&heads);
    let count = columns.columns.len();
    for index in (0..count).step_by(count.div_ceil(ROWS_MAX).max(1)) {
        let mut row = vec![from_cell(columns, index)];
        for node in heights {
            let from = (index * columns.merged).min(node.len());
            let merged = &node[from..(from + columns.merged).min(node.len())];
            let height = merged.iter().flatten().copied().fold(f64::NAN, f64::max);
            row.push(FigureCell::real(height, label(height, 1.0, Unit::Number)));
        }
        table.rows.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(source: &str, values: &[f64]) -> Series {
        let values = values.to_vec();
        let name = "height_blocks".to_owned();
        Series {
            source: source.to_owned(),
            name,
            min: values.clone(),
            mean: values.clone(),
            max: values,
        }
    }

    /// Claim: a sample holds until the next where columns are finer than samples, and a node that is down has a gap.
    #[test]
    fn gaps_stay_gaps() {
        let nan = f64::NAN;
        let every_second = node("a", &[1.0, nan, 2.0, nan, 3.0, nan, nan, nan, nan, nan, 8.0, nan]);
        let held = held(&sampled(&every_second));
        let known: Vec<bool> = held.iter().map(Option::is_some).collect();
        let expected = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1].map(|it| it == 1);
        assert_eq!(known, expected);
        assert_eq!(held[3], Some(2.0));
    }

    /// Claim: a node is judged by the highest of its time, and one that is absent is neither behind nor the highest.
    #[test]
    fn who_is_behind() {
        let heights = [
            vec![Some(100.0), Some(101.0), None, None],
            vec![Some(99.0), Some(95.0), Some(100.0), Some(50.0)],
            vec![Some(1.0), None, Some(101.0), Some(51.0)],
        ];
        use State::{Absent, Far, Near, With};
        // Where columns are as wide as samples are apart, one may be missed.
        let expected = [
            vec![With, With, With, Absent],
            vec![With, Near, With, With],
            vec![Far, Far, With, With],
        ];
        assert_eq!(states(&heights), expected);
    }

    /// Claim: natural order of nodes, one metric of height, and none for a single node.
    #[test]
    fn which_heights() {
        let mut latest = node("node-1", &[1.0]);
        latest.name = "latest_block_height_blocks".to_owned();
        let series = vec![
            latest,
            node("node-10", &[1.0]),
            node("node-2", &[1.0]),
            node("nodes.max", &[1.0]),
        ];
        let picture = TrialPicture { series, ..TrialPicture::default() };
        let found: Vec<&str> = heights(&picture).iter().map(|it| it.source.as_str()).collect();
        assert_eq!(found, ["node-2", "node-10"]);
        let picture = TrialPicture { series: vec![node("a", &[1.0])], ..TrialPicture::default() };
        assert!(heights(&picture).is_empty());
    }
}
