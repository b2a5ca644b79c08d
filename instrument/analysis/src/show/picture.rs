//! The picture that the page draws beside the result: bands, moments and series over the columns of the timeline.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::facts::{Event, KindFacts, MetricSample, TrialFacts};
use model::fault::FaultPhase;
use model::picture::{ALL_NODES, Band, BandKind, Moment, Series, TrialPicture, is_node};
use model::plan::{Arrivals, Schedule, SettingPlan, Step};
use model::quantity::show_count;
use model::result::{FaultResult, Timeline};
use model::series::{SaidBy, SeriesFacts, declared};
use model::{NO_STAMP, Stamp};

use crate::figures::faults;
use crate::figures::timeline::TimelineTally;
use crate::show::lanes;

/// The most moments that are kept of each name: the first ones. A connection that is lost a million times is a
/// count, not a million marks.
const MOMENTS_MAX: usize = 100;

/// Series of a trial, and what they are.
pub(crate) struct Sampled<'a> {
    /// As they were recorded.
    pub recorded: &'a [MetricSample],
    /// Of all nodes together.
    pub of_all: &'a [MetricSample],
    /// The declarations of all of them.
    pub declared: &'a [SeriesFacts],
}

/// The picture of a trial, from what streamed by and what lies beside the rows.
pub(crate) fn of_trial(
    path: &str,
    setting: &SettingPlan,
    facts: &TrialFacts,
    tally: &TimelineTally,
    timeline: &Timeline,
    sampled: &Sampled<'_>,
    (events, faults): (&[Event], &[FaultResult]),
) -> TrialPicture {
    let series = series(&chosen(sampled), timeline);
    TrialPicture {
        path: path.to_owned(),
        stages: facts.declared.stages.clone(),
        final_stage: facts.declared.final_stages().of(u8::from(setting.probe.is_some())),
        density: tally.density(),
        slowest: tally.slowest(),
        kinds: KindFacts::names(&facts.declared.kinds),
        errors: facts.load.errors.clone(),
        bands: bands(setting, facts, faults, timeline.end_ns()),
        moments: moments(events, faults),
        lanes: lanes::of(&series, sampled.declared),
        series,
        traces: Vec::new(),
    }
}

fn bands(
    setting: &SettingPlan,
    facts: &TrialFacts,
    faults: &[FaultResult],
    end: Stamp,
) -> Vec<Band> {
    let mut bands = Vec::new();
    let mut add = |kind, from_ns: Stamp, to_ns: Stamp, label: String| {
        if from_ns != NO_STAMP && to_ns != NO_STAMP && to_ns >= from_ns {
            bands.push(Band { kind, from_ns, to_ns, label });
        }
    };
    if facts.measure_start() > 0 {
        add(BandKind::Warmup, 0, facts.measure_start(), BandKind::Warmup.word().to_owned());
    }
    let steps: Vec<(Duration, String)> = match &setting.load.arrivals {
        Arrivals::Open { schedule: Schedule::Steps { steps } } => {
            steps.iter().map(|step| (step.length, step_label(step))).collect()
        }
        Arrivals::Closed { steps, .. } => {
            steps.iter().map(|it| (it.length, format!("{} clients", it.clients))).collect()
        }
        Arrivals::Open { .. } => Vec::new(),
    };
    let mut from = facts.measure_start();
    for (length, label) in steps {
        let length = i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        let to = from.saturating_add(length).min(facts.measure_end());
        add(BandKind::Step, from, to, label);
        from = to;
    }
    for band in faults::bands(faults) {
        add(band.kind, band.from_ns, band.to_ns, band.label);
    }
    let drained = if facts.load.drain_end == NO_STAMP { end } else { facts.load.drain_end };
    if facts.measure_end() > 0 && drained > facts.measure_end() {
        add(BandKind::Drain, facts.measure_end(), drained, BandKind::Drain.word().to_owned());
    }
    bands.sort_by(|a, b| (a.from_ns, a.kind, &a.label).cmp(&(b.from_ns, b.kind, &b.label)));
    bands
}

fn step_label(step: &Step) -> String {
    match step.generators {
        0 => step.rate.to_string(),
        generators => format!("{} of {generators} generators", step.rate),
    }
}

/// Moments: events, and faults that did not take place. Those that did are bands.
fn moments(events: &[Event], faults: &[FaultResult]) -> Vec<Moment> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut moments: Vec<Moment> = Vec::new();
    for event in events.iter().filter(|event| event.at != NO_STAMP) {
        let count = seen.entry(&event.name).or_default();
        *count += 1;
        if *count <= MOMENTS_MAX {
            moments.push(Moment {
                at_ns: event.at,
                name: event.name.clone(),
                detail: event.detail.clone(),
            });
        }
    }
    for fault in faults.iter().filter(|fault| !fault.happened) {
        let count = seen.entry(FaultPhase::Failed.word()).or_default();
        *count += 1;
        if *count <= MOMENTS_MAX {
            moments.push(Moment {
                at_ns: fault.from_ns,
                name: FaultPhase::Failed.word().to_owned(),
                detail: format!("{} {}: {}", fault.kind, fault.node, fault.in_words()),
            });
        }
    }
    for (name, count) in seen.into_iter().filter(|(_, count)| *count > MOMENTS_MAX) {
        let last = moments.iter_mut().rfind(|moment| moment.name == name);
        let more = u64::try_from(count - MOMENTS_MAX).expect("a count");
        let said = format!(" (and {} more after it)", show_count(more));
        last.expect("a hundred were kept").detail.push_str(&said);
    }
    moments.sort_by(|a, b| (a.at_ns, &a.name).cmp(&(b.at_ns, &b.name)));
    moments
}

/// One column's samples of one series.
#[derive(Clone, Copy)]
struct Span {
    min: f64,
    sum: f64,
    max: f64,
    count: f64,
}

/// Nodes that are drawn each by itself; more are drawn as their lowest, mean and highest.
const NODES_MAX: usize = 24;

/// The series that are drawn: of few nodes each, with the sum and the mean of what adds up; of many the lowest, mean and highest.
fn chosen<'a>(of: &Sampled<'a>) -> Vec<&'a MetricSample> {
    let Sampled { recorded, of_all, declared: facts } = *of;
    let of_nodes = recorded.iter().map(|s| s.source.as_str()).filter(|source| is_node(source));
    let nodes = of_nodes.collect::<BTreeSet<_>>().len();
    let is_drawn_of_all = |s: &&MetricSample| {
        let said = s.source.strip_prefix(ALL_NODES).unwrap_or_default();
        let of = declared(facts, &s.name);
        let adds_up = || nodes > 1 && of.is_some_and(SeriesFacts::adds_up);
        match said {
            _ if of.is_some_and(|it| it.said_by == SaidBy::Analysis) => true,
            "sum" => adds_up(),
            "mean" => nodes > NODES_MAX || adds_up(),
            _ => nodes > NODES_MAX,
        }
    };
    let is_drawn = |s: &&MetricSample| nodes <= NODES_MAX || !is_node(&s.source);
    recorded.iter().filter(is_drawn).chain(of_all.iter().filter(is_drawn_of_all)).collect()
}

fn series(metrics: &[&MetricSample], timeline: &Timeline) -> Vec<Series> {
    let columns = timeline.columns.len();
    let mut by_name: BTreeMap<(&str, &str), Vec<Option<Span>>> = BTreeMap::new();
    for sample in metrics.iter().filter(|s| s.value.is_finite() && s.at != NO_STAMP) {
        let place = (sample.at - timeline.start_ns).div_euclid(timeline.width_ns.max(1));
        let Some(column) = usize::try_from(place).ok().filter(|column| *column < columns) else {
            continue;
        };
        let spans = by_name
            .entry((sample.source.as_str(), sample.name.as_str()))
            .or_insert_with(|| vec![None; columns]);
        let value = sample.value;
        let span =
            spans[column].get_or_insert(Span { min: value, sum: 0.0, max: value, count: 0.0 });
        span.min = span.min.min(value);
        span.max = span.max.max(value);
        span.sum += value;
        span.count += 1.0;
    }
    let of = |spans: &[Option<Span>], f: fn(&Span) -> f64| -> Vec<f64> {
        spans.iter().map(|span| span.as_ref().map_or(f64::NAN, f)).collect()
    };
    by_name
        .into_iter()
        .map(|((source, name), spans)| Series {
            source: source.to_owned(),
            name: name.to_owned(),
            min: of(&spans, |span| span.min),
            mean: of(&spans, |span| span.sum / span.count),
            max: of(&spans, |span| span.max),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Trial, event, fault_event};

    const S: Stamp = 1_000_000_000;

    /// Claim: warm-up, faults with their ends, and the drain become bands; a kill is a band without length.
    #[test]
    fn bands_of_a_trial() {
        let mut trial = Trial::clean();
        trial.facts.declared.measure_start = S;
        trial.facts.declared.measure_end = 9 * S;
        trial.facts.load.drain_end = 10 * S;
        let events = [
            fault_event(2 * S, FaultPhase::Start, (0, 0, "pause", "a")),
            fault_event(2 * S, FaultPhase::Start, (0, 0, "pause", "b")),
            fault_event(3 * S, FaultPhase::End, (0, 0, "pause", "a")),
            fault_event(4 * S, FaultPhase::End, (0, 0, "pause", "b")),
            fault_event(5 * S, FaultPhase::Start, (1, 0, "kill", "a")),
            fault_event(6 * S, FaultPhase::Failed, (2, 0, "kill", "c")),
        ];
        let faults = faults::of_events(&events);
        let bands = bands(&trial.setting, &trial.facts, &faults, 10 * S);
        let seen: Vec<_> = bands
            .iter()
            .map(|band| (band.kind, band.from_ns / S, band.to_ns / S, band.label.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                (BandKind::Warmup, 0, 1, "warm-up"),
                (BandKind::Fault, 2, 3, "pause a"),
                (BandKind::Fault, 2, 4, "pause b"),
                (BandKind::Fault, 5, 5, "kill a"),
                (BandKind::Drain, 9, 10, "drain"),
            ]
        );
        let marked = moments(&[], &faults);
        let seen: Vec<_> = marked.iter().map(|it| (it.at_ns / S, it.name.as_str())).collect();
        assert_eq!(seen, [(6, "fault_failed")], "what did not take place is a moment");
    }

    /// Claim: of an event that comes too often the first hundred are marked and the rest is counted in words.
    #[test]
    fn many_moments() {
        let events: Vec<_> = (0..250).map(|at| event(at * S, "connection_lost", "reset")).collect();
        let moments = moments(&events, &[]);
        assert_eq!(moments.len(), 100);
        assert_eq!(moments[99].detail, "reset (and 150 more after it)");
    }

    /// Claim: a series has a value in the columns that were sampled, and none elsewhere.
    #[test]
    fn series_by_column() {
        let timeline =
            Timeline { width_ns: S, columns: vec![Default::default(); 3], ..Timeline::default() };
        let sample =
            |at, value| MetricSample { at, source: "host".into(), name: "load1".into(), value };
        let samples = [sample(1, 1.0), sample(2, 3.0), sample(2 * S, f64::NAN), sample(9 * S, 7.0)];
        let series = series(&samples.iter().collect::<Vec<_>>(), &timeline);
        assert_eq!(series.len(), 1);
        assert_eq!((series[0].min[0], series[0].mean[0], series[0].max[0]), (1.0, 2.0, 3.0));
        assert!(series[0].mean[1].is_nan() && series[0].mean[2].is_nan());
    }
}
