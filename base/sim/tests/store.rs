//! The store of real nodes on files that lose their power at any operation, from seeds: its segments, its group commit, its
//! cells and its recovery, as they run on disks.
//!
//! Batches of records go to a log and new contents to a cell, old records are trimmed, and the process is killed or loses its
//! power in the middle of a write, a sync, a rename or a start. After each start everything that was told to be durable must
//! be there, and nothing that was not asked for.
//!
//! `STORE_SEEDS=20000 cargo test --release -p sim --test store` runs more, from `STORE_FIRST` on; `STORE_SEED=17` runs
//! one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use clock::Clock;
use process::Stored;
use process::host::Store as Ask;
use process::store::{ByHand, Done, Store, StoreError, StoreOptions, Sync};
use sim::{Coverage, Random, TornFiles, kept_seeds};

/// A dozen records.
const OPTIONS: StoreOptions = StoreOptions { sync: Sync::Data, segment_bytes: 8192 };
/// Operations on files in a world.
const OPERATIONS: u64 = 2_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Claim: whatever operation the power goes in, and however often, a start finds each record that was told to be durable, as
/// it was, none after one that is missing, and the content that a cell was told to hold, or a later one.
#[test]
fn what_is_durable_is_found() {
    let one = number("STORE_SEED").map(|seed| seed..seed + 1);
    let mut coverage = Coverage::default();
    let first = number("STORE_FIRST").unwrap_or(0);
    let all = first..first + number("STORE_SEEDS").unwrap_or(300);
    let kept = kept_seeds(include_str!("kept_seeds.txt")).filter(|_| one.is_none());
    for seed in kept.chain(one.clone().unwrap_or(all)) {
        let mut world = World::new(seed);
        // An assertion of the store's own is a finding like any other.
        let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
        if let Err(wrong) = ran.unwrap_or_else(|_| Err("the store panicked".to_owned())) {
            // For `cargo xtask mutants`.
            println!("seed={seed}");
            panic!("seed {seed}: {wrong}");
        }
        world.coverage.add("bytes torn off", world.files.torn_bytes());
        coverage.merge(&world.coverage);
    }
    println!("{coverage}");
    for what in ["batches cut off", "bytes torn off", "kills", "losses of power", "starts cut off"]
    {
        assert!(one.is_some() || coverage.of(what) >= 500, "{what} hardly happened:\n{coverage}");
    }
}

/// The store's files, and what was asked of and told by it.
struct World {
    random: Random,
    files: TornFiles,
    coverage: Coverage,
    /// All records from number 0 on; those that a start did not find are dropped.
    records: Vec<Vec<u8>>,
    /// Records below this were told to be durable.
    durable: usize,
    /// Records below this may be gone.
    trimmed: usize,
    /// The contents that the cell may hold: the content that was told to be durable first, then what was asked for since.
    cell: Vec<Option<Vec<u8>>>,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            files: TornFiles::new(seed ^ 0x5EED),
            coverage: Coverage::default(),
            records: Vec::new(),
            durable: 0,
            trimmed: 0,
            cell: vec![None],
        }
    }

    fn run(&mut self) -> Result<(), String> {
        while self.files.operations() < OPERATIONS {
            // So short that some are cut off while they start.
            let most = if self.random.once_in(3) { 30 } else { 300 };
            let life = self.random.below(most);
            self.files.cut_after(life);
            self.live()?;
            if self.random.once_in(3) {
                self.files.kill();
                self.coverage.count("kills");
            } else {
                self.files.lose_power();
                self.coverage.count("losses of power");
            }
        }
        // And once more, to look at the last.
        self.open().map(|_| ())
    }

    /// From a start to its end in the middle of something.
    fn live(&mut self) -> Result<(), String> {
        let Some(mut store) = self.open()? else { return Ok(()) };
        loop {
            let (asks, bytes, count, content) = self.ask();
            let mut done = Vec::new();
            let kept = store.submit(asks, bytes, &mut done);
            self.told(&done)?;
            match kept {
                Ok(()) if self.durable != self.records.len() => {
                    return Err(format!("{count} records are kept, and not told"));
                }
                Ok(()) if content && self.cell.len() > 1 => {
                    return Err("a cell is replaced, and not told".to_owned());
                }
                Ok(()) => self.coverage.add("records told to be durable", count),
                Err(error) => return self.stopped("batches cut off", &error),
            }
        }
    }

    /// Only the power may stop it.
    fn stopped(&mut self, what: &'static str, error: &StoreError) -> Result<(), String> {
        if !error.to_string().contains("the power is gone") {
            return Err(format!("{what}: {error}"));
        }
        self.coverage.count(what);
        Ok(())
    }

    /// A start: nothing, if the power went during it.
    fn open(&mut self) -> Result<Option<ByHand>, String> {
        let files = Arc::new(self.files.clone());
        let opened =
            Store::open_on(files, Path::new("store"), &["log"], &["cell"], OPTIONS, usize::MAX);
        match opened {
            Ok((store, stored)) => {
                self.found(&stored)?;
                ByHand::start(store, Clock::start()).map(Some).map_err(|error| error.to_string())
            }
            Err(error) => self.stopped("starts cut off", &error).map(|()| None),
        }
    }

    /// Looks at what a start has found.
    fn found(&mut self, stored: &Stored) -> Result<(), String> {
        let log = &stored.logs[0];
        let next = usize::try_from(log.next()).expect("few");
        if next < self.durable || next > self.records.len() {
            let (durable, asked) = (self.durable, self.records.len());
            return Err(format!("{durable} records were durable of {asked}, and {next} are found"));
        }
        let first = log.iter().next().map_or(log.next(), |(number, _)| number);
        if first > self.trimmed as u64 {
            return Err(format!("the first record is {first}, trimmed was below {}", self.trimmed));
        }
        for (number, bytes) in log.iter() {
            if bytes != self.records[usize::try_from(number).expect("few")] {
                return Err(format!("record {number} is another one"));
            }
        }
        self.coverage.add("records lost in crashes", (self.records.len() - next) as u64);
        self.coverage.add("bytes cut at starts", log.torn_bytes() as u64);
        self.records.truncate(next);
        // All that a start gives counts as durable: the store has synced it, or it was.
        self.durable = next;
        let Some(held) = self.cell.iter().position(|it| *it == stored.cells[0]) else {
            return Err("a cell holds what it was not given last".to_owned());
        };
        self.cell = vec![self.cell.swap_remove(held)];
        Ok(())
    }

    /// A batch as a node asks for it in a turn or several: the batch, its bytes, how many records, and whether a cell.
    fn ask(&mut self) -> (Vec<Ask>, Vec<u8>, u64, bool) {
        let (mut asks, mut bytes) = (Vec::new(), Vec::new());
        let count = 1 + self.random.below(6);
        for _ in 0..count {
            let length = self.random.place(1500);
            let record: Vec<u8> = std::iter::repeat_with(|| self.random.any().to_le_bytes()[0])
                .take(length)
                .collect();
            let start = bytes.len();
            bytes.extend_from_slice(&record);
            let number = self.records.len() as u64;
            asks.push(Ask::Append { log: 0, number, bytes: start..bytes.len() });
            self.records.push(record);
        }
        if self.random.once_in(8) {
            self.trimmed = self.trimmed.max(self.random.place(self.durable + 1));
            asks.push(Ask::Trim { log: 0, below: self.trimmed as u64 });
        }
        let replaces = self.random.once_in(6);
        if replaces {
            let content = vec![self.random.any().to_le_bytes()[0]; self.random.place(5000)];
            self.cell.push(Some(content.clone()));
            // In parts, of which some are given up before.
            if self.random.once_in(4) {
                asks.push(Ask::Extend { cell: 0, part: vec![0; 600] });
                asks.push(Ask::DropParts { cell: 0 });
            }
            let mut rest = &content[..];
            while !rest.is_empty() && self.random.once_in(2) {
                let (part, after) = rest.split_at(1 + self.random.place(rest.len()));
                asks.push(Ask::Extend { cell: 0, part: part.to_vec() });
                rest = after;
            }
            asks.push(Ask::Replace { cell: 0, content: rest.to_vec() });
            asks.push(Ask::Read { cell: 0, offset: 3, bytes_max: content.len() });
        }
        (asks, bytes, count, replaces)
    }

    fn told(&mut self, done: &[Done]) -> Result<(), String> {
        for done in done {
            match done {
                Done::Persisted { below, .. } => {
                    let below = usize::try_from(*below).expect("few");
                    if below < self.durable || below > self.records.len() {
                        return Err(format!(
                            "told of {below} records, with {} before",
                            self.durable
                        ));
                    }
                    self.durable = below;
                }
                Done::Replaced { .. } => {
                    self.cell.drain(..self.cell.len() - 1);
                    self.coverage.count("cells replaced");
                }
                Done::Extended { .. } => self.coverage.count("parts of cells written"),
                Done::Part { bytes, .. } => {
                    let held = self.cell[0].as_deref().unwrap_or_default();
                    if **bytes != held[held.len().min(3)..] {
                        return Err("a cell says something else than it holds".to_owned());
                    }
                }
                Done::Full { .. } => return Err("the disk is full".to_owned()),
            }
        }
        Ok(())
    }
}
