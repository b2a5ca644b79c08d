//! How late was the instrument itself? Its own lag (`sent − ready`) is inside every response time, as an error
//! that only it has made. (`ready − due` is time spent waiting for a connection: that is the system's.)
//!
//! The rule. Own lag at p99 up to the larger of 1 ms and 10 % of the median response is small beside what is
//! measured. Above it, a reader is told. The trial is invalid when the lag is also more than a quarter of the
//! response time *at p99*: then the printed tail is in good part the instrument's, not the system's.
//!
//! Where there are too few samples for a p99 with [`BEYOND_MIN`] of them beyond it, the highest percentile that has
//! as many is judged instead: one late send of 150 says nothing about the other 149.

use model::plan::Pacing;
use model::quantity::show_ns;

use super::{Evidence, Finding, failed, ok, skipped, warn};

/// Smaller lags matter to nobody.
const FLOOR_NS: i64 = 1_000_000;
/// The lag's share of the median response below which it is small.
const OF_MEDIAN: i64 = 10;
/// The judged percentile has at least this many samples beyond it.
const BEYOND_MIN: u64 = 10;
/// The tail belongs to the system while the lag is less than one part in this many of it.
const OF_TAIL: i64 = 4;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let count = evidence.own_lag.count();
    if count < 2 * BEYOND_MIN {
        return skipped(format!("{count} were sent: too few to judge"));
    }
    let q = judged(count);
    let (Some(p50), Some(high)) = (evidence.own_lag.quantile(0.5), evidence.own_lag.quantile(q))
    else {
        return skipped("nothing was sent in the measured window");
    };
    let name = format!("p{:.3}", q * 100.0);
    let name = name.trim_end_matches('0').trim_end_matches('.');
    let response = evidence.response.map(stats::TimedHistogram::all);
    let median = response.and_then(|times| times.quantile(0.5)).unwrap_or(0);
    let tail = response.and_then(|times| times.quantile(q)).unwrap_or(0);
    let limit = FLOOR_NS.max(median / OF_MEDIAN);
    let mut said = format!(
        "own lag p50 {}, {name} {} (limit {})",
        show_ns(p50),
        show_ns(high),
        show_ns(limit)
    );
    if evidence.setting.load.pacing == Pacing::Coalesced {
        said += "; pacing is coalesced: arrivals are sent in quanta of 1 ms, and answers read in them: marks are late by up to 1 ms, too";
    }
    if high <= limit {
        return ok(said);
    }
    if high > tail / OF_TAIL {
        return failed(format!(
            "{said}: response {name} {} is in good part the instrument's own; use an idle machine, more load.threads or pacing = \"exact\"",
            show_ns(tail)
        ));
    }
    warn(format!(
        "{said}: the machine was not idle; response {name} {} holds within that",
        show_ns(tail)
    ))
}

/// p99, or the highest percentile with [`BEYOND_MIN`] samples beyond it.
#[expect(clippy::cast_precision_loss, reason = "counts of rows, far below 2^53")]
fn judged(count: u64) -> f64 {
    (1.0 - BEYOND_MIN as f64 / count as f64).min(0.99)
}

#[cfg(test)]
mod tests {
    use model::result::AuditOutcome;

    use crate::testing::{Trial, audit};

    fn with(lag_ns: i64, of_which_waiting_for_a_connection: bool, slow_tail: bool) -> AuditOutcome {
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
    /// Claim: p99 is judged where a thousand samples carry it, a lower percentile below that.
    #[test]
    fn what_is_judged() {
        assert_eq!(super::judged(1_000), 0.99);
        assert_eq!(super::judged(1_000_000), 0.99);
        assert_eq!(super::judged(100), 0.9);
        assert_eq!(super::judged(20), 0.5);
    }
}
