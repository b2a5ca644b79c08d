//! Cumulative shares of all that were due: a curve that does not reach the top lost the rest.

use super::{Curve, Curves, points, thin_from};
use crate::paint::clean;
use crate::svg::canvas::Canvas;
use crate::svg::plot::{
    Area, Plot, Sample, WIDTH, legend, legend_height, line_class, say_empty, y_labels_width,
};
use crate::svg::scale::{Scale, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};

/// Fractions in the table: the first point of the curve that is not below each.
const FRACTIONS: [f64; 7] = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99];

pub(super) fn figure(of: &Curves<'_>) -> Figure {
    let y = Scale::linear(0.0, 1.0);
    let height = 240.0;
    let left = y_labels_width(y, Unit::Share, height);
    let entries = entries(of);
    let top = legend_height(WIDTH - left, &entries) + 28.0;
    let mut canvas = Canvas::new(WIDTH, top + height + 40.0);
    let area = Area { left, top, width: WIDTH - left - 12.0, height };
    match Scale::log_around(of.values()) {
        None => say_empty(&mut canvas, area, "no response times"),
        Some(x) => {
            let plot = Plot::new(area, x, y);
            plot.y_axis(&mut canvas, Unit::Share, "share of all due, at most this slow");
            plot.x_axis(&mut canvas, Unit::Ns, "response time");
            for (index, curve) in of.curves.iter().enumerate() {
                draw(&mut canvas, &plot, curve, index);
            }
        }
    }
    legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
    Meta::new(
        Section::Distribution,
        "ecdf",
        "Share that was at most this slow",
        &format!(
            "The share of all transactions that were due which reached the final stage within a response time. A \
             curve that ends below 100% lost the rest: rejected, unknown or never sent. Dotted where fewer than ten \
             samples lie beyond. The table's values are points of the curve.{}",
            of.note
        ),
    )
    .figure(canvas, table(of))
}

/// The curves run into each other at the top, so that names beside their ends would say nothing.
fn entries(of: &Curves<'_>) -> Vec<(Sample, String)> {
    let line = |index: usize| Sample::Line(line_class(index));
    of.curves.iter().enumerate().map(|(i, curve)| (line(i), curve.label.clone())).collect()
}

fn draw(canvas: &mut Canvas, plot: &Plot, curve: &Curve<'_>, index: usize) {
    let share = curve.shown.reached_share();
    let all = points(curve.response);
    let at = |q: f64, ns: i64| plot.at(ns as f64, q * share);
    let from = thin_from(curve.response);
    let mut firm: Vec<(f64, f64)> = Vec::new();
    let mut thin: Vec<(f64, f64)> = Vec::new();
    for point in &all {
        let line = if point.q <= from { &mut firm } else { &mut thin };
        line.push(at(point.q, point.value_ns));
    }
    if let (Some(end), false) = (firm.last(), thin.is_empty()) {
        thin.insert(0, *end);
    }
    let end = all.last().map_or((plot.area.left, plot.area.bottom()), |p| at(p.q, p.value_ns));
    let class = line_class(index);
    canvas.polyline(&firm, &class);
    canvas.polyline(&thin, &format!("{class} few"));
    if end.0 < plot.area.right() {
        canvas.line(end, (plot.area.right(), end.1), &format!("{class} thin few"));
    }
}

fn table(of: &Curves<'_>) -> FigureTable {
    let heads: Vec<String> = FRACTIONS.iter().map(|q| super::hdr::fraction(*q)).collect();
    let mut columns = vec![("setting", ColumnType::Text), ("due", ColumnType::Number)];
    columns.push(("inf", ColumnType::Number));
    columns.extend(heads.iter().map(|head| (head.as_str(), ColumnType::Time)));
    let mut table = FigureTable::new(&columns);
    for curve in &of.curves {
        let trial = curve.shown.trial();
        let at = curve.shown.pointer();
        let inf = trial.latency.get(curve.latency).map_or(0, |it| it.inf);
        let mut row = vec![
            FigureCell::words(clean(&curve.shown.setting.key)),
            FigureCell::count(trial.counts.due).at(format!("{at}/counts/due")),
            FigureCell::count(inf).at(format!("{at}/latency/{}/inf", curve.latency)),
        ];
        row.extend(FRACTIONS.map(|q| super::boxes::curve_cell(curve, q)));
        table.rows.push(row);
    }
    table
}
