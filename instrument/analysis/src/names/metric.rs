//! One number of a trial by its name: the one namespace that thresholds and tables share.
//!
//! Latency words (`p99`, `mean`, `max`) are response times to the final stage, from the due time, of all due: what was
//! refused counts with the time to that answer, what was never answered or never sent is infinite. `committed.p99` and
//! `answered.p99` are of those alone.

use model::quantity::{show_count, show_ns};
use model::result::{Distribution, LatencyResult, Quantile, TrialResult};

use crate::figures::float::to_f64;
use crate::figures::latency::BEYOND_MIN;
use crate::names::metric_list::{Entry, Value};
use crate::names::metric_names::{End, Name, Of, OfStage, Word, parse};
use crate::names::unit::Unit;

/// A number of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The value; infinite where those without an answer make it so.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// Rests on fewer than ten samples beyond it.
    pub grey: bool,
    /// In words, where it is not a number.
    pub text: String,
}

impl Metric {
    fn plain(value: f64, unit: Unit) -> Self {
        Self { value, unit, grey: false, text: String::new() }
    }

    fn count(value: u64) -> Self {
        Self::plain(to_f64(value), Unit::Count)
    }

    /// A value as people read it.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "for people")]
    pub fn print(value: f64, unit: Unit) -> String {
        if value.is_infinite() {
            return "∞".to_owned();
        }
        match unit {
            Unit::Ns => show_ns(value as i64),
            Unit::NsSquared => format!("{:.4} ms²", value / 1e12),
            Unit::Count if value >= 0.0 => show_count(value as u64),
            Unit::PerSecond => format!("{value:.2}/s"),
            Unit::Ratio => ratio(value),
            Unit::Bytes => format!("{} B", show_count(value as u64)),
            Unit::Count | Unit::Number | Unit::Text => number_text(value),
        }
    }
}

/// Six significant digits, and all of a whole number.
fn number_text(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 || !(1e-4..1e6).contains(&size) {
        return format!("{value}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "between -4 and 5")]
    let exponent = size.log10().floor() as i32;
    let places = usize::try_from(5 - exponent).expect("below a million");
    let text = format!("{value:.places$}");
    if places == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// Two decimals, and never `100.00%` for less than all.
fn ratio(value: f64) -> String {
    let percent = value * 100.0;
    let rounded = format!("{percent:.2}");
    if value < 1.0 && rounded == "100.00" { "99.99%".to_owned() } else { format!("{rounded}%") }
}

/// The number called `name`; `None` if the trial has no such number (nothing reached the stage, the ledger was
/// not read, the series was not recorded, or there is no such name: see [`crate::names::check_metric`]).
#[must_use]
pub fn metric(name: &str, trial: &TrialResult) -> Option<Metric> {
    let Some(parsed) = parse(name) else {
        let reached = trial.rates.reached_per_s.iter().find(|(stage, _)| stage == name)?;
        if !trial.load_goes_to(name) {
            return None;
        }
        return Some(Metric::plain(reached.1, Unit::PerSecond));
    };
    match parsed {
        Name::Plain(entry) => plain(entry, trial),
        Name::RejectedClass(class) => {
            let by_class = &trial.counts.rejected_by_class;
            Some(Metric::count(by_class.get(class.word()).copied().unwrap_or(0)))
        }
        Name::Stage { stage, number } => of_stage(&stage, number, trial),
        Name::Distribution { of, word, stage } => distribution(of, word, stage.as_deref(), trial),
        Name::Resource { key, end } => {
            let of_all = || trial.resources.get(&key);
            let value = match end {
                End::Min => of_all()?.0,
                End::Mean => of_all()?.1,
                End::Max => of_all()?.2,
                End::Last => *trial.resources_last.get(&key)?,
            };
            Some(Metric::plain(value, Unit::Number))
        }
        Name::Audit { audit, figure, unit } => {
            let of = trial.audits.iter().find(|it| it.name == audit)?;
            let figure = of.figures.iter().find(|it| it.name == figure)?;
            Some(Metric::plain(figure.value, unit))
        }
    }
}

/// A number of a stage: of what clients saw where the ladder has it, else of what nodes stamped.
fn of_stage(stage: &str, wanted: OfStage, trial: &TrialResult) -> Option<Metric> {
    if let Some((_, rate)) = trial.rates.reached_per_s.iter().find(|(name, _)| name == stage) {
        // Only the final stage of the load is counted by window.
        let windows = || trial.throughput_windows.filter(|_| stage == trial.final_stage_of_load());
        let latency = || trial.latency.iter().find(|latency| latency.stage == stage);
        return match wanted {
            OfStage::Throughput => {
                trial.load_goes_to(stage).then(|| Metric::plain(*rate, Unit::PerSecond))
            }
            OfStage::ThroughputMin => Some(Metric::plain(windows()?.0, Unit::PerSecond)),
            OfStage::ThroughputMax => Some(Metric::plain(windows()?.1, Unit::PerSecond)),
            OfStage::Count => Some(Metric::count(latency()?.response.count)),
            OfStage::Latency(word) => distribution(Of::Due, word, Some(stage), trial),
        };
    }
    let stages = &trial.node_stages.as_ref()?.stages;
    let of = stages.iter().find(|it| it.stage == stage)?;
    match wanted {
        OfStage::Throughput => Some(Metric::plain(of.throughput_per_s?, Unit::PerSecond)),
        OfStage::ThroughputMin => Some(Metric::plain(of.throughput_min_per_s?, Unit::PerSecond)),
        OfStage::ThroughputMax => Some(Metric::plain(of.throughput_max_per_s?, Unit::PerSecond)),
        OfStage::Count => Some(Metric::count(of.count)),
        OfStage::Latency(word) => number(&of.latency, word),
    }
}

/// A number that stands alone.
fn plain(entry: &Entry, trial: &TrialResult) -> Option<Metric> {
    match entry.value {
        Value::Number(value) => Some(Metric::plain(value(trial)?, entry.unit)),
        Value::Text(text) => {
            Some(Metric { text: text(trial), ..Metric::plain(f64::NAN, entry.unit) })
        }
    }
}

fn distribution(of: Of, word: Word, stage: Option<&str>, trial: &TrialResult) -> Option<Metric> {
    let stage = stage.unwrap_or(&trial.final_stage);
    let latency = || trial.latency.iter().find(|latency| latency.stage == stage);
    match of {
        Of::SendLag => number(&trial.send_lag, word),
        Of::OwnLag => number(&trial.own_lag, word),
        Of::Committed => number(&latency()?.response, word),
        Of::Answered => number(latency()?.answered.as_ref().unwrap_or(&latency()?.response), word),
        Of::Due => {
            let of = latency()?;
            of_all_due(&of.response, of.answered.as_ref(), word, of)
        }
        Of::Service => {
            let of = latency()?;
            of_all_due(&of.service, of.answered_service.as_ref(), word, of)
        }
    }
}

/// One number of all due: infinite as far as those reach that were never answered, and where nothing was committed.
fn of_all_due(
    reached: &Distribution,
    answered: Option<&Distribution>,
    word: Word,
    of: &LatencyResult,
) -> Option<Metric> {
    if of.response.count + of.refused + of.missing == 0 {
        return None;
    }
    let is_finite = of.missing == 0 && of.response.count > 0;
    let infinite = || Metric::plain(f64::INFINITY, word.unit());
    match word {
        Word::Percentile(q) => {
            let quantile = quantile(reached, q)?;
            let value = quantile.unconditional_ns.map_or(f64::INFINITY, to_f64);
            let grey = quantile.due_beyond < BEYOND_MIN;
            Some(Metric { grey, ..Metric::plain(value, Unit::Ns) })
        }
        // The smallest is finite however many are missing.
        Word::Moment("min") if of.response.count > 0 => number(answered.unwrap_or(reached), word),
        Word::Moment(_) if is_finite => number(answered.unwrap_or(reached), word),
        Word::Moment(_) => Some(infinite()),
    }
}

fn quantile(of: &Distribution, q: f64) -> Option<&Quantile> {
    of.quantiles.iter().find(|quantile| (quantile.q - q).abs() < 1e-12)
}

/// One number of a distribution of which no transaction is missing; `None` where it is empty.
fn number(from: &Distribution, word: Word) -> Option<Metric> {
    let value = match word {
        Word::Percentile(q) => {
            let quantile = quantile(from, q)?;
            let grey = quantile.beyond < BEYOND_MIN;
            return Some(Metric { grey, ..Metric::plain(to_f64(quantile.value_ns?), Unit::Ns) });
        }
        Word::Moment("max") => to_f64(from.max_ns?),
        Word::Moment("mean") => from.mean_ns?,
        Word::Moment("min") => to_f64(from.min_ns?),
        Word::Moment("stddev") => from.variance_ns2?.sqrt(),
        Word::Moment("variance") => from.variance_ns2?,
        Word::Moment(_) => return None,
    };
    Some(Metric::plain(value, word.unit()))
}

#[cfg(test)]
mod tests {
    use model::{Class, Outcome};

    use super::*;
    use crate::names::metric_list::ENTRIES;
    use crate::testing::{Trial, row};

    /// Claim: every plain name that needs no ledger has a value in a clean trial, in its stated unit.
    #[test]
    fn every_name_has_a_value() {
        let mut trial = Trial::clean();
        let time = |ns| Some(clock::WallTime::from_unix_ns(ns));
        let entry = |tx| model::facts::LedgerEntry {
            submitted: time(1_000),
            recorded: time(2_000_000),
            ..model::facts::LedgerEntry::new(tx, tx, true)
        };
        trial.entries = Some((0..10_000).map(entry).collect());
        trial.setting.load.batch = Some(model::plan::BatchPlan {
            size_max: 10,
            delay_max: std::time::Duration::ZERO,
            in_flight_max: 1,
        });
        let (count, transactions, size_max, full) = (2_000, 10_000, 10, 2_000);
        trial.facts.load.workers = vec![model::facts::WorkerFacts {
            wall_ns: 10_000_000_000,
            connections: {
                let mut lives = model::facts::ConnectionFacts::default();
                lives.life_over(10_000, false);
                lives
            },
            batches: model::facts::BatchFacts {
                count,
                transactions,
                size_max,
                full,
                ..Default::default()
            },
            ..Default::default()
        }];
        trial.metrics = vec![model::facts::MetricSample {
            at: 10_000_000_000,
            source: "generator".to_owned(),
            name: "cpu_cores".to_owned(),
            value: 0.5,
        }];
        let mut result = trial.result();
        let all = model::result::FlowResult {
            begun: 10,
            completed: 9,
            completed_per_s: 0.9,
            p50_ns: Some(2_000_000),
            p99_ns: Some(3_000_000),
            max_ns: Some(3_000_000),
            ..Default::default()
        };
        result.flows = Some(model::result::FlowsResult { all, ..Default::default() });
        for entry in ENTRIES {
            for name in [Some(entry.name), entry.alias].into_iter().flatten() {
                let found = metric(name, &result).unwrap_or_else(|| panic!("{name} has no value"));
                assert_eq!(found.unit, entry.unit, "{name}");
            }
        }
        assert_eq!(metric("committed", &result).unwrap().value, 1_000.0);
        assert_eq!(metric("success", &result).unwrap().value, 1.0);
        assert_eq!(metric("codes", &result).unwrap().text, "200:10000");
        assert!(metric("lost", &Trial::clean().result()).is_none(), "the ledger was not read");
    }

    /// Claim: with 2 % unanswered p99 is infinite for a threshold, and what the others had for a table.
    #[test]
    fn promises_count_the_missing() {
        let mut trial = Trial::clean();
        for old in trial.rows.iter_mut().step_by(50) {
            *old = row(old.tx, old.due, 30_000_000_000, Outcome::Unknown);
        }
        let result = trial.result();
        let p99 = metric("p99", &result).unwrap();
        assert!(p99.value.is_infinite(), "{p99:?}");
        assert!(metric("committed.p99", &result).unwrap().value < 4e6);
        assert!(metric("p50", &result).unwrap().value < 4e6);
        assert!(metric("max", &result).unwrap().value.is_infinite());
        let mean = metric("mean", &result).unwrap();
        assert!(mean.value.is_infinite(), "{mean:?}");
        assert!(metric("committed.mean", &result).unwrap().value < 4e6);
        let restricted = metric("restricted_mean", &result).unwrap();
        assert!((5e8..7e8).contains(&restricted.value), "{restricted:?}");
        assert_eq!(metric("inf", &result).unwrap().value, 200.0);
    }

    /// Claim: a mean of counts is printed with six digits, a whole number with all of its own.
    #[test]
    fn digits_of_plain_numbers() {
        let printed = [4.0 / 3.0, 13.333_333_333, 0.5, 0.001_234_567_8, 1_234_567.0, 999_999.75]
            .map(|value| Metric::print(value, Unit::Number));
        assert_eq!(printed, ["1.33333", "13.3333", "0.5", "0.00123457", "1234567", "1000000"]);
    }

    /// Claim: of 1.1 % of 404s p99 of all due and of the answered have the time to these answers, p99 of the committed
    /// has not; what was never answered is in p99 of all due alone.
    #[test]
    fn three_latencies() {
        let names = ["committed.p99", "answered.p99", "due.p99", "p99", "answered.max", "max"];
        let of = |outcome: Outcome| {
            let mut trial = Trial::clean();
            for old in trial.rows.iter_mut().step_by(90) {
                *old = row(old.tx, old.due, 20_000_000, outcome);
            }
            let result = trial.result();
            names.map(|name| metric(name, &result).unwrap().value)
        };
        let near = |value: f64| (20e6..20.1e6).contains(&value);
        let refused = of(Outcome::Rejected(Class::BadRequest));
        assert!(refused[0] < 4e6 && refused[1..].iter().all(|value| near(*value)), "{refused:?}");
        let unanswered = of(Outcome::Unknown);
        assert!(unanswered[..2].iter().all(|value| *value < 4e6), "{unanswered:?}");
        assert!(unanswered[2].is_infinite() && unanswered[3].is_infinite(), "{unanswered:?}");
        assert!(unanswered[4] < 4e6 && unanswered[5].is_infinite(), "{unanswered:?}");
    }

    /// Claim: where nothing was committed, every latency of all due is infinite, those of the answered are their own, and
    /// those of the committed are unknown.
    #[test]
    fn nothing_committed() {
        let mut trial = Trial::clean();
        for old in &mut trial.rows {
            *old = row(old.tx, old.due, 1_000_000, Outcome::Rejected(Class::Limited));
        }
        let result = trial.result();
        for name in ["p50", "p99", "mean", "max", "min", "due.mean", "service.p99", "service.max"] {
            assert!(metric(name, &result).unwrap().value.is_infinite(), "{name}");
        }
        assert_eq!(metric("answered.max", &result).unwrap().value, 1e6);
        assert!(metric("committed.max", &result).is_none());
    }

    /// Claim: nothing less than all is printed as all.
    #[test]
    fn almost_all_is_not_all() {
        assert_eq!(Metric::print(0.999_999, Unit::Ratio), "99.99%");
        assert_eq!(Metric::print(1.0, Unit::Ratio), "100.00%");
        assert_eq!(Metric::print(f64::INFINITY, Unit::Ns), "∞");
    }
}
