//! What the instrument distrusts of its own measurement: one audit a file, one list, in alphabetical order.
//!
//! An audit is a pure function of [`Evidence`]. It says `Failed` only where a number of the result does not
//! hold (the trial is then invalid, whatever its thresholds say), `Warn` where the numbers hold and a reader
//! should know something about them, and `Skipped` where it cannot tell, with the reason.

mod backlog_drift;
mod client_failures;
mod clock;
mod complete;
pub(crate) mod connections;
mod conservation;
mod disks;
mod drain;
mod duplicates;
#[cfg(test)]
mod false_alarms;
mod generator_busy;
mod host;
mod ledger;
mod links;
mod littles_law;
mod offered_rate;
mod preflight;
pub(crate) mod repeatability;
mod send_lag;
mod stage_order;
mod survivorship;
mod warm_up;

use model::facts::{Environment, TrialFacts, WorkerFacts};
use model::plan::{Arrivals, Level, Schedule, SettingPlan, ThresholdPlan};
use model::result::{AuditOutcome, AuditResult, TrialResult};
use stats::{Histogram, TimedHistogram};

use crate::fates::Join;
use crate::flow::Flow;
use crate::grid::Grid;
use crate::order::Order;
use crate::pool::Pool;
use crate::tally::Tally;

type Audit = fn(&Evidence<'_>) -> Finding;

/// The audits of a trial. `repeatability` looks across trials and stands in the run's own list.
const AUDITS: [(&str, Audit); 20] = [
    ("backlog_drift", backlog_drift::audit),
    ("client_failures", client_failures::audit),
    ("clock", clock::audit),
    ("complete", complete::audit),
    (connections::NAME, connections::audit),
    ("conservation", conservation::audit),
    ("disks", disks::audit),
    ("drain", drain::audit),
    ("duplicates", duplicates::audit),
    ("generator_busy", generator_busy::audit),
    ("host", host::audit),
    ("ledger", ledger::audit),
    ("links", links::audit),
    ("littles_law", littles_law::audit),
    ("offered_rate", offered_rate::audit),
    ("preflight", preflight::audit),
    ("send_lag", send_lag::audit),
    ("stage_order", stage_order::audit),
    ("survivorship", survivorship::audit),
    ("warm_up", warm_up::audit),
];

/// All that an audit may look at.
pub(crate) struct Evidence<'a> {
    pub setting: &'a SettingPlan,
    pub facts: &'a TrialFacts,
    pub environment: &'a Environment,
    pub thresholds: &'a [ThresholdPlan],
    /// The counters of all engine threads together.
    pub engine: WorkerFacts,
    /// The summary, without audits and verdict.
    pub result: &'a TrialResult,
    /// Every row of the trial, the warm-up's included.
    pub all: &'a Tally,
    pub flow: &'a Flow,
    pub grid: Grid,
    pub order: &'a Order,
    pub pool: &'a Pool,
    pub join: &'a Join,
    pub own_lag: &'a Histogram,
    /// Response time to the final stage, if there is such a stage.
    pub response: Option<&'a TimedHistogram>,
    pub dropped_bytes: u64,
}

impl Evidence<'_> {
    /// Whether a threshold says that saturation is what this setting looks for.
    pub fn saturation_is_declared(&self) -> bool {
        self.thresholds.iter().any(|threshold| threshold.level == Level::Saturated)
    }

    /// Whether the trial ended before its time.
    pub fn is_cut(&self) -> bool {
        !self.facts.complete || !self.facts.interrupted().is_empty()
    }

    /// The open schedule, if the load is one.
    pub fn schedule(&self) -> Option<&Schedule> {
        match &self.setting.load.arrivals {
            Arrivals::Open { schedule } => Some(schedule),
            Arrivals::Closed { .. } => None,
        }
    }

    /// Whether the plan itself changes the load during the window.
    pub fn load_changes(&self) -> bool {
        matches!(
            self.schedule(),
            Some(Schedule::Ramp { .. } | Schedule::Steps { .. } | Schedule::Trace { .. })
        )
    }
}

/// How an audit came out, and the sentence with the figures.
pub(crate) type Finding = (AuditOutcome, String);

pub(crate) fn ok(detail: impl Into<String>) -> Finding {
    (AuditOutcome::Ok, detail.into())
}

pub(crate) fn skipped(detail: impl Into<String>) -> Finding {
    (AuditOutcome::Skipped, detail.into())
}

pub(crate) fn warn(detail: impl Into<String>) -> Finding {
    (AuditOutcome::Warn, detail.into())
}

pub(crate) fn failed(detail: impl Into<String>) -> Finding {
    (AuditOutcome::Failed, detail.into())
}

/// Names of all audits of a trial, in alphabetical order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    AUDITS.iter().map(|(name, _)| *name).collect()
}

/// Runs every audit.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<AuditResult> {
    AUDITS
        .iter()
        .map(|(name, audit)| {
            let (outcome, detail) = audit(evidence);
            AuditResult { name: (*name).to_owned(), outcome, detail }
        })
        .collect()
}

/// A share as people read it: `2.5 %`, with more digits where it is small.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if p == 0.0 || p >= 10.0 => format!("{percent:.0} %"),
        p if p >= 1.0 => format!("{percent:.1} %"),
        p if p >= 0.01 => format!("{percent:.2} %"),
        _ => format!("{percent:.1e} %"),
    }
}

/// `part ÷ whole`; zero for an empty whole.
#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use model::result::{AuditOutcome, Verdict};

    use crate::testing::Trial;

    /// Claim: the list is alphabetical, and a clean trial passes every audit of it.
    #[test]
    fn a_clean_trial_passes() {
        let names = super::names();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
        let result = Trial::clean().result();
        for audit in &result.audits {
            let fine = matches!(audit.outcome, AuditOutcome::Ok | AuditOutcome::Skipped);
            assert!(fine, "{}: {}", audit.name, audit.detail);
        }
        assert_eq!(result.verdict, Verdict::Pass, "{}", result.reason);
    }
}
