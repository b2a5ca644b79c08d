//! The numbers: the table of the published reports, response times with intervals, and the experiment's own tables.
//!
//! It must never print a percentile without its sample count, its method and what never got an answer beside it.

use model::quantity::show_count;

use super::Run;
use super::markup::{list, paragraph, text};
use super::tables::of_grid;
use crate::figures::{is_thin, percent, unconditional};
use crate::grid::{Cell, Grid};
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
        let legend = "achieved = goodput ÷ offered: ● 98% or more, ◐ 90% to 98%, ○ saturated. failed = rejected + unknown + shed.";
        markup.push_str(&paragraph("legend", legend));
    }
    let steps = tables::steps(shown);
    if !steps.is_empty() {
        markup.push_str("<h3>Step by step</h3>\n");
        markup.push_str(&of_grid(
            document,
            "steps",
            "What each step was offered, and what came of it",
            &steps,
        ));
        let lines: Vec<String> = tables::step_lines(shown).iter().map(|it| text(it)).collect();
        markup.push_str(&list("legend", &lines));
    }
    let of = if tables::is_probe(first.trial) { " of the probe" } else { "" };
    let title = format!("Response time{of} (due → {})", clean(&first.trial.final_stage));
    let caption = "Means and percentiles with their intervals";
    let grid = match shown.as_slice() {
        [only] => {
            let mut grid = tables::quantiles_of_one(only);
            // A head without a word could be sorted by, and not be named.
            if let Some(first) = grid.columns.first_mut().filter(|it| it.head.is_empty()) {
                first.head = "statistic".to_owned();
            }
            grid
        }
        several => each_row_named(tables::quantiles_of_several(several, true, false)),
    };
    markup.push_str(&format!("<h3>{}</h3>\n", text(&title)));
    markup.push_str(&of_grid(document, "response-time", caption, &grid));
    markup.push_str(&list("legend", &legend(run)));
    if tables::has_statuses(shown) {
        markup.push_str("<h3>In the form of the published reports</h3>\n");
        let caption = "As vegeta computes it: by sent time, all results, answered or not";
        markup.push_str(&of_grid(document, "published", caption, &tables::published(shown)));
        let said = "A request that was sent late looks fast here; the response times above count from when it was due.";
        markup.push_str(&paragraph("legend", said));
    }
    for (name, title, grid, line) in [
        ("attempts", "Sent again", tables::attempts(shown), tables::attempts_line()),
        ("batches", "Batches", tables::batches(shown), tables::batches_line()),
        (
            "connections",
            "Connections",
            tables::connections(shown, false),
            tables::connections_line(),
        ),
    ] {
        if !grid.is_empty() {
            markup.push_str(&format!("<h3>{title}</h3>\n"));
            let caption = match name {
                "attempts" => "How often transactions were sent",
                "connections" => "How connections fared",
                _ => "What left together, and why it left",
            };
            markup.push_str(&of_grid(document, name, caption, &grid));
            markup.push_str(&paragraph("legend", line));
        }
    }
    let definitions = tables::two_definitions(shown);
    if !definitions.is_empty() {
        markup.push_str("<h3>Latency by two definitions</h3>\n");
        let caption = "The client's, and the one that the ledger states of itself";
        markup.push_str(&of_grid(document, "two-definitions", caption, &definitions));
        let lines: Vec<String> =
            tables::definition_lines(shown).iter().map(|it| text(it)).collect();
        markup.push_str(&list("legend", &lines));
    }
    for (index, table) in run.result.tables.iter().enumerate() {
        let grid = tables::asked_for(table, &format!("/tables/{index}"));
        let title = clean(&table.title);
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
    lines.extend(tables::void_legend(&run.shown).map(text));
    if let Some(said) = tables::said_of_all_due(latencies()) {
        lines.push(text(&said));
    }
    if let Some(said) = tables::said_of_open_ends(latencies()) {
        lines.push(text(&said));
    }
    if let Some(said) = tables::said_of_all_trials(&run.shown) {
        lines.push(text(said));
    }
    lines.push(text(
        "95% interval: the range that holds the true value in 95 of 100 repetitions; ? is an end that the samples cannot give, and an empty cell is an interval of which they give neither",
    ));
    lines.push(text("service time: counted from the send, so it leaves out what waiting to be sent costs a user"));
    if !run.result.percentile_method.is_empty() {
        lines.push(text(&format!("Percentiles: {}", run.result.percentile_method)));
    }
    lines
}

/// What users who make several calls see: a row a number of calls, a column a chance.
pub(super) fn calls(run: &Run<'_>) -> String {
    let of_all = || run.shown.iter().flat_map(|row| &row.trial.calls);
    let mut chances: Vec<f64> = Vec::new();
    let mut counts: Vec<u32> = Vec::new();
    for it in of_all() {
        if !chances.contains(&it.chance) {
            chances.push(it.chance);
        }
        if !counts.contains(&it.calls) {
            counts.push(it.calls);
        }
    }
    let mut grid = Grid::new().pin("setting").number(1, "calls");
    for chance in &chances {
        let share = percent(*chance).replace(".00%", "%");
        grid = grid.number(1, &format!("{share} see one slower than"));
    }
    for row in run.shown.iter().filter(|row| !row.trial.calls.is_empty()) {
        for count in &counts {
            let find = |chance: f64| {
                let of = row.trial.calls.iter();
                of.enumerate().find(|(_, it)| it.calls == *count && it.chance == chance)
            };
            let Some(first) = chances.iter().find_map(|chance| find(*chance)) else { continue };
            let mut cells = vec![Cell::new(row.label.as_str())];
            let calls = show_count(u64::from(*count));
            cells.push(Cell::new(calls).at(row.at(&format!("calls/{}/calls", first.0))));
            cells.extend(chances.iter().map(|chance| match find(*chance) {
                Some((index, it)) => {
                    let longer = model::result::Quantile {
                        unconditional_ns: it.exceeds_ns,
                        ..Default::default()
                    };
                    Cell::new(unconditional(&longer))
                        .at(row.at(&format!("calls/{index}/exceeds_ns")))
                }
                None => Cell::new(crate::figures::NONE),
            }));
            grid.row(cells);
        }
    }
    let caption = "Of users who make this many calls, how many see at least one that is slower";
    let table = of_grid(&run.document, "calls", caption, &grid);
    if table.is_empty() {
        return table;
    }
    let said = "Response times of all due: no answer counts as infinitely long (inf). Calls are taken as independent of each other.";
    format!(
        "<h3>What a user sees who makes several calls</h3>\n{table}{}",
        paragraph("legend", said)
    )
}
