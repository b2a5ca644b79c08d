//! The numbers of a trial that are compared. A number that rests on fewer than ten samples is none of them.

use model::comparison::ComparedUnit;
use model::result::{Family, SectionResult, TrialResult};
use stats::combined::Estimate;
use stats::ratio;
use stats::sections::{Section, of_share, variances};

/// A percentile is bounded by sections where its window holds as many independent excursions on either side of it.
const EXCURSIONS_MIN: f64 = 10.0;
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
    Known(ratio::Measured),
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
    all.push(goodput(trial));
    let counts = &trial.counts;
    let failed = counts.rejected + counts.unknown + counts.shed;
    let voided = void(trial, Family::Failures).or_else(|| void(trial, Family::Timeouts));
    let value = match voided {
        Some(audit) => Value::Void(audit),
        None => Value::Share { part: failed, whole: counts.due },
    };
    all.push(Measured { name: "failed".to_owned(), unit: ComparedUnit::FailedShare, value });
    if let Some(ns) = trial.processor.ns_per_transaction {
        let estimate = Estimate { value: ns, low: None, high: None };
        let of = ratio::Measured { estimate, parts: parts_of_processor(trial, ns) };
        all.push(measured(trial, "processor time", ComparedUnit::Ns, Family::Series, of));
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
        let of = ratio::Measured { estimate, parts: parts_of_mean(trial, value) };
        all.push(measured(trial, "mean", ComparedUnit::Ns, Family::Response, of));
    }
    for (place, quantile) in response.quantiles.iter().enumerate() {
        if quantile.due_beyond.max(quantile.beyond) < BEYOND_MIN {
            continue;
        }
        let float = |ns: Option<i64>| ns.map(|ns| ns as f64);
        let value = match (void(trial, Family::Response), quantile.unconditional_ns) {
            (Some(audit), _) => Value::Void(audit),
            (None, None) => Value::Infinite { is_certain: quantile.due_low_infinite },
            (None, Some(value)) => Value::Known(ratio::Measured {
                estimate: Estimate {
                    value: value as f64,
                    low: float(quantile.due_low_ns),
                    high: float(quantile.due_high_ns),
                },
                parts: parts_of_quantile(trial, place, quantile.q).unwrap_or_default(),
            }),
        };
        all.push(Measured { name: quantile.name.clone(), unit: ComparedUnit::Ns, value });
    }
    all
}

/// Parts of the error of the mean's logarithm.
#[expect(clippy::cast_precision_loss, reason = "times in nanoseconds")]
fn parts_of_mean(trial: &TrialResult, mean: f64) -> Vec<f64> {
    let all = &trial.sections.all;
    let reached: u64 = all.iter().map(|it| it.reached).sum();
    if reached == 0 || mean <= 0.0 {
        return Vec::new();
    }
    let part = |it: &SectionResult| {
        (it.sum_ns as f64 - mean * it.reached as f64) / (mean * reached as f64)
    };
    all.iter().map(part).collect()
}

/// Parts of the error of the logarithm of processor time a transaction: a host that is busy with something else is slower
/// for seconds at a time, whoever is measured, which few trials may not show between them.
#[expect(clippy::cast_precision_loss, reason = "times in nanoseconds")]
fn parts_of_processor(trial: &TrialResult, each_ns: f64) -> Vec<f64> {
    let all = &trial.sections.all;
    let used = each_ns * trial.processor.committed as f64;
    if used <= 0.0 || all.iter().all(|it| it.processor_excess_ns == 0) {
        return Vec::new();
    }
    all.iter().map(|it| it.processor_excess_ns as f64 / used).collect()
}

/// The same of the percentile at a place: the error of the share within it times the slope. `None` where the window holds
/// too few excursions, whose size and number then decide.
fn parts_of_quantile(trial: &TrialResult, place: usize, q: f64) -> Option<Vec<f64>> {
    let slope = (*trial.sections.slopes.get(place)?)?;
    let section = |it: &SectionResult| Section { count: it.due, within: it.within.clone(), sum: 0 };
    let sections: Vec<Section> = trial.sections.all.iter().map(section).collect();
    let parts = of_share(&sections, place)?;
    let variance = variances(&parts)?.into_iter().fold(0.0, f64::max);
    let worth = q * (1.0 - q) / variance;
    // A share that is higher than asked for stands at a value that is too low.
    (worth * q.min(1.0 - q) >= EXCURSIONS_MIN)
        .then(|| parts.iter().map(|part| -slope * part).collect())
}

/// Goodput. Of an open load what was due is planned, whenever it came: what varies is the share that came through, so the
/// number is this share of the planned rate.
#[expect(clippy::cast_precision_loss, reason = "counts, and seconds of a window")]
fn goodput(trial: &TrialResult) -> Measured {
    let (goodput, offered) = (trial.rates.goodput_per_s, trial.rates.offered_per_s);
    let planned = trial.rates.planned_per_s.filter(|_| offered > 0.0);
    let value = planned.map_or(goodput, |planned| planned * goodput / offered);
    let all = &trial.sections.all;
    let sum = |of: fn(&SectionResult) -> u64| all.iter().map(of).sum::<u64>() as f64;
    let (due, through) = (sum(|it| it.offered), sum(|it| it.committed));
    let expected = |it: &SectionResult| match planned {
        Some(_) => through * it.offered as f64 / due,
        None => through / all.len() as f64,
    };
    let part = |it: &SectionResult| (it.committed as f64 - expected(it)) / through;
    let is_known = due > 0.0 && through > 0.0;
    let parts = if is_known { all.iter().map(part).collect() } else { Vec::new() };
    // Where there are no sections: no open schedule spreads more than a Poisson count.
    let seconds = trial.window_ns.max(1) as f64 / 1e9;
    let half = 1.96 * (goodput * seconds).sqrt() / seconds;
    let estimate = Estimate { value, low: Some(value - half), high: Some(value + half) };
    let of = ratio::Measured { estimate, parts };
    measured(trial, "goodput", ComparedUnit::PerSecond, Family::Committed, of)
}

fn measured(
    trial: &TrialResult,
    name: &str,
    unit: ComparedUnit,
    family: Family,
    of: ratio::Measured,
) -> Measured {
    let value = void(trial, family).map_or(Value::Known(of), Value::Void);
    Measured { name: name.to_owned(), unit, value }
}

/// The audit that voids numbers of a family.
fn void(trial: &TrialResult, family: Family) -> Option<String> {
    let voids =
        |it: &&model::result::AuditResult| it.voids.iter().any(|void| void.family == family);
    trial.audits.iter().find(voids).map(|audit| audit.name.clone())
}
