//! What the instrument distrusts of its own measurement: one audit a file, one list, in alphabetical order.
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
#[cfg(test)]
mod false_alarms;
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

use model::facts::{Environment, TrialFacts, WorkerFacts};
use model::plan::{Arrivals, Schedule, SettingPlan};
use model::result::{
    AuditFacts, AuditOutcome, AuditResult, Family, Figure, FigureUnit, TrialResult, Voided,
};
use stats::{Histogram, TimedHistogram};

use crate::fates::Join;
use crate::first_use::FirstUse;
use crate::flow::Flow;
use crate::grid::Grid;
use crate::metric::Unit;
use crate::node_stages::NodeStages;
use crate::order::Order;
use crate::phases::Phases;
use crate::pool::Pool;
use crate::received::Received;
use crate::silence::Commits;
use crate::tally::Tally;
use crate::without_lag::WithoutLag;

pub(crate) use own_time::SHARE_WARN;

/// The name of the audit that tries every kind once.
pub(crate) const PREFLIGHT: &str = preflight::AUDIT.name;

/// The audits of a trial. `repeatability` looks across trials and stands in the run's own list.
const AUDITS: &[(Audit, Run)] = &[
    (backlog_drift::AUDIT, backlog_drift::audit),
    (client_failures::AUDIT, client_failures::audit),
    (clock::AUDIT, clock::audit),
    (complete::AUDIT, complete::audit),
    (connections::AUDIT, connections::audit),
    (conservation::AUDIT, conservation::audit),
    (disks::AUDIT, disks::audit),
    (drain::AUDIT, drain::audit),
    (duplicates::AUDIT, duplicates::audit),
    (even_arrivals::AUDIT, even_arrivals::audit),
    (first_use::AUDIT, first_use::audit),
    (generator_busy::AUDIT, generator_busy::audit),
    (host::AUDIT, host::audit),
    (latency_drift::AUDIT, latency_drift::audit),
    (ledger::AUDIT, ledger::audit),
    (links::AUDIT, links::audit),
    (littles_law::AUDIT, littles_law::audit),
    (offered_rate::AUDIT, offered_rate::audit),
    (preflight::AUDIT, preflight::audit),
    (protocol::AUDIT, protocol::audit),
    (receive_lag::AUDIT, receive_lag::audit),
    (send_lag::AUDIT, send_lag::audit),
    (silence::AUDIT, silence::audit),
    (stage_order::AUDIT, stage_order::audit),
    (survivorship::AUDIT, survivorship::audit),
    (warm_up::AUDIT, warm_up::audit),
];

/// All there is to say of an audit but what it computes; documents, glossary and thresholds are told from here.
#[derive(Clone, Copy)]
pub(crate) struct Audit {
    pub name: &'static str,
    /// What it asks, in one line.
    pub question: &'static str,
    /// The numbers that it voids where it fails and does not say otherwise.
    pub voids: &'static [Voided],
    /// The numbers that it may compute, with their units.
    pub figures: &'static [(&'static str, FigureUnit)],
}

type Run = fn(&Evidence<'_>) -> Finding;

/// All that an audit may look at.
pub(crate) struct Evidence<'a> {
    pub setting: &'a SettingPlan,
    pub facts: &'a TrialFacts,
    pub environment: &'a Environment,
    /// Whether a threshold says that saturation is what this setting looks for, and found it.
    pub is_saturated: bool,
    /// The counters of all engine threads together.
    pub engine: WorkerFacts,
    /// The summary, without audits and verdict.
    pub result: &'a TrialResult,
    /// Index of the stage to which its latencies are.
    pub final_stage: usize,
    /// Every row of the trial, the warm-up's included.
    pub all: &'a Tally,
    pub flow: &'a Flow,
    pub grid: Grid,
    pub order: &'a Order,
    pub pool: &'a Pool,
    /// When anything ended, where arrivals wait for answers.
    pub ends: Option<&'a Commits>,
    pub first_use: &'a FirstUse,
    /// How long arrivals at even distances took, where they are even.
    pub phases: Option<&'a Phases>,
    pub join: &'a Join,
    /// What nodes stamped, if they stamp anything.
    pub node_stages: Option<&'a NodeStages>,
    pub own_lag: Histogram,
    /// Response time to the final stage less the transaction's own lag.
    pub without_lag: &'a WithoutLag,
    /// How late its answers were read.
    pub received: &'a Received,
    /// Response time to the final stage, if there is such a stage.
    pub response: Option<&'a TimedHistogram>,
    pub dropped_bytes: u64,
}

impl Evidence<'_> {
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
        match &self.setting.load.arrivals {
            Arrivals::Open { schedule } => matches!(
                schedule,
                Schedule::Ramp { .. } | Schedule::Steps { .. } | Schedule::Trace { .. }
            ),
            Arrivals::Closed { steps, .. } => steps.len() > 1,
        }
    }
}

/// What an audit found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub outcome: AuditOutcome,
    /// The sentence with the figures.
    pub detail: String,
    figures: Vec<(&'static str, f64)>,
    /// Where it failed: other numbers than the audit's own list has.
    voids: Option<Vec<Voided>>,
}

impl Finding {
    fn new(outcome: AuditOutcome, detail: impl Into<String>) -> Self {
        Self { outcome, detail: detail.into(), figures: Vec::new(), voids: None }
    }

    /// Adds a number that was computed; one that is not finite is none.
    pub fn with(mut self, name: &'static str, value: f64) -> Self {
        if value.is_finite() {
            self.figures.push((name, value));
        }
        self
    }

    /// Says which numbers do not hold, instead of all that the audit may void.
    pub fn voiding(mut self, voids: impl IntoIterator<Item = Voided>) -> Self {
        self.voids = Some(voids.into_iter().collect());
        self
    }

    /// The result of an audit.
    pub fn of(self, audit: &Audit) -> AuditResult {
        let voids = match self.outcome {
            AuditOutcome::Failed => self.voids.unwrap_or_else(|| audit.voids.to_vec()),
            AuditOutcome::Ok | AuditOutcome::Skipped | AuditOutcome::Warn => Vec::new(),
        };
        let figure = |(name, value): (&str, f64)| {
            let (_, unit) = audit.figures.iter().find(|(known, _)| *known == name)?;
            Some(Figure { name: name.to_owned(), value, unit: *unit })
        };
        let figures = self.figures.iter().map(|it| figure(*it));
        AuditResult {
            name: audit.name.to_owned(),
            outcome: self.outcome,
            detail: self.detail,
            voids,
            figures: figures.map(|it| it.expect("the audit's list has its figures")).collect(),
        }
    }
}

pub(crate) fn ok(detail: impl Into<String>) -> Finding {
    Finding::new(AuditOutcome::Ok, detail)
}

pub(crate) fn skipped(detail: impl Into<String>) -> Finding {
    Finding::new(AuditOutcome::Skipped, detail)
}

pub(crate) fn warn(detail: impl Into<String>) -> Finding {
    Finding::new(AuditOutcome::Warn, detail)
}

pub(crate) fn failed(detail: impl Into<String>) -> Finding {
    Finding::new(AuditOutcome::Failed, detail)
}

/// All that is computed from rows, wrong in whatever way.
const ALL_OF_ROWS: [Voided; 9] = {
    let mut all = [Voided::either(Family::Response); 9];
    let mut at = 0;
    while at < all.len() {
        all[at] = Voided::either(Family::OF_ROWS[at]);
        at += 1;
    }
    all
};

/// What a trial of another load, or of another network, than was asked for says nothing of.
const NOT_AS_ASKED: &[Voided] = &[
    Voided::either(Family::Response),
    Voided::either(Family::Service),
    Voided::either(Family::Committed),
    Voided::either(Family::Failures),
    Voided::either(Family::Outstanding),
    Voided::either(Family::NodeStages),
];

/// What lateness and weakness of what is not the system make of its numbers: they only add to its times, and take from
/// what it commits.
const SLOWED: &[Voided] = &[
    Voided::too_high(Family::Response),
    Voided::too_high(Family::Service),
    Voided::too_high(Family::Outstanding),
    Voided::too_high(Family::Failures),
    Voided::too_low(Family::Committed),
    Voided::too_high(Family::NodeStages),
];

/// All audits, those across trials included, in the order of their list.
pub(crate) fn all_audits() -> impl Iterator<Item = Audit> {
    AUDITS.iter().map(|(audit, _)| *audit).chain([repeatability::AUDIT])
}

/// What each audit asks, those across trials last.
#[must_use]
pub fn audits_asked() -> Vec<AuditFacts> {
    let asked = |it: Audit| AuditFacts { name: it.name.into(), question: it.question.into() };
    all_audits().map(asked).collect()
}

/// A figure's unit; `None` where no audit of trials is called so, or it has no such figure.
pub(crate) fn figure_unit_of(audit: &str, figure: &str) -> Option<Unit> {
    let (audit, _) = AUDITS.iter().find(|(it, _)| it.name == audit)?;
    let (_, unit) = audit.figures.iter().find(|(name, _)| *name == figure)?;
    Some(match unit {
        FigureUnit::Ns => Unit::Ns,
        FigureUnit::Count => Unit::Number,
        FigureUnit::PerSecond => Unit::PerSecond,
        FigureUnit::Share => Unit::Ratio,
    })
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
        let is_asked = !evidence.facts.load.is_withheld || audit.name == PREFLIGHT;
        let finding = if is_asked { run(evidence) } else { skipped("nothing was sent") };
        finding.of(audit)
    };
    AUDITS.iter().map(found).collect()
}

/// A share as people read it: `2.5 %`, with more digits where it is small.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if p == 0.0 || p >= 10.0 => format!("{percent:.0} %"),
        p if p >= 1.0 => format!("{percent:.1} %"),
        p if p >= 0.01 => format!("{percent:.2} %"),
        p if p >= 0.000_1 => format!("{percent:.4} %"),
        _ => "less than 0.0001 %".to_owned(),
    }
}

/// `part ÷ whole`; zero for an empty whole.
#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use model::plan::{Level, ThresholdPlan};
    use model::result::{Answer, AuditOutcome, Verdict};

    use crate::testing::Trial;

    /// Claim: docs/audits/index.md lists every audit with what it asks, and each has its page; `ASSAY_TEST_BLESS=1` writes
    /// the list.
    #[test]
    fn the_index_lists_every_audit() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/audits/");
        let path = format!("{docs}index.md");
        let page = std::fs::read_to_string(&path).expect("the index is there");
        let lines = super::audits_asked().into_iter().map(|audit| {
            assert!(
                std::path::Path::new(&format!("{docs}{}.md", audit.name)).is_file(),
                "{audit:?}"
            );
            format!("| [{0}]({0}.md) | {1} |\n", audit.name, audit.question)
        });
        let table: String = lines.collect();
        let head = "| audit | the question |\n| --- | --- |\n";
        let start = page.find(head).expect("the table's head") + head.len();
        let end = start + page[start..].find("\n\n").expect("text follows the table") + 1;
        if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
            std::fs::write(&path, format!("{}{table}{}", &page[..start], &page[end..]))
                .expect("written");
            return;
        }
        assert_eq!(&page[start..end], table, "run this test with ASSAY_TEST_BLESS=1");
    }

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
                let found = crate::metric::metric(&name, &result).expect("a number of the result");
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
