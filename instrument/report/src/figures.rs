//! Numbers as people read them: rates, shares, bytes, spans and latencies, each in one way.
//!
//! It must never round a number to a claim: 99.999 % is not printed as 100 %, one failure in a million is not
//! printed as 0 %, and what is not known is a dash, not a zero.

use std::time::Duration;

use model::quantity::{show_count, show_ns};
use model::result::{Counts, Quantile, TrialResult};

/// The placeholder of a missing number.
pub(crate) const NONE: &str = "–";

/// Fewer samples than this beyond a percentile, and it is greyed (UX: "statistics wording").
pub(crate) const BEYOND_MIN: u64 = 10;

/// Events a second: four significant digits or so, whole numbers grouped.
#[must_use]
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        r if r.is_nan() => NONE.to_owned(),
        r if r.is_infinite() => "max".to_owned(),
        r if r.abs() >= 999.95 => grouped(r),
        r if r.abs() >= 99.995 => format!("{r:.1}"),
        0.0 => "0".to_owned(),
        r => format!("{r:.2}"),
    }
}

/// A number of a few thousand or more, whole and grouped.
fn grouped(value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded, and saturating for what no machine reaches"
    )]
    let count = value.abs().round() as u64;
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", show_count(count))
}

/// A share of one as a percentage, never rounded up to all or down to nothing.
#[must_use]
pub(crate) fn percent(share: f64) -> String {
    if share.is_nan() {
        return NONE.to_owned();
    }
    let hundred = share * 100.0;
    if share == 0.0 || share == 1.0 {
        return format!("{hundred:.0}%");
    }
    for digits in 2..=5 {
        let text = format!("{hundred:.digits$}");
        let shown: f64 = text.parse().unwrap_or(f64::NAN);
        if shown != 0.0 && (shown != 100.0 || hundred > 100.0) {
            return format!("{text}%");
        }
    }
    if hundred < 50.0 { "<0.00001%".to_owned() } else { ">99.99999%".to_owned() }
}

/// `part` of `whole` as a percentage; a dash if there is no whole.
#[must_use]
pub(crate) fn share(part: u64, whole: u64) -> String {
    percent(ratio(part, whole))
}

/// `part ÷ whole`, not a number if there is no whole.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { f64::NAN } else { part as f64 / whole as f64 }
}

/// A size with three significant digits, in powers of 1000.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) fn bytes(count: u64) -> String {
    let (scaled, unit) = match count {
        0..1_000 => return format!("{count} B"),
        1_000..1_000_000 => (count as f64 / 1e3, "kB"),
        1_000_000..1_000_000_000 => (count as f64 / 1e6, "MB"),
        _ => (count as f64 / 1e9, "GB"),
    };
    let digits = match scaled {
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$} {unit}")
}

/// A latency, or a dash.
#[must_use]
pub(crate) fn latency(ns: Option<i64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), show_ns)
}

/// A latency that may be a fraction of a nanosecond (a mean), or a dash.
#[must_use]
pub(crate) fn latency_f64(ns: Option<f64>) -> String {
    ns.and_then(whole_ns).map_or_else(|| NONE.to_owned(), show_ns)
}

/// The nearest whole nanosecond, if there is one.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    reason = "finite and within the bounds that are checked"
)]
pub(crate) fn whole_ns(ns: f64) -> Option<i64> {
    (ns.is_finite() && ns.abs() < 9e18).then(|| ns.round() as i64)
}

/// A quantile over those that reached the stage; `~` before one that rests on too few samples.
#[must_use]
pub(crate) fn quantile(quantile: &Quantile) -> String {
    let thin = if is_thin(quantile) { "~" } else { "" };
    match (quantile.value_ns, quantile.less_own_ns) {
        // What the instrument's own lag moves is what it may be.
        (Some(ns), Some(less)) => format!("{thin}{}", interval(Some(ns), Some(less), Some(ns))),
        (Some(ns), None) => format!("{thin}{}", show_ns(ns)),
        (None, _) => latency(None),
    }
}

/// Whether fewer than [`BEYOND_MIN`] samples lie beyond it.
#[must_use]
pub(crate) fn is_thin(quantile: &Quantile) -> bool {
    let is_known = quantile.value_ns.is_some() || quantile.unconditional_ns.is_some();
    is_known && quantile.beyond < BEYOND_MIN
}

/// A quantile over all that were due: `inf` where those without an answer reach down to it.
#[must_use]
pub(crate) fn unconditional(quantile: &Quantile) -> String {
    quantile.unconditional_ns.map_or_else(|| "inf".to_owned(), show_ns)
}

/// The same with `~` before one that fewer than ten samples lie beyond: the number of the first screen.
#[must_use]
pub(crate) fn of_all_due(quantile: &Quantile) -> String {
    let thin = if is_thin_of_all_due(quantile) { "~" } else { "" };
    let Some(ns) = quantile.unconditional_ns else { return unconditional(quantile) };
    match quantile.less_own_ns.filter(|_| quantile.value_ns == Some(ns)) {
        Some(less) => format!("{thin}{}", interval(Some(ns), Some(less), Some(ns))),
        None => format!("{thin}{}", show_ns(ns)),
    }
}

/// The same of all that were due; an infinite one rests on enough.
#[must_use]
pub(crate) fn is_thin_of_all_due(quantile: &Quantile) -> bool {
    let is_finite = quantile.unconditional_ns.is_some();
    is_finite && quantile.due_beyond.max(quantile.beyond) < BEYOND_MIN
}

/// An interval in the unit of the value that it is of, `573–1010 µs`; `at least 900 ms` where the samples limit one side alone.
#[must_use]
pub(crate) fn interval(of_ns: Option<i64>, low_ns: Option<i64>, high_ns: Option<i64>) -> String {
    let numbers = interval_bare(of_ns, low_ns, high_ns);
    match of_ns.or(low_ns).or(high_ns) {
        Some(ns) if !numbers.is_empty() => format!("{numbers} {}", unit_of(ns).1),
        _ => String::new(),
    }
}

/// The same without the unit, for a place below the value that shows it.
#[must_use]
pub(crate) fn interval_bare(
    of_ns: Option<i64>,
    low_ns: Option<i64>,
    high_ns: Option<i64>,
) -> String {
    let Some(unit_from) = of_ns.or(low_ns).or(high_ns) else { return String::new() };
    let end = |ns: i64| in_unit(ns, unit_of(unit_from).0);
    between(low_ns.map(end), high_ns.map(end))
}

/// Two ends of an interval in words, as far as there are any.
pub(crate) fn between(low: Option<String>, high: Option<String>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{low}–{high}"),
        (Some(low), None) => format!("at least {low}"),
        (None, Some(high)) => format!("at most {high}"),
        (None, None) => String::new(),
    }
}

/// The unit that `model::quantity::show_ns` gives a value.
const fn unit_of(ns: i64) -> (f64, &'static str) {
    match ns.unsigned_abs() {
        0..1_000 => (1.0, "ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A number in a given unit, with the digits that `show_ns` gives one of its size.
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn in_unit(ns: i64, unit_ns: f64) -> String {
    let scaled = ns as f64 / unit_ns;
    let digits = match scaled.abs() {
        s if unit_ns == 1.0 || s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}")
}

/// A span of time to the second, as a clock on a wall would give it: `6m12s`, `1h04m`, `0.8s`.
#[must_use]
pub(crate) fn span(time: Duration) -> String {
    let s = time.as_secs();
    match s {
        0..10 if time.subsec_millis() >= 50 => format!("{:.1}s", time.as_secs_f64()),
        0..60 => format!("{s}s"),
        60..3600 if s.is_multiple_of(60) => format!("{}m", s / 60),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        _ => format!("{}h{:02}m", s / 3600, s % 3600 / 60),
    }
}

/// [`span`] of nanoseconds that a result holds.
#[must_use]
pub(crate) fn span_ns(ns: i64) -> String {
    u64::try_from(ns).map_or_else(|_| NONE.to_owned(), |ns| span(Duration::from_nanos(ns)))
}

/// Everything that fell due and did not reach the final stage in time.
#[must_use]
pub(crate) fn failed(counts: &Counts) -> u64 {
    counts.rejected + counts.unknown + counts.shed
}

/// Counts of the failed and of the due, in every stream of these trials: a probe's are not those of its load.
#[must_use]
pub(crate) fn of_all_streams<'a>(trials: impl Iterator<Item = &'a TrialResult>) -> (u64, u64) {
    let counts = trials.flat_map(|trial| [Some(&trial.counts), trial.background.as_ref()]);
    counts.flatten().fold((0, 0), |(lost, due): (u64, u64), of| {
        (lost.saturating_add(failed(of)), due.saturating_add(of.due))
    })
}

/// How transactions failed, with counts: the classes of the rejected, then unknown and shed.
#[must_use]
pub(crate) fn failures(counts: &Counts) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> =
        counts.rejected_by_class.iter().map(|(class, count)| (class.clone(), *count)).collect();
    let classed: u64 = counts.rejected_by_class.values().sum();
    all.push(("rejected".to_owned(), counts.rejected.saturating_sub(classed)));
    all.push(("unknown".to_owned(), counts.unknown));
    all.push(("shed".to_owned(), counts.shed));
    all.retain(|(_, count)| *count > 0);
    all
}

/// `1 audit`, `2 audits`.
#[must_use]
pub(crate) fn plural(count: u64, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {one}{s}", show_count(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a share is never rounded to all or to nothing, and what is not known is a dash.
    #[test]
    fn shares_do_not_lie() {
        assert_eq!(percent(1.0), "100%");
        assert_eq!(percent(0.0), "0%");
        assert_eq!(percent(0.974_3), "97.43%");
        assert_eq!(percent(0.999_99), "99.999%");
        assert_eq!(percent(0.000_01), "0.001%");
        assert_eq!(percent(1e-9), "<0.00001%");
        assert_eq!(percent(1.0 - 1e-9), ">99.99999%");
        assert_eq!(percent(1.02), "102.00%");
        assert_eq!(share(0, 0), NONE);
        assert_eq!(rate(f64::NAN), NONE);
    }

    /// Claim: numbers carry the unit that keeps them short.
    #[test]
    fn units() {
        for (value, text) in [
            (49.996, "50.00"),
            (999.96, "1,000"),
            (123.45, "123.5"),
            (0.0, "0"),
            (1.5e6, "1,500,000"),
        ] {
            assert_eq!(rate(value), text);
        }
        assert_eq!(bytes(1_029_416_939), "1.03 GB");
        assert_eq!(bytes(1_052), "1.05 kB");
        let ms = |ms: i64| Some(ms * 1_000_000);
        assert_eq!(interval(ms(116), ms(115), ms(118)), "115–118 ms");
        assert_eq!(interval(ms(1_020), ms(994), ms(1_050)), "0.99–1.05 s");
        assert_eq!(interval(ms(790), ms(573), ms(1_010)), "573–1010 ms");
        assert_eq!(interval(ms(980), ms(900), None), "at least 900 ms");
        assert_eq!(interval_bare(ms(980), None, ms(990)), "at most 990");
        assert_eq!(interval(ms(980), None, None), "");
        assert_eq!(interval_bare(Some(412), Some(402), Some(422)), "402–422");
        assert_eq!(span(Duration::from_secs(372)), "6m12s");
        assert_eq!(span(Duration::from_secs(3_845)), "1h04m");
        assert_eq!(span(Duration::from_millis(800)), "0.8s");
    }
}
