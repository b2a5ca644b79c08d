//! Activity of the generator, the host and the nodes: a small chart for each metric, with a line for each source.
//!
//! The order answers "was it the tool?" first: the generator's processor, what the host was deprived of, what waited
//! for a processor, memory; then everything else in the order in which it is declared.

use model::picture::{Series, TrialPicture};

use super::Trial;
use super::bands;
use super::columns::Columns;
use crate::metrics::{Declared, source_rank};
use crate::paint::clean;
use crate::svg::canvas::{Canvas, float};
use crate::svg::plot::{Area, Plot, Sample, legend, legend_height, line_class, y_labels_width};
use crate::svg::scale::{Scale, Unit, label};
use crate::svg::settings::stem;
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// Lines that one chart can tell apart; more sources have a chart more.
const LINES_MAX: usize = 16;
/// Points of all lines of a chart together.
pub(super) const POINTS_MAX: usize = 1_600;
/// The fewest points of a line that still have a shape.
const POINTS_MIN: usize = 24;
/// With more lines than this, bands of lowest and highest would only hide each other.
const BANDS_MAX: usize = 6;
/// Width of a small chart: two stand side by side on a page.
const SMALL: f64 = 352.0;
/// Rows of a table of a series.
const ROWS_MAX: usize = 60;

/// The parts that all nodes have in common.
const SUM: &str = "nodes.sum";

/// The metrics that a trial has series of.
pub(super) fn names(picture: &TrialPicture) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for series in &picture.series {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    names
}

/// All charts of a trial.
pub(super) fn figures(of: &Trial<'_>) -> Vec<Figure> {
    let mut names = names(of.picture);
    let declared = Declared(&of.result.series);
    names.sort_by(|a, b| declared.rank(a).cmp(&declared.rank(b)).then(a.cmp(b)));
    let mut figures = Vec::new();
    for name in names {
        let sources = of.picture.series.iter().filter(|series| series.name == name);
        // What all have together is on another scale than what each has.
        let (sums, mut sources): (Vec<&Series>, Vec<&Series>) =
            sources.partition(|series| series.source == SUM);
        sources.sort_by_cached_key(|series| source_rank(&series.source));
        let parts = sources.len().div_ceil(LINES_MAX);
        for (part, lines) in sources.chunks(LINES_MAX).enumerate() {
            figures.push(figure(of, name, lines, Of::Each(part, parts)));
        }
        if !sums.is_empty() {
            figures.push(figure(of, name, &sums, Of::Together));
        }
    }
    figures
}

/// Which lines of a metric a chart has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Of each source: this part of so many.
    Each(usize, usize),
    /// Of all nodes together.
    Together,
}

/// Whether a chart is of what the host says, of itself or of processes.
pub(super) fn is_of_the_host(trial: &Trial<'_>, of: &Figure) -> bool {
    let declared = Declared(&trial.result.series);
    let name = of.series.split(' ').next().and_then(|first| first.rsplit_once('.'));
    name.is_some_and(|(_, name)| declared.is_of_the_host(name) && declared.is_foremost(name))
}

/// Lowest, mean and highest.
type Point = (f64, f64, f64);

/// A series in few points.
struct Line {
    source: String,
    /// None where there was no sample.
    points: Vec<Option<Point>>,
}

/// Stretches of a line without a gap. Samples are rarer than columns in a short trial, so a gap is what is longer
/// than twice the usual distance of samples.
fn pieces(line: &Line) -> Vec<Vec<(usize, Point)>> {
    let usual = usual_distance(&line.points);
    known(line).chunk_by(|a, b| b.0 - a.0 <= 2 * usual).map(<[_]>::to_vec).collect()
}

/// The points that there are, with their places.
fn known(line: &Line) -> Vec<(usize, Point)> {
    line.points.iter().enumerate().filter_map(|(at, point)| Some((at, (*point)?))).collect()
}

/// How many points lie between a sample and the next, usually.
fn usual_distance<T>(points: &[Option<T>]) -> usize {
    let known = points.iter().enumerate().filter(|(_, point)| point.is_some());
    let known: Vec<usize> = known.map(|(at, _)| at).collect();
    let mut distances: Vec<usize> = known.windows(2).map(|pair| pair[1] - pair[0]).collect();
    distances.sort_unstable();
    distances.get(distances.len() / 2).copied().unwrap_or(1)
}

fn figure(of: &Trial<'_>, name: &str, lines: &[&Series], which: Of) -> Figure {
    let most = (of.room.series_points / lines.len().max(1)).clamp(POINTS_MIN, 300);
    let columns = Columns::of(&of.result.timeline, most);
    let drawn: Vec<Line> = lines.iter().map(|series| merged(series, columns.merged)).collect();
    let (words, unit, axis) = Declared(&of.result.series).named(name);
    let height = 104.0;
    let values = drawn.iter().flat_map(|line| line.points.iter().flatten());
    let y = Scale::from_zero(values.flat_map(|(min, _, max)| [*min, *max]));
    let left = y_labels_width(y, unit, height);
    let entries: Vec<(Sample, String)> = drawn
        .iter()
        .enumerate()
        .map(|(index, line)| (Sample::Line(line_class(index)), clean(&line.source)))
        .collect();
    let top = legend_height(SMALL - 6.0, &entries) + if axis.is_empty() { 12.0 } else { 26.0 };
    let mut canvas = Canvas::new(SMALL, top + height + 22.0);
    let area = Area { left, top, width: SMALL - left - 8.0, height };
    let plot = Plot::new(area, columns.scale(), y);
    bands::draw(&mut canvas, &plot, of.picture, false);
    plot.y_axis(&mut canvas, unit, &axis);
    plot.x_axis(&mut canvas, Unit::Clock, "");
    let has_bands = of.room.has_bands && drawn.len() <= BANDS_MAX;
    let with_bands = if has_bands { drawn.as_slice() } else { &[] };
    for (index, line) in with_bands.iter().enumerate() {
        draw_band(&mut canvas, &plot, &columns, line, index);
    }
    for (index, line) in drawn.iter().enumerate() {
        for piece in pieces(line) {
            let at =
                |(index, (_, mean, _)): &(usize, Point)| plot.at(columns.middle_ns(*index), *mean);
            canvas.polyline(&piece.iter().map(at).collect::<Vec<_>>(), &line_class(index));
        }
    }
    legend(&mut canvas, 0.0, 0.0, SMALL - 6.0, &entries);
    let (of_which, stem) = match which {
        Of::Each(_, 0 | 1) => (String::new(), stem(name)),
        Of::Each(part, parts) => {
            (format!(" ({} of {parts})", part + 1), format!("{}-{}", stem(name), part + 1))
        }
        Of::Together => (", all nodes together".to_owned(), format!("{}-sum", stem(name))),
    };
    let names = drawn.iter().map(|line| format!("{}.{name}", line.source));
    let title = format!("{}{of_which}", capital(&words));
    of.named(
        Section::Nodes,
        "series",
        &format!("series-{stem}"),
        &title,
        &format!(
            "{}: {}{}.",
            clean(name),
            width_said(&columns, &drawn),
            if with_bands.is_empty() {
                ""
            } else {
                ", with the lowest and highest as a band where they differ"
            },
        ),
    )
    .of_series(names.collect::<Vec<_>>().join(" "))
    .figure(canvas, table(of, &drawn, &columns, unit))
}

/// The extent of a point: a stretch of time, or one sample where those are rarer.
fn width_said(columns: &Columns, lines: &[Line]) -> String {
    let between = lines.iter().map(|line| usual_distance(&line.points)).max().unwrap_or(1);
    let width = columns.width_ns * float(between);
    let width = label(width, width, Unit::Ns);
    if between > 1 { format!("a sample about every {width}") } else { format!("means of {width}") }
}

pub(super) fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Of merged columns: the lowest, the mean, the highest.
fn merged(series: &Series, each: usize) -> Line {
    let count = series.mean.len().min(series.min.len()).min(series.max.len());
    let points = (0..count).step_by(each.max(1)).map(|from| {
        let range = from..(from + each).min(count);
        let known: Vec<usize> = range.filter(|index| series.mean[*index].is_finite()).collect();
        if known.is_empty() {
            return None;
        }
        let mean = known.iter().map(|i| series.mean[*i]).sum::<f64>() / float(known.len());
        let low =
            known.iter().map(|i| series.min[*i]).filter(|v| v.is_finite()).fold(mean, f64::min);
        let high =
            known.iter().map(|i| series.max[*i]).filter(|v| v.is_finite()).fold(mean, f64::max);
        Some((low, mean, high))
    });
    Line { source: series.source.clone(), points: points.collect() }
}

/// The band from lowest to highest, where they differ by what can be seen.
fn draw_band(canvas: &mut Canvas, plot: &Plot, columns: &Columns, line: &Line, index: usize) {
    let class = format!("f{} wash", index % 8);
    for piece in pieces(line) {
        let place = |at: usize, value: f64| plot.at(columns.middle_ns(at), value);
        let is_seen =
            |(_, (low, _, high)): &(usize, Point)| plot.y.at(*low) - plot.y.at(*high) > 1.0;
        if !piece.iter().any(is_seen) {
            continue;
        }
        let upper = piece.iter().map(|(at, (_, _, high))| place(*at, *high));
        let lower = piece.iter().rev().map(|(at, (low, _, _))| place(*at, *low));
        canvas.area(&upper.chain(lower).collect::<Vec<_>>(), &class);
    }
}

fn table(of: &Trial<'_>, lines: &[Line], columns: &Columns, unit: Unit) -> FigureTable {
    let mut heads = vec![("from", ColumnType::Time)];
    heads.extend(lines.iter().map(|line| (line.source.as_str(), ColumnType::Number)));
    let mut table = FigureTable::new(&heads);
    let count = lines.iter().map(|line| line.points.len()).max().unwrap_or(0);
    let count = count.min(of.result.timeline.columns.len());
    let every = count.div_ceil(ROWS_MAX).max(1);
    for index in (0..count).step_by(every) {
        let mut row = vec![super::latency::from_cell(columns, index)];
        for line in lines {
            let mean = line.points.get(index).copied().flatten().map_or(f64::NAN, |point| point.1);
            row.push(FigureCell::real(mean, label(mean, mean.abs() / 100.0, unit)));
        }
        table.rows.push(row);
    }
    table
}
