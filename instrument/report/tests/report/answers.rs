//! The sentence that answers, the next step and the first chart: they must say what the verdict says, of every trial.

use std::collections::BTreeMap;

use model::picture::RunPicture;
use model::result::{
    AuditResult, Distribution, Exit, Family, LoadSeries, RunResult, SettingResult, TrialResult,
    Verdict, Voided,
};
use report::{Assets, Detail, Style, html, markdown, svg_figures, terminal};

use crate::html_reader::elements;
use crate::sample_parts::{
    MS, S, counts, distribution_of, latency, rates, run, setting, threshold, trial,
};
use crate::{html_samples, sample_runs};

fn wide(run: &RunResult) -> String {
    terminal(run, Style { width: 400, ..Style::default() })
}

/// A trial at a rate, of which one in a hundred is not committed for each `lost`.
fn at_rate(rate: u32, lost: u64) -> TrialResult {
    let mut it = trial(&format!("rate={rate}/s"));
    let due = u64::from(rate) * 30;
    it.counts = counts(due, &[], due / 100 * lost, 0);
    it.rates = rates(Some(f64::from(rate)), &it.counts, 30 * S, &["committed"]);
    it
}

/// Settings that differ by their rate alone, none of which is saturated.
fn of_rates(settings: Vec<SettingResult>) -> RunResult {
    let mut run = run("rates", Exit::Failed, "a trial failed", settings);
    let settings = run.settings.iter().map(|it| it.key.clone()).collect();
    run.load_series =
        vec![LoadSeries { values: BTreeMap::new(), settings, knee: None, limit: None }];
    run
}

/// Three trials at a rate, each with whether p99 was too long in it; the first has the least goodput.
fn repeated(rate: u32, failed: [bool; 3]) -> SettingResult {
    let trial = |(index, failed): (u32, bool)| {
        let mut it = at_rate(rate, u64::from(3 - index));
        it.trial = index;
        let actual = if failed { format!("{} ms", 120 + index) } else { "50 ms".to_owned() };
        it.thresholds = vec![threshold("p99 < 100ms", Some(!failed), &actual)];
        it.verdict = if failed { Verdict::Fail } else { Verdict::Pass };
        it
    };
    setting(&format!("rate={rate}/s"), (0..).zip(failed).map(trial).collect())
}

/// Claim: a setting keeps a threshold only if all its trials do, in the answer and in the next step.
#[test]
fn every_trial_of_a_setting_answers() {
    let first = [true, false, false];
    let good = || repeated(100, [false; 3]);
    let text = wide(&of_rates(vec![good(), repeated(200, first), repeated(300, [true; 3])]));
    for said in [
        "It keeps p99 < 100ms up to 100/s, where p99 is",
        "at 200/s it is 120 ms (in 1 of 3 trials).",
        "the limit is between 100/s and 200/s",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let text = wide(&of_rates(vec![good(), repeated(300, first)]));
    assert!(text.contains("the limit is between 100/s and 300/s"), "{text}");
    assert!(!text.contains("the limit was not reached"), "{text}");
}

/// Claim: beside a probe the answer and the tile count failures of the background load, too.
#[test]
fn failures_of_the_background_are_told() {
    let mut run = sample_runs::probe();
    run.settings.truncate(1);
    let it = &mut run.settings[0].trials[0];
    it.background = Some(counts(1_000, &[], 40, 0));
    assert_eq!((it.counts.due, it.counts.committed), (250, 250));
    let text = markdown(&run);
    assert!(!text.contains("no request failed"), "{text}");
    assert!(text.contains("40 of 1,250 failed"), "{text}");
    let page = html(&[html_samples::filled(run)], &Assets::built()).expect("a page");
    let is_tile = |it: &crate::html_reader::Element| {
        let of_sum = it.tag.get("data-sum").unwrap_or_default();
        of_sum.contains("/background/unknown") && it.tag.name == "dd" && it.text == "40"
    };
    assert!(elements(&page).iter().any(is_tile));
}

/// A trial of which nothing was ever answered.
fn dead(key: &str) -> TrialResult {
    let mut it = trial(key);
    it.counts = counts(1_500, &[], 1_500, 0);
    it.rates = rates(Some(50.0), &it.counts, it.window_ns, &["committed"]);
    it.latency = vec![latency("committed", Distribution::default(), 1_500)];
    it.thresholds.clear();
    it
}

/// Claim: a setting that committed nothing is the slowest: the answer names it, and its numbers stand first.
#[test]
fn a_dead_setting_is_answered() {
    let keys = ["server=alive", "server=dead", "server=slow"];
    let of = |key: &&str| {
        let it = if *key == "server=dead" { dead(key) } else { trial(key) };
        setting(key, vec![it])
    };
    let mut run = run("servers", Exit::Ok, "nothing is asked", keys.iter().map(of).collect());
    let text = wide(&run);
    assert!(text.contains("and infinite (nothing was committed) (server=dead);"), "{text}");
    let page = html(&[html_samples::filled(run.clone())], &Assets::built()).expect("a page");
    let heads: Vec<String> =
        elements(&page).into_iter().filter(|it| it.tag.name == "dt").map(|it| it.text).collect();
    let is_focus = |it: &String| it.starts_with("goodput") && it.ends_with("at server=dead");
    assert!(heads.iter().any(is_focus), "{heads:?}");
    for setting in &mut run.settings {
        setting.trials = vec![dead(&setting.key)];
    }
    let text = wide(&run);
    assert!(text.contains("Nothing was answered; 4,500 of 4,500 failed"), "{text}");
}

/// Claim: the first chart draws response times of all that were due: where too many never got an answer it ends in inf, in
/// its table as well, and a threshold above all values is drawn.
#[test]
fn the_first_chart_is_of_all_due() {
    let of = |rate: u32| {
        let mut it = at_rate(rate, 0);
        let values = [5, 8, 10, 20, 40].map(|ms| ms * MS);
        let mut response = distribution_of(it.counts.due, 0, values, 60 * MS);
        for q in response.quantiles.iter_mut().filter(|q| rate > 100 && q.name == "p99") {
            (q.value_ns, q.unconditional_ns) = (Some(80 * MS), None);
            (q.due_low_ns, q.due_low_infinite, q.due_high_ns) = (None, true, None);
        }
        it.latency = vec![latency("committed", response, 0)];
        it.thresholds = vec![threshold("p99 < 100ms", Some(rate == 100), "∞")];
        setting(&format!("rate={rate}/s"), vec![it])
    };
    let run = of_rates(vec![of(100), of(200), of(300)]);
    let figures = svg_figures(&run, &RunPicture::default(), Detail::Full);
    let figure = figures.iter().find(|it| it.name == "answer-response").expect("it is drawn");
    let svg = figure.svg();
    assert!(!svg.contains("p99 80.0 ms") && svg.contains("p99 inf"), "{svg}");
    assert!(svg.contains(">inf<") && svg.contains(">p99 &lt; 100ms<"), "{svg}");
    let p99: Vec<&str> =
        figure.table.rows.iter().filter_map(|row| row.last()).map(|it| it.text.as_str()).collect();
    assert_eq!(p99, ["20.0 ms", "inf", "inf"]);
}

/// Claim: where audits void numbers of steps, the sentence that answers with them says so.
#[test]
fn void_steps_are_said_in_the_answer() {
    let (mut run, _) = html_samples::named("clean");
    let it = &mut run.settings[0].trials[0];
    it.steps = Some(crate::sample_parts::one_step());
    let text = markdown(&run);
    assert!(!text.contains("not valid: see the audits"), "{text}");
    let it = &mut run.settings[0].trials[0];
    let voids = vec![Voided::too_high(Family::Response)];
    it.audits[0] = AuditResult { voids, ..it.audits[0].clone() };
    let text = markdown(&run);
    assert!(text.contains("p99 is 1.38 ms (not valid: see the audits)"), "{text}");
}
