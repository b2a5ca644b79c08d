//! vegeta's reports (github.com/tsenart/vegeta): printed from a trial, and read back from text.
//!
//! Two text forms exist. The *current* one (since 12.8) has seven latencies, rounds each duration to the next
//! finer unit and leaves two blanks after every status code; the *12.7* one, in which the reports of 2020 were
//! published, has five latencies in full and is kept here as published, without trailing blanks.
//!
//! It must never compute a figure: what a report says was computed by `analysis` or by vegeta.

use std::collections::BTreeMap;
use std::fmt;

use model::result::{TrialResult, VegetaResult};
use serde_json::{Value, json};

use crate::go_duration::{parse_go, round_as_vegeta, show_go};
use crate::paint::{clean, visible};

/// The trial in vegeta's current text form.
#[must_use]
pub fn vegeta(trial: &TrialResult) -> String {
    vegeta_text(&trial.vegeta)
}

/// A result in vegeta's current text form.
#[must_use]
pub fn vegeta_text(result: &VegetaResult) -> String {
    let latencies = [
        ("min", result.min_ns),
        ("mean", result.mean_ns),
        ("50", result.p50_ns),
        ("90", result.p90_ns),
        ("95", result.p95_ns),
        ("99", result.p99_ns),
        ("max", result.max_ns),
    ];
    text(result, &latencies, round_as_vegeta, "  ")
}

/// The trial in the text form of vegeta 12.7.
#[must_use]
pub fn vegeta_12_7(trial: &TrialResult) -> String {
    vegeta_12_7_text(&trial.vegeta)
}

/// A result in the text form of vegeta 12.7, as published in 2020.
#[must_use]
pub fn vegeta_12_7_text(result: &VegetaResult) -> String {
    let latencies = [
        ("mean", result.mean_ns),
        ("50", result.p50_ns),
        ("95", result.p95_ns),
        ("99", result.p99_ns),
        ("max", result.max_ns),
    ];
    text(result, &latencies, |ns| ns, "")
}

/// The rows of a text report; `after_codes` ends the line of status codes.
fn text(
    result: &VegetaResult,
    latencies: &[(&str, i64)],
    round: fn(i64) -> i64,
    after_codes: &str,
) -> String {
    let duration = |ns: i64| show_go(round(ns));
    let join = |parts: Vec<String>, by: &str| parts.join(by);
    let names = join(latencies.iter().map(|(name, _)| (*name).to_owned()).collect(), ", ");
    let values = join(latencies.iter().map(|(_, ns)| duration(*ns)).collect(), ", ");
    let times = [result.total_ns, result.attack_ns, result.wait_ns].map(duration).join(", ");
    let codes = join(
        result
            .status_codes
            .iter()
            .map(|(code, count)| format!("{}:{count}", visible(code)))
            .collect(),
        "  ",
    );
    let codes = if codes.is_empty() { codes } else { format!("{codes}{after_codes}") };
    let rows = [
        (
            "Requests",
            "total, rate, throughput".to_owned(),
            format!("{}, {:.2}, {:.2}", result.requests, result.rate, result.throughput),
        ),
        ("Duration", "total, attack, wait".to_owned(), times),
        ("Latencies", names, values),
        ("Bytes In", "total, mean".to_owned(), total_and_mean(result.bytes_in, result.requests)),
        ("Bytes Out", "total, mean".to_owned(), total_and_mean(result.bytes_out, result.requests)),
        ("Success", "ratio".to_owned(), format!("{:.2}%", result.success * 100.0)),
        ("Status Codes", "code:count".to_owned(), codes),
    ];
    // The columns of Go's tabwriter with padding 2: as wide as the widest cell.
    let width = rows.iter().map(|(_, names, _)| names.len() + 2).max().unwrap_or(0);
    let mut page = String::new();
    for (head, names, values) in rows {
        let names = format!("[{names}]");
        page.push_str(&format!("{head:<14}{names:<width$}  {values}\n"));
    }
    page.push_str("Error Set:\n");
    for error in &result.errors {
        // vegeta prints them raw; a control character is shown here, not obeyed.
        page.push_str(&visible(error));
        page.push('\n');
    }
    page
}

/// Total and mean a request, as vegeta prints them: the mean of nothing is not a number.
#[expect(clippy::cast_precision_loss, reason = "as vegeta computes it")]
fn total_and_mean(total: u64, requests: u64) -> String {
    format!("{total}, {:.2}", total as f64 / requests as f64)
}

/// The trial as vegeta's JSON report, without `earliest`, `latest` and `end`: a trial's result holds times on
/// its own line only. The total of the latencies is the mean times the requests.
#[must_use]
pub fn vegeta_json(trial: &TrialResult) -> String {
    vegeta_json_text(&trial.vegeta)
}

/// A result as vegeta's JSON report, as [`vegeta_json`] writes a trial's.
#[must_use]
pub fn vegeta_json_text(result: &VegetaResult) -> String {
    #[expect(clippy::cast_precision_loss, reason = "as vegeta computes it")]
    let mean = |total: u64| total as f64 / result.requests.max(1) as f64;
    let total_ns = i128::from(result.mean_ns) * i128::from(result.requests);
    let document = json!({
        "latencies": {
            "total": i64::try_from(total_ns).unwrap_or(i64::MAX),
            "mean": result.mean_ns,
            "50th": result.p50_ns,
            "90th": result.p90_ns,
            "95th": result.p95_ns,
            "99th": result.p99_ns,
            "max": result.max_ns,
            "min": result.min_ns,
        },
        "bytes_in": { "total": result.bytes_in, "mean": mean(result.bytes_in) },
        "bytes_out": { "total": result.bytes_out, "mean": mean(result.bytes_out) },
        "duration": result.attack_ns,
        "wait": result.wait_ns,
        "requests": result.requests,
        "rate": result.rate,
        "throughput": result.throughput,
        "success": result.success,
        "status_codes": result.status_codes,
        "errors": result.errors.iter().map(|text| Value::from(text.as_str())).collect::<Vec<_>>(),
    });
    let mut line = document.to_string();
    line.push('\n');
    line
}

/// Latency by percentile in the columns of vegeta's `hdrplot`, which the HdrHistogram plotter reads.
///
/// `quantile_ns` gives the latency at a fraction of one; the steps are those of HdrHistogram's percentile
/// iteration with five a halving.
#[must_use]
pub fn hdr_text(count: u64, quantile_ns: &dyn Fn(f64) -> i64) -> String {
    let quantiles = hdr_quantiles();
    let rows: Vec<[String; 4]> = quantiles
        .into_iter()
        .map(|q| {
            let one_in = if q < 1.0 { 1.0 / (1.0 - q) } else { 10_000_000.0 };
            #[expect(clippy::cast_precision_loss, reason = "for people and plots")]
            let (ms, at) = (quantile_ns(q) as f64 / 1e6, (q * count as f64).round());
            [format!("{ms:.6}"), format!("{q:.6}"), format!("{at:.0}"), format!("{one_in:.6}")]
        })
        .collect();
    let head = ["Value(ms)", "Percentile", "TotalCount", "1/(1-Percentile)"];
    let mut page = String::new();
    for row in std::iter::once(head.map(str::to_owned)).chain(rows.clone()) {
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
            let width = width.max(head[column].len()) + 2;
            let width = if column == 3 { 0 } else { width };
            page.push_str(&format!("{cell:<width$}"));
        }
        page.push('\n');
    }
    page
}

/// The steps: five for each halving of what lies above, to six decimals, which is what is printed.
fn hdr_quantiles() -> Vec<f64> {
    /// Half to the nineteenth is the last that six decimals can tell from nothing.
    const HALVINGS: i32 = 19;
    let mut quantiles: Vec<f64> = (0..HALVINGS)
        .flat_map(|halving| {
            let above = 0.5_f64.powi(halving);
            (0..5).map(move |step| 1.0 - above + above / 2.0 * f64::from(step) / 5.0)
        })
        .map(|q| (q * 1e6).round() / 1e6)
        .filter(|q| *q < 1.0)
        .collect();
    quantiles.dedup();
    quantiles.push(1.0);
    quantiles
}

/// Why a text could not be read as vegeta's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// A row that both forms have is absent.
    RowMissing {
        /// Its head.
        row: &'static str,
    },
    /// A row's value cannot be read.
    ValueUnreadable {
        /// The row's head.
        row: &'static str,
        /// The value's name in the brackets.
        value: String,
        /// The text of a line.
        found: String,
    },
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowMissing { row } => write!(
                f,
                "reading a vegeta text report: there is no `{row}` row; give the whole output of `vegeta report`"
            ),
            Self::ValueUnreadable { row, value, found } => write!(
                f,
                "reading a vegeta text report: `{}` is not a value for `{value}` in the `{row}` row; \
                 give the output of `vegeta report` unchanged",
                clean(found)
            ),
        }
    }
}

impl std::error::Error for ReportError {}

/// Reads a text report in either form. Lines before the `Requests` row are skipped; the error set ends at a
/// blank line, and may be absent. The form of 12.7 has no minimum and no p90: they are zero.
///
/// # Errors
/// [`ReportError`] if a row is absent or a value cannot be read.
pub fn parse_vegeta_text(text: &str) -> Result<VegetaResult, ReportError> {
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Requests")).collect();
    let requests = Row::find(&lines, "Requests")?;
    let duration = Row::find(&lines, "Duration")?;
    let latencies = Row::find(&lines, "Latencies")?;
    let bytes_in = Row::find(&lines, "Bytes In")?;
    let bytes_out = Row::find(&lines, "Bytes Out")?;
    let success = Row::find(&lines, "Success")?;
    let optional = |name: &str| -> Result<i64, ReportError> {
        if latencies.names.iter().any(|known| known == name) { latencies.time(name) } else { Ok(0) }
    };
    Ok(VegetaResult {
        requests: requests.number("total")?,
        rate: requests.number("rate")?,
        throughput: requests.number("throughput")?,
        total_ns: duration.time("total")?,
        attack_ns: duration.time("attack")?,
        wait_ns: duration.time("wait")?,
        min_ns: optional("min")?,
        mean_ns: latencies.time("mean")?,
        p50_ns: latencies.time("50")?,
        p90_ns: optional("90")?,
        p95_ns: latencies.time("95")?,
        p99_ns: latencies.time("99")?,
        max_ns: latencies.time("max")?,
        bytes_in: bytes_in.number("total")?,
        bytes_out: bytes_out.number("total")?,
        success: success.share("ratio")?,
        status_codes: status_codes(&lines)?,
        errors: error_set(&lines),
    })
}

/// A row of a report: its names in brackets and the values after them.
struct Row {
    head: &'static str,
    names: Vec<String>,
    values: Vec<String>,
}

impl Row {
    fn find(lines: &[&str], head: &'static str) -> Result<Self, ReportError> {
        let missing = ReportError::RowMissing { row: head };
        let rest = lines.iter().find_map(|line| line.strip_prefix(head)).ok_or(missing.clone())?;
        let bracketed = rest.trim_start().strip_prefix('[').ok_or(missing.clone())?;
        let (names, values) = bracketed.split_once(']').ok_or(missing)?;
        let split = |list: &str| list.split(',').map(|part| part.trim().to_owned()).collect();
        Ok(Self { head, names: split(names), values: split(values) })
    }

    fn value(&self, name: &str) -> Result<&str, ReportError> {
        let index = self.names.iter().position(|known| known == name);
        index
            .and_then(|index| self.values.get(index))
            .map(String::as_str)
            .ok_or_else(|| self.unreadable(name, ""))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, ReportError> {
        let found = self.value(name)?;
        found.parse().map_err(|_| self.unreadable(name, found))
    }

    fn time(&self, name: &str) -> Result<i64, ReportError> {
        let found = self.value(name)?;
        parse_go(found).ok_or_else(|| self.unreadable(name, found))
    }

    fn share(&self, name: &str) -> Result<f64, ReportError> {
        let found = self.value(name)?;
        let number = found.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        number.map(|percent| percent / 100.0).ok_or_else(|| self.unreadable(name, found))
    }

    fn unreadable(&self, value: &str, found: &str) -> ReportError {
        let (row, value, found) = (self.head, value.to_owned(), found.to_owned());
        ReportError::ValueUnreadable { row, value, found }
    }
}

/// `200:4566  404:234`.
fn status_codes(lines: &[&str]) -> Result<BTreeMap<String, u64>, ReportError> {
    let row = "Status Codes";
    let rest = lines.iter().find_map(|line| line.strip_prefix(row));
    let rest = rest.ok_or(ReportError::RowMissing { row })?;
    let values = rest.split_once(']').map_or(rest, |(_, values)| values);
    values
        .split_whitespace()
        .map(|pair| {
            let read = pair
                .split_once(':')
                .and_then(|(code, count)| Some((code.to_owned(), count.parse::<u64>().ok()?)));
            read.ok_or_else(|| {
                let (value, found) = ("code:count".to_owned(), pair.to_owned());
                ReportError::ValueUnreadable { row, value, found }
            })
        })
        .collect()
}

/// The lines after `Error Set:` up to a blank one; none in a report that was cut off before it, as one of the
/// published ones is.
fn error_set(lines: &[&str]) -> Vec<String> {
    let after = lines.iter().skip_while(|line| line.trim_end() != "Error Set:").skip(1);
    after.take_while(|line| !line.trim().is_empty()).map(|line| (*line).to_owned()).collect()
}
