//! Events on the time axis: bands for warm-up, drain, steps and faults, ticks for moments. On every chart over time.

use model::picture::{BandKind, TrialPicture};

use crate::svg::canvas::{Canvas, fitted, float, text_width};
use crate::svg::plot::{Plot, Sample};

/// Bands and ticks are worth a pixel each; more are not seen.
const BANDS_MAX: usize = 200;

/// Rows for the names of faults, below that of steps. A fault whose name fits in none is in the table of faults.
const FAULT_ROWS: usize = 3;
/// From one row of names to the next, and the least between two names in one.
const ROW_HEIGHT: f64 = 12.0;
const ROW_GAP: f64 = 6.0;

/// Draws the bands behind a chart, with names where `is_named` and there is room.
pub(crate) fn draw(canvas: &mut Canvas, plot: &Plot, picture: &TrialPicture, is_named: bool) {
    let mut free_from = plot.area.left;
    let mut faults_free_from = [plot.area.left; FAULT_ROWS];
    for band in picture.bands.iter().take(BANDS_MAX) {
        let (from, to) = (plot.x.at(band.from_ns as f64), plot.x.at(band.to_ns as f64));
        let word = band.kind.word();
        let (top, bottom) = (plot.area.top, plot.area.bottom());
        canvas.rect(from, top, (to - from).max(1.0), bottom - top, &format!("band-{word}"));
        match band.kind {
            BandKind::Fault => {
                canvas.line((from, top), (from, bottom), "edge-fault");
                canvas.line((to, top), (to, bottom), "edge-fault");
            }
            BandKind::Step => canvas.line((from, top), (from, bottom), "edge-step"),
            BandKind::Warmup | BandKind::Drain => {}
        }
        // A fault's name may reach beyond its band, a step's must fit; warm-up and drain stand in the legend.
        let text = if band.label.is_empty() { word } else { band.label.as_str() };
        let room = match band.kind {
            BandKind::Fault => (plot.area.right() - from - 6.0).min(180.0),
            BandKind::Step => to - from - 6.0,
            BandKind::Warmup | BandKind::Drain => 0.0,
        };
        let text = fitted(text, room.max(0.0));
        if !is_named || room <= 20.0 || text.chars().count() <= 2 {
            continue;
        }
        let left = from + 3.0;
        let row = match band.kind {
            // Faults begin together and one soon after another: each name stands in a row that is free there.
            BandKind::Fault => faults_free_from.iter_mut().zip(2_u8..).find(|it| left >= *it.0),
            _ => Some((&mut free_from, 1)).filter(|it| left >= *it.0),
        };
        if let Some((free, row)) = row {
            canvas.text(left, top + f64::from(row) * ROW_HEIGHT - 2.0, "m h", &text);
            *free = left + text_width(&text) + ROW_GAP;
        }
    }
    moments(canvas, plot, picture);
}

/// A tick below the upper edge for each moment, one a pixel.
fn moments(canvas: &mut Canvas, plot: &Plot, picture: &TrialPicture) {
    let mut last = f64::NEG_INFINITY;
    let mut data = Vec::new();
    for moment in &picture.moments {
        let x = plot.x.at(moment.at_ns as f64);
        if x - last >= 1.0 && data.len() < BANDS_MAX {
            data.push(x);
            last = x;
        }
    }
    for x in data {
        canvas.line((x, plot.area.top - 5.0), (x, plot.area.top + 3.0), "ln thin si");
    }
}

/// Entries of a legend for what there is.
pub(crate) fn entries(picture: &TrialPicture) -> Vec<(Sample, String)> {
    let kinds = [BandKind::Warmup, BandKind::Drain, BandKind::Fault];
    let has = |kind: &BandKind| picture.bands.iter().any(|band| band.kind == *kind);
    let mut seen: Vec<(Sample, String)> = Vec::new();
    let quiet: Vec<&str> = kinds[..2].iter().filter(|kind| has(kind)).map(|k| k.word()).collect();
    if !quiet.is_empty() {
        seen.push((Sample::Box("band-warm-up".to_owned()), quiet.join(", ")));
    }
    if has(&BandKind::Fault) {
        seen.push((Sample::Box("band-fault edge-fault".to_owned()), "fault".to_owned()));
    }
    if !picture.moments.is_empty() {
        let text = if float(picture.moments.len()) > 1.0 { "moments" } else { "moment" };
        seen.push((Sample::Line("ln thin si".to_owned()), text.to_owned()));
    }
    seen
}
