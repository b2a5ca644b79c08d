//! Tables of the report, and of its charts, as `table.data`: see web/PAGE.md, "Tables".
//!
//! It must never cut a figure, and never show a number without its raw form where it has one.

use super::markup::{Element, Markup, QUOTED, el, text};
use super::numbers::Document;
use crate::figures::NONE;
use crate::grid::{Align, Cell, Grid, Source};
use crate::paint::Paint;
use crate::svg::{ColumnType, FigureCell, FigureTable};

/// A table of the report; none if it has no rows.
pub(super) fn of_grid(
    document: &Document,
    name: &str,
    caption: &str,
    grid: &Grid,
) -> Option<Element> {
    with_course(document, name, caption, grid, &Course::default())
}

/// The parts that only the table of results has.
#[derive(Default)]
pub(super) struct Course<'a> {
    /// The head of a column of drawings at its end, and a drawing a row.
    pub(super) drawings: Option<(&'a str, &'a [Markup])>,
    /// Heads of columns that stay on a telephone; empty = all.
    pub(super) kept: &'a [&'a str],
}

/// The same with a column of drawings.
pub(super) fn with_course(
    document: &Document,
    name: &str,
    caption: &str,
    grid: &Grid,
    of: &Course<'_>,
) -> Option<Element> {
    let more = of.drawings;
    let slim = |index: usize| {
        let is_kept = of.kept.is_empty() || of.kept.contains(&grid.columns[index].head.as_str());
        if is_kept { "" } else { "slim" }
    };
    let heads = (0..grid.columns.len())
        .map(|index| head(&grid.columns[index].head, kind_of(grid, index)).class(slim(index)))
        .chain(more.map(|(word, _)| head(word, "text").class("slim")));
    let row = |(place, row): (usize, &Vec<Cell>)| {
        let above = place.checked_sub(1).and_then(|above| grid.rows[above].first());
        let cells = row.iter().enumerate().map(|(index, of)| match index {
            0 => row_head(of, above),
            _ if grid.columns[index].is_prose => {
                el("td").class(slim(index)).add(el("span").class(QUOTED).text(&of.text))
            }
            _ => cell(document, of, slim(index)),
        });
        let drawn = more.and_then(|(_, drawings)| drawings.get(place).cloned());
        let drawn = more.map(|_| el("td").class("slim").add(drawn.unwrap_or_default()));
        el("tr").add(cells.chain(drawn).collect::<Markup>())
    };
    let rows: Vec<Element> = grid.rows.iter().enumerate().map(row).collect();
    wrap(name, caption, heads.collect(), rows)
}

/// The same rows, each with its head: a text leaves out what the row above says, and a reader of the page can sort.
pub(super) fn each_row_headed(mut grid: Grid) -> Grid {
    let mut above = String::new();
    for head in grid.rows.iter_mut().filter_map(|row| row.first_mut()) {
        match head.text.as_str() {
            "" => head.text.clone_from(&above),
            text => above = text.to_owned(),
        }
    }
    grid
}

/// `time` where the numbers are durations: those that the document holds as nanoseconds.
fn kind_of(grid: &Grid, index: usize) -> &'static str {
    let column = &grid.columns[index];
    let is_ns = |cell: &&Cell| match &cell.source {
        Some(Source::At(at)) => at.ends_with("_ns"),
        _ => false,
    };
    match column.align {
        Align::Left => "text",
        Align::Right if grid.rows.iter().filter_map(|row| row.get(index)).any(|c| is_ns(&c)) => {
            "time"
        }
        Align::Right => "number",
    }
}

/// The head of a column; a line end in it is one on the page.
fn head(of: &str, kind: &str) -> Element {
    let head = el("th").attr("scope", "col").attr("data-type", kind);
    // A head without a word can be sorted by all the same: it must have a name.
    if of.is_empty() {
        return head.add(el("span").class("sr").text("remark"));
    }
    of.split('\n').enumerate().fold(head, |head, (index, line)| {
        let head = if index > 0 { head.add(el("br")) } else { head };
        head.text(line)
    })
}

/// The head of a row. Every row has one, so that rows can be sorted; the eye needs it once.
fn row_head(of: &Cell, above: Option<&Cell>) -> Element {
    let head = el("th").attr("scope", "row");
    if above.is_some_and(|above| above.text == of.text) {
        return head.class("again").add(el("span").text(&of.text));
    }
    head.class(if of.paint == Paint::Dim { "dim" } else { "" }).text(&of.text)
}

/// The class of a paint.
pub(super) const fn class_of(paint: Paint) -> &'static str {
    match paint {
        Paint::Plain => "",
        Paint::Bold => "strong",
        Paint::Dim => "dim",
        Paint::Good => "good",
        Paint::Bad => "bad",
        Paint::Caution => "warn",
    }
}

fn cell(document: &Document, of: &Cell, slim: &str) -> Element {
    let paint = match of.paint {
        _ if of.text.starts_with('~') => "grey",
        _ if matches!(of.source, Some(Source::Between(..))) => "dim num",
        paint => class_of(paint),
    };
    let attributes = of.source.as_ref().map(|it| document.attributes(it)).unwrap_or_default();
    // A telephone has no room for a range in one line.
    let range = if of.text.len() > NONE.len() && of.text.contains('–') { "range" } else { "" };
    let class = [paint, slim, range].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>();
    el("td").class(&class.join(" ")).attrs(attributes).text(&of.text)
}

/// The table in its frame, which scrolls sideways if it must.
fn wrap(name: &str, caption: &str, heads: Vec<Element>, rows: Vec<Element>) -> Option<Element> {
    framed(el("table").class("data").attr("data-name", name), caption, heads, rows)
}

fn framed(
    table: Element,
    caption: &str,
    heads: Vec<Element>,
    rows: Vec<Element>,
) -> Option<Element> {
    if rows.is_empty() {
        return None;
    }
    let heads = el("tr").add(heads.into_iter().collect::<Markup>());
    let table = table
        .add(el("caption").text(caption))
        .add(el("thead").add(heads))
        .add(el("tbody").add(rows.into_iter().collect::<Markup>()));
    let frame = el("div").class("table").attr("role", "group").attr("aria-label", caption);
    Some(frame.attr("tabindex", "0").add(table))
}

/// A cell of words.
pub(super) fn words(of: &str) -> Element {
    el("td").text(of)
}

/// A table of cells that are made already: heads with their types, rows whose first cell is the row's head.
pub(super) fn of_cells(
    name: &str,
    caption: &str,
    heads: &[(&str, &str)],
    rows: Vec<Vec<Element>>,
) -> Option<Element> {
    let heads = heads.iter().map(|(word, kind)| head(word, kind)).collect();
    let row = |cells: Vec<Element>| {
        let cells = cells.into_iter().enumerate().map(|(index, cell)| match index {
            0 => cell.named("th").attr("scope", "row"),
            _ => cell,
        });
        el("tr").add(cells.collect::<Markup>())
    };
    wrap(name, caption, heads, rows.into_iter().map(row).collect())
}

/// The numbers of a chart; `keep` says which rows stand here if not all do.
pub(super) fn of_figure(
    document: &Document,
    name: &str,
    caption: &str,
    table: &FigureTable,
    keep: Option<&[usize]>,
) -> Option<Element> {
    let heads = table.columns.iter().map(|(word, kind)| head(word, kind.word())).collect();
    let is_kept = |index: usize| keep.is_none_or(|keep| keep.contains(&index));
    let rows = table.rows.iter().enumerate().filter(|(index, _)| is_kept(*index));
    let row = |(_, row): (usize, &Vec<FigureCell>)| {
        let cells = row.iter().enumerate().map(|(index, of)| figure_cell(document, of, index == 0));
        el("tr").add(cells.collect::<Markup>())
    };
    let element = el("table").class("data").attr("data-name", name);
    let element = if keep.is_some() { element.attr("data-partial", "") } else { element };
    framed(element, caption, heads, rows.map(row).collect())
}

fn figure_cell(document: &Document, of: &FigureCell, is_head: bool) -> Element {
    let place = match (&of.pointer, &of.value) {
        (Some(at), _) => document.attributes(&Source::At(at.clone())),
        (None, Some(value)) => vec![("data-v", value.to_string())],
        (None, None) => Vec::new(),
    };
    let cell = if is_head { el("th").attr("scope", "row") } else { el("td") };
    cell.class(if of.grey { "grey" } else { "" }).attrs(place).add(text(&of.text))
}

/// Index of the column that says what is slow: the first whose head is `max`, or the last of numbers.
pub(super) fn slow_column(table: &FigureTable) -> Option<usize> {
    let max = table.columns.iter().position(|(head, _)| head == "max");
    max.or_else(|| table.columns.iter().rposition(|(_, kind)| *kind != ColumnType::Text))
}
