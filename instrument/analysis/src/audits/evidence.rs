//! The evidence that audits look at: the plan, the facts and the figures of one trial.

use model::facts::{Environment, WorkerFacts};
use model::plan::{Arrivals, Schedule};
use model::result::TrialResult;
use stats::{Histogram, TimedHistogram};

use crate::figures::Figures;
use crate::figures::known::Known;
use crate::figures::levels::{Change, Levels};

/// All that an audit may look at.
pub(crate) struct Evidence<'a> {
    pub trial: &'a Known<'a>,
    pub environment: &'a Environment,
    /// Whether a threshold says that saturation is what this setting looks for, and found it.
    pub is_saturated: bool,
    /// The counters of all engine threads together.
    pub engine: WorkerFacts,
    /// The summary, without audits and verdict.
    pub result: &'a TrialResult,
    pub figures: &'a Figures,
    /// Sent − ready of the measured window.
    pub own_lag: Histogram,
    /// Response time to the final stage, if there is such a stage.
    pub response: Option<&'a TimedHistogram>,
    /// Bytes at the end of the row log that could not be read.
    pub dropped_bytes: u64,
}

impl Evidence<'_> {
    /// Whether the trial ended before its time.
    pub fn is_cut(&self) -> bool {
        !self.trial.facts.complete || !self.trial.facts.interrupted().is_empty()
    }

    /// The open schedule, if the load is one.
    pub fn schedule(&self) -> Option<&Schedule> {
        match &self.trial.setting.load.arrivals {
            Arrivals::Open { schedule } => Some(schedule),
            Arrivals::Closed { .. } => None,
        }
    }

    /// Whether the plan itself changes the load during the window.
    pub fn load_changes(&self) -> bool {
        match &self.trial.setting.load.arrivals {
            Arrivals::Open { schedule } => matches!(
                schedule,
                Schedule::Ramp { .. } | Schedule::Steps { .. } | Schedule::Trace { .. }
            ),
            Arrivals::Closed { steps, .. } => steps.len() > 1,
        }
    }
    /// Why response times may change through the window without anything being wrong; `None` where they should stay.
    pub fn moves_by_plan(&self) -> Option<&'static str> {
        if self.load_changes() {
            return Some("the plan changes the load during the window");
        }
        if !self.trial.setting.faults.is_empty() {
            return Some("the plan injects faults during the window");
        }
        self.is_saturated.then_some("the load is declared to be more than the system serves")
    }

    /// How response times change through the window, although the load stays the same.
    pub fn change(&self) -> Option<Change> {
        match self.moves_by_plan() {
            Some(_) => None,
            None => Levels::of(self.response)?.change(),
        }
    }
}
