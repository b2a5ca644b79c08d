//! The question answered in one sentence, and the trial whose numbers stand for the run.
//!
//! It must never give an answer that the measurement does not bear: an invalid run has none, and a number that an audit
//! voids is called so. It computes no figure: what it says stands in the result.

use model::quantity::show_count;
use model::result::{
    Answer as Told, AuditOutcome, AuditResult, Family, RunResult, SearchRole, SearchTrial,
    SettingResult, StepResult, ThresholdResult, TrialResult, Verdict,
};

use crate::figures::{
    failed, latency, of_all_due, of_all_streams, percent, plural, rate, ratio, share, span_ns,
};
use crate::paint::{Paint, clean};
use crate::svg::settings::{Series, load_series};
use crate::tables::{self, Shown, final_latency};

/// Series of loads that a sentence names.
const NAMED_MAX: usize = 3;

/// Where a larger share failed than this, that is the answer.
const MOST: f64 = 0.5;

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
    let confirming = shown.iter().rfind(|row| {
        let is_result = |of: &SearchTrial| {
            of.role == SearchRole::Confirm
                && run.search.as_ref().is_some_and(|it| it.confirmed == Some(of.value))
        };
        row.search.is_some_and(|(_, of)| is_result(of))
    });
    let (focus, focus_label) = match (series.first(), shown) {
        (_, []) => (None, String::new()),
        _ if confirming.is_some() => {
            let value = |row: &Shown<'_>| row.search.map(|(_, of)| row.find.with_unit(of.value));
            (confirming, confirming.and_then(value).unwrap_or_default())
        }
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
        _ if run.search.is_some() => format!("{}.", run.reason),
        ([], _) => "Nothing was measured.".to_owned(),
        _ if run.verdict == Verdict::Invalid && own_lag_decides(shown) => {
            "No answer: this machine's own lag decides.".to_owned()
        }
        _ if run.verdict == Verdict::Invalid => {
            "No answer: the numbers that would decide are not valid.".to_owned()
        }
        (_, [_, ..]) => of_series(&series, shown),
        ([only], []) => of_one(only),
        (several, []) => of_several(several),
    };
    let sentence =
        if run.interrupted && !shown.is_empty() { format!("So far: {said}") } else { said };
    let sentence = match ledger_words(shown) {
        // Losses outweigh how long the rest took.
        Some(ledger) if ledger.starts_with("Of") => format!("{ledger}. {sentence}"),
        Some(ledger) => format!("{} {ledger}.", sentence.trim_end()),
        None => sentence,
    };
    Answer { sentence, focus, focus_label }
}

/// Whether nothing makes the run invalid but the instrument's own lag: then its numbers stand, as what they may be.
pub(crate) fn own_lag_decides(shown: &[Shown<'_>]) -> bool {
    let of_lag = |trial: &TrialResult| {
        let mut invalid = trial.thresholds.iter().filter(|it| it.answer == Told::Invalid);
        let is_void = trial.audits.iter().any(|it| !it.voids.is_empty());
        !is_void && invalid.any(|it| it.voided_by.is_empty() && !it.counted.is_empty())
    };
    let mut invalid = shown.iter().filter(|row| row.trial.verdict == Verdict::Invalid).peekable();
    invalid.peek().is_some() && invalid.all(|row| of_lag(row.trial))
}

/// Whether the load was withheld, because no test request before it succeeded.
pub(crate) fn is_withheld(trial: &TrialResult) -> bool {
    let is_failed = |it: &AuditResult| it.outcome == AuditOutcome::Failed && it.name == "preflight";
    trial.counts.due == 0 && trial.audits.iter().any(is_failed)
}

/// Why a trial has no numbers, for the place where they would stand; `None` where it has.
pub(crate) fn unsent_words(trial: &TrialResult) -> Option<[&'static str; 2]> {
    tables::is_unsent(trial).then(|| match is_withheld(trial) {
        true => ["withheld", "the test request before it failed"],
        false => ["not sent", "nothing fell due in the window"],
    })
}

/// Target, load and length: `http://127.0.0.1:8080, 100/s for 10s`.
pub(crate) fn subject_words(run: &RunResult) -> String {
    let of = &run.subject;
    let what = match of.targets.as_slice() {
        [] => of.system.clone(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    let load = match of.loads.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, .., last] => format!("{} loads, {first} … {last}", of.loads.len()),
    };
    let length = match of.window_ns {
        (_, 0) => String::new(),
        (least, most) if least == most => format!(" for {}", span_ns(most)),
        (least, most) => format!(" for {} to {}", span_ns(least), span_ns(most)),
    };
    let trials = run.settings.iter().map(|setting| setting.trials.len()).sum::<usize>();
    let each = if trials > 1 && !length.is_empty() { " each" } else { "" };
    let parts = [what, format!("{load}{length}{each}")];
    parts
        .into_iter()
        .filter(|it| !it.is_empty())
        .map(|it| clean(&it))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The message of the ledgers that were read, but for those that the experiment declares to fail.
pub(crate) fn ledger_words(shown: &[Shown<'_>]) -> Option<String> {
    let read = shown.iter().filter(|row| !tables::is_declared(row));
    let fates: Vec<_> = read.filter_map(|row| row.trial.fates.as_ref()).collect();
    let sum = |of: fn(&model::result::Fates) -> u64| {
        fates.iter().map(|it| of(it)).fold(0, u64::saturating_add)
    };
    let (lost, doubled, invented) =
        (sum(|it| it.lost), sum(|it| it.duplicate), sum(|it| it.phantom));
    // What stands there twice was acknowledged once.
    let acknowledged = show_count(sum(|it| it.once).saturating_add(lost).saturating_add(doubled));
    let invented = match invented {
        0 => String::new(),
        count => format!(", {} invented", show_count(count)),
    };
    let is_left_out = |row: &Shown<'_>| tables::is_declared(row) && row.trial.fates.is_some();
    let aside = if shown.iter().any(is_left_out) { ", declared failures aside" } else { "" };
    (!fates.is_empty()).then(|| match (lost, doubled) {
        (0, 0) => {
            format!("0 of {acknowledged} acknowledged were lost or doubled{invented}{aside}")
        }
        _ => format!(
            "Of {acknowledged} acknowledged {} were lost and {} doubled{invented}{aside}",
            show_count(lost),
            show_count(doubled)
        ),
    })
}

/// The point whose numbers stand for a series: the last that keeps the thresholds, else the last that kept up.
fn focus_of(series: &Series<'_>) -> usize {
    if let Some(kept) = Kept::of(series) {
        return kept.best.or(kept.failed).unwrap_or(0);
    }
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
            let kept = Kept::of(series).filter(|kept| kept.best != Some(series.points.len() - 1));
            let said = match (kept.map(|kept| (kept.best, kept.failed)), series.knee, series.limit)
            {
                (Some((None, Some(0))), ..) => format!("not even {}", load_words(series, 0)),
                (Some((None, _)), ..) => "nothing that can be told".to_owned(),
                (Some((Some(place), _)), ..) | (None, Some(place), _) => {
                    format!("up to {}", load_words(series, place))
                }
                (None, None, None) => {
                    format!("at least {}", load_words(series, series.points.len() - 1))
                }
                (None, None, Some(0)) => format!("not even {}", load_words(series, 0)),
                (None, None, Some(_)) => "no limit of the system found".to_owned(),
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

/// Written thresholds of level `fail`.
fn asked_of(trial: &TrialResult) -> impl Iterator<Item = &ThresholdResult> {
    trial.thresholds.iter().filter(|it| !it.implicit && it.level == "fail")
}

/// The same of a setting, each with the gravest answer of its trials: it is met where every trial meets it.
fn written(setting: &SettingResult) -> Vec<(String, Told)> {
    let mut all: Vec<(String, Told)> = Vec::new();
    for it in setting.trials.iter().flat_map(asked_of) {
        let expr = clean(&it.expr);
        match all.iter_mut().find(|(known, _)| *known == expr) {
            Some((_, gravest)) => *gravest = it.answer.max(*gravest),
            None => all.push((expr, it.answer)),
        }
    }
    all
}

/// The values that failed the written thresholds at a setting, from a trial that failed, with how many trials did.
fn failed_values(setting: &SettingResult) -> String {
    let trials = setting.trials.len();
    let value = |expr: &str| {
        let is_it = |it: &&ThresholdResult| it.answer == Told::Failed && clean(&it.expr) == expr;
        let failed: Vec<&ThresholdResult> =
            setting.trials.iter().filter_map(|trial| asked_of(trial).find(is_it)).collect();
        let of_trials = match trials {
            0 | 1 => String::new(),
            _ => format!(" (in {} of {})", failed.len(), plural(trials as u64, "trial")),
        };
        Some(format!("{}{of_trials}", clean(&failed.first()?.actual)))
    };
    let values = written(setting).into_iter().filter_map(|(expr, _)| value(&expr));
    values.collect::<Vec<_>>().join(", ")
}

/// Where the written thresholds are kept, along a series of loads.
struct Kept {
    /// The last point before the first at which they are not all met.
    best: Option<usize>,
    /// The first at which one failed.
    failed: Option<usize>,
    /// The thresholds, as written.
    asked: String,
}

impl Kept {
    /// `None` where no threshold of level `fail` is asked of each point.
    fn of(series: &Series<'_>) -> Option<Self> {
        let all: Vec<_> = series.points.iter().map(|(it, _)| written(it.setting)).collect();
        if all.iter().any(Vec::is_empty) {
            return None;
        }
        let first = |is: fn(Told) -> bool| {
            all.iter().position(|of| of.iter().any(|(_, answer)| is(*answer)))
        };
        let open = first(|answer| answer != Told::Met);
        let failed = first(|answer| answer == Told::Failed);
        let place = failed.or(open).unwrap_or(0);
        // Of several those that failed are the answer.
        let of_interest =
            |(_, answer): &&(String, Told)| failed.is_none() || *answer == Told::Failed;
        let asked: Vec<String> =
            all[place].iter().filter(of_interest).map(|(expr, _)| expr.clone()).collect();
        let best = open.unwrap_or(series.points.len()).checked_sub(1);
        Some(Self { best, failed, asked: asked.join(" and ") })
    }

    /// The answer to what the thresholds ask; `None` where all are kept, so that only saturation limits it.
    fn in_words(&self, series: &Series<'_>, p99: &dyn Fn(usize) -> String) -> Option<String> {
        let load = |place: usize| load_words(series, place);
        let values = |place: usize| failed_values(series.points[place].0.setting);
        let asked = &self.asked;
        match (self.best, self.failed) {
            (Some(best), Some(failed)) => Some(format!(
                "It keeps {asked} up to {}, where {}; at {} it is {}.",
                load(best),
                p99(best),
                load(failed),
                values(failed)
            )),
            (None, Some(failed)) => Some(format!(
                "None of the {} keeps {asked}; at {} it is {}.",
                plural(series.points.len() as u64, "load"),
                load(failed),
                values(failed)
            )),
            (Some(best), None) if best + 1 < series.points.len() => Some(format!(
                "It keeps {asked} up to {}, where {}; at {} that cannot be told.",
                load(best),
                p99(best),
                load(best + 1)
            )),
            (Some(_), None) => None,
            (None, None) => Some(format!("Whether any load keeps {asked} cannot be told.")),
        }
    }
}

/// The highest load that keeps the thresholds, and the lowest that fails them, where one series of loads has both.
pub(crate) fn limits(run: &RunResult) -> Option<(String, String)> {
    let all = load_series(run);
    let [series] = all.as_slice() else { return None };
    let kept = Kept::of(series)?;
    Some((load_words(series, kept.best?), load_words(series, kept.failed?)))
}

/// How much one series of loads can take.
fn of_load(series: &Series<'_>, shown: &[Shown<'_>]) -> String {
    let p99 = |place: usize| {
        let pointer = series.points[place].0.pointer();
        shown.iter().find(|row| row.pointer == pointer).map_or_else(String::new, p99_words)
    };
    let load = |place: usize| load_words(series, place);
    if let Some(said) = Kept::of(series).and_then(|kept| kept.in_words(series, &p99)) {
        return said;
    }
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
    if is_withheld(trial) {
        return "The load was not sent: the test request before it failed.".to_owned();
    }
    if tables::is_unsent(trial) {
        return "Nothing was measured: nothing fell due in the window.".to_owned();
    }
    if let Some(steps) = trial.steps.as_ref().filter(|it| !it.steps.is_empty()) {
        return of_steps(row, &steps.steps, steps.knee);
    }
    let p50 = number_words(row, "p50").map_or_else(String::new, |p50| format!("p50 is {p50}, "));
    let of = if tables::is_probe(trial) { "of the probe " } else { "" };
    let silence = trial.faults.iter().filter(|it| it.happened).filter_map(|it| it.silence_ns).max();
    let silence = silence.map_or_else(String::new, |ns| {
        format!("; during the faults nothing was committed for up to {}", latency(Some(ns)))
    });
    let (goodput, offered) = (rate(trial.rates.goodput_per_s), rate(trial.rates.offered_per_s));
    let (p99, lost) = (p99_words(row), failed_words(std::slice::from_ref(row)));
    if ratio(failed(&trial.counts), trial.counts.due) > MOST {
        return format!(
            "{lost}; goodput is {goodput}/s of {offered}/s offered; {of}{p50}{p99}{silence}."
        );
    }
    format!("Goodput is {goodput}/s of {offered}/s offered; {of}{p50}{p99}; {lost}{silence}.")
}

/// A load that rises in one trial.
fn of_steps(row: &Shown<'_>, steps: &[StepResult], knee: Option<usize>) -> String {
    let void = |family: Family| match tables::is_family_void(row, family) {
        true => " (not valid: see the audits)",
        false => "",
    };
    let load =
        |step: &StepResult| format!("{}/s{}", rate(step.offered_per_s), void(Family::Offered));
    let p99 = |step: &StepResult| match step.p99_ns {
        Some(ns) => format!("p99 is {}{}", latency(Some(ns)), void(Family::Response)),
        None => "nothing is answered".to_owned(),
    };
    let lost = |step: &StepResult| {
        let rates = model::result::Rates {
            offered_per_s: step.offered_per_s,
            goodput_per_s: step.goodput_per_s,
            ..Default::default()
        };
        format!("{}{}", lost_words(&rates), void(Family::Committed))
    };
    let highest = steps.iter().max_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
    let first_bad = |from: usize| steps.get(from..)?.iter().find(|step| !step.keeps_up);
    match (knee.and_then(|knee| Some((steps.get(knee)?, first_bad(knee + 1)?))), first_bad(0)) {
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
    let is_any = known().any(|row| number_words(row, "p99").is_some());
    let times = match (low, high) {
        (Some(low), Some(high)) if is_any => {
            let of = |row: &Shown<'_>| {
                let dead = || "infinite (nothing was committed)".to_owned();
                let p99 = number_words(row, "p99").unwrap_or_else(dead);
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
    let of = final_latency(row.trial).filter(|of| of.response.count > 0)?;
    let shown = of_all_due(named(of, name)?);
    let is_void = tables::quantile_named(row, name).paint == Paint::Caution;
    Some(match (is_void, shown.strip_prefix('~'), shown.as_str()) {
        (_, _, "inf") => "infinite (too many never got an answer)".to_owned(),
        (true, ..) => format!("{shown} (not valid: see the audits)"),
        (false, Some(thin), _) => format!("about {thin}"),
        (false, None, _) => shown,
    })
}

fn named<'a>(
    of: &'a model::result::LatencyResult,
    name: &str,
) -> Option<&'a model::result::Quantile> {
    of.response.quantiles.iter().find(|q| q.name == name)
}

/// The p99 of all that were due, the largest there is where it is infinite; none where nothing fell due.
fn p99_ns(trial: &TrialResult) -> Option<i64> {
    let of = final_latency(trial)?;
    match of.response.count {
        0 => (trial.counts.due > 0).then_some(i64::MAX),
        _ => Some(named(of, "p99")?.unconditional_ns.unwrap_or(i64::MAX)),
    }
}

/// The failures, those of the background load as those of the probe.
fn failed_words(shown: &[Shown<'_>]) -> String {
    let (lost, due) = of_all_streams(shown.iter().map(|row| row.trial));
    match lost {
        0 => "no request failed".to_owned(),
        _ => format!("{} of {} failed ({})", show_count(lost), show_count(due), share(lost, due)),
    }
}
