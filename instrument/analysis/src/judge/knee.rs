//! Where more offered load stops bringing more goodput, in words.

use std::collections::BTreeMap;

use model::plan::{Arrivals, LoadPlan, Plan, Schedule};
use model::result::{AuditOutcome, LoadSeries, SettingResult, TrialResult};

use crate::audits::connections;
use crate::figures::planned::planned_rate;
use crate::figures::share::percent;
use crate::judge::minutes;
use crate::names::metric::{Metric, metric};

/// A setting keeps up while its backlog does not grow and its goodput is at least this share of what was offered, or what
/// was due was committed to this share, whatever part of it came after the window: a system that commits in blocks loses
/// up to a block at each end of it. Where nothing can be said of the backlog, goodput alone decides.
const KEEPS_UP: f64 = 0.98;

/// The knee of every series of settings that differ in offered load alone; empty if there is none to be seen.
pub(crate) fn find(plan: &Plan, results: &[SettingResult]) -> String {
    let found = series(plan, results).into_iter().filter_map(|(group, points)| {
        let said = in_words(&points)?;
        let named: Vec<_> = group.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
        Some(if named.is_empty() { said } else { format!("{}: {said}", named.join(", ")) })
    });
    found.collect::<Vec<_>>().join("; ")
}

/// The series that the knee is looked for in, for those who draw them.
pub(crate) fn load_series(plan: &Plan, results: &[SettingResult]) -> Vec<LoadSeries> {
    let of = |(group, points): (Vec<(String, String)>, Vec<Point<'_>>)| LoadSeries {
        values: group.into_iter().collect(),
        settings: points.iter().map(|point| point.key.to_owned()).collect(),
        knee: first_bad(&points)
            .filter(|bad| !points[*bad].is_of_the_client())
            .and_then(|bad| bad.checked_sub(1))
            .map(|knee| points[knee].key.to_owned()),
        limit: first_bad(&points).map(|bad| points[bad].key.to_owned()),
    };
    series(plan, results).into_iter().map(of).filter(|series| series.settings.len() > 1).collect()
}

/// The promise of each series, with the key of the setting that it is about.
pub(crate) fn promised(plan: &Plan, results: &[SettingResult]) -> Vec<(String, String)> {
    let of = |(group, points): (Vec<(String, String)>, Vec<Point<'_>>)| {
        let named: Vec<_> = group.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
        let load = |point: &Point<'_>| {
            let setting = results.iter().find(|setting| setting.key == point.key)?;
            Some(minutes::Load { per_s: point.trial.rates.planned_per_s?, setting })
        };
        let mut loads: Vec<_> = points.iter().filter_map(load).collect();
        // In the order of the rates asked for: a trial that offered less than it was asked for does not move down.
        loads.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
        minutes::promised(&named.join(", "), &loads)
    };
    series(plan, results).into_iter().filter_map(of).collect()
}

/// Settings that differ in offered load alone, in ascending order of it, by what they share.
fn series<'a>(
    plan: &'a Plan,
    results: &'a [SettingResult],
) -> BTreeMap<Vec<(String, String)>, Vec<Point<'a>>> {
    let mut series: BTreeMap<Vec<(String, String)>, Vec<Point<'_>>> = BTreeMap::new();
    let axes = load_axes(plan);
    for setting in &plan.settings {
        let result = results.iter().find(|result| result.key == setting.key);
        let Some(trial) = result.and_then(middle_trial) else { continue };
        if trial.rates.planned_per_s.is_none() {
            continue;
        }
        let apart = plan.axes.iter().map(|axis| &axis.name).filter(|axis| !axes.contains(axis));
        let group = apart
            .filter_map(|axis| Some((axis.clone(), setting.values.get(axis)?.clone())))
            .collect();
        let load: Vec<_> = axes
            .iter()
            .filter_map(|axis| Some(format!("{axis}={}", setting.values.get(axis)?)))
            .collect();
        let name = if load.is_empty() { setting.key.clone() } else { load.join(",") };
        series.entry(group).or_default().push(Point {
            key: &setting.key,
            load_changes: load_changes(&setting.load),
            name,
            trial,
        });
    }
    for points in series.values_mut() {
        points.sort_by(|a, b| a.offered().total_cmp(&b.offered()).then_with(|| a.key.cmp(b.key)));
    }
    series
}

/// The lowest load that the system did not keep up with.
fn first_bad(points: &[Point<'_>]) -> Option<usize> {
    points.iter().position(|point| !point.keeps_up())
}

struct Point<'a> {
    key: &'a str,
    /// Whether the plan itself changes the load during the window: its backlog then rises with it.
    load_changes: bool,
    /// The labels that tell it apart from the others of its series.
    name: String,
    trial: &'a TrialResult,
}

impl Point<'_> {
    fn offered(&self) -> f64 {
        self.trial.rates.offered_per_s
    }

    fn share(&self) -> f64 {
        share(self.trial)
    }

    fn keeps_up(&self) -> bool {
        keeps_up(self.trial, self.load_changes)
    }

    fn is_of_the_client(&self) -> bool {
        is_of_the_client(self.trial)
    }

    fn p99(&self) -> String {
        let p99 = metric("p99", self.trial);
        p99.map_or_else(|| "–".to_owned(), |p99| Metric::print(p99.value, p99.unit))
    }
}

fn share(trial: &TrialResult) -> f64 {
    let offered = trial.rates.offered_per_s;
    if offered > 0.0 { trial.rates.goodput_per_s / offered } else { 1.0 }
}

/// Whether the system got through what was offered; with `load_changes` its backlog may rise with the load.
pub(crate) fn keeps_up(trial: &TrialResult, load_changes: bool) -> bool {
    let counts = &trial.counts;
    #[expect(clippy::cast_precision_loss, reason = "shares of counts")]
    let success = counts.committed as f64 / counts.due.max(1) as f64;
    let drift = trial.audits.iter().find(|audit| audit.name == "backlog_drift");
    let is_steady = drift.is_some_and(|audit| audit.outcome == AuditOutcome::Ok);
    let grows = drift
        .is_some_and(|audit| matches!(audit.outcome, AuditOutcome::Warn | AuditOutcome::Failed));
    (load_changes || !grows) && (share(trial) >= KEEPS_UP || (success >= KEEPS_UP && is_steady))
}

/// Whether it was this client's connections that it did not keep up with.
pub(crate) fn is_of_the_client(trial: &TrialResult) -> bool {
    let audit = trial.audits.iter().find(|audit| audit.name == connections::AUDIT.name);
    audit.is_some_and(|audit| audit.outcome == AuditOutcome::Failed)
}

/// Whether the plan changes the load during the window.
fn load_changes(load: &LoadPlan) -> bool {
    let Arrivals::Open { schedule } = &load.arrivals else { return false };
    matches!(schedule, Schedule::Ramp { .. } | Schedule::Steps { .. } | Schedule::Trace { .. })
}

/// Axes whose labels change the planned rate while everything else stays.
fn load_axes(plan: &Plan) -> Vec<String> {
    let changes = |axis: &str| {
        plan.settings.iter().enumerate().any(|(index, a)| {
            plan.settings[index + 1..].iter().any(|b| {
                let others_agree = a
                    .values
                    .iter()
                    .all(|(name, label)| name == axis || b.values.get(name) == Some(label));
                others_agree && planned_rate(&a.load) != planned_rate(&b.load)
            })
        })
    };
    plan.axes.iter().filter(|axis| changes(&axis.name)).map(|axis| axis.name.clone()).collect()
}

fn in_words(points: &[Point<'_>]) -> Option<String> {
    if points.len() < 2 {
        return None;
    }
    let first_bad = first_bad(points)?;
    let bad = &points[first_bad];
    if bad.is_of_the_client() {
        return Some(format!(
            "none can be named: at {} ({:.1}/s offered) this client's connections were the limit, and not the system",
            bad.name,
            bad.offered()
        ));
    }
    let falls = format!(
        "at {} ({:.1}/s offered) goodput is {:.1}/s, {} of it",
        bad.name,
        bad.offered(),
        bad.trial.rates.goodput_per_s,
        percent(bad.share())
    );
    if first_bad == 0 {
        return Some(format!("saturated at the lowest load already: {falls}"));
    }
    let good = &points[first_bad - 1];
    Some(format!(
        "{} keeps up ({:.1}/s offered, goodput {}, p99 {}); {falls}, p99 {}",
        good.name,
        good.offered(),
        percent(good.share()),
        good.p99(),
        bad.p99()
    ))
}

/// The trial whose goodput is in the middle.
fn middle_trial(result: &SettingResult) -> Option<&TrialResult> {
    let mut trials: Vec<_> = result.trials.iter().collect();
    trials.sort_by(|a, b| a.rates.goodput_per_s.total_cmp(&b.rates.goodput_per_s));
    trials.get(trials.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Trial;

    /// Claim: a setting whose limit was the client's own pool is no knee of the system, and the words say why.
    #[test]
    fn the_clients_own_limit_is_no_knee() {
        let good = Trial::clean().result();
        let mut bad = Trial::clean().result();
        bad.rates.goodput_per_s = bad.rates.offered_per_s * 0.7;
        bad.counts.committed = bad.counts.due * 7 / 10;
        let words = |bad: &TrialResult| {
            let points = [("100", &good), ("300", bad)].map(|(name, trial)| Point {
                key: name,
                load_changes: false,
                name: format!("rate={name}"),
                trial,
            });
            in_words(&points).expect("the second does not keep up")
        };
        assert!(words(&bad).starts_with("rate=100 keeps up"), "{}", words(&bad));
        let audit = bad.audits.iter_mut().find(|audit| audit.name == connections::AUDIT.name);
        audit.expect("it is in the list").outcome = AuditOutcome::Failed;
        assert!(words(&bad).starts_with("none can be named: at rate=300"), "{}", words(&bad));
    }

    /// Claim: blocks that end outside the window are no knee while everything is committed and the backlog is steady;
    /// a backlog that grows, or what is not committed, is one.
    #[test]
    fn blocks_at_the_edges() {
        let mut trial = Trial::clean().result();
        trial.rates.goodput_per_s = trial.rates.offered_per_s * 0.95;
        let keeps_up = |trial: &TrialResult| {
            let point = Point { key: "", load_changes: false, name: String::new(), trial };
            first_bad(&[point]).is_none()
        };
        assert!(keeps_up(&trial));
        let drift = trial.audits.iter_mut().find(|audit| audit.name == "backlog_drift");
        let before = std::mem::replace(
            &mut drift.expect("every trial is tested for it").outcome,
            AuditOutcome::Warn,
        );
        assert!(!keeps_up(&trial), "the backlog grows");
        trial.rates.goodput_per_s = trial.rates.offered_per_s * 0.99;
        assert!(!keeps_up(&trial), "the backlog grows, if slowly");
        trial.rates.goodput_per_s = trial.rates.offered_per_s * 0.95;
        let drift = trial.audits.iter_mut().find(|audit| audit.name == "backlog_drift");
        drift.expect("it was there").outcome = before;
        trial.counts.committed = trial.counts.due * 9 / 10;
        assert!(!keeps_up(&trial), "a tenth is not committed");
    }
}
