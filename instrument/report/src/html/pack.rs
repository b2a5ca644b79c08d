//! The data of the time charts, packed: an index in JSON, arrays of differences, deflated, in base64. The form stands
//! in web/PAGE.md, "Packed data".
//!
//! It must never grow with the number of transactions: what it holds is bounded by columns of time, trials and series.

mod arrays;
mod density;
mod series;
mod slow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::picture::{RunPicture, TrialPicture};
use model::result::{RunResult, TimelineColumn, TrialResult};
use serde_json::{Map, Value, json};

use crate::metrics::Declared;
use crate::paint::clean;
use crate::tables::shown_on_page;
use arrays::Arrays;
pub(super) use slow::SLOW_ROWS_MAX;

/// How hard to deflate: beyond 6 the data of a large page takes four times as long for 1 % less.
const LEVEL: u8 = 6;
/// Moments of a trial that are kept.
const MOMENTS_MAX: usize = 400;

/// The content of `#assay-data`.
pub(super) fn pack(runs: &[(RunResult, RunPicture)]) -> String {
    let bytes = unpacked(runs);
    STANDARD.encode(miniz_oxide::deflate::compress_to_vec(&bytes, LEVEL))
}

/// Length of the index, the index, the arrays.
fn unpacked(runs: &[(RunResult, RunPicture)]) -> Vec<u8> {
    let pictures: Vec<&TrialPicture> =
        runs.iter().flat_map(|(_, picture)| &picture.trials).collect();
    let bounds = Bounds {
        slow: slow::Room::of(&pictures),
        merged: density::merges(&pictures),
        series_columns: series::columns_max(pictures.iter().map(|it| lines(it)).sum()),
    };
    let columns = |it: &&TrialPicture| it.series.iter().map(|it| 3 * it.mean.len()).sum::<usize>();
    let mut arrays = Arrays::for_reals(pictures.iter().map(columns).sum());
    let mut trials = Vec::new();
    let mut names = Vec::new();
    for (result, picture) in runs {
        let from = trials.len();
        for (row, picture) in shown_on_page(result).iter().zip(&picture.trials) {
            trials.push(trial(&row.label, row.trial, picture, &bounds, &mut arrays));
        }
        let of_run: Vec<usize> = (from..trials.len()).collect();
        names.push(json!({ "name": clean(&result.name), "trials": of_run }));
    }
    let index = json!({ "form": "assay.page/1", "runs": names, "trials": trials }).to_string();
    let length = u32::try_from(index.len()).expect("an index of some thousand entries");
    [&length.to_le_bytes(), index.as_bytes(), &arrays.bytes].concat()
}

/// Series of a picture, and lanes.
fn lines(of: &TrialPicture) -> usize {
    of.series.len() + of.lanes.iter().map(|it| it.lanes.len()).sum::<usize>()
}

/// Parts that all trials of a document share.
struct Bounds {
    slow: slow::Room,
    merged: u32,
    series_columns: usize,
}

fn trial(
    label: &str,
    result: &TrialResult,
    picture: &TrialPicture,
    bounds: &Bounds,
    arrays: &mut Arrays,
) -> Value {
    let line = &result.timeline;
    let columns = &line.columns;
    let mut counts = |of: &dyn Fn(&TimelineColumn) -> u64| arrays.counts(columns.iter().map(of));
    let offered = counts(&|it| it.offered);
    let sent = counts(&|it| it.sent);
    let committed = counts(&|it| it.committed);
    let mut classes: Vec<&String> = columns.iter().flat_map(|it| it.failed.keys()).collect();
    classes.sort();
    classes.dedup();
    let mut failed = Map::new();
    for class in classes {
        let array = counts(&|it| it.failed.get(class).copied().unwrap_or(0));
        failed.insert(clean(class), array);
    }
    let stages = picture.stages.len();
    let reached: Vec<Value> = (0..stages)
        .map(|stage| counts(&|it| it.reached.get(stage).copied().unwrap_or(0)))
        .collect();
    let outstanding = arrays.ints(columns.iter().map(|it| it.outstanding));
    let mut times =
        |of: &dyn Fn(&TimelineColumn) -> Option<i64>| arrays.maybes(columns.iter().map(of));
    let p50 = times(&|it| it.p50_ns);
    let p99 = times(&|it| it.p99_ns);
    let p999 = times(&|it| it.p999_ns);
    let max = times(&|it| it.max_ns);
    let own_lag = times(&|it| it.own_lag_p99_ns);
    let words = |of: &[String]| of.iter().map(|it| clean(it)).collect::<Vec<_>>();
    let mut index = json!({
        "key": clean(label), "path": clean(&result.path), "stream": clean(&result.stream),
        "start_ns": line.start_ns, "width_ns": line.width_ns, "end_ns": line.end_ns(), "columns": columns.len(),
        "stages": words(&picture.stages), "final_stage": picture.final_stage,
        "offered": offered, "sent": sent, "committed": committed, "outstanding": outstanding,
        "failed": failed, "reached": reached,
        "p50_ns": p50, "p99_ns": p99, "p999_ns": p999, "max_ns": max, "own_lag_p99_ns": own_lag,
        "density": density::density(picture, bounds.merged, arrays),
        "slow": slow::slow(picture, bounds.slow, arrays),
        "outcomes": slow::outcomes(), "errors": words(&picture.errors), "kinds": words(&picture.kinds),
    });
    index["bands"] = bands(picture);
    index["moments"] = moments(picture);
    let declared = Declared(&result.series);
    index["series"] = picture
        .series
        .iter()
        .map(|it| {
            let it = &series::few(it, bounds.series_columns);
            let [min, mean, max] = arrays.reals([&it.min, &it.mean, &it.max]);
            let facts = declared.of(&it.name);
            let (unit, word) = crate::metrics::unit(&facts.unit);
            json!({ "source": clean(&it.source), "name": clean(&it.name), "unit": clean(word),
                "form": series::form(unit), "min": min, "mean": mean, "max": max })
        })
        .collect();
    let lanes = |it: &model::picture::Lanes| series::lanes(it, bounds.series_columns, arrays);
    index["lanes"] = picture.lanes.iter().map(lanes).collect();
    index
}

fn bands(picture: &TrialPicture) -> Value {
    let band = |it: &model::picture::Band| json!({ "kind": it.kind.word(), "from_ns": it.from_ns, "to_ns": it.to_ns, "label": clean(&it.label) });
    picture.bands.iter().map(band).collect()
}

fn moments(picture: &TrialPicture) -> Value {
    let moment = |it: &model::picture::Moment| json!({ "at_ns": it.at_ns, "name": clean(&it.name), "detail": clean(&it.detail) });
    picture.moments.iter().take(MOMENTS_MAX).map(moment).collect()
}

/// A trial without anything, for tests.
#[cfg(test)]
pub(super) fn blank_trial() -> TrialResult {
    let json = r#"{"path":"p","trial":0,"seed":0,"verdict":"pass","reason":"","window_ns":0,"final_stage":"committed",
        "stream":"main","counts":{"due":0,"sent":0,"committed":0,"rejected":0,"rejected_by_class":{},"unknown":0,"shed":0},
        "background":null,"rates":{"planned_per_s":null,"offered_per_s":0,"sent_per_s":0,"reached_per_s":[],
        "goodput_per_s":0},"latency":[],"send_lag":DIST,"own_lag":DIST,"vegeta":{"requests":0,"rate":0,"throughput":0,
        "attack_ns":0,"wait_ns":0,"total_ns":0,"mean_ns":0,"min_ns":0,"p50_ns":0,"p90_ns":0,"p95_ns":0,"p99_ns":0,
        "max_ns":0,"bytes_in":0,"bytes_out":0,"success":0,"status_codes":{},"errors":[]},"throughput_windows":null,
        "seconds":[],"timeline":{"start_ns":0,"width_ns":0,"columns":[]},"calls":[],"kinds":[],"codes":[],"errors":[],
        "fates":null,"stated":null,"preflight":[],"audits":[],"checks":[],"thresholds":[],"resources":{}}"#;
    let distribution = r#"{"count":0,"min_ns":null,"max_ns":null,"mean_ns":null,"mean_low_ns":null,"mean_high_ns":null,
        "variance_ns2":null,"quantiles":[],"negative":0,"curve":[]}"#;
    serde_json::from_str(&json.replace("DIST", distribution)).expect("a trial without anything")
}

#[cfg(test)]
mod tests;
