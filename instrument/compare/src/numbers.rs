//! The numbers of a trial that are compared. A number that rests on fewer than ten samples is none of them.

use model::comparison::ComparedUnit;
use model::result::{Family, TrialResult};
use stats::combined::Estimate;

/// Fewer samples beyond a percentile say nothing of it.
const BEYOND_MIN: u64 = 10;

/// A number of one trial.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) unit: ComparedUnit,
    pub(crate) value: Value,
}

/// Its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Known(Estimate),
    /// So many were never answered that it has no end; whether that is certain.
    Infinite {
        is_certain: bool,
    },
    /// So many of so many.
    Share {
        part: u64,
        whole: u64,
    },
    /// An audit, by its name, says that it does not hold.
    Void(String),
}

/// All numbers of a trial, in the order in which they are named to people.
pub(crate) fn of(trial: &TrialResult) -> Vec<Measured> {
    let mut all = times(trial);
    let goodput = trial.rates.goodput_per_s;
    #[expect(clippy::cast_precision_loss, reason = "seconds of a window")]
    let seconds = trial.window_ns.max(1) as f64 / 1e9;
    // No open schedule spreads more than a Poisson count.
    let half = 1.96 * (goodput * seconds).sqrt() / seconds;
    let estimate =
        Estimate { value: goodput, low: Some(goodput - half), high: Some(goodput + half) };
    all.push(measured(trial, "goodput", ComparedUnit::PerSecond, Family::Committed, estimate));
    let counts = &trial.counts;
    let failed = counts.rejected + counts.unknown + counts.shed;
    let value = match void(trial, Family::Failures, None) {
        Some(audit) => Value::Void(audit),
        None => Value::Share { part: failed, whole: counts.due },
    };
    all.push(Measured { name: "failed".to_owned(), unit: ComparedUnit::FailedShare, value });
    if let Some(ns) = trial.processor.ns_per_transaction {
        let estimate = Estimate { value: ns, low: None, high: None };
        all.push(measured(trial, "processor time", ComparedUnit::Ns, Family::Series, estimate));
    }
    all
}

/// Response times at the final stage: of those that reached it the mean, of all that were due the percentiles.
#[expect(clippy::cast_precision_loss, reason = "times in nanoseconds")]
fn times(trial: &TrialResult) -> Vec<Measured> {
    let mut all = Vec::new();
    let Some(latency) = trial.latency.iter().find(|it| it.stage == trial.final_stage) else {
        return all;
    };
    let response = &latency.response;
    if let Some(value) = response.mean_ns.filter(|_| response.count >= BEYOND_MIN) {
        let (low, high) = (response.mean_low_ns, response.mean_high_ns);
        let estimate = Estimate { value, low, high };
        all.push(measured(trial, "mean", ComparedUnit::Ns, Family::Response, estimate));
    }
    for quantile in &response.quantiles {
        if quantile.due_beyond.max(quantile.beyond) < BEYOND_MIN {
            continue;
        }
        let float = |ns: Option<i64>| ns.map(|ns| ns as f64);
        let value =
            match (void(trial, Family::Response, Some(quantile.q)), quantile.unconditional_ns) {
                (Some(audit), _) => Value::Void(audit),
                (None, None) => Value::Infinite { is_certain: quantile.due_low_infinite },
                (None, Some(value)) => Value::Known(Estimate {
                    value: value as f64,
                    low: float(quantile.due_low_ns),
                    high: float(quantile.due_high_ns),
                }),
            };
        all.push(Measured { name: quantile.name.clone(), unit: ComparedUnit::Ns, value });
    }
    all
}

fn measured(
    trial: &TrialResult,
    name: &str,
    unit: ComparedUnit,
    family: Family,
    estimate: Estimate,
) -> Measured {
    let value = void(trial, family, None).map_or(Value::Known(estimate), Value::Void);
    Measured { name: name.to_owned(), unit, value }
}

/// The audit that voids numbers of a family, from a percentile on if it is one.
fn void(trial: &TrialResult, family: Family, q: Option<f64>) -> Option<String> {
    let reaches = |from: Option<f64>| from.is_none_or(|from| q.is_some_and(|q| q >= from));
    let voids = |it: &&model::result::AuditResult| {
        it.voids.iter().any(|void| void.family == family && reaches(void.from))
    };
    trial.audits.iter().find(voids).map(|audit| audit.name.clone())
}
