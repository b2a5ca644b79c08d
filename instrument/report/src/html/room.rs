//! What a page has room for: series of many nodes and many trials are more than a page may weigh.
//!
//! It must never leave out what the host says, nor leave anything out in silence.

use std::collections::BTreeSet;

use model::picture::{RunPicture, Series};
use model::result::RunResult;

use crate::metrics::rank;

/// Lines of all charts of series of a document: each is at least 24 points of about ten bytes, and its data.
const LINES_MAX: usize = 400;

/// Runs with what there is room for.
type Kept = Vec<(RunResult, RunPicture)>;

/// The runs without the metrics of nodes that there is no room for, and the names of those; none if there is room for all.
/// What most readers look at stays longest.
pub(super) fn within(runs: &[(RunResult, RunPicture)]) -> Option<(Kept, Vec<String>)> {
    let all: Vec<&Series> =
        runs.iter().flat_map(|(_, it)| &it.trials).flat_map(|it| &it.series).collect();
    if all.len() <= LINES_MAX {
        return None;
    }
    let of_the_host = |it: &Series| matches!(it.source.as_str(), "host" | "generator");
    let mut ranks: Vec<usize> =
        all.iter().filter(|it| !of_the_host(it)).map(|it| rank(&it.name)).collect();
    ranks.sort_unstable();
    let room = LINES_MAX.saturating_sub(all.len() - ranks.len());
    // Whole metrics: the first rank that does not fit goes with all of it, and the first of all stays whatever it takes.
    let beyond = ranks.get(room).copied().unwrap_or(usize::MAX).max(1);
    let is_kept = |it: &Series| of_the_host(it) || rank(&it.name) < beyond;
    let left_out: BTreeSet<String> =
        all.iter().filter(|it| !is_kept(it)).map(|it| it.name.clone()).collect();
    if left_out.is_empty() {
        return None;
    }
    let mut kept = runs.to_vec();
    for trial in kept.iter_mut().flat_map(|(_, picture)| &mut picture.trials) {
        trial.series.retain(|it| is_kept(it));
    }
    Some((kept, left_out.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::picture::TrialPicture;

    /// Claim: of too many lines those that few look for go first and are named; the host's and the processor's stay.
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
            trial.series.push(series(&source, "height_blocks"));
            trial.series.extend((0..30).map(|at| series(&source, &format!("other_{at}"))));
        }
        assert!(trial.series.len() > LINES_MAX);
        let run = serde_json::json!({ "schema": "assay.result/1", "name": "many", "question": "", "notes": "",
            "started": "", "seed": 1, "verdict": "pass", "reason": "", "exit_code": 0, "exit_meaning": "",
            "interrupted": false, "fidelity": [], "percentile_method": "", "settings": [], "tables": [], "knee": "",
            "load_series": [], "audits": [], "environment": {} });
        let result: RunResult = serde_json::from_value(run).expect("a run without settings");
        let picture = RunPicture { trials: vec![trial], ..RunPicture::default() };
        let (kept, left_out) = within(&[(result, picture)]).expect("too many");
        let names: BTreeSet<&str> =
            kept[0].1.trials[0].series.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["cpu_cores", "height_blocks", "tcp_x"]);
        assert_eq!(left_out.len(), 30);
    }
}
