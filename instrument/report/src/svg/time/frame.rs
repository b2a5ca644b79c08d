//! A chart over the trial's time, as wide as the page: its legend, its bands and its axes.

use super::columns::Columns;
use super::{Trial, bands};
use crate::svg::canvas::Canvas;
use crate::svg::plot::{
    Area, Plot, Sample, WIDTH, legend, legend_height, say_empty, y_labels_width,
};
use crate::svg::scale::{Scale, Unit};

/// The chart without its lines.
pub(super) struct Frame<'a> {
    pub(super) height: f64,
    /// Absent: there is nothing to draw.
    pub(super) y: Option<Scale>,
    pub(super) unit: Unit,
    /// Stands above the axis.
    pub(super) title: &'a str,
    /// Stands in place of the lines where there is nothing to draw.
    pub(super) empty: &'a str,
    /// The lines' part of the legend.
    pub(super) entries: Vec<(Sample, String)>,
    pub(super) names_bands: bool,
}

impl Frame<'_> {
    /// One with nothing in its legend, of which only the axes are known.
    pub(super) const fn of(height: f64, y: Option<Scale>, unit: Unit) -> Self {
        let empty = "nothing was measured";
        Self { height, y, unit, title: "", empty, entries: Vec::new(), names_bands: false }
    }

    /// Draws it, with what `lines` draws inside.
    pub(super) fn draw(
        self,
        of: &Trial<'_>,
        columns: &Columns,
        lines: impl FnOnce(&mut Canvas, &Plot),
    ) -> Canvas {
        let Self { height, y, unit, title, empty, mut entries, names_bands } = self;
        let left = y.map_or(50.0, |y| y_labels_width(y, unit, height));
        entries.extend(bands::entries(of.picture));
        let title_height = if title.is_empty() { 14.0 } else { 28.0 };
        let top = legend_height(WIDTH - left, &entries) + title_height;
        let mut canvas = Canvas::new(WIDTH, top + height + 38.0);
        let area = Area { left, top, width: WIDTH - left - 12.0, height };
        match y {
            None => say_empty(&mut canvas, area, empty),
            Some(y) => {
                let plot = Plot::new(area, columns.scale(), y);
                bands::draw(&mut canvas, &plot, of.picture, names_bands);
                plot.y_axis(&mut canvas, unit, title);
                plot.x_axis(&mut canvas, Unit::Clock, "time since the trial's start");
                lines(&mut canvas, &plot);
            }
        }
        legend(&mut canvas, left, 0.0, WIDTH - left, &entries);
        canvas
    }
}
