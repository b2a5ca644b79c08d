//! What a check of ten million list-append transactions takes with all that is around it: the record of a simulated store,
//! strictly serializable, is written and sealed, and then read and judged as `assay report` does. `of_record
//! [TRANSACTIONS]`.

use std::collections::HashMap;

use clock::{Clock, CpuTime, Instant, WallTime};
use isolation::checks::LIST_APPEND;
use isolation::observation::Shown;
use isolation::workload::Lists;
use isolation::{Element, Key, MicroOp};
use model::check::CheckInput;
use model::facts::{KindFacts, TrialFacts};
use model::observation::{Observation, Observations};
use model::options::{Options, Problems, Section, Span, Value};
use model::{Row, Seed};
use record::{RunFolder, TrialFolder};

/// Sessions, of which each keeps what it has shown.
const SESSIONS: usize = 4;
const SEED: Seed = Seed(7);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let count: u64 = arguments.next().unwrap_or(10_000_000);
    let folder = tempfile::tempdir().expect("a folder for the run");
    let run = RunFolder::create(folder.path(), "lists", WallTime::now()).expect("a run folder");
    let trial = run.trial("lists", 0).expect("a trial folder");
    let mut facts = TrialFacts::default();
    facts.declared.stages = vec!["committed".to_owned()];
    trial.write_facts(&facts).expect("facts");
    timed("written", || write(&trial, count));
    timed("sealed", || trial.seal().expect("room on the disk"));
    for name in ["transactions.parquet", "observations.parquet"] {
        let bytes = std::fs::metadata(trial.path().join(name)).expect("it was sealed").len();
        println!("{name}: {} bytes a transaction", bytes / count);
    }
    judge(&trial);
    println!("memory at its peak: {} MiB", peak_mib());
}

/// The trial's workload, as an experiment asks for it.
fn workload() -> Options {
    let mut options = Options::empty();
    let value = Value::String(isolation::workload::LIST_APPEND.to_owned());
    options.set("kind", Options { span: Span::default(), value });
    options
}

/// Each transaction takes effect a microsecond after the last one, within some hundred of them.
fn write(trial: &TrialFolder, count: u64) {
    let workload = workload();
    let mut problems = Problems::default();
    let mut section = Section::open(&workload, "workload", &mut problems);
    let lists = Lists::read(&mut section, SEED.split("workload"), &mut problems);
    let mut rows = trial.row_log().expect("a row log");
    let mut observed = trial.observation_log().expect("an observation log");
    let mut shown: Vec<Shown> = (0..SESSIONS).map(|_| Shown::default()).collect();
    let mut state: HashMap<Key, Vec<Element>> = HashMap::new();
    let mut rng = SEED.split("times").rng();
    let (mut ops, mut bytes) = (Vec::new(), Vec::new());
    let (mut batch, mut observations) = (Vec::new(), Observations::default());
    let mut newest = 0;
    for tx in 0..count {
        lists.ops(tx, &mut ops);
        let moment = i64::try_from(tx * 1_000).expect("few enough");
        let mut span = || i64::try_from(rng.below(50_000)).expect("small");
        let (sent, end) = (moment - span(), moment + span());
        let mut row = Row { tx, due: sent, ready: sent, sent, end, attempts: 1, ..Row::EMPTY };
        row.marks[0] = end;
        batch.push(row);
        bytes.clear();
        Shown::begin(&mut bytes);
        let session = usize::try_from(tx).expect("64 bits") % SESSIONS;
        for op in &ops {
            match *op {
                MicroOp::Append { key, element } => {
                    state.entry(key).or_default().push(element);
                    newest = newest.max(key);
                }
                MicroOp::Read { key, .. } => {
                    let list = state.get(&key).map_or(&[][..], Vec::as_slice);
                    shown[session].read(key, list, &mut bytes);
                }
            }
        }
        observations.push(Observation { tx, at: end, bytes: &bytes });
        if batch.len() == 512 || tx + 1 == count {
            rows.append(&batch).expect("room on the disk");
            observed.append(&observations).expect("room on the disk");
            batch.clear();
            observations.clear();
        }
        if tx % 100_000 == 0 {
            // Lists take turns a hundred at a time.
            state.retain(|key, _| *key + 1_000 > newest);
        }
    }
    rows.close().expect("room on the disk");
    observed.close().expect("room on the disk");
}

fn judge(trial: &TrialFolder) {
    let (deploy, workload) = (Options::empty(), workload());
    let kinds = [KindFacts::recorded("append"), KindFacts::read("read")];
    let stages = ["committed".to_owned()];
    let input = CheckInput {
        seed: SEED,
        deploy: &deploy,
        workload: &workload,
        kinds: &kinds,
        stages: &stages,
        final_stages: model::FinalStages::all(0),
        states: &[],
    };
    assert!((LIST_APPEND.applies)(&input));
    let mut state = (LIST_APPEND.start)(&input);
    let (clock, processor) = (Clock::start(), CpuTime::of_this_process());
    timed("rows read and taken in", || {
        trial.for_each_batch(|rows| rows.iter().for_each(|row| state.row(row))).expect("rows");
    });
    timed("observations read and taken in", || {
        trial.for_each_observation(|one| state.observation(one)).expect("observations");
    });
    let finding = timed("judged", || state.finish());
    let spent = CpuTime::of_this_process().since(processor).as_secs_f64();
    println!("all of it: {:.2} s, {spent:.2} s of a processor", seconds(&clock));
    println!("holds: {}; {} {}", finding.holds, finding.count, finding.words);
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (clock, processor) = (Clock::start(), CpuTime::of_this_process());
    let made = work();
    let spent = CpuTime::of_this_process().since(processor).as_secs_f64();
    println!("{what}: {:.2} s, {spent:.2} s of a processor", seconds(&clock));
    made
}

fn seconds(clock: &Clock) -> f64 {
    clock.now().saturating_since(Instant::from_ns(0)).as_secs_f64()
}

/// The most memory that this process has had.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
