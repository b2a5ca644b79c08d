//! The frame of a chart: axes with ticks and titles, legends, and labels that do not lie on each other.

use super::canvas::{Canvas, fitted, float, text_width};
use super::scale::{Scale, Tick, Unit};

/// Width of a chart that fills the column of the page.
pub(crate) const WIDTH: f64 = 720.0;

/// Least distance between labels of a vertical axis.
const APART_Y: f64 = 28.0;
/// Least distance between labels of a horizontal axis.
const APART_X: f64 = 60.0;

/// Where a chart lies on its canvas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    pub(crate) const fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) const fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// An area with its two scales.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plot {
    pub(crate) area: Area,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl Plot {
    pub(crate) fn new(area: Area, x: Scale, y: Scale) -> Self {
        Self { area, x: x.over(area.left, area.right()), y: y.over(area.bottom(), area.top) }
    }

    /// The place of a pair of numbers.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Horizontal grid lines with their labels on the left, and what they are of above them.
    pub(crate) fn y_axis(&self, canvas: &mut Canvas, unit: Unit, title: &str) {
        let ticks = self.y.ticks(unit, APART_Y);
        for tick in ticks.iter().filter(|tick| tick.label.is_empty()) {
            let y = self.y.at(tick.value);
            canvas.line((self.area.left, y), (self.area.right(), y), "gm");
        }
        for tick in ticks.iter().filter(|tick| !tick.label.is_empty()) {
            let y = self.y.at(tick.value);
            canvas.line((self.area.left, y), (self.area.right(), y), "g");
            canvas.text(self.area.left - 6.0, y + 4.0, "m e", &tick.label);
        }
        if !title.is_empty() {
            canvas.text(self.area.left - 6.0, self.area.top - 9.0, "m", title);
        }
    }

    /// Ticks of the horizontal axis of numbers.
    pub(crate) fn x_axis(&self, canvas: &mut Canvas, unit: Unit, title: &str) {
        self.x_axis_with(canvas, &self.x.ticks(unit, APART_X), title);
    }

    /// The horizontal axis with given ticks; a label that would lie on its neighbour is left out.
    pub(crate) fn x_axis_with(&self, canvas: &mut Canvas, ticks: &[Tick], title: &str) {
        let bottom = self.area.bottom();
        let mut free_from = f64::NEG_INFINITY;
        for tick in ticks {
            let x = self.x.at(tick.value);
            canvas.line(
                (x, self.area.top),
                (x, bottom),
                if tick.label.is_empty() { "gm" } else { "g" },
            );
            let half = text_width(&tick.label) / 2.0;
            // A label at the right end is moved in, as far as it would be cut off.
            let middle = x.min(canvas.width - half);
            if !tick.label.is_empty() && middle - half >= free_from {
                canvas.text(middle, bottom + 16.0, "m c", &tick.label);
                free_from = middle + half + 8.0;
            }
        }
        canvas.line((self.area.left, bottom), (self.area.right(), bottom), "ax");
        if !title.is_empty() {
            canvas.text(self.area.right(), bottom + 33.0, "m e", title);
        }
    }
}

/// Width that the labels of a vertical axis need.
#[must_use]
pub(crate) fn y_labels_width(scale: Scale, unit: Unit, height: f64) -> f64 {
    let ticks = scale.over(height, 0.0).ticks(unit, APART_Y);
    let widest = ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
    (widest + 12.0).max(36.0)
}

/// How an entry of a legend looks.
#[derive(Clone, Debug)]
pub(crate) enum Sample {
    /// A line of this class.
    Line(String),
    /// A filled box of this class.
    Box(String),
    /// A mark of this shape and class.
    Mark(usize, String),
}

/// Writes a legend from the left, in as many rows as it takes, and returns its height.
pub(crate) fn legend(
    canvas: &mut Canvas,
    left: f64,
    top: f64,
    width: f64,
    entries: &[(Sample, String)],
) -> f64 {
    const ROW: f64 = 17.0;
    let (mut x, mut y) = (left, top + 11.0);
    for (sample, text) in entries {
        let text = fitted(text, width - 34.0);
        let needs = 26.0 + text_width(&text) + 14.0;
        if x > left && x + needs - 14.0 > left + width {
            x = left;
            y += ROW;
        }
        match sample {
            Sample::Line(class) => canvas.line((x, y - 4.0), (x + 20.0, y - 4.0), class),
            Sample::Box(class) => canvas.rect(x + 4.0, y - 9.0, 14.0, 10.0, class),
            Sample::Mark(shape, class) => canvas.mark((x + 11.0, y - 4.0), *shape, 4.0, class),
        }
        canvas.text(x + 26.0, y, "", &text);
        x += needs;
    }
    if entries.is_empty() { 0.0 } else { y - top + 6.0 }
}

/// Height that [`legend`] will take.
#[must_use]
pub(crate) fn legend_height(width: f64, entries: &[(Sample, String)]) -> f64 {
    legend(&mut Canvas::new(0.0, 0.0), 0.0, 0.0, width, entries)
}

/// Labels beside the right ends of lines: moved apart, never on each other, in the order of their lines.
pub(crate) fn end_labels(
    canvas: &mut Canvas,
    area: Area,
    room: f64,
    mut ends: Vec<((f64, f64), String, String)>,
) {
    const APART: f64 = 13.5;
    ends.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
    let mut places: Vec<f64> = ends.iter().map(|end| end.0.1).collect();
    for index in 1..places.len() {
        places[index] = places[index].max(places[index - 1] + APART);
    }
    // Back from the bottom, if they ran out of the area.
    let mut floor = area.bottom();
    for place in places.iter_mut().rev() {
        *place = place.min(floor);
        floor = *place - APART;
    }
    for (((x, y), text, class), place) in ends.into_iter().zip(places) {
        let from = area.right() + 14.0;
        canvas.polyline(
            &[(x, y), (area.right() + 3.0, y), (from - 2.0, place)],
            &format!("ln thin few {class}"),
        );
        canvas.text(from + 1.0, place + 4.0, "", &fitted(&text, room - 16.0));
    }
}

/// Places for labels beside points, none on another or on a point.
#[derive(Default)]
pub(crate) struct Places {
    taken: Vec<(f64, f64, f64, f64)>,
}

impl Places {
    /// Keeps labels away from a point.
    pub(crate) fn take_point(&mut self, (x, y): (f64, f64)) {
        self.taken.push((x - 4.0, y - 4.0, x + 4.0, y + 4.0));
    }

    /// Keeps labels away from the ring around a point.
    pub(crate) fn take_ring(&mut self, (x, y): (f64, f64)) {
        self.taken.push((x - 9.0, y - 9.0, x + 9.0, y + 9.0));
    }

    /// Keeps labels away from a line.
    pub(crate) fn take_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        // Small frames along it: enough that no label of twelve pixels lies across it.
        for step in 0..=100 {
            let share = f64::from(step) / 100.0;
            let x = from.0 + share * (to.0 - from.0);
            let y = from.1 + share * (to.1 - from.1);
            self.taken.push((x - 1.0, y - 1.0, x + 1.0, y + 1.0));
        }
    }

    /// Writes a label near a point where there is room for it, and says whether there was.
    pub(crate) fn label(
        &mut self,
        canvas: &mut Canvas,
        area: Area,
        (x, y): (f64, f64),
        class: &str,
        text: &str,
    ) -> bool {
        let width = text_width(text);
        let half = width / 2.0;
        let tries = [
            (x - half, y - 13.0),
            (x - width - 12.0, y + 2.0),
            (x - half, y - 8.0),
            (x + 8.0, y + 4.0),
            (x - width - 8.0, y + 4.0),
            (x - half, y + 17.0),
            (x + 6.0, y - 8.0),
            (x - width - 6.0, y - 8.0),
            (x + 6.0, y + 16.0),
            (x - width - 6.0, y + 16.0),
            (x - half, y - 20.0),
            (x + 12.0, y - 20.0),
            (x - width - 12.0, y - 20.0),
            (x - half, y + 29.0),
        ];
        for (left, base) in tries {
            let frame = (left - 1.0, base - 10.0, left + width + 1.0, base + 2.0);
            let is_inside = frame.0 >= area.left - 2.0
                && frame.2 <= area.right() + 2.0
                && frame.1 >= area.top - 4.0
                && frame.3 <= area.bottom();
            let is_free = self.taken.iter().all(|other| {
                frame.2 <= other.0 || frame.0 >= other.2 || frame.3 <= other.1 || frame.1 >= other.3
            });
            if is_inside && is_free {
                self.taken.push(frame);
                canvas.text(left, base, &format!("h {class}"), text);
                return true;
            }
        }
        false
    }
}

/// Stroke class of the nth line: eight colours, then dashed, so that no two look the same.
#[must_use]
pub(crate) fn line_class(index: usize) -> String {
    let dash = match index / 8 {
        0 => "",
        1 => " d1",
        2 => " d2",
        _ => " d3",
    };
    format!("ln s{}{dash}", index % 8)
}

/// Stroke class of the nth of a few lines, each with a dash of its own.
#[must_use]
pub(crate) fn dashed_class(index: usize) -> String {
    let dash = ["", " d1", " d2", " d3"][index % 4];
    format!("ln s{}{dash}", index % 8)
}

/// Says in the middle of an area why it is empty.
pub(crate) fn say_empty(canvas: &mut Canvas, area: Area, text: &str) {
    let middle = (area.left + area.width / 2.0, area.top + area.height / 2.0);
    canvas.text(middle.0, middle.1, "m c", text);
}

/// A row of small areas: the nth of `count` in `across` columns.
#[must_use]
pub(crate) fn cell(index: usize, across: usize, outer: Area, row_height: f64, gap: f64) -> Area {
    let width = (outer.width - gap * float(across - 1)) / float(across);
    let (row, column) = (index / across, index % across);
    Area {
        left: outer.left + float(column) * (width + gap),
        top: outer.top + float(row) * row_height,
        width,
        height: row_height,
    }
}
