//! The two charts of the first screen of a matrix: goodput and response time against offered load, side by side.
//!
//! Nothing is judged here: knee and limit stand in the result. Response times are of all that were due, as thresholds and the
//! tables beside it mean them: those of the survivors alone would look fast where most were never answered.

use model::result::{Quantile, RunResult};

use super::{Limit, latency_limits};
use crate::figures::{is_thin_of_all_due, unconditional};
use crate::svg::canvas::{Canvas, text_width};
use crate::svg::plot::{Area, Places, Plot, dashed_class, end_labels, say_empty, y_labels_width};
use crate::svg::scale::{Scale, Unit};
use crate::svg::settings::{Series, Shown, load_series, quantile};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};

/// Half of a wide page.
const WIDTH: f64 = 596.0;
const HEIGHT: f64 = 262.0;
const TOP: f64 = 22.0;
/// Series that are drawn: more lines tell nothing at a glance.
const LINES_MAX: usize = 6;

/// Both charts; none if no settings differ by their load alone.
pub(crate) fn figures(result: &RunResult) -> Vec<Figure> {
    let mut series = load_series(result);
    if series.is_empty() {
        return Vec::new();
    }
    let left_out = series.len().saturating_sub(LINES_MAX);
    series.truncate(LINES_MAX);
    let note = match left_out {
        0 => String::new(),
        _ => format!(" {left_out} further series are left out."),
    };
    vec![goodput(&series, &note), response(&series, result, &note)]
}

fn offered(it: &Shown<'_>) -> f64 {
    it.trial().rates.offered_per_s
}

/// A percentile of all that were due, with its place; none where nothing was.
fn of_due<'a>(it: &Shown<'a>, name: &str) -> Option<(String, &'a Quantile)> {
    let (pointer, q) = quantile(it, name).filter(|_| it.trial().counts.due > 0)?;
    Some((format!("{}/unconditional_ns", pointer.strip_suffix("/value_ns")?), q))
}

/// Its value, which may be infinite: a scale has that at its end.
fn value(it: &Shown<'_>, name: &str) -> Option<f64> {
    let (_, q) = of_due(it, name)?;
    Some(q.unconditional_ns.map_or(f64::INFINITY, |ns| ns as f64))
}

/// The same as a cell.
fn cell(it: &Shown<'_>, name: &str) -> FigureCell {
    match of_due(it, name) {
        None => FigureCell::ns(None),
        Some((_, q)) if q.unconditional_ns.is_none() => FigureCell::words(unconditional(q)),
        Some((pointer, q)) => {
            FigureCell::ns(q.unconditional_ns).at(pointer).greyed(is_thin_of_all_due(q))
        }
    }
}

fn area(left: f64, right: f64) -> Area {
    Area { left, top: TOP, width: WIDTH - left - right, height: HEIGHT - TOP - 36.0 }
}

/// Room at the right for the names of lines; none for one series.
fn names_width(series: &[Series<'_>]) -> f64 {
    if series.len() < 2 {
        return 10.0;
    }
    let widest = series.iter().map(|it| text_width(&it.name)).fold(0.0, f64::max);
    widest.min(170.0) + 20.0
}

fn goodput(series: &[Series<'_>], note: &str) -> Figure {
    let all = || series.iter().flat_map(|it| &it.points).map(|(it, _)| it.trial());
    let x = Scale::from_zero(all().map(|it| it.rates.offered_per_s));
    let y = Scale::from_zero(all().flat_map(|it| [it.rates.offered_per_s, it.rates.goodput_per_s]));
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let left = y_labels_width(y, Unit::Number, HEIGHT - TOP - 36.0);
    let area = area(left, names_width(series));
    let plot = Plot::new(area, x, y);
    plot.y_axis(&mut canvas, Unit::Number, "per second");
    plot.x_axis(&mut canvas, Unit::Number, "offered, per second");
    let mut places = Places::default();
    if let [only] = series {
        lost(&mut canvas, &plot, only);
    }
    let end = x.high().min(y.high());
    canvas.line(plot.at(0.0, 0.0), plot.at(end, end), "ln thin sm d1");
    places.take_line(plot.at(0.0, 0.0), plot.at(end, end));
    let at = |it: &Shown<'_>| plot.at(offered(it), it.trial().rates.goodput_per_s);
    let mut ends = Vec::new();
    for (line, series) in series.iter().enumerate() {
        let points: Vec<(f64, f64)> = series.points.iter().map(|(it, _)| at(it)).collect();
        let origin = (line == 0 && points.len() < 6).then(|| plot.at(0.0, 0.0));
        let path: Vec<_> = origin.into_iter().chain(points.iter().copied()).collect();
        canvas.polyline(&path, &dashed_class(line));
        path.windows(2).for_each(|pair| places.take_line(pair[0], pair[1]));
        for point in &points {
            canvas.mark(*point, line, 3.8, &format!("f{line}"));
            places.take_point(*point);
        }
        if let Some(knee) = series.knee {
            canvas.mark(points[knee], 0, 8.0, "none ln si");
            places.take_ring(points[knee]);
        }
        if let Some(last) = points.last() {
            ends.push((*last, series.name.clone(), format!("s{line}")));
        }
    }
    if let [only] = series {
        label_limit(&mut canvas, &mut places, &plot, only);
    } else {
        end_labels(&mut canvas, area, names_width(series), ends);
    }
    places.label(&mut canvas, area, plot.at(end * 0.72, end * 0.72), "m", "all that was offered");
    Meta::new(
        Section::Answer,
        "answer-goodput",
        "Goodput against offered load",
        &format!(
            "Goodput against offered load, each setting by its middle trial. On the dashed line all of it did; \
             what is missing below it is shaded. The ring is the last setting that kept up.{note}"
        ),
    )
    .figure(canvas, table(series))
}

/// The losses.
fn lost(canvas: &mut Canvas, plot: &Plot, series: &Series<'_>) {
    let from = series.knee.or_else(|| series.limit.map(|_| 0)).unwrap_or(usize::MAX);
    let points: Vec<&Shown<'_>> = series.points.iter().skip(from).map(|(it, _)| it).collect();
    let below = points.iter().map(|it| plot.at(offered(it), it.trial().rates.goodput_per_s));
    let above = points.iter().rev().map(|it| plot.at(offered(it), offered(it)));
    canvas.area(&below.chain(above).collect::<Vec<_>>(), "fwarn wash");
}

/// Where the limit lies, and how much is missing beyond it.
fn label_limit(canvas: &mut Canvas, places: &mut Places, plot: &Plot, series: &Series<'_>) {
    let at = |place: usize| {
        let it = &series.points[place].0;
        plot.at(offered(it), it.trial().rates.goodput_per_s)
    };
    for (it, _) in series.points.iter().skip(series.limit.unwrap_or(usize::MAX)) {
        let rates = &it.trial().rates;
        let missing = 1.0 - rates.goodput_per_s / rates.offered_per_s;
        if missing.is_finite() && missing >= 0.01 {
            let text = format!("−{:.0}%", missing * 100.0);
            places.label(canvas, plot.area, at_of(plot, it), "b", &text);
        }
    }
    if let Some(knee) = series.knee {
        let label = |place: usize| series.points[place].1.clone();
        let text = match series.limit {
            Some(limit) => format!("limit between {} and {}", label(knee), label(limit)),
            None => label(knee),
        };
        places.label(canvas, plot.area, at(knee), "b", &text);
    } else if series.limit.is_none() {
        let last = series.points.len() - 1;
        places.label(canvas, plot.area, at(last), "b", "limit not reached");
    }
}

fn at_of(plot: &Plot, it: &Shown<'_>) -> (f64, f64) {
    plot.at(offered(it), it.trial().rates.goodput_per_s)
}

fn response(series: &[Series<'_>], result: &RunResult, note: &str) -> Figure {
    let is_one = series.len() == 1;
    let names: &[&str] = if is_one { &["p50", "p99"] } else { &["p99"] };
    let all = || series.iter().flat_map(|it| &it.points).map(|(it, _)| it);
    let x = Scale::from_zero(all().map(offered));
    let values: Vec<f64> =
        all().flat_map(|it| names.iter().filter_map(|name| value(it, name))).collect();
    let limits = latency_limits(result);
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    // As far away as that a line says nothing, and would press the others together.
    let near = |limit: &&Limit| {
        let (high, low) = (finite().fold(0.0, f64::max), finite().fold(f64::INFINITY, f64::min));
        limit.value < high * 30.0 && limit.value > low / 30.0
    };
    let limits_near: Vec<&Limit> = limits.iter().filter(near).collect();
    let far = match limits.len() - limits_near.len() {
        0 => String::new(),
        far => format!(" {far} threshold(s) lie far outside and are not drawn."),
    };
    let y = Scale::log_around(finite().chain(limits_near.iter().map(|it| it.value)));
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let left = y.map_or(50.0, |y| y_labels_width(y, Unit::Ns, HEIGHT - TOP - 36.0));
    let room = if is_one { 92.0 } else { names_width(series) };
    let area = area(left, room);
    match y {
        None => say_empty(&mut canvas, area, "no setting has a response time"),
        Some(y) => {
            let plot = Plot::new(area, x, y);
            if let [only] = series {
                beyond(&mut canvas, &plot, only);
                band(&mut canvas, &plot, only);
            }
            plot.y_axis(&mut canvas, Unit::Ns, if is_one { "" } else { "p99" });
            plot.x_axis(&mut canvas, Unit::Number, "offered, per second");
            let mut places = Places::default();
            for limit in limits_near {
                let at = plot.y.at(limit.value);
                canvas.line((area.left, at), (area.right(), at), "ln thin sbad d1");
                canvas.text(area.left + 4.0, at - 4.0, "h", &limit.text);
                let width = text_width(&limit.text) + 8.0;
                for y in [at - 12.0, at - 8.0, at - 4.0] {
                    places.take_line((area.left, y), (area.left + width, y));
                }
            }
            let mut ends = Vec::new();
            for (place, series) in series.iter().enumerate() {
                for (index, name) in names.iter().enumerate() {
                    let line = if is_one { index } else { place };
                    ends.extend(draw_line(&mut canvas, &plot, series, (line, name), is_one));
                }
            }
            label_infinite(&mut canvas, &mut places, &plot, all(), names);
            end_labels(&mut canvas, area, room, ends);
        }
    }
    let interval = if is_one { " The band is the 95% interval of p99." } else { "" };
    Meta::new(
        Section::Answer,
        "answer-response",
        "Response time against offered load",
        &format!(
            "{} of each setting's response time over all that were due (its middle trial), logarithmic; at the top edge \
             where it is infinite (inf).{interval} A hollow mark rests on fewer than ten samples; dashed lines are \
             thresholds.{far}{note}",
            names.join(" and ")
        ),
    )
    .figure(canvas, table(series))
}

/// The end of a line: its place, what it is called, and its class.
type End = ((f64, f64), String, String);

fn draw_line(
    canvas: &mut Canvas,
    plot: &Plot,
    series: &Series<'_>,
    (line, name): (usize, &str),
    is_one: bool,
) -> Option<End> {
    let at = |it: &Shown<'_>| Some(plot.at(offered(it), value(it, name)?));
    canvas.broken_line(series.points.iter().map(|(it, _)| at(it)), &dashed_class(line));
    for (it, _) in &series.points {
        let Some(place) = at(it) else { continue };
        let few = of_due(it, name).is_some_and(|(_, q)| is_thin_of_all_due(q));
        let class = if few { format!("hollow s{line}") } else { format!("f{line}") };
        canvas.mark(place, line, 3.4, &class);
    }
    let (last, _) = series.points.iter().rev().find(|(it, _)| value(it, name).is_some())?;
    let text = match is_one {
        true => format!("{name} {}", unconditional(of_due(last, name)?.1)),
        false => series.name.clone(),
    };
    Some((at(last)?, text, format!("s{line}")))
}

/// Names the points at the top edge for what they are, once where several lines meet.
fn label_infinite<'a>(
    canvas: &mut Canvas,
    places: &mut Places,
    plot: &Plot,
    all: impl Iterator<Item = &'a Shown<'a>>,
    names: &[&str],
) {
    let is_infinite =
        |it: &&Shown<'_>| names.iter().any(|name| value(it, name).is_some_and(f64::is_infinite));
    let mut at: Vec<f64> = all.filter(is_infinite).map(|it| plot.x.at(offered(it))).collect();
    at.sort_by(f64::total_cmp);
    at.dedup_by(|x, before| *x - *before < 2.0);
    for x in at {
        places.take_point((x, plot.area.top));
        places.label(canvas, plot.area, (x, plot.area.top), "", "inf");
    }
}

/// The region beyond the knee.
fn beyond(canvas: &mut Canvas, plot: &Plot, series: &Series<'_>) {
    let Some(knee) = series.knee else { return };
    let x = plot.x.at(offered(&series.points[knee].0));
    let (top, room) = (plot.area.top, plot.area.right() - x);
    canvas.rect(x, top, room, plot.area.height, "fwarn wash");
    let text = "beyond the limit";
    if text_width(text) + 8.0 < room {
        canvas.text(x + 4.0, plot.area.bottom() - 6.0, "h m", text);
    }
}

/// The interval of p99; where an end is open, the value itself.
fn band(canvas: &mut Canvas, plot: &Plot, series: &Series<'_>) {
    let ends: Vec<(f64, f64, f64)> = series
        .points
        .iter()
        .filter_map(|(it, _)| {
            let (_, q) = of_due(it, "p99")?;
            let middle = value(it, "p99")?;
            let of = |end: Option<i64>| end.map_or(middle, |ns| ns as f64);
            Some((offered(it), of(q.due_low_ns), of(q.due_high_ns)))
        })
        .collect();
    let low = ends.iter().map(|(x, low, _)| plot.at(*x, *low));
    let high = ends.iter().rev().map(|(x, _, high)| plot.at(*x, *high));
    canvas.area(&low.chain(high).collect::<Vec<_>>(), "f1 wash");
    if ends.len() > 1 {
        let (left, bottom) = (plot.area.left + 4.0, plot.area.bottom() - 6.0);
        canvas.text(left, bottom, "h m", "shaded: 95% interval of p99");
    }
}

fn table(series: &[Series<'_>]) -> FigureTable {
    let mut columns = vec![("setting", ColumnType::Text)];
    if series.len() > 1 {
        columns.insert(0, ("series", ColumnType::Text));
    }
    columns.extend([("offered/s", ColumnType::Number), ("goodput/s", ColumnType::Number)]);
    columns.extend([("p50", ColumnType::Time), ("p99", ColumnType::Time)]);
    let mut table = FigureTable::new(&columns);
    for of in series {
        for (it, label) in &of.points {
            let rates = &it.trial().rates;
            let at = it.pointer();
            let mut row = Vec::new();
            if series.len() > 1 {
                row.push(FigureCell::words(of.name.clone()));
            }
            row.push(FigureCell::words(label.clone()));
            for (per_s, key) in
                [(rates.offered_per_s, "offered_per_s"), (rates.goodput_per_s, "goodput_per_s")]
            {
                row.push(FigureCell::per_s(per_s).at(format!("{at}/rates/{key}")));
            }
            row.extend(["p50", "p99"].map(|name| cell(it, name)));
            table.rows.push(row);
        }
    }
    table
}
