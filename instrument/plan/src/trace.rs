//! Trace files: due times, one a line, as a duration after the start (`1.5s`, `250ms`) or in seconds (`1.5`);
//! blank lines and what follows `#` do not count. A mistake is shown in the trace file itself.

use std::path::PathBuf;
use std::time::Duration;

use model::options::{Options, Span};
use model::plan::{Arrivals, Schedule};
use model::quantity::parse_duration;

use crate::input::Source;
use crate::keys;
use crate::shape::Shape;
use crate::table::{Reading, Table};

/// The most due times of a trace: they are part of the plan, and of plan.toml, as numbers.
pub(crate) const LINES_MAX: usize = 1_000_000;
/// The largest trace file, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// Mistakes shown for one trace.
const MISTAKES_MAX: usize = 5;

/// Reads `load.trace`.
pub(crate) fn read(table: &mut Table<'_>, reading: &mut Reading<'_>) -> Option<Shape> {
    let given = table.given("trace");
    let options = table.require("trace", given, "trace = { file = \"due-times.txt\" }", reading)?;
    let mut inner = Table::open(options, "load.trace", reading);
    let file = inner.string("file", reading);
    let file = inner.require("file", file, "file = \"due-times.txt\"", reading);
    let speed: f64 = keys::fixed("load.trace.speed").parse().expect("a number in KEYS");
    let speed = inner.number_or("speed", 0.001, 1_000_000.0, speed, reading);
    let place = inner.given("file");
    inner.finish(reading);
    let due_ns = due_times(file?, place?, speed, reading)?;
    let last = due_ns.last().copied().unwrap_or(0);
    // The last due time itself belongs to the window.
    let length = Duration::from_nanos(last.saturating_add(1));
    let arrivals = Arrivals::Open { schedule: Schedule::Trace { due_ns } };
    Some(Shape { arrivals, length: Some(length), exact: false })
}

/// The due times of `file`, read once however many settings use it.
fn due_times(
    file: &str,
    place: &Options,
    speed: f64,
    reading: &mut Reading<'_>,
) -> Option<Vec<u64>> {
    let key = (PathBuf::from(file), speed.to_string());
    if let Some(known) = reading.traces.get(&key) {
        return known.clone();
    }
    let due = load(file, place, speed, reading);
    reading.traces.insert(key, due.clone());
    due
}

fn load(file: &str, place: &Options, speed: f64, reading: &mut Reading<'_>) -> Option<Vec<u64>> {
    let text = match (reading.outside.read_file)(&PathBuf::from(file)) {
        Ok(text) if text.len() <= BYTES_MAX => text,
        Ok(text) => {
            let message = format!(
                "the trace `{file}` is {} bytes long; at most {BYTES_MAX} are read",
                text.len()
            );
            reading.problems.add(place.span, message, None);
            return None;
        }
        Err(error) => {
            let message = format!("the trace `{file}` cannot be read: {error}");
            let help = "the path is relative to the experiment file's folder".to_owned();
            reading.problems.add(place.span, message, Some(help));
            return None;
        }
    };
    let source = u16::try_from(reading.sources.len()).unwrap_or(u16::MAX);
    let before = reading.problems.list.len();
    let due = parse(&text, source, speed, reading);
    if reading.problems.list.len() > before {
        reading.sources.push(Source { name: file.to_owned(), text });
        return None;
    }
    if due.is_empty() {
        let message = format!("the trace `{file}` has no due times");
        let help = "write one due time a line, such as 1.5s, or 1.5 for seconds".to_owned();
        reading.problems.add(place.span, message, Some(help));
        return None;
    }
    Some(due)
}

fn parse(text: &str, source: u16, speed: f64, reading: &mut Reading<'_>) -> Vec<u64> {
    let mut due = Vec::new();
    let (mut offset, mut mistakes, mut last) = (0, 0, 0);
    for line in text.split_inclusive('\n') {
        let start = offset;
        offset += line.len();
        let content = line.split('#').next().unwrap_or_default();
        let word = content.trim();
        if word.is_empty() {
            continue;
        }
        let from = start + content.len() - content.trim_start().len();
        let span = Span { source, start: from, end: from + word.len() };
        let (message, help) = match due_time(word, speed) {
            _ if due.len() >= LINES_MAX => {
                (format!("a trace has at most {LINES_MAX} due times"), None)
            }
            Ok(at) if at >= last => {
                last = at;
                due.push(at);
                continue;
            }
            Ok(_) => {
                let help = "sort the file: due times must not go back".to_owned();
                (format!("`{word}` is earlier than the due time before it"), Some(help))
            }
            Err(message) => (message, None),
        };
        reading.problems.add(span, message, help);
        mistakes += 1;
        if mistakes >= MISTAKES_MAX || due.len() >= LINES_MAX {
            break;
        }
    }
    due
}

/// One due time in nanoseconds after the start, divided by the speed.
fn due_time(word: &str, speed: f64) -> Result<u64, String> {
    let is_number = word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let duration =
        if is_number { parse_duration(&format!("{word}s")) } else { parse_duration(word) };
    let duration = duration.map_err(|_| {
        format!("`{word}` is not a due time; write 1.5s or 250ms, or 1.5 for seconds")
    })?;
    let ns = u64::try_from(duration.as_nanos()).map_err(|_| format!("`{word}` is too late"))?;
    if (speed - 1.0).abs() < f64::EPSILON {
        return Ok(ns);
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a due time scaled by a factor is exact to the double's 53 bits; the cast saturates"
    )]
    let scaled = (ns as f64 / speed).round() as u64;
    Ok(scaled)
}
