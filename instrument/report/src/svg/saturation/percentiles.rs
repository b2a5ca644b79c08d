//! Percentiles against rate, a panel for each series of loads: the figure of the published API studies.

use model::result::RunResult;

use super::SERIES_MAX;
use crate::figures::is_thin;
use crate::svg::canvas::{Canvas, fitted, float};
use crate::svg::plot::{
    Area, Plot, Sample, WIDTH, cell as small_area, dashed_class, legend, say_empty, y_labels_width,
};
use crate::svg::scale::{Scale, Unit};
use crate::svg::settings::{Series, Shown, load_series, quantile};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};

/// The published percentiles.
const NAMES: [&str; 4] = ["p50", "p90", "p95", "p99"];

/// One figure with a panel a series, all on the same axes.
pub(crate) fn figures(result: &RunResult) -> Vec<Figure> {
    let mut series = load_series(result);
    if series.is_empty() {
        return Vec::new();
    }
    let left_out = series.len().saturating_sub(SERIES_MAX);
    series.truncate(SERIES_MAX);
    vec![figure(&series, left_out)]
}

fn figure(series: &[Series<'_>], left_out: usize) -> Figure {
    let all = || series.iter().flat_map(|series| series.points.iter().map(|(it, _)| it));
    let x = Scale::from_zero(all().map(|it| it.trial().rates.offered_per_s));
    let values = all().flat_map(|it| NAMES.iter().filter_map(|name| value(it, name)));
    let y = Scale::log_around(values);
    let across = match series.len() {
        1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    let (panel_height, top) = (if across == 1 { 260.0 } else { 200.0 }, 46.0);
    let row_height = panel_height + 62.0;
    let rows = series.len().div_ceil(across);
    let height = top + row_height * float(rows) - 16.0;
    let mut canvas = Canvas::new(WIDTH, height);
    let left = y.map_or(50.0, |y| y_labels_width(y, Unit::Ns, panel_height));
    let entries: Vec<(Sample, String)> = NAMES
        .iter()
        .enumerate()
        .map(|(index, name)| (Sample::Line(dashed_class(index)), (*name).to_owned()))
        .collect();
    legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
    let outer = Area { left: 0.0, top, width: WIDTH - 10.0, height };
    for (index, series) in series.iter().enumerate() {
        let cell = small_area(index, across, outer, row_height, 8.0);
        let area =
            Area { left: cell.left + left, width: cell.width - left, height: panel_height, ..cell };
        let Some(y) = y else {
            say_empty(&mut canvas, area, "no response times");
            continue;
        };
        let plot = Plot::new(area, x, y);
        let is_named = across > 1;
        plot.y_axis(&mut canvas, Unit::Ns, if is_named { "" } else { "response time" });
        plot.x_axis(&mut canvas, Unit::Number, "offered, per second");
        if is_named {
            canvas.text(area.left, area.top - 9.0, "b", &fitted(&series.name, area.width));
        }
        for (line, name) in NAMES.iter().enumerate() {
            draw_line(&mut canvas, &plot, series, line, name);
        }
    }
    let note = if left_out == 0 {
        String::new()
    } else {
        format!(" {left_out} further series are left out.")
    };
    Meta::new(
        Section::Saturation,
        "percentiles-rate",
        "Percentiles against rate",
        &format!(
            "Response time percentiles of each setting (its middle trial) against the offered rate; logarithmic. All \
             panels have the same axes. A hollow mark rests on fewer than ten samples.{note}"
        ),
    )
    .figure(canvas, table(series))
}

fn draw_line(canvas: &mut Canvas, plot: &Plot, series: &Series<'_>, line: usize, name: &str) {
    let at = |it: &Shown<'_>| Some(plot.at(it.trial().rates.offered_per_s, value(it, name)?));
    canvas.broken_line(series.points.iter().map(|(it, _)| at(it)), &dashed_class(line));
    for (it, _) in &series.points {
        let Some(place) = at(it) else { continue };
        let is_thin = quantile(it, name).is_some_and(|(_, q)| is_thin(q));
        let class = if is_thin { format!("hollow s{line}") } else { format!("f{line}") };
        canvas.mark(place, line, 3.0, &class);
    }
}

fn value(it: &Shown<'_>, name: &str) -> Option<f64> {
    quantile(it, name).and_then(|(_, q)| q.value_ns).map(|ns| ns as f64)
}

/// A percentile of a setting as a cell.
pub(super) fn cell(it: &Shown<'_>, name: &str) -> FigureCell {
    match quantile(it, name) {
        Some((pointer, q)) => FigureCell::ns(q.value_ns).at(pointer).greyed(is_thin(q)),
        None => FigureCell::ns(None),
    }
}

fn table(series: &[Series<'_>]) -> FigureTable {
    let mut columns = vec![("series", ColumnType::Text), ("setting", ColumnType::Text)];
    columns.push(("offered/s", ColumnType::Number));
    columns.extend(NAMES.map(|name| (name, ColumnType::Time)));
    let mut table = FigureTable::new(&columns);
    for series in series {
        for (it, label) in &series.points {
            let offered = FigureCell::per_s(it.trial().rates.offered_per_s);
            let mut row = vec![
                FigureCell::words(series.name.clone()),
                FigureCell::words(label.clone()),
                offered.at(format!("{}/rates/offered_per_s", it.pointer())),
            ];
            row.extend(NAMES.map(|name| cell(it, name)));
            table.rows.push(row);
        }
    }
    table
}
