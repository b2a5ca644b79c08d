//! How late was the instrument itself in sending? Its own lag (`sent − ready`) is inside every response time, as an error
//! that only it has made. (`ready − due` is time spent waiting for a connection: that is the system's.)
//!
//! The rule is that of [`super::own_time`]: every response time is also counted without its own lag.

use model::plan::Pacing;
use stats::TimedHistogram;

use super::evidence::Evidence;
use super::finding::{Audit, Finding};
use super::own_time::{FIGURES, OwnTime, shares};

pub(super) const AUDIT: Audit = Audit {
    name: "send_lag",
    question: "How late did the instrument itself send? Its own lag is part of every response time",
    voids: &[],
    figures: FIGURES,
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let is_coalesced = evidence.trial.setting.load.pacing == Pacing::Coalesced;
    let response = evidence.response.map(TimedHistogram::all);
    let own_time = OwnTime {
        name: "own lag",
        lag: &evidence.own_lag,
        shares: response.map_or_else(Vec::new, |response| {
            shares(evidence, response, &evidence.figures.without_lag.of(response))
        }),
        remark: match is_coalesced {
            true => "; pacing is coalesced: arrivals are sent in quanta of 1 ms, and answers read in them: marks are late by up to 1 ms, too".to_owned(),
            false => String::new(),
        },
        told: "the machine was not idle; use an idle one, more load.threads or pacing = \"exact\"",
    };
    own_time.finding(|| format!("{} were sent: too few to judge", evidence.own_lag.count()))
}

#[cfg(test)]
pub(super) mod tests {
    use model::plan::{Level, ThresholdPlan};
    use model::result::{Answer, AuditOutcome, Verdict};

    use crate::audits::guilty::{Guilt, MS};
    use crate::testing::{Trial, audit};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("a tenth is sent 20 ms late", |trial| {
        for old in trial.rows.iter_mut().step_by(10) {
            old.sent = old.ready + 20 * MS;
            old.end = old.end.max(old.sent + MS);
            old.marks[0] = old.end;
        }
    })];

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

    /// Claim: a lag that makes up a tenth of the tail is told, one that is small beside it is not, time spent waiting for a
    /// connection is not the instrument's, and none of it voids a number.
    #[test]
    fn whose_time_is_it() {
        assert_eq!(with(20_000, false, false), AuditOutcome::Ok);
        assert_eq!(with(8_000_000, false, false), AuditOutcome::Warn);
        assert_eq!(with(8_000_000, false, true), AuditOutcome::Warn);
        assert_eq!(with(8_000_000, true, false), AuditOutcome::Ok);
    }

    /// Claim: without thresholds nothing is void; a number that the lag moves is a range, from what it would be without it,
    /// and one that it does not move has none.
    #[test]
    fn ranges() {
        let mut trial = Trial::clean();
        trial.percentiles = vec![0.5, 0.99, 0.999];
        for row in trial.rows.iter_mut().step_by(500) {
            row.sent = row.due + 8_000_000;
            row.marks[0] = row.sent + 2_000_000;
            row.end = row.marks[0];
        }
        let result = trial.result();
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.reason);
        let quantiles = &result.latency[0].response.quantiles;
        assert_eq!((quantiles[0].less_own_ns, quantiles[1].less_own_ns), (None, None));
        let (value, less) = (quantiles[2].value_ns.unwrap(), quantiles[2].less_own_ns.unwrap());
        assert!(value > 9_900_000 && less < 3_100_000, "{value} {less}");
    }

    /// Claim: a threshold is decided by the rows with the lag and without it: where both keep it, it is met, where they
    /// differ it is invalid, with both counts, and what the lag is not in decides.
    #[test]
    fn counted_twice() {
        let with = |expr: &str| {
            let mut trial = late(8_000_000, false, false);
            trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
            let result = trial.result();
            (result.verdict, result.thresholds[0].answer, result.thresholds[0].detail.clone())
        };
        assert_eq!(with("p99 < 50ms").1, Answer::Met);
        let (verdict, answer, said) = with("p99 < 5ms");
        assert_eq!((verdict, answer), (Verdict::Invalid, Answer::Invalid));
        assert!(said.starts_with("250 of 10,000 beyond 5.00 ms, 100 allowed, 0 without"), "{said}");
        assert_eq!(with("success == 100%"), (Verdict::Pass, Answer::Met, String::new()));
        assert_eq!(late(8_000_000, false, false).result().verdict, Verdict::Pass);
    }
}
