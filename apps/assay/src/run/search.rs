//! The trials of a search: each answer decides which one is next, and the plan in the run folder grows with them.

use std::time::Duration;

use model::plan::SearchPlan;
use model::quantity::show_duration;
use search::Search;

use super::{Run, one};
use crate::systems;
use crate::terminal::say;

/// Runs trials until the search ends or the user interrupts it.
pub fn trials(run: &Run<'_>, wanted: &SearchPlan) -> Result<(), String> {
    say!(
        "assay: search from {}/s: trials of {} until one fails, then of {}; the last {} confirm the result",
        wanted.from_per_s,
        show_duration(wanted.bracket),
        show_duration(wanted.hold),
        wanted.confirmations
    );
    let mut plan = run.experiment.plan.clone();
    let mut search = Search::new(wanted);
    while let Some(ask) = search.next() {
        let (setting, index) = plan::add_search_trial(&mut plan, ask.per_s, ask.length);
        run.folder.write_plan(&plan::redact_plan(&plan)).map_err(|error| error.to_string())?;
        one(run, &plan, plan.order.len() - 1, Duration::ZERO)?;
        if run.interrupt.is_set() {
            break;
        }
        let result = analysis::analyse_trial(run.folder, &plan, (setting, index), &systems::checks)
            .map_err(|error| error.to_string())?;
        let Some(result) = result else { break };
        search.observe(analysis::seen(&result));
    }
    Ok(())
}
