//! Every promise about a time as a sentence that stands alone, with its interval.
//!
//! Shares are counted over all trials of a setting; of a search, over the fresh trials that confirmed its result and no
//! others. The interval is the wider of two: Clopper's and Pearson's for as many independent transactions as the excursions
//! beyond the limit leave, and Student's t over the trials' own shares.

use model::facts::Environment;
use model::plan::{Plan, SettingPlan};
use model::result::{
    Counted, Family, SearchRole, SettingResult, Statement, ThresholdResult, TrialResult,
};
use stats::exceedance::worth;
use stats::special::{beta_quantile, t_quantile};

use crate::figures::float::to_f64;

/// The statements of all settings, in the order of the plan.
pub(crate) fn all(
    plan: &Plan,
    environment: &Environment,
    settings: &[SettingResult],
    search: Option<&model::result::SearchResult>,
) -> Vec<Statement> {
    let mut all = Vec::new();
    for setting in settings {
        let Some(planned) = plan.settings.iter().find(|it| it.key == setting.key) else { continue };
        let confirms = |trial: &&TrialResult| {
            search.is_none_or(|search| {
                search.trials.iter().any(|it| {
                    it.setting == setting.key
                        && it.trial == trial.trial
                        && it.role == SearchRole::Confirm
                        && search.confirmed == Some(it.value)
                })
            })
        };
        let trials: Vec<&TrialResult> = setting.trials.iter().filter(confirms).collect();
        let Some(first) = trials.first() else { continue };
        for (place, threshold) in first.thresholds.iter().enumerate() {
            for (index, counted) in threshold.counted.iter().enumerate() {
                let counts = trials
                    .iter()
                    .filter_map(|trial| of_all_due(trial, trial.thresholds.get(place)?, index));
                let counts: Vec<&Counted> = counts.collect();
                if counts.len() == trials.len() {
                    let of = Of { environment, planned, setting, trials: &trials };
                    all.extend(of.statement(&counted.comparison, &counts));
                }
            }
        }
    }
    all
}

/// The counts of a comparison of a time of all due; `None` of others, and where an audit voids it.
fn of_all_due<'a>(
    trial: &TrialResult,
    threshold: &'a ThresholdResult,
    index: usize,
) -> Option<&'a Counted> {
    let counted = threshold.counted.get(index)?;
    let is_void =
        trial.audits.iter().flat_map(|it| &it.voids).any(|it| it.family == Family::Response);
    let is_of_due = counted.all == trial.counts.due && counted.limit_ns.is_some();
    (is_of_due && !is_void).then_some(counted)
}

struct Of<'a> {
    environment: &'a Environment,
    planned: &'a SettingPlan,
    setting: &'a SettingResult,
    trials: &'a [&'a TrialResult],
}

impl Of<'_> {
    fn statement(&self, promise: &str, counts: &[&Counted]) -> Option<Statement> {
        let first = self.trials.first()?;
        let sum = |of: fn(&Counted) -> u64| counts.iter().map(|it| of(it)).sum::<u64>();
        let (due, beyond) = (sum(|it| it.all), sum(|it| it.beyond));
        if due == 0 {
            return None;
        }
        let slow = to_f64(beyond) / to_f64(due);
        let (low, high) = interval(slow, counts);
        let unresolved =
            self.trials.iter().map(|it| it.counts.unknown + it.counts.shed).sum::<u64>();
        let calls = self.planned.measure.calls;
        #[expect(clippy::cast_possible_truncation, reason = "a time in nanoseconds")]
        let within_ns = counts.first()?.limit_ns?.round() as i64;
        let mut statement = Statement {
            setting: self.setting.key.clone(),
            promise: promise.to_owned(),
            environment: environment(self.environment),
            workload: format!("{}, {}", self.planned.system.kind, self.planned.load.in_words()),
            per_s: first.rates.planned_per_s.map(|_| first.rates.offered_per_s),
            window_ns: first.window_ns,
            trials: self.trials.len() as u64,
            stage: first.final_stage.clone(),
            within_ns,
            due,
            share: 1.0 - slow,
            share_low: 1.0 - high,
            share_high: 1.0 - low,
            unresolved,
            unresolved_high: beta_quantile(
                0.95,
                to_f64(unresolved) + 1.0,
                to_f64(due.saturating_sub(unresolved)).max(1e-9),
            ),
            calls,
            slow: 1.0 - (1.0 - slow).powi(i32::try_from(calls).unwrap_or(i32::MAX)),
            words: String::new(),
        };
        statement.words = statement.in_words();
        Some(statement)
    }
}

/// The 95 % interval of the share beyond.
fn interval(slow: f64, counts: &[&Counted]) -> (f64, f64) {
    let share = |it: &&Counted| to_f64(it.beyond) / to_f64(it.all.max(1));
    let samples: f64 =
        counts.iter().map(|it| worth(share(it), to_f64(it.all), it.allowed_share, it.chance)).sum();
    let (hits, misses) = (slow * samples, (1.0 - slow) * samples);
    let low = if hits > 0.0 { beta_quantile(0.025, hits, misses + 1.0) } else { 0.0 };
    let high = if misses > 0.0 { beta_quantile(0.975, hits + 1.0, misses) } else { 1.0 };
    if counts.len() < 2 {
        return (low, high);
    }
    let k = to_f64(counts.len() as u64);
    let mean = counts.iter().map(share).sum::<f64>() / k;
    let squares: f64 = counts.iter().map(|it| (share(it) - mean).powi(2)).sum();
    let half = t_quantile(0.975, k - 1.0) * (squares / (k - 1.0) / k).sqrt();
    (low.min((slow - half).max(0.0)), high.max((slow + half).min(1.0)))
}

/// The host in a few words.
fn environment(of: &Environment) -> String {
    let parts = [
        match of.cpu.is_empty() {
            true => format!("{} processors", of.cpus),
            false => format!("{} processors of {}", of.cpus, of.cpu),
        },
        if of.kernel.is_empty() { String::new() } else { format!("Linux {}", of.kernel) },
    ];
    let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    parts.join(", ")
}
