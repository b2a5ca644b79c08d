//! The effect of the instrument's own lateness on a printed quantile: one rule for late sending and for late reading.
//!
//! Response times are held against the same without the lateness, quantile by quantile: the difference, as a share of
//! what is printed, is the instrument's. Above a tenth a reader is told, and the number is printed as the range of what it
//! may be. Thresholds count each row with and without its lateness, so that nothing is void for it. Quantiles with fewer
//! than ten samples beyond them are not judged, nor are fewer than twenty samples.

use model::quantity::show_ns;
use model::result::FigureUnit;
use stats::Histogram;

use super::evidence::Evidence;
use super::finding::{Finding, ok, skipped, warn};
use crate::figures::latency::{BEYOND_MIN, percentile_name};
use crate::figures::share::percent;
use crate::figures::without_lag::SHARE_WARN;

/// The figures that both audits give.
pub(super) const FIGURES: &[(&str, FigureUnit)] = &[
    ("p50", FigureUnit::Ns),
    ("p99", FigureUnit::Ns),
    ("share_p50", FigureUnit::Share),
    ("share_max", FigureUnit::Share),
];

/// A lag of the instrument's own.
pub(super) struct OwnTime<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its samples.
    pub lag: &'a Histogram,
    /// Its share of each quantile that is judged.
    pub shares: Vec<ShareAt>,
    /// A remark that follows the figures; empty = none.
    pub remark: String,
    /// Why it is a warning, where it is no more.
    pub told: &'static str,
}

/// The instrument's share of a quantile.
pub(super) struct ShareAt {
    q: f64,
    response: i64,
    share: f64,
}

/// The share of each quantile: the median first, then each printed one above it that has [`BEYOND_MIN`] samples beyond it.
#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
pub(super) fn shares(
    evidence: &Evidence<'_>,
    response: &Histogram,
    without: &Histogram,
) -> Vec<ShareAt> {
    if response.count() < 2 * BEYOND_MIN {
        return Vec::new();
    }
    let latency = evidence.result.latency.get(evidence.trial.final_stage);
    let printed = latency.map_or(&[][..], |latency| &latency.response.quantiles);
    let above = printed.iter().map(|it| it.q);
    let above = above.filter(|q| *q > 0.5 && response.beyond(*q) >= BEYOND_MIN);
    let at = |q: f64| {
        let (of, without) = (response.quantile(q)?, without.quantile(q)?);
        let share = if of > 0 { of.saturating_sub(without).max(0) as f64 / of as f64 } else { 0.0 };
        Some(ShareAt { q, response: of, share })
    };
    [0.5].into_iter().chain(above).filter_map(at).collect()
}

impl OwnTime<'_> {
    /// The finding, with its figures; where nothing is judged, why.
    #[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    pub fn finding(&self, why_not: impl FnOnce() -> String) -> Finding {
        let lag = |q: f64| self.lag.quantile(q).map_or(f64::NAN, |ns| ns as f64);
        let at_median = self.shares.first().map_or(f64::NAN, |it| it.share);
        let worst = self.shares.iter().max_by(|a, b| a.share.total_cmp(&b.share));
        let finding = worst.map_or_else(|| skipped(why_not()), |worst| self.judged(worst));
        finding
            .with("p50", lag(0.5))
            .with("p99", lag(0.99))
            .with("share_p50", at_median)
            .with("share_max", worst.map_or(f64::NAN, |it| it.share))
    }

    fn judged(&self, worst: &ShareAt) -> Finding {
        let lag = |q: f64| self.lag.quantile(q).map_or_else(|| "–".to_owned(), show_ns);
        let said = format!(
            "{} p50 {}, p99 {}; it makes up {} of response {} ({}){}",
            self.name,
            lag(0.5),
            lag(0.99),
            percent(worst.share),
            percentile_name(worst.q),
            show_ns(worst.response),
            self.remark
        );
        if worst.share > SHARE_WARN { warn(format!("{said}: {}", self.told)) } else { ok(said) }
    }
}
