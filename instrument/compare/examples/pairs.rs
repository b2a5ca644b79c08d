//! How often a comparison calls two equal systems different, and how often it finds a tenth more work a request: seeded
//! pairs of trials in virtual time, by the code that measures. `cargo xtask theory compare` keeps the table.
//!
//! The systems are queues whose service is exponential. In some rows the mean of the service differs from trial to trial, as
//! it does on a real host: there the truth of "the same" is what trials of the same system differ by.

use std::time::Duration;

use compare::{MARGIN, Side, Sides, compare};
use exact::{Client, Law, Script};
use model::Seed;
use model::comparison::{Change, Comparison};
use model::plan::SettingPlan;
use model::result::{RunResult, TrialResult};

/// A tenth more work.
const MORE: f64 = 1.1;
/// Of 100 pairs of equal systems so many must not be called different, and of 100 with more work so many found.
const TOLD: [f64; 2] = [0.95, 0.90];

/// A design of a comparison.
struct Design {
    name: &'static str,
    workers: u32,
    service: Duration,
    rate: &'static str,
    seconds: u32,
    trials: u32,
    /// Whether the n-th trials of the sides are run beside each other, so that they share what differs between trials.
    is_paired: bool,
    /// How much the mean of the service differs between trials: standard deviation, as a share.
    between: f64,
    /// Whether the two shares of [`TOLD`] are promised of it.
    is_promised: bool,
}

const MS: u64 = 1_000_000;

/// Several trials of a queue with several servers.
const QUEUE: Design = Design {
    name: "M/M/4 at 0.7, five trials of 20 s each",
    workers: 4,
    service: Duration::from_nanos(8 * MS),
    rate: "350/s",
    seconds: 20,
    trials: 5,
    is_paired: false,
    between: 0.0,
    is_promised: true,
};

/// One trial of it.
const LONG: Design =
    Design { name: "M/M/4 at 0.7, one trial of 60 s each", seconds: 60, trials: 1, ..QUEUE };

const DESIGNS: [Design; 6] = [
    Design {
        name: "M/M/1 at 0.5, one trial of 240 s each",
        workers: 1,
        service: Duration::from_nanos(5 * MS),
        rate: "100/s",
        seconds: 240,
        ..LONG
    },
    LONG,
    QUEUE,
    Design {
        name: "the same by turns, on a host that drifts by 5 %",
        is_paired: true,
        between: 0.05,
        ..QUEUE
    },
    Design {
        name: "the same one after the other, trials differ by 5 %",
        between: 0.05,
        is_promised: false,
        ..QUEUE
    },
    Design {
        name: "one trial of 60 s each, trials differ by 5 %",
        between: 0.05,
        is_promised: false,
        ..LONG
    },
];

impl Design {
    /// A run of one side: `work` is the mean of its service as a multiple.
    fn run(&self, side: u64, work: f64, seed: Seed) -> RunResult {
        let experiment = format!(
            "name = 'pair'\nseed = {}\ntrials = {}\n[system]\nkind = 'script'\n[load]\narrival = 'poisson'\nrate = '{}'\nwarmup = '3s'\nduration = '{}s'\n",
            // Both sides run the same file: what is due, and when, is the same.
            (seed.split("load").0 >> 1),
            self.trials,
            self.rate,
            self.seconds
        );
        let script = |_: &SettingPlan, trial: u32| {
            // A drift of the host is the same for both sides where they are run beside each other.
            let shared = if self.is_paired { 0 } else { side };
            let of_host = seed.split_index("host", shared).split_index("trial", u64::from(trial));
            let host = (self.between * normal(of_host)).exp();
            let own = seed.split_index("work", side).split_index("trial", u64::from(trial));
            let mean = self.service.mul_f64(work * host);
            Script::queue(self.workers, Law::Exponential(mean, own))
        };
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let ran = exact::run(&experiment, Client::default(), &script, folder.path());
        let mut result = ran.expect("a trial in virtual time ends").result;
        for trial in result.settings.iter_mut().flat_map(|it| &mut it.trials) {
            let shared = if self.is_paired { 0 } else { side };
            let index = u64::from(trial.trial);
            let of_host = seed.split_index("host", shared).split_index("trial", index);
            let host = (self.between * normal(of_host)).exp();
            let own = seed.split_index("processor", side).split_index("trial", index);
            let length = f64::from(self.seconds);
            processor_time(trial, PROCESSOR_NS * work * host, length, own);
        }
        result
    }

    fn compared(&self, work: f64, seed: Seed) -> Comparison {
        let (first, second) = (self.run(0, 1.0, seed), self.run(1, work, seed));
        let sides = Sides {
            baseline: Side::of_runs("before", &[&first]),
            candidate: Side::of_runs("after", &[&second]),
            is_paired: self.is_paired,
        };
        compare("pair", &sides, MARGIN, Vec::new())
    }
}

/// Processor time of a transaction without noise, nanoseconds.
const PROCESSOR_NS: f64 = 50_000.0;
/// Its variation while a trial runs, because the host is busy with something else: standard deviation, as a share, and
/// how long such a time lasts, seconds.
const BUSY: (f64, f64) = (0.1, 3.0);
/// The kernel counts processor time in ticks.
const TICK_NS: f64 = 1e7;

/// Gives a trial the processor time that a busy host would have it measure: slower for seconds at a time, told in ticks.
fn processor_time(trial: &mut TrialResult, each_ns: f64, seconds: f64, seed: Seed) {
    let sections = &mut trial.sections.all;
    let stays = (-seconds / sections.len().max(1) as f64 / BUSY.1).exp();
    let mut busy = normal(seed.split("first"));
    let (mut used, mut told, mut each) = (0.0, 0.0, Vec::new());
    for (place, section) in sections.iter_mut().enumerate() {
        used += section.committed as f64 * each_ns * (BUSY.0 * busy).exp();
        let ticks = (used / TICK_NS).floor() * TICK_NS;
        each.push(ticks - told);
        told = ticks;
        let next = normal(seed.split_index("next", place as u64));
        busy = stays * busy + (1.0 - stays * stays).sqrt() * next;
    }
    let committed: u64 = sections.iter().map(|it| it.committed).sum();
    let mean = told / committed.max(1) as f64;
    for (section, used) in sections.iter_mut().zip(each) {
        section.processor_excess_ns = (used - mean * section.committed as f64) as i64;
    }
    trial.processor.committed = committed;
    trial.processor.ns_per_transaction = (committed > 0).then_some(mean);
}

/// A standard normal number: the sum of twelve uniform ones.
fn normal(seed: Seed) -> f64 {
    let mut rng = seed.rng();
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// How many of the pairs have a number that is worse, one that is better, and how many are the same in some number.
#[derive(Default)]
struct Counted {
    worse: usize,
    better: usize,
    equivalent: usize,
    told: usize,
    numbers: usize,
}

/// All pairs of a design, by as many threads as there are processors.
fn counted(design: &Design, work: f64, pairs: u64) -> Counted {
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
    let part = |first: u64| {
        let mine = (first..pairs).step_by(threads as usize);
        mine.map(|seed| design.compared(work, Seed(seed).split(design.name))).collect::<Vec<_>>()
    };
    let found: Vec<Comparison> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        all.into_iter().flat_map(|it| it.join().expect("a pair that ends")).collect()
    });
    let mut all = Counted::default();
    for found in found {
        if std::env::var_os("PAIRS_SHOW").is_some() {
            eprintln!("{} by {work}: {}", design.name, found.words);
        }
        let has = |change: Change| found.numbers.iter().any(|it| it.change == change);
        all.worse += usize::from(has(Change::Worse));
        all.better += usize::from(has(Change::Better) && !has(Change::Worse));
        all.equivalent += usize::from(found.change == Change::Equivalent);
        all.told += found.numbers.iter().filter(|it| it.change != Change::Inconclusive).count();
        all.numbers += found.numbers.len();
    }
    all
}

fn main() {
    let pairs: u64 = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(100);
    let float = |count: usize| count as f64;
    println!(
        "| design | the same: equivalent | inconclusive | called worse or better | numbers told | a tenth more work: found | called better | numbers told |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let mut broken = Vec::new();
    let word = std::env::args().nth(2).unwrap_or_default();
    for design in DESIGNS.iter().filter(|it| it.name.contains(&word)) {
        let (same, more) = (counted(design, 1.0, pairs), counted(design, MORE, pairs));
        let percent = |count: usize, of: f64| format!("{:.0} %", float(count) / of * 100.0);
        let all = pairs as f64;
        let different = same.worse + same.better;
        let untold = pairs as usize - different - same.equivalent.min(pairs as usize - different);
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            design.name,
            percent(pairs as usize - different - untold, all),
            percent(untold, all),
            percent(different, all),
            percent(same.told, float(same.numbers.max(1))),
            percent(more.worse, all),
            percent(more.better, all),
            percent(more.told, float(more.numbers.max(1))),
        );
        let holds = float(different) <= (1.0 - TOLD[0]) * all && float(more.worse) >= TOLD[1] * all;
        if design.is_promised && !holds && pairs >= 100 {
            broken.push(design.name);
        }
    }
    if !broken.is_empty() {
        eprintln!("what is promised does not hold of: {}", broken.join("; "));
        std::process::exit(1);
    }
}
