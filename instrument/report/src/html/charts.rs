//! The charts: each with its table, and those of time by trial.
//!
//! It must never show a chart without its numbers beside it in words.

use model::picture::Series;
use model::quantity::show_count;

use super::Run;
use super::markup::{Element, Markup, coded, details, el, paragraph};
use super::tables::{of_figure, of_grid, slow_column};
use crate::metrics::Declared;
use crate::svg::{Figure, FigureTable, Raw, Section};
use crate::tables::{self, Shown};

/// Rows that all tables of time of a document print: beyond, each table holds its slowest columns, and the script fills
/// in the rest from the packed data. A row is about 100 bytes.
const TIME_ROWS_MAX: usize = 250;
/// Columns of time that a table holds if not all; fewer where there are many tables.
const SLOW_COLUMNS: usize = 50;
/// The fewest that a table holds.
const SLOW_COLUMNS_MIN: usize = 5;

/// How many columns of time each table holds; none if all stand here.
pub(super) fn columns_kept<'a>(figures: impl Iterator<Item = &'a Figure>) -> Option<usize> {
    let (mut tables, mut rows) = (0, 0);
    for figure in figures.filter(|it| is_packed(it)) {
        tables += 1;
        rows += figure.table.rows.len();
    }
    let each = TIME_ROWS_MAX / tables.max(1);
    (rows > TIME_ROWS_MAX).then(|| each.clamp(SLOW_COLUMNS_MIN, SLOW_COLUMNS))
}

/// Whether the script has its numbers: else all of its table stands on the page, and is short.
fn is_packed(of: &Figure) -> bool {
    !of.chart.is_empty() && of.section != Section::Inside
}

/// Charts that are not of one trial, but for those of the first screen.
fn plain(run: &Run<'_>, section: Section) -> Markup {
    let is_here = |(index, it): &(usize, &Figure)| {
        it.section == section && it.chart.is_empty() && !run.first.contains(index)
    };
    let charts = run.figures.iter().enumerate().filter(is_here);
    let charts: Markup = charts.map(|(_, it)| figure(run, it, None, Said::All)).collect();
    if charts.is_empty() { charts } else { el("div").class("charts").add(charts).into() }
}

/// The charts of the first screen. What they show is said in their tables: there is no room for it.
pub(super) fn of_first_screen(run: &Run<'_>) -> Markup {
    let chosen = run.first.iter().filter_map(|index| run.figures.get(*index));
    let (of_time, others): (Vec<&Figure>, Vec<&Figure>) =
        chosen.partition(|it| !it.chart.is_empty());
    let draw = |it: &&Figure| {
        let slow = it.trial.and_then(|index| slowest(run, index));
        figure(run, it, slow.as_deref(), Said::Below)
    };
    let others: Markup = others.iter().map(draw).collect();
    if !others.is_empty() {
        return el("div").class("charts first").add(others).into();
    }
    let Some((trial, row)) = of_time
        .first()
        .and_then(|it| it.trial)
        .and_then(|index| Some((index, run.shown.get(index)?)))
    else {
        return Markup::new();
    };
    let charts: Markup = of_time.iter().map(draw).collect();
    trial_of(run, trial, row).class("trial charts first").add(charts).into()
}

/// The element that holds the charts of a trial.
fn trial_of(run: &Run<'_>, index: usize, row: &Shown<'_>) -> Element {
    el("div")
        .attr("data-trial", (run.trials_before + index).to_string())
        .attr("data-key", row.label.as_str())
        .attr("data-path", row.trial.path.as_str())
}

/// The charts of a section: those that are not of one trial, then, of time, a block a trial.
pub(super) fn of_section(run: &Run<'_>, section: Section) -> Markup {
    let mut markup = plain(run, section);
    if section == Section::Nodes && !run.left_out.is_empty() {
        let names = run.left_out.join(", ");
        let said = format!(
            "This page has no room for charts of {names}. Their numbers are in the tables and in the result; `assay report \
             --format svg` draws them."
        );
        markup.push(el("p").class("legend").add(coded(&said)));
    }
    for (index, row) in run.shown.iter().enumerate() {
        let of_trial: Vec<&Figure> = run
            .figures
            .iter()
            .enumerate()
            .filter(|(place, it)| {
                it.section == section
                    && !it.chart.is_empty()
                    && it.trial == Some(index)
                    && !run.first.contains(place)
            })
            .map(|(_, it)| it)
            .collect();
        if of_trial.is_empty() {
            continue;
        }
        let slow = slowest(run, index);
        let draw = |it: &&Figure| figure(run, it, slow.as_deref(), Said::All);
        let (quiet, lively): (Vec<&Figure>, Vec<&Figure>) =
            of_trial.iter().copied().partition(|it| is_zero_throughout(run, it));
        let (more, lively): (Vec<&Figure>, Vec<&Figure>) =
            lively.into_iter().partition(|it| is_of_nodes_alone(it, Declared(&row.trial.series)));
        let folded = [("More of what nodes say of themselves", more), ("Zero throughout", quiet)];
        let folded: Markup = folded
            .into_iter()
            .map(|(why, figures)| {
                let names: Vec<String> = figures.iter().map(|it| title(run, it)).collect();
                let charts: Markup = figures.iter().map(draw).collect();
                details("quiet", &format!("{why}: {}", names.join(", ")), charts)
            })
            .collect();
        let heading = (run.shown.len() > 1).then(|| el("h3").class("trial-name").text(&row.label));
        let of_section = match section {
            Section::Time => bands(run, index).into(),
            Section::Nodes => nodes(run, row),
            _ => Markup::new(),
        };
        markup.push(
            trial_of(run, index, row)
                .class("trial charts")
                .add(heading)
                .add(of_section)
                .add(lively.iter().map(draw).collect::<Markup>())
                .add(folded),
        );
    }
    markup
}

/// Whether it is of a metric that only nodes have, and only some readers look for.
fn is_of_nodes_alone(of: &Figure, declared: Declared<'_>) -> bool {
    let mut of_chart = of.series.split(' ').filter_map(|it| it.rsplit_once('.')).peekable();
    let is_theirs = |(source, name): (&str, &str)| {
        !matches!(source, "generator" | "host") && !declared.is_foremost(name)
    };
    of.chart == "series" && of_chart.peek().is_some() && of_chart.all(is_theirs)
}

/// Cells of all tables of nodes of a document: a cell with its place in the result is about 150 bytes.
const NODE_CELLS_MAX: usize = 900;

/// The nodes' use of resources and their own metrics, in numbers.
fn nodes(run: &Run<'_>, row: &Shown<'_>) -> Markup {
    if tables::nodes_of(row).is_empty() {
        return Markup::new();
    }
    let cells_max = NODE_CELLS_MAX / run.shown.len().max(1);
    let each = tables::nodes(row, cells_max * 2 / 3);
    let (metrics, left_out) = tables::metrics_of_nodes(row, (cells_max / 3 / 5).max(4));
    let said = match left_out {
        0 => String::new(),
        _ => format!("{} more in the result.", show_count(left_out as u64)),
    };
    let caption = "What each node used, and what it says of itself";
    let metrics = of_grid(&run.document, "metrics-of-nodes", "Metrics over all nodes", &metrics);
    let metrics = Markup::from(metrics).and(paragraph("legend", &said));
    Markup::from(of_grid(&run.document, "nodes", caption, &each)).and(details(
        "as-table",
        "Every metric over all nodes",
        metrics,
    ))
}

/// Whether it is a chart of series in which nothing ever happened: that is one line, not a picture.
fn is_zero_throughout(run: &Run<'_>, of: &Figure) -> bool {
    let Some(picture) = of.trial.and_then(|index| run.picture.trials.get(index)) else {
        return false;
    };
    let mut of_chart = of.series.split(' ').filter_map(|name| {
        picture.series.iter().find(|it| format!("{}.{}", it.source, it.name) == name)
    });
    let is_zero = |series: &Series| {
        let mut ends = series.min.iter().chain(&series.max).filter(|it| it.is_finite()).peekable();
        ends.peek().is_some() && ends.all(|it| *it == 0.0)
    };
    of.chart == "series" && of_chart.clone().next().is_some() && of_chart.all(is_zero)
}

/// The subject of a chart. Over time without the setting: it stands above all of a trial's charts.
fn title(run: &Run<'_>, of: &Figure) -> String {
    let label =
        of.trial.and_then(|index| run.shown.get(index)).map(|row| format!(", {}", row.label));
    let without = label.and_then(|label| of.title.strip_suffix(label.as_str()).map(str::to_owned));
    without.unwrap_or_else(|| of.title.clone())
}

/// The meaning of the shaded stretches of a trial's charts, in words.
fn bands(run: &Run<'_>, index: usize) -> Option<Element> {
    let picture = &run.picture.trials[index];
    let show = model::quantity::show_ns;
    let mut said: Vec<String> = picture
        .bands
        .iter()
        .map(|it| {
            let what = if it.label.is_empty() || it.label == it.kind.word() {
                it.kind.word().to_owned()
            } else {
                format!("{} {}", it.kind.word(), it.label)
            };
            let from = if it.from_ns == 0 { "0 s".to_owned() } else { show(it.from_ns) };
            format!("{what} {from} to {}", show(it.to_ns))
        })
        .collect();
    const NAMED_MAX: usize = 12;
    let more = said.len().saturating_sub(NAMED_MAX);
    said.truncate(NAMED_MAX);
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    let text =
        if said.is_empty() { String::new() } else { format!("Shaded: {}.", said.join("; ")) };
    paragraph("bands", &text)
}

/// Rows to keep of the tables of a trial: none to choose if all stand here.
fn slowest(run: &Run<'_>, index: usize) -> Option<Vec<usize>> {
    let kept = run.columns_kept?;
    let is_latency = |it: &&Figure| it.chart == "latency" && it.trial == Some(index);
    let table = &run.figures.iter().find(is_latency)?.table;
    Some(highest(table, slow_column(table)?, kept))
}

/// The rows with the highest values of a column, in the order of the table.
fn highest(table: &FigureTable, column: usize, kept: usize) -> Vec<usize> {
    let of_row = |row: usize| table.rows[row].get(column).and_then(|cell| value(cell.value));
    largest(table.rows.len(), kept, |row| of_row(row).unwrap_or(f64::NEG_INFINITY))
}

/// The rows with the highest values of any column but the first; those that have none are left out.
fn highest_of_any(table: &FigureTable, kept: usize) -> Vec<usize> {
    let of_row = |row: usize| -> Option<f64> {
        table.rows[row].iter().skip(1).filter_map(|cell| value(cell.value)).reduce(f64::max)
    };
    let mut rows = largest(table.rows.len(), kept, |row| of_row(row).unwrap_or(f64::NEG_INFINITY));
    rows.retain(|row| of_row(*row).is_some());
    rows
}

fn value(of: Option<Raw>) -> Option<f64> {
    match of? {
        Raw::Int(value) => {
            #[expect(clippy::cast_precision_loss, reason = "only to order by")]
            let value = value as f64;
            Some(value)
        }
        Raw::Real(value) => Some(value),
    }
}

/// The places of the largest of `count` values, ascending.
fn largest(count: usize, kept: usize, of: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|a, b| of(*b).total_cmp(&of(*a)).then(a.cmp(b)));
    places.truncate(kept);
    places.sort_unstable();
    places
}

/// Where a chart says how to read it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// Above it.
    All,
    /// With its table, where there is no room above it.
    Below,
}

/// One chart.
fn figure(run: &Run<'_>, of: &Figure, slow: Option<&[usize]>, where_said: Said) -> Element {
    let rows = of.table.rows.len();
    let keep = match (run.columns_kept, of.chart) {
        // Samples of a series may be rarer than columns: those without any say nothing.
        _ if !is_packed(of) => None,
        (Some(kept), "series") => Some(highest_of_any(&of.table, kept)),
        _ => slow.map(|slow| slow.iter().copied().filter(|row| *row < rows).collect::<Vec<_>>()),
    };
    let keep = keep.filter(|keep| keep.len() < rows);
    let table = of_figure(&run.document, &of.name, &of.title, &of.table, keep.as_deref());
    let partial = match &keep {
        Some(keep) => format!(
            "{} of {rows} columns of time: those with the {}. A script fills in the rest.",
            keep.len(),
            if of.chart == "series" { "highest values" } else { "longest response times" }
        ),
        None => String::new(),
    };
    // What the script adds is said here, not in the SVG: a downloaded one has neither.
    let more = match of.chart {
        "latency" => {
            " Where a script runs, the lines are p50, p99 and p99.9, and a dot is one of a column's slowest transactions: click it for its row."
        }
        _ => "",
    };
    let how_to_read = format!("{}{more}", of.description);
    let caption = el("figcaption").add(el("strong").text(&title(run, of)));
    let (caption, below) = match where_said {
        Said::All => (caption.said(" ").text(&how_to_read), None),
        Said::Below => (caption, paragraph("legend", &how_to_read)),
    };
    let table =
        table.map(|table| Markup::from(below).and(paragraph("partial", &partial)).and(table));
    let summary = if where_said == Said::Below { "Table, and how to read it" } else { "Table" };
    let table = details("as-table", summary, table.unwrap_or_default());
    let chart = el("figure").attr("id", of.id.as_str()).attr("data-name", of.name.as_str());
    if of.chart.is_empty() {
        return chart.class("chart").add(caption).add(of.inline()).add(table);
    }
    chart
        .class("chart time")
        .attr("data-chart", of.chart)
        .attr("data-series", of.series.as_str())
        .add(caption)
        .add(el("div").class("plot").add(of.inline()))
        .add(table)
}
