//! Where did a transaction spend its time? A few of those whose spans the nodes stamped, a line each: from due to the end
//! that the client saw, and in it the time in each stage of each node.

use model::picture::Trace;
use model::quantity::show_ns;
use model::{NO_STAMP, Stamp};

use super::Trial;
use crate::paint::clean;
use crate::svg::canvas::{Canvas, fitted, float};
use crate::svg::plot::{Area, Plot, Sample, WIDTH, legend, legend_height};
use crate::svg::scale::{Scale, Unit};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Section};

/// From one line to the next.
const LINE_HEIGHT: f64 = 16.0;
/// Room for a transaction's number.
const LABEL_WIDTH: f64 = 92.0;
/// Room for how long it took.
const LENGTH_WIDTH: f64 = 66.0;
/// The most spans in the table.
const ROWS_MAX: usize = 200;

/// The chart, if there are traces.
pub(super) fn figure(of: &Trial<'_>) -> Option<Figure> {
    let traces = &of.picture.traces;
    if traces.is_empty() {
        return None;
    }
    let names: Vec<&str> = of
        .result
        .node_stages
        .iter()
        .flat_map(|all| all.stages.iter().map(|stage| stage.stage.as_str()))
        .collect();
    let after = |trace: &Trace, stamp: Stamp| stamp.saturating_sub(origin(trace)) as f64;
    let ends = traces.iter().map(|trace| after(trace, end(trace)));
    let starts =
        traces.iter().flat_map(|trace| trace.spans.iter().map(|span| after(trace, span.from)));
    let x = Scale::from_zero(starts.chain(ends));
    let mut entries: Vec<(Sample, String)> = names
        .iter()
        .enumerate()
        .map(|(stage, name)| (Sample::Box(fill(stage)), clean(name)))
        .collect();
    entries.push((Sample::Line("ln thin si".to_owned()), "the client: due, sent, end".to_owned()));
    let top = legend_height(WIDTH - LABEL_WIDTH, &entries) + 14.0;
    let height = float(traces.len()) * LINE_HEIGHT + 4.0;
    let mut canvas = Canvas::new(WIDTH, top + height + 38.0);
    let width = WIDTH - LABEL_WIDTH - LENGTH_WIDTH;
    let area = Area { left: LABEL_WIDTH, top, width, height };
    let plot = Plot::new(area, x, Scale::linear(0.0, 1.0));
    plot.x_axis(&mut canvas, Unit::Ns, "time since due");
    for (index, trace) in traces.iter().enumerate() {
        let middle = top + (float(index) + 0.5) * LINE_HEIGHT + 2.0;
        line(&mut canvas, &plot, trace, middle);
    }
    legend(&mut canvas, LABEL_WIDTH, 0.0, WIDTH - LABEL_WIDTH, &entries);
    let left_out: usize = traces.iter().map(|trace| trace.spans_left_out).sum();
    let more = match left_out {
        0 => String::new(),
        _ => format!(" {left_out} spans of transactions that have very many are not drawn."),
    };
    let description = format!(
        "{} of the transactions whose spans were kept: those that took longest in the nodes, and some of the others. A \
         line begins when the transaction was due and ends when the client knew its outcome; the boxes are its time in \
         each stage, as the nodes stamped it.{more}",
        traces.len()
    );
    let title = "Single transactions through the stages";
    let meta = of.named(Section::Inside, "waterfall", "waterfall", title, &description);
    Some(meta.figure(canvas, table(traces, &names)))
}

/// When it was due, or when its first span began if the client has no row of it.
fn origin(trace: &Trace) -> Stamp {
    let first = || trace.spans.iter().map(|span| span.from).min().unwrap_or(0);
    trace.row.map_or_else(first, |row| row.due)
}

/// When the last thing of it happened.
fn end(trace: &Trace) -> Stamp {
    let spans = trace.spans.iter().map(|span| span.to);
    spans.chain(trace.row.map(|row| row.end)).max().unwrap_or(0)
}

/// Fill class of a stage: eight colours, then lighter ones.
fn fill(stage: usize) -> String {
    let more = if stage < 8 { "" } else { " half" };
    format!("f{}{more}", stage % 8)
}

fn line(canvas: &mut Canvas, plot: &Plot, trace: &Trace, middle: f64) {
    let at = |stamp: Stamp| plot.x.at(stamp.saturating_sub(origin(trace)) as f64);
    canvas.text(
        LABEL_WIDTH - 6.0,
        middle + 4.0,
        "m e",
        &fitted(&format!("tx {}", trace.tx), LABEL_WIDTH - 10.0),
    );
    if let Some(row) = trace.row {
        canvas.line((at(row.due), middle), (at(row.end), middle), "ln thin si");
        for stamp in [row.sent, row.end].into_iter().filter(|stamp| *stamp != NO_STAMP) {
            canvas.line((at(stamp), middle - 6.0), (at(stamp), middle + 6.0), "ln thin si");
        }
    }
    for span in &trace.spans {
        let (from, to) = (at(span.from), at(span.to));
        let stage = usize::try_from(span.stage).unwrap_or(0);
        canvas.rect(from, middle - 4.0, (to - from).max(1.0), 8.0, &fill(stage));
    }
    let length = end(trace).saturating_sub(origin(trace));
    canvas.text(plot.area.right() + 6.0, middle + 4.0, "m", &show_ns(length));
}

fn table(traces: &[Trace], names: &[&str]) -> FigureTable {
    let mut table = FigureTable::new(&[
        ("transaction", ColumnType::Text),
        ("node", ColumnType::Text),
        ("stage", ColumnType::Text),
        ("after due", ColumnType::Time),
        ("took", ColumnType::Time),
    ]);
    let spans = traces.iter().flat_map(|trace| trace.spans.iter().map(move |span| (trace, span)));
    for (trace, span) in spans.take(ROWS_MAX) {
        let stage = usize::try_from(span.stage).ok().and_then(|stage| names.get(stage));
        table.rows.push(vec![
            FigureCell::words(trace.tx.to_string()),
            FigureCell::words(clean(&span.node)),
            FigureCell::words(clean(stage.copied().unwrap_or_default())),
            FigureCell::ns(Some(span.from.saturating_sub(origin(trace)))),
            FigureCell::ns(Some(span.to.saturating_sub(span.from))),
        ]);
    }
    table
}
