//! Rows as comma-separated values with a header.

use std::io::BufRead;

use model::Row;

use super::{Declared, Holds, PLAIN, Push, TextForm, percentiles_csv};
use crate::cells::{Cell, Column, Reading, cell, columns, layout, put_number};
use crate::delimited::{Records, put_field};
use crate::error::ExchangeError;
use crate::lines::wrong;
use crate::names::Names;

pub(super) const FORMAT: Declared = Declared {
    word: "csv",
    made_of: &[Holds::Rows, Holds::Distribution],
    endings: &["csv"],
    begins: |line| line.split(',').any(|name| name.trim_matches('"') == "due_ns"),
    text: TextForm::Rows { read, begin: put_header, put: put_row },
    of_percentiles: Some(percentiles_csv),
    ..PLAIN
};

fn read(
    name: &str,
    input: Box<dyn BufRead + '_>,
    names: &mut Names,
    rows: Push<'_>,
) -> Result<(), ExchangeError> {
    let mut records = Records::new(name, input);
    let Some(header) = records.next()? else {
        let why = "it is empty; a file of rows begins with its header".to_owned();
        return Err(ExchangeError::Input { name: name.to_owned(), why });
    };
    let written = (0..header.len()).map(|index| header.field(index).unwrap_or("\u{fffd}"));
    let layout = layout(written, names).map_err(|why| wrong(name, 1, why))?;
    let mut index = 0;
    while let Some(record) = records.next()? {
        let line = record.line;
        if record.len() != layout.len() {
            let why = format!(
                "the record has {} fields and the header {}; was the file cut off?",
                record.len(),
                layout.len()
            );
            return Err(wrong(name, line, why));
        }
        let mut reading = Reading::start(index);
        for (at, (column_name, column)) in layout.iter().enumerate() {
            let at_column = |why: String| wrong(name, line, format!("column {column_name}: {why}"));
            let field =
                record.field(at).ok_or_else(|| at_column("it is not UTF-8 text".to_owned()))?;
            reading.set(*column, Cell::Text(field), names).map_err(at_column)?;
        }
        let row = reading.finish(index == 0, names).map_err(|why| wrong(name, line, why))?;
        index += 1;
        rows(names, row)?;
    }
    Ok(())
}

/// Appends the header.
fn put_header(out: &mut Vec<u8>, names: &Names) -> Vec<(String, Column)> {
    let columns = columns(&names.stages);
    for (index, (name, _)) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_field(out, name);
    }
    out.push(b'\n');
    columns
}

/// Appends a row.
fn put_row(out: &mut Vec<u8>, columns: &[(String, Column)], row: &Row, names: &Names) {
    for (index, (_, column)) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match cell(row, *column, names) {
            Cell::Absent => {}
            Cell::Number(number) => put_number(out, number),
            Cell::Text(text) => put_field(out, text),
        }
    }
    out.push(b'\n');
}
