//! The numbers: one table with the course of each row, and, folded, response times with intervals, the published form and
//! the experiment's own tables.
//!
//! It must never print a percentile without its sample count, its method and what never got an answer beside it.

use model::quantity::show_count;

use super::Run;
use super::course;
use super::markup::{Element, Markup, details, el, list, paragraph, text};
use super::tables::{Course, of_grid, with_course};
use crate::figures::{is_thin, percent, unconditional};
use crate::grid::{Cell, Grid};
use crate::paint::{Paint, clean};
use crate::tables::{self, final_latency};

pub(crate) fn results(run: &Run<'_>) -> Markup {
    let Some(first) = run.shown.first() else { return Markup::new() };
    let mut markup = Markup::from(overview(run));
    if !tables::is_probe(first.trial) && !tables::is_unsent(first.trial) {
        let legend = "achieved = goodput ÷ offered: ● 98% or more, ◐ 90% to 98%, ○ saturated. failed = rejected + unknown + shed.";
        markup.push(paragraph("legend", legend));
    }
    markup.push(list("legend", marks(run)));
    for (index, table) in run.result.tables.iter().enumerate() {
        let grid = tables::asked_for(table, &format!("/tables/{index}"));
        let title = clean(&table.title);
        markup.push(of_grid(&run.document, &format!("table-{index}"), &title, &grid));
    }
    let of = if tables::is_probe(first.trial) { " of the probe" } else { "" };
    let title = format!("Response time{of} (due → {}), with intervals", first.trial.final_stage);
    if !run.shown.iter().all(|row| tables::is_unsent(row.trial)) {
        markup.push(details("part", &title, response_times(run)));
    }
    markup
}

/// The table of all settings, in the words of the page, with the course of each at the end of its row.
fn overview(run: &Run<'_>) -> Option<Element> {
    let shown = &run.shown;
    let mut grid = tables::results(shown);
    let (curves, of_course) = course::curves(shown);
    // Rows of all trials of a setting stand between those of trials and have no course of their own.
    let mut drawings = vec![Markup::new(); grid.rows.len()];
    for (row, curve) in shown.iter().zip(curves) {
        let place = grid.rows.iter().position(|cells| cells[0].text == row.label);
        let Some(place) = place else { continue };
        drawings[place] = curve;
        if tables::is_limit_found(row) {
            // What was looked for and found is no alarm.
            for cell in grid.rows[place].iter_mut().filter(|cell| cell.paint == Paint::Bad) {
                cell.paint = Paint::Caution;
            }
        }
    }
    let caption = "Offered load and its outcomes";
    let course = Course {
        drawings: of_course.map(|head| (head, drawings.as_slice())),
        kept: &["setting", "verdict", "goodput/s", "probes", "p50", "p99"],
    };
    with_course(&run.document, "results", caption, &grid, &course)
}

fn response_times(run: &Run<'_>) -> Markup {
    let caption = "Means and percentiles with their intervals";
    let grid = match run.shown.as_slice() {
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
    let table = of_grid(&run.document, "response-time", caption, &grid);
    Markup::from(table).and(list("legend", method(run)))
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

/// The meaning of the marks, if they were printed.
fn marks(run: &Run<'_>) -> Vec<Markup> {
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
    lines
}

/// How the intervals were made, and what they say.
fn method(run: &Run<'_>) -> Vec<Markup> {
    let latencies = || run.shown.iter().filter_map(|row| final_latency(row.trial));
    let mut lines = Vec::new();
    if let Some(said) = tables::said_of_the_unseen(latencies()) {
        lines.push(text(&said));
    }
    if let Some(said) = tables::said_of_all_trials(&run.shown) {
        lines.push(text(said));
    }
    lines.push(text(
        "95% interval: the range that holds the true value in 95 of 100 repetitions; “at least” is a lower end alone, where the window holds too few excursions beyond the percentile to limit it from above",
    ));
    lines.push(text("service time: counted from the send, so it leaves out what waiting to be sent costs a user"));
    if !run.result.percentile_method.is_empty() {
        lines.push(text(&format!("Percentiles: {}", run.result.percentile_method)));
    }
    lines
}

/// The view of users who make several calls: a row a number of calls, a column a chance.
pub(crate) fn calls(run: &Run<'_>) -> Markup {
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
    let Some(table) = of_grid(&run.document, "calls", caption, &grid) else {
        return Markup::new();
    };
    let said = "Response times of all due: no answer counts as infinitely long (inf). Calls are taken as independent of each other.";
    Markup::from(el("h3").text("What a user sees who makes several calls"))
        .and(table)
        .and(paragraph("legend", said))
}
