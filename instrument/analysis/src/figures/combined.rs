//! The trials of a setting taken together: intervals that know how trials differ.
//!
//! It must never make a value of several trials: percentiles are not averaged, and thresholds are judged by each trial. Nor
//! may it use a number that an audit voids in one of them.

use model::result::{CombinedQuantile, CombinedResult, Distribution, Family, TrialResult};
use stats::combined::{Estimate, over_trials};

/// Intervals over all trials; `None` of fewer than two.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "times")]
pub(crate) fn of(trials: &[TrialResult]) -> Option<CombinedResult> {
    if trials.len() < 2 {
        return None;
    }
    let holds = |family: Family| {
        let mut voids = trials.iter().flat_map(|trial| &trial.audits).flat_map(|it| &it.voids);
        voids.all(|void| void.family != family)
    };
    let (times_hold, rates_hold) = (holds(Family::Response), holds(Family::Committed));
    let responses: Vec<&Distribution> = trials.iter().filter_map(response).collect();
    // No number lies below the smallest that was seen, whatever a symmetric interval says of a skewed one.
    let smallest = responses.iter().filter_map(|of| of.min_ns).min().unwrap_or(0) as f64;
    let together = |estimate: &dyn Fn(&Distribution) -> Option<Estimate>| {
        let all: Vec<Estimate> = responses.iter().filter_map(|of| estimate(of)).collect();
        let is_whole = times_hold && all.len() == trials.len();
        let (low, high) = if is_whole { over_trials(&all) } else { (None, None) };
        (low.map(|low| low.max(smallest)), high)
    };
    let (mean_low_ns, mean_high_ns) = together(&|of| {
        Some(Estimate { value: of.mean_ns?, low: of.mean_low_ns, high: of.mean_high_ns })
    });
    let asked = responses.first().map_or(&[][..], |first| &first.quantiles);
    let quantiles = asked.iter().map(|asked| {
        let (low, high) = together(&|of| {
            let found = of.quantiles.iter().find(|it| it.name == asked.name)?;
            let float = |ns: Option<i64>| ns.map(|ns| ns as f64);
            let (low, high) = (float(found.low_ns), float(found.high_ns));
            Some(Estimate { value: found.value_ns? as f64, low, high })
        });
        let whole = |ns: Option<f64>| ns.map(|ns| ns.round() as i64);
        let (low_ns, high_ns) = (whole(low), whole(high));
        CombinedQuantile { q: asked.q, name: asked.name.clone(), low_ns, high_ns }
    });
    let goodput: Vec<Estimate> = trials.iter().map(goodput_of).collect();
    let (low, high) = if rates_hold { over_trials(&goodput) } else { (None, None) };
    Some(CombinedResult {
        trials: trials.len() as u64,
        mean_low_ns,
        mean_high_ns,
        quantiles: quantiles.collect(),
        goodput_low_per_s: low.map(|low| low.max(0.0)),
        goodput_high_per_s: high,
    })
}

fn response(trial: &TrialResult) -> Option<&Distribution> {
    let latency = trial.latency.iter().find(|latency| latency.stage == trial.final_stage)?;
    Some(&latency.response)
}

/// Goodput with the interval of a Poisson count, which no open schedule exceeds.
#[expect(clippy::cast_precision_loss, reason = "a rate")]
pub(crate) fn goodput_of(trial: &TrialResult) -> Estimate {
    let value = trial.rates.goodput_per_s;
    let seconds = trial.window_ns as f64 / 1e9;
    let half = 1.96 * (value * seconds).sqrt() / seconds;
    let finite = |end: f64| Some(end).filter(|end| end.is_finite());
    Estimate { value, low: finite(value - half), high: finite(value + half) }
}

#[cfg(test)]
mod tests {
    use model::Outcome;

    use super::of;
    use crate::testing::{Trial, row};

    /// Claim: three trials that differ by a fifth have an interval of p50 that holds all three, where each trial's own is
    /// narrower; a single trial has none, and neither have times that an audit voids in one of them.
    #[test]
    fn trials_that_differ() {
        let trials = [10, 11, 12].map(|tenths| {
            let mut trial = Trial::clean();
            for old in &mut trial.rows {
                let time = (old.end - old.due) * tenths / 10;
                *old = row(old.tx, old.due, time, Outcome::Committed);
            }
            trial
        });
        let mut results = trials.clone().map(Trial::result).to_vec();
        let together = of(&results).unwrap();
        let p50 = &together.quantiles[0];
        for trial in &results {
            let own = &trial.latency[0].response.quantiles[0];
            let (low, high) = (own.low_ns.unwrap(), own.high_ns.unwrap());
            assert!(p50.low_ns.unwrap() < low && p50.high_ns.unwrap() > high, "{p50:?} {own:?}");
            let mean = trial.latency[0].response.mean_ns;
            assert!(together.mean_low_ns < mean && together.mean_high_ns > mean, "{together:?}");
        }
        assert!(together.goodput_low_per_s.unwrap() < 1_000.0);
        assert!(together.goodput_high_per_s.unwrap() > 1_000.0);
        assert_eq!(of(&results[..1]), None);
        let mut late = trials[0].clone();
        late.rows.iter_mut().for_each(|row| row.marks[0] = row.due - 5_000);
        results.push(late.result());
        assert_eq!(of(&results).unwrap().quantiles[0].high_ns, None);
    }

    /// Claim: what did not happen is not excluded up to once in a third of the window, whatever the quantiles are; where
    /// nothing was committed, nothing is said.
    #[test]
    fn the_rule_of_three() {
        let of = |trial: Trial| trial.result().latency[0].not_excluded_ns;
        assert_eq!(
            of(Trial { percentiles: vec![0.5], ..Trial::clean() }),
            Some(10_000_000_000 / 3)
        );
        assert_eq!(of(Trial { rows: Vec::new(), ..Trial::clean() }), None);
    }
}
