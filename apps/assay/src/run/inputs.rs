//! The inputs of a trial: all that is known before it begins.

use model::Seed;
use model::facts::Calibration;
use model::plan::{AbortPlan, Plan, SettingPlan};
use plan::Source;
use record::RunFolder;
use sut::System;

use super::beside::Beside;
use super::metrics::Metrics;
use super::orders::Orders;
use super::progress::{Progress, Title};
use crate::interrupt::Interrupt;

/// The inputs of a trial.
pub struct Trial<'a> {
    /// The run folder.
    pub run: &'a RunFolder,
    /// The plan.
    pub setting: &'a SettingPlan,
    /// Which execution of it, from 0.
    pub index: u32,
    /// The trial's seed.
    pub seed: Seed,
    /// The system, built for this trial.
    pub system: &'a dyn System,
    /// The texts that places in the plan point into.
    pub sources: &'a [Source],
    /// Where the load goes, without what a URL may say of a user.
    pub targets: Vec<String>,
    /// The calibration's result.
    pub calibration: Option<Calibration>,
    /// Signals.
    pub interrupt: &'a Interrupt,
    /// Orders of other processes.
    pub control: &'a Orders,
    /// The display.
    pub progress: &'a Progress,
    /// Processes and metrics of a target that Assay has not started.
    pub beside: &'a Beside,
    /// Where its metrics are served, if they are.
    pub metrics: Option<&'a Metrics>,
    /// Thresholds that may end it early.
    pub aborts: Vec<AbortPlan>,
    /// Thresholds that settle it before its end.
    pub settled: Vec<String>,
    /// The trial's line on the display.
    pub title: Title,
    /// Whether the pass over every kind before the load is made.
    pub has_preflight: bool,
    /// The mark that its transactions carry.
    pub run_mark: u64,
    /// The plan of the run.
    pub plan: &'a Plan,
}
