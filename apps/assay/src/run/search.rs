//! The trials of a search: each answer decides which one is next, and the plan in the run folder grows with them. A search
//! that was stopped goes on from its folder: whole trials are replayed, and the one that was cut short is run anew.

use std::time::Duration;

use model::plan::SearchPlan;
use model::quantity::show_duration;
use search::Search;

use super::{Run, one};
use crate::systems;
use crate::terminal::say;

/// Runs trials until the search ends or the user interrupts it.
pub fn trials(run: &Run<'_>, wanted: &SearchPlan) -> Result<(), String> {
    let words = |error: record::RecordError| error.to_string();
    let mut plan = run.experiment.plan.clone();
    let mut search = Search::new(wanted);
    let warmup = plan.settings.first().map_or(Duration::ZERO, |setting| setting.load.warmup);
    say!(
        "assay: search from {}/s: trials of {} until one fails, then of {}; the last {} confirm the result. About {} if \
         the limit is within sixteen times that rate; Ctrl-C stops it, and assay run --resume {} goes on",
        wanted.from_per_s,
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
    for position in 0.. {
        let Some(ask) = search.next() else { break };
        let (setting, index) = match plan.order.get(position) {
            Some(of) => *of,
            None => {
                let of = plan::add_search_trial(&mut plan, ask.per_s, ask.length);
                run.folder.write_plan(&plan::redact_plan(&plan)).map_err(words)?;
                of
            }
        };
        let key = plan.settings[setting].key.clone();
        if !run.folder.is_whole(&key, index).map_err(words)? {
            run.folder.forget_trial(&key, index).map_err(words)?;
            one(
                run,
                &plan,
                position,
                search.remaining(warmup).saturating_sub(ask.length + warmup),
            )?;
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
            "assay: search: trial {}: {}/s for {}: {}{}",
            position + 1,
            ask.per_s,
            show_duration(ask.length),
            seen.class.word(),
            between(&search)
        );
    }
    Ok(())
}

/// The bounds so far.
fn between(search: &Search) -> String {
    match (search.kept_per_s(), search.refuted_per_s()) {
        (Some(low), Some(high)) => format!("; the limit is between {low}/s and {high}/s"),
        (Some(low), None) => format!("; the limit is above {low}/s"),
        (None, Some(high)) => format!("; the limit is below {high}/s"),
        (None, None) => String::new(),
    }
}
