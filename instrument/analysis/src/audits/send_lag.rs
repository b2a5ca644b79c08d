//! How late was the instrument itself in sending? Its own lag (`sent − ready`) is inside every response time, as an error
//! that only it has made. (`ready − due` is time spent waiting for a connection: that is the system's.)
//!
//! The rule is that of [`super::own_time`]: every response time is also counted without its own lag. Of hosts that are merged
//! each is judged by itself: an agent whose times are mostly its own lateness measured nothing, and the others hide it.

use model::plan::Pacing;
use model::quantity::{show_count, show_ns};
use model::result::{AuditOutcome, Family, Voided};
use stats::TimedHistogram;

use super::evidence::Evidence;
use super::finding::{Audit, Finding};
use super::own_time::{FIGURES, OwnTime, shares};
use crate::figures::agents::AgentShare;
use crate::figures::latency::{BEYOND_MIN, percentile_name};

/// An agent's own lag as a share of its response time, from which on its times are more its own than the system's.
const AGENT_SHARE_MAX: f64 = 0.5;
/// A lag below this is a scheduler's: the range that is shown of each response time tells it.
const AGENT_LAG_MIN_NS: i64 = 1_000_000;
/// Agents whose lag is shown; those that are the latest.
const AGENTS_SHOWN: usize = 4;

pub(super) const AUDIT: Audit = Audit {
    name: "send_lag",
    question: "How late did the instrument itself send? Its own lag is part of every response time",
    // Of an agent that was late; the lag of one host voids nothing.
    voids: &[
        Voided::too_high(Family::Response),
        Voided::too_high(Family::Service),
        Voided::too_high(Family::Outstanding),
        Voided::too_high(Family::Timeouts),
        Voided::too_low(Family::Committed),
        Voided::too_low(Family::Sent),
    ],
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
    let finding =
        own_time.finding(|| format!("{} were sent: too few to judge", evidence.own_lag.count()));
    by_agent(&evidence.figures.agents.all, finding)
}

/// An agent's own lag at a quantile that its transactions suffice for.
struct Lag<'a> {
    of: &'a AgentShare,
    q: f64,
    ns: i64,
    response_ns: i64,
}

impl Lag<'_> {
    #[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
    fn is_late(&self) -> bool {
        self.ns > AGENT_LAG_MIN_NS && self.ns as f64 > self.response_ns as f64 * AGENT_SHARE_MAX
    }
}

/// The finding with each agent's lag by its name; it fails where one was late.
fn by_agent(all: &[AgentShare], mut finding: Finding) -> Finding {
    let lag = |of: &'_ AgentShare| {
        let q = [0.99, 0.9, 0.5].into_iter().find(|q| of.response.beyond(*q) >= BEYOND_MIN)?;
        Some((q, of.own_lag.quantile(q)?, of.response.quantile(q)?))
    };
    let lags = all.iter().filter_map(|of| {
        let (q, ns, response_ns) = lag(of)?;
        Some(Lag { of, q, ns, response_ns })
    });
    let mut lags: Vec<Lag<'_>> = lags.collect();
    lags.sort_by_key(|it| std::cmp::Reverse((it.is_late(), it.ns)));
    if lags.is_empty() {
        return finding;
    }
    let shown =
        |it: &Lag<'_>| format!("{} {} {}", it.of.name, percentile_name(it.q), show_ns(it.ns));
    let some: Vec<_> = lags.iter().take(AGENTS_SHOWN).map(shown).collect();
    let more = match lags.len() - some.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    finding.detail = format!("{}; own lag by agent: {}{more}", finding.detail, some.join(", "));
    let late: Vec<_> = lags.iter().filter(|it| it.is_late()).collect();
    if let [first, rest @ ..] = late.as_slice() {
        let more = match rest.len() {
            0 => String::new(),
            more => format!(", and {more} more agents were late"),
        };
        finding.outcome = AuditOutcome::Failed;
        finding.detail = format!(
            "agent {} was late: its own lag {} is {} of a response time of {}, so that its share of {} transactions does \
             not hold{more}; {}",
            first.of.name,
            percentile_name(first.q),
            show_ns(first.ns),
            show_ns(first.response_ns),
            show_count(first.of.own_lag.count()),
            finding.detail
        );
    }
    finding
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

    /// Claim: each agent's lag is shown by its name; one that was late fails and is named though most of all transactions
    /// are not late, and voids times and counts; agents in time void nothing.
    #[test]
    fn a_late_agent_is_named() {
        let with = |late_from: usize| {
            let mut trial = Trial::clean();
            let agent = |name: &str, first_worker| model::facts::AgentFacts {
                name: name.to_owned(),
                first_worker,
                workers: 2,
                not_offered: Some(0),
                ..Default::default()
            };
            trial.facts.load.agents = vec![agent("a-1", 0), agent("b-7", 2), agent("c-3", 4)];
            for (n, row) in trial.rows.iter_mut().enumerate() {
                row.worker = u8::try_from(n % 6).unwrap();
                if row.worker == 3 && n >= late_from {
                    row.sent = row.due + 900_000_000;
                    row.end = row.sent + 2_000_000;
                    row.marks[0] = row.end;
                }
            }
            trial.result()
        };
        let fine = with(usize::MAX);
        let found = audit(&fine, "send_lag");
        assert_ne!(found.outcome, AuditOutcome::Failed, "{}", found.detail);
        for name in ["a-1", "b-7", "c-3"] {
            assert!(found.detail.contains(&format!("{name} p99 ")), "{}", found.detail);
        }
        let late = with(9_000);
        let found = audit(&late, "send_lag");
        assert_eq!(found.outcome, AuditOutcome::Failed, "{}", found.detail);
        assert!(
            found.detail.starts_with("agent b-7 was late: its own lag p99 is 90"),
            "{}",
            found.detail
        );
        assert!(!found.voids.is_empty() && late.verdict == Verdict::Invalid, "{}", late.reason);
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
