//! The question answered in one sentence, and the trial whose numbers stand for the run.
//!
//! It must never give an answer that the measurement does not bear: an invalid run has none, and a number that an audit
//! voids is called so. It computes no figure: what it says stands in the result.

use model::quantity::show_count;
use model::result::{RunResult, StepResult, TrialResult, Verdict};

use crate::figures::{failed, is_thin, latency, percent, rate, share};
use crate::paint::Paint;
use crate::svg::settings::{Series, load_series};
use crate::tables::{self, Shown, final_latency};

/// Series of loads that a sentence names.
const NAMED_MAX: usize = 3;

/// The answer.
pub(crate) struct Answer<'a> {
    /// One sentence.
    pub(crate) sentence: String,
    /// The trial whose numbers are shown first; absent if there is none.
    pub(crate) focus: Option<&'a Shown<'a>>,
    /// Its load or its name, for a heading; empty if it is the only one.
    pub(crate) focus_label: String,
}

/// The answer of a run.
pub(crate) fn answer<'a>(run: &RunResult, shown: &'a [Shown<'a>]) -> Answer<'a> {
    let series = load_series(run);
    let (focus, focus_label) = match (series.first(), shown) {
        (_, []) => (None, String::new()),
        (_, [only]) => (Some(only), String::new()),
        (Some(series), _) => {
            let place = focus_of(series);
            let pointer = series.points[place].0.pointer();
            let row = shown.iter().find(|row| row.pointer == pointer);
            (row, load_words(series, place))
        }
        (None, several) => {
            let slowest = several.iter().max_by_key(|row| p99_ns(row.trial));
            (slowest, slowest.map(|row| row.label.clone()).unwrap_or_default())
        }
    };
    let said = match (shown, series.as_slice()) {
        ([], _) => "Nothing was measured.".to_owned(),
        _ if run.verdict == Verdict::Invalid => {
            "No answer: the measurement is not valid.".to_owned()
        }
        (_, [_, ..]) => of_series(&series, shown),
        ([only], []) => of_one(only),
        (several, []) => of_several(several),
    };
    let sentence =
        if run.interrupted && !shown.is_empty() { format!("So far: {said}") } else { said };
    Answer { sentence, focus, focus_label }
}

/// The point whose numbers stand for a series: the last that kept up.
fn focus_of(series: &Series<'_>) -> usize {
    match (series.knee, series.limit) {
        (Some(knee), _) => knee,
        (None, None) => series.points.len().saturating_sub(1),
        (None, Some(limit)) => limit.saturating_sub(1),
    }
}

/// A load as the experiment calls it, with its rate if that does not say it.
fn load_words(series: &Series<'_>, place: usize) -> String {
    let (point, label) = &series.points[place];
    if label.contains('/') {
        return label.clone();
    }
    format!("{label} ({}/s)", rate(point.trial().rates.offered_per_s))
}

fn of_series(all: &[Series<'_>], shown: &[Shown<'_>]) -> String {
    if let [only] = all {
        return of_load(only, shown);
    }
    let named: Vec<String> = all
        .iter()
        .take(NAMED_MAX)
        .map(|series| {
            let said = match (series.knee, series.limit) {
                (Some(knee), _) => format!("up to {}", load_words(series, knee)),
                (None, None) => {
                    format!("at least {}", load_words(series, series.points.len() - 1))
                }
                (None, Some(0)) => format!("not even {}", load_words(series, 0)),
                (None, Some(_)) => "no limit of the system found".to_owned(),
            };
            format!("{said} with {}", series.name)
        })
        .collect();
    let more = match all.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more below"),
    };
    format!("It keeps up with {}{more}.", named.join(", "))
}

/// How much one series of loads can take.
fn of_load(series: &Series<'_>, shown: &[Shown<'_>]) -> String {
    let p99 = |place: usize| {
        let pointer = series.points[place].0.pointer();
        shown.iter().find(|row| row.pointer == pointer).map_or_else(String::new, p99_words)
    };
    let load = |place: usize| load_words(series, place);
    match (series.knee, series.limit) {
        (Some(knee), _) => {
            let next = (knee + 1).min(series.points.len() - 1);
            format!(
                "It keeps up with {}, where {}; at {}, {} and {}.",
                load(knee),
                p99(knee),
                load(next),
                lost_words(&series.points[next].0.trial().rates),
                p99(next)
            )
        }
        (None, None) => {
            let last = series.points.len() - 1;
            format!("At least {}, where {}; the limit was not reached.", load(last), p99(last))
        }
        (None, Some(0)) => format!(
            "It does not keep up with {}, the lowest load: {} and {}.",
            load(0),
            lost_words(&series.points[0].0.trial().rates),
            p99(0)
        ),
        (None, Some(limit)) => format!(
            "No limit of the system was found: at {} this client's connections were the limit.",
            load(limit)
        ),
    }
}

/// How much of what was offered did not come through.
fn lost_words(rates: &model::result::Rates) -> String {
    let lost = 1.0 - rates.goodput_per_s / rates.offered_per_s;
    if lost.is_finite() && lost >= 0.005 {
        format!("{} does not get through", whole_percent(lost))
    } else {
        "the backlog grows".to_owned()
    }
}

fn whole_percent(of: f64) -> String {
    if of < 0.1 { percent(of) } else { format!("{:.0}%", of * 100.0) }
}

/// One setting: what its steps say, or how long it takes and what failed.
fn of_one(row: &Shown<'_>) -> String {
    let trial = row.trial;
    if let Some(steps) = trial.steps.as_ref().filter(|it| !it.steps.is_empty()) {
        return of_steps(&steps.steps, steps.knee);
    }
    let p50 = number_words(row, "p50").map_or_else(String::new, |p50| format!("p50 is {p50}, "));
    let of = if tables::is_probe(trial) { "of the probe " } else { "" };
    let silence = trial.faults.iter().filter(|it| it.happened).filter_map(|it| it.silence_ns).max();
    let silence = silence.map_or_else(String::new, |ns| {
        format!("; during the faults nothing was committed for up to {}", latency(Some(ns)))
    });
    let rates = &trial.rates;
    format!(
        "{}/s of {}/s offered come through; {of}{p50}{}; {}{silence}.",
        rate(rates.goodput_per_s),
        rate(rates.offered_per_s),
        p99_words(row),
        failed_words(std::slice::from_ref(row))
    )
}

/// A load that rises in one trial.
fn of_steps(steps: &[StepResult], knee: Option<usize>) -> String {
    let load = |step: &StepResult| format!("{}/s", rate(step.offered_per_s));
    let p99 = |step: &StepResult| match step.p99_ns {
        Some(ns) => format!("p99 is {}", latency(Some(ns))),
        None => "nothing is answered".to_owned(),
    };
    let lost = |step: &StepResult| {
        let rates = model::result::Rates {
            offered_per_s: step.offered_per_s,
            goodput_per_s: step.goodput_per_s,
            ..Default::default()
        };
        lost_words(&rates)
    };
    let highest = steps.iter().max_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    let first_bad = steps.iter().find(|step| !step.keeps_up);
    match (knee.and_then(|knee| Some((steps.get(knee)?, steps.get(knee + 1)?))), first_bad) {
        (Some((good, bad)), _) => format!(
            "It keeps up with {}, where {}; at {}, {} and {}.",
            load(good),
            p99(good),
            load(bad),
            lost(bad),
            p99(bad)
        ),
        (None, Some(bad)) => {
            format!("It does not keep up with {}: {} and {}.", load(bad), lost(bad), p99(bad))
        }
        (None, None) => highest.map_or_else(String::new, |step| {
            format!("At least {}, where {}; the limit was not reached.", load(step), p99(step))
        }),
    }
}

/// Several settings that are not a series of loads.
fn of_several(shown: &[Shown<'_>]) -> String {
    let known = || shown.iter().filter(|row| p99_ns(row.trial).is_some());
    let low = known().min_by_key(|row| p99_ns(row.trial));
    let high = known().max_by_key(|row| p99_ns(row.trial));
    let times = match (low, high) {
        (Some(low), Some(high)) => {
            let of = |row: &Shown<'_>| {
                let p99 = number_words(row, "p99").unwrap_or_default();
                format!("{p99} ({})", row.label)
            };
            format!("p99 is between {} and {}", of(low), of(high))
        }
        _ => "Nothing was answered".to_owned(),
    };
    format!("{times}; {}.", failed_words(shown))
}

fn p99_words(row: &Shown<'_>) -> String {
    match number_words(row, "p99") {
        Some(p99) => format!("p99 is {p99}"),
        None => "nothing is answered".to_owned(),
    }
}

/// A quantile, with what an audit or few samples take from it; none if nothing was answered.
fn number_words(row: &Shown<'_>, name: &str) -> Option<String> {
    let quantile = named(final_latency(row.trial)?, name)?;
    let shown = latency(Some(quantile.value_ns?));
    let is_void = tables::quantile_named(row, name).paint == Paint::Caution;
    Some(match (is_void, is_thin(quantile)) {
        (true, _) => format!("{shown} (void: see the audits)"),
        (false, true) => format!("about {shown}"),
        (false, false) => shown,
    })
}

fn named<'a>(
    of: &'a model::result::LatencyResult,
    name: &str,
) -> Option<&'a model::result::Quantile> {
    of.response.quantiles.iter().find(|q| q.name == name)
}

fn p99_ns(trial: &TrialResult) -> Option<i64> {
    final_latency(trial).and_then(|it| named(it, "p99")).and_then(|q| q.value_ns)
}

/// How much failed.
pub(crate) fn failed_words(shown: &[Shown<'_>]) -> String {
    let (lost, due) = shown.iter().fold((0_u64, 0_u64), |(lost, due), row| {
        let counts = &row.trial.counts;
        (lost.saturating_add(failed(counts)), due.saturating_add(counts.due))
    });
    match lost {
        0 => "nothing failed".to_owned(),
        _ => format!("{} of {} failed ({})", show_count(lost), show_count(due), share(lost, due)),
    }
}
