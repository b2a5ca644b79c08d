//! How late was the instrument itself? Its own lag (`sent − ready`) is inside every response time, as an error
//! that only it has made. (`ready − due` is time spent waiting for a connection: that is the system's.)
//!
//! The rule. Own lag at p99 up to the larger of 1 ms and 10 % of the median response is small beside what is
//! measured. Above it, a reader is told. The trial is invalid when the lag is also more than a quarter of the
//! response time *at p99*: then the printed tail is in good part the instrument's, not the system's.

use model::plan::Pacing;
use model::quantity::show_ns;

use super::{Evidence, Finding, failed, ok, skipped, warn};

/// Smaller lags matter to nobody.
const FLOOR_NS: i64 = 1_000_000;
/// The lag's share of the median response below which it is small.
const OF_MEDIAN: i64 = 10;
/// The tail belongs to the system while the lag is less than one part in this many of it.
const OF_TAIL: i64 = 4;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let (Some(p50), Some(p99)) = (evidence.own_lag.quantile(0.5), evidence.own_lag.quantile(0.99))
    else {
        return skipped("nothing was sent in the measured window");
    };
    let response = evidence.response.map(stats::TimedHistogram::all);
    let median = response.and_then(|times| times.quantile(0.5)).unwrap_or(0);
    let tail = response.and_then(|times| times.quantile(0.99)).unwrap_or(0);
    let limit = FLOOR_NS.max(median / OF_MEDIAN);
    let mut said =
        format!("own lag p50 {}, p99 {} (limit {})", show_ns(p50), show_ns(p99), show_ns(limit));
    if evidence.setting.load.pacing == Pacing::Coalesced {
        said += "; pacing is coalesced: arrivals are sent in quanta of 1 ms";
    }
    if p99 <= limit {
        return ok(said);
    }
    if p99 > tail / OF_TAIL {
        return failed(format!(
            "{said}: response p99 {} is in good part the instrument's own; use an idle machine, more load.threads or pacing = \"exact\"",
            show_ns(tail)
        ));
    }
    warn(format!(
        "{said}: the machine was not idle; response p99 {} holds within that",
        show_ns(tail)
    ))
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
}
