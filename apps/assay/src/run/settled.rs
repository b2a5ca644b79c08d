//! The trial of a search whose answer is settled: so many transactions have missed a threshold that it fails whatever the
//! others do, as MLRsearch classifies a trial by the most favourable completion of what is left. A trial that keeps its
//! thresholds runs to its end.

use std::time::Duration;

use model::facts::EndedEarly;
use model::plan::{AbortPlan, Arrivals, Schedule, SettingPlan};
use model::quantity::show_count;
use model::{FinalStages, Outcome, Row};

/// No trial is ended before this part of its window, nor before this: what comes through is a number of the search, too.
const PART_MIN: u32 = 4;
const AFTER_MIN: Duration = Duration::from_secs(2);
/// A Poisson schedule has this many of its standard deviations more due than planned in less than one of a million.
const DEVIATIONS: f64 = 5.0;

/// Thresholds of a trial, with how many of its transactions may miss each, and have.
#[derive(Debug, Default)]
pub struct Settled {
    all: Vec<Counted>,
    from_ns: i64,
    to_ns: i64,
    /// Not settled before, after the load began.
    after_ns: i64,
}

#[derive(Debug)]
struct Counted {
    threshold: AbortPlan,
    /// The most that may miss it in the whole window.
    allowed: u64,
    missed: u64,
}

impl Settled {
    /// Takes up the thresholds that rows decide one by one; none where it is not known how many will be due.
    pub fn of(thresholds: &[String], setting: &SettingPlan) -> Self {
        let load = &setting.load;
        match (due_most(setting), &setting.probe) {
            (Some(due), None) => Self::within(thresholds, due, (load.warmup, load.duration)),
            _ => Self::default(),
        }
    }

    /// The same where at most so many will be due, in a window of a length after a warm-up.
    fn within(thresholds: &[String], due: f64, (warmup, duration): (Duration, Duration)) -> Self {
        let counted = |expr: &String| {
            let threshold = AbortPlan::parse(expr, Duration::ZERO).ok()?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            let allowed = (threshold.share_allowed()? * due).ceil() as u64;
            Some(Counted { threshold, allowed, missed: 0 })
        };
        let ns = |length: Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX / 2);
        let after = (duration / PART_MIN).max(AFTER_MIN);
        Self {
            all: thresholds.iter().filter_map(counted).collect(),
            from_ns: ns(warmup),
            to_ns: ns(warmup + duration),
            after_ns: ns(warmup + after),
        }
    }

    /// Counts rows of a trial whose streams end at these stages.
    pub fn rows(&mut self, rows: &[Row], ends: FinalStages) {
        for counted in &mut self.all {
            let in_window = rows.iter().filter(|row| (self.from_ns..self.to_ns).contains(&row.due));
            let missed = in_window.filter(|row| counted.is_missed(row, ends)).count();
            counted.missed += missed as u64;
        }
    }

    /// The threshold that no completion can meet any more.
    pub fn why(&self, now_ns: i64) -> Option<EndedEarly> {
        let is_settled = |it: &&Counted| now_ns >= self.after_ns && it.missed > it.allowed;
        let found = self.all.iter().find(is_settled)?;
        let why = format!(
            "`{}` is missed whatever else comes: by {}, where {} of all that are due may miss it",
            found.threshold.expr,
            show_count(found.missed),
            show_count(found.allowed)
        );
        Some(EndedEarly { why, is_machine: false })
    }
}

impl Counted {
    #[expect(clippy::cast_precision_loss, reason = "a time in nanoseconds")]
    fn is_missed(&self, row: &Row, ends: FinalStages) -> bool {
        let is_committed = row.outcome == Outcome::Committed;
        match (self.threshold.quantile, row.response_ns(ends.of(row.stream))) {
            (None, _) => !is_committed,
            (Some(_), Some(ns)) if is_committed => !self.threshold.holds(ns as f64),
            // A refusal counts by its own time, which the row's end has.
            (Some(_), _) if matches!(row.outcome, Outcome::Rejected(_)) => {
                !self.threshold.holds((row.end - row.due) as f64)
            }
            (Some(_), _) => true,
        }
    }
}

/// The most that will be due in the window of a load with one rate.
fn due_most(setting: &SettingPlan) -> Option<f64> {
    let seconds = setting.load.duration.as_secs_f64();
    match &setting.load.arrivals {
        Arrivals::Open { schedule: Schedule::Constant { rate } | Schedule::Poisson { rate } }
            if !rate.is_max() =>
        {
            let due = rate.as_per_second() * seconds;
            Some(due + DEVIATIONS * due.sqrt())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use model::NO_STAMP;

    use super::*;

    const MS: i64 = 1_000_000;

    fn row(due_ms: i64, ms: i64, outcome: Outcome) -> Row {
        let (due, end) = (due_ms * MS, (due_ms + ms) * MS);
        let mut row = Row { due, sent: due, end, outcome, ..Row::EMPTY };
        row.marks[0] = if outcome == Outcome::Committed { end } else { NO_STAMP };
        row
    }

    /// Claim: a trial is settled when more have missed a threshold than may of all that can be due, not before, not by
    /// transactions of the warm-up, and not so early that nothing is known of what comes through.
    #[test]
    fn whatever_else_comes() {
        let thresholds = ["p99 < 100ms", "success >= 90%", "goodput >= 5/s"].map(str::to_owned);
        let ends = FinalStages::all(0);
        let window = (Duration::from_secs(1), Duration::from_secs(10));
        // 1,000 due, or by chance 1,158: 12 may be slow, and 116 may fail.
        let slow = |count: i64| (0..count).map(|n| row(1_000 + n * 10, 100, Outcome::Committed));
        let of = |rows: Vec<Row>, at_ms: i64| {
            let mut settled = Settled::within(&thresholds, 1_158.1, window);
            rows.chunks(5).for_each(|rows| settled.rows(rows, ends));
            settled.why(at_ms * MS).map(|it| it.why)
        };
        assert_eq!(of(slow(12).collect(), 9_000), None);
        assert_eq!(of(slow(13).collect(), 3_400), None, "a quarter of the window");
        let said = of(slow(13).collect(), 3_500).unwrap();
        assert_eq!(
            said,
            "`p99 < 100ms` is missed whatever else comes: by 13, where 12 of all that are due may miss it"
        );
        let warm_up = (0..90).map(|n| row(n * 10, 900, Outcome::Committed));
        assert_eq!(of(warm_up.collect(), 9_000), None);
        let failed = (0..117).map(|n| row(1_000 + n * 10, 5, Outcome::Unknown));
        assert!(of(failed.collect(), 9_000).unwrap().contains("p99"), "never answered is slow");
        let refused = model::Class::Server;
        let refused = (0..117).map(|n| row(1_000 + n * 10, 5, Outcome::Rejected(refused)));
        assert!(of(refused.collect(), 9_000).unwrap().contains("success"));
    }
}
