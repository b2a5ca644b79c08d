//! From trials to the run: settings, what was declared, tables, knee, verdict and exit code.

use model::facts::Environment;
use model::plan::{Plan, SettingPlan, ThresholdPlan};
use model::result::{Exit, RunResult, RunSubject, SCHEMA, SettingResult, TrialResult, Verdict};

use crate::audits::{audits_asked, repeatability};
use crate::figures::combined;
use crate::judge::expression::names_in;
use crate::judge::verdict::{exit_of, failures_of, is_saturated, of_run};
use crate::judge::{knee, minutes, scalability, search, statement};
use crate::names::metric_names::percentiles_named;
use crate::show::tables;

/// How percentiles are computed, for the report.
pub const PERCENTILE_METHOD: &str = "smallest recorded value v with count(≤ v) ≥ ceil(q·n), HdrHistogram with three \
     significant digits; 95 % intervals by batch means over blocks of time (widest of 5 to 30 blocks, Student's t), for \
     quantiles by a test at each value (order statistics of the effective number of independent samples); an end that the \
     samples cannot give is left open; thresholds compare the value over all that were due, no answer counting as \
     infinitely long";

/// Everything about a run but its trials.
pub struct RunInput<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The host, the tool, the command.
    pub environment: &'a Environment,
    /// Whether any trial was stopped before its time, was cut off, or is missing.
    pub interrupted: bool,
    /// Fidelity switches that were on in any trial, each once.
    pub fidelity: Vec<String>,
}

/// The thresholds and percentiles of a setting's trials.
pub struct SettingInput {
    /// The thresholds that apply to it.
    pub thresholds: Vec<ThresholdPlan>,
    /// The percentiles to compute: the plan's, and those that thresholds and tables name; ascending.
    pub percentiles: Vec<f64>,
}

impl SettingInput {
    /// Reads them from the plan.
    #[must_use]
    pub fn of(plan: &Plan, setting: &SettingPlan) -> Self {
        let applies = |threshold: &&ThresholdPlan| {
            threshold.at.iter().all(|(axis, label)| setting.values.get(axis) == Some(label))
        };
        let thresholds: Vec<_> = plan.thresholds.iter().filter(applies).cloned().collect();
        let named: Vec<String> = thresholds
            .iter()
            .flat_map(|threshold| names_in(&threshold.expr))
            .chain(plan.tables.iter().flat_map(|table| table.columns.iter().cloned()))
            .chain(plan.tables.iter().map(|table| table.cell.clone()))
            .collect();
        let mut percentiles = plan.percentiles.clone();
        percentiles.extend(percentiles_named(named.iter().map(String::as_str)));
        percentiles.sort_by(f64::total_cmp);
        percentiles.dedup_by(|a, b| (*a - *b).abs() < 1e-12);
        Self { thresholds, percentiles }
    }
}

/// The run's result from its trials: (setting index in the plan, result), in any order.
#[must_use]
pub fn summarise(input: &RunInput<'_>, trials: Vec<(usize, TrialResult)>) -> RunResult {
    let plan = input.plan;
    let mut by_setting: Vec<Vec<TrialResult>> = vec![Vec::new(); plan.settings.len()];
    for (setting, trial) in trials {
        by_setting[setting].push(trial);
    }
    let mut settings: Vec<_> = plan
        .settings
        .iter()
        .zip(by_setting)
        .map(|(setting, trials)| setting_result(plan, setting, trials))
        .collect();
    for (key, words) in knee::promised(plan, &settings) {
        let of = settings.iter_mut().find(|setting| setting.key == key);
        if let Some(borne) = of.and_then(|setting| setting.borne.as_mut()) {
            borne.words = words;
        }
    }
    scalability::add(plan, &mut settings);
    let audits = repeatability::audit(&settings);
    let search = search::result(plan, &settings, input.interrupted);
    let (verdict, reason) = match &search {
        Some(search) => (search::verdict(search), search.in_words()),
        None => of_run(&settings, &audits),
    };
    let exit = exit_of(verdict, input.interrupted);
    RunResult {
        schema: SCHEMA.to_owned(),
        name: plan.name.clone(),
        question: plan.question.clone(),
        notes: plan.notes.clone(),
        started: input.environment.started.clone(),
        seed: plan.seed.0,
        subject: subject(plan, &settings),
        verdict,
        reason,
        exit_code: exit as i32,
        exit_meaning: exit_meaning(exit, &settings, search.is_some()),
        interrupted: input.interrupted,
        fidelity: input.fidelity.clone(),
        percentile_method: PERCENTILE_METHOD.to_owned(),
        axes: plan.axes.iter().map(|axis| axis.name.clone()).collect(),
        tables: tables::all(plan, &settings),
        knee: knee::find(plan, &settings),
        load_series: knee::load_series(plan, &settings),
        statements: statement::all(plan, input.environment, &settings, search.as_ref()),
        search,
        audits,
        audits_asked: audits_asked(),
        environment: input.environment.clone(),
        settings,
    }
}

/// The subject of the measurement, of settings that ran.
fn subject(plan: &Plan, settings: &[SettingResult]) -> RunSubject {
    let of = || plan.settings.iter().zip(settings).filter(|(_, it)| !it.trials.is_empty());
    let trials = || settings.iter().flat_map(|setting| &setting.trials);
    let windows = || trials().map(|trial| trial.window_ns);
    RunSubject {
        system: plan.settings.first().map(|it| it.system.kind.clone()).unwrap_or_default(),
        targets: each_once(trials().flat_map(|it| it.targets.clone())),
        loads: each_once(of().map(|(setting, _)| setting.load.in_words())),
        window_ns: (windows().min().unwrap_or(0), windows().max().unwrap_or(0)),
    }
}

fn each_once(of: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for it in of {
        if !all.contains(&it) {
            all.push(it);
        }
    }
    all
}

/// The meaning of the exit code; of a run that ends well in spite of failures, that the experiment declares them.
fn exit_meaning(exit: Exit, settings: &[SettingResult], is_search: bool) -> String {
    if is_search && exit == Exit::Ok {
        return "the search confirmed a rate that keeps every threshold".to_owned();
    }
    let declared = settings.iter().filter(|it| it.expect == Some(Verdict::Fail));
    let failures: usize = declared.flat_map(|it| &it.trials).map(failures_of).sum();
    match (exit, failures) {
        (Exit::Ok, 1) => "1 failure, declared in the experiment (expect = \"fail\")".to_owned(),
        (Exit::Ok, 2..) => {
            format!("{failures} failures, all declared in the experiment (expect = \"fail\")")
        }
        _ => exit.meaning().to_owned(),
    }
}

fn setting_result(
    plan: &Plan,
    setting: &SettingPlan,
    mut trials: Vec<TrialResult>,
) -> SettingResult {
    trials.sort_by_key(|trial| trial.trial);
    let mut result = SettingResult {
        key: setting.key.clone(),
        values: setting.values.clone(),
        verdict: trials.iter().map(|trial| trial.verdict).max().unwrap_or(Verdict::Pass),
        expect: setting.expect,
        saturated: trials.iter().any(is_saturated),
        combined: combined::of(&trials),
        borne: None,
        scalability: None,
        trials,
    };
    result.borne = minutes::borne(&SettingInput::of(plan, setting).thresholds, &result);
    result
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
