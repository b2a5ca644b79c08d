//! Latency against throughput: where more load brings only waiting.

use model::result::RunResult;

use super::{Limit, SERIES_MAX, goodput_limits, latency_limits};
use crate::figures::is_thin;
use crate::svg::canvas::{Canvas, text_width};
use crate::svg::plot::{Area, Places, Plot, Sample, WIDTH, legend, say_empty, y_labels_width};
use crate::svg::scale::{Scale, Unit};
use crate::svg::settings::{Series, Shown, final_latency, load_series, quantile};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};

const NAMES: [&str; 2] = ["p50", "p99"];

/// One chart a series of loads.
pub(crate) fn figures(result: &RunResult) -> Vec<Figure> {
    let limits = (latency_limits(result), goodput_limits(result));
    let series = load_series(result);
    series.iter().take(SERIES_MAX).map(|series| figure(series, &limits)).collect()
}

fn value(shown: &Shown<'_>, name: &str) -> Option<f64> {
    quantile(shown, name).and_then(|(_, q)| q.value_ns).map(|ns| ns as f64)
}

fn figure(series: &Series<'_>, (latencies, goodputs): &(Vec<Limit>, Vec<Limit>)) -> Figure {
    let goodputs_of = series.points.iter().flat_map(|(it, _)| &it.setting.trials);
    let x = Scale::from_zero(
        goodputs_of.map(|t| t.rates.goodput_per_s).chain(goodputs.iter().map(|limit| limit.value)),
    );
    let values: Vec<f64> = series.points.iter().flat_map(|(it, _)| trial_values(it)).collect();
    let near = |limit: &&Limit| {
        let high = values.iter().copied().fold(0.0, f64::max);
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        limit.value < high * 30.0 && limit.value > low / 30.0
    };
    let shown_limits: Vec<&Limit> = latencies.iter().filter(near).collect();
    let y = Scale::log_around(values.iter().copied().chain(shown_limits.iter().map(|l| l.value)));
    let mut canvas = Canvas::new(WIDTH, 356.0);
    let height = 262.0;
    let left = y.map_or(50.0, |y| y_labels_width(y, Unit::Ns, height));
    let area = Area { left, top: 46.0, width: WIDTH - left - 12.0, height };
    let left_out = latencies.len() - shown_limits.len();
    let note = if left_out == 0 {
        String::new()
    } else {
        format!(" {left_out} threshold(s) lie far outside and are not drawn.")
    };
    let meta = Meta::new(
        Section::Saturation,
        &joined("latency-throughput", &series.stem),
        "Latency against throughput",
        &format!(
            "Each setting at its goodput, with p50 and p99 of its response time; a point a trial, the lines through \
             the middle trials in order of offered load. A hollow mark rests on fewer than ten samples. Dashed lines \
             are thresholds; the ring is the knee, the last setting that kept up.{note}"
        ),
    );
    if let Some(y) = y {
        let plot = Plot::new(area, x, y);
        plot.y_axis(&mut canvas, Unit::Ns, "response time");
        plot.x_axis(&mut canvas, Unit::Number, "goodput, per second");
        draw_limits(&mut canvas, &plot, &shown_limits, goodputs);
        draw_points(&mut canvas, &plot, series, &shown_limits);
    } else {
        say_empty(&mut canvas, area, "no setting has a response time");
    }
    let entry = |index: usize| {
        (Sample::Mark(index, format!("f{index}")), format!("{} response time", NAMES[index]))
    };
    legend(&mut canvas, left, 0.0, WIDTH - left, &[entry(0), entry(1)]);
    meta.of(&series.name).figure(canvas, table(series))
}

/// The values of all trials of a setting.
fn trial_values(shown: &Shown<'_>) -> Vec<f64> {
    let trials = shown.setting.trials.iter().filter_map(final_latency);
    let all = trials.flat_map(|(_, latency)| &latency.response.quantiles);
    let named = all.filter(|q| NAMES.contains(&q.name.as_str()));
    named.filter_map(|q| q.value_ns).map(|ns| ns as f64).collect()
}

fn draw_limits(canvas: &mut Canvas, plot: &Plot, latencies: &[&Limit], goodputs: &[Limit]) {
    for limit in latencies {
        let y = plot.y.at(limit.value);
        canvas.line((plot.area.left, y), (plot.area.right(), y), "ln thin sbad d1");
        canvas.text(plot.area.right() - 4.0, y - 4.0, "h e", &limit.text);
    }
    for limit in goodputs {
        let x = plot.x.at(limit.value);
        canvas.line((x, plot.area.top), (x, plot.area.bottom()), "ln thin sbad d1");
        let is_right = x + text_width(&limit.text) + 8.0 > plot.area.right();
        let (x, class) = if is_right { (x - 4.0, "h e") } else { (x + 4.0, "h") };
        canvas.text(x, plot.area.bottom() - 5.0, class, &limit.text);
    }
}

fn draw_points(canvas: &mut Canvas, plot: &Plot, series: &Series<'_>, limits: &[&Limit]) {
    let mut places = Places::default();
    for limit in limits {
        let y = plot.y.at(limit.value);
        places.take_line((plot.area.left, y), (plot.area.right(), y));
        let width = text_width(&limit.text) + 8.0;
        places.take_line((plot.area.right() - width, y - 8.0), (plot.area.right(), y - 8.0));
    }
    for (index, name) in NAMES.iter().enumerate() {
        let middle = series
            .points
            .iter()
            .map(|(it, _)| value(it, name).map(|ns| plot.at(it.trial().rates.goodput_per_s, ns)));
        canvas.broken_line(middle, &format!("ln s{index}{}", if index == 0 { "" } else { " d1" }));
        for trial in series.points.iter().flat_map(|(it, _)| &it.setting.trials) {
            let Some((_, latency)) = final_latency(trial) else { continue };
            let found = latency.response.quantiles.iter().find(|q| q.name == *name);
            let Some((q, ns)) = found.and_then(|q| Some((q, q.value_ns?))) else { continue };
            let at = plot.at(trial.rates.goodput_per_s, ns as f64);
            places.take_point(at);
            let class = if is_thin(q) { format!("hollow s{index}") } else { format!("f{index}") };
            canvas.mark(at, index, 3.6, &class);
        }
    }
    for (index, (it, label)) in series.points.iter().enumerate() {
        let Some(ns) = value(it, NAMES[1]).or_else(|| value(it, NAMES[0])) else { continue };
        let at = plot.at(it.trial().rates.goodput_per_s, ns);
        if series.knee == Some(index) {
            canvas.mark(at, 0, 8.0, "none ln si");
            places.take_ring(at);
            places.label(canvas, plot.area, at, "b", &format!("{label} · knee"));
        } else {
            places.label(canvas, plot.area, at, "", label);
        }
    }
}

fn table(series: &Series<'_>) -> FigureTable {
    let mut table = FigureTable::new(&[
        ("setting", ColumnType::Text),
        ("offered/s", ColumnType::Number),
        ("goodput/s", ColumnType::Number),
        (NAMES[0], ColumnType::Time),
        (NAMES[1], ColumnType::Time),
        ("", ColumnType::Text),
    ]);
    for (index, (it, label)) in series.points.iter().enumerate() {
        let rates = &it.trial().rates;
        let at = it.pointer();
        let mut row = vec![
            FigureCell::words(label.clone()),
            FigureCell::per_s(rates.offered_per_s).at(format!("{at}/rates/offered_per_s")),
            FigureCell::per_s(rates.goodput_per_s).at(format!("{at}/rates/goodput_per_s")),
        ];
        row.extend(NAMES.map(|name| super::percentiles::cell(it, name)));
        row.push(FigureCell::words(if series.knee == Some(index) { "knee" } else { "" }));
        table.rows.push(row);
    }
    table
}

/// `stem-of`, or the stem alone.
pub(super) fn joined(stem: &str, of: &str) -> String {
    if of.is_empty() { stem.to_owned() } else { format!("{stem}-{of}") }
}
