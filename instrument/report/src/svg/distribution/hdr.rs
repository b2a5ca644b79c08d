//! Percentile curves with as much room for each further nine, as HdrHistogram plots them.
//!
//! Where fewer than ten samples lie beyond, the line is dotted: one more outlier would move it.

use model::result::{CurvePoint, Distribution};

use super::{Curve, Curves, points, thin_from};
use crate::figures::{is_thin, percent};
use crate::svg::canvas::{Canvas, text_width};
use crate::svg::plot::{
    Area, Plot, Sample, WIDTH, end_labels, legend, line_class, say_empty, y_labels_width,
};
use crate::svg::scale::{Scale, Tick, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};

/// Vertical distance, in pixels, from which on the service time is seen apart from the response time.
const APART: f64 = 3.0;
/// With more settings than this, a second line for each would hide the first; the table has both.
const SERVICES_MAX: usize = 6;
/// No more nines than a run of 10^9 transactions can have.
const NINES_MAX: f64 = 9.0;

pub(super) fn figure(of: &Curves<'_>) -> Figure {
    let height = 300.0;
    let mut canvas = Canvas::new(WIDTH, 394.0);
    let services = of.curves.iter().flat_map(|curve| points(curve.service));
    let service_values = services.map(|point| point.value_ns as f64);
    let y = Scale::log_around(of.values().chain(service_values));
    let left = y.map_or(50.0, |y| y_labels_width(y, Unit::Ns, height));
    let is_named = of.curves.len() > 1 || of.curves.iter().any(|c| c.label != "response time");
    let widest = of.curves.iter().map(|curve| text_width(&curve.label)).fold(0.0, f64::max);
    let room = if is_named { (widest + 22.0).min(200.0) } else { 12.0 };
    let area = Area { left, top: 46.0, width: WIDTH - left - room, height };
    let most = of.curves.iter().map(|curve| curve.response.count).max().unwrap_or(0);
    let nines = (most.max(10) as f64).log10().clamp(1.0, NINES_MAX);
    let x = Scale::linear(0.0, nines);
    let mut is_service_seen = false;
    match y {
        None => say_empty(&mut canvas, area, "no response times"),
        Some(y) => {
            let plot = Plot::new(area, x, y);
            plot.y_axis(&mut canvas, Unit::Ns, "response time");
            plot.x_axis_with(&mut canvas, &ticks(nines), "percentile");
            let mut ends = Vec::new();
            for (index, curve) in of.curves.iter().enumerate() {
                is_service_seen |= draw(&mut canvas, &plot, curve, index, of.curves.len());
                if let Some(last) = points(curve.response).last() {
                    let end = place(&plot, last, curve.response.count);
                    ends.push((end, curve.label.clone(), format!("s{}", index % 8)));
                }
            }
            if is_named {
                end_labels(&mut canvas, area, room, ends);
            }
        }
    }
    let mut entries = vec![(Sample::Line("ln s0".to_owned()), "response time".to_owned())];
    if is_service_seen {
        let text = "service time, from the send".to_owned();
        entries.push((Sample::Line("ln s0 d1 thin".to_owned()), text));
    }
    let text = "fewer than ten samples beyond".to_owned();
    entries.push((Sample::Line("ln s0 few".to_owned()), text));
    legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
    Meta::new(
        Section::Distribution,
        "hdr",
        "Response time by percentile",
        &format!(
            "Each step to the right is one more nine: how slow is the slowest 1 in 10, in 100, in 1,000. Over those \
             that reached the final stage; in brackets: how many never did (inf). The middle trial where a setting \
             has several.{}",
            of.note
        ),
    )
    .figure(canvas, table(of))
}

/// Ticks at 0 %, 90 %, 99 % …; the half of the samples where there is room for it.
pub(in crate::svg) fn ticks(nines: f64) -> Vec<Tick> {
    let mut ticks = vec![Tick { value: 0.0, label: "0%".to_owned() }];
    if nines <= 6.0 {
        ticks.push(Tick { value: 2f64.log10(), label: "50%".to_owned() });
    }
    for nine in 1..=10 {
        let value = f64::from(nine);
        if value > nines + 1e-9 {
            break;
        }
        let label = match nine {
            1 => "90%".to_owned(),
            2 => "99%".to_owned(),
            more => format!("99.{}%", "9".repeat(usize::try_from(more - 2).unwrap_or(1))),
        };
        ticks.push(Tick { value, label });
    }
    ticks
}

fn place(plot: &Plot, point: &CurvePoint, count: u64) -> (f64, f64) {
    // The last point is the largest of `count`: one in `count`, not one in infinity.
    let rest = (1.0 - point.q).max(1.0 / (count.max(1) as f64));
    plot.at(-rest.log10(), point.value_ns as f64)
}

/// Draws a setting's curves and says whether the service time is among them.
fn draw(canvas: &mut Canvas, plot: &Plot, curve: &Curve<'_>, index: usize, count: usize) -> bool {
    let class = line_class(index);
    let response = points(curve.response);
    let service = points(curve.service);
    let is_seen = count <= SERVICES_MAX && is_apart(plot, &response, &service, curve);
    if is_seen {
        let class =
            if count == 1 { "ln s0 d1 thin".to_owned() } else { format!("{class} d1 thin") };
        line(canvas, plot, &service, curve.service, &class);
    }
    line(canvas, plot, &response, curve.response, &class);
    is_seen
}

fn line(canvas: &mut Canvas, plot: &Plot, points: &[CurvePoint], of: &Distribution, class: &str) {
    let from = thin_from(of);
    let split = points.iter().position(|point| point.q > from).unwrap_or(points.len());
    let at = |point: &CurvePoint| place(plot, point, of.count);
    let firm: Vec<(f64, f64)> = points[..split].iter().map(at).collect();
    let thin: Vec<(f64, f64)> = points[split.saturating_sub(1)..].iter().map(at).collect();
    canvas.polyline(&stepped(&thin), &format!("{class} few"));
    canvas.polyline(&firm, class);
}

/// Without points that lie within half a pixel of their neighbour.
pub(in crate::svg) fn stepped(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for point in points {
        let is_near = kept
            .last()
            .is_some_and(|last| (last.0 - point.0).abs() < 0.5 && (last.1 - point.1).abs() < 0.5);
        if !is_near {
            kept.push(*point);
        }
    }
    kept
}

fn is_apart(plot: &Plot, a: &[CurvePoint], b: &[CurvePoint], curve: &Curve<'_>) -> bool {
    if b.is_empty() {
        return false;
    }
    let firm = thin_from(curve.response);
    let apart = |point: &&CurvePoint| {
        let other = b.iter().find(|other| other.q >= point.q).unwrap_or(&b[b.len() - 1]);
        (plot.y.at(point.value_ns as f64) - plot.y.at(other.value_ns as f64)).abs() > APART
    };
    a.iter().filter(|point| point.q <= firm).any(|point| apart(&point))
}

fn table(of: &Curves<'_>) -> FigureTable {
    let mut names: Vec<(f64, String)> = Vec::new();
    for q in of.curves.iter().flat_map(|curve| &curve.response.quantiles) {
        if names.iter().all(|(_, name)| *name != q.name) {
            names.push((q.q, q.name.clone()));
        }
    }
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut columns = vec![
        ("setting", ColumnType::Text),
        ("of", ColumnType::Text),
        ("samples", ColumnType::Number),
        ("inf", ColumnType::Number),
        ("min", ColumnType::Time),
    ];
    columns.extend(names.iter().map(|(_, name)| (name.as_str(), ColumnType::Time)));
    columns.push(("max", ColumnType::Time));
    let mut table = FigureTable::new(&columns);
    for curve in &of.curves {
        let parts = [("response", curve.response), ("service", curve.service)];
        for (part, distribution) in parts {
            table.rows.push(row(curve, part, distribution, &names));
        }
    }
    table
}

fn row(
    curve: &Curve<'_>,
    part: &str,
    of: &Distribution,
    names: &[(f64, String)],
) -> Vec<FigureCell> {
    let latency = format!("{}/latency/{}", curve.shown.pointer(), curve.latency);
    let at = format!("{latency}/{part}");
    let inf = curve.shown.trial().latency.get(curve.latency).map_or(0, |it| it.inf);
    let mut row = vec![
        FigureCell::words(crate::paint::clean(&curve.shown.setting.key)),
        FigureCell::words(format!("{part} time")),
        FigureCell::count(of.count).at(format!("{at}/count")),
        FigureCell::count(inf).at(format!("{latency}/inf")),
        FigureCell::ns(of.min_ns).at(format!("{at}/min_ns")),
    ];
    for (_, name) in names {
        let found = of.quantiles.iter().position(|q| q.name == *name);
        row.push(found.map_or_else(FigureCell::default, |index| {
            let q = &of.quantiles[index];
            let cell = FigureCell::ns(q.value_ns).at(format!("{at}/quantiles/{index}/value_ns"));
            cell.greyed(is_thin(q))
        }));
    }
    row.push(FigureCell::ns(of.max_ns).at(format!("{at}/max_ns")));
    row
}

/// A fraction as a percentage in a sentence.
pub(super) fn fraction(q: f64) -> String {
    percent(q)
}
