//! The two sides of a comparison: whole runs, or the two labels of an axis of one run.

use model::plan::{Plan, SearchKey};
use model::result::{RunResult, TrialResult};

/// One side: its runs, or the part of one run that has a label.
#[derive(Clone, Debug, Default)]
pub struct Side<'a> {
    /// Its name.
    pub label: String,
    /// When its runs started.
    pub started: Vec<String>,
    pub(crate) trials: Vec<Tried<'a>>,
    /// Confirmed and refuted value of each run that searched.
    pub(crate) searched: Vec<(f64, Option<f64>)>,
    /// The key that they searched.
    pub(crate) find: SearchKey,
}

/// A trial of a side.
#[derive(Clone, Debug)]
pub(crate) struct Tried<'a> {
    /// The setting's key without the axis of the sides; empty = the only setting.
    pub(crate) setting: String,
    /// Its run's place.
    pub(crate) run: usize,
    pub(crate) trial: &'a TrialResult,
}

/// Both sides.
#[derive(Clone, Debug)]
pub struct Sides<'a> {
    /// The side that is held to be known.
    pub baseline: Side<'a>,
    /// The side that is judged.
    pub candidate: Side<'a>,
    /// Whether their n-th trials were run side by side.
    pub is_paired: bool,
}

impl<'a> Side<'a> {
    /// A side of whole runs.
    #[must_use]
    pub fn of_runs(label: &str, runs: &[&'a RunResult]) -> Self {
        let mut side = Self { label: label.to_owned(), ..Self::default() };
        for (place, run) in runs.iter().enumerate() {
            side.started.push(run.started.clone());
            if let Some(search) = &run.search {
                side.find = search.find;
                side.searched.extend(search.confirmed.map(|it| (it, search.refuted)));
                continue;
            }
            let is_only = run.settings.len() == 1;
            for setting in &run.settings {
                let key = if is_only { "" } else { setting.key.as_str() };
                side.push(key, place, &setting.trials);
            }
        }
        side
    }

    fn push(&mut self, setting: &str, run: usize, trials: &'a [TrialResult]) {
        let tried = |trial| Tried { setting: setting.to_owned(), run, trial };
        self.trials.extend(trials.iter().map(tried));
    }
}

impl<'a> Sides<'a> {
    /// Whole runs on both sides.
    #[must_use]
    pub const fn of_runs(baseline: Side<'a>, candidate: Side<'a>) -> Self {
        Self { baseline, candidate, is_paired: false }
    }

    /// The first two labels of an axis of one run; `None` where it has no such axis, or the axis not two labels.
    #[must_use]
    pub fn along(axis: &str, plan: &Plan, run: &'a RunResult) -> Option<Self> {
        let labels = &plan.axes.iter().find(|it| it.name == axis)?.labels;
        let [first, second, ..] = labels.as_slice() else { return None };
        let side = |label: &str| {
            let started = vec![run.started.clone()];
            let mut side = Side { label: label.to_owned(), started, ..Side::default() };
            let of = |it: &&model::result::SettingResult| {
                it.values.get(axis).is_some_and(|value| value == label)
            };
            for setting in run.settings.iter().filter(of) {
                let others = setting.values.iter().filter(|(name, _)| *name != axis);
                let key: Vec<String> = others.map(|(name, it)| format!("{name}={it}")).collect();
                side.push(&key.join(","), 0, &setting.trials);
            }
            side
        };
        let is_paired = are_neighbours(axis, plan);
        Some(Self { baseline: side(first), candidate: side(second), is_paired })
    }
}

/// Whether the n-th trial of a setting stands in the plan's order beside the n-th of the same setting on the other side, so
/// that whatever changes on the host meanwhile changes for both.
fn are_neighbours(axis: &str, plan: &Plan) -> bool {
    let without = |setting: usize| {
        let values = &plan.settings[setting].values;
        values.iter().filter(|(name, _)| *name != axis).collect::<Vec<_>>()
    };
    let mut pairs = plan.order.chunks_exact(2);
    let beside = |pair: &[(usize, u32)]| {
        pair[0].1 == pair[1].1 && pair[0].0 != pair[1].0 && without(pair[0].0) == without(pair[1].0)
    };
    plan.order.len() >= 4 && pairs.all(beside) && pairs.remainder().is_empty()
}
