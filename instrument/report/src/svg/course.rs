//! A curve as small as a word, for a row of a table.

use super::canvas::{Canvas, Inline, float};

const WIDTH: f64 = 132.0;
const HEIGHT: f64 = 24.0;
/// Half the width of the line, which lies inside.
const EDGE: f64 = 2.0;

/// The curve of values on a logarithmic scale from one positive number to another, with a label for those who do not
/// see it.
pub(crate) fn course(values: &[Option<f64>], (low, high): (f64, f64), label: &str) -> Inline {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let span = (high / low).ln();
    let step = (WIDTH - 2.0 * EDGE) / float(values.len().saturating_sub(1).max(1));
    let points = values.iter().enumerate().map(|(index, value)| {
        let share = (value.filter(|it| *it > 0.0)? / low).ln() / span;
        let y = HEIGHT - EDGE - share.clamp(0.0, 1.0) * (HEIGHT - 2.0 * EDGE);
        Some((EDGE + step * float(index), y))
    });
    canvas.broken_line(points, "ln s1");
    canvas.small("course", label)
}
