//! The charts of a comparison and of a history: ratios with their intervals, response times of both sides on the same
//! axes, numbers run by run with the levels between their change points.

use model::comparison::{ComparedCurves, ComparedUnit, Comparison, Trend, TrendNumber};
use model::result::CurvePoint;

use super::canvas::{Canvas, fitted, float, text_width};
use super::distribution::{stepped, ticks};
use super::plot::{Area, Plot, Sample, legend, y_labels_width};
use super::scale::{Scale, Tick, Unit};
use super::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};
use crate::compared::{called, show};
use crate::paint::clean;

/// Narrower than other charts: its letters are read on a telephone, too.
const WIDTH: f64 = 560.0;
/// Charts of one sort on a page.
const CHARTS_MAX: usize = 12;
/// Rows of ratios.
const RATIOS_MAX: usize = 24;
/// Ratios beyond this are drawn at the edge.
const RATIO_MAX: f64 = 10.0;

/// The charts of a comparison.
pub(crate) fn comparison(of: &Comparison) -> Vec<Figure> {
    let curves = of.curves.iter().take(CHARTS_MAX).enumerate();
    let curves = curves.filter_map(|(index, it)| curve(of, it, index));
    ratios(of).into_iter().chain(curves).collect()
}

/// Every ratio with its interval and the margin as a band.
fn ratios(of: &Comparison) -> Option<Figure> {
    const ROW: f64 = 22.0;
    let is_ratio = |it: &&model::comparison::ComparedNumber| {
        it.unit != ComparedUnit::FailedShare && it.effect.is_some()
    };
    let shown: Vec<_> = of.numbers.iter().filter(is_ratio).take(RATIOS_MAX).collect();
    let ends = shown.iter().flat_map(|it| [it.effect, it.low, it.high]).flatten();
    let far = ends.map(|it| it.max(1.0 / it)).fold(1.0 + 2.0 * of.margin, f64::max);
    let far = far.min(RATIO_MAX).ln() * 1.08;
    if shown.is_empty() {
        return None;
    }
    let label = |it: &model::comparison::ComparedNumber| match it.setting.as_str() {
        "" => clean(&it.name),
        setting => format!("{} at {}", clean(&it.name), clean(setting)),
    };
    let widest = shown.iter().map(|it| text_width(&label(it))).fold(0.0, f64::max).min(210.0);
    let height = ROW * float(shown.len());
    let area = Area { left: widest + 14.0, top: 10.0, width: WIDTH - widest - 28.0, height };
    let mut canvas = Canvas::new(WIDTH, height + 52.0);
    let plot = Plot::new(area, Scale::linear(-far, far), Scale::linear(0.0, 1.0));
    let at = |ratio: f64| plot.x.at(ratio.ln());
    let band = (at(1.0 / (1.0 + of.margin)), at(1.0 + of.margin));
    canvas.rect(band.0, area.top, band.1 - band.0, height, "fm wash");
    let places: [f64; 11] = [0.1, 0.2, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 2.0, 5.0, 10.0];
    let inside = places.into_iter().filter(|it| it.ln().abs() <= far);
    let ticks: Vec<Tick> =
        inside.map(|it| Tick { value: it.ln(), label: format!("×{it}") }).collect();
    plot.x_axis_with(&mut canvas, &ticks, "candidate ÷ baseline");
    canvas.line((at(1.0), area.top), (at(1.0), area.bottom()), "ax");
    let columns = [
        ("number", ColumnType::Text),
        ("ratio", ColumnType::Number),
        ("from", ColumnType::Number),
        ("to", ColumnType::Number),
    ];
    let mut table = FigureTable::new(&columns);
    for (row, number) in shown.iter().enumerate() {
        let y = area.top + ROW * (float(row) + 0.5);
        let class = match crate::compared::change_mark(number.change).1 {
            crate::paint::Paint::Bad => ("ln sbad", "fbad"),
            crate::paint::Paint::Good => ("ln sgood", "fgood"),
            crate::paint::Paint::Caution => ("ln swarn", "fwarn"),
            _ => ("ln sm", "fm"),
        };
        canvas.text(area.left - 8.0, y + 4.0, "e", &fitted(&label(number), widest));
        let low = number.low.map_or(area.left, at);
        let high = number.high.map_or(area.right(), at);
        canvas.line((low, y), (high, y), class.0);
        for end in [number.low.map(at), number.high.map(at)].into_iter().flatten() {
            canvas.line((end, y - 4.0), (end, y + 4.0), class.0);
        }
        canvas.mark((number.effect.map_or(area.left, at), y), 0, 4.0, class.1);
        let cell = |value: Option<f64>| {
            value.map_or_else(FigureCell::default, |it| FigureCell::real(it, format!("{it:.3}")))
        };
        let mut cells = vec![FigureCell::words(label(number))];
        cells.extend([number.effect, number.low, number.high].map(cell));
        table.rows.push(cells);
    }
    let description = "Each line is the interval of a ratio; the shaded band is the margin, in which a difference makes \
                       none. A line within it: equivalent. A line beyond ×1: better or worse. An interval without an end \
                       is open.";
    let meta = Meta::new(Section::Answer, "ratios", "What changed, by how much", description);
    Some(meta.figure(canvas, table))
}

/// Percentile curves of both sides on the same axes, a line a trial.
fn curve(of: &Comparison, curves: &ComparedCurves, index: usize) -> Option<Figure> {
    let all = || curves.baseline.iter().chain(&curves.candidate);
    let drawable = |curve: &[CurvePoint]| {
        let points = curve.iter().filter(|it| (0.0..=1.0).contains(&it.q));
        points.map(|it| CurvePoint { value_ns: it.value_ns.max(1), ..*it }).collect::<Vec<_>>()
    };
    #[expect(clippy::cast_precision_loss, reason = "a place in a chart")]
    let values = all().flatten().map(|it| it.value_ns.max(1) as f64);
    let y = Scale::log_around(values)?;
    // The last point of a curve is its largest value: as far right as the one before it, and a step more.
    let rest = |curve: &[CurvePoint], place: usize| {
        let own = 1.0 - curve[place].q;
        let known = curve.iter().map(|it| 1.0 - it.q).filter(|it| *it > 0.0);
        if own > 0.0 { own } else { known.fold(1.0, f64::min) / 2.0 }
    };
    let far = all()
        .filter(|it| !it.is_empty())
        .map(|it| -rest(it, it.len() - 1).log10())
        .fold(1.0, f64::max);
    let nines = far.clamp(1.0, 9.0);
    let height = 260.0;
    let left = y_labels_width(y, Unit::Ns, height);
    let area = Area { left, top: 46.0, width: WIDTH - left - 12.0, height };
    let mut canvas = Canvas::new(WIDTH, height + 94.0);
    let plot = Plot::new(area, Scale::linear(0.0, nines), y);
    plot.y_axis(&mut canvas, Unit::Ns, "response time");
    plot.x_axis_with(&mut canvas, &ticks(nines), "percentile");
    let columns = [
        ("side", ColumnType::Text),
        ("trial", ColumnType::Number),
        ("p50", ColumnType::Time),
        ("p99", ColumnType::Time),
        ("max", ColumnType::Time),
    ];
    let mut table = FigureTable::new(&columns);
    let sides = [
        (&of.baseline.label, &curves.baseline, "ln s0"),
        (&of.candidate.label, &curves.candidate, "ln s1 d1"),
    ];
    for (label, side, class) in sides {
        for (trial, curve) in side.iter().enumerate() {
            let points = drawable(curve);
            #[expect(clippy::cast_precision_loss, reason = "a place in a chart")]
            let places: Vec<(f64, f64)> = (0..points.len())
                .map(|at| plot.at(-rest(&points, at).log10(), points[at].value_ns as f64))
                .collect();
            let thin = if side.len() > 1 { " thin" } else { "" };
            canvas.polyline(&stepped(&places), &format!("{class}{thin}"));
            let value = |q: f64| points.iter().find(|it| it.q >= q).map(|it| it.value_ns);
            table.rows.push(vec![
                FigureCell::words(clean(label)),
                FigureCell::count(trial as u64 + 1),
                FigureCell::ns(value(0.5)),
                FigureCell::ns(value(0.99)),
                FigureCell::ns(points.last().map(|it| it.value_ns)),
            ]);
        }
    }
    let entries: Vec<(Sample, String)> = sides
        .iter()
        .map(|(label, _, class)| (Sample::Line((*class).to_owned()), clean(label)))
        .collect();
    legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
    let description = "Each step to the right is one more nine: how slow is the slowest 1 in 10, in 100, in 1,000. A line \
                       is a trial. Over those that reached the final stage.";
    let title = "Response time by percentile, both sides";
    let meta = Meta::new(Section::Distribution, &format!("both-{index}"), title, description);
    Some(meta.of(&clean(&curves.setting)).figure(canvas, table))
}

/// The charts of a history, one a number.
pub(crate) fn trend(of: &Trend) -> Vec<Figure> {
    let all = of.numbers.iter().take(CHARTS_MAX).enumerate();
    all.map(|(index, number)| history(of, number, index)).collect()
}

fn history(of: &Trend, number: &TrendNumber, index: usize) -> Figure {
    let height = 180.0;
    let known = || number.values.iter().flatten().copied();
    let y = Scale::from_zero(known());
    let unit = if number.unit == ComparedUnit::Ns { Unit::Ns } else { Unit::Number };
    let left = y_labels_width(y, unit, height);
    let area = Area { left, top: 24.0, width: WIDTH - left - 12.0, height };
    let mut canvas = Canvas::new(WIDTH, height + 66.0);
    let last = float(of.runs.len().max(2) - 1);
    let plot = Plot::new(area, Scale::linear(0.0, last), y);
    let title = if number.unit == ComparedUnit::PerSecond { "per second" } else { "" };
    plot.y_axis(&mut canvas, unit, title);
    // A run's day, or its minute where all are of one day (RFC 3339), as long as there is room.
    let of_text = |it: &model::comparison::TrendRun, skip: usize, length: usize| {
        it.started.chars().skip(skip).take(length).collect::<String>()
    };
    let one_day = of.runs.windows(2).all(|it| of_text(&it[0], 0, 10) == of_text(&it[1], 0, 10));
    let (skip, length) = if one_day { (11, 5) } else { (0, 10) };
    let ticks: Vec<Tick> = of
        .runs
        .iter()
        .enumerate()
        .map(|(place, run)| Tick { value: float(place), label: clean(&of_text(run, skip, length)) })
        .collect();
    let every = of.runs.len().div_ceil(6).max(1);
    let ticks: Vec<Tick> = ticks.into_iter().step_by(every).collect();
    plot.x_axis_with(&mut canvas, &ticks, "runs, by when they started");
    // The level of each stretch between change points.
    let mut starts = vec![0];
    starts.extend(number.changes.iter().map(|it| it.run));
    for (nth, start) in starts.iter().enumerate() {
        let change = number.changes.get(nth);
        let end = change.map_or(of.runs.len().saturating_sub(1), |it| it.run);
        let before = nth.checked_sub(1).and_then(|nth| number.changes.get(nth)).map(|it| it.to);
        if let Some(level) = change.map(|it| it.from).or(before) {
            let (from, to) = (plot.at(float(*start), level), plot.at(float(end), level));
            canvas.line(from, to, "ln s1");
        }
        if let Some(change) = change {
            let x = plot.x.at(float(change.run));
            canvas.line((x, area.top), (x, area.bottom()), "edge-fault");
        }
    }
    let columns =
        [("run", ColumnType::Text), ("started", ColumnType::Text), ("value", ColumnType::Number)];
    let mut table = FigureTable::new(&columns);
    for (place, (run, value)) in of.runs.iter().zip(&number.values).enumerate() {
        let Some(value) = value else { continue };
        let is_new = number.changes.iter().any(|it| it.run == place);
        let (class, radius) = if is_new { ("fbad", 4.5) } else { ("f0", 3.0) };
        canvas.mark(plot.at(float(place), *value), usize::from(is_new) * 3, radius, class);
        table.rows.push(vec![
            FigureCell::words(clean(&run.folder)),
            FigureCell::words(clean(&run.started)),
            FigureCell::real(*value, show(number, *value)),
        ]);
    }
    let description = "A dot is a run: its middle trial. The line is the median of a stretch; where it breaks the level \
                       changed.";
    let meta =
        Meta::new(Section::Answer, &format!("history-{index}"), &called(number), description);
    meta.figure(canvas, table)
}
