//! The published table, computed as vegeta's `lib/metrics.go` computes it: all results of what was sent, by
//! sent time, successes or not.
//!
//! Two deliberate differences: quantiles come from a three-digit histogram, of which vegeta's t-digest
//! (compression 100) is an approximation; and a result is a success by its code (200–399) where codes are
//! HTTP's, by its outcome where the system has none.

use std::collections::BTreeMap;

use model::result::{TrialResult, VegetaResult};
use model::{NO_STAMP, Outcome, Row, Stamp};
use stats::Histogram;
use stats::carry::Carry;

use crate::figures::block::Values;
use crate::figures::float::to_f64;
use crate::figures::known::Known;
use crate::figures::part::Part;

/// The figures that vegeta keeps of its results.
#[derive(Clone, Debug)]
pub struct Vegeta {
    latencies: Histogram,
    first_sent: Stamp,
    last_sent: Stamp,
    last_end: Stamp,
    bytes_in: u64,
    bytes_out: u64,
    committed: u64,
    /// By code, dense.
    codes: Vec<u64>,
    /// By error index: when it was first sent.
    errors: Vec<Stamp>,
    /// Latencies of one block.
    values: Values,
}

impl Default for Vegeta {
    fn default() -> Self {
        Self {
            latencies: Histogram::default(),
            first_sent: Stamp::MAX,
            last_sent: Stamp::MIN,
            last_end: Stamp::MIN,
            bytes_in: 0,
            bytes_out: 0,
            committed: 0,
            codes: vec![0; 1 << 16],
            errors: Vec::new(),
            values: Values::default(),
        }
    }
}

impl Part for Vegeta {
    fn of_trial(_: &Known<'_>) -> Self {
        Self::default()
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        self.rows(rows);
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.latencies.carry(it);
        it.min(&mut self.first_sent);
        it.max(&mut self.last_sent);
        it.max(&mut self.last_end);
        it.sum(&mut self.bytes_in);
        it.sum(&mut self.bytes_out);
        it.sum(&mut self.committed);
        it.sums(&mut self.codes);
        let count = it.length(self.errors.len(), usize::from(u16::MAX) + 1);
        if count > self.errors.len() {
            self.errors.resize(count, Stamp::MAX);
        }
        self.errors[..count].iter_mut().for_each(|first| it.min(first));
    }

    fn add_to(&mut self, trial: &Known<'_>, result: &mut TrialResult) {
        result.vegeta = self.result(&trial.facts.load.errors);
    }
}

impl Vegeta {
    /// Adds a row; what was never sent is not vegeta's. A latency that no trial can have is left out.
    #[inline]
    pub fn row(&mut self, row: &Row) {
        if let Some(latency) = self.count(row) {
            self.latencies.record(latency);
        }
    }

    /// The same for the rows of a block.
    pub(crate) fn rows(&mut self, rows: &[&Row]) {
        self.values.clear();
        for row in rows {
            let latency = self.count(row);
            self.values.push_if(latency.is_some(), latency.unwrap_or(0));
        }
        self.latencies.record_all(self.values.all());
    }

    /// Counts a row; its latency, if it has one.
    #[inline]
    fn count(&mut self, row: &Row) -> Option<i64> {
        if row.sent == NO_STAMP || row.end == NO_STAMP {
            return None;
        }
        let latency = row.end.checked_sub(row.sent)?;
        self.first_sent = self.first_sent.min(row.sent);
        self.last_sent = self.last_sent.max(row.sent);
        self.last_end = self.last_end.max(row.end);
        self.bytes_in += u64::from(row.bytes_in);
        self.bytes_out += u64::from(row.bytes_out);
        self.committed += u64::from(row.outcome == Outcome::Committed);
        self.codes[usize::from(row.code)] += 1;
        if row.error != 0 {
            let index = usize::from(row.error);
            if index >= self.errors.len() {
                self.errors.resize(index + 1, Stamp::MAX);
            }
            self.errors[index] = self.errors[index].min(row.sent);
        }
        Some(latency)
    }

    /// The table; `texts` are the error texts by the number that rows have for them.
    #[must_use]
    pub fn result(&self, texts: &[String]) -> VegetaResult {
        let requests = self.latencies.count();
        if requests == 0 {
            return VegetaResult::default();
        }
        let attack_ns = self.last_sent.saturating_sub(self.first_sent);
        let wait_ns = self.last_end.saturating_sub(self.last_sent);
        let q = |q| self.latencies.quantile(q).unwrap_or(0);
        let moments = self.latencies.moments();
        let successes = self.successes();
        let (rate, throughput, success) = rates(requests, successes, attack_ns, wait_ns);
        VegetaResult {
            requests,
            rate,
            throughput,
            attack_ns,
            wait_ns,
            total_ns: attack_ns.saturating_add(wait_ns),
            mean_ns: i64::try_from(moments.sum() / i128::from(requests)).unwrap_or(i64::MAX),
            min_ns: moments.min().unwrap_or(0),
            p50_ns: q(0.5),
            p90_ns: q(0.9),
            p95_ns: q(0.95),
            p99_ns: q(0.99),
            max_ns: moments.max().unwrap_or(0),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            success,
            status_codes: self.status_codes(),
            errors: self.error_set(texts),
        }
    }

    fn successes(&self) -> u64 {
        let of_http: u64 = self.codes[100..600].iter().sum();
        if of_http > 0 { self.codes[200..400].iter().sum() } else { self.committed }
    }

    fn status_codes(&self) -> BTreeMap<String, u64> {
        let counted = self.codes.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(code, count)| (code.to_string(), *count)).collect()
    }

    fn error_set(&self, texts: &[String]) -> Vec<String> {
        let mut seen: Vec<_> = self
            .errors
            .iter()
            .enumerate()
            .filter(|(_, first)| **first != Stamp::MAX)
            .map(|(index, first)| (*first, index))
            .collect();
        seen.sort_unstable();
        seen.into_iter()
            .map(|(_, index)| crate::figures::groups::error_text(texts, index))
            .collect()
    }
}

/// A time of the table, ns; `None` where nothing was sent.
pub(crate) fn time(trial: &TrialResult, of: fn(&VegetaResult) -> i64) -> Option<f64> {
    (trial.vegeta.requests > 0).then(|| to_f64(of(&trial.vegeta)))
}

/// Rate, throughput and success as vegeta's `Metrics.Close` divides them: an attack of no length (one request)
/// leaves the counts as they are.
#[expect(clippy::cast_precision_loss, reason = "rates")]
pub(crate) fn rates(
    requests: u64,
    successes: u64,
    attack_ns: i64,
    wait_ns: i64,
) -> (f64, f64, f64) {
    let (mut rate, mut throughput) = (requests as f64, successes as f64);
    let success = if requests == 0 { 0.0 } else { throughput / rate };
    if attack_ns > 0 {
        rate /= attack_ns as f64 / 1e9;
        throughput /= attack_ns.saturating_add(wait_ns) as f64 / 1e9;
    }
    (rate, throughput, success)
}

#[cfg(test)]
#[path = "vegeta_published_rows.rs"]
mod published_rows;
