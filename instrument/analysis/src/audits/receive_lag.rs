//! How late did the instrument read what had arrived? A mark is of when the kernel stamped its answer, so that this is in no
//! response time; but where no stamp was had, it is.
//!
//! Where all transactions have a stamp, it is told. Where some have none, those that have one say what it makes of the
//! others, by the rule of [`super::own_time`]. Whoever waits for an answer wakes up when it comes, and that takes time, too:
//! so much is told. It voids nothing: thresholds count with and without it.

use model::facts::ReceiveFacts;
use model::plan::Pacing;
use model::quantity::{show_count, show_ns};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, ok, skipped, warn};
use super::own_time::{FIGURES, OwnTime, shares};
use crate::figures::latency::BEYOND_MIN;

pub(super) const AUDIT: Audit = Audit {
    name: "receive_lag",
    question: "How late did the instrument read what had arrived? Where the kernel stamped nothing, that is part of the response time",
    voids: &[],
    figures: FIGURES,
};

/// Two clocks that are related no better than this, as a share of the median response time, are worth a word.
const CLOCK_SHARE_MAX: i64 = 10;

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let (received, stamps) = (&evidence.figures.received, Stamps::of(evidence));
    if let Some(why) = stamps.why_not(received.lag.count()) {
        return skipped(format!("cannot tell: {why}"));
    }
    if received.unstamped == 0 {
        return all_stamped(evidence, &stamps);
    }
    let is_coalesced = evidence.trial.setting.load.pacing == Pacing::Coalesced;
    let own_time = OwnTime {
        name: "receive lag",
        lag: &received.lag,
        shares: shares(evidence, &received.as_read, &received.response),
        remark: format!(
            "; {} of {} transactions have stamps and stand for the others{}{}",
            show_count(received.lag.count()),
            show_count(received.lag.count() + received.unstamped),
            stamps.remark(),
            if is_coalesced {
                "; pacing is coalesced: answers are read in quanta of 1 ms"
            } else {
                ""
            }
        ),
        told: "a thread that waits for answers takes so long to wake up, or the machine was not idle",
    };
    own_time.finding(|| "cannot tell: too few were stamped".to_owned())
}

/// The lag is in no response time.
#[expect(clippy::cast_precision_loss, reason = "times below 2^53 ns")]
fn all_stamped(evidence: &Evidence<'_>, stamps: &Stamps) -> Finding {
    let received = &evidence.figures.received;
    let at = |q: f64| received.lag.quantile(q).unwrap_or_default();
    let said = format!(
        "receive lag p50 {}, p99 {} in {} transactions, no part of their response times{}",
        show_ns(at(0.5)),
        show_ns(at(0.99)),
        show_count(received.lag.count()),
        stamps.remark()
    );
    let median = received.response.quantile(0.5).unwrap_or(i64::MAX);
    let finding = match stamps.clock_error_ns > median / CLOCK_SHARE_MAX {
        true => warn(format!("{said}: a good part of the median, {}", show_ns(median))),
        false => ok(said),
    };
    let finding = finding.with("p50", at(0.5) as f64).with("p99", at(0.99) as f64);
    finding.with("share_p50", 0.0).with("share_max", 0.0)
}

/// The quality of the stamps of all workers.
#[derive(Default)]
struct Stamps {
    receipts: u64,
    stamped: u64,
    impossible: u64,
    early: u64,
    clock_error_ns: i64,
    clock_moved_ns: i64,
}

impl Stamps {
    fn of(evidence: &Evidence<'_>) -> Self {
        let mut sum = Self::default();
        for ReceiveFacts { receipts, stamped, impossible, early, clock_error_ns, clock_moved_ns } in
            evidence.trial.facts.load.workers.iter().map(|worker| &worker.receive)
        {
            sum.receipts = sum.receipts.saturating_add(*receipts);
            sum.stamped = sum.stamped.saturating_add(*stamped);
            sum.impossible = sum.impossible.saturating_add(*impossible);
            sum.early = sum.early.saturating_add(*early);
            sum.clock_error_ns = sum.clock_error_ns.max(*clock_error_ns);
            sum.clock_moved_ns = sum.clock_moved_ns.max(*clock_moved_ns);
        }
        sum
    }

    /// Why nothing can be said, if that is so, of so many transactions that have a stamp.
    fn why_not(&self, samples: u64) -> Option<String> {
        if samples >= 2 * BEYOND_MIN {
            return None;
        }
        Some(match (self.receipts, self.stamped) {
            (0, _) if samples == 0 => "nothing was received on a socket of the instrument's own, or the record does not say".to_owned(),
            (_, 0) if samples == 0 => "the kernel stamped nothing that was received".to_owned(),
            _ => format!("{} were stamped and measured: too few", show_count(samples)),
        })
    }

    fn remark(&self) -> String {
        let mut said = match self.clock_error_ns {
            0 => String::new(),
            error_ns => format!(", known to {}", show_ns(error_ns)),
        };
        if self.clock_moved_ns > 0 || self.impossible > 0 {
            said += &format!(
                "; the wall clock, by which the kernel stamps, was moved by {}, and {} stamps were not used",
                show_ns(self.clock_moved_ns),
                show_count(self.impossible)
            );
        }
        if self.early > 0 {
            let early = show_count(self.early);
            said += &format!(
                "; {early} answers arrived before what they answer was sent, and count from when they were read"
            );
        }
        said
    }
}

#[cfg(test)]
pub(super) mod tests {
    use model::Outcome;
    use model::facts::{ReceiveFacts, WorkerFacts};
    use model::plan::{Level, Pacing, ThresholdPlan};
    use model::result::{Answer, AuditOutcome, AuditResult, Verdict};

    use crate::audits::guilty::{Guilt, MS};
    use crate::testing::{Trial, audit, row};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[("a tenth is read 20 ms late", |trial| {
        // Of the others it is unknown, and contained in their marks.
        for (n, old) in trial.rows.iter_mut().enumerate().step_by(10) {
            match n % 13 {
                0 => old.receive_lag = 20 * MS,
                _ => *old = row(old.tx, old.due, old.end - old.due + 20 * MS, Outcome::Committed),
            }
        }
    })];

    /// Of each thousand transactions so many were read late by so much; each seventh has a stamp, of the others it is in
    /// the response time.
    fn read_late(count: u64, lag_ns: i64) -> Trial {
        let mut trial = Trial::clean();
        for row in &mut trial.rows {
            let lag_ns = if row.tx / 7 % 1_000 < count { lag_ns } else { 20_000 };
            if row.tx % 7 == 0 {
                row.receive_lag = lag_ns;
            } else {
                row.marks[0] += lag_ns;
                row.end = row.marks[0];
            }
        }
        trial
    }

    fn found(trial: &Trial) -> AuditResult {
        audit(&trial.clone().result(), "receive_lag").clone()
    }

    /// Claim: what was read late is no part of a response time that has a stamp, however late it was, and is told.
    #[test]
    fn beside_the_rows() {
        let mut trial = Trial::clean();
        trial.rows.iter_mut().for_each(|row| row.receive_lag = 8_000_000);
        let found = found(&trial);
        assert_eq!(found.outcome, AuditOutcome::Ok, "{}", found.detail);
        assert!(
            found.detail.starts_with("receive lag p50 8.00 ms, p99 8.00 ms"),
            "{}",
            found.detail
        );
        assert!(found.detail.contains("no part of their response times"), "{}", found.detail);
    }

    /// Claim: where most have no stamp, what was read late is told where it makes up a tenth of a quantile, with its share,
    /// and voids nothing.
    #[test]
    fn of_which_quantile() {
        assert_eq!(found(&read_late(0, 0)).outcome, AuditOutcome::Ok);
        let late = found(&read_late(20, 8_000_000));
        assert_eq!((late.outcome, late.voids.len()), (AuditOutcome::Warn, 0), "{}", late.detail);
        assert!(late.detail.contains("% of response p99"), "{}", late.detail);
        let mut fast = read_late(0, 0);
        for row in &mut fast.rows {
            (row.end, row.marks[0]) = (row.due + 60_000, row.due + 60_000);
        }
        let fast = found(&fast);
        assert_eq!(fast.outcome, AuditOutcome::Warn, "{}", fast.detail);
        assert!(fast.detail.contains("takes so long to wake up"), "{}", fast.detail);
    }

    /// Claim: in coalesced pacing it is said that answers are read late on purpose.
    #[test]
    fn quanta_are_on_purpose() {
        let mut trial = read_late(600, 1_000_000);
        trial.setting.load.pacing = Pacing::Coalesced;
        let found = found(&trial);
        assert!(found.detail.contains("read in quanta of 1 ms"), "{}", found.detail);
    }

    /// Claim: a threshold that only the receive lag breaks, of transactions without stamps, is invalid; one that is met with
    /// it is met, and so is one on another number.
    #[test]
    fn counted_twice() {
        let with = |expr: &str| {
            let mut trial = read_late(20, 8_000_000);
            trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
            let result = trial.result();
            (result.verdict, result.thresholds[0].answer)
        };
        assert_eq!(with("p99 < 50ms"), (Verdict::Pass, Answer::Met));
        assert_eq!(with("p99 < 5ms"), (Verdict::Invalid, Answer::Invalid));
        assert_eq!(with("p50 < 5ms"), (Verdict::Pass, Answer::Met));
        assert_eq!(with("success == 100%"), (Verdict::Pass, Answer::Met));
    }

    /// Claim: what is slow by the kernel's own stamps is slow, however late it was read beside that.
    #[test]
    fn stamped_rows_stay() {
        let mut trial = Trial::clean();
        for row in &mut trial.rows {
            row.receive_lag = 8_000_000;
            if row.tx % 20 == 0 {
                (row.end, row.marks[0]) = (row.due + 9_000_000, row.due + 9_000_000);
            }
        }
        trial.thresholds = vec![ThresholdPlan::new("p99 < 5ms", Level::Fail)];
        let result = trial.result();
        assert_eq!((result.verdict, result.thresholds[0].answer), (Verdict::Fail, Answer::Failed));
    }

    /// Claim: where nothing was asked, nothing was stamped, or there is too little, it says so and that it cannot tell; a
    /// wall clock that was set costs the stamps of that moment, and clocks that are hardly known are worth a word.
    #[test]
    fn what_the_stamps_are_worth() {
        let with = |stamped: usize, receive: ReceiveFacts| {
            let mut trial = Trial::clean();
            trial.facts.load.workers.push(WorkerFacts { receive, ..WorkerFacts::default() });
            trial.rows.iter_mut().take(stamped).for_each(|row| row.receive_lag = 20_000);
            found(&trial)
        };
        let all = usize::MAX;
        let good = || ReceiveFacts { receipts: 900, stamped: 900, ..ReceiveFacts::default() };
        for (stamped, receive, outcome, why) in [
            (0, ReceiveFacts::default(), AuditOutcome::Skipped, "nothing was received on a socket"),
            (
                0,
                ReceiveFacts { receipts: 50, ..Default::default() },
                AuditOutcome::Skipped,
                "the kernel stamped nothing",
            ),
            (18, good(), AuditOutcome::Skipped, "18 were stamped and measured: too few"),
            (
                all,
                ReceiveFacts { clock_moved_ns: 5_000_000, impossible: 3, ..good() },
                AuditOutcome::Ok,
                "was moved by 5.00 ms, and 3 stamps were not used",
            ),
            (
                all,
                ReceiveFacts { early: 2, ..good() },
                AuditOutcome::Ok,
                "2 answers arrived before",
            ),
            (
                all,
                ReceiveFacts { clock_error_ns: 900_000, ..good() },
                AuditOutcome::Warn,
                "known to 900 µs",
            ),
        ] {
            let found = with(stamped, receive);
            assert_eq!(found.outcome, outcome, "{}", found.detail);
            assert!(found.detail.contains(why), "{}", found.detail);
        }
    }

    /// Claim: a record that was tampered with ends nothing.
    #[test]
    fn strange_rows() {
        let mut trial = read_late(20, 8_000_000);
        for (row, lag) in trial.rows.iter_mut().zip([i64::MAX, i64::MIN + 1, -5, 1 << 60, 0]) {
            row.receive_lag = lag;
        }
        let _ = found(&trial);
    }
}
