//! Sweeps over clients of a closed loop against the Universal Scalability Law: settings that differ in clients alone.
//!
//! It must never extrapolate beyond twice the most clients, nor fit a sweep of fewer than six levels, nor use a rate that an
//! audit voids.

use std::collections::{BTreeMap, BTreeSet};

use model::plan::{Arrivals, Plan, SettingPlan};
use model::result::{Family, ScalabilityLaw, ScalabilityResult, SettingResult};
use stats::usl::{Level, Scalability, fit};

/// Residuals beyond this are said: the law does not describe the system.
const RESIDUAL_MAX: f64 = 0.1;

/// Fits every sweep of the plan and writes down what each setting is in it.
pub(crate) fn add(plan: &Plan, settings: &mut [SettingResult]) {
    let swept = axes_of_clients(plan);
    if swept.is_empty() {
        return;
    }
    let mut sweeps: BTreeMap<Vec<(&String, &String)>, Vec<usize>> = BTreeMap::new();
    for (index, setting) in plan.settings.iter().enumerate() {
        let others = setting.values.iter().filter(|(axis, _)| !swept.contains(axis.as_str()));
        if clients(setting).is_some() {
            sweeps.entry(others.collect()).or_default().push(index);
        }
    }
    for sweep in sweeps.values() {
        add_sweep(plan, sweep, settings);
    }
}

fn add_sweep(plan: &Plan, sweep: &[usize], settings: &mut [SettingResult]) {
    let mut levels = Vec::new();
    let mut of_setting: Vec<(u64, usize, usize)> = Vec::new();
    for planned in sweep.iter().map(|index| &plan.settings[*index]) {
        let Some(clients) = clients(planned) else { continue };
        let place = settings.iter().position(|it| it.key == planned.key);
        let Some(place) = place.filter(|place| holds(&settings[*place])) else { continue };
        of_setting.push((clients, place, levels.len()));
        #[expect(clippy::cast_precision_loss, reason = "clients")]
        let level = |per_s: f64| Level { clients: clients as f64, per_s };
        let trials = settings[place].trials.iter();
        levels.extend(trials.map(|trial| level(trial.rates.goodput_per_s)));
    }
    let Some(law) = fit(&levels) else { return };
    let most = of_setting.iter().map(|it| it.0).max();
    for (clients, place, first) in of_setting {
        settings[place].scalability = Some(ScalabilityResult {
            clients,
            fitted_per_s: law.at(levels[first].clients),
            residual: law.residuals[first],
            law: (Some(clients) == most).then(|| result(&law, clients)),
        });
    }
}

/// Whether a setting has trials whose rates hold.
fn holds(setting: &SettingResult) -> bool {
    let voids = |it: &model::result::AuditResult| {
        it.voids.iter().any(|void| void.family == Family::Committed)
    };
    !setting.trials.is_empty() && setting.trials.iter().all(|trial| !trial.audits.iter().any(voids))
}

fn result(law: &Scalability, most: u64) -> ScalabilityLaw {
    let residual_max = law.residuals.iter().map(|it| it.abs()).fold(0.0, f64::max);
    let peak = match (law.peak_clients, law.peak_per_s) {
        (Some(clients), Some(per_s)) => {
            let noun = if clients < 1.5 { "client" } else { "clients" };
            format!("most goodput, {per_s:.0}/s, with {clients:.0} {noun}")
        }
        _ => format!("no peak up to {} clients; beyond, nothing is known", 2 * most),
    };
    let fits = match residual_max > RESIDUAL_MAX {
        true => "; it does not describe this system: residuals of up to",
        false => "; residuals of up to",
    };
    let words = format!(
        "Universal Scalability Law: {peak}; contention {:.2}% ({:.2} to {:.2}), coherency {:.4}% ({:.4} to {:.4}){fits} {:.1}%",
        law.alpha * 100.0,
        law.alpha_interval.0 * 100.0,
        law.alpha_interval.1 * 100.0,
        law.beta * 100.0,
        law.beta_interval.0 * 100.0,
        law.beta_interval.1 * 100.0,
        residual_max * 100.0
    );
    ScalabilityLaw {
        gamma_per_s: law.gamma,
        alpha: law.alpha,
        alpha_low: law.alpha_interval.0,
        alpha_high: law.alpha_interval.1,
        beta: law.beta,
        beta_low: law.beta_interval.0,
        beta_high: law.beta_interval.1,
        peak_clients: law.peak_clients,
        peak_per_s: law.peak_per_s,
        residual_max,
        words,
    }
}

/// The clients of a plain closed loop.
fn clients(setting: &SettingPlan) -> Option<u64> {
    match &setting.load.arrivals {
        Arrivals::Closed { clients, window: 0, steps, .. } if steps.is_empty() => {
            Some(u64::from(*clients))
        }
        _ => None,
    }
}

/// Axes each of whose labels means one number of clients, and not all the same.
fn axes_of_clients(plan: &Plan) -> BTreeSet<&str> {
    let is_swept = |name: &str| {
        let mut of_label: BTreeMap<&String, BTreeSet<Option<u64>>> = BTreeMap::new();
        for setting in &plan.settings {
            if let Some(label) = setting.values.get(name) {
                of_label.entry(label).or_default().insert(clients(setting));
            }
        }
        let all: BTreeSet<_> = of_label.values().flatten().collect();
        all.len() > 1 && of_label.values().all(|of| of.len() == 1 && !of.contains(&None))
    };
    plan.axes.iter().map(|axis| axis.name.as_str()).filter(|name| is_swept(name)).collect()
}
