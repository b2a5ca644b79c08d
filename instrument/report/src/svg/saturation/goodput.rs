//! Goodput against offered load, with what became of the rest.

use model::result::{Counts, RunResult};

use super::SERIES_MAX;
use super::throughput::joined;
use crate::svg::canvas::Canvas;
use crate::svg::plot::{Area, Places, Plot, Sample, WIDTH, legend, y_labels_width};
use crate::svg::scale::{Scale, Unit};
use crate::svg::settings::{Series, Shown, load_series};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};

/// Half the width of a bar of failures.
const BAR: f64 = 5.0;

/// One chart a series of loads.
pub(crate) fn figures(result: &RunResult) -> Vec<Figure> {
    load_series(result).iter().take(SERIES_MAX).map(figure).collect()
}

fn figure(series: &Series<'_>) -> Figure {
    let trials = || series.points.iter().flat_map(|(it, _)| &it.setting.trials);
    let x = Scale::from_zero(trials().map(|trial| trial.rates.offered_per_s));
    let y = Scale::from_zero(
        trials().flat_map(|trial| [trial.rates.offered_per_s, trial.rates.goodput_per_s]),
    );
    let mut canvas = Canvas::new(WIDTH, 366.0);
    let height = 272.0;
    let left = y_labels_width(y, Unit::Number, height);
    let area = Area { left, top: 46.0, width: WIDTH - left - 12.0, height };
    let plot = Plot::new(area, x, y);
    plot.y_axis(&mut canvas, Unit::Number, "goodput, per second");
    plot.x_axis(&mut canvas, Unit::Number, "offered, per second");
    let end = x.high().min(y.high());
    canvas.line(plot.at(0.0, 0.0), plot.at(end, end), "ln thin sm d1");
    let mut places = Places::default();
    places.take_line(plot.at(0.0, 0.0), plot.at(end, end));
    for (it, _) in &series.points {
        bars(&mut canvas, &plot, it);
        let rates = &it.trial().rates;
        let [from, to] =
            [rates.offered_per_s, rates.goodput_per_s].map(|y| plot.at(rates.offered_per_s, y));
        for side in [-BAR, 0.0, BAR] {
            places.take_line((from.0 + side, from.1), (to.0 + side, to.1));
        }
    }
    let middle = series.points.iter().map(|(it, _)| {
        let rates = &it.trial().rates;
        let is_known = rates.offered_per_s.is_finite() && rates.goodput_per_s.is_finite();
        is_known.then(|| plot.at(rates.offered_per_s, rates.goodput_per_s))
    });
    canvas.broken_line(middle, "ln s2");
    for trial in trials() {
        let at = plot.at(trial.rates.offered_per_s, trial.rates.goodput_per_s);
        places.take_point(at);
        canvas.mark(at, 0, 3.8, "f2");
    }
    for (index, (it, label)) in series.points.iter().enumerate() {
        let rates = &it.trial().rates;
        let at = plot.at(rates.offered_per_s, rates.goodput_per_s);
        if series.knee == Some(index) {
            canvas.mark(at, 0, 8.0, "none ln si");
            places.take_ring(at);
            places.label(&mut canvas, area, at, "b", &format!("{label} · knee"));
        } else {
            places.label(&mut canvas, area, at, "", label);
        }
    }
    places.label(&mut canvas, area, plot.at(end * 0.93, end * 0.93), "m", "all of it");
    let entries = [
        (Sample::Mark(0, "f2".to_owned()), "goodput"),
        (Sample::Box("fwarn half".to_owned()), "rejected"),
        (Sample::Box("fbad half".to_owned()), "unknown"),
        (Sample::Box("none ln thin sm".to_owned()), "shed: never sent"),
    ];
    let entries = entries.map(|(sample, text)| (sample, text.to_owned()));
    legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
    Meta::new(
        Section::Saturation,
        &joined("goodput-offered", &series.stem),
        "Goodput against offered load",
        "Each setting at its offered rate; a point a trial, the line through the middle trials. On the dashed line \
         all that was offered came through. The bars hang from it: what was rejected, what was never answered, what \
         was never sent, of the middle trial. What no bar fills was committed too late: after the window, or its \
         time limit. The ring is the knee, the last setting that kept up.",
    )
    .of(&series.name)
    .figure(canvas, table(series))
}

/// The losses, as shares of the offered load that hang from the line of equality.
fn bars(canvas: &mut Canvas, plot: &Plot, it: &Shown<'_>) {
    let trial = it.trial();
    let counts: &Counts = trial.background.as_ref().unwrap_or(&trial.counts);
    let offered = trial.rates.offered_per_s;
    if counts.due == 0 || !offered.is_finite() {
        return;
    }
    let x = plot.x.at(offered);
    let mut from = offered;
    let parts = [
        (counts.rejected, "fwarn half"),
        (counts.unknown, "fbad half"),
        (counts.shed, "none ln thin sm"),
    ];
    for (count, class) in parts {
        let to = from - offered * (count as f64 / counts.due as f64);
        let (top, bottom) = (plot.y.at(from), plot.y.at(to));
        if bottom - top >= 0.3 {
            canvas.rect(x - BAR, top, BAR * 2.0, bottom - top, class);
        }
        from = to;
    }
}

fn table(series: &Series<'_>) -> FigureTable {
    let mut table = FigureTable::new(&[
        ("setting", ColumnType::Text),
        ("offered/s", ColumnType::Number),
        ("goodput/s", ColumnType::Number),
        ("due", ColumnType::Number),
        ("rejected", ColumnType::Number),
        ("unknown", ColumnType::Number),
        ("shed", ColumnType::Number),
        ("", ColumnType::Text),
    ]);
    for (index, (it, label)) in series.points.iter().enumerate() {
        let trial = it.trial();
        let at = it.pointer();
        let (counts, of) = match &trial.background {
            Some(load) => (load, "background"),
            None => (&trial.counts, "counts"),
        };
        let count = |value: u64, key: &str| FigureCell::count(value).at(format!("{at}/{of}/{key}"));
        table.rows.push(vec![
            FigureCell::words(label.clone()),
            FigureCell::per_s(trial.rates.offered_per_s).at(format!("{at}/rates/offered_per_s")),
            FigureCell::per_s(trial.rates.goodput_per_s).at(format!("{at}/rates/goodput_per_s")),
            count(counts.due, "due"),
            count(counts.rejected, "rejected"),
            count(counts.unknown, "unknown"),
            count(counts.shed, "shed"),
            FigureCell::words(if series.knee == Some(index) { "knee" } else { "" }),
        ]);
    }
    table
}
