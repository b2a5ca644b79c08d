//! Do the trials of a setting agree with each other? Their intervals know only what happens within a trial.

use model::result::{AuditResult, Family, FigureUnit, SettingResult, TrialResult, Voided};

use super::{Audit, Finding, failed, ok, percent, skipped, warn};

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
            let finding = of_setting(setting);
            let detail = format!("{}: {}", setting.key, finding.detail);
            Finding { detail, ..finding }.of(&AUDIT)
        })
        .collect()
}

fn of_setting(setting: &SettingResult) -> Finding {
    let medians: Vec<Spot> = setting.trials.iter().filter_map(median_of).collect();
    let goodputs: Vec<Spot> = setting.trials.iter().map(goodput_of).collect();
    let (Some(latency), Some(goodput)) = (Spread::of(&medians), Spread::of(&goodputs)) else {
        return skipped("fewer than two trials have numbers to compare");
    };
    let said = format!(
        "over {} trials p50 differs by {} and goodput by {}",
        setting.trials.len(),
        percent(latency.relative),
        percent(goodput.relative)
    );
    let worst = [&latency, &goodput]
        .into_iter()
        .filter(|spread| !spread.intervals_meet)
        .map(|spread| spread.relative)
        .fold(0.0, f64::max);
    let finding = if worst > SPREAD_MAX {
        let said = format!(
            "{said}, more than their intervals allow: the trials did not measure the same thing"
        );
        // Each trial is judged by its promises; what does not hold is one number for all of them.
        if has_promises(setting) { warn(said) } else { failed(said) }
    } else if worst > SPREAD_WARN {
        warn(format!("{said}, more than their intervals allow"))
    } else {
        ok(said)
    };
    finding.with("latency", latency.relative).with("goodput", goodput.relative)
}

/// Whether somebody wrote a promise that decides.
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
        let lowest_high = spots.iter().map(|spot| spot.high).fold(f64::INFINITY, f64::min);
        let highest_low = spots.iter().map(|spot| spot.low).fold(f64::NEG_INFINITY, f64::max);
        let relative = if median > 0.0 { extremes / median } else { 0.0 };
        Some(Self { relative, intervals_meet: highest_low <= lowest_high })
    }
}

#[expect(clippy::cast_precision_loss, reason = "latencies")]
fn median_of(trial: &TrialResult) -> Option<Spot> {
    let latency = trial.latency.iter().find(|latency| latency.stage == trial.final_stage)?;
    let p50 = latency.response.quantiles.iter().find(|quantile| quantile.q == 0.5)?;
    let value = p50.value_ns? as f64;
    let low = p50.low_ns.map_or(f64::NEG_INFINITY, |low| low as f64);
    Some(Spot { value, low, high: p50.high_ns.map_or(f64::INFINITY, |high| high as f64) })
}

/// Goodput with the interval of a Poisson count, which no open schedule exceeds.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn goodput_of(trial: &TrialResult) -> Spot {
    let value = trial.rates.goodput_per_s;
    let seconds = trial.window_ns as f64 / 1e9;
    let half =
        if seconds > 0.0 { 1.96 * (value * seconds).sqrt() / seconds } else { f64::INFINITY };
    Spot { value, low: value - half, high: value + half }
}

#[cfg(test)]
mod tests {
    use model::Outcome;
    use model::result::{AuditOutcome, SettingResult, Verdict};

    use super::audit;
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
        SettingResult {
            key: "rate=1000/s".into(),
            values: Default::default(),
            verdict: Verdict::Pass,
            expect: None,
            saturated: false,
            trials,
        }
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
}
