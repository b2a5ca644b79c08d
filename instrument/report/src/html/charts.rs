//! The charts: each with its table, and those of time by trial.
//!
//! It must never show a chart without its numbers beside it in words.

use model::picture::Series;
use model::quantity::show_count;

use super::Run;
use super::markup::{coded, details, list, paragraph, text};
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

/// Charts that are not of one trial, and what follows them.
pub(super) fn plain(run: &Run<'_>, section: Section, after: &str) -> String {
    let charts: String = run
        .figures
        .iter()
        .filter(|it| it.section == section && it.chart.is_empty())
        .map(|it| figure(run, it, None))
        .collect();
    format!("{charts}{after}")
}

/// Charts of time, a block a trial.
pub(super) fn over_time(run: &Run<'_>, section: Section) -> String {
    let mut markup = plain(run, section, "");
    if section == Section::Nodes && !run.left_out.is_empty() {
        let names = run.left_out.join(", ");
        let said = format!(
            "This page has no room for charts of {names}. Their numbers are in the tables and in the result; `assay report \
             --format svg` draws them."
        );
        markup.push_str(&format!("<p class=\"legend\">{}</p>\n", coded(&said)));
    }
    for (index, row) in run.shown.iter().enumerate() {
        let of_trial: Vec<&Figure> = run
            .figures
            .iter()
            .filter(|it| it.section == section && !it.chart.is_empty() && it.trial == Some(index))
            .collect();
        if of_trial.is_empty() {
            continue;
        }
        let slow = slowest(run, index);
        let draw = |it: &&&Figure| figure(run, it, slow.as_deref());
        let (quiet, lively): (Vec<&Figure>, Vec<&Figure>) =
            of_trial.iter().copied().partition(|it| is_zero_throughout(run, it));
        let (more, lively): (Vec<&Figure>, Vec<&Figure>) =
            lively.into_iter().partition(|it| is_of_nodes_alone(it, Declared(&row.trial.series)));
        let charts: String = lively.iter().map(|it| draw(&it)).collect();
        let folded: String =
            [("More of what nodes say of themselves", more), ("Zero throughout", quiet)]
                .into_iter()
                .map(|(why, figures)| {
                    let names: Vec<String> = figures.iter().map(|it| title(run, it)).collect();
                    let charts: String = figures.iter().map(|it| draw(&it)).collect();
                    details("quiet", &format!("{why}: {}", names.join(", ")), &charts)
                })
                .collect();
        let heading = match run.shown.len() {
            1 => String::new(),
            _ => format!("<h3 class=\"trial-name\">{}</h3>\n", text(&row.label)),
        };
        markup.push_str(&format!(
            "<div class=\"trial\" data-trial=\"{}\" data-key=\"{}\" data-path=\"{}\">\n{heading}{}{charts}{folded}</div>\n",
            run.trials_before + index,
            text(&row.label),
            text(&row.trial.path),
            match section {
                Section::Time => bands(run, index),
                Section::Nodes => nodes(run, row),
                _ => String::new(),
            },
        ));
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

/// What the nodes of a trial used and say of themselves, in numbers.
fn nodes(run: &Run<'_>, row: &Shown<'_>) -> String {
    if tables::nodes_of(row).is_empty() {
        return String::new();
    }
    let cells_max = NODE_CELLS_MAX / run.shown.len().max(1);
    let each = tables::nodes(row, cells_max * 2 / 3);
    let (metrics, left_out) = tables::metrics_of_nodes(row, (cells_max / 3 / 5).max(4));
    let said = match left_out {
        0 => String::new(),
        _ => format!("{} more in the result.", show_count(left_out as u64)),
    };
    let metrics = of_grid(&run.document, "metrics-of-nodes", "Metrics over all nodes", &metrics);
    format!(
        "{}{}",
        of_grid(&run.document, "nodes", "What each node used, and what it says of itself", &each),
        details(
            "as-table",
            "Every metric over all nodes",
            &format!("{metrics}{}", paragraph("legend", &said)),
        )
    )
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

/// What a chart shows. Over time without the setting: it stands above all of a trial's charts.
fn title(run: &Run<'_>, of: &Figure) -> String {
    let label =
        of.trial.and_then(|index| run.shown.get(index)).map(|row| format!(", {}", row.label));
    let without = label.and_then(|label| of.title.strip_suffix(label.as_str()).map(str::to_owned));
    without.unwrap_or_else(|| of.title.clone())
}

/// Stages, if there is more than one.
pub(super) fn stages(run: &Run<'_>) -> String {
    let mut grid = tables::stages(&run.shown);
    // A reader can sort the rows, so each says whose it is.
    let mut setting = String::new();
    for row in &mut grid.rows {
        if row[0].text.is_empty() {
            row[0].text.clone_from(&setting);
        } else {
            setting.clone_from(&row[0].text);
        }
    }
    let charts = over_time(run, Section::Stages);
    if grid.is_empty() {
        return charts;
    }
    format!(
        "{}{charts}",
        of_grid(&run.document, "stages", "Rates and response times by stage", &grid)
    )
}

/// What nodes stamped, if they did.
pub(super) fn inside(run: &Run<'_>) -> String {
    let grid = tables::node_stages(&run.shown);
    if grid.is_empty() {
        return String::new();
    }
    let caption = "Throughput and time by stage, as the nodes stamped it";
    let table = of_grid(&run.document, "node-stages", caption, &grid);
    let said: Vec<String> =
        tables::node_stage_lines(&run.shown).iter().map(|line| text(&line.text)).collect();
    format!("{table}{}{}", list("legend", &said), over_time(run, Section::Inside))
}

/// What the shaded stretches of a trial's charts are, in words.
fn bands(run: &Run<'_>, index: usize) -> String {
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

/// One chart.
fn figure(run: &Run<'_>, of: &Figure, slow: Option<&[usize]>) -> String {
    let rows = of.table.rows.len();
    let keep = match (run.columns_kept, of.chart) {
        // Samples of a series may be rarer than columns: those without any say nothing.
        _ if !is_packed(of) => None,
        (Some(kept), "series") => Some(highest_of_any(&of.table, kept)),
        _ => slow.map(|slow| slow.iter().copied().filter(|row| *row < rows).collect::<Vec<_>>()),
    };
    let keep = keep.filter(|keep| keep.len() < rows);
    let table = of_figure(&run.document, &of.name, &of.title, &of.table, keep.as_deref());
    let said = match keep {
        Some(keep) => format!(
            "{} of {rows} columns of time: those with the {}. A script fills in the rest.",
            keep.len(),
            if of.chart == "series" { "highest values" } else { "highest p99" }
        ),
        None => String::new(),
    };
    let table = if table.is_empty() {
        String::new()
    } else {
        format!(
            "<details class=\"as-table\"><summary>Table</summary>\n{}{table}</details>\n",
            paragraph("partial", &said)
        )
    };
    // What the script adds is said here, not in the SVG: a downloaded one has neither.
    let more = match of.chart {
        "latency" => {
            " Where a script runs, the lines are p50, p99 and p99.9, and a dot is one of a column's slowest transactions: click it for its row."
        }
        _ => "",
    };
    let caption = format!(
        "<figcaption><strong>{}</strong> {}{more}</figcaption>\n",
        text(&title(run, of)),
        text(&of.description)
    );
    let (id, name) = (text(&of.id), text(&of.name));
    if of.chart.is_empty() {
        return format!(
            "<figure class=\"chart\" id=\"{id}\" data-name=\"{name}\">\n{caption}{}\n{table}</figure>\n",
            of.inline()
        );
    }
    format!(
        "<figure class=\"chart time\" id=\"{id}\" data-chart=\"{}\" data-series=\"{}\" data-name=\"{name}\">\n\
         {caption}<div class=\"plot\">{}</div>\n{table}</figure>\n",
        of.chart,
        text(&of.series),
        of.inline()
    )
}
