//! A long run on disk without waiting for one: `cargo run --release -p analysis --example long_run -- FOLDER ROWS SECONDS`
//! makes a run of four settings with so many rows in all, each setting so many seconds long, with four nodes of four
//! series beside host and generator. What the report of such a run costs is then a matter of `assay report`.

#[path = "parts/setting.rs"]
mod parts;

use std::time::Duration;

use clock::WallTime;
use model::facts::{
    AfterFacts, DeclaredFacts, Environment, LoadFacts, MetricSample, NodeFacts, TrialFacts,
    WorkerFacts,
};
use model::fault::{FaultDetail, FaultEvent, FaultPhase};
use model::plan::{Axis, Plan, SettingPlan};
use model::seed::Rng;
use model::series::{SeriesFacts, SeriesUnit};
use model::{Class, NO_STAMP, Outcome, Row, Seed};

const SETTINGS: u64 = 4;
const SECOND: i64 = 1_000_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, rows, seconds] = &arguments[..] else {
        println!("give a folder, a number of rows and the seconds of a setting");
        return;
    };
    let rows: u64 = rows.parse().expect("a number of rows");
    let seconds: u64 = seconds.parse().expect("a number of seconds");
    let runs = std::path::Path::new(folder);
    let started = WallTime::from_unix_ns(0);
    let run = record::RunFolder::create(runs, "long-run", started).expect("a run folder");
    // The higher setting sends more: 1, 2, 3 and 4 tenths of the rows.
    let rates: Vec<u64> = (1..=SETTINGS).map(|part| (rows * part / 10 / seconds).max(1)).collect();
    run.write_plan(&plan(&rates, seconds)).expect("plan.toml");
    run.write_environment(&Environment::default()).expect("environment.json");
    run.write_text("experiment.toml", "# made by an example, not by an experiment\n")
        .expect("experiment.toml");
    for rate in rates {
        trial(&run, rate, seconds);
    }
    println!("{}", run.path().display());
}

fn trial(run: &record::RunFolder, rate: u64, seconds: u64) {
    let trial = run.trial(&key(rate), 0).expect("a trial folder");
    let rows = rate * seconds;
    trial.write_facts(&facts(rate, seconds)).expect("trial.json");
    let mut log = trial.row_log().expect("a row log");
    let mut random = Seed(rate).rng();
    let mut batch = Vec::with_capacity(512);
    for tx in 0..rows {
        batch.push(row(tx, rate, &mut random));
        if batch.len() == 512 || tx + 1 == rows {
            log.append(&batch).expect("rows are written");
            batch.clear();
        }
    }
    log.close().expect("the log is closed");
    trial.write_metrics(&metrics(seconds, &mut random)).expect("metrics.parquet");
    let half = i64::try_from(seconds / 2).expect("hours") * SECOND;
    let mut faults = trial.fault_log().expect("faults.ndjson");
    for (at_ns, phase) in [(half, FaultPhase::Start), (half + 20 * SECOND, FaultPhase::End)] {
        faults.append(&FaultEvent {
            fault: 0,
            cycle: 0,
            phase,
            kind: "pause".into(),
            node: "node-1".into(),
            planned_ns: half,
            at_ns,
            detail: FaultDetail::Nothing,
        });
    }
    faults.close().expect("faults.ndjson");
    trial.seal().expect("the trial is sealed");
}

/// Response times with a body, a tail and a stall each hundred seconds, so that a picture of them has something to show.
fn row(tx: u64, rate: u64, random: &mut Rng) -> Row {
    let due = i64::try_from(tx * 1_000_000_000 / rate).expect("hours");
    #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of a few seconds")]
    let body = (random.exponential(2e6) + random.exponential(1e6)) as i64 + 400_000;
    let tail = if tx.is_multiple_of(1_009) { body * 40 } else { 0 };
    let into_stall = due % (100 * SECOND);
    let stall = if into_stall < SECOND { SECOND - into_stall } else { 0 };
    let failed = tx.is_multiple_of(997);
    let mark = due + body + tail + stall;
    Row {
        tx,
        due,
        ready: due,
        sent: due + 3_000 + body % 7_919,
        marks: [
            due + body / 2 + stall + 11_000,
            if failed { NO_STAMP } else { mark + 11_000 },
            NO_STAMP,
            NO_STAMP,
        ],
        end: mark + 11_000,
        receive_lag: 11_000,
        outcome: if failed { Outcome::Rejected(Class::Limited) } else { Outcome::Committed },
        code: if failed { 429 } else { 200 },
        error: u16::from(failed),
        kind: u32::try_from(tx % 12).expect("below 12"),
        connection: u32::try_from(tx % 64).expect("below 64"),
        worker: 0,
        stream: 0,
        attempts: 1,
        client: 0,
        bytes_out: 0,
        bytes_in: 512,
    }
}

fn metrics(seconds: u64, random: &mut Rng) -> Vec<MetricSample> {
    let mut samples = Vec::new();
    for second in 0..seconds {
        let at = i64::try_from(second).expect("hours") * SECOND + SECOND / 2;
        let mut add = |source: &str, name: &str, value: f64| {
            samples.push(MetricSample { at, source: source.into(), name: name.into(), value });
        };
        for node in 0..4 {
            let source = format!("node-{node}");
            add(&source, "cpu_cores", 0.4 + random.exponential(0.1));
            add(&source, "rss_bytes", 5e7 + random.exponential(1e6));
            add(&source, "height", f64::from(u32::try_from(second).expect("hours")) / 3.0);
            add(&source, "mempool_transactions", random.exponential(500.0));
        }
        add("generator", "cpu_cores", 0.2 + random.exponential(0.02));
        add("generator", "rss_bytes", 2.7e7 + random.exponential(1e5));
        add("host", "steal_share", random.exponential(0.01));
        add("host", "run_queue", random.exponential(1.5));
    }
    samples
}

/// Their declarations.
fn series() -> Vec<SeriesFacts> {
    let host = |name: &str, unit| SeriesFacts::of_host(name, name, unit).foremost();
    let node = |name: &str, unit: &str| SeriesFacts::of_node(name, name, SeriesUnit::of(unit));
    vec![
        host("cpu_cores", SeriesUnit::of("cores")).adding_up(),
        host("rss_bytes", SeriesUnit::Bytes).adding_up(),
        host("steal_share", SeriesUnit::Share),
        host("run_queue", SeriesUnit::of("threads")),
        node("height", "blocks").progress("blocks", 1, 10),
        node("mempool_transactions", "transactions").adding_up().foremost(),
    ]
}

fn facts(rate: u64, seconds: u64) -> TrialFacts {
    let rows = rate * seconds;
    let end = i64::try_from(seconds).expect("hours") * SECOND;
    let node = |index: u32| NodeFacts {
        name: format!("node-{index}"),
        pid: 100 + index,
        ..NodeFacts::default()
    };
    TrialFacts {
        declared: DeclaredFacts {
            setting: key(rate),
            stages: vec!["accepted".into(), "committed".into()],
            final_stage: 1,
            kinds: (0..12)
                .map(|n| model::facts::KindFacts::recorded(format!("GET /{n}")))
                .collect(),
            measure_start: 10 * SECOND,
            measure_end: end,
            series: series(),
            ..DeclaredFacts::default()
        },
        load: LoadFacts {
            errors: vec![String::new(), "429 Too Many Requests".into()],
            drain_end: end + SECOND,
            workers: vec![WorkerFacts {
                due: rows,
                sent: rows,
                answered: rows,
                wall_ns: u64::try_from(end).expect("positive"),
                ..WorkerFacts::default()
            }],
            ..LoadFacts::default()
        },
        after: AfterFacts { nodes: (0..4).map(node).collect(), ..AfterFacts::default() },
        complete: true,
        ..TrialFacts::default()
    }
}

fn key(rate: u64) -> String {
    format!("rate={rate}/s")
}

fn plan(rates: &[u64], seconds: u64) -> Plan {
    Plan {
        axes: vec![Axis {
            name: "rate".into(),
            labels: rates.iter().map(|rate| format!("{rate}/s")).collect(),
        }],
        ..Plan::plain("long-run", rates.iter().map(|rate| setting(*rate, seconds)).collect())
    }
}

fn setting(rate: u64, seconds: u64) -> SettingPlan {
    let mut setting = parts::setting(rate, Duration::from_secs(seconds - 10));
    setting.key = key(rate);
    setting.values = [("rate".to_owned(), format!("{rate}/s"))].into();
    setting.load.warmup = Duration::from_secs(10);
    setting.measure.ledger = false;
    setting
}
