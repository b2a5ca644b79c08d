//! How much can it take? A heat table, latency against throughput, goodput against offered load, and percentiles
//! against rate.
//!
//! Nothing is judged here: marks follow the shares that the results table uses, knees and thresholds stand in the
//! result.

mod answer;
mod goodput;
mod heat;
mod percentiles;
mod steps;
mod throughput;

use model::picture::RunPicture;
use model::quantity::{Rate, parse_duration};
use model::result::RunResult;

use super::settings::load_series;
use super::{Detail, Figure};

/// More series than this are not drawn: nobody reads them, and a page must not grow with the matrix.
pub(crate) const SERIES_MAX: usize = 12;

/// All charts of the section.
pub(crate) fn figures(result: &RunResult, picture: &RunPicture, detail: Detail) -> Vec<Figure> {
    let mut figures = answer::figures(result);
    figures.extend(heat::figures(result, picture));
    // Of one series the first screen of a page has drawn what these would draw again.
    if detail == Detail::Full || load_series(result).len() > 1 {
        figures.extend(throughput::figures(result));
        figures.extend(goodput::figures(result));
        figures.extend(percentiles::figures(result));
    }
    figures.extend(steps::figures(result));
    figures
}

/// A limit that a threshold sets, as written.
pub(crate) struct Limit {
    pub(crate) value: f64,
    pub(crate) text: String,
}

/// Thresholds that compare a percentile of the response time with a constant, in nanoseconds.
pub(crate) fn latency_limits(result: &RunResult) -> Vec<Limit> {
    limits(result, |name, right| {
        let digits = name.strip_prefix('p')?;
        digits.parse::<f64>().ok()?;
        parse_duration(right).ok().map(|limit| limit.as_nanos() as f64)
    })
}

/// Thresholds that compare goodput with a constant, per second.
pub(crate) fn goodput_limits(result: &RunResult) -> Vec<Limit> {
    limits(result, |name, right| {
        (name == "goodput").then(|| Rate::parse(right).ok())?.map(|rate| rate.as_per_second())
    })
}

fn limits(result: &RunResult, read: impl Fn(&str, &str) -> Option<f64>) -> Vec<Limit> {
    let trials = result.settings.iter().flat_map(|setting| &setting.trials);
    let mut limits: Vec<Limit> = Vec::new();
    for part in trials.flat_map(|trial| &trial.thresholds).flat_map(|it| it.expr.split(" and ")) {
        let Some(at) = part.find(['<', '>']) else { continue };
        let (left, right) =
            (part[..at].trim(), part[at..].trim_start_matches(['<', '>', '=']).trim());
        let Some(value) = read(left, right).filter(|value| value.is_finite()) else { continue };
        if limits.iter().all(|limit| limit.text != part.trim()) && limits.len() < 8 {
            limits.push(Limit { value, text: part.trim().to_owned() });
        }
    }
    limits
}
