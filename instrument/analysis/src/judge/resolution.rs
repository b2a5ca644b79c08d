//! Whether the samples decide a comparison: a quantile or a mean is an estimate, and its interval may have the limit
//! in it. Counts, rates, the largest and the smallest are what they are.
//!
//! It must never call a comparison decided whose interval is open on the side that matters.

use model::quantity::show_ns;
use model::result::{Distribution, LatencyResult, Quantile, TrialResult};

use crate::figures::float::to_f64;
use crate::figures::latency::BEYOND_MIN;
use crate::judge::expression::{Comparison, Operator};
use crate::names::metric_names::{Name, Of, OfStage, Word, parse};

/// Where a number lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    /// `None` = the samples cannot give it.
    low: Option<f64>,
    high: Option<f64>,
    /// Samples beyond a quantile.
    beyond: Option<u64>,
}

impl Interval {
    fn is_closed(self) -> bool {
        self.low.is_some() && self.high.is_some()
    }
}

/// Why the samples do not decide a comparison that the value alone keeps or breaks; `None` where they do. Only a number
/// beside a constant is judged: of two numbers nothing is known of how they vary together.
///
/// What is broken by the value is left in doubt only by an interval that has both ends. Where the samples cannot give
/// one, the system may have changed while it was measured (it died, or its queue grew), and that more of those that
/// fell due took longer than the limit is counted and not estimated.
pub(crate) fn unresolved(
    comparison: &Comparison,
    holds: bool,
    trial: &TrialResult,
) -> Option<String> {
    let (name, operator, limit) = comparison.with_constant()?;
    let interval = interval_of(name, trial)?;
    let is_below = match operator {
        Operator::Less | Operator::AtMost => holds,
        Operator::More | Operator::AtLeast => !holds,
        Operator::Equal | Operator::NotEqual => return None,
    };
    // The end that would have to lie beyond the limit for the answer to be another.
    let end = if is_below { interval.high } else { interval.low };
    if end.is_some_and(|end| operator.holds(end, limit) == holds) {
        return few_beyond(interval).filter(|_| is_below && holds);
    }
    if !holds && !interval.is_closed() {
        return None;
    }
    let few = few_beyond(interval).filter(|_| is_below);
    Some(few.unwrap_or_else(|| format!("95 % interval {}", in_words(interval))))
}

/// The sentence about a quantile that too few samples lie beyond.
fn few_beyond(interval: Interval) -> Option<String> {
    Some(match interval.beyond? {
        0 => "no sample lies beyond it".to_owned(),
        1 => "only one sample lies beyond it".to_owned(),
        beyond if beyond < BEYOND_MIN => format!("only {beyond} samples lie beyond it"),
        _ => return None,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "for people")]
fn in_words(interval: Interval) -> String {
    let end = |end: Option<f64>| match end {
        None => "?".to_owned(),
        Some(ns) if ns.is_infinite() => "∞".to_owned(),
        Some(ns) => show_ns(ns as i64),
    };
    format!("{} to {}", end(interval.low), end(interval.high))
}

/// The interval of a number that is an estimate.
fn interval_of(name: &str, trial: &TrialResult) -> Option<Interval> {
    let latency = |stage: &str| trial.latency.iter().find(|latency| latency.stage == stage);
    match parse(name)? {
        Name::Stage { stage, number: OfStage::Latency(word) } => match latency(&stage) {
            Some(latency) => of_due(latency, Of::Due, word),
            None => {
                let stages = &trial.node_stages.as_ref()?.stages;
                of_reached(&stages.iter().find(|it| it.stage == stage)?.latency, word)
            }
        },
        Name::Distribution { of, word, stage } => {
            let latency = latency(stage.as_deref().unwrap_or(&trial.final_stage))?;
            match of {
                Of::Due | Of::Service => of_due(latency, of, word),
                Of::Committed => of_reached(&latency.response, word),
                Of::Answered => {
                    of_reached(latency.answered.as_ref().unwrap_or(&latency.response), word)
                }
                // The instrument's own doing is counted and not estimated.
                Of::SendLag | Of::OwnLag => None,
            }
        }
        _ => None,
    }
}

fn of_due(latency: &LatencyResult, of: Of, word: Word) -> Option<Interval> {
    let (reached, answered) = match of {
        Of::Service => (&latency.service, &latency.answered_service),
        _ => (&latency.response, &latency.answered),
    };
    match word {
        Word::Percentile(q) => quantile(reached, q).map(|it| Interval {
            low: if it.due_low_infinite { Some(f64::INFINITY) } else { it.due_low_ns.map(to_f64) },
            high: it.due_high_ns.map(to_f64),
            beyond: Some(it.due_beyond),
        }),
        // Infinite for certain: a transaction is missing.
        Word::Moment("mean") if latency.missing > 0 || reached.count == 0 => None,
        Word::Moment(_) => of_reached(answered.as_ref().unwrap_or(reached), word),
    }
}

fn of_reached(of: &Distribution, word: Word) -> Option<Interval> {
    match word {
        Word::Percentile(q) => quantile(of, q).map(|it| Interval {
            low: it.low_ns.map(to_f64),
            high: it.high_ns.map(to_f64),
            beyond: Some(it.beyond),
        }),
        Word::Moment("mean") => {
            Some(Interval { low: of.mean_low_ns, high: of.mean_high_ns, beyond: None })
        }
        Word::Moment(_) => None,
    }
}

fn quantile(of: &Distribution, q: f64) -> Option<&Quantile> {
    of.quantiles.iter().find(|quantile| (quantile.q - q).abs() < 1e-12)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::Outcome;
    use model::plan::{Level, ThresholdPlan};
    use model::quantity::Rate;
    use model::result::{Answer, ThresholdResult, Verdict};

    use crate::testing::{Trial, row, setting};

    /// A clean trial of `count` transactions of 2 to 3 ms.
    fn with(count: u32, expr: &str) -> ThresholdResult {
        let mut trial = Trial::clean();
        let rate = Rate::parse(&format!("{}/s", f64::from(count) / 10.0)).unwrap();
        trial.setting = setting(rate, Duration::from_secs(10));
        trial.percentiles = vec![0.5, 0.99, 0.9999];
        trial.rows.truncate(usize::try_from(count).unwrap());
        for old in &mut trial.rows {
            let due = i64::try_from(old.tx).unwrap() * 10_000_000_000 / i64::from(count);
            *old = row(old.tx, due, old.end - old.due, Outcome::Committed);
        }
        trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
        trial.result().thresholds.remove(0)
    }

    /// Claim: what the value keeps is met, and says where few samples say so; what all samples break has failed however few
    /// they are, and counts are exact.
    #[test]
    fn few_samples() {
        for (count, expr, answer) in [
            (10, "p99 < 100ms", Answer::Met),
            (1, "p99.99 < 1s", Answer::Met),
            (10_000, "p99 < 100ms", Answer::Met),
            (10_000, "p99.99 < 100ms", Answer::Met),
            (10_000, "100ms > p99", Answer::Met),
            (10_000, "p99 < 1ms", Answer::Failed),
            (100, "p99 < 1ms", Answer::Failed),
            (1, "p99 < 1ms", Answer::Failed),
            (10_000, "mean < 100ms", Answer::Met),
            (10, "success == 100%", Answer::Met),
            (10, "max < 100ms", Answer::Met),
            (10, "offered.count == 10", Answer::Met),
        ] {
            let found = with(count, expr);
            assert_eq!(found.answer, answer, "{count} {expr}: {} {}", found.actual, found.detail);
        }
        let said = with(10, "p99 < 100ms").detail;
        assert_eq!(
            said,
            "0 of 10 beyond 100 ms; 299 are needed to be 95 % sure (300 s at this rate)"
        );
    }

    /// Claim: a limit inside the interval is met by the value, which says so, and undecided where the threshold asks for 95 %
    /// confidence; one well outside is decided.
    #[test]
    fn limits_inside_the_interval() {
        let trial = |limit: i64, confidence: Option<f64>| {
            let mut trial = Trial::clean();
            // Excursions of a hundred at 10 ms: p95 is uncertain between 3 and 10 ms.
            for (n, old) in trial.rows.iter_mut().enumerate() {
                if (n / 100) % 20 == 7 && n / 2_000 != 3 {
                    *old = row(
                        old.tx,
                        old.due,
                        10_000_000 + (n % 100) as i64 * 10_000,
                        Outcome::Committed,
                    );
                }
            }
            trial.percentiles = vec![0.5, 0.95, 0.99];
            let expr = format!("p95 < {limit}us");
            trial.thresholds =
                vec![ThresholdPlan { confidence, ..ThresholdPlan::new(expr, Level::Fail) }];
            trial.result()
        };
        let open = trial(5_000, None);
        assert_eq!(open.thresholds[0].answer, Answer::Met, "{:?}", open.thresholds[0]);
        let said = &open.thresholds[0].detail;
        assert!(
            said.starts_with("400 of 10,000 beyond 5.00 ms, 500 allowed: may be chance"),
            "{said}"
        );
        let asked = trial(5_000, Some(0.95));
        assert_eq!(asked.thresholds[0].answer, Answer::Undecided, "{:?}", asked.thresholds[0]);
        assert_eq!(asked.verdict, Verdict::Undecided);
        assert!(asked.reason.starts_with("`p95 < 5000us` is undecided"), "{}", asked.reason);
        for (limit, verdict) in [(100_000, Verdict::Pass), (1_000, Verdict::Fail)] {
            let decided = trial(limit, Some(0.95));
            assert_eq!(decided.verdict, verdict, "{limit}: {}", decided.reason);
        }
    }

    /// Claim: of all due, what was never answered fails a threshold that the answered keep, and for certain where enough
    /// are missing.
    #[test]
    fn of_all_due() {
        let mut trial = Trial::clean();
        for old in trial.rows.iter_mut().step_by(20) {
            *old = row(old.tx, old.due, 300_000_000, Outcome::Unknown);
        }
        let promises = ["p99 < 1s", "committed.p99 < 1s", "mean < 1s"];
        trial.thresholds = promises.map(|expr| ThresholdPlan::new(expr, Level::Warn)).to_vec();
        let result = trial.result();
        let answers: Vec<_> = result.thresholds.iter().take(3).map(|it| it.answer).collect();
        assert_eq!(answers, [Answer::Failed, Answer::Met, Answer::Failed]);
    }
}
