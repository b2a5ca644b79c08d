//! A load in steps, a trial each: what became of all that was offered, step by step, and goodput against offered load on
//! the way up and on the way down.

use model::result::{RunResult, StepResult, StepsResult};

use super::SERIES_MAX;
use super::throughput::joined;
use crate::figures::failures;
use crate::paint::clean;
use crate::svg::canvas::{Canvas, float};
use crate::svg::plot::{Area, Places, Plot, Sample, WIDTH, legend, legend_height, y_labels_width};
use crate::svg::scale::{Scale, Tick, Unit};
use crate::svg::settings::{stem, trial_pointer};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};
use crate::tables;

/// Fill classes of failures, in the order of their classes.
const FILLS: [&str; 8] = ["fbad", "fwarn", "f3", "f6", "f5", "f7", "f1", "fm"];
const HEIGHT: f64 = 220.0;

/// A trial with steps.
struct Of<'a> {
    label: String,
    /// For the end of a file's name.
    stem: String,
    pointer: String,
    steps: &'a StepsResult,
}

/// Two charts a trial.
pub(crate) fn figures(result: &RunResult) -> Vec<Figure> {
    let shown = tables::shown(result);
    let is_alone = shown.len() < 2;
    let settings = result.settings.iter().enumerate();
    let pointers = settings.flat_map(|(index, setting)| {
        (0..setting.trials.len()).map(move |trial| trial_pointer(index, trial))
    });
    let with_steps =
        shown.iter().zip(pointers).enumerate().filter_map(|(index, (row, pointer))| {
            let steps = row.trial.steps.as_ref().filter(|it| !it.steps.is_empty())?;
            let label = if is_alone { String::new() } else { row.label.clone() };
            Some(Of { label, stem: format!("{index}-{}", stem(&row.label)), pointer, steps })
        });
    with_steps.take(SERIES_MAX).flat_map(|of| [stacked(&of), way(&of)]).collect()
}

/// The name of a step under its bar.
fn name(step: &StepResult, index: usize) -> String {
    match step.generators.or(step.clients) {
        Some(count) => model::quantity::show_count(count),
        None => (index + 1).to_string(),
    }
}

/// The unit that the names count.
fn counted(steps: &[StepResult]) -> &'static str {
    match steps.first().map(|step| (step.generators, step.clients)) {
        Some((Some(_), _)) => "generators, in the order of time",
        Some((None, Some(_))) => "clients, in the order of time",
        _ => "steps, in the order of time",
    }
}

fn classes(steps: &[StepResult]) -> Vec<String> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for (class, count) in steps.iter().flat_map(|step| failures(&step.counts)) {
        match sums.iter_mut().find(|(known, _)| *known == class) {
            Some((_, sum)) => *sum += count,
            None => sums.push((class, count)),
        }
    }
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sums.into_iter().map(|(class, _)| class).collect()
}

fn count_of(step: &StepResult, class: &str) -> u64 {
    failures(&step.counts).iter().find(|(known, _)| known == class).map_or(0, |(_, count)| *count)
}

fn stacked(of: &Of<'_>) -> Figure {
    let steps = &of.steps.steps;
    let classes = classes(steps);
    let y = Scale::from_zero(steps.iter().flat_map(|it| [it.offered_per_s, it.goodput_per_s]));
    let left = y_labels_width(y, Unit::Number, HEIGHT);
    let mut entries = vec![(Sample::Box("f2 half".to_owned()), "committed".to_owned())];
    for (index, class) in classes.iter().enumerate() {
        let fill = format!("{} half", FILLS[index.min(FILLS.len() - 1)]);
        entries.push((Sample::Box(fill), clean(class)));
    }
    entries.push((Sample::Line("ln si".to_owned()), "goodput".to_owned()));
    let top = legend_height(WIDTH - left, &entries) + 28.0;
    let mut canvas = Canvas::new(WIDTH, top + HEIGHT + 38.0);
    let area = Area { left, top, width: WIDTH - left - 12.0, height: HEIGHT };
    let plot = Plot::new(area, Scale::linear(0.0, float(steps.len())), y);
    plot.y_axis(&mut canvas, Unit::Number, "offered, per second");
    let width = area.width / float(steps.len());
    let gap = (width * 0.12).min(4.0);
    for (index, step) in steps.iter().enumerate() {
        let x = area.left + width * float(index) + gap;
        let mut from = 0.0;
        let mut layer = |count: u64, class: &str| {
            let due = step.counts.due.max(1);
            let to = from + step.offered_per_s * (count as f64 / due as f64);
            let (upper, lower) = (plot.y.at(to), plot.y.at(from));
            if lower - upper >= 0.3 {
                canvas.rect(x, upper, width - 2.0 * gap, lower - upper, class);
            }
            from = to;
        };
        layer(step.counts.committed, "f2 half");
        for (index, class) in classes.iter().enumerate() {
            let fill = format!("{} half", FILLS[index.min(FILLS.len() - 1)]);
            layer(count_of(step, class), &fill);
        }
        let goodput = plot.y.at(step.goodput_per_s);
        canvas.line((x - gap / 2.0, goodput), (x + width - 1.5 * gap, goodput), "ln si");
        if of.steps.knee == Some(index) {
            canvas.text(x + width / 2.0 - gap, area.top - 3.0, "b c", "knee");
        }
    }
    let ticks: Vec<Tick> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| Tick { value: float(index) + 0.5, label: name(step, index) })
        .collect();
    let bottom = area.bottom();
    canvas.line((area.left, bottom), (area.right(), bottom), "ax");
    let bare = Plot { area: Area { top: bottom, height: 0.0, ..area }, ..plot };
    bare.x_axis_with(&mut canvas, &ticks, counted(steps));
    legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
    Meta::new(
        Section::Saturation,
        &joined("steps", &of.stem),
        "What became of the offered load, step by step",
        "A bar is what was offered in a step, in the order of time, divided by what became of it. The black line is \
         goodput: what the system got through during the step, whenever that was due; the knee is the last step on the \
         way up that kept up.",
    )
    .of(&of.label)
    .figure(canvas, table(of, &classes))
}

fn table(of: &Of<'_>, classes: &[String]) -> FigureTable {
    let mut columns = vec![
        ("step", ColumnType::Text),
        ("offered/s", ColumnType::Number),
        ("goodput/s", ColumnType::Number),
        ("due", ColumnType::Number),
        ("committed", ColumnType::Number),
    ];
    columns.extend(classes.iter().map(|class| (class.as_str(), ColumnType::Number)));
    let mut table = FigureTable::new(&columns);
    for (index, step) in of.steps.steps.iter().enumerate() {
        let at = format!("{}/steps/steps/{index}", of.pointer);
        let mut row = vec![
            FigureCell::words(name(step, index)),
            FigureCell::per_s(step.offered_per_s).at(format!("{at}/offered_per_s")),
            FigureCell::per_s(step.goodput_per_s).at(format!("{at}/goodput_per_s")),
            FigureCell::count(step.counts.due).at(format!("{at}/counts/due")),
            FigureCell::count(step.counts.committed).at(format!("{at}/counts/committed")),
        ];
        for class in classes {
            let count = count_of(step, class);
            let pointer = tables::class_pointer(&step.counts, class, &format!("{at}/counts"));
            row.push(match (count, pointer) {
                (0, None) => FigureCell::words("0"),
                (_, None) => FigureCell::words(model::quantity::show_count(count)),
                (_, Some(pointer)) => FigureCell::count(count).at(pointer),
            });
        }
        table.rows.push(row);
    }
    table
}

/// Goodput against offered load: the way up, and the way down.
fn way(of: &Of<'_>) -> Figure {
    let steps = &of.steps.steps;
    let x = Scale::from_zero(steps.iter().map(|step| step.offered_per_s));
    let y = Scale::from_zero(steps.iter().flat_map(|it| [it.offered_per_s, it.goodput_per_s]));
    let left = y_labels_width(y, Unit::Number, HEIGHT);
    let area = Area { left, top: 46.0, width: WIDTH - left - 12.0, height: HEIGHT };
    let mut canvas = Canvas::new(WIDTH, 46.0 + HEIGHT + 38.0);
    let plot = Plot::new(area, x, y);
    plot.y_axis(&mut canvas, Unit::Number, "goodput, per second");
    plot.x_axis(&mut canvas, Unit::Number, "offered, per second");
    let end = x.high().min(y.high());
    canvas.line(plot.at(0.0, 0.0), plot.at(end, end), "ln thin sm d2");
    let highest = |a: &usize, b: &usize| {
        steps[*a].offered_per_s.total_cmp(&steps[*b].offered_per_s).then(b.cmp(a))
    };
    let top = (0..steps.len()).max_by(highest).unwrap_or(0);
    let at = |index: usize| plot.at(steps[index].offered_per_s, steps[index].goodput_per_s);
    let points = |range: std::ops::RangeInclusive<usize>| range.map(at).collect::<Vec<_>>();
    let has_way_down = top + 1 < steps.len();
    canvas.polyline(&points(0..=top), "ln s2");
    if has_way_down {
        canvas.polyline(&points(top..=steps.len() - 1), "ln s1 d1");
    }
    let mut places = Places::default();
    (0..steps.len()).for_each(|index| places.take_point(at(index)));
    for (index, step) in steps.iter().enumerate() {
        let is_down = index > top;
        let (shape, class) = if is_down { (3, "f1") } else { (0, "f2") };
        canvas.mark(at(index), shape, 3.8, class);
        let name = name(step, index);
        if of.steps.knee == Some(index) {
            canvas.mark(at(index), 0, 8.0, "none ln si");
            places.take_ring(at(index));
            places.label(&mut canvas, area, at(index), "b", &format!("{name} · knee"));
        } else {
            places.label(&mut canvas, area, at(index), "", &name);
        }
    }
    let mut entries = vec![
        (Sample::Line("ln s2".to_owned()), "up to the highest load".to_owned()),
        (Sample::Line("ln thin sm d2".to_owned()), "all of it".to_owned()),
    ];
    if has_way_down {
        entries.insert(1, (Sample::Line("ln s1 d1".to_owned()), "and back".to_owned()));
    }
    legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
    let mut table = FigureTable::new(&[
        ("step", ColumnType::Text),
        ("offered/s", ColumnType::Number),
        ("goodput/s", ColumnType::Number),
    ]);
    for (index, step) in steps.iter().enumerate() {
        let at = format!("{}/steps/steps/{index}", of.pointer);
        table.rows.push(vec![
            FigureCell::words(name(step, index)),
            FigureCell::per_s(step.offered_per_s).at(format!("{at}/offered_per_s")),
            FigureCell::per_s(step.goodput_per_s).at(format!("{at}/goodput_per_s")),
        ]);
    }
    Meta::new(
        Section::Saturation,
        &joined("steps-way", &of.stem),
        "Goodput against offered load, up and back",
        "A point a step, joined in the order of time. Where the way back lies below the way up, what was left over of the \
         overload still costs. On the dotted line all that was offered came through. The ring is the knee.",
    )
    .of(&of.label)
    .figure(canvas, table)
}
