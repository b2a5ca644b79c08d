//! A heat table over two axes of the matrix: how much of what was offered came through, in each cell.

use std::collections::BTreeSet;

use model::picture::RunPicture;
use model::result::RunResult;

use crate::figures::rate;
use crate::paint::clean;
use crate::svg::canvas::{Canvas, fitted, float, text_width};
use crate::svg::plot::{Sample, WIDTH, legend};
use crate::svg::settings::{Shown, axes, axis_labels, shown, stem};
use crate::svg::{ColumnType, Figure, FigureCell, FigureTable, Meta, Section};
use crate::tables::kept;

/// More tables than this are not drawn; the results table has every cell.
const TABLES_MAX: usize = 8;
/// More rows or columns than this are not readable.
const LABELS_MAX: usize = 40;

/// Axes with their labels.
type Labels = Vec<(String, String)>;

/// One table for each combination of the axes that are neither rows nor columns.
pub(crate) fn figures(result: &RunResult, picture: &RunPicture) -> Vec<Figure> {
    let Some((row_axis, column_axis)) = two_axes(result, picture) else { return Vec::new() };
    let all = shown(result);
    let others: Vec<String> = axes(result, picture)
        .into_iter()
        .filter(|axis| *axis != row_axis && *axis != column_axis)
        .collect();
    let rest = |it: &Shown<'_>| -> Labels {
        let value = |axis: &String| Some((axis.clone(), it.setting.values.get(axis)?.clone()));
        others.iter().filter_map(value).collect()
    };
    let mut groups: Vec<(Labels, Vec<Shown<'_>>)> = Vec::new();
    for it in all {
        let key = rest(&it);
        match groups.iter_mut().find(|group| group.0 == key) {
            Some(group) => group.1.push(it),
            None => groups.push((key, vec![it])),
        }
    }
    let heads =
        [axis_labels(result, picture, &row_axis), axis_labels(result, picture, &column_axis)];
    // One cell alone is no table.
    let groups = groups.into_iter().filter(|(_, cells)| cells.len() > 1).take(TABLES_MAX);
    groups.map(|(rest, cells)| table(&row_axis, &column_axis, &heads, &rest, &cells)).collect()
}

/// The axes of rows and columns: columns change the offered load; rows are the axis that does as well, or the one
/// of connections, or the first other.
fn two_axes(result: &RunResult, picture: &RunPicture) -> Option<(String, String)> {
    let first = result.load_series.iter().find(|series| series.settings.len() > 1)?;
    let varied = |axis: &String| {
        result.settings.iter().filter_map(|s| s.values.get(axis)).collect::<BTreeSet<_>>().len() > 1
    };
    let all: Vec<String> = axes(result, picture).into_iter().filter(varied).collect();
    let is_load = |axis: &String| !first.values.contains_key(axis);
    let loads: Vec<&String> = all.iter().filter(|axis| is_load(axis)).collect();
    let others = || all.iter().filter(|axis| !is_load(axis));
    let connections = others().find(|axis| axis.contains("connections"));
    match (loads.as_slice(), connections.or_else(|| others().next())) {
        ([one, two, ..], _) => Some(((*one).clone(), (*two).clone())),
        ([load], Some(other)) => Some((other.clone(), (*load).clone())),
        _ => None,
    }
}

fn table(
    row_axis: &str,
    column_axis: &str,
    [rows, columns]: &[Vec<String>; 2],
    rest: &[(String, String)],
    cells: &[Shown<'_>],
) -> Figure {
    let (rows, columns) = (cut(rows), cut(columns));
    let widest = rows.iter().map(|label| text_width(label)).fold(text_width(row_axis), f64::max);
    let left = (widest + 12.0).clamp(60.0, 200.0);
    let cell_width = ((WIDTH - left) / float(columns.len().max(1))).clamp(58.0, 120.0);
    let cell_height = 38.0;
    let top = 62.0;
    let width = (left + cell_width * float(columns.len())).max(WIDTH);
    let mut canvas = Canvas::new(width, top + cell_height * float(rows.len()) + 4.0);
    let marks = [
        (Sample::Box("fgood wash".to_owned()), "● 98% and more of the offered load came through"),
        (Sample::Box("fwarn wash".to_owned()), "◐ 90–98%"),
        (Sample::Box("fbad wash".to_owned()), "○ less, or saturated"),
    ];
    let marks = marks.map(|(sample, text)| (sample, text.to_owned()));
    legend(&mut canvas, 0.0, 0.0, width, &marks);
    canvas.text(0.0, top - 8.0, "m", &fitted(row_axis, left));
    canvas.text(left, top - 25.0, "m", column_axis);
    for (index, label) in columns.iter().enumerate() {
        let x = left + cell_width * (float(index) + 0.5);
        canvas.text(x, top - 8.0, "b c", &fitted(label, cell_width - 4.0));
    }
    let mut numbers = FigureTable::new(&[
        (row_axis, ColumnType::Text),
        (column_axis, ColumnType::Text),
        ("offered/s", ColumnType::Number),
        ("goodput/s", ColumnType::Number),
        ("achieved", ColumnType::Text),
    ]);
    for (row_index, row) in rows.iter().enumerate() {
        let y = top + cell_height * float(row_index);
        canvas.text(0.0, y + cell_height / 2.0 + 4.0, "b", &fitted(row, left - 6.0));
        for (column_index, column) in columns.iter().enumerate() {
            let x = left + cell_width * float(column_index);
            let found = cells.iter().find(|it| {
                it.setting.values.get(row_axis) == Some(row)
                    && it.setting.values.get(column_axis) == Some(column)
            });
            let place = (x + 1.0, y + 1.0, cell_width - 2.0, cell_height - 2.0);
            draw_cell(&mut canvas, place, found);
            if let Some(it) = found {
                numbers.rows.push(number_row(it, row, column));
            }
        }
    }
    let of: Vec<String> = rest.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
    Meta::new(
        Section::Saturation,
        &format!("heat{}{}", if of.is_empty() { "" } else { "-" }, stem(&of.join(","))),
        &clean(&format!("Goodput of the offered load: {row_axis} × {column_axis}")),
        "Each cell is a setting: the share of the offered load that reached the final stage in time, and below it \
         goodput of offered, per second. The middle trial where a setting has several. A crossed cell was not \
         measured.",
    )
    .of(&clean(&of.join(" ")))
    .figure(canvas, numbers)
}

fn draw_cell(canvas: &mut Canvas, (x, y, w, h): (f64, f64, f64, f64), found: Option<&Shown<'_>>) {
    let Some(it) = found else {
        canvas.rect(x, y, w, h, "none g");
        canvas.line((x, y + h), (x + w, y), "g");
        return;
    };
    let rates = &it.trial().rates;
    let (text, _) = kept(it.setting, it.trial());
    let fill = match text.chars().next() {
        Some('●') => "fgood wash",
        Some('◐') => "fwarn wash",
        Some('○') => "fbad wash",
        _ => "fm wash",
    };
    canvas.rect(x, y, w, h, fill);
    let middle = x + w / 2.0;
    canvas.text(middle, y + 16.0, "b c", &text);
    let detail = format!("{} of {}", rate(rates.goodput_per_s), rate(rates.offered_per_s));
    canvas.text(middle, y + 30.0, "m c", &fitted(&detail, w));
}

fn number_row(it: &Shown<'_>, row: &str, column: &str) -> Vec<FigureCell> {
    let rates = &it.trial().rates;
    let at = format!("{}/rates", it.pointer());
    vec![
        FigureCell::words(clean(row)),
        FigureCell::words(clean(column)),
        FigureCell::per_s(rates.offered_per_s).at(format!("{at}/offered_per_s")),
        FigureCell::per_s(rates.goodput_per_s).at(format!("{at}/goodput_per_s")),
        FigureCell::words(kept(it.setting, it.trial()).0),
    ]
}

fn cut(labels: &[String]) -> Vec<String> {
    labels.iter().take(LABELS_MAX).cloned().collect()
}
