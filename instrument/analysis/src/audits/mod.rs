//! Tests of the measurement itself: one audit a file, one list, in alphabetical order.
//!
//! An audit is a pure function of [`Evidence`]. It says `Failed` only where numbers of the result do not hold, and then
//! which and which way: thresholds on other numbers still decide. It says `Warn` where the numbers hold and a reader
//! should know something about them, and `Skipped` where it cannot tell, with the reason. It speaks of the instrument
//! and of the plan, never of the system: a bad system has numbers that hold.

mod backlog_drift;
mod client_failures;
mod clock;
mod complete;
pub(crate) mod connections;
mod conservation;
mod disks;
mod drain;
mod duplicates;
mod even_arrivals;
mod evidence;
#[cfg(test)]
mod false_alarms;
mod finding;
mod first_use;
mod generator_busy;
#[cfg(test)]
mod guilty;
mod host;
mod latency_drift;
mod ledger;
mod links;
mod littles_law;
mod offered_rate;
mod own_time;
mod preflight;
mod protocol;
mod receive_lag;
pub(crate) mod repeatability;
mod send_lag;
mod silence;
mod stage_order;
mod survivorship;
mod warm_up;

use model::result::{AuditFacts, AuditResult, FigureUnit};

pub(crate) use evidence::Evidence;
pub(crate) use finding::Audit;
use finding::{Finding, skipped};

/// The name of the audit that tries every kind once.
pub(crate) const PREFLIGHT: &str = preflight::AUDIT.name;
/// The audit of the generator's own threads.
pub(crate) const GENERATOR_BUSY: &str = generator_busy::AUDIT.name;

macro_rules! audits {
    ($($audit:ident,)*) => {
        const AUDITS: &[(Audit, Run)] = &[$(($audit::AUDIT, $audit::audit),)*];

        /// Trials that each of them must find.
        #[cfg(test)]
        const GUILTY: &[(&str, &[guilty::Guilt])] =
            &[$(($audit::AUDIT.name, $audit::tests::GUILTY),)*];
    };
}

// The audits of a trial. `repeatability` looks across trials and stands in the run's own list.
audits! {
    backlog_drift,
    client_failures,
    clock,
    complete,
    connections,
    conservation,
    disks,
    drain,
    duplicates,
    even_arrivals,
    first_use,
    generator_busy,
    host,
    latency_drift,
    ledger,
    links,
    littles_law,
    offered_rate,
    preflight,
    protocol,
    receive_lag,
    send_lag,
    silence,
    stage_order,
    survivorship,
    warm_up,
}

type Run = fn(&Evidence<'_>) -> Finding;

/// All audits, those across trials included, in the order of their list.
pub(crate) fn all_audits() -> impl Iterator<Item = Audit> {
    AUDITS.iter().map(|(audit, _)| *audit).chain([repeatability::AUDIT])
}

/// The question of each audit, those across trials last.
#[must_use]
pub fn audits_asked() -> Vec<AuditFacts> {
    let asked = |it: Audit| AuditFacts { name: it.name.into(), question: it.question.into() };
    all_audits().map(asked).collect()
}

/// A figure's unit; `None` where no audit of trials has the name `audit`, or it has no such figure.
pub(crate) fn figure_unit(audit: &str, figure: &str) -> Option<FigureUnit> {
    let (audit, _) = AUDITS.iter().find(|(it, _)| it.name == audit)?;
    audit.figures.iter().find(|(name, _)| *name == figure).map(|(_, unit)| *unit)
}

/// All figures as thresholds name them, `audit.NAME.FIGURE`.
pub(crate) fn figure_names() -> impl Iterator<Item = String> {
    AUDITS.iter().flat_map(|(audit, _)| {
        audit.figures.iter().map(move |(figure, _)| format!("audit.{}.{figure}", audit.name))
    })
}

/// Names of all audits of a trial, in alphabetical order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    AUDITS.iter().map(|(audit, _)| audit.name).collect()
}

/// Runs every audit.
pub(crate) fn all(evidence: &Evidence<'_>) -> Vec<AuditResult> {
    let found = |(audit, run): &(Audit, Run)| {
        // Of a load that was not sent only what kept it back is to be told.
        let is_asked = !evidence.trial.facts.load.is_withheld || audit.name == PREFLIGHT;
        let finding = if is_asked { run(evidence) } else { skipped("nothing was sent") };
        finding.of(audit)
    };
    AUDITS.iter().map(found).collect()
}

#[cfg(test)]
mod tests {
    use model::plan::{Level, ThresholdPlan};
    use model::result::{Answer, AuditOutcome, Verdict};

    use crate::testing::Trial;

    /// Claim: every figure that an audit gives has a name that a threshold may use, and its value there.
    #[test]
    fn figures_stand_in_thresholds() {
        let mut trial = Trial::clean();
        let expr = "audit.backlog_drift.slope < 1/s and audit.warm_up.off < 5% and audit.send_lag.p99 < 1ms";
        trial.thresholds = vec![ThresholdPlan::new(expr, Level::Fail)];
        let result = trial.result();
        assert_eq!(result.thresholds[0].answer, Answer::Met, "{:?}", result.thresholds[0]);
        for audit in &result.audits {
            for figure in &audit.figures {
                let name = format!("audit.{}.{}", audit.name, figure.name);
                let found =
                    crate::names::metric::metric(&name, &result).expect("a number of the result");
                assert_eq!(found.value, figure.value, "{name}");
            }
        }
        assert!(super::figure_names().count() > 30);
    }

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
