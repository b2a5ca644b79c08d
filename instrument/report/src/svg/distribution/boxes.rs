//! Boxes: the middle half of each setting, its whiskers, and how far its tail reaches.

use model::quantity::show_ns;
use model::result::CurvePoint;

use super::{Curve, Curves, points, thin_from};
use crate::paint::clean;
use crate::svg::canvas::{Canvas, fitted, float, text_width};
use crate::svg::plot::{Area, Plot, Sample, WIDTH, legend, say_empty};
use crate::svg::scale::{Scale, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};

const FRACTIONS: [f64; 6] = [0.05, 0.25, 0.5, 0.75, 0.95, 0.99];
const ROW: f64 = 26.0;

pub(super) fn figure(of: &Curves<'_>) -> Figure {
    let widest = of.curves.iter().map(|curve| text_width(&curve.label)).fold(0.0, f64::max);
    let left = (widest + 12.0).clamp(60.0, 210.0);
    let top = 34.0;
    let height = ROW * float(of.curves.len());
    let area = Area { left, top, width: WIDTH - left - 62.0, height };
    let mut canvas = Canvas::new(WIDTH, top + height + 40.0);
    match Scale::log_around(of.values()) {
        None => say_empty(&mut canvas, area, "no response times"),
        Some(x) => {
            let plot = Plot::new(area, x, Scale::linear(0.0, 1.0));
            plot.x_axis(&mut canvas, Unit::Ns, "response time");
            for (index, curve) in of.curves.iter().enumerate() {
                let middle = top + ROW * (float(index) + 0.5);
                canvas.text(left - 8.0, middle + 4.0, "e", &fitted(&curve.label, left - 8.0));
                draw(&mut canvas, &plot, curve, middle);
            }
        }
    }
    let entries = [
        (Sample::Box("f0 wash".to_owned()), "the middle half of all, line at the median"),
        (Sample::Line("ln thin s0".to_owned()), "without the lowest and the highest 5 % of all"),
        (Sample::Mark(3, "f1".to_owned()), "p99"),
        (Sample::Mark(1, "hollow si".to_owned()), "max"),
    ];
    let entries = entries.map(|(sample, text)| (sample, text.to_owned()));
    legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
    Meta::new(
        Section::Distribution,
        "boxes",
        "Response time of each setting",
        &format!(
            "The box holds the middle half, the whiskers nine tenths, the diamond is p99 (hollow where fewer than ten \
             samples lie beyond), the square the largest. Over those that reached the final stage. The table's values \
             are points of the percentile curve.{}",
            of.note
        ),
    )
    .figure(canvas, table(of))
}

/// The first point of a curve that is not below a fraction.
fn point(curve: &[CurvePoint], q: f64) -> Option<(usize, CurvePoint)> {
    let found = curve.iter().position(|point| point.q >= q - 1e-9)?;
    Some((found, curve[found]))
}

fn draw(canvas: &mut Canvas, plot: &Plot, curve: &Curve<'_>, y: f64) {
    let all = points(curve.response);
    let at = |q: f64| point(&all, q).map(|(_, point)| plot.x.at(point.value_ns as f64));
    let [p5, p25, p50, p75, p95, p99] = FRACTIONS.map(at);
    if let (Some(from), Some(to)) = (p5, p95) {
        canvas.line((from, y), (to, y), "ln thin s0");
        for x in [from, to] {
            canvas.line((x, y - 4.0), (x, y + 4.0), "ln thin s0");
        }
    }
    if let (Some(from), Some(to)) = (p25, p75) {
        canvas.rect(from, y - 7.0, (to - from).max(1.0), 14.0, "paper");
        canvas.rect(from, y - 7.0, (to - from).max(1.0), 14.0, "f0 wash s0");
    }
    if let Some(x) = p50 {
        canvas.line((x, y - 7.0), (x, y + 7.0), "ln s0");
    }
    if let Some(x) = p99 {
        let is_thin = thin_from(curve.response) < 0.99;
        canvas.mark((x, y), 3, 3.6, if is_thin { "hollow s1" } else { "f1" });
    }
    if let Some(max) = curve.response.max_ns {
        let x = plot.x.at(max as f64);
        canvas.mark((x, y), 1, 2.8, "hollow si");
        canvas.text(x + 7.0, y + 4.0, "m", &show_ns(max));
    }
}

/// The value of a curve at a fraction, with its place in summary.json.
pub(super) fn curve_cell(curve: &Curve<'_>, q: f64) -> FigureCell {
    match point(&curve.response.curve, q) {
        None => FigureCell::ns(None),
        Some((index, point)) => {
            let latency = format!("{}/latency/{}", curve.shown.pointer(), curve.latency);
            let at = format!("{latency}/response/curve/{index}/value_ns");
            let is_thin = q > thin_from(curve.response);
            FigureCell::ns(Some(point.value_ns)).at(at).greyed(is_thin)
        }
    }
}

fn table(of: &Curves<'_>) -> FigureTable {
    let heads = FRACTIONS.map(|q| format!("p{}", (q * 100.0).round()));
    let mut columns = vec![("setting", ColumnType::Text), ("samples", ColumnType::Number)];
    columns.extend(heads.iter().map(|head| (head.as_str(), ColumnType::Time)));
    columns.push(("max", ColumnType::Time));
    let mut table = FigureTable::new(&columns);
    for curve in &of.curves {
        let at = format!("{}/latency/{}/response", curve.shown.pointer(), curve.latency);
        let mut row = vec![
            FigureCell::words(clean(&curve.shown.setting.key)),
            FigureCell::count(curve.response.count).at(format!("{at}/count")),
        ];
        row.extend(FRACTIONS.map(|q| curve_cell(curve, q)));
        row.push(FigureCell::ns(curve.response.max_ns).at(format!("{at}/max_ns")));
        table.rows.push(row);
    }
    table
}
