//! The numbers: the table of the published reports, response times with intervals, and the experiment's own tables.
//!
//! It must never print a percentile without its sample count, its method and what never got an answer beside it.

use model::quantity::show_count;

use super::Run;
use super::markup::{list, paragraph, text};
use super::tables::{of_grid, of_words};
use crate::figures::{is_thin, percent, unconditional};
use crate::grid::{Cell, Grid, Source};
use crate::paint::clean;
use crate::tables::{self, final_latency};

pub(super) fn results(run: &Run<'_>) -> String {
    let (shown, document) = (&run.shown, &run.document);
    let Some(first) = shown.first() else { return String::new() };
    let mut markup = String::new();
    markup.push_str(&of_grid(
        document,
        "results",
        "What was offered, and what came of it",
        &tables::results(shown),
    ));
    if !tables::is_probe(first.trial) {
        let legend = "kept = goodput ÷ offered: ● 98% or more, ◐ 90% to 98%, ○ saturated. failed = rejected + unknown + shed.";
        markup.push_str(&paragraph("legend", legend));
    }
    markup.push_str(&paragraph("knee", &run.result.knee));
    let of = if tables::is_probe(first.trial) { " of the probe" } else { "" };
    let caption = format!("Response time{of}, due to {}", clean(&first.trial.final_stage));
    let grid = match shown.as_slice() {
        [only] => tables::quantiles_of_one(only),
        several => each_row_named(tables::quantiles_of_several(several, true, false)),
    };
    markup.push_str(&format!("<h3>{}</h3>\n", text(&caption)));
    markup.push_str(&of_grid(document, "response-time", &caption, &grid));
    markup.push_str(&list("legend", &legend(run)));
    if tables::has_statuses(shown) {
        markup.push_str("<h3>In the form of the published reports</h3>\n");
        let caption = "As vegeta computes it: by sent time, all results, answered or not";
        markup.push_str(&of_grid(document, "published", caption, &tables::published(shown)));
        let said = "A request that was sent late looks fast here; the response times above count from when it was due.";
        markup.push_str(&paragraph("legend", said));
    }
    for (index, table) in run.result.tables.iter().enumerate() {
        let grid = tables::asked_for(table, &format!("/tables/{index}"));
        let title = clean(&table.title);
        markup.push_str(&format!("<h3>{}</h3>\n", text(&title)));
        markup.push_str(&of_grid(document, &format!("table-{index}"), &title, &grid));
    }
    markup
}

/// The same rows, each with its setting and what it is: a reader can sort them, and each still says whose it is.
fn each_row_named(mut grid: Grid) -> Grid {
    let mut named = Grid::new().pin("setting").words(0, "row");
    named.columns.extend(grid.columns.drain(1..));
    let mut setting = String::new();
    for mut cells in grid.rows {
        let label = cells.remove(0);
        let (head, what) = match label.text.strip_prefix("  ") {
            Some(what) => (Cell { text: setting.clone(), ..label }, what.to_owned()),
            None => {
                setting.clone_from(&label.text);
                (label, "response time".to_owned())
            }
        };
        let mut row = vec![Cell { paint: head.paint, ..Cell::new(what) }];
        row.insert(0, head);
        row.extend(cells);
        named.row(row);
    }
    named
}

/// What the marks mean, if they were printed, and the method.
fn legend(run: &Run<'_>) -> Vec<String> {
    let latencies = || run.shown.iter().filter_map(|row| final_latency(row.trial));
    let mut lines = Vec::new();
    if latencies().flat_map(|it| &it.response.quantiles).any(is_thin) {
        lines.push(text(
            "~ and grey: fewer than ten samples beyond the percentile; read it as a hint",
        ));
    }
    let inf: u64 = latencies().map(|it| it.inf).sum();
    if inf > 0 {
        lines.push(text(&format!(
            "of all due: the {} that never got there count as infinitely long (inf)",
            show_count(inf)
        )));
    }
    lines.push(text(
        "95% interval: the range that holds the true value in 95 of 100 repetitions; ? is an end that the samples cannot give",
    ));
    lines.push(text("service time: counted from the send, so it leaves out what waiting to be sent costs a user"));
    if !run.result.percentile_method.is_empty() {
        lines.push(text(&format!("Percentiles: {}", run.result.percentile_method)));
    }
    lines
}

/// What users who make several calls see.
pub(super) fn calls(run: &Run<'_>) -> String {
    let mut rows = Vec::new();
    for row in &run.shown {
        for (index, it) in row.trial.calls.iter().enumerate() {
            let at = row.at(&format!("calls/{index}"));
            let cell = |key: &str, shown: String| {
                let attributes = run.document.attributes(&Source::At(format!("{at}/{key}")));
                format!("<td{attributes}>{}</td>", text(&shown))
            };
            let longer =
                model::result::Quantile { unconditional_ns: it.exceeds_ns, ..Default::default() };
            rows.push(vec![
                text(&row.label),
                cell("calls", show_count(u64::from(it.calls))),
                cell("chance", percent(it.chance)),
                cell("exceeds_ns", unconditional(&longer)),
            ]);
        }
    }
    let heads =
        [("setting", "text"), ("calls", "number"), ("chance", "number"), ("slower than", "time")];
    let table = of_words(
        "calls",
        "A user making N calls sees one slower than this with this chance",
        &heads,
        &rows,
    );
    if table.is_empty() {
        return table;
    }
    let said = "Response times of all due: no answer counts as infinitely long (inf). Calls are taken as independent of each other.";
    format!(
        "<h3>What a user sees who makes several calls</h3>\n{table}{}",
        paragraph("legend", said)
    )
}
