//! Rows into figures: the table that vegeta's reports print, and the distribution of response times. What
//! belongs to the measured window is decided by a transaction's due time, where the input says what the window
//! is; what is reported is the probe's if there is one, the main load's otherwise, as `analysis` does it.

use std::collections::BTreeMap;

use model::result::VegetaResult;
use model::{NO_STAMP, Outcome, Row, Stamp};
use stats::Histogram;

use crate::error::ExchangeError;
use crate::names::Names;
use crate::percentiles::{Percentiles, of_histogram};
use crate::rows_in::{Notes, RowsInput};

/// What rows amount to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// As vegeta computes it.
    pub vegeta: VegetaResult,
    /// Response times to the final stage.
    pub percentiles: Percentiles,
}

/// Reads all rows and counts them.
///
/// # Errors
/// When the input cannot be read.
pub fn summarise(input: RowsInput<'_>) -> Result<(Summary, Notes), ExchangeError> {
    let mut streams = [Tally::new(), Tally::new()];
    let mut outside = 0_u64;
    let (names, mut notes) = input.for_each(&mut |names, rows| {
        for row in rows {
            if names.window.is_some_and(|(start, end)| row.due < start || row.due >= end) {
                outside += 1;
            } else {
                streams[usize::from(row.stream.min(1))].row(row, names.final_stage);
            }
        }
        Ok(())
    })?;
    if outside > 0 {
        notes.lines.push(format!(
            "{outside} of {} transactions were due outside the measured window and are not counted",
            notes.rows
        ));
    }
    let [main, probe] = streams;
    let tally = if probe.due > 0 { probe } else { main };
    let stage = names.final_stage_name();
    if tally.without_mark > 0 {
        notes.lines.push(format!(
            "{} of {} transactions never reached {stage} and have no response time",
            tally.without_mark, tally.due
        ));
    }
    let summary = Summary {
        vegeta: tally.vegeta(&names),
        percentiles: of_histogram(&tally.response, stage, tally.due),
    };
    Ok((summary, notes))
}

/// One stream.
struct Tally {
    due: u64,
    without_mark: u64,
    response: Histogram,
    latency: Histogram,
    sent: (Stamp, Stamp),
    last_end: Stamp,
    bytes_in: u64,
    bytes_out: u64,
    committed: u64,
    codes: BTreeMap<u16, u64>,
    /// By error number: when it was first sent.
    errors: BTreeMap<u16, Stamp>,
}

impl Tally {
    fn new() -> Self {
        Self {
            due: 0,
            without_mark: 0,
            response: Histogram::default(),
            latency: Histogram::default(),
            sent: (Stamp::MAX, Stamp::MIN),
            last_end: Stamp::MIN,
            bytes_in: 0,
            bytes_out: 0,
            committed: 0,
            codes: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    fn row(&mut self, row: &Row, final_stage: usize) {
        self.due += 1;
        let mark = row.marks[final_stage];
        match mark.checked_sub(row.due) {
            Some(response) if mark != NO_STAMP && row.due != NO_STAMP => {
                self.response.record(response)
            }
            _ => self.without_mark += 1,
        }
        let latency = row.end.checked_sub(row.sent);
        let Some(latency) = latency.filter(|_| row.sent != NO_STAMP && row.end != NO_STAMP) else {
            return;
        };
        self.latency.record(latency);
        self.sent = (self.sent.0.min(row.sent), self.sent.1.max(row.sent));
        self.last_end = self.last_end.max(row.end);
        self.bytes_in += u64::from(row.bytes_in);
        self.bytes_out += u64::from(row.bytes_out);
        self.committed += u64::from(row.outcome == Outcome::Committed);
        *self.codes.entry(row.code).or_default() += 1;
        if row.error != 0 {
            let first = self.errors.entry(row.error).or_insert(Stamp::MAX);
            *first = row.sent.min(*first);
        }
    }

    /// The figures, divided as `lib/metrics.go` of vegeta divides them.
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    fn vegeta(&self, names: &Names) -> VegetaResult {
        let requests = self.latency.count();
        if requests == 0 {
            return VegetaResult::default();
        }
        let attack_ns = self.sent.1.saturating_sub(self.sent.0);
        let wait_ns = self.last_end.saturating_sub(self.sent.1);
        let total_ns = attack_ns.saturating_add(wait_ns);
        let q = |q| self.latency.quantile(q).unwrap_or(0);
        let moments = self.latency.moments();
        let of_http: u64 = self.codes.range(100..600).map(|(_, count)| count).sum();
        let successes: u64 = if of_http > 0 {
            self.codes.range(200..400).map(|(_, count)| count).sum()
        } else {
            self.committed
        };
        let per = |count: u64, ns: i64| {
            if attack_ns > 0 { count as f64 / (ns as f64 / 1e9) } else { count as f64 }
        };
        let mut errors: Vec<(Stamp, u16)> =
            self.errors.iter().map(|(index, first)| (*first, *index)).collect();
        errors.sort_unstable();
        VegetaResult {
            requests,
            rate: per(requests, attack_ns),
            throughput: per(successes, total_ns),
            attack_ns,
            wait_ns,
            total_ns,
            mean_ns: i64::try_from(moments.sum() / i128::from(requests)).unwrap_or(i64::MAX),
            min_ns: moments.min().unwrap_or(0),
            p50_ns: q(0.5),
            p90_ns: q(0.9),
            p95_ns: q(0.95),
            p99_ns: q(0.99),
            max_ns: moments.max().unwrap_or(0),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            success: successes as f64 / requests as f64,
            status_codes: self
                .codes
                .iter()
                .map(|(code, count)| (code.to_string(), *count))
                .collect(),
            errors: errors.into_iter().map(|(_, index)| names.error(index).to_owned()).collect(),
        }
    }
}
