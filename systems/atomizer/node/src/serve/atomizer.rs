//! An atomizer for real.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clock::Clock;
use process::shell::{Bounds, Peer, Shell, Until, Words, listen_address};
use process::store::{Store, StoreOptions, Sync};
use replicated::{CELL_NAMES, Config, Settings};

use super::{BOUNDS, draw, end_events, events, key};
use crate::intake;
use crate::machine::Rules;
use crate::node::{Atomizer, METRICS_LISTENER, Options, PEERS_LISTENER, Rung};
use crate::spent::Secret;

const USAGE: &str = "\
An atomizer.

  --listen ADDRESS       where notifications come (127.0.0.1:0)
  --blocks ADDRESS       where whoever connects is sent every block (127.0.0.1:0)
  --errors ADDRESS       where whoever connects is sent what is discarded (127.0.0.1:0)
  --metrics ADDRESS      where it says its metrics over HTTP (127.0.0.1:0)
  --replica NUMBER       its number (0)
  --peers ADDRESS        where other replicas connect (127.0.0.1:0)
  --peer N=ADDRESS       another replica's number and where it listens for replicas; once for each
  --log WHERE            memory: entries are decided here and kept nowhere; file: written, not synced; fsync: durable
                         before they count (memory without --data, else fsync)
  --data FOLDER          where it keeps its log and its snapshots
  --segment-bytes B      how long a piece of the log is (67108864)
  --snapshot-after-bytes B  a snapshot is made after so many bytes of entries (268435456)
  --window COUNT         entries that it has proposed and that are not decided, at most (64)
  --heartbeat-ms MS      how often a leader says that it is there (50)
  --election-timeout-ms MS  after how long without a leader a replica wants to lead (1000)
  --block-interval-ms MS from one block to the next (250)
  --depth BLOCKS         how many blocks back inputs may have been seen unspent (1)
  --block-inputs COUNT   inputs of a block, about: the sets of spent inputs are made for so many (500000)
  --linger-us US         how long the first transaction of an entry waits for more (2000)
  --batch-bytes B        an entry ends with the transaction that reaches this (1048576)
  --queue-max COUNT      transactions that wait for the log; more are refused (65536)
  --partial-max COUNT    transactions that wait for attestations; more are refused (1048576)
  --partial-bytes-max B  bytes of transactions that wait for attestations; more are refused (67108864)
  --queue-bytes-max B    bytes of transactions that wait for the log; more are refused (268435456)
  --archivers COUNT      a block is forgotten once so many archivers have stored it (1)
  --archiver-key FILE    what an archiver has to know, 64 hexadecimal digits; without it anybody may say that it is one
  --unarchived-bytes-max B  with so many bytes of blocks that not all archivers have stored nothing is taken (536870912)
  --no-archiver          nobody stores blocks: only the last 16 can be asked for
  --up-to STAGE          how far transactions go: receive, accumulate, log, apply or block (block)
  --events FILE          where it stamps its stages (see base/sampler)
  --follow-every N       of so many transactions one is followed by name in it (1024)
  --parent-pipe          end when standard input ends, too

What the published system does, each of its own or all with --as-published:
  --batch-idle-ms MS     an empty queue is looked at again after this only (20)
  --no-batch-cap         an entry takes all that waits
  --admit-late           what is too old is written into the log before it is discarded, and the queue takes all
  --copy-blocks          a block is copied on its way as often as there
  --broadcast-to-all     blocks go to clients, too
  --ignore-height-zero   a height of 0 that is said of an input counts as none: an input that was spent long ago can be
                         spent again beside a fresh one
  --silent               one that does not lead says nothing to who sends it transactions
";

/// The group that replicas of an atomizer form.
const SERVICE: u64 = u64::from_le_bytes(*b"atomizer");

/// What waits for another replica at most, before messages to it are dropped.
const UNSENT_BYTES_MAX: usize = 128 << 20;

/// What the queue takes where it is to take all: a bound there must be.
const QUEUE_OF_ALL: usize = 4 << 20;
const QUEUE_OF_ALL_BYTES: usize = 1 << 30;

fn admit_late(options: &mut Options) {
    options.refuses_early = false;
    options.bounds.queue_max = QUEUE_OF_ALL;
    options.bounds.queue_bytes_max = QUEUE_OF_ALL_BYTES;
}

/// Blocks that can be asked for where nobody stores them.
const BLOCKS_WITHOUT_ARCHIVER: u64 = 16;

struct Command {
    listeners: [SocketAddr; 5],
    replica: u8,
    peer: Vec<(u8, SocketAddr)>,
    log: Option<Log>,
    data: Option<PathBuf>,
    segment_bytes: usize,
    snapshot_after_bytes: u64,
    window: u64,
    heartbeat: Duration,
    election: Duration,
    options: Options,
    events: Option<PathBuf>,
    followed: u64,
    parent_pipe: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Memory,
    File,
    Fsync,
}

impl Command {
    fn new(secret: Secret) -> Result<Self, String> {
        let bounds = intake::Bounds {
            queue_max: 65_536,
            queue_bytes_max: 256 << 20,
            partial_max: 1 << 20,
            partial_bytes_max: 64 << 20,
            entry_bytes: 1 << 20,
        };
        let options = Options {
            rules: Rules::published(secret),
            ledger: draw()?.max(1),
            rung: Rung::Block,
            block_interval: Duration::from_millis(250),
            linger: Duration::from_micros(2000),
            batch_idle: None,
            bounds,
            ignores_height_zero: false,
            refuses_early: true,
            archivers: 1,
            archiver_key: [0; 32],
            unarchived_bytes_max: 512 << 20,
            broadcasts_to_all: false,
            is_silent: false,
        };
        Ok(Self {
            listeners: [listen_address("0")?; 5],
            replica: 0,
            peer: Vec::new(),
            log: None,
            data: None,
            segment_bytes: StoreOptions::default().segment_bytes,
            snapshot_after_bytes: 256 << 20,
            window: 64,
            heartbeat: Duration::from_millis(50),
            election: Duration::from_millis(1000),
            options,
            events: None,
            followed: events::FOLLOWED,
            parent_pipe: false,
        })
    }

    /// Takes a word; `false`: help was asked for.
    fn take(&mut self, name: &str, words: &mut Words<'_>) -> Result<bool, String> {
        let options = &mut self.options;
        match name {
            "--help" => return Ok(false),
            "--parent-pipe" => self.parent_pipe = true,
            "--events" => self.events = Some(words.text()?.into()),
            "--follow-every" => self.followed = words.number()?,
            "--listen" => self.listeners[0] = words.address()?,
            "--peers" => self.listeners[1] = words.address()?,
            "--blocks" => self.listeners[2] = words.address()?,
            "--errors" => self.listeners[3] = words.address()?,
            "--metrics" => self.listeners[4] = words.address()?,
            "--replica" => self.replica = words.number()?,
            "--peer" => self.peer.push(words.numbered_address()?),
            "--log" => {
                let list = [("memory", Log::Memory), ("file", Log::File), ("fsync", Log::Fsync)];
                self.log = Some(words.one_of(&list)?);
            }
            "--data" => self.data = Some(words.text()?.into()),
            "--segment-bytes" => self.segment_bytes = words.number()?,
            "--snapshot-after-bytes" => self.snapshot_after_bytes = words.number()?,
            "--window" => self.window = words.number()?,
            "--heartbeat-ms" => self.heartbeat = words.milliseconds()?,
            "--election-timeout-ms" => self.election = words.milliseconds()?,
            "--block-interval-ms" => options.block_interval = words.milliseconds()?,
            "--depth" => options.rules.depth = words.number()?,
            "--block-inputs" => options.rules.inputs = words.number()?,
            "--linger-us" => options.linger = Duration::from_micros(words.number()?),
            "--batch-bytes" => options.bounds.entry_bytes = words.number()?,
            "--queue-max" => options.bounds.queue_max = words.number()?,
            "--partial-max" => options.bounds.partial_max = words.number()?,
            "--queue-bytes-max" => options.bounds.queue_bytes_max = words.number()?,
            "--partial-bytes-max" => options.bounds.partial_bytes_max = words.number()?,
            "--archivers" => options.archivers = words.number()?,
            "--archiver-key" => options.archiver_key = key(words.text()?.as_ref())?,
            "--unarchived-bytes-max" => options.unarchived_bytes_max = words.number()?,
            "--no-archiver" => options.rules.blocks_max = Some(BLOCKS_WITHOUT_ARCHIVER),
            "--up-to" => {
                options.rung = words.one_of(&[
                    ("receive", Rung::Receive),
                    ("accumulate", Rung::Accumulate),
                    ("log", Rung::Log),
                    ("apply", Rung::Apply),
                    ("block", Rung::Block),
                ])?;
            }
            "--batch-idle-ms" => options.batch_idle = Some(words.milliseconds()?),
            "--no-batch-cap" => options.bounds.entry_bytes = intake::ENTRY_BYTES_MAX,
            "--admit-late" => admit_late(options),
            "--copy-blocks" => options.rules.copies_blocks = true,
            "--broadcast-to-all" => options.broadcasts_to_all = true,
            "--ignore-height-zero" => options.ignores_height_zero = true,
            "--silent" => options.is_silent = true,
            "--as-published" => {
                options.batch_idle = Some(Duration::from_millis(20));
                options.bounds.entry_bytes = intake::ENTRY_BYTES_MAX;
                admit_late(options);
                options.ignores_height_zero = true;
                options.rules.copies_blocks = true;
                options.broadcasts_to_all = true;
                options.is_silent = true;
            }
            _ => return Err(words.unknown()),
        }
        Ok(true)
    }

    fn check(&self) -> Result<(), String> {
        if self.options.rules.depth > 1000 {
            return Err("--depth is at most 1000 blocks".to_owned());
        }
        if self.options.block_interval.is_zero() {
            return Err("--block-interval-ms is at least 1".to_owned());
        }
        if self.window == 0 || self.election.is_zero() {
            return Err("--window and --election-timeout-ms are at least 1".to_owned());
        }
        match (self.log, &self.data) {
            (Some(Log::Memory), Some(_)) => Err(
                "--log memory keeps nothing: leave out --data, or name a folder in a file system \
                     in memory and write --log file"
                    .to_owned(),
            ),
            (Some(Log::File | Log::Fsync), None) => {
                Err("--log file and --log fsync need --data FOLDER".to_owned())
            }
            (_, None) if !self.peer.is_empty() => {
                Err("a replica of several must keep its log: --data FOLDER".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Who this replica is among the others.
    fn config(&self) -> Result<(Config, Settings), String> {
        let others = self.peer.iter().map(|(number, _)| *number);
        let (mut config, settings) = Settings::of_only_group(
            self.replica,
            others,
            SERVICE,
            PEERS_LISTENER,
            UNSENT_BYTES_MAX,
        )?;
        config.window_max = self.window;
        config.snapshot_after_bytes = self.snapshot_after_bytes;
        config.heartbeat_every = self.heartbeat;
        config.election_timeout = self.election;
        Ok((config, settings))
    }

    /// The atomizer, as its disk left it.
    fn open(&self) -> Result<(Atomizer, Option<Store>), String> {
        let Some(folder) = &self.data else {
            return Ok((Atomizer::new(self.replica, self.options), None));
        };
        let sync = if self.log == Some(Log::File) { Sync::None } else { Sync::Data };
        let options = StoreOptions { sync, segment_bytes: self.segment_bytes };
        let (store, stored) = Store::open(folder, &["log"], &CELL_NAMES, options)
            .map_err(|error| error.to_string())?;
        let (config, settings) = self.config()?;
        let node = Atomizer::of_group(config, &settings, &stored, self.options)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok((node, Some(store)))
    }
}

pub(super) fn run(words: &[String]) -> Result<(), String> {
    let mut command = Command::new(Secret::new(draw()?))?;
    let mut words = Words::new(words);
    while let Some(name) = words.next_word() {
        if !command.take(&name, &mut words)? {
            print!("{USAGE}");
            return Ok(());
        }
    }
    command.check()?;
    let until = Until::told(command.parent_pipe).map_err(|error| error.to_string())?;
    let names = ["clients", "peers", "blocks", "errors", "metrics"];
    let listeners: Vec<_> = names.into_iter().zip(command.listeners).collect();
    // Bound before anything is read from the disk, so that a port that is taken is said at once.
    let bounds = Bounds { unsent_bytes_max: 2 * UNSENT_BYTES_MAX, ..BOUNDS };
    let mut shell = Shell::bind(&listeners, bounds)
        .map_err(|error| error.to_string())?
        .saying_metrics_at(METRICS_LISTENER);
    shell = shell.dialling(command.peer.iter().map(|(_, address)| Peer::at(*address)).collect());
    let (mut node, store) = command.open()?;
    let counters = store.as_ref().map(Store::counters);
    if let Some(store) = store {
        shell = shell.keeping(store);
    }
    let (clock, mut sampler) = (Clock::start(), None);
    if let Some(path) = &command.events {
        let name = format!("atomizer{}", command.replica);
        let (made, stamps) = events::begin(path, &name, clock, command.followed)?;
        (node, sampler) = (node.stamping(stamps), Some(made));
    }
    shell.announce(&[]).map_err(|error| error.to_string())?;
    let facts = shell.run(&mut node, clock, &until).map_err(|error| error.to_string())?;
    end_events(sampler)?;
    let (counts, fates) = (node.counts(), node.machine().fates());
    eprintln!(
        "ended by {}; height {}, {} received, {} complete, {} refused early, {} refused as too much, {} proposed in {} \
         batches, {} admitted, {} expired, {} spent, {} in blocks, {} malformed",
        facts.ended_by,
        node.machine().height(),
        counts.received,
        counts.complete,
        counts.early,
        counts.busy,
        counts.proposed,
        counts.batches,
        fates.admitted,
        fates.expired,
        fates.spent,
        fates.in_blocks,
        counts.refusals.total()
    );
    if let Some(counters) = counters {
        let store = counters.read();
        eprintln!(
            "log: {} records in {} writes, {} syncs",
            store.records, store.batches, store.syncs
        );
    }
    Ok(())
}
