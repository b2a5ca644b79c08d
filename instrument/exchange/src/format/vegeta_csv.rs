//! vegeta's results as `vegeta encode --to csv` writes them: no header; unix ns, status, latency in ns, bytes
//! out, bytes in, error, body in base64, attack, sequence, method, URL, headers in base64. Versions before 12.8
//! leave the last three out.

use std::io::{BufRead, Write as _};

use super::{Declared, Holds, PLAIN, Results, TextForm};
use crate::delimited::{Record, Records, put_field};
use crate::error::ExchangeError;
use crate::lines::wrong;
use crate::vegeta_result::VegetaRecord;

/// Fields of a record, and of one from before 12.8.
const FIELDS: usize = 12;
const FIELDS_OLD: usize = 9;

/// The attack's name in what is written.
pub(super) const ATTACK: &str = "assay";

pub(super) const FORMAT: Declared = Declared {
    word: "vegeta-csv",
    made_of: &[Holds::Rows],
    begins: is_record,
    text: TextForm::Results { read, put },
    ..PLAIN
};

/// Time, status, latency, bytes out and in: numbers; then an error text, which may hold commas, and at least three
/// fields (six since version 12.8).
fn is_record(line: &str) -> bool {
    let mut fields = line.split(',');
    let numbers = fields.by_ref().take(5).filter(|text| text.parse::<i64>().is_ok()).count();
    numbers == 5 && fields.count() >= 4
}

fn read(
    name: &str,
    input: Box<dyn BufRead + '_>,
    results: Results<'_>,
) -> Result<(), ExchangeError> {
    let mut records = Records::new(name, input);
    while let Some(record) = records.next()? {
        let result = result(&record).map_err(|why| wrong(name, record.line, why))?;
        results(record.line, result)?;
    }
    Ok(())
}

fn result<'a>(record: &Record<'a>) -> Result<VegetaRecord<'a>, String> {
    if ![FIELDS, FIELDS_OLD].contains(&record.len()) {
        return Err(format!(
            "the record has {} fields; what `vegeta encode --to csv` writes has {FIELDS}",
            record.len()
        ));
    }
    Ok(VegetaRecord {
        sent_unix_ns: number(record, 0, "the time")?,
        status: number(record, 1, "the status")?,
        latency_ns: number(record, 2, "the latency")?,
        bytes_out: number(record, 3, "bytes out")?,
        bytes_in: number(record, 4, "bytes in")?,
        error: text(record, 5)?,
        sequence: number(record, 8, "the sequence")?,
        method: if record.len() == FIELDS { text(record, 9)? } else { "" },
        url: if record.len() == FIELDS { text(record, 10)? } else { "" },
    })
}

fn text<'a>(record: &Record<'a>, index: usize) -> Result<&'a str, String> {
    record.field(index).ok_or_else(|| format!("field {} is not UTF-8 text", index + 1))
}

fn number<T: std::str::FromStr>(
    record: &Record<'_>,
    index: usize,
    what: &str,
) -> Result<T, String> {
    let text = text(record, index)?;
    text.trim_ascii_start().parse().map_err(|_| {
        format!(
            "{what} (field {}) is `{}`, which is no such number",
            index + 1,
            crate::cells::shown(text)
        )
    })
}

/// Appends a result.
fn put(out: &mut Vec<u8>, result: &VegetaRecord<'_>) {
    let VegetaRecord { sent_unix_ns, status, latency_ns, bytes_out, bytes_in, .. } = result;
    write!(out, "{sent_unix_ns},{status},{latency_ns},{bytes_out},{bytes_in},")
        .expect("memory takes everything");
    put_field(out, result.error);
    write!(out, ",,{ATTACK},{},", result.sequence).expect("memory takes everything");
    put_field(out, result.method);
    out.push(b',');
    put_field(out, result.url);
    out.extend_from_slice(b",\n");
}
