//! The trials of a search: each answer decides which one is next, and the plan in the run folder grows with them. A search
//! that was stopped goes on from its folder: whole trials are replayed, and the one that was cut short is run anew.

use std::time::Duration;

use model::plan::{Plan, SearchDeploy, SearchKey, SearchPlan};
use model::quantity::show_duration;
use search::Search;

use super::rest::Rests;
use super::trial::{self, Deployed};
use super::{Run, with_trial};
use crate::systems;
use crate::terminal::say;

/// Runs trials until the search ends or the user interrupts it.
pub fn trials(run: &Run<'_>, wanted: &SearchPlan) -> Result<(), String> {
    let words = |error: record::RecordError| error.to_string();
    let mut plan = run.experiment.plan.clone();
    let mut search = Search::new(wanted);
    let warmup = plan.settings.first().map_or(Duration::ZERO, |setting| setting.load.warmup);
    say!(
        "assay: search from {}: trials of {} until one fails, then of {}; the last {} confirm the result. About {} if \
         the limit is within sixteen times that; Ctrl-C stops it, and assay run --resume {} goes on",
        wanted.find.with_unit(wanted.from),
        show_duration(wanted.bracket),
        show_duration(wanted.hold),
        wanted.confirmations,
        show_duration(search.remaining(warmup)),
        run.folder.path().display()
    );
    // The pattern of all settings is no trial.
    if plan.axes.is_empty() {
        plan.order.clear();
    }
    let is_once = wanted.deploy == SearchDeploy::Once;
    let mut kept = Kept { is_once, deployed: None, rests: Rests::default() };
    for position in 0.. {
        let Some(ask) = search.next() else { break };
        let (setting, index) = match plan.order.get(position) {
            Some(of) if ask.is_of(wanted.find, &plan.settings[of.0].load) => *of,
            Some(_) => {
                return Err(format!(
                    "trial {} in {} is not the one that this version of assay asks for ({} for {}): another version began the \
                     search; start it anew, or go on with that version",
                    position + 1,
                    run.folder.path().display(),
                    wanted.find.with_unit(ask.value),
                    show_duration(ask.length)
                ));
            }
            None => {
                let of = plan::add_search_trial(&mut plan, ask.value, ask.length);
                run.folder.write_plan(&plan::redact_plan(&plan)).map_err(words)?;
                of
            }
        };
        let key = plan.settings[setting].key.clone();
        if !run.folder.is_whole(&key, index).map_err(words)? {
            run.folder.forget_trial(&key, index).map_err(words)?;
            let after = search.remaining(warmup).saturating_sub(ask.length + warmup);
            kept.one(run, &plan, position, after)?;
        }
        if run.interrupt.is_set() {
            break;
        }
        let result = analysis::analyse_trial(run.folder, &plan, (setting, index), &systems::checks)
            .map_err(|error| error.to_string())?;
        let Some(result) = result else { break };
        let seen = analysis::seen(&result);
        search.observe(seen);
        say!(
            "assay: search: trial {}: {} for {}: {}{}",
            position + 1,
            wanted.find.with_unit(ask.value),
            show_duration(ask.length),
            seen.class.word(),
            between(&search, wanted.find)
        );
    }
    kept.stop(run, &plan)
}

/// The system that outlives a trial of the search: one that was there before, or that is started once.
struct Kept {
    is_once: bool,
    /// The system that was started once.
    deployed: Option<Deployed>,
    rests: Rests,
}

impl Kept {
    /// The trial at a place of the plan's order.
    fn one(
        &mut self,
        run: &Run<'_>,
        plan: &Plan,
        position: usize,
        after: Duration,
    ) -> Result<(), String> {
        with_trial(run, plan, position, after, |trial| {
            // A system that was there before the search is reached anew by each trial, and stays as the last one left it.
            if !self.is_once || !trial.targets.is_empty() {
                let rests = (!trial.targets.is_empty()).then_some(&mut self.rests);
                return trial::run_rested(trial, run.agents, rests);
            }
            let deployed = match &mut self.deployed {
                Some(deployed) => deployed,
                none if trial.system.outlives_trials() => {
                    none.insert(Deployed::start(trial, run.folder.path().join("nodes"))?)
                }
                _ => {
                    return Err(format!(
                        "`search.deploy = \"once\"`: the system `{}` has to be started for each trial; remove search.deploy",
                        trial.setting.system.kind
                    ));
                }
            };
            trial::run_on(trial, run.agents, deployed, Some(&mut self.rests))
        })
    }

    /// Ends the system that was started once.
    fn stop(self, run: &Run<'_>, plan: &Plan) -> Result<(), String> {
        match (self.deployed, plan.order.len().checked_sub(1)) {
            (Some(deployed), Some(last)) => {
                with_trial(run, plan, last, Duration::ZERO, |trial| deployed.stop(trial))
            }
            _ => Ok(()),
        }
    }
}

/// The bounds so far.
fn between(search: &Search, find: SearchKey) -> String {
    let show = |value: f64| find.with_unit(value);
    match (search.kept(), search.refuted()) {
        (Some(low), Some(high)) => {
            format!("; the limit is between {} and {}", show(low), show(high))
        }
        (Some(low), None) => format!("; the limit is above {}", show(low)),
        (None, Some(high)) => format!("; the limit is below {}", show(high)),
        (None, None) => String::new(),
    }
}
