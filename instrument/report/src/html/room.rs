//! The room of a page: series of many nodes and many trials are more than a page may weigh.
//!
//! It must never leave out what the host says, nor leave anything out in silence.

use std::collections::BTreeSet;

use model::picture::{RunPicture, Series, TrialPicture};
use model::result::RunResult;

use crate::metrics::Declared;
use crate::tables::shown;

/// Lines of all charts of series of a document: each is at least 24 points of about ten bytes, and its data.
const LINES_MAX: usize = 400;

/// Runs with what there is room for.
type Kept = Vec<(RunResult, RunPicture)>;

/// The runs without the metrics of nodes that there is no room for, and the names of those; none if there is room for all.
/// The series that most readers look at stay longest.
pub(super) fn within(runs: &[(RunResult, RunPicture)]) -> Option<(Kept, Vec<String>)> {
    let count: usize = runs.iter().flat_map(|(_, it)| &it.trials).map(|it| it.series.len()).sum();
    if count <= LINES_MAX {
        return None;
    }
    let of_the_host = |it: &Series| matches!(it.source.as_str(), "host" | "generator");
    let mut ranks: Vec<usize> = Vec::new();
    for (declared, trial) in trials(runs) {
        let of_nodes = trial.series.iter().filter(|it| !of_the_host(it));
        ranks.extend(of_nodes.map(|it| declared.rank(&it.name)));
    }
    ranks.sort_unstable();
    let room = LINES_MAX.saturating_sub(count - ranks.len());
    // Whole metrics: the first rank that does not fit goes with all of it, and the first of all stays whatever it takes.
    let beyond = ranks.get(room).copied().unwrap_or(usize::MAX).max(1);
    let is_kept =
        |it: &Series, declared: Declared<'_>| of_the_host(it) || declared.rank(&it.name) < beyond;
    let mut left_out = BTreeSet::new();
    let mut kept = runs.to_vec();
    let pictures = kept.iter_mut().flat_map(|(_, picture)| &mut picture.trials);
    for ((declared, _), trial) in trials(runs).into_iter().zip(pictures) {
        trial.series.retain(|it| {
            let is_kept = is_kept(it, declared);
            if !is_kept {
                left_out.insert(it.name.clone());
            }
            is_kept
        });
    }
    (!left_out.is_empty()).then(|| (kept, left_out.into_iter().collect()))
}

/// The picture of each trial, with what was declared of its series.
fn trials(runs: &[(RunResult, RunPicture)]) -> Vec<(Declared<'_>, &TrialPicture)> {
    let mut all = Vec::new();
    for (result, picture) in runs {
        let declared = shown(result).into_iter().map(|row| Declared(&row.trial.series));
        let declared = declared.chain(std::iter::repeat(Declared(&[])));
        all.extend(declared.zip(&picture.trials));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::picture::TrialPicture;
    use model::series::{SeriesFacts, SeriesUnit};

    use crate::html::pack::blank_trial;

    /// Claim: of too many lines those that few look for go first and are named, undeclared ones before all;
    /// the host's and the foremost stay.
    #[test]
    fn the_rest_goes_first() {
        let series = |source: &str, name: &str| Series {
            source: source.to_owned(),
            name: name.to_owned(),
            min: vec![1.0],
            mean: vec![1.0],
            max: vec![1.0],
        };
        let mut trial =
            TrialPicture { series: vec![series("host", "tcp_x")], ..Default::default() };
        for node in 0..24 {
            let source = format!("node-{node}");
            trial.series.push(series(&source, "cpu_cores"));
            trial.series.push(series(&source, "turned"));
            trial.series.extend((0..30).map(|at| series(&source, &format!("other_{at}"))));
        }
        assert!(trial.series.len() > LINES_MAX);
        let of_node = |name: &str| SeriesFacts::of_node(name, name, SeriesUnit::Number);
        let mut result = blank_trial();
        result.series = vec![of_node("other_7"), of_node("turned").foremost()];
        result.series.push(
            SeriesFacts::of_host("cpu_cores", "processor", SeriesUnit::of("cores")).foremost(),
        );
        let setting = serde_json::json!({ "key": "default", "values": {}, "verdict": "pass", "expect": null,
            "saturated": false, "trials": [result] });
        let run = serde_json::json!({ "schema": "assay.result/2", "name": "many", "question": "", "notes": "",
            "started": "", "seed": 1, "verdict": "pass", "reason": "", "exit_code": 0, "exit_meaning": "",
            "interrupted": false, "fidelity": [], "percentile_method": "", "settings": [setting], "tables": [], "knee": "",
            "load_series": [], "audits": [], "environment": {} });
        let result: RunResult = serde_json::from_value(run).expect("a run without settings");
        let picture = RunPicture { trials: vec![trial], ..RunPicture::default() };
        let (kept, left_out) = within(&[(result, picture)]).expect("too many");
        let names: BTreeSet<&str> =
            kept[0].1.trials[0].series.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            ["cpu_cores", "other_7", "tcp_x", "turned"]
        );
        assert_eq!(left_out.len(), 29);
    }
}
