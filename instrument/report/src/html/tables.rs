//! Tables of the report, and of its charts, as `table.data`: see web/PAGE.md, "Tables".
//!
//! It must never cut a figure, and never show a number without its raw form where it has one.

use super::markup::text;
use super::numbers::Document;
use crate::grid::{Align, Cell, Grid, Source};
use crate::paint::Paint;
use crate::svg::{ColumnType, FigureCell, FigureTable};

/// A table of the report; empty if it has no rows.
pub(super) fn of_grid(document: &Document, name: &str, caption: &str, grid: &Grid) -> String {
    if grid.is_empty() {
        return String::new();
    }
    let heads: String = (0..grid.columns.len())
        .map(|index| head(&grid.columns[index].head, kind_of(grid, index)))
        .collect();
    let mut rows = String::new();
    for (place, row) in grid.rows.iter().enumerate() {
        let above = place.checked_sub(1).and_then(|above| grid.rows[above].first());
        let cells: String = row
            .iter()
            .enumerate()
            .map(|(index, of)| match index {
                0 => row_head(of, above),
                _ => cell(document, of),
            })
            .collect();
        rows.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    wrap(name, "", caption, &heads, &rows)
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
fn head(of: &str, kind: &str) -> String {
    // A head without a word can be sorted by all the same: it must have a name.
    if of.is_empty() {
        return format!(
            "<th scope=\"col\" data-type=\"{kind}\"><span class=\"sr\">remark</span></th>"
        );
    }
    let lines: Vec<String> = of.split('\n').map(text).collect();
    format!("<th scope=\"col\" data-type=\"{kind}\">{}</th>", lines.join("<br>"))
}

/// The head of a row. Every row has one, so that rows can be sorted; the eye needs it once.
fn row_head(of: &Cell, above: Option<&Cell>) -> String {
    if above.is_some_and(|above| above.text == of.text) {
        return format!("<th scope=\"row\" class=\"again\"><span>{}</span></th>", text(&of.text));
    }
    let class = if of.paint == Paint::Dim { " class=\"dim\"" } else { "" };
    format!("<th scope=\"row\"{class}>{}</th>", text(&of.text))
}

fn cell(document: &Document, of: &Cell) -> String {
    let class = match of.paint {
        _ if of.text.starts_with('~') => " class=\"grey\"",
        _ if matches!(of.source, Some(Source::Between(..))) => " class=\"dim num\"",
        Paint::Plain => "",
        Paint::Bold => " class=\"strong\"",
        Paint::Dim => " class=\"dim\"",
        Paint::Good => " class=\"good\"",
        Paint::Bad => " class=\"bad\"",
        Paint::Caution => " class=\"warn\"",
    };
    let attributes = of.source.as_ref().map_or_else(String::new, |it| document.attributes(it));
    format!("<td{class}{attributes}>{}</td>", text(&of.text))
}

/// A table whose rows are markup already.
pub(super) fn wrap(name: &str, more: &str, caption: &str, heads: &str, rows: &str) -> String {
    format!(
        "<div class=\"table\" role=\"group\" aria-label=\"{0}\" tabindex=\"0\"><table class=\"data\" data-name=\"{name}\"{more}>\n<caption>{0}</caption>\n\
         <thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
        text(caption),
    )
}

/// A table of words and markup: heads with their types, rows whose first cell is the row's head.
pub(super) fn of_words(
    name: &str,
    caption: &str,
    heads: &[(&str, &str)],
    rows: &[Vec<String>],
) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let heads: String = heads.iter().map(|(word, kind)| head(word, kind)).collect();
    let mut markup = String::new();
    for row in rows {
        let cells =
            row.iter().enumerate().map(|(index, of)| match (index, of.starts_with("<td")) {
                (0, _) => format!("<th scope=\"row\">{of}</th>"),
                (_, true) => of.clone(),
                (_, false) => format!("<td>{of}</td>"),
            });
        markup.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
    }
    wrap(name, "", caption, &heads, &markup)
}

/// The numbers of a chart; `keep` says which rows stand here if not all do.
pub(super) fn of_figure(
    document: &Document,
    name: &str,
    caption: &str,
    table: &FigureTable,
    keep: Option<&[usize]>,
) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let heads: String = table.columns.iter().map(|(word, kind)| head(word, kind.word())).collect();
    let all: Vec<usize>;
    let kept = match keep {
        Some(keep) => keep,
        None => {
            all = (0..table.rows.len()).collect();
            &all
        }
    };
    let mut rows = String::new();
    for row in kept.iter().filter_map(|index| table.rows.get(*index)) {
        let cells = row.iter().enumerate().map(|(index, of)| figure_cell(document, of, index == 0));
        rows.push_str(&format!("<tr>{}</tr>\n", cells.collect::<String>()));
    }
    let more = if keep.is_some() { " data-partial=\"\"" } else { "" };
    wrap(name, more, caption, &heads, &rows)
}

fn figure_cell(document: &Document, of: &FigureCell, is_head: bool) -> String {
    let class = if of.grey { " class=\"grey\"" } else { "" };
    let place = match (&of.pointer, &of.value) {
        (Some(at), _) => document.attributes(&Source::At(at.clone())),
        (None, Some(value)) => format!(" data-v=\"{value}\""),
        (None, None) => String::new(),
    };
    if is_head {
        format!("<th scope=\"row\"{class}{place}>{}</th>", text(&of.text))
    } else {
        format!("<td{class}{place}>{}</td>", text(&of.text))
    }
}

/// Index of the column that says what is slow: the first whose head is `p99`, or the last of numbers.
pub(super) fn slow_column(table: &FigureTable) -> Option<usize> {
    let p99 = table.columns.iter().position(|(head, _)| head == "p99");
    p99.or_else(|| table.columns.iter().rposition(|(_, kind)| *kind != ColumnType::Text))
}
