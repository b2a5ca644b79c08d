//! How late was the instrument itself in sending? Its own lag (`sent − ready`) is inside every response time, as an error
//! that only it has made. (`ready − due` is time spent waiting for a connection: that is the system's.)
//!
//! The rule is that of [`super::own_time`]: every response time is also counted without its own lag.

use model::plan::Pacing;
use model::result::{Family, Voided};
use stats::TimedHistogram;

use super::own_time::{FIGURES, OwnTime, QUANTUM_NS, shares};
use super::{Audit, Evidence, Finding};

pub(super) const AUDIT: Audit = Audit {
    name: "send_lag",
    question: "How late did the instrument itself send? Its own lag is part of every response time",
    voids: &[Voided::too_high(Family::Response)],
    figures: FIGURES,
};

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let is_coalesced = evidence.setting.load.pacing == Pacing::Coalesced;
    let response = evidence.response.map(TimedHistogram::all);
    let own_time = OwnTime {
        name: "own lag",
        lag: &evidence.own_lag,
        shares: response.map_or_else(Vec::new, |response| {
            shares(evidence, response, &evidence.without_lag.of(response))
        }),
        remark: match is_coalesced {
            true => "; pacing is coalesced: arrivals are sent in quanta of 1 ms, and answers read in them: marks are late by up to 1 ms, too".to_owned(),
            false => String::new(),
        },
        on_purpose_ns: if is_coalesced { QUANTUM_NS } else { 0 },
        excused_ns: 0,
        told: "the machine was not idle",
        remedy: "use an idle machine, more load.threads or pacing = \"exact\"",
        voids: AUDIT.voids,
    };
    own_time.finding(|| format!("{} were sent: too few to judge", evidence.own_lag.count()))
}

#[cfg(test)]
mod tests {
    use model::plan::{Level, Pacing, ThresholdPlan};
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

    /// Claim: in coalesced pacing lag up to a quantum and the wake-up at its end is said and voids nothing; what is far above
    /// the quantum is the instrument's fault as ever.
    #[test]
    fn quanta_are_on_purpose() {
        for (lag_ns, coalesced) in [
            (1_060_000, AuditOutcome::Warn),
            (1_500_000, AuditOutcome::Warn),
            (8_000_000, AuditOutcome::Failed),
        ] {
            let mut trial = late(lag_ns, false, false);
            for row in &mut trial.rows {
                (row.sent, row.marks[0]) = (row.due + lag_ns, row.due + lag_ns + 1_000_000);
                row.end = row.marks[0];
            }
            let outcome = |trial: &Trial| audit(&trial.clone().result(), "send_lag").outcome;
            assert_eq!(outcome(&trial), AuditOutcome::Failed, "{lag_ns} ns");
            trial.setting.load.pacing = Pacing::Coalesced;
            assert_eq!(outcome(&trial), coalesced, "{lag_ns} ns");
        }
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

    /// Claim: a threshold that holds with the instrument's own lag in its number holds a fortiori, and says so; one that
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
        assert_eq!(with("p99 < 50ms"), (Verdict::Pass, Answer::Met, by.clone()));
        assert_eq!(with("p99 < 5ms"), (Verdict::Invalid, Answer::Invalid, by));
        assert_eq!(with("success == 100%"), (Verdict::Pass, Answer::Met, Vec::new()));
        assert_eq!(late(8_000_000, false, false).result().verdict, Verdict::Invalid);
    }
}
