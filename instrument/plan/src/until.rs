//! The final stages that an experiment names, against what its system declares: a stage that is not on the ladder, and one
//! that a stream cannot reach on its way, are mistakes where they are written.

use model::options::{Options, Span, Value};
use model::plan::SettingPlan;

use crate::promise;
use crate::table::Reading;

/// Where a final stage may be written.
const PLACES: [&str; 3] = ["measure.until", "load.until", "probe.until"];

/// Checks one setting, whose tree is `tree`. What its system declares may be unknown; that it cannot be built is told
/// elsewhere.
pub(crate) fn check(tree: &Options, setting: &SettingPlan, reading: &mut Reading<'_>) {
    let Some(names) = (reading.outside.names)(setting) else { return };
    let before = reading.problems.list.len();
    for written in PLACES.iter().filter_map(|path| tree.get(path)) {
        if let Value::String(until) = &written.value
            && let Err(mistake) = (reading.outside.check_stage)(until, &names)
        {
            promise::add_mistake(written.span, until, mistake, reading);
        }
    }
    if reading.problems.list.len() > before {
        return;
    }
    let ends = setting.final_stages(&names.stages);
    let mut streams = vec![("load", ends.load, &names.load_reaches)];
    streams.extend(setting.probe.is_some().then_some(("probe", ends.probe, &names.probe_reaches)));
    for (stream, end, reaches) in streams {
        let last = names.stages.iter().position(|stage| stage == reaches);
        if last.is_none_or(|last| end <= last) {
            continue;
        }
        let message = format!(
            "the transactions of [{stream}] get no further than `{reaches}` on their way here, and would never be \
             `{}`, which counts as committed",
            names.stages[end]
        );
        let help = format!("write {stream}.until = \"{reaches}\", or let them go another way");
        reading.problems.add(place(tree, stream), message, Some(help));
    }
}

/// Where a stream's final stage is written, or would be.
fn place(tree: &Options, stream: &str) -> Span {
    let own = format!("{stream}.until");
    let written = [own.as_str(), PLACES[0], stream].into_iter().find_map(|path| tree.get(path));
    written.map_or(tree.span, |written| written.span)
}
