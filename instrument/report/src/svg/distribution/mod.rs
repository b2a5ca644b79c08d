//! How slow is the slowest 1 in N? Percentile curves as HdrHistogram plots them, cumulative shares, and boxes.
//!
//! All are of the response time to the final stage. A curve is over those that reached it; how many never did is said
//! beside its name, and the cumulative shares are of all that were due.

mod boxes;
mod ecdf;
mod hdr;

pub(super) use hdr::{stepped, ticks};
use model::result::{CurvePoint, Distribution, RunResult};

use super::Figure;
use super::settings::{Shown, labels, shown};
use crate::figures::plural;

/// The most curves that one chart can tell apart.
pub(crate) const CURVES_MAX: usize = 16;

/// All charts of the section.
pub(crate) fn figures(result: &RunResult) -> Vec<Figure> {
    let of = Curves::of(result);
    if of.curves.is_empty() {
        return Vec::new();
    }
    vec![hdr::figure(&of), ecdf::figure(&of), boxes::figure(&of)]
}

/// The settings that are drawn.
pub(crate) struct Curves<'a> {
    pub(crate) curves: Vec<Curve<'a>>,
    /// A sentence on those that were left out, with a blank before it; empty if none.
    pub(crate) note: String,
}

/// A setting's distribution.
pub(crate) struct Curve<'a> {
    pub(crate) shown: Shown<'a>,
    /// Its name, and how many never got there.
    pub(crate) label: String,
    /// Index of the latency in its trial.
    pub(crate) latency: usize,
    pub(crate) response: &'a Distribution,
    pub(crate) service: &'a Distribution,
}

impl<'a> Curves<'a> {
    fn of(result: &'a RunResult) -> Self {
        let all: Vec<Shown<'_>> = shown(result)
            .into_iter()
            .filter(|it| {
                it.latency().is_some_and(|(_, latency)| !points(&latency.response).is_empty())
            })
            .collect();
        let labels = labels(&all);
        let count = if all.len() > CURVES_MAX { CURVES_MAX - 1 } else { all.len() };
        let left_out: Vec<&str> = labels.iter().skip(count).map(String::as_str).collect();
        let note = match left_out.as_slice() {
            [] => String::new(),
            few if few.len() <= 8 => format!(" Left out: {}.", few.join(", ")),
            many => format!(
                " Left out: {}, from {} to {}.",
                plural(many.len() as u64, "setting"),
                many[0],
                many[many.len() - 1]
            ),
        };
        let is_single = all.len() == 1;
        let curve = |(it, label): (Shown<'a>, String)| {
            let (index, latency) = it.latency()?;
            let label = match latency.inf {
                0 if is_single => "response time".to_owned(),
                0 => label,
                inf if is_single => format!("{} never got there", plural(inf, "tx")),
                inf => format!("{label} ({inf} inf)"),
            };
            let (response, service) = (&latency.response, &latency.service);
            Some(Curve { shown: it, label, latency: index, response, service })
        };
        let curves = all.into_iter().zip(labels).take(count).filter_map(curve).collect();
        Self { curves, note }
    }

    /// Largest and smallest values of all curves, for a scale.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> {
        let ends = |curve: &Curve<'_>| {
            let points = points(curve.response);
            [points.first().copied(), points.last().copied()]
        };
        self.curves.iter().flat_map(ends).flatten().map(|point| point.value_ns as f64)
    }
}

/// A curve's points that can be drawn: fractions within 0 and 1, values above zero (the axis is logarithmic).
pub(crate) fn points(distribution: &Distribution) -> Vec<CurvePoint> {
    let is_drawable = |point: &&CurvePoint| (0.0..=1.0).contains(&point.q);
    let kept = distribution.curve.iter().filter(is_drawable);
    kept.map(|point| CurvePoint { value_ns: point.value_ns.max(1), ..*point }).collect()
}

/// The fraction from which on fewer than ten samples lie beyond.
pub(crate) fn thin_from(distribution: &Distribution) -> f64 {
    (1.0 - 10.0 / (distribution.count as f64).max(1.0)).max(0.0)
}
