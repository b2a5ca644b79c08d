//! HdrHistogram's percentile output, read back. It has no unit; values are taken for milliseconds, which is
//! what HdrHistogram's tools print.

use std::io::BufRead;

use super::{Declared, Holds, PLAIN, TextForm};
use crate::error::ExchangeError;
use crate::lines::{Lines, wrong};
use crate::percentiles::{Percentile, Percentiles};

/// The most lines of percentiles; a histogram of 64 bits has some 320.
const LINES_MAX: usize = 100_000;

pub(super) const FORMAT: Declared = Declared {
    word: "hgrm",
    holds: Holds::Distribution,
    made_of: &[Holds::Rows, Holds::Distribution],
    endings: &["hgrm"],
    is_known_by_name: true,
    // A comment that is none of a log's, which stands before this one in the list.
    begins: |line| {
        line.starts_with('#') || (line.starts_with("Value") && line.contains("Percentile"))
    },
    text: TextForm::Percentiles { read: |name, input| Ok(vec![read_hgrm(name, input)?]) },
    ..PLAIN
};

/// Reads a percentile output.
///
/// # Errors
/// When a line is none of it, or there is no percentile in it.
pub fn read_hgrm(name: &str, input: Box<dyn BufRead + '_>) -> Result<Percentiles, ExchangeError> {
    let mut lines = Lines::new(name, input);
    let mut found = Percentiles::default();
    while let Some((number, line)) = lines.next()? {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.starts_with('#') {
            comment(text, &mut found);
        } else if !text.starts_with("Value") && !text.starts_with("\"Value\"") {
            let at = |why: &str| {
                wrong(
                    name,
                    number,
                    format!("{why}; give the output of an HdrHistogram tool unchanged"),
                )
            };
            if found.lines.len() == LINES_MAX {
                return Err(at("it has more percentiles than any histogram"));
            }
            found
                .lines
                .push(percentile(text).ok_or_else(|| at("this is not a line of percentiles"))?);
        }
    }
    let Some(last) = found.lines.last() else {
        let why = "there is no percentile in it".to_owned();
        return Err(ExchangeError::Input { name: name.to_owned(), why });
    };
    // The footer says it too; where it was cut off, the last line still does.
    found.count = last.count;
    if found.max_ms == 0.0 {
        found.max_ms = last.value_ms;
    }
    Ok(found)
}

fn percentile(line: &str) -> Option<Percentile> {
    let mut cells =
        line.split(|c: char| c.is_whitespace() || c == ',').filter(|cell| !cell.is_empty());
    let value_ms: f64 = cells.next()?.parse().ok()?;
    let quantile: f64 = cells.next()?.parse().ok()?;
    let count = cells.next()?.parse().ok()?;
    (value_ms.is_finite() && (0.0..=1.0).contains(&quantile)).then_some(Percentile {
        value_ms,
        quantile,
        count,
    })
}

/// `#[Mean = 1.0, StdDeviation = 0.5]`, and our own first line.
fn comment(text: &str, found: &mut Percentiles) {
    let inner = text.trim_start_matches('#').trim().trim_start_matches('[').trim_end_matches(']');
    if let Some(rest) = inner.strip_prefix("Response times: ") {
        rest.split(", in milliseconds").next().unwrap_or("").clone_into(&mut found.tag);
    }
    for part in inner.split(',') {
        let Some((key, value)) = part.split_once('=') else { continue };
        let Some(value) = value.trim().parse::<f64>().ok().filter(|value| value.is_finite()) else {
            continue;
        };
        match key.trim() {
            "Mean" => found.mean_ms = value,
            "StdDeviation" => found.deviation_ms = value,
            "Max" => found.max_ms = value,
            _ => {}
        }
    }
}
