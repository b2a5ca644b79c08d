//! Measures the record at size: ten million rows of an HTTP load of 50,000 requests a second, appended, sealed
//! and read back. Prints the figures that docs quote. `ROWS=100000` makes it small; `SHAPE=poisson` makes
//! arrivals random; `SHAPE=backlogged` also makes the system too slow for four tenths of every second, so that
//! four in ten transactions wait for a connection. `KEEP=folder` keeps the run there. It measures
//! nothing but this crate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use clock::{Clock, CpuTime, WallTime};
use model::facts::TrialFacts;
use model::seed::Rng;
use model::{NO_STAMP, Outcome, Row, Seed};
use record::RunFolder;

const PERIOD_NS: i64 = 20_000;
const BATCH_ROWS: usize = 512;
const CONNECTIONS: u32 = 64;
const SECOND_NS: i64 = 1_000_000_000;
/// How much slower the backlogged system is in the first 0.4 s of each second: 64 connections then carry some
/// 33,000 transactions a second of the 50,000 that are due, and 730,000 in the rest of it.
const SLOWER: f64 = 22.0;

fn main() {
    let rows: u64 = std::env::var("ROWS").map_or(10_000_000, |n| n.parse().expect("a number"));
    let shape = std::env::var("SHAPE").unwrap_or_else(|_| "constant".to_owned());
    let folder = tempfile::tempdir().expect("a folder for the run");
    let keep = std::env::var_os("KEEP").map(std::path::PathBuf::from);
    let place = keep.as_deref().unwrap_or(folder.path());
    let run = RunFolder::create(place, "size", WallTime::now()).expect("a run folder");
    let trial = run.trial("rate=50000/s", 0).expect("a trial folder");
    let mut facts = TrialFacts::default();
    facts.declared.stages = vec!["committed".to_owned()];
    trial.write_facts(&facts).expect("facts");
    println!("{rows} rows, {shape}");

    let mut load = Load::new(shape);
    let mut log = trial.row_log().expect("a row log");
    let (mut spent, mut batch, mut written) = (Duration::ZERO, Vec::new(), 0);
    while written < rows {
        load.batch(
            &mut batch,
            BATCH_ROWS.min(usize::try_from(rows - written).unwrap_or(BATCH_ROWS)),
        );
        let before = CpuTime::of_this_thread();
        log.append(&batch).expect("room on the disk");
        spent += CpuTime::of_this_thread().since(before);
        written += batch.len() as u64;
    }
    log.flush().expect("room on the disk");
    let bytes = log.written_bytes();
    log.close().expect("room on the disk");
    report("row log", ratio(bytes, rows), "bytes/row");
    report("append", spent.as_secs_f64() * 1e9 / count(rows), "ns/row, processor time");

    let mut sum = 0_i64;
    timed("read the log", || trial.for_each_batch(|rows| sum = sum.wrapping_add(rows[0].end)));
    report("resident before sealing, peak", resident_peak_mb(), "MB");
    timed("seal", || trial.seal());
    report("resident after sealing, peak", resident_peak_mb(), "MB");
    for name in ["transactions.parquet", "latency.hlog"] {
        let bytes = std::fs::metadata(trial.path().join(name)).expect("it was sealed").len();
        report(name, ratio(bytes, rows), "bytes/row");
    }
    timed("read all columns", || {
        trial.for_each_batch(|rows| {
            for row in rows {
                sum = sum.wrapping_add(row.end).wrapping_add(i64::from(row.bytes_in));
            }
        })
    });
    report("resident after reading, peak", resident_peak_mb(), "MB");
    println!("checksum {sum}");
}

/// Rows as a load engine would hand them over: in the order of their ends.
struct Load {
    rng: Rng,
    shape: String,
    now: i64,
    next: u64,
    late: Vec<Row>,
    /// Of a backlogged load: when each connection is free, the first one on top.
    free: BinaryHeap<Reverse<(i64, u32)>>,
}

impl Load {
    fn new(shape: String) -> Self {
        let free = (0..CONNECTIONS).map(|connection| Reverse((0, connection))).collect();
        Self { rng: Seed(1).rng(), shape, now: 0, next: 0, late: Vec::new(), free }
    }

    fn batch(&mut self, batch: &mut Vec<Row>, count: usize) {
        batch.clear();
        // Rows that end before the next one is due may still change places with it: a window of 64.
        while batch.len() < count {
            while self.late.len() < 64 {
                let row = self.row();
                self.late.push(row);
            }
            let (first, _) =
                self.late.iter().enumerate().min_by_key(|(_, row)| row.end).expect("64 rows");
            batch.push(self.late.swap_remove(first));
        }
    }

    fn row(&mut self) -> Row {
        let rng = &mut self.rng;
        self.now += match self.shape.as_str() {
            "constant" => PERIOD_NS,
            _ => nanoseconds(rng.exponential(20_000.0)),
        };
        let due = self.now;
        let (mut ready, mut slower) = (due, 1.0);
        let mut connection = u32::try_from(rng.below(u64::from(CONNECTIONS))).expect("below 64");
        if self.shape == "backlogged" {
            let Reverse(first) = self.free.pop().expect("each is put back");
            (ready, connection) = (due.max(first.0), first.1);
            slower = if ready % SECOND_NS < SECOND_NS * 4 / 10 { SLOWER } else { 1.0 };
        }
        // Own lag of a spinning engine: 0.3 µs and an exponential tail of 1 µs. Service: 60 µs, a tail of
        // 25 µs, and one in a hundred ten times slower.
        let sent = ready + 300 + nanoseconds(rng.exponential(1_000.0));
        let slow = if rng.below(100) == 0 { 10.0 } else { 1.0 };
        let service = 60_000.0 + rng.exponential(25_000.0 * slow);
        let mark = sent + nanoseconds(service * slower);
        if self.shape == "backlogged" {
            self.free.push(Reverse((mark, connection)));
        }
        let failed = rng.below(10_000) == 0;
        let tx = self.next;
        self.next += 1;
        Row {
            tx,
            due,
            ready,
            sent,
            marks: [if failed { NO_STAMP } else { mark }, NO_STAMP, NO_STAMP, NO_STAMP],
            end: mark,
            receive_lag: 15_000 + (mark & 0x3fff),
            outcome: if failed {
                Outcome::from_code(6).expect("server")
            } else {
                Outcome::Committed
            },
            code: if failed { 500 } else { 200 },
            error: u16::from(failed),
            kind: 0,
            connection,
            worker: 0,
            stream: 0,
            attempts: 1,
            client: 0,
            bytes_out: 0,
            bytes_in: 615,
        }
    }
}

fn timed<T: std::fmt::Debug, E: std::fmt::Debug>(name: &str, f: impl FnOnce() -> Result<T, E>) {
    let clock = Clock::start();
    let before = CpuTime::of_this_process();
    f().expect("it works on a disk with room");
    let spent = CpuTime::of_this_process().since(before).as_secs_f64();
    let wall = clock.now().saturating_since(clock::Instant::ZERO).as_secs_f64();
    println!("{name:34} {wall:10.3} s  ({spent:.3} s processor time)");
}

fn report(name: &str, value: f64, unit: &str) {
    println!("{name:34} {value:10.3} {unit}");
}

fn nanoseconds(ns: f64) -> i64 {
    ns as i64
}

fn count(rows: u64) -> f64 {
    rows as f64
}

fn ratio(bytes: u64, rows: u64) -> f64 {
    bytes as f64 / rows as f64
}

/// `VmHWM` of this process.
fn resident_peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    let kb: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    kb / 1024.0
}
