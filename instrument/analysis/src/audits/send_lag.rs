//! How late was the instrument itself? Its own lag (`sent − ready`) is inside every response time, as an error
//! that only it has made. (`ready − due` is time spent waiting for a connection: that is the system's.)
//!
//! The rule. Every response time is also counted without its own lag, and each quantile that is printed is held against
//! the same quantile without it: the difference, as a share of what is printed, is the instrument's. Above a tenth a
//! reader is told. Above a quarter that quantile and all above it do not hold: they are at most too high, so that a
//! promise that holds with the lag holds without it. Quantiles with fewer than ten samples beyond them are not judged,
//! nor are fewer than twenty samples.

use model::plan::Pacing;
use model::quantity::show_ns;
use model::result::{Family, FigureUnit, Voided};

use super::{Audit, Evidence, Finding, failed, ok, percent, skipped, warn};
use crate::latency::{BEYOND_MIN, percentile_name};

/// The share of a printed quantile from which one reads on.
const SHARE_WARN: f64 = 0.10;
/// From here on a quantile is in good part the instrument's own.
const SHARE_MAX: f64 = 0.25;
/// With coalesced pacing arrivals wait for the quantum in which they are sent: lag up to it is what was asked for.
const QUANTUM_NS: i64 = 1_000_000;

pub(super) const AUDIT: Audit = Audit {
    name: "send_lag",
    question: "How late was the instrument itself? Its own lag is part of every response time",
    voids: &[Voided::too_high(Family::Response)],
    figures: &[
        ("p50", FigureUnit::Ns),
        ("p99", FigureUnit::Ns),
        ("share_p50", FigureUnit::Share),
        ("share_max", FigureUnit::Share),
    ],
};

#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let lag = |q: f64| evidence.own_lag.quantile(q).map_or(f64::NAN, |ns| ns as f64);
    let shares = shares(evidence);
    let at_median = shares.first().map_or(f64::NAN, |it| it.share);
    let most = shares.iter().map(|it| it.share).fold(f64::NAN, f64::max);
    let finding = finding(evidence, &shares).with("p50", lag(0.5)).with("p99", lag(0.99));
    finding.with("share_p50", at_median).with("share_max", most)
}

fn finding(evidence: &Evidence<'_>, shares: &[ShareAt]) -> Finding {
    let Some(worst) = shares.iter().max_by(|a, b| a.share.total_cmp(&b.share)) else {
        return skipped(format!("{} were sent: too few to judge", evidence.own_lag.count()));
    };
    let own = |q: f64| evidence.own_lag.quantile(q).map_or_else(|| "–".to_owned(), show_ns);
    let mut said = format!(
        "own lag p50 {}, p99 {}; it makes up {} of response {} ({})",
        own(0.5),
        own(0.99),
        percent(worst.share),
        percentile_name(worst.q),
        show_ns(worst.response)
    );
    let is_coalesced = evidence.setting.load.pacing == Pacing::Coalesced;
    if is_coalesced {
        said += "; pacing is coalesced: arrivals are sent in quanta of 1 ms, and answers read in them: marks are late by up to 1 ms, too";
    }
    let void = shares.iter().find(|it| {
        it.share > SHARE_MAX && !(is_coalesced && it.response - it.without <= QUANTUM_NS)
    });
    match void {
        Some(first) => failed(format!(
            "{said}: from {} on response times are in good part the instrument's own; use an idle machine, more \
             load.threads or pacing = \"exact\"",
            percentile_name(first.q)
        ))
        .voiding(AUDIT.voids.iter().map(|it| if first.q > 0.5 { it.from(first.q) } else { *it })),
        None if worst.share > SHARE_WARN => warn(format!("{said}: the machine was not idle")),
        None => ok(said),
    }
}

/// The instrument's share of a quantile.
struct ShareAt {
    q: f64,
    response: i64,
    without: i64,
    share: f64,
}

/// The median first, then each printed quantile above it that has [`BEYOND_MIN`] samples beyond it.
#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
fn shares(evidence: &Evidence<'_>) -> Vec<ShareAt> {
    let Some(response) = evidence.response.map(stats::TimedHistogram::all) else {
        return Vec::new();
    };
    if response.count() < 2 * BEYOND_MIN {
        return Vec::new();
    }
    let latency = evidence.result.latency.get(evidence.facts.declared.final_stage);
    let printed = latency.map_or(&[][..], |latency| &latency.response.quantiles);
    let above = printed.iter().filter(|it| it.q > 0.5 && it.beyond >= BEYOND_MIN).map(|it| it.q);
    let without_lag = evidence.without_lag.of(response);
    let at = |q: f64| {
        let (of, without) = (response.quantile(q)?, without_lag.quantile(q)?);
        let share = if of > 0 { (of - without).max(0) as f64 / of as f64 } else { 0.0 };
        Some(ShareAt { q, response: of, without, share })
    };
    [0.5].into_iter().chain(above).filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use model::plan::{Level, ThresholdPlan};
    use model::result::{Answer, AuditOutcome, Family, Verdict, Voided};

    use crate::testing::{Trial, audit};

    fn late(lag_ns: i64, of_which_waiting_for_a_connection: bool, slow_tail: bool) -> Trial {
        let mut trial = Trial::clean();
        for (n, row) in trial.rows.iter_mut().enumerate() {
            if n % 40 == 0 {
                row.sent = row.due + lag_ns;
                if of_which_waiting_for_a_connection {
                    row.ready = row.sent;
                }
                let end = if slow_tail { row.due + 50_000_000 } else { row.sent + 2_000_000 };
                row.marks[0] = end;
                row.end = end;
            }
        }
        trial
    }

    fn with(lag_ns: i64, of_which_waiting_for_a_connection: bool, slow_tail: bool) -> AuditOutcome {
        let trial = late(lag_ns, of_which_waiting_for_a_connection, slow_tail);
        audit(&trial.result(), "send_lag").outcome
    }

    /// Claim: a lag that makes up the tail fails, one that is small beside the tail warns, and time spent
    /// waiting for a connection is not the instrument's.
    #[test]
    fn whose_time_is_it() {
        assert_eq!(with(20_000, false, false), AuditOutcome::Ok);
        assert_eq!(with(8_000_000, false, false), AuditOutcome::Failed);
        assert_eq!(with(8_000_000, false, true), AuditOutcome::Warn);
        assert_eq!(with(8_000_000, true, false), AuditOutcome::Ok);
    }

    /// Claim: lag that makes up p99.9 alone voids that quantile and those above it, and nothing that is read first.
    #[test]
    fn from_which_quantile_on() {
        let mut trial = Trial::clean();
        trial.percentiles = vec![0.5, 0.99, 0.999];
        for row in trial.rows.iter_mut().step_by(500) {
            row.sent = row.due + 8_000_000;
            row.marks[0] = row.sent + 2_000_000;
            row.end = row.marks[0];
        }
        let result = trial.result();
        let found = audit(&result, "send_lag");
        assert_eq!(found.voids, [Voided::too_high(Family::Response).from(0.999)]);
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.reason);
    }

    /// Claim: a promise that holds with the instrument's own lag in its number holds a fortiori, and says so; one that
    /// is broken by a number which the lag may have made is void.
    #[test]
    fn lag_only_adds() {
        let with = |expr: &str| {
            let mut trial = late(8_000_000, false, false);
            trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
            let result = trial.result();
            (result.verdict, result.thresholds[0].answer, result.thresholds[0].voided_by.clone())
        };
        let by = vec!["send_lag".to_owned()];
        assert_eq!(with("p99 < 50ms"), (Verdict::Pass, Answer::Holds, by.clone()));
        assert_eq!(with("p99 < 5ms"), (Verdict::Invalid, Answer::Void, by));
        assert_eq!(with("success == 100%"), (Verdict::Pass, Answer::Holds, Vec::new()));
        assert_eq!(late(8_000_000, false, false).result().verdict, Verdict::Invalid);
    }
}
