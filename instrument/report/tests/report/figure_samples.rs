//! Runs with a picture for the tests of the figures: a study of three target sets that a person can look at, and runs
//! that no one should have to draw.
//!
//! Everything is arithmetic on indices: the same bytes whenever it is made.

use std::collections::BTreeMap;

use model::picture::{
    Band, BandKind, DENSITY_BUCKETS, Moment, RunPicture, Series, TrialPicture, density_bucket,
};
use model::plan::Axis;
use model::result::{
    CurvePoint, Distribution, Exit, LatencyResult, LoadSeries, Quantile, Rates, RunResult,
    Timeline, TimelineColumn, TrialResult, Verdict,
};

use crate::sample_parts::{
    MS, S, counts, distribution_of, latency, rates, run, setting, threshold, trial,
};
use crate::sample_runs;

/// Three target sets at five rates: each breaks down at another.
pub fn study() -> (RunResult, RunPicture) {
    let sets = [("all", 38.0, 110), ("dapp", 52.0, 60), ("large", 26.0, 420)];
    let labels = ["20/s", "30/s", "40/s", "50/s", "60/s"];
    let mut settings = Vec::new();
    let mut load_series = Vec::new();
    let mut trials = Vec::new();
    for (set, capacity, base_ms) in sets {
        let mut keys = Vec::new();
        let (mut knee, mut limit) = (None, None);
        for label in labels {
            let rate: f64 = label.trim_end_matches("/s").parse().expect("a number");
            let key = format!("set={set},rate={label}");
            let of = loaded_trial(&key, rate, capacity, base_ms);
            if rate <= capacity {
                knee = Some(key.clone());
            } else if limit.is_none() {
                limit = Some(key.clone());
            }
            trials.push(picture_of(&of));
            settings.push(setting(&key, vec![of]));
            keys.push(key);
        }
        let values = BTreeMap::from([("set".to_owned(), set.to_owned())]);
        load_series.push(LoadSeries { values, settings: keys, knee, limit });
    }
    let mut result = run("api-study", Exit::Failed, "p99 < 1s is broken", settings);
    result.load_series = load_series;
    let axis = |name: &str, labels: &[&str]| Axis {
        name: name.to_owned(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
    };
    let axes = vec![axis("set", &["all", "dapp", "large"]), axis("rate", &labels)];
    (result, RunPicture { axes, trials, ..RunPicture::default() })
}

/// A trial of 240 s at this rate against a system of this capacity.
fn loaded_trial(key: &str, rate: f64, capacity: f64, base_ms: i64) -> TrialResult {
    let mut it = trial(key);
    it.window_ns = 240 * S;
    let due = (rate * 240.0) as u64;
    let lost = ((rate - capacity).max(0.0) * 240.0) as u64;
    it.counts = counts(due, &[("limited", lost * 2 / 3)], lost / 3, 0);
    it.rates = rates(Some(rate), &it.counts, it.window_ns, &["accepted", "committed"]);
    let stretch = (100.0 / (1.0 - (rate / capacity).min(0.97))) as i64;
    let p50 = base_ms * MS * stretch / 150;
    let values = [p50, p50 * 2, p50 * 5 / 2, p50 * 4, p50 * 8];
    let inf = it.counts.rejected + it.counts.unknown;
    let mut response = distribution_of(it.counts.committed, inf, values, p50 * 11);
    response.curve = smooth_curve(p50, it.counts.committed);
    it.latency = vec![latency("committed", response, inf)];
    it.latency[0].service.curve = smooth_curve(p50 * 2 / 3, it.counts.committed);
    it.thresholds = vec![threshold("p99 < 1s", Some(p50 * 4 < S), "…")];
    it.timeline = timeline(rate, capacity, p50, 270);
    it
}

/// A curve with a shoulder at 90 % and a tail, with the points that HdrHistogram would give it.
fn smooth_curve(p50: i64, count: u64) -> Vec<CurvePoint> {
    let mut points = Vec::new();
    for step in 0..60 {
        let rest = 0.5_f64.powf(f64::from(step) / 5.0);
        if rest < 1.0 / count.max(1) as f64 {
            break;
        }
        let nines = -rest.log10();
        let shape = 0.35 + nines * 2.1 + (nines - 1.0).max(0.0).powi(2) * 1.4;
        points.push(CurvePoint { q: 1.0 - rest, value_ns: (p50 as f64 * shape) as i64 });
    }
    let last = points.last().map_or(p50, |point| point.value_ns);
    points.push(CurvePoint { q: 1.0, value_ns: last + last / 20 });
    points
}

/// `seconds` columns of a second with a freeze in the middle.
pub fn timeline(rate: f64, capacity: f64, p50: i64, seconds: i64) -> Timeline {
    let column = |second: i64| {
        let is_loaded = second < seconds - 10;
        let is_frozen = (seconds / 2..seconds / 2 + 5).contains(&second);
        let wave = ((second * 37) % 11 - 5) as f64 / 10.0;
        let offered = if is_loaded { (rate + wave * 4.0).max(0.0) as u64 } else { 0 };
        let committed = if is_frozen { 0 } else { offered.min((capacity + wave * 3.0) as u64) };
        let failed = offered.saturating_sub(committed);
        let slow = if is_frozen { 20 } else { 1 };
        let value = |factor: i64| {
            (committed > 0 || is_frozen).then_some(p50 * slow * (factor + (second * 13) % 7) / 10)
        };
        let mut by_class = BTreeMap::new();
        if failed > 0 {
            by_class.insert("limited".to_owned(), failed - failed / 3);
            by_class.insert("unknown".to_owned(), failed / 3);
        }
        TimelineColumn {
            offered,
            sent: offered,
            committed,
            failed: by_class,
            reached: vec![offered, committed],
            outstanding: 4 + second % 9 + if is_frozen { 200 } else { 0 },
            p50_ns: value(8),
            p99_ns: value(38),
            p999_ns: value(70),
            max_ns: value(92),
            own_lag_p99_ns: is_loaded.then_some(15_000 + (second * 7_919) % 40_000),
        }
    };
    Timeline { width_ns: S, columns: (0..seconds).map(column).collect(), ..Timeline::default() }
}

/// Densities, bands, moments and series that fit a trial.
pub fn picture_of(trial: &TrialResult) -> TrialPicture {
    let columns = trial.timeline.columns.len();
    let density = trial.timeline.columns.iter().map(|column| {
        let Some(p50) = column.p50_ns else { return Vec::new() };
        let middle = density_bucket(p50);
        let near = |step: u8| {
            (middle.saturating_sub(6).saturating_add(step), 40 / (1 + u32::from(step.abs_diff(6))))
        };
        (0..18).map(near).collect()
    });
    let end = trial.timeline.width_ns * columns as i64;
    let band =
        |kind, from_ns, to_ns, label: &str| Band { kind, from_ns, to_ns, label: label.to_owned() };
    let mut series = vec![
        wave("generator", "cpu_cores", columns, 0.2, 0.05),
        wave("host", "cpu_cores", columns, 1.6, 0.3),
        wave("host", "steal_share", columns, 0.002, 0.004),
        wave("host", "run_queue", columns, 3.0, 2.0),
        wave("host", "memory_available_bytes", columns, 6e9, 4e8),
    ];
    for node in 0..20 {
        series.push(wave(
            &format!("node-{node}"),
            "rss_bytes",
            columns,
            2e8 + f64::from(node) * 1e7,
            4e6,
        ));
    }
    let mut drawn = TrialPicture::default();
    if trial.node_stages.is_some() {
        crate::inside_samples::add_traces(&mut drawn);
    }
    TrialPicture {
        path: trial.path.clone(),
        stages: vec!["accepted".to_owned(), "committed".to_owned()],
        final_stage: 1,
        density: density.collect(),
        bands: vec![
            band(BandKind::Warmup, 0, 20 * S, "warm-up"),
            band(BandKind::Step, 20 * S, end / 2, "first half"),
            band(BandKind::Fault, end / 2, end / 2 + 5 * S, "pause echo-0"),
            band(BandKind::Drain, end - 10 * S, end, "drain"),
        ],
        moments: vec![Moment { at_ns: end / 3, name: "lost".to_owned(), detail: "1".to_owned() }],
        series,
        ..drawn
    }
}

/// Samples in every second column.
fn wave(source: &str, name: &str, columns: usize, middle: f64, swing: f64) -> Series {
    let at = |index: usize| {
        if index % 2 == 1 {
            f64::NAN
        } else {
            (middle + swing * ((index as f64) / 9.0).sin()).max(0.0)
        }
    };
    let mean: Vec<f64> = (0..columns).map(at).collect();
    Series {
        source: source.to_owned(),
        name: name.to_owned(),
        min: mean.iter().map(|value| value * 0.95).collect(),
        max: mean.iter().map(|value| value * 1.05).collect(),
        mean,
    }
}

/// Every run that the figures must survive, by name.
pub fn all() -> Vec<(String, RunResult, RunPicture)> {
    let (result, picture) = study();
    let mut all = vec![("study".to_owned(), result.clone(), picture.clone())];
    for (name, sample) in sample_runs::all() {
        let of = sample.settings.iter().flat_map(|setting| &setting.trials).map(picture_of);
        let trials = of.collect();
        all.push((name.to_owned(), sample.clone(), RunPicture { trials, ..RunPicture::default() }));
        all.push((format!("{name} without a picture"), sample, RunPicture::default()));
    }
    all.extend(odd(&result, &picture));
    all
}

/// Runs at the edges of what there can be.
fn odd(result: &RunResult, picture: &RunPicture) -> Vec<(String, RunResult, RunPicture)> {
    let mut odd = Vec::new();
    let mut push = |name: &str, change: &dyn Fn(&mut RunResult, &mut RunPicture)| {
        let (mut result, mut picture) = (result.clone(), picture.clone());
        change(&mut result, &mut picture);
        odd.push((name.to_owned(), result, picture));
    };
    push("no setting", &|result, _| result.settings.clear());
    push("no trial", &|result, _| result.settings.iter_mut().for_each(|s| s.trials.clear()));
    push("one point", &|result, picture| {
        result.settings.truncate(1);
        picture.trials.truncate(1);
    });
    push("nothing reached", &|result, picture| {
        each(result, |trial| {
            trial.latency = vec![LatencyResult {
                stage: "committed".to_owned(),
                inf: 9,
                ..LatencyResult::default()
            }];
            trial.timeline.columns.iter_mut().for_each(|column| {
                *column = TimelineColumn { offered: 3, ..TimelineColumn::default() };
            });
        });
        picture.trials.iter_mut().for_each(|trial| trial.density.clear());
    });
    push("no latency", &|result, _| each(result, |trial| trial.latency.clear()));
    push("zero counts", &|result, _| {
        each(result, |trial| {
            trial.counts = counts(0, &[], 0, 0);
            trial.rates = Rates::default();
            trial
                .timeline
                .columns
                .iter_mut()
                .for_each(|column| *column = TimelineColumn::default());
        });
    });
    push("not a number", &|result, picture| {
        each(result, |trial| {
            trial.rates.offered_per_s = f64::NAN;
            trial.rates.goodput_per_s = f64::INFINITY;
            for point in trial.latency.iter_mut().flat_map(|it| &mut it.response.curve) {
                point.q = f64::NAN;
            }
        });
        for series in picture.trials.iter_mut().flat_map(|trial| &mut trial.series) {
            series.mean.fill(f64::NAN);
            series.max.fill(f64::INFINITY);
        }
    });
    push("half known", &|result, picture| {
        each(result, |trial| trial.rates.goodput_per_s = f64::NAN);
        for series in picture.trials.iter_mut().flat_map(|trial| &mut trial.series) {
            series.min.fill(f64::NEG_INFINITY);
            series.max.clear();
        }
    });
    push("no column", &|result, _| each(result, |trial| trial.timeline = Timeline::default()));
    push("one column", &|result, picture| {
        each(result, |trial| trial.timeline.columns.truncate(1));
        picture.trials.iter_mut().for_each(|trial| trial.density.truncate(1));
    });
    push("1,200 columns", &|result, picture| {
        each(result, |trial| trial.timeline = timeline(50.0, 40.0, 90 * MS, 1_200));
        let trials = result.settings.iter().flat_map(|setting| &setting.trials);
        picture.trials = trials.map(full_picture).collect();
    });
    push("largest numbers", &|result, picture| {
        each(result, |trial| {
            trial.timeline.width_ns = i64::MAX;
            for column in &mut trial.timeline.columns {
                *column = TimelineColumn {
                    offered: u64::MAX,
                    committed: u64::MAX,
                    failed: BTreeMap::from([("server".to_owned(), u64::MAX)]),
                    reached: vec![u64::MAX, 0, u64::MAX],
                    outstanding: i64::MIN,
                    p50_ns: Some(i64::MIN),
                    max_ns: Some(i64::MAX),
                    ..TimelineColumn::default()
                };
            }
            trial.counts.due = u64::MAX;
            trial.latency = vec![extreme()];
        });
        for trial in &mut picture.trials {
            trial.density = vec![vec![(u8::MAX, u32::MAX), (0, 0)]; 3_000];
            trial
                .bands
                .iter_mut()
                .for_each(|band| (band.from_ns, band.to_ns) = (i64::MAX, i64::MIN));
        }
    });
    push("evil texts", &|result, picture| {
        let evil = "\"><script>alert(1)</script>\u{1b}[31m\u{0}\u{202e}]]>&amp;'";
        result.name = evil.to_owned();
        for setting in &mut result.settings {
            setting.key = evil.to_owned();
            setting.values = BTreeMap::from([(evil.to_owned(), setting.trials[0].path.clone())]);
        }
        each(result, |trial| {
            trial.final_stage = evil.to_owned();
            trial.thresholds = vec![threshold("p99 < 1s and goodput > 10/s", Some(true), evil)];
        });
        for trial in &mut picture.trials {
            trial.stages = vec![evil.to_owned(); 12];
            trial.bands.iter_mut().for_each(|band| band.label = evil.to_owned());
            trial.series.iter_mut().for_each(|series| series.source = evil.to_owned());
        }
    });
    push("many settings", &|result, picture| {
        let (settings, trials) = (result.settings.clone(), picture.trials.clone());
        for copy in 0..4 {
            result.settings.extend(settings.iter().cloned().map(|mut setting| {
                setting.key = format!("copy={copy},{}", setting.key);
                setting.values.insert("copy".to_owned(), copy.to_string());
                setting
            }));
            picture.trials.extend(trials.iter().cloned());
        }
    });
    push("several trials", &|result, picture| {
        let mut trials = Vec::new();
        for setting in &mut result.settings {
            for number in 1..3 {
                let mut again = setting.trials[0].clone();
                again.trial = number;
                again.verdict = Verdict::Fail;
                again.rates.goodput_per_s *= 1.0 - f64::from(number) / 20.0;
                setting.trials.push(again);
            }
            trials.extend(setting.trials.iter().map(picture_of));
        }
        picture.trials = trials;
    });
    odd
}

fn each(result: &mut RunResult, change: impl Fn(&mut TrialResult)) {
    result.settings.iter_mut().flat_map(|setting| &mut setting.trials).for_each(change);
}

/// Every cell of the density is filled.
fn full_picture(trial: &TrialResult) -> TrialPicture {
    let mut picture = picture_of(trial);
    let buckets = u8::try_from(DENSITY_BUCKETS).expect("fewer than 256");
    let column =
        |index: u32| (0..buckets).map(|b| (b, (index * 31 + u32::from(b) * 17) % 5_000)).collect();
    picture.density = (0..1_200).map(column).collect();
    picture
}

fn extreme() -> LatencyResult {
    let point = |q, value_ns| CurvePoint { q, value_ns };
    let response = Distribution {
        count: u64::MAX,
        min_ns: Some(i64::MIN),
        max_ns: Some(i64::MAX),
        quantiles: vec![Quantile {
            q: 0.5,
            name: "p50".to_owned(),
            value_ns: Some(i64::MAX),
            ..Quantile::default()
        }],
        curve: vec![point(0.0, i64::MIN), point(0.5, 0), point(1.0, i64::MAX), point(2.0, 1)],
        ..Distribution::default()
    };
    LatencyResult {
        stage: "committed".to_owned(),
        service: response.clone(),
        response,
        inf: u64::MAX,
        ..LatencyResult::default()
    }
}
