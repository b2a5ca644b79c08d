//! vegeta's results as `vegeta encode --to json` writes them: one object a line.

use std::borrow::Cow;
use std::io::{BufRead, Write as _};

use serde::Deserialize;

use super::ndjson::{put_text, short};
use super::vegeta_csv::ATTACK;
use super::{Declared, Holds, PLAIN, Results, TextForm, is_object_with};
use crate::error::ExchangeError;
use crate::lines::{Lines, wrong};
use crate::vegeta_result::VegetaRecord;
use clock::WallTime;

pub(super) const FORMAT: Declared = Declared {
    word: "vegeta-ndjson",
    made_of: &[Holds::Rows],
    begins: |line| is_object_with(line, &["timestamp", "latency"]),
    text: TextForm::Results { read, put },
    ..PLAIN
};

/// The keys that a row keeps; attack, body and headers are read over.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    seq: u64,
    code: u16,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    latency: i64,
    #[serde(default)]
    bytes_out: u64,
    #[serde(default)]
    bytes_in: u64,
    #[serde(default, borrow)]
    error: Cow<'a, str>,
    #[serde(default, borrow)]
    method: Cow<'a, str>,
    #[serde(default, borrow)]
    url: Cow<'a, str>,
}

fn read(
    name: &str,
    input: Box<dyn BufRead + '_>,
    results: Results<'_>,
) -> Result<(), ExchangeError> {
    let mut lines = Lines::new(name, input);
    while let Some((number, text)) = lines.next()? {
        let line: Line<'_> = serde_json::from_slice(text).map_err(|error| {
            wrong(name, number, format!("the line is not a result of vegeta: {}", short(&error)))
        })?;
        let sent = WallTime::parse_rfc3339(&line.timestamp).ok_or_else(|| {
            let shown = crate::cells::shown(&line.timestamp);
            wrong(name, number, format!("`{shown}` is not a time such as 2020-07-27T13:05:09.5Z"))
        })?;
        let result = VegetaRecord {
            sent_unix_ns: sent.unix_ns(),
            status: line.code,
            latency_ns: line.latency,
            bytes_out: line.bytes_out,
            bytes_in: line.bytes_in,
            error: &line.error,
            sequence: line.seq,
            method: &line.method,
            url: &line.url,
        };
        results(number, result)?;
    }
    Ok(())
}

/// Appends a result.
fn put(out: &mut Vec<u8>, result: &VegetaRecord<'_>) {
    let VegetaRecord { sent_unix_ns, status, latency_ns, bytes_out, bytes_in, sequence, .. } =
        result;
    let time = WallTime::from_unix_ns(*sent_unix_ns).rfc3339_ns();
    write!(
        out,
        "{{\"attack\":\"{ATTACK}\",\"seq\":{sequence},\"code\":{status},\"timestamp\":\"{time}\",\
         \"latency\":{latency_ns},\"bytes_out\":{bytes_out},\"bytes_in\":{bytes_in},\"error\":"
    )
    .expect("memory takes everything");
    put_text(out, result.error);
    out.extend_from_slice(b",\"body\":null,\"method\":");
    put_text(out, result.method);
    out.extend_from_slice(b",\"url\":");
    put_text(out, result.url);
    out.extend_from_slice(b",\"headers\":null}\n");
}
