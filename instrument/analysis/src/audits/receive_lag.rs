//! How late did the instrument read what had arrived? A mark is stamped when its bytes come out of the kernel; if the
//! engine came late to them, the time that they lay there is inside the response time.
//!
//! A share of the connections is stamped by the kernel, so that both times are known of a share of the transactions. The
//! rule is that of [`super::own_time`], on these: response times as they are, and without the receive lag. Whoever waits
//! for an answer wakes up when it comes, and that takes time, too: so much is told and voids nothing.

use std::borrow::Cow;

use model::facts::ReceiveFacts;
use model::plan::Pacing;
use model::quantity::{show_count, show_ns};
use stats::Histogram;

use super::own_time::{FIGURES, OwnTime, shares};
use super::{Audit, Evidence, Finding, skipped};

pub(super) const AUDIT: Audit = Audit {
    name: "receive_lag",
    question: "How late did the instrument read what had arrived? That is part of every response time, too",
    voids: &[],
    figures: FIGURES,
};

/// Two clocks that are related no better than this, as a share of the median response time, tell nothing of it.
const CLOCK_SHARE_MAX: i64 = 10;
/// Counts and times (thirty-six years) of a damaged record stop here.
const COUNT_MAX: u64 = 1 << 40;
const NS_MAX: i64 = 1 << 60;

/// The receipts of all workers together.
#[derive(Default)]
struct Received {
    receipts: u64,
    stamped: u64,
    impossible: u64,
    clock_error_ns: i64,
    clock_moved_ns: i64,
    lag: Histogram,
    response: Histogram,
    without: Histogram,
}

pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    let received = Received::of(evidence.facts.load.workers.iter().map(|worker| &worker.receive));
    if let Some(why) = received.why_not() {
        return skipped(format!("cannot tell: {why}"));
    }
    let is_coalesced = evidence.setting.load.pacing == Pacing::Coalesced;
    let own_time = OwnTime {
        name: "receive lag",
        lag: &received.lag,
        shares: shares(evidence, &received.response, &received.without),
        remark: received.remark(is_coalesced),
        told: "a thread that waits for answers takes so long to wake up, or the machine was not idle",
    };
    let samples = received.lag.count();
    own_time.finding(|| {
        format!("cannot tell: {} were stamped and measured: too few", show_count(samples))
    })
}

impl Received {
    fn of<'a>(all: impl Iterator<Item = &'a ReceiveFacts>) -> Self {
        let mut sum = Self::default();
        let add = |to: &mut Histogram, list: &[(i64, u64)]| {
            for (ns, count) in list {
                to.record_n((*ns).clamp(0, NS_MAX), (*count).min(COUNT_MAX));
            }
        };
        for facts in all {
            sum.receipts = sum.receipts.saturating_add(facts.receipts);
            sum.stamped = sum.stamped.saturating_add(facts.stamped);
            sum.impossible = sum.impossible.saturating_add(facts.impossible);
            sum.clock_error_ns = sum.clock_error_ns.max(facts.clock_error_ns);
            sum.clock_moved_ns = sum.clock_moved_ns.max(facts.clock_moved_ns);
            add(&mut sum.lag, &facts.lag);
            add(&mut sum.response, &facts.response);
            add(&mut sum.without, &facts.without);
        }
        sum
    }

    /// Why nothing can be said, if that is so.
    fn why_not(&self) -> Option<Cow<'static, str>> {
        let median = self.response.quantile(0.5).unwrap_or(i64::MAX);
        if self.receipts == 0 {
            return Some("nothing was received on a socket of the instrument's own, or the record does not say".into());
        }
        if self.stamped == 0 {
            return Some("the kernel stamped nothing that was received".into());
        }
        if self.clock_moved_ns > 0 || self.impossible > 0 {
            let by = show_ns(self.clock_moved_ns);
            let count = show_count(self.impossible);
            return Some(format!("the wall clock, by which the kernel stamps, was moved by {by} during the trial; {count} receipts were stamped after they were read").into());
        }
        if self.clock_error_ns > median / CLOCK_SHARE_MAX {
            let by = show_ns(self.clock_error_ns);
            return Some(format!("the kernel's clock is known to {by} only").into());
        }
        None
    }

    fn remark(&self, is_coalesced: bool) -> String {
        let of = match self.stamped == self.receipts {
            true => String::new(),
            false => {
                format!(", {} of {} receipts", show_count(self.stamped), show_count(self.receipts))
            }
        };
        let quanta = match is_coalesced {
            true => "; pacing is coalesced: answers are read in quanta of 1 ms",
            false => "",
        };
        let samples = show_count(self.lag.count());
        format!(" in {samples} samples{of}, to {}{quanta}", show_ns(self.clock_error_ns))
    }
}

#[cfg(test)]
mod tests {
    use model::facts::{ReceiveFacts, WorkerFacts};
    use model::plan::{Level, Pacing, ThresholdPlan};
    use model::result::{Answer, AuditOutcome, AuditResult, Verdict};

    use crate::testing::{Trial, audit};

    /// Of a thousand stamped transactions of 2 to 3 ms so many were read late by so much.
    fn read_late(count: u64, lag_ns: i64) -> Trial {
        let mut trial = Trial::clean();
        let facts = received(1_000 - count, count, lag_ns);
        let worker =
            WorkerFacts { wall_ns: 10_000_000_000, receive: facts, ..WorkerFacts::default() };
        trial.facts.load.workers.push(worker);
        // Of the rows the same share is late.
        for row in trial.rows.iter_mut().filter(|row| row.tx % 1_000 < count) {
            row.marks[0] += lag_ns;
            row.end = row.marks[0];
        }
        trial
    }

    fn received(prompt: u64, late: u64, lag_ns: i64) -> ReceiveFacts {
        ReceiveFacts {
            receipts: prompt + late,
            stamped: prompt + late,
            clock_error_ns: 40,
            lag: vec![(20_000, prompt), (lag_ns, late)],
            response: vec![(2_500_000, prompt), (2_500_000 + lag_ns, late)],
            without: vec![(2_480_000, prompt), (2_500_000, late)],
            ..ReceiveFacts::default()
        }
    }

    fn found(trial: &Trial) -> AuditResult {
        audit(&trial.clone().result(), "receive_lag").clone()
    }

    /// Claim: what is read late is told where it makes up a tenth of a quantile, with its share, and voids nothing.
    #[test]
    fn of_which_quantile() {
        assert_eq!(found(&read_late(0, 0)).outcome, AuditOutcome::Ok);
        assert_eq!(found(&read_late(5, 8_000_000)).outcome, AuditOutcome::Ok, "beyond p99");
        let late = found(&read_late(20, 8_000_000));
        assert_eq!((late.outcome, late.voids.len()), (AuditOutcome::Warn, 0), "{}", late.detail);
        assert!(late.detail.contains("it makes up 76 % of response p99"), "{}", late.detail);
        let small = found(&read_late(20, 400_000));
        assert_eq!(small.outcome, AuditOutcome::Warn, "{}", small.detail);
        let mut fast = read_late(0, 0);
        fast.facts.load.workers[0].receive = ReceiveFacts {
            response: vec![(80_000, 1_000)],
            without: vec![(45_000, 1_000)],
            ..received(1_000, 0, 0)
        };
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

    /// Claim: a threshold that only the receive lag breaks is invalid; one that is met with it is met, and so is one on
    /// another number.
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

    /// Claim: where nothing was asked, nothing was stamped, the wall clock was set or is not known well enough, or there is
    /// too little, it says so and that it cannot tell.
    #[test]
    fn cannot_tell() {
        let with = |receive: ReceiveFacts| {
            let mut trial = Trial::clean();
            trial.facts.load.workers.push(WorkerFacts { receive, ..WorkerFacts::default() });
            found(&trial)
        };
        let good = || received(900, 100, 8_000_000);
        for (receive, why) in [
            (ReceiveFacts::default(), "nothing was received on a socket"),
            (ReceiveFacts { receipts: 50, ..Default::default() }, "the kernel stamped nothing"),
            (ReceiveFacts { clock_moved_ns: 5_000_000, ..good() }, "was moved by 5.00 ms"),
            (ReceiveFacts { impossible: 3, ..good() }, "3 receipts were stamped after"),
            (ReceiveFacts { clock_error_ns: 900_000, ..good() }, "known to 900 µs only"),
            (received(9, 9, 8_000_000), "18 were stamped and measured: too few"),
        ] {
            let found = with(receive);
            assert_eq!(found.outcome, AuditOutcome::Skipped, "{}", found.detail);
            assert!(found.detail.starts_with("cannot tell: "), "{}", found.detail);
            assert!(found.detail.contains(why), "{}", found.detail);
        }
    }

    /// Claim: workers are counted together, and a record that was tampered with ends nothing.
    #[test]
    fn workers_together() {
        let mut trial = read_late(20, 8_000_000);
        let one = trial.facts.load.workers[0].receive.clone();
        let other = WorkerFacts { receive: one, ..WorkerFacts::default() };
        trial.facts.load.workers.push(other);
        assert!(found(&trial).detail.contains("in 2,000 samples"), "{}", found(&trial).detail);
        let receive = &mut trial.facts.load.workers[1].receive;
        receive.lag = vec![(i64::MIN, u64::MAX), (i64::MAX, u64::MAX), (5, 0)];
        receive.response = receive.lag.clone();
        receive.without = Vec::new();
        receive.receipts = u64::MAX;
        let _ = found(&trial);
    }
}
