//! Does the number outstanding rise through the window? Then the system is saturated, and its latencies are a
//! function of how long one cared to wait, not of the system.
//!
//! Three things look like it and are not: a pipe that still fills, because the load began so recently that the first
//! answers were on their way (those blocks are left out); this client's connections; and this machine, where the
//! generator was the limit or most of the time outstanding was its own lag.

use model::quantity::{show_count, show_ns};
use model::result::{AuditOutcome, Family, FigureUnit, Voided};
use stats::trend::{mann_kendall_rising, mann_kendall_score, theil_sen};

use super::evidence::Evidence;
use super::finding::{Audit, Finding, failed, ok, skipped, warn};
use super::{connections, generator_busy};
use crate::figures::flow::BLOCKS;
use crate::figures::share::percent;

/// A rise must be this sure.
const P_MAX: f64 = 0.005;
/// A rise must leave this many transactions outstanding: less is noise of any queue.
const GROWTH_MIN: f64 = 10.0;
/// A rise that is only likely must be of at least this share of what was due.
const GROWTH_SHARE_MIN: f64 = 0.02;
/// A smaller one must be steady: of the 45 pairs of blocks all but one rise (so many rise less those that fall, of so
/// many) …
const SCORE_MIN: (i64, i64) = (43, 45);
/// … and the last block must be so many times the first. A busy stable queue rises as steadily now and then, and hardly
/// ever as far: the false alarms and the power of the rule are in docs/theory.md.
const STEADY_RATIO_MIN: f64 = 3.0;
/// Fewer blocks after the pipe is full say nothing of a trend.
const FULL_BLOCKS_MIN: usize = 4;
/// From this share of the time outstanding on, the instrument's own lag made the backlog.
const OWN_SHARE_MIN: f64 = 0.5;

pub(super) const AUDIT: Audit = Audit {
    name: "backlog_drift",
    question: "Did the backlog grow through the window, so that latencies depend on how long the run is?",
    voids: &[
        // A longer run would only have made them longer, and let more of them miss their timeout.
        Voided::too_low(Family::Response),
        Voided::too_low(Family::Outstanding),
        Voided::too_low(Family::Timeouts),
        Voided::too_low(Family::NodeStages),
    ],
    figures: &[
        ("first", FigureUnit::Count),
        ("last", FigureUnit::Count),
        ("slope", FigureUnit::PerSecond),
        ("growth", FigureUnit::Count),
        ("share", FigureUnit::Share),
    ],
};

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
pub(super) fn audit(evidence: &Evidence<'_>) -> Finding {
    if evidence.schedule().is_none() {
        return skipped("a closed loop bounds what is outstanding");
    }
    let Some(blocks) = evidence.figures.flow.outstanding_by_block() else {
        return skipped("the measured window is too short to see a trend");
    };
    let means = match full_from(evidence) {
        Ok(block) => &blocks[block..],
        Err(why) => return skipped(why),
    };
    let (Some(slope), Some(p)) = (theil_sen(means), mann_kendall_rising(means)) else {
        return skipped("the measured window is too short to see a trend");
    };
    let growth = slope * means.len() as f64;
    let share = growth / (evidence.figures.flow.due_in_window.max(1)) as f64;
    let (first, last) = (means[0], means[means.len() - 1]);
    let per_s = slope * BLOCKS as f64 / evidence.trial.grid.seconds();
    let figures = |finding: Finding| {
        let finding = finding.with("first", first).with("last", last);
        finding.with("slope", per_s).with("growth", growth).with("share", share)
    };
    let is_large = p <= P_MAX && share >= GROWTH_SHARE_MIN && last >= 1.5 * first;
    let is_steady = is_steady(means) && last >= STEADY_RATIO_MIN * first;
    if growth < GROWTH_MIN || !(is_large || is_steady) {
        let went = format!(
            "outstanding went from {first:.1} to {last:.1} (means of the first and last tenth)"
        );
        return figures(ok(match evidence.change() {
            Some(change) if change.rises() && last > first => {
                format!(
                    "{went}: it grows as response times do (see latency_drift), and no backlog beside it"
                )
            }
            _ => format!("{went}: no significant growth"),
        }));
    }
    let rose = format!(
        "outstanding rose by {per_s:.1}/s through the window, from {} to {} ({} of what was due)",
        show_count(whole(first)),
        show_count(whole(last)),
        percent(share)
    );
    if let Some(by) = own_limit(evidence) {
        return figures(warn(format!("{rose}: {by}, so that it says nothing of the system")));
    }
    // A transaction that waits for a connection that the client does not open is outstanding, too.
    let who =
        if connections::are_the_limit(evidence) { "this client's pool" } else { "the system" };
    let said =
        format!("{rose}: {who} is saturated, and its latencies depend on the length of the run");
    if evidence.is_saturated || evidence.load_changes() {
        return figures(warn(said));
    }
    if evidence.figures.flow.has_stopped() {
        // Nothing that one could wait for longer: what was not answered is unknown, and counts as such.
        return figures(warn(format!(
            "outstanding rose from {} to {} because nothing was committed any more at the end of the window",
            show_count(whole(first)),
            show_count(whole(last)),
        )));
    }
    figures(failed(format!(
        "{said}; lower the rate, or declare a threshold with level = \"saturated\""
    )))
}

/// The first block at whose beginning the pipe was full: transactions had been due for as long as the fastest twentieth
/// of the answers takes. A queue that grows from nothing has that twentieth near its start, and loses no block.
fn full_from(evidence: &Evidence<'_>) -> Result<usize, String> {
    let typical_ns = evidence.response.and_then(|times| times.all().quantile(0.05)).unwrap_or(0);
    let warmup = evidence.trial.setting.load.warmup;
    let warmup_ns = i64::try_from(warmup.as_nanos()).unwrap_or(i64::MAX);
    let fills_ns = typical_ns.saturating_sub(warmup_ns);
    let block_ns = (evidence.trial.grid.length() / BLOCKS as i64).max(1);
    if fills_ns <= block_ns {
        return Ok(0);
    }
    let block = usize::try_from(fills_ns / block_ns + 1).unwrap_or(BLOCKS);
    if block + FULL_BLOCKS_MIN > BLOCKS {
        return Err(format!(
            "answers take {} and the load began {} before the window: what is outstanding still rises to what the \
             latency holds; make load.warmup as long as an answer takes",
            show_ns(typical_ns),
            show_ns(warmup_ns)
        ));
    }
    Ok(block)
}

/// Whether hardly a pair of blocks falls.
fn is_steady(means: &[f64]) -> bool {
    let pairs = i64::try_from(means.len() * (means.len() - 1) / 2).expect("a few blocks");
    mann_kendall_score(means) * SCORE_MIN.1 >= pairs * SCORE_MIN.0
}

/// How this machine made the backlog, if it did.
#[expect(clippy::cast_precision_loss, reason = "sums of times")]
fn own_limit(evidence: &Evidence<'_>) -> Option<String> {
    if generator_busy::audit(evidence).outcome == AuditOutcome::Failed {
        return Some("the load generator was the limit (see generator_busy)".to_owned());
    }
    let own =
        evidence.own_lag.moments().sum() as f64 / (evidence.figures.flow.time_ns.max(1)) as f64;
    (own >= OWN_SHARE_MIN).then(|| {
        format!(
            "{} of the time outstanding was this instrument's own lag (see send_lag)",
            percent(own)
        )
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, for people")]
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

#[cfg(test)]
pub(super) mod tests {
    use model::Outcome;
    use model::plan::{Level, ThresholdPlan};
    use model::result::{AuditOutcome, Verdict};

    use crate::audits::guilty::{Guilt, MS, WARM_UP_NS, slowed};
    use crate::testing::{Trial, audit, row};

    pub(in crate::audits) const GUILTY: &[Guilt] = &[
        ("capacity 2 % too small", |trial| {
            slowed(trial, |old| 2 * MS + (old - WARM_UP_NS).max(0) / 50);
        }),
        ("capacity 0.5 % too small, of a regular server", |trial| {
            slowed(trial, |old| 2 * MS + (old - WARM_UP_NS).max(0) / 200);
        }),
    ];

    fn overloaded() -> Trial {
        let mut trial = Trial::clean();
        // D/D/1 at 1.2 times its capacity: the n-th waits n × 0.2 ms.
        for (n, old) in trial.rows.iter_mut().enumerate() {
            let wait = i64::try_from(n).unwrap() * 200_000;
            *old = row(old.tx, old.due, 2_000_000 + wait, Outcome::Committed);
        }
        trial.facts.load.drain_end = 20_000_000_000;
        trial
    }

    /// Claim: a queue that grows fails, with the slope in words; declared saturation only warns.
    #[test]
    fn growth_fails_unless_declared() {
        let result = overloaded().result();
        let found = audit(&result, "backlog_drift");
        assert_eq!(found.outcome, AuditOutcome::Failed, "{}", found.detail);
        assert!(found.detail.contains("saturated"), "{}", found.detail);
        let mut declared = overloaded();
        let expr = "committed >= 98% of offered";
        declared.thresholds.push(ThresholdPlan::new(expr, Level::Saturated));
        let result = declared.result();
        assert_eq!(audit(&result, "backlog_drift").outcome, AuditOutcome::Warn);
        assert_eq!(result.thresholds[0].holds, Some(false), "{:?}", result.thresholds[0]);
    }

    /// Claim: a system that died has numbers that hold, and no advice to lower the rate: a threshold decides.
    #[test]
    fn the_dead_are_not_saturated() {
        let mut trial = Trial::clean();
        for old in trial.rows.iter_mut().filter(|old| old.due > 3_000_000_000) {
            *old = row(old.tx, old.due, 30_000_000_000, Outcome::Unknown);
        }
        trial.facts.load.drain_end = 40_000_000_000;
        let promised = Trial {
            thresholds: vec![ThresholdPlan::new("p99 < 1s", Level::Fail)],
            ..trial.clone()
        };
        let result = trial.result();
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.reason);
        let found = audit(&result, "backlog_drift");
        assert!(found.detail.contains("nothing was committed any more"), "{}", found.detail);
        assert_eq!(promised.result().verdict, Verdict::Fail);
    }

    /// Claim: what a longer run would only make worse is broken a fortiori; what holds so far is not known to hold.
    #[test]
    fn promises_of_the_saturated() {
        let with = |expr: &str| {
            let mut trial = overloaded();
            trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
            trial.result().verdict
        };
        assert_eq!(with("p99 < 1s"), Verdict::Fail);
        assert_eq!(with("p99 < 60s"), Verdict::Invalid);
        assert_eq!(with("success == 100%"), Verdict::Invalid);
        assert_eq!(with("offered >= 990/s"), Verdict::Pass);
    }

    /// Claim: where the generator had no processor, or sent late itself, the backlog is not the system's.
    #[test]
    fn the_instrument_is_not_the_system() {
        let found = |trial: Trial| audit(&trial.result(), "backlog_drift").clone();
        let mut busy = overloaded();
        busy.facts.load.workers = vec![model::facts::WorkerFacts {
            wall_ns: 1_000,
            cpu_ns: 200,
            run_queue_ns: 650,
            ..Default::default()
        }];
        let mut late = overloaded();
        for old in &mut late.rows {
            old.sent = old.end - 2_000_000;
        }
        for (trial, by) in [(busy, "see generator_busy"), (late, "own lag (see send_lag)")] {
            let found = found(trial);
            assert_eq!(found.outcome, AuditOutcome::Warn, "{}", found.detail);
            let detail = &found.detail;
            assert!(detail.contains(by) && !detail.contains("saturated"), "{detail}");
        }
    }

    /// Claim: a load that began half a second before the window, of answers that take three and a half, fills a pipe: that
    /// is no growth; with a window in which the pipe is hardly full it says why it cannot tell. A queue that grows from
    /// nothing is found as ever.
    #[test]
    fn a_pipe_that_fills() {
        let with = |begins_ns: i64, takes: fn(i64) -> i64| {
            let mut trial = Trial::clean();
            trial.facts.declared.measure_start = begins_ns;
            trial.setting.load.warmup = std::time::Duration::from_nanos(begins_ns.cast_unsigned());
            for old in &mut trial.rows {
                *old = row(old.tx, old.due, takes(old.due), Outcome::Committed);
            }
            trial.facts.load.drain_end = 30_000_000_000;
            audit(&trial.result(), "backlog_drift").clone()
        };
        let fills = with(500_000_000, |_| 3_500_000_000);
        assert_eq!(fills.outcome, AuditOutcome::Ok, "{}", fills.detail);
        let hardly = with(500_000_000, |_| 8_000_000_000);
        assert_eq!(hardly.outcome, AuditOutcome::Skipped, "{}", hardly.detail);
        assert!(hardly.detail.contains("make load.warmup as long"), "{}", hardly.detail);
        let grows = with(500_000_000, |due| 2_000_000 + due / 2);
        assert_eq!(grows.outcome, AuditOutcome::Failed, "{}", grows.detail);
    }

    /// Claim: one freeze from which the system recovers is not saturation.
    #[test]
    fn one_freeze_is_no_drift() {
        let mut trial = Trial::clean();
        for old in &mut trial.rows {
            if (4_000_000_000..5_000_000_000).contains(&old.due) {
                *old = row(old.tx, old.due, 5_002_000_000 - old.due, Outcome::Committed);
            }
        }
        let result = trial.result();
        let found = audit(&result, "backlog_drift");
        assert_eq!(found.outcome, AuditOutcome::Ok, "{}", found.detail);
    }
}
