//! Do the trials of a setting agree with each other? Their intervals know only what happens within a trial.

use model::result::{AuditResult, Family, FigureUnit, SettingResult, TrialResult, Voided};
use stats::combined::Estimate;
use stats::special::{normal_tail, normal_upper};

use super::finding::{Audit, Finding, failed, ok, skipped, warn};
use crate::figures::combined::goodput_of;
use crate::figures::share::percent;

/// Trials that differ by less than this agree for any purpose.
const SPREAD_WARN: f64 = 0.10;
/// From here on one of them measured something else.
const SPREAD_MAX: f64 = 0.50;

pub(super) const AUDIT: Audit = Audit {
    name: "repeatability",
    question: "Do the trials of a setting agree?",
    voids: &[Voided::either(Family::Response), Voided::either(Family::Committed)],
    figures: &[("latency", FigureUnit::Share), ("goodput", FigureUnit::Share)],
};

/// One finding a setting with several trials.
pub(crate) fn audit(settings: &[SettingResult]) -> Vec<AuditResult> {
    settings
        .iter()
        .filter(|setting| setting.trials.len() > 1)
        .map(|setting| {
            let mut finding = of_setting(setting);
            finding.detail = format!("{}: {}", setting.key, finding.detail);
            finding.of(&AUDIT)
        })
        .collect()
}

fn of_setting(setting: &SettingResult) -> Finding {
    let medians: Vec<Spot> = setting.trials.iter().filter_map(median_of).collect();
    let goodputs: Vec<Spot> = setting.trials.iter().map(goodput_of).map(Spot::of).collect();
    let (latency, goodput) = (Spread::of(&medians), Spread::of(&goodputs));
    let share = |spread: &Spread| percent(spread.relative);
    let differs = match (&latency, &goodput) {
        (Some(latency), Some(goodput)) => {
            format!("p50 differs by {} and goodput by {}", share(latency), share(goodput))
        }
        (Some(latency), None) => format!("p50 differs by {}", share(latency)),
        (None, Some(goodput)) => {
            format!("goodput differs by {} (fewer than two have a p50)", share(goodput))
        }
        (None, None) => return skipped("fewer than two trials have numbers to compare"),
    };
    let said = format!("over {} trials {differs}", setting.trials.len());
    let worst = [&latency, &goodput]
        .into_iter()
        .flatten()
        .filter(|spread| !spread.intervals_meet)
        .map(|spread| spread.relative)
        .fold(0.0, f64::max);
    let finding = if worst > SPREAD_MAX {
        let said = format!(
            "{said}, more than their intervals allow: the trials did not measure the same thing"
        );
        // Each trial is judged by its thresholds; what does not hold is one number for all of them.
        if has_promises(setting) { warn(said) } else { failed(said) }
    } else if worst > SPREAD_WARN {
        warn(format!("{said}, more than their intervals allow"))
    } else {
        ok(said)
    };
    let spreads = [("latency", latency), ("goodput", goodput)];
    spreads.into_iter().fold(finding, |finding, (name, spread)| match spread {
        Some(spread) => finding.with(name, spread.relative),
        None => finding,
    })
}

/// Whether somebody wrote a threshold that decides.
fn has_promises(setting: &SettingResult) -> bool {
    let mut of_trials = setting.trials.iter().flat_map(|trial| &trial.thresholds);
    of_trials.any(|it| !it.implicit && ["fail", "invalid"].contains(&it.level.as_str()))
}

/// A value with its interval.
struct Spot {
    value: f64,
    low: f64,
    high: f64,
}

impl Spot {
    /// An end that is open is as far away as can be.
    fn of(of: Estimate) -> Self {
        let (low, high) = (of.low.unwrap_or(f64::NEG_INFINITY), of.high.unwrap_or(f64::INFINITY));
        Self { value: of.value, low, high }
    }
}

/// How far apart the trials are, as a share of the median one, and whether all intervals have a point in common.
struct Spread {
    relative: f64,
    intervals_meet: bool,
}

impl Spread {
    fn of(spots: &[Spot]) -> Option<Self> {
        if spots.len() < 2 {
            return None;
        }
        let mut values: Vec<f64> = spots.iter().map(|spot| spot.value).collect();
        let median = stats::trend::median(&mut values)?;
        let extremes = values[values.len() - 1] - values[0];
        let wider = for_the_number_of_trials(spots.len());
        let high = |spot: &Spot| spot.value + wider * (spot.high - spot.value);
        let low = |spot: &Spot| spot.value - wider * (spot.value - spot.low);
        let lowest_high = spots.iter().map(high).fold(f64::INFINITY, f64::min);
        let highest_low = spots.iter().map(low).fold(f64::NEG_INFINITY, f64::max);
        let relative = if median > 0.0 { extremes / median } else { 0.0 };
        Some(Self { relative, intervals_meet: highest_low <= lowest_high })
    }
}

/// By how much intervals are wider for so many trials than for two. The 95 % intervals of two equal trials lie apart in
/// one of 180 cases, at 2.77 standard errors of their difference; of many trials the extremes do so by chance, and the
/// chance is shared out among all pairs (Bonferroni).
#[expect(clippy::cast_precision_loss, reason = "a few trials")]
fn for_the_number_of_trials(trials: usize) -> f64 {
    let pairs = (trials * trials.saturating_sub(1) / 2).max(1) as f64;
    let of_two = std::f64::consts::SQRT_2 * normal_upper(0.025);
    normal_upper(normal_tail(of_two) / pairs) / of_two
}

#[expect(clippy::cast_precision_loss, reason = "latencies")]
fn median_of(trial: &TrialResult) -> Option<Spot> {
    let latency = trial.latency.iter().find(|latency| latency.stage == trial.final_stage)?;
    let p50 = latency.response.quantiles.iter().find(|quantile| quantile.q == 0.5)?;
    let value = p50.value_ns? as f64;
    // An end that the blocks leave open is as far away as anything that was seen: trials that have no value in common
    // did not measure the same thing.
    let low = p50.low_ns.or(latency.response.min_ns)? as f64;
    let high = p50.high_ns.or(latency.response.max_ns)? as f64;
    Some(Spot { value, low, high })
}

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::result::{AuditOutcome, SettingResult, Verdict};

    use super::{Spot, Spread, audit, for_the_number_of_trials};
    use crate::testing::{Trial, row};

    fn setting(factor: i64) -> SettingResult {
        let trials = [1, factor]
            .map(|factor| {
                let mut trial = Trial::clean();
                for old in &mut trial.rows {
                    *old =
                        row(old.tx, old.due, (old.end - old.due) * factor / 10, Outcome::Committed);
                }
                trial.result()
            })
            .to_vec();
        let (key, verdict) = ("rate=1000/s".into(), Verdict::Pass);
        SettingResult { key, verdict, trials, ..SettingResult::default() }
    }

    /// Claim: of thirty equal trials, whose estimates stray as their intervals say, the extremes are not held against
    /// each other: at most one set in fifty.
    #[test]
    fn many_equal_trials() {
        let mut random = model::Seed(11).split("trials").rng();
        let mut apart = 0;
        for _ in 0..200 {
            let spots: Vec<Spot> = (0..30)
                .map(|_| {
                    // Twelve uniform numbers: a standard normal, nearly.
                    let sum: f64 = (0..12).map(|_| random.unit()).sum();
                    let value = 100.0 + 10.0 * (sum - 6.0);
                    Spot { value, low: value - 19.6, high: value + 19.6 }
                })
                .collect();
            apart += u32::from(!Spread::of(&spots).unwrap().intervals_meet);
        }
        assert!(apart <= 4, "{apart} of 200");
        assert!((for_the_number_of_trials(2) - 1.0).abs() < 1e-9);
    }

    /// Claim: a trial three times as slow as its twin fails, and equal trials pass.
    #[test]
    fn twins() {
        let mut apart = setting(3);
        let found = audit(std::slice::from_ref(&apart));
        assert_eq!(found[0].outcome, AuditOutcome::Failed, "{}", found[0].detail);
        assert_eq!(audit(&[setting(1)])[0].outcome, AuditOutcome::Ok);
        apart.trials.pop();
        assert!(audit(&[apart]).is_empty());
    }

    /// Claim: goodput is compared where the experiment does not ask for p50, and so where one trial committed nothing.
    #[test]
    fn goodput_without_p50() {
        let of = |step: usize, outcome: Outcome| {
            let mut trial = Trial::clean();
            trial.percentiles = vec![0.99];
            trial.rows = trial.rows.into_iter().step_by(step).collect();
            let rows = &mut trial.rows;
            (0..).zip(rows).for_each(|(tx, old)| *old = row(tx, old.due, 2_000_000, outcome));
            trial.result()
        };
        let committed = Outcome::Committed;
        for (other, outcome) in
            [(of(10, committed), AuditOutcome::Failed), (of(1, committed), AuditOutcome::Ok)]
        {
            let trials = vec![other, of(1, committed)];
            let setting = SettingResult { trials, ..SettingResult::default() };
            let found = audit(&[setting]).remove(0);
            assert_eq!(found.outcome, outcome, "{}", found.detail);
            assert!(found.detail.contains("over 2 trials goodput differs"), "{}", found.detail);
            assert_eq!(
                found.figures.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
                ["goodput"]
            );
        }
        let dead = of(1, Outcome::Rejected(model::Class::Server));
        let setting =
            SettingResult { trials: vec![dead, of(1, committed)], ..SettingResult::default() };
        assert_eq!(audit(&[setting])[0].outcome, AuditOutcome::Failed);
    }
}
