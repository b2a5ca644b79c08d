//! The numbers and the picture of a trial that goes on, of the rows that it has given so far. It is the analysis of a record that
//! was cut off here, without what only an end can decide: it judges nothing, and the rows are not read again.

use model::fault::FaultEvent;
use model::picture::TrialPicture;
use model::plan::Plan;
use model::result::{Exit, RunResult, TimelineColumn, TrialResult, Verdict};

use super::TrialAnalysis;
use crate::figures::grid::SECOND;
use crate::figures::part::Part as _;
use crate::judge::Limits;
use crate::judge::checks::Checks;
use crate::run::{RunInput, summarise};

/// The reason of a verdict that cannot be given yet.
const GOES_ON: &str = "the run goes on; nothing is judged before its end";

impl TrialAnalysis<'_> {
    /// The numbers until now; further rows may follow. It costs a copy of what was counted.
    #[must_use]
    pub fn so_far(&self, fault_events: &[FaultEvent]) -> (TrialResult, TrialPicture) {
        let trial = self.trial;
        let mut now = TrialAnalysis {
            trial,
            path: self.path.clone(),
            environment: self.environment,
            dropped_bytes: self.dropped_bytes,
            slots: self.slots,
            figures: self.figures.clone(),
            limits: Limits::of_trial(&trial),
            checks: Checks::default(),
        };
        let mut result = now.summary();
        now.figures.add_to(&trial, &mut result);
        let beside = now.beside(&mut result, fault_events);
        (result.verdict, result.reason) = (Verdict::Undecided, GOES_ON.to_owned());
        let columns = until_now(&mut result);
        let end = result.timeline.end_ns();
        let mut picture = now.picture(&result, &beside, &[]);
        picture.density.truncate(columns);
        picture.bands.retain(|band| band.from_ns < end);
        picture.bands.iter_mut().for_each(|band| band.to_ns = band.to_ns.min(end));
        (result, picture)
    }
}

/// Leaves out the time that has not come: nothing happened in it, and a rate of zero would be wrong. Gives how many columns
/// there are.
fn until_now(result: &mut TrialResult) -> usize {
    let timeline = &mut result.timeline;
    let is_past =
        |of: &TimelineColumn| of.offered + of.sent + of.committed > 0 || !of.failed.is_empty();
    let columns = timeline.columns.iter().rposition(is_past).map_or(0, |last| last + 1);
    if columns < timeline.columns.len() {
        timeline.columns.truncate(columns);
        timeline.last_ns = timeline.width_ns;
    }
    let end = timeline.end_ns();
    result.seconds.retain(|of| of.second.saturating_mul(SECOND) < end);
    columns
}

/// The result of a run that goes on, of the trials that have given rows: (setting index in the plan, result).
#[must_use]
pub fn summarise_so_far(input: &RunInput<'_>, trials: Vec<(usize, TrialResult)>) -> RunResult {
    // The answer of a search is its end's.
    let plan = Plan { search: None, ..input.plan.clone() };
    let input = RunInput { plan: &plan, fidelity: input.fidelity.clone(), ..*input };
    let mut result = summarise(&input, trials);
    (result.verdict, result.reason) = (Verdict::Undecided, GOES_ON.to_owned());
    result.exit_code = Exit::CannotTell as i32;
    "the run has not ended".clone_into(&mut result.exit_meaning);
    result.audits.clear();
    result.statements.clear();
    result.knee.clear();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Trial;
    use crate::trial::TrialInput;

    /// Claim: the numbers so far are those of the record that ends there, they are not judged, and asking for them changes
    /// nothing of those at the end.
    #[test]
    fn so_far_is_the_record_that_ends_there() {
        let mut trial = Trial::clean();
        trial.facts.complete = false;
        let input = |trial: &'static Trial| TrialInput {
            path: "settings/default/trial-0".into(),
            setting: &trial.setting,
            thresholds: &trial.thresholds,
            percentiles: &trial.percentiles,
            facts: &trial.facts,
            metrics: &trial.metrics,
            environment: &trial.environment,
            dropped_bytes: 0,
        };
        let trial: &'static Trial = Box::leak(Box::new(trial));
        let start = || TrialAnalysis::new(input(trial), Checks::default());
        let of_rows = |rows: &[model::Row]| {
            let mut analysis = start();
            analysis.rows(rows);
            analysis.finish()
        };
        let (first, second) = trial.rows.split_at(4_000);
        let mut analysis = start();
        analysis.rows(first);
        let (now, picture) = analysis.so_far(&[]);
        analysis.rows(second);
        let (end, cut, whole) = (analysis.finish(), of_rows(first), of_rows(&trial.rows));
        let numbers = |of: &TrialResult| {
            let TrialResult { counts, rates, latency, window_ns, .. } = of;
            format!("{counts:?} {rates:?} {latency:?} {window_ns}")
        };
        assert_eq!(numbers(&now), numbers(&cut));
        assert_eq!((now.counts.committed, now.window_ns), (4_000, 4_000_000_000));
        let columns = now.timeline.columns.len();
        assert_eq!(now.timeline.columns, cut.timeline.columns[..columns]);
        let newest = first.iter().map(|row| row.end).max().expect("there are rows");
        let until = now.timeline.end_ns();
        assert!((until - now.timeline.width_ns..until).contains(&newest), "{newest} of {until} ns");
        assert_eq!(now.seconds.last().map(|of| of.second), Some(4));
        assert_eq!(picture.density.len(), columns);
        assert_eq!(numbers(&end), numbers(&whole));
        assert_eq!(end.timeline.columns, whole.timeline.columns);
        assert_eq!(end.audits, whole.audits);
        assert!(now.audits.is_empty() && now.thresholds.is_empty() && now.checks.is_empty());
        assert_eq!((now.verdict, now.reason.as_str()), (Verdict::Undecided, GOES_ON));
        assert_eq!(picture.path, "settings/default/trial-0");
    }
}
