//! How long the analysis of ten million rows takes, and how much memory: `cargo run --release -p analysis
//! --example analyse_ten_million`. Rows are made in memory, in the order and shape of a record; making them is timed
//! apart, and all times are processor time of the one thread, so that a busy machine does not show.
//! With `write FOLDER [ROWS]` the rows become a run folder there, and with the path of a run folder that is analysed.

#[path = "parts/setting.rs"]
mod parts;

use std::time::Duration;

use analysis::{TrialAnalysis, TrialInput};
use clock::CpuTime;
use model::facts::{
    AfterFacts, DeclaredFacts, Environment, LedgerEntry, LedgerFacts, LoadFacts, TrialFacts,
    WorkerFacts,
};
use model::plan::{Plan, SettingPlan};
use model::{Class, NO_STAMP, Outcome, Row, Seed};

const ROWS: u64 = 10_000_000;
const RATE: u64 = 50_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => in_memory(),
        ["write", path] => write(path, ROWS),
        ["write", path, rows] => write(path, rows.parse().expect("a number of rows")),
        [path] => folder(path),
        _ => println!("give nothing, `write FOLDER [ROWS]`, or a run folder"),
    }
}

fn in_memory() {
    let seconds = ROWS / RATE;
    let setting = setting(Duration::from_secs(seconds));
    let facts = facts(ROWS, seconds);
    let environment = Environment::default();
    let input = TrialInput {
        path: "in memory".into(),
        setting: &setting,
        thresholds: &[],
        percentiles: &[0.5, 0.9, 0.95, 0.99, 0.999],
        facts: &facts,
        metrics: &[],
        environment: &environment,
        dropped_bytes: 0,
    };
    let mut analysis = TrialAnalysis::new(input, analysis::Checks::default());
    let (mut making, mut reading) = (Duration::ZERO, Duration::ZERO);
    let mut random = Seed(1).rng();
    let mut batch = Vec::with_capacity(4_096);
    let mut next = 0;
    while next < ROWS {
        let start = CpuTime::of_this_thread();
        batch.clear();
        batch.extend((next..(next + 4_096).min(ROWS)).map(|tx| row(tx, &mut random)));
        next += 4_096;
        let made = CpuTime::of_this_thread();
        analysis.rows(&batch);
        making += made.since(start);
        reading += CpuTime::of_this_thread().since(made);
    }
    let start = CpuTime::of_this_thread();
    for tx in (0..ROWS).filter(|tx| !tx.is_multiple_of(997)) {
        analysis.entry(&LedgerEntry::new(tx, tx, true), &[]);
    }
    let entries = CpuTime::of_this_thread().since(start);
    let start = CpuTime::of_this_thread();
    let result = analysis.finish();
    let finishing = CpuTime::of_this_thread().since(start);
    println!("making rows   {making:?}");
    println!("rows          {reading:?}  ({} ns each)", reading.as_nanos() / u128::from(ROWS));
    println!("entries       {entries:?}  ({} ns each)", entries.as_nanos() / u128::from(ROWS));
    println!("finish        {finishing:?}");
    println!("peak memory   {}", peak_memory());
    println!("verdict       {} {}", result.verdict.word(), result.reason);
}

fn write(path: &str, rows: u64) {
    let seconds = (rows / RATE).max(1);
    let started = clock::WallTime::from_unix_ns(0);
    let runs = std::path::Path::new(path);
    let run = record::RunFolder::create(runs, "ten-million", started).expect("a run folder");
    run.write_plan(&plan(seconds)).expect("plan.toml");
    run.write_environment(&Environment::default()).expect("environment.json");
    run.write_text("experiment.toml", "# made by an example, not by an experiment\n")
        .expect("experiment.toml");
    let trial = run.trial("default", 0).expect("a trial folder");
    trial.write_facts(&facts(rows, seconds)).expect("trial.json");
    let mut log = trial.row_log().expect("a row log");
    let mut random = Seed(1).rng();
    for first in (0..rows).step_by(512) {
        let batch: Vec<Row> =
            (first..(first + 512).min(rows)).map(|tx| row(tx, &mut random)).collect();
        log.append(&batch).expect("rows are written");
    }
    log.close().expect("the log is closed");
    if has_ledger(rows) {
        let mut ledger = trial.ledger_writer().expect("a ledger");
        for tx in (0..rows).filter(|tx| !tx.is_multiple_of(997)) {
            ledger.push(LedgerEntry::new(tx, tx, true), None).expect("entries are written");
        }
        ledger.close().expect("the ledger is closed");
    }
    trial.seal().expect("the trial is sealed");
    println!("{}", run.path().display());
}

/// More have none: an API.
fn has_ledger(rows: u64) -> bool {
    rows <= ROWS
}

fn plan(seconds: u64) -> Plan {
    Plan::plain("ten-million", vec![setting(Duration::from_secs(seconds))])
}

fn folder(path: &str) {
    let start = CpuTime::of_this_thread();
    let run = record::RunFolder::open(path).expect("a run folder at the path given");
    let result = analysis::analyse(&run, &|_| &[]).expect("it can be read");
    println!("{:?}, peak memory {}", CpuTime::of_this_thread().since(start), peak_memory());
    println!("{} {}", result.verdict.word(), result.reason);
}

fn row(tx: u64, random: &mut model::seed::Rng) -> Row {
    let due = i64::try_from(tx * 1_000_000_000 / RATE).expect("minutes");
    #[expect(clippy::cast_possible_truncation, reason = "nanoseconds of a second or two")]
    let length = random.exponential(2e6) as i64 + 50_000;
    let failed = tx.is_multiple_of(997);
    let outcome = if failed { Outcome::Rejected(Class::Limited) } else { Outcome::Committed };
    let mark = due + length;
    let accepted = due + length / 2;
    Row {
        tx,
        due,
        ready: due,
        sent: due + 3_000,
        marks: [accepted, if failed { NO_STAMP } else { mark }, NO_STAMP, NO_STAMP],
        end: mark,
        receive_lag: 15_000,
        outcome,
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

fn facts(rows: u64, seconds: u64) -> TrialFacts {
    TrialFacts {
        declared: DeclaredFacts {
            stages: vec!["accepted".into(), "committed".into()],
            final_stage: 1,
            kinds: (0..12)
                .map(|n| model::facts::KindFacts::recorded(format!("GET /{n}")))
                .collect(),
            measure_end: i64::try_from(seconds * 1_000_000_000).expect("minutes"),
            ..DeclaredFacts::default()
        },
        load: LoadFacts {
            errors: vec![String::new(), "429 Too Many Requests".into()],
            drain_end: i64::try_from((seconds + 1) * 1_000_000_000).expect("minutes"),
            workers: vec![WorkerFacts {
                due: rows,
                sent: rows,
                answered: rows,
                ..WorkerFacts::default()
            }],
            ..LoadFacts::default()
        },
        after: AfterFacts {
            ledger: LedgerFacts {
                read: has_ledger(rows),
                entries: rows - rows.div_ceil(997),
                detail: "in memory".into(),
                ..LedgerFacts::default()
            },
            ..AfterFacts::default()
        },
        complete: true,
        ..TrialFacts::default()
    }
}

fn setting(duration: Duration) -> SettingPlan {
    parts::setting(RATE, duration)
}

/// The kernel's own figure for the most memory that this process held.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
