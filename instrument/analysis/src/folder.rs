//! The way from a run folder to a result: reads each trial's files once and hands them on. The only file of
//! this crate that does I/O, and all of it through `record`.

use model::check::Check;
use model::facts::{Environment, MetricSample, TrialFacts};
use model::picture::{RunPicture, TrialPicture};
use model::plan::{Plan, SettingPlan};
use model::result::{RunResult, TrialResult};
use record::{Counted, CountedTrial, RecordError, RunFolder, Share, TrialFolder};

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
    /// The counts of readers of shares are of other rows.
    #[error(
        "the parts are of other rows than those in {path}: make them of this run, or of a copy, with assay report --part"
    )]
    Foreign {
        /// The folder, relative to the run.
        path: String,
    },
    /// Not each share once.
    #[error("expected each part once, as 1/2 and 2/2, got {parts}")]
    Parts {
        /// Those that there are.
        parts: String,
    },
}

/// Readers of shares, put in order; an error says which are missing or twice.
fn in_order(mut counted: Vec<Counted>) -> Result<Vec<Counted>, AnalysisError> {
    counted.sort_by_key(|one| one.share.number());
    let of = counted.first().map_or(0, |one| one.share.of());
    let is_each = counted
        .iter()
        .zip(1..)
        .all(|(one, number)| one.share.number() == number && one.share.of() == of);
    if is_each && counted.len() as u64 == u64::from(of) {
        return Ok(counted);
    }
    let parts: Vec<String> = counted.iter().map(|one| one.share.to_string()).collect();
    Err(AnalysisError::Parts { parts: parts.join(", ") })
}

/// The checks that the system of the given kind brings.
pub type ChecksOf<'a> = &'a dyn Fn(&str) -> &'static [Check];

/// The result of the run in a folder: a pure function of its files, so a copy gives the same bytes.
///
/// # Errors
/// When a file that must be there is missing or damaged. A trial whose rows cannot be read at all is an error;
/// one whose record was cut off is reported as far as it goes, and its `complete` audit says so.
pub fn analyse(run: &RunFolder, checks: ChecksOf<'_>) -> Result<RunResult, AnalysisError> {
    Ok(analyse_with_picture(run, checks, Vec::new())?.0)
}

/// The result, and what the page draws beside it, in one pass over the rows; or of what all readers of shares have counted
/// ([`count`]), where there are any, which gives the same.
///
/// # Errors
/// Those of [`analyse`], and where these are not all of this run's.
pub fn analyse_with_picture(
    run: &RunFolder,
    checks: ChecksOf<'_>,
    counted: Vec<Counted>,
) -> Result<(RunResult, RunPicture), AnalysisError> {
    let counted = in_order(counted)?;
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
        let Some(read) = Read::trial(&plan, &environment, folder, checks, &counted)? else {
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
    let read = Read::trial(plan, &run.environment()?, folder, checks, &[])?;
    Ok(read.map(|read| read.result))
}

/// Counts a share of the rows of a run, for [`analyse_with_picture`] to merge. A trial of which rows must be read one after
/// another, for flows of users or a check of its system's, or whose rows are in a log still, is left to that.
///
/// # Errors
/// Those of [`analyse`].
pub fn count(
    run: &RunFolder,
    share: Share,
    checks: ChecksOf<'_>,
) -> Result<Counted, AnalysisError> {
    let (plan, environment) = (run.plan()?, run.environment()?);
    let mut trials = Vec::new();
    for folder in run.trials()? {
        let Some(opened) = Opened::trial(&plan, &folder)? else { continue };
        let Some(rows) = folder.rows_mark()? else { continue };
        let mut analysis = opened.start(&environment, checks)?;
        if analysis.can_be_split() {
            folder.for_each_batch_of(share, |rows| analysis.rows(rows))?;
            let path = folder.relative_path().to_owned();
            trials.push(CountedTrial { path, rows, counts: analysis.counts() });
        }
    }
    Ok(Counted { share, trials })
}

/// A trial's folder with all but its rows and its ledger.
struct Opened<'a> {
    folder: &'a TrialFolder,
    /// Index in the plan.
    index: usize,
    setting: &'a SettingPlan,
    applies: SettingInput,
    facts: TrialFacts,
    metrics: Vec<MetricSample>,
}

impl<'a> Opened<'a> {
    /// `None` if the trial ended before it wrote down what it is.
    fn trial(plan: &'a Plan, folder: &'a TrialFolder) -> Result<Option<Self>, AnalysisError> {
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
        Ok(Some(Self { folder, index, setting, applies, facts, metrics: folder.metrics()? }))
    }

    /// Before the first row.
    fn start<'b>(
        &'b self,
        environment: &'b Environment,
        checks: ChecksOf<'_>,
    ) -> Result<TrialAnalysis<'b>, AnalysisError> {
        let Self { folder, setting, facts, .. } = self;
        let input = TrialInput {
            path: folder.relative_path().to_owned(),
            setting,
            thresholds: &self.applies.thresholds,
            percentiles: &self.applies.percentiles,
            facts,
            metrics: &self.metrics,
            environment,
            dropped_bytes: 0,
        };
        let checks = Checks::start(checks(&setting.system.kind), setting, facts);
        let mut analysis = TrialAnalysis::new(input, checks);
        if !facts.declared.node_stages.is_empty() {
            analysis.spans(&folder.spans(&facts.declared.node_stages)?);
        }
        Ok(analysis)
    }

    /// With what readers of shares have counted; `None`: they have left this trial, or what they have does not go together.
    fn merged<'b>(
        &'b self,
        environment: &'b Environment,
        checks: ChecksOf<'_>,
        counted: &[Counted],
    ) -> Result<Option<TrialAnalysis<'b>>, AnalysisError> {
        if counted.is_empty() {
            return Ok(None);
        }
        let path = self.folder.relative_path();
        let parts: Vec<&CountedTrial> = counted
            .iter()
            .filter_map(|one| one.trials.iter().find(|trial| trial.path == path))
            .collect();
        let (mark, mut analysis) = (self.folder.rows_mark()?, self.start(environment, checks)?);
        if mark.is_none() || !analysis.can_be_split() {
            return Ok(None);
        }
        if parts.len() < counted.len() || parts.iter().any(|part| Some(part.rows) != mark) {
            return Err(AnalysisError::Foreign { path: path.to_owned() });
        }
        let dropped = self.folder.check_rows()?;
        analysis.dropped(dropped);
        Ok(parts.iter().all(|part| analysis.add(&part.counts)).then_some(analysis))
    }
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
        counted: &[Counted],
    ) -> Result<Option<Self>, AnalysisError> {
        let Some(opened) = Opened::trial(plan, folder)? else { return Ok(None) };
        let facts = &opened.facts;
        let mut analysis = match opened.merged(environment, checks, counted)? {
            Some(merged) => merged,
            None => {
                let mut analysis = opened.start(environment, checks)?;
                match folder.for_each_batch(|rows| analysis.rows(rows)) {
                    // Killed before the first row: there is nothing to read, and `complete` says so.
                    Err(RecordError::Missing { .. }) if !facts.complete => {}
                    read => analysis.dropped(read?.dropped_bytes),
                }
                analysis
            }
        };
        if !facts.declared.node_stages.is_empty() {
            folder.for_each_stage_second(|row| analysis.stage_second(row))?;
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
            setting: opened.index,
            result,
            picture,
            interrupted,
            fidelity: opened.facts.declared.fidelity,
        }))
    }
}
