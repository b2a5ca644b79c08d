//! A load in steps, concluded step by step: what each was offered, what the system got through in it, and how that goes
//! with the load: up to the knee, over it, and back.
//!
//! A transaction that is due in a step counts as the step's whenever it ends; goodput is by the time of the mark, so that it is never more
//! than the system did.

use std::ops::Range;
use std::time::Duration;

use model::plan::{Arrivals, LoadPlan, Schedule};
use model::quantity::show_ns;
use model::result::{NodeStagesResult, StepResult, StepsResult, TrialResult};
use model::{FinalStages, NO_STAMP, Row, Stamp};
use stats::SparseHistogram;
use stats::carry::Carry;

use crate::figures::grid::SECOND;
use crate::figures::known::Known;
use crate::figures::part::Part;
use crate::figures::share::percent;
use crate::figures::tally::Tally;

/// Keeps up: this share of what was offered, at the time.
const KEEPS_UP: f64 = 0.98;
/// Or this share of it, if [`KEEPS_UP`] of what was due was committed in the end.
const NEARLY: f64 = 0.9;
/// Goodput at the highest load below this share of the most there was is a collapse.
const COLLAPSE: f64 = 0.8;
/// Cells in which marks are counted: a hundred thousand, 800 kB, and none shorter than a millisecond.
const CELLS_MAX: i64 = 100_000;
const CELL_NS_MIN: i64 = 1_000_000;

/// A step of the plan.
#[derive(Clone)]
struct Planned {
    length: Duration,
    generators: Option<u64>,
    clients: Option<u64>,
    per_s: Option<f64>,
}

fn planned(load: &LoadPlan) -> Vec<Planned> {
    match &load.arrivals {
        Arrivals::Open { schedule: Schedule::Steps { steps } } => steps
            .iter()
            .map(|step| Planned {
                length: step.length,
                generators: (step.generators > 0).then_some(step.generators),
                clients: None,
                per_s: Some(step.rate.as_per_second()),
            })
            .collect(),
        Arrivals::Closed { steps, .. } => steps
            .iter()
            .map(|step| Planned {
                length: step.length,
                generators: None,
                clients: Some(step.clients.into()),
                per_s: None,
            })
            .collect(),
        Arrivals::Open { .. } => Vec::new(),
    }
}

/// A step while rows go by.
#[derive(Clone)]
struct Step {
    planned: Planned,
    span: Range<Stamp>,
    /// Of the main load.
    tally: Tally,
    /// Of the measured stream, to its final stage.
    response: SparseHistogram,
    /// Of the main load, to its own, where a probe is measured.
    of_load: SparseHistogram,
    /// Due less ended, of the main load.
    change: i64,
}

/// The steps of a trial.
#[derive(Clone)]
pub(crate) struct Steps {
    steps: Vec<Step>,
    /// The step that was found last: rows come nearly in the order of time.
    last: usize,
    measured: u8,
    final_stages: FinalStages,
    /// Outstanding when the first step began.
    before: i64,
    start: Stamp,
    cell_ns: i64,
    /// Marks of the final stage of the main load, by cell from the start of the first step.
    marks: Vec<u64>,
}

impl Part for Option<Steps> {
    fn of_trial(trial: &Known<'_>) -> Self {
        Steps::new(&trial.setting.load, trial.stream, trial.ends, trial.grid.start, trial.last)
    }

    fn block(&mut self, rows: &[&Row]) {
        if let Some(steps) = self {
            rows.iter().for_each(|row| steps.row(row));
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        let Some(mine) = self else { return };
        for step in &mut mine.steps {
            step.tally.carry(it);
            step.response.carry(it);
            step.of_load.carry(it);
            it.sum(&mut step.change);
        }
        it.sum(&mut mine.before);
        it.sums(&mut mine.marks);
    }

    fn add_to(&mut self, _trial: &Known<'_>, result: &mut TrialResult) {
        let nodes = result.node_stages.as_ref();
        result.steps = self.as_ref().map(|steps| steps.result(nodes));
    }
}

impl Steps {
    /// `None` where the load has no steps. The first begins at `start`, and nothing later than `end` counts; `measured` is
    /// the stream whose response times are taken.
    pub fn new(
        load: &LoadPlan,
        measured: u8,
        final_stages: FinalStages,
        start: Stamp,
        end: Stamp,
    ) -> Option<Self> {
        let planned = planned(load);
        if planned.is_empty() || end <= start {
            return None;
        }
        let mut from = start;
        let steps = planned.into_iter().map(|planned| {
            let begin = from;
            from =
                from.saturating_add(i64::try_from(planned.length.as_nanos()).unwrap_or(i64::MAX));
            Step {
                planned,
                span: begin..from,
                tally: Tally::default(),
                response: SparseHistogram::default(),
                of_load: SparseHistogram::default(),
                change: 0,
            }
        });
        let cell_ns = ((end - start) / CELLS_MAX + 1).max(CELL_NS_MIN);
        let cells = usize::try_from((end - start) / cell_ns + 1).expect("bounded by CELLS_MAX");
        Some(Self {
            steps: steps.collect(),
            last: 0,
            measured,
            final_stages,
            before: 0,
            start,
            cell_ns,
            marks: vec![0; cells],
        })
    }

    /// The step in which a stamp lies.
    fn of(&mut self, stamp: Stamp) -> Option<usize> {
        if !self.steps[self.last].span.contains(&stamp) {
            let after = self.steps.partition_point(|step| step.span.end <= stamp);
            self.steps.get(after).filter(|step| step.span.contains(&stamp))?;
            self.last = after;
        }
        Some(self.last)
    }

    /// Adds a plausible row.
    pub fn row(&mut self, row: &Row) {
        let mark = row.marks[self.final_stages.of(row.stream)];
        let due = self.of(row.due);
        if row.stream == 0 {
            match due {
                Some(step) => {
                    self.steps[step].tally.row(row);
                    self.steps[step].change += 1;
                }
                None if row.due < self.start => self.before += 1,
                None => {}
            }
            match self.of(row.end) {
                Some(step) => self.steps[step].change -= 1,
                None if row.end < self.start => self.before -= 1,
                None => {}
            }
            let cell = (mark != NO_STAMP && mark >= self.start)
                .then(|| usize::try_from((mark - self.start) / self.cell_ns).ok());
            if let Some(count) = cell.flatten().and_then(|cell| self.marks.get_mut(cell)) {
                *count += 1;
            }
        }
        if let (Some(step), Some(ns)) = (due, row.response_ns(self.final_stages.of(row.stream))) {
            let step = &mut self.steps[step];
            match row.stream == self.measured {
                true => step.response.record(ns),
                false => step.of_load.record(ns),
            }
        }
    }

    /// Marks in a span of time; what its ends cut counts by its share of the cell.
    #[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
    fn reached(&self, span: Range<Stamp>) -> f64 {
        let place = |stamp: Stamp| (stamp - self.start).max(0) as f64 / self.cell_ns as f64;
        let (from, to) = (place(span.start), place(span.end));
        let whole = |place: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "not negative"
            )]
            let index = place as usize;
            index.min(self.marks.len())
        };
        let counts = (whole(from)..self.marks.len().min(whole(to) + 1)).map(|cell| {
            let (begin, end) = (from.max(cell as f64), to.min((cell + 1) as f64));
            self.marks[cell] as f64 * (end - begin).max(0.0)
        });
        counts.sum()
    }

    /// The result; `nodes` is what nodes stamped.
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    pub fn result(&self, nodes: Option<&NodeStagesResult>) -> StepsResult {
        let mut outstanding = self.before;
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let length_ns = step.span.end - step.span.start;
            let seconds = length_ns as f64 / 1e9;
            let of_load = if self.measured == 0 { &step.response } else { &step.of_load };
            let shift = of_load.quantile(0.05).unwrap_or(0);
            let counts = step.tally.counts();
            let offered_per_s = counts.due as f64 / seconds;
            let reached = self.reached(
                step.span.start.saturating_add(shift)..step.span.end.saturating_add(shift),
            );
            let goodput_per_s = reached / seconds;
            let (kept, success) = (
                ratio(goodput_per_s, offered_per_s),
                ratio(counts.committed as f64, counts.due as f64),
            );
            outstanding += step.change;
            steps.push(StepResult {
                start_ns: step.span.start,
                length_ns,
                generators: step.planned.generators,
                clients: step.planned.clients,
                planned_per_s: step.planned.per_s,
                offered_per_s,
                goodput_per_s,
                keeps_up: kept >= KEEPS_UP || (success >= KEEPS_UP && kept >= NEARLY),
                counts,
                p50_ns: step.response.quantile(0.5),
                p99_ns: step.response.quantile(0.99),
                max_ns: step.response.moments().max(),
                outstanding,
                node_stages_per_s: nodes.map_or_else(Vec::new, |nodes| of_nodes(nodes, &step.span)),
            });
        }
        conclude(steps)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// Transactions that nodes passed in the whole seconds of a step; nothing where they were counted in longer columns.
#[expect(clippy::cast_precision_loss, reason = "rates")]
fn of_nodes(nodes: &NodeStagesResult, span: &Range<Stamp>) -> Vec<(String, f64)> {
    let column = |stamp: Stamp| (stamp - nodes.start_ns) / nodes.width_ns.max(1);
    let first = column(span.start + nodes.width_ns - 1);
    let (Ok(from), Ok(to)) = (usize::try_from(first), usize::try_from(column(span.end))) else {
        return Vec::new();
    };
    if to <= from {
        return Vec::new();
    }
    let seconds = (to - from) as f64 * nodes.width_ns as f64 / SECOND as f64;
    let of_stage = |stage: &model::result::NodeStageResult| {
        let columns = stage.columns.get(from..to.min(stage.columns.len())).unwrap_or_default();
        let count: u64 = columns.iter().map(|column| column.count).sum();
        (stage.stage.clone(), count as f64 / seconds)
    };
    nodes.stages.iter().map(of_stage).collect()
}

/// Knee, peak, collapse and recovery.
fn conclude(steps: Vec<StepResult>) -> StepsResult {
    let highest = |value: fn(&StepResult) -> f64| {
        let mut found: Option<usize> = None;
        for (index, step) in steps.iter().enumerate() {
            if found.is_none_or(|best| value(step) > value(&steps[best])) {
                found = Some(index);
            }
        }
        found.filter(|index| value(&steps[*index]) > 0.0)
    };
    let peak = highest(|step| step.goodput_per_s);
    let (Some(top), Some(peak)) = (highest(asked), peak) else {
        return StepsResult { steps, ..StepsResult::default() };
    };
    let first_bad = steps[..=top].iter().position(|step| !step.keeps_up);
    let knee = first_bad.and_then(|bad| steps[..bad].iter().rposition(kept));
    // Where the load stays at its highest for several steps, the last of them has had the longest time.
    let last_top = (top..steps.len())
        .take_while(|index| asked(&steps[*index]) >= asked(&steps[top]))
        .last()
        .unwrap_or(top);
    let worst = (top..=last_top)
        .min_by(|a, b| steps[*a].goodput_per_s.total_cmp(&steps[*b].goodput_per_s))
        .unwrap_or(top);
    let share = ratio(steps[worst].goodput_per_s, steps[peak].goodput_per_s);
    let collapses = first_bad.is_some() && share < COLLAPSE;
    let recovers = first_bad
        .and_then(|_| steps[last_top + 1..].iter().position(kept))
        .map(|after| last_top + 1 + after);
    let mut result =
        StepsResult { knee, peak: Some(peak), collapses, recovers, ..StepsResult::default() };
    if let Some(bad) = first_bad {
        result.words = words(&steps, &result, (bad, worst, last_top), share);
    }
    result.steps = steps;
    result
}

/// True of a step that kept up with something: one in which nothing was due has neither kept up nor failed to.
fn kept(step: &StepResult) -> bool {
    step.keeps_up && step.offered_per_s > 0.0
}

/// The load of a step, in words.
#[expect(clippy::cast_precision_loss, reason = "clients are few")]
fn asked(step: &StepResult) -> f64 {
    match (step.planned_per_s, step.clients) {
        (Some(rate), _) => rate,
        (None, Some(clients)) => clients as f64,
        (None, None) => step.offered_per_s,
    }
}

/// A step by what the reader knows it by.
fn name(step: &StepResult) -> String {
    let count = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    match (step.generators, step.clients) {
        (Some(generators), _) => count(generators, "generator"),
        (None, Some(clients)) => count(clients, "client"),
        (None, None) => format!("the step at {}", show_ns(step.start_ns)),
    }
}

fn words(
    steps: &[StepResult],
    of: &StepsResult,
    (bad, worst, last_top): (usize, usize, usize),
    share: f64,
) -> String {
    let told = |step: &StepResult| {
        format!(
            "{} ({:.0}/s offered, goodput {:.0}/s, {})",
            name(step),
            step.offered_per_s,
            step.goodput_per_s,
            percent(ratio(step.goodput_per_s, step.offered_per_s))
        )
    };
    let mut words = match of.knee {
        Some(knee) => {
            format!("keeps up at {}; at {} it does not", told(&steps[knee]), told(&steps[bad]))
        }
        None => format!("saturated at the first step already: {}", told(&steps[bad])),
    };
    let peak = of.peak.expect("something was committed");
    words.push_str(&format!(
        "; most goodput {:.0}/s at {}",
        steps[peak].goodput_per_s,
        name(&steps[peak])
    ));
    if of.collapses {
        words.push_str(&format!(
            "; goodput collapses: at {} it is {:.0}/s, {} of the most",
            name(&steps[worst]),
            steps[worst].goodput_per_s,
            percent(share)
        ));
    }
    match of.recovers {
        Some(again) => words.push_str(&format!("; it keeps up again at {}", told(&steps[again]))),
        None if last_top + 1 == steps.len() => {}
        None if steps[last_top + 1..].iter().all(|step| step.offered_per_s <= 0.0) => {
            words.push_str("; nothing fell due after that");
        }
        None => words.push_str("; it does not keep up again"),
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(generators: u64, offered: f64, goodput: f64) -> StepResult {
        StepResult {
            generators: Some(generators),
            planned_per_s: Some(offered),
            offered_per_s: offered,
            goodput_per_s: goodput,
            keeps_up: goodput >= KEEPS_UP * offered,
            ..StepResult::default()
        }
    }

    /// Claim: knee, collapse and recovery are found where they are, and not where goodput merely stays.
    #[test]
    fn shapes() {
        let up_and_down = |goodput: [f64; 5]| {
            let offered = [100.0, 200.0, 300.0, 200.0, 100.0];
            let all = (0..5).map(|n| step([1, 2, 3, 2, 1][n], offered[n], goodput[n]));
            conclude(all.collect())
        };
        let collapse = up_and_down([100.0, 170.0, 20.0, 90.0, 100.0]);
        assert_eq!((collapse.knee, collapse.peak, collapse.recovers), (Some(0), Some(1), Some(4)));
        assert!(
            collapse.collapses && collapse.words.contains("keeps up again"),
            "{}",
            collapse.words
        );
        let plateau = up_and_down([100.0, 200.0, 210.0, 200.0, 100.0]);
        assert_eq!((plateau.knee, plateau.peak, plateau.recovers), (Some(1), Some(2), Some(3)));
        assert!(!plateau.collapses && !plateau.words.contains("collapses"), "{}", plateau.words);
        let fine = up_and_down([100.0, 200.0, 300.0, 200.0, 100.0]);
        assert!(fine.knee.is_none() && fine.words.is_empty(), "{}", fine.words);
        let never = up_and_down([50.0, 60.0, 60.0, 60.0, 60.0]);
        assert!(never.words.starts_with("saturated at the first step"), "{}", never.words);
        assert!(never.words.ends_with("does not keep up again"), "{}", never.words);
        assert!(conclude(Vec::new()).words.is_empty());
    }

    /// Claim: a step in which nothing was due is neither kept nor recovered in, nor the knee: a system that hangs at the top
    /// does not keep up again because its clients still wait; one that goes on after a pause does.
    #[test]
    fn nothing_due_says_nothing() {
        let clients = |all: [(u64, f64, f64); 4]| {
            let of = |(clients, offered, goodput)| StepResult {
                generators: None,
                clients: Some(clients),
                planned_per_s: None,
                ..step(1, offered, goodput)
            };
            conclude(all.map(of).to_vec())
        };
        let hung = clients([(2, 200.0, 200.0), (8, 10.0, 2.0), (4, 0.0, 0.0), (2, 0.0, 0.0)]);
        assert_eq!((hung.knee, hung.recovers), (Some(0), None), "{}", hung.words);
        assert!(hung.words.ends_with("; nothing fell due after that"), "{}", hung.words);
        let paused = clients([(2, 200.0, 200.0), (0, 0.0, 0.0), (8, 800.0, 300.0), (2, 0.0, 0.0)]);
        assert_eq!((paused.knee, paused.recovers), (Some(0), None), "{}", paused.words);
        let back = clients([(2, 200.0, 200.0), (8, 800.0, 9.0), (0, 0.0, 0.0), (2, 200.0, 200.0)]);
        assert_eq!((back.knee, back.recovers), (Some(0), Some(3)), "{}", back.words);
        let never = clients([(2, 200.0, 200.0), (8, 800.0, 9.0), (4, 400.0, 9.0), (2, 0.0, 0.0)]);
        assert!(never.words.ends_with("; it does not keep up again"), "{}", never.words);
    }
}
