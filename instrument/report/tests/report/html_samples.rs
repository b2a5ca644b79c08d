//! Sample runs with all that a page shows: time in columns, curves, calls, and a picture.

use model::outcome::{Class, Outcome};
use model::picture::{
    Band, BandKind, Moment, RawFile, RunPicture, Series, SlowTransaction, TrialPicture,
};
use model::plan::Axis;
use model::result::{CallsResult, CurvePoint, RunResult, Timeline, TimelineColumn, TrialResult};
use model::row::{NO_STAMP, Row, STAGES_MAX};

use crate::sample_parts::{MS, S};
use crate::sample_runs;

/// Columns of each trial.
pub const COLUMNS: usize = 30;

/// Every sample run, filled in, with its picture.
pub fn all() -> Vec<(&'static str, (RunResult, RunPicture))> {
    sample_runs::all().into_iter().map(|(name, run)| (name, filled(run))).collect()
}

/// The sample with this name.
pub fn named(name: &str) -> (RunResult, RunPicture) {
    let found = all().into_iter().find(|(known, _)| *known == name);
    found.expect("a sample of that name").1
}

/// The run with columns of time, and its picture.
pub fn filled(mut run: RunResult) -> (RunResult, RunPicture) {
    let mut trials = Vec::new();
    for trial in run.settings.iter_mut().flat_map(|setting| &mut setting.trials) {
        fill(trial);
        let mut picture = picture(trial);
        if trial.node_stages.is_some() {
            crate::inside_samples::add_traces(&mut picture);
        }
        trials.push(picture);
    }
    let axes = run.settings.first().map(|setting| {
        let axis = |name: &String| {
            let labels = run.settings.iter().filter_map(|it| it.values.get(name).cloned());
            let mut labels: Vec<String> = labels.collect();
            labels.dedup();
            Axis { name: name.clone(), labels }
        };
        setting.values.keys().map(axis).collect()
    });
    let picture = RunPicture {
        experiment: "name = \"sample\"\n[load]\nrate = \"50/s\" # <b>\n".to_owned(),
        plan: "seed = 42\n".to_owned(),
        axes: axes.unwrap_or_default(),
        files: vec![RawFile {
            path: "settings/x/trial-0/transactions.parquet".to_owned(),
            bytes: 12_345,
            crc32: 0x00ab_cdef,
        }],
        trials,
    };
    (run, picture)
}

fn fill(trial: &mut TrialResult) {
    let stages = trial.rates.reached_per_s.len();
    let column = |index: usize| {
        let nth = i64::try_from(index).expect("small");
        let mut column = TimelineColumn {
            offered: 50,
            sent: 50,
            committed: 48,
            reached: vec![48; stages],
            outstanding: nth % 4,
            p50_ns: Some(400_000 + nth * 1_000),
            p99_ns: Some(2 * MS + nth * 7_000),
            p999_ns: (nth % 5 == 0).then_some(9 * MS),
            max_ns: Some(9 * MS + nth),
            own_lag_p99_ns: Some(20_000 + nth),
            ..TimelineColumn::default()
        };
        column.failed.insert("server".to_owned(), 1);
        column.failed.insert("unknown".to_owned(), 1);
        column
    };
    trial.timeline = Timeline {
        width_ns: S,
        columns: (0..COLUMNS).map(column).collect(),
        ..Timeline::default()
    };
    for latency in &mut trial.latency {
        let max = latency.response.max_ns.unwrap_or(S);
        latency.response.curve = [0.0, 0.5, 0.9, 0.99, 0.999, 1.0]
            .into_iter()
            .zip([8, 4, 3, 2, 1, 1])
            .map(|(q, part)| CurvePoint { q, value_ns: max / part })
            .collect();
    }
    trial.calls = [(10, 0.5), (100, 0.1), (1_000, 0.01)]
        .into_iter()
        .map(|(calls, chance)| CallsResult {
            calls,
            chance,
            exceeds_ns: (calls < 1_000).then_some(7 * MS),
        })
        .collect();
}

fn picture(trial: &TrialResult) -> TrialPicture {
    let slow = |column: usize, outcome: Outcome| {
        let due = i64::try_from(column).expect("small") * S;
        let mut marks = [NO_STAMP; STAGES_MAX];
        if outcome == Outcome::Committed {
            marks[0] = due + 9 * MS;
        }
        let row = Row {
            tx: 7,
            due,
            ready: due,
            sent: due + 1_000,
            marks,
            end: due + 9 * MS,
            receive_lag: NO_STAMP,
            outcome,
            code: 200,
            error: 1,
            kind: 0,
            connection: 3,
            worker: 0,
            stream: 0,
            attempts: 1,
            client: 0,
            bytes_out: 0,
            bytes_in: 0,
        };
        SlowTransaction { column, row }
    };
    TrialPicture {
        path: trial.path.clone(),
        traces: Vec::new(),
        stages: trial.rates.reached_per_s.iter().map(|(stage, _)| stage.clone()).collect(),
        final_stage: trial.rates.reached_per_s.len().saturating_sub(1),
        density: (0..COLUMNS).map(|_| vec![(60, 40), (70, 8)]).collect(),
        slowest: (0..COLUMNS)
            .flat_map(|column| {
                [slow(column, Outcome::Rejected(Class::Server)), slow(column, Outcome::Committed)]
            })
            .collect(),
        kinds: vec!["GET /".to_owned()],
        errors: vec![String::new(), "500 oops".to_owned()],
        bands: vec![
            Band { kind: BandKind::Warmup, from_ns: 0, to_ns: 2 * S, label: String::new() },
            Band {
                kind: BandKind::Fault,
                from_ns: 9 * S,
                to_ns: 10 * S,
                label: "pause echo-0".to_owned(),
            },
        ],
        moments: vec![Moment {
            at_ns: 9 * S,
            name: "connection_lost".to_owned(),
            detail: "reset".to_owned(),
        }],
        series: ["generator", "host", "echo-0"]
            .into_iter()
            .map(|source| Series {
                source: source.to_owned(),
                name: "cpu_cores".to_owned(),
                min: vec![0.1; COLUMNS],
                mean: vec![0.5; COLUMNS],
                max: vec![0.9; COLUMNS],
            })
            .chain(crate::node_samples::series_of(trial))
            .collect(),
        lanes: crate::node_samples::lanes_of(trial),
    }
}
