//! The way from a run folder to a result: reads each trial's files once and hands them on. The only file of
//! this crate that does I/O, and all of it through `record`.

use model::check::Check;
use model::facts::Environment;
use model::picture::{RunPicture, TrialPicture};
use model::plan::Plan;
use model::result::{RunResult, TrialResult};
use record::{RecordError, RunFolder, TrialFolder};

use crate::judge::checks::Checks;
use crate::run::{RunInput, SettingInput, summarise};
use crate::trial::{TrialAnalysis, TrialInput};

/// Why a run could not be analysed.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A file of the run folder could not be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A trial's folder is of a setting that the plan does not have.
    #[error(
        "the trial in {path} is of the setting `{setting}`, which plan.toml does not have; was a file copied by hand?"
    )]
    Stray {
        /// The folder, relative to the run.
        path: String,
        /// The setting's key.
        setting: String,
    },
}

/// The checks that the system of the given kind brings.
pub type ChecksOf<'a> = &'a dyn Fn(&str) -> &'static [Check];

/// The result of the run in a folder: a pure function of its files, so a copy gives the same bytes.
///
/// # Errors
/// When a file that must be there is missing or damaged. A trial whose rows cannot be read at all is an error;
/// one whose record was cut off is reported as far as it goes, and its `complete` audit says so.
pub fn analyse(run: &RunFolder, checks: ChecksOf<'_>) -> Result<RunResult, AnalysisError> {
    Ok(analyse_with_picture(run, checks)?.0)
}

/// The result, and what the page draws beside it, in one pass over the rows.
///
/// # Errors
/// Those of [`analyse`].
pub fn analyse_with_picture(
    run: &RunFolder,
    checks: ChecksOf<'_>,
) -> Result<(RunResult, RunPicture), AnalysisError> {
    let plan = run.plan()?;
    let environment = run.environment()?;
    let folders = run.trials()?;
    let planned: usize = plan
        .settings
        .iter()
        .map(|setting| usize::try_from(setting.trials).unwrap_or(usize::MAX))
        .sum();
    let mut interrupted = folders.len() < planned;
    let mut fidelity: Vec<String> = Vec::new();
    let mut trials = Vec::with_capacity(folders.len());
    let mut pictures = Vec::with_capacity(folders.len());
    for folder in &folders {
        let Some(read) = Read::trial(&plan, &environment, folder, checks)? else {
            interrupted = true;
            continue;
        };
        interrupted |= read.interrupted;
        for switch in read.fidelity {
            if !fidelity.contains(&switch) {
                fidelity.push(switch);
            }
        }
        pictures.push((read.setting, read.result.trial, read.picture));
        trials.push((read.setting, read.result));
    }
    pictures.sort_by_key(|(setting, trial, _)| (*setting, *trial));
    let picture = RunPicture {
        experiment: run.experiment()?,
        plan: run.plan_text()?,
        axes: plan.axes.clone(),
        files: run.raw_files()?,
        trials: pictures.into_iter().map(|(_, _, picture)| picture).collect(),
    };
    let input = RunInput { plan: &plan, environment: &environment, interrupted, fidelity };
    Ok((summarise(&input, trials), picture))
}

/// The result of one trial of a run that goes on.
///
/// # Errors
/// When a file that must be there is missing or damaged.
pub fn analyse_trial(
    run: &RunFolder,
    plan: &Plan,
    (setting, trial): (usize, u32),
    checks: ChecksOf<'_>,
) -> Result<Option<TrialResult>, AnalysisError> {
    let key = &plan.settings[setting].key;
    let folders = run.trials()?;
    let is_it = |folder: &&TrialFolder| folder.setting() == key && folder.trial() == trial;
    let Some(folder) = folders.iter().find(is_it) else { return Ok(None) };
    let read = Read::trial(plan, &run.environment()?, folder, checks)?;
    Ok(read.map(|read| read.result))
}

/// One trial, read from its folder.
struct Read {
    /// Index in the plan.
    setting: usize,
    result: TrialResult,
    picture: TrialPicture,
    interrupted: bool,
    fidelity: Vec<String>,
}

impl Read {
    /// `None` if the trial ended before it wrote down what it is.
    fn trial(
        plan: &Plan,
        environment: &Environment,
        folder: &TrialFolder,
        checks: ChecksOf<'_>,
    ) -> Result<Option<Self>, AnalysisError> {
        let index = plan.settings.iter().position(|setting| setting.key == folder.setting());
        let Some(index) = index else {
            return Err(AnalysisError::Stray {
                path: folder.relative_path().to_owned(),
                setting: folder.setting().to_owned(),
            });
        };
        let setting = &plan.settings[index];
        let applies = SettingInput::of(plan, setting);
        let facts = match folder.facts() {
            Err(RecordError::Missing { .. }) => return Ok(None),
            facts => facts?,
        };
        let metrics = folder.metrics()?;
        let input = TrialInput {
            path: folder.relative_path().to_owned(),
            setting,
            thresholds: &applies.thresholds,
            percentiles: &applies.percentiles,
            facts: &facts,
            metrics: &metrics,
            environment,
            dropped_bytes: 0,
        };
        let checks = Checks::start(checks(&setting.system.kind), setting, &facts);
        let mut analysis = TrialAnalysis::new(input, checks);
        if !facts.declared.node_stages.is_empty() {
            analysis.spans(&folder.spans(&facts.declared.node_stages)?);
            folder.for_each_stage_second(|row| analysis.stage_second(row))?;
        }
        match folder.for_each_batch(|rows| analysis.rows(rows)) {
            // Killed before the first row: there is nothing to read, and `complete` says so.
            Err(RecordError::Missing { .. }) if !facts.complete => {}
            read => analysis.dropped(read?.dropped_bytes),
        }
        if analysis.reads_observations() {
            folder.for_each_observation(|observation| analysis.observation(observation))?;
        }
        if facts.after.ledger.read {
            folder.for_each_ledger_entry(|entry, content| analysis.entry(entry, content))?;
        }
        let (result, picture) = analysis.finish_with_picture(&folder.events()?, &folder.faults()?);
        let is_ended_early = facts.load.ended_early.is_some();
        let is_cut = !facts.interrupted().is_empty() && !is_ended_early;
        let interrupted = !facts.complete || is_cut;
        Ok(Some(Self {
            setting: index,
            result,
            picture,
            interrupted,
            fidelity: facts.declared.fidelity,
        }))
    }
}
