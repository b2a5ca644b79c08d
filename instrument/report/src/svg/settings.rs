//! Settings as the charts name and order them, and where their numbers stand in the result document.
//!
//! A setting with several trials is drawn by its middle one, by goodput, as the knee is looked for.

use std::collections::BTreeSet;

use model::picture::RunPicture;
use model::result::{LatencyResult, Quantile, RunResult, SettingResult, TrialResult};

use crate::called;
use crate::paint::clean;

/// A setting with at least one trial.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// Its index in the result.
    pub(crate) index: usize,
    pub(crate) setting: &'a SettingResult,
    /// Names of axes, in the order of the experiment.
    axes: &'a [String],
    /// Index of its middle trial.
    pub(crate) middle: usize,
}

impl<'a> Shown<'a> {
    /// The middle trial.
    pub(crate) fn trial(&self) -> &'a TrialResult {
        &self.setting.trials[self.middle]
    }

    /// The place of the middle trial in summary.json.
    pub(crate) fn pointer(&self) -> String {
        trial_pointer(self.index, self.middle)
    }

    /// Index of the latency to the final stage, and the latency.
    pub(crate) fn latency(&self) -> Option<(usize, &'a LatencyResult)> {
        final_latency(self.trial())
    }

    /// Transactions that never reached the final stage, as a share of all due.
    pub(crate) fn reached_share(&self) -> f64 {
        let Some((_, latency)) = self.latency() else { return 0.0 };
        let (count, inf) = (latency.response.count as f64, latency.inf as f64);
        if count + inf > 0.0 { count / (count + inf) } else { 0.0 }
    }
}

/// The place of a trial in summary.json.
#[must_use]
pub(crate) fn trial_pointer(setting: usize, trial: usize) -> String {
    format!("/settings/{setting}/trials/{trial}")
}

/// The latency to the stage that counts as committed, with its index.
#[must_use]
pub(crate) fn final_latency(trial: &TrialResult) -> Option<(usize, &LatencyResult)> {
    let found = trial.latency.iter().position(|it| it.stage == trial.final_stage);
    let index = found.or_else(|| trial.latency.len().checked_sub(1))?;
    Some((index, &trial.latency[index]))
}

/// A quantile of the response time by its name, with its place in summary.json.
#[must_use]
pub(crate) fn quantile<'a>(shown: &Shown<'a>, name: &str) -> Option<(String, &'a Quantile)> {
    let (latency_index, latency) = shown.latency()?;
    let index = latency.response.quantiles.iter().position(|q| q.name == name)?;
    let pointer =
        format!("{}/latency/{latency_index}/response/quantiles/{index}/value_ns", shown.pointer());
    Some((pointer, &latency.response.quantiles[index]))
}

/// All settings that have a trial, in the order of the plan.
#[must_use]
pub(crate) fn shown(result: &RunResult) -> Vec<Shown<'_>> {
    let settings = result.settings.iter().enumerate();
    settings
        .filter_map(|(index, setting)| {
            let middle = middle_trial(setting)?;
            Some(Shown { index, setting, axes: &result.axes, middle })
        })
        .collect()
}

fn middle_trial(setting: &SettingResult) -> Option<usize> {
    let mut order: Vec<usize> = (0..setting.trials.len()).collect();
    let goodput = |index: &usize| setting.trials[*index].rates.goodput_per_s;
    order.sort_by(|a, b| goodput(a).total_cmp(&goodput(b)));
    order.get(order.len().checked_sub(1)? / 2).copied()
}

/// Names of settings, short: axes in which those shown do not differ are left out.
#[must_use]
pub(crate) fn labels(of: &[Shown<'_>]) -> Vec<String> {
    let Some(first) = of.first() else { return Vec::new() };
    let all: Vec<&SettingResult> = of.iter().map(|shown| shown.setting).collect();
    let differing = called::differing(first.axes, &all);
    all.iter()
        .map(|setting| {
            let of_axis = |axis: &&str| {
                let label = setting.values.get(*axis)?;
                Some(if differing.len() == 1 || says_itself(label) {
                    called::alone(axis, label)
                } else {
                    format!("{axis}={label}")
                })
            };
            let parts: Vec<String> = differing.iter().filter_map(of_axis).collect();
            clean(&if parts.is_empty() { setting.key.clone() } else { parts.join(" ") })
        })
        .collect()
}

/// Whether a label is clear beside others without its axis: a word or a rate, not a bare number.
fn says_itself(label: &str) -> bool {
    label.starts_with(char::is_alphabetic) || label.contains('/')
}

/// A series of settings that differ in offered load alone.
pub(crate) struct Series<'a> {
    /// The values that they share, in words; empty if there is one series only.
    pub(crate) name: String,
    /// For names of files.
    pub(crate) stem: String,
    /// In ascending order of load, with their labels.
    pub(crate) points: Vec<(Shown<'a>, String)>,
    /// Index of the knee in `points`.
    pub(crate) knee: Option<usize>,
    /// Index of the first that did not keep up.
    pub(crate) limit: Option<usize>,
}

/// All series with at least two settings that have a trial.
#[must_use]
pub(crate) fn load_series<'a>(result: &'a RunResult) -> Vec<Series<'a>> {
    let all = shown(result);
    let series = result.load_series.iter().map(|series| {
        let found =
            series.settings.iter().filter_map(|key| all.iter().find(|s| s.setting.key == *key));
        let points: Vec<Shown<'a>> = found.copied().collect();
        let labels = labels(&points);
        let name = called::pairs(&result.axes, &series.values);
        let place = |key: &Option<String>| {
            let key = key.as_ref()?;
            points.iter().position(|s| s.setting.key == *key)
        };
        let (knee, limit) = (place(&series.knee), place(&series.limit));
        Series {
            stem: stem(&name.join(",")),
            name: clean(&name.join(" ")),
            points: points.into_iter().zip(labels).collect(),
            knee,
            limit,
        }
    });
    series.filter(|series| series.points.len() > 1).collect()
}

/// Labels of an axis in the order that the experiment gives, or in which they appear.
#[must_use]
pub(crate) fn axis_labels(result: &RunResult, picture: &RunPicture, axis: &str) -> Vec<String> {
    let written = picture.axes.iter().find(|it| it.name == axis).map(|it| it.labels.clone());
    let mut labels = written.unwrap_or_default();
    for setting in &result.settings {
        if let Some(label) = setting.values.get(axis).filter(|label| !labels.contains(label)) {
            labels.push(label.clone());
        }
    }
    labels
}

/// Axes of the matrix in the order that the experiment gives, or by name.
#[must_use]
pub(crate) fn axes(result: &RunResult, picture: &RunPicture) -> Vec<String> {
    let mut axes: Vec<String> = picture.axes.iter().map(|axis| axis.name.clone()).collect();
    let used: BTreeSet<&String> = result.settings.iter().flat_map(|s| s.values.keys()).collect();
    for axis in used {
        if !axes.contains(axis) {
            axes.push(axis.clone());
        }
    }
    axes
}

/// A name that any file system takes: letters, digits, `.`, `-`, `_`; bounded.
#[must_use]
pub(crate) fn stem(text: &str) -> String {
    let mut stem = String::new();
    for c in text.chars().take(80) {
        match c {
            c if c.is_ascii_alphanumeric() || c == '.' || c == '_' => stem.push(c),
            '/' => stem.push_str("per"),
            _ if stem.ends_with('-') || stem.is_empty() => {}
            _ => stem.push('-'),
        }
    }
    stem.trim_matches(['-', '.']).to_owned()
}
