//! `serve`: each service as a process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use process::Node;
use process::shell::{Bounds, Shell, Until, Words, listen_address};
use process::store::{Store, StoreOptions, Sync};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::net::TcpListener;

use crate::bucket;
use crate::config::Config;
use crate::data::{COUNT_MAX, from_hex, genesis};
use crate::delay::Delay;
use crate::fault::Fault;
use crate::keys::Key;
use crate::known::{Guard, Secret};
use crate::lifecycle::{ends, ready, runtime};
use crate::making::{self, Counts};
use crate::queue::{self, Queue, Settings};
use crate::sequencer::{self, Sequencer};
use crate::service::{Answering, METRICS_LISTENER};
use crate::storage::Storage;
use crate::timestamp::Timestamp;
use crate::verify::{Keys, Trust};
use crate::watch::{self, Waits, Watch};
use crate::witness;

const HELP: &str = "\
serve WHAT [OPTIONS]: one of queue, timestamp, sequencer, pipeline, bucket, watcher, witness. It prints
`ready requests=ADDRESS metrics=ADDRESS` (a pipeline: only metrics) and ends on SIGTERM.

of all
  --metrics ADDRESS        where it says its metrics over HTTP (127.0.0.1:0)
  --parent-pipe            end when standard input ends, too
of all but pipeline
  --listen ADDRESS         where it takes requests (127.0.0.1:0)
of queue, timestamp, sequencer, bucket, witness
  --data FOLDER            where it keeps its key and what it holds (needed)
of timestamp, sequencer
  --name NAME              the ledger's name, which is part of what is signed (needed)
of sequencer
  --timestamp KEY          the timestamp service's public key; once more for each that took over (needed)
of queue, timestamp, sequencer
  --secret FILE            work is taken from those alone who have what this file holds; without, from anybody
of timestamp, sequencer, bucket
  --delay LAW              how much later it answers (0ms): 120ms, lognormal(100ms,0.4), lognormal(100ms,0.4,0.01,2s) with
                           stalls (how often, and for how long in the mean), or file:PATH with milliseconds, one a line
  --fault KIND@COUNT       what it does wrong on purpose, for experiments, after so many objects, numbers or tokens: a bucket
                           lies, forgets or rolled_back, a sequencer forks, a timestamp service other_key
of queue
  --bytes-max B            transactions that are not done have so many bytes at most; more is refused (268435456)
  --count-max N            transactions of a batch at most (65536)
  --sync data|none         what is synced before a transaction is acknowledged (data)
of pipeline and watcher
  --ledger FILE            the ledger's file (needed)
of pipeline
  --count-max N            transactions of a batch at most (8192)
  --lease TIME             for how long nobody else gets its batch (30s)
  --watcher ADDRESS        a watcher that is told when batches take steps; once for each
  --push                   watchers are also told to look when a block is stored
of watcher
  --bucket-to-queue TIME   how often it looks at the buckets (100ms)
  --queue-to-cache TIME    how often it empties its queue into its cache (100ms)
  --omc TIME               how often it computes the main chain (50ms)
  --push                   it also looks when a pipeline tells it to
of witness (C2SP tlog-witness over HTTP: POST /add-checkpoint)
  --name NAME              the ledger whose checkpoints it cosigns (needed)
  --sequencer KEY          the sequencer's public key (needed)
  --witness NAME           its own name in cosignatures (witness)
";

/// Bytes of a segment of a log: the queue's log is trimmed by whole ones, and holds transactions of at most 64 KiB; the
/// sequencer's records have a few dozen bytes each.
const QUEUE_SEGMENT_BYTES: usize = 16 << 20;
const SEQUENCER_SEGMENT_BYTES: usize = 1 << 20;

struct Command {
    listen: SocketAddr,
    metrics: SocketAddr,
    data: Option<PathBuf>,
    ledger: Option<PathBuf>,
    delay: Delay,
    name: Option<String>,
    timestamps: Vec<String>,
    sequencer: Option<String>,
    witness: String,
    secret: Option<PathBuf>,
    fault: Option<Fault>,
    bytes_max: usize,
    count_max: u32,
    sync: Sync,
    lease: Duration,
    watchers: Vec<String>,
    waits: Waits,
    parent_pipe: bool,
}

impl Command {
    fn parse(words: &[String]) -> Result<Option<Self>, String> {
        let any = listen_address("0")?;
        let mut command = Self {
            listen: any,
            metrics: any,
            data: None,
            ledger: None,
            delay: Delay::none(),
            name: None,
            timestamps: Vec::new(),
            sequencer: None,
            witness: "witness".to_owned(),
            secret: None,
            fault: None,
            bytes_max: 256 << 20,
            count_max: 0,
            sync: Sync::Data,
            lease: Duration::from_secs(30),
            watchers: Vec::new(),
            waits: Waits::default(),
            parent_pipe: false,
        };
        let mut words = Words::new(words);
        while let Some(name) = words.next_word() {
            match name.as_str() {
                "--help" => return Ok(None),
                "--listen" => command.listen = words.address()?,
                "--metrics" => command.metrics = words.address()?,
                "--data" => command.data = Some(words.text()?.into()),
                "--ledger" => command.ledger = Some(words.text()?.into()),
                "--delay" => command.delay = Delay::parse(&words.text()?)?.seeded(seed()?),
                "--name" => command.name = Some(words.text()?),
                "--timestamp" => command.timestamps.push(words.text()?),
                "--secret" => command.secret = Some(words.text()?.into()),
                "--fault" => command.fault = Some(Fault::parse(&words.text()?)?),
                "--bytes-max" => command.bytes_max = words.number()?,
                "--count-max" => command.count_max = words.number()?,
                "--sync" => {
                    command.sync = match words.text()?.as_str() {
                        "data" => Sync::Data,
                        "none" => Sync::None,
                        other => {
                            return Err(format!(
                                "--sync takes data or none, and `{other}` is neither"
                            ));
                        }
                    }
                }
                "--lease" => command.lease = words.duration()?,
                "--watcher" => command.watchers.push(words.text()?),
                "--bucket-to-queue" => command.waits.bucket_to_queue = words.duration()?,
                "--queue-to-cache" => command.waits.queue_to_cache = words.duration()?,
                "--omc" => command.waits.omc = words.duration()?,
                "--sequencer" => command.sequencer = Some(words.text()?),
                "--witness" => command.witness = words.text()?,
                "--push" => command.waits.push = true,
                "--parent-pipe" => command.parent_pipe = true,
                _ => return Err(words.unknown()),
            }
        }
        Ok(Some(command))
    }

    fn data(&self) -> Result<PathBuf, String> {
        let data = self.data.clone().ok_or("it keeps a key and data: --data FOLDER")?;
        std::fs::create_dir_all(&data)
            .map_err(|error| format!("making the folder {}: {error}", data.display()))?;
        Ok(data)
    }

    /// The ledger that what it signs is of.
    fn name(&self) -> Result<&str, String> {
        self.name.as_deref().ok_or_else(|| "it signs for one ledger: --name NAME".to_owned())
    }

    /// Asks who comes for the secret, if there is one.
    fn guard(&self, node: &mut impl Answering) -> Result<(), String> {
        let Some(path) = &self.secret else { return Ok(()) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("reading the secret {}: {error}", path.display()))?;
        let mut start = [0; 16];
        SystemRandom::new().fill(&mut start).map_err(|_| "the system has no randomness")?;
        node.doors().guard = Some(Guard::new(Secret::of(&text)?, start));
        Ok(())
    }

    fn ledger(&self) -> Result<Config, String> {
        Config::read(self.ledger.as_deref().ok_or("it needs the ledger's file: --ledger FILE")?)
    }

    fn count_max(&self, default: u32) -> Result<u32, String> {
        match self.count_max {
            0 => Ok(default),
            it if it as usize <= COUNT_MAX => Ok(it),
            it => Err(format!("--count-max {it} is more than {COUNT_MAX}")),
        }
    }
}

/// Runs a service until it is told to end.
pub(crate) fn run(words: &[String]) -> Result<(), String> {
    let (what, rest) = words.split_first().ok_or("serve what? See serve --help")?;
    let command = if what == "--help" { None } else { Command::parse(rest)? };
    let Some(command) = command else {
        print!("{HELP}");
        return Ok(());
    };
    match what.as_str() {
        "queue" => serve_queue(&command),
        "timestamp" => serve_timestamp(&command),
        "sequencer" => serve_sequencer(&command),
        "pipeline" => serve_pipeline(&command),
        "bucket" => serve_bucket(&command),
        "watcher" => serve_watcher(&command),
        "witness" => serve_witness(&command),
        _ => Err(format!(
            "there is no service `{what}`: queue, timestamp, sequencer, pipeline, bucket, watcher, witness"
        )),
    }
}

fn serve_queue(command: &Command) -> Result<(), String> {
    let data = command.data()?;
    let mut nonce = [0; 16];
    SystemRandom::new().fill(&mut nonce).map_err(|_| "the system has no randomness")?;
    let count_max = command.count_max(65_536)?;
    let settings = Settings { bytes_max: command.bytes_max, count_max, nonce, broken: None };
    let options = StoreOptions { sync: command.sync, segment_bytes: QUEUE_SEGMENT_BYTES };
    let (store, stored) =
        Store::open(&data, &[queue::LOG], &[], options).map_err(|error| error.to_string())?;
    let mut node = Queue::new(settings, &stored).map_err(|error| error.to_string())?;
    drop(stored);
    command.guard(&mut node)?;
    let (pending, open) = node.standing();
    let more = [("pending", pending.to_string()), ("open", open.to_string())];
    run_node(command, Some(store), Clock::start(), &mut node, &more)
}

fn serve_timestamp(command: &Command) -> Result<(), String> {
    let key = key(command)?;
    let more = [("key", crate::data::hex(&key.public()))];
    let clock = Clock::start();
    let ledger = genesis(command.name()?);
    let unix_ns = clock.origin_wall().unix_ns();
    let mut node = Timestamp::new(key, ledger, unix_ns, command.delay.clone());
    node.fault = command.fault;
    command.guard(&mut node)?;
    run_node(command, None, clock, &mut node, &more)
}

fn serve_sequencer(command: &Command) -> Result<(), String> {
    let data = command.data()?;
    let key = key(command)?;
    let mut more = vec![("key", crate::data::hex(&key.public()))];
    let options = StoreOptions { sync: command.sync, segment_bytes: SEQUENCER_SEGMENT_BYTES };
    let (store, stored) =
        Store::open(&data, &[sequencer::LOG], &[], options).map_err(|error| error.to_string())?;
    let name = command.name()?;
    let mut stamps = command.timestamps.iter().map(|text| {
        from_hex(text)
            .ok_or_else(|| format!("--timestamp {text} is no public key: 64 digits of 0-9a-f"))
    });
    let first = stamps.next().ok_or("it numbers what was timestamped: --timestamp KEY")??;
    let mut timestamp = Keys::one(first);
    for key in stamps {
        timestamp.also(key?);
    }
    let sequencer = Keys::one(key.public());
    let trust = Trust { genesis: genesis(name), timestamp, sequencer };
    let made = Sequencer::new(key, name, trust, command.delay.clone(), &stored);
    let mut node = made.map_err(|error| error.to_string())?;
    drop(stored);
    match std::fs::read(data.join(sequencer::RESUME)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        read => {
            let bytes = read.map_err(|error| format!("the file {}: {error}", sequencer::RESUME))?;
            node.resume(&bytes).map_err(|why| format!("the file {}: {why}", sequencer::RESUME))?;
        }
    }
    node.fault = command.fault;
    command.guard(&mut node)?;
    more.push(("number", node.durable().to_string()));
    run_node(command, Some(store), Clock::start(), &mut node, &more)
}

/// Where a law's draws begin: elsewhere each time.
fn seed() -> Result<u64, String> {
    let mut seed = [0; 8];
    SystemRandom::new().fill(&mut seed).map_err(|_| "the system has no randomness")?;
    Ok(u64::from_be_bytes(seed))
}

fn key(command: &Command) -> Result<Key, String> {
    let data = command.data()?;
    Key::in_folder(&data).map_err(|error| format!("the key in {}: {error}", data.display()))
}

fn run_node(
    command: &Command,
    store: Option<Store>,
    clock: Clock,
    node: &mut dyn Node,
    more: &[(&str, String)],
) -> Result<(), String> {
    let words = |error: process::shell::ShellError| error.to_string();
    let until = Until::told(command.parent_pipe).map_err(words)?;
    let listeners = [("requests", command.listen), ("metrics", command.metrics)];
    let mut shell = Shell::bind(&listeners, Bounds::default())
        .map_err(words)?
        .saying_metrics_at(METRICS_LISTENER);
    if let Some(store) = store {
        shell = shell.keeping(store);
    }
    let more: Vec<(&str, &str)> = more.iter().map(|(key, value)| (*key, value.as_str())).collect();
    shell.announce(&more).map_err(words)?;
    let facts = shell.run(node, clock, &until).map_err(words)?;
    eprintln!("ended by {}", facts.ended_by);
    Ok(())
}

async fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("listening at {address}: {error}"))
}

fn local(listener: &TcpListener) -> Result<SocketAddr, String> {
    listener.local_addr().map_err(|error| error.to_string())
}

fn serve_bucket(command: &Command) -> Result<(), String> {
    let options = bucket::Options {
        data: command.data()?,
        delay: command.delay.clone(),
        fault: command.fault,
    };
    runtime()?.block_on(async {
        let ends = ends(command.parent_pipe)?;
        let (requests, metrics) = (listen(command.listen).await?, listen(command.metrics).await?);
        let announce = |requests, metrics| {
            ready(&format!("requests={requests} metrics={metrics}"));
            Ok(())
        };
        bucket::serve(options, requests, metrics, announce, ends).await
    })
}

fn serve_pipeline(command: &Command) -> Result<(), String> {
    let config = command.ledger()?;
    let options = making::Options {
        count_max: command.count_max(8_192)?,
        lease: command.lease,
        watchers: command.watchers.clone(),
        pushes: command.waits.push,
    };
    let clock = Clock::start();
    runtime()?.block_on(async {
        let ends = ends(command.parent_pipe)?;
        let storage = Storage::open(&config, clock)?;
        let metrics = listen(command.metrics).await?;
        ready(&format!("metrics={}", local(&metrics)?));
        let counts = Arc::new(Counts::default());
        let (told, stores) = (Arc::clone(&counts), Arc::clone(&storage));
        let text = move || told.metrics() + &stores.metrics();
        tokio::select! {
            made = making::run(&config, options, storage, counts, clock) => made,
            () = crate::metrics_door::serve(metrics, text) => Ok(()),
            () = ends => Ok(()),
        }
    })
}

fn serve_watcher(command: &Command) -> Result<(), String> {
    let config = command.ledger()?;
    let clock = Clock::start();
    runtime()?.block_on(async {
        let ends = ends(command.parent_pipe)?;
        let storage = Storage::open(&config, clock)?;
        let watch = Watch::new(storage, config.trust()?, command.waits, clock);
        let (questions, metrics) = (listen(command.listen).await?, listen(command.metrics).await?);
        ready(&format!("requests={} metrics={}", local(&questions)?, local(&metrics)?));
        tokio::select! {
            () = Arc::clone(&watch).run() => Ok(()),
            () = watch::serve(watch, questions, metrics) => Ok(()),
            () = ends => Ok(()),
        }
    })
}

fn serve_witness(command: &Command) -> Result<(), String> {
    let key = key(command)?;
    let sequencer = command.sequencer.as_deref().and_then(from_hex);
    let options = witness::Options {
        data: command.data()?,
        ledger: command.name()?.to_owned(),
        sequencer: sequencer.ok_or("it cosigns what the sequencer signs: --sequencer KEY")?,
        name: command.witness.clone(),
    };
    let public = crate::data::hex(&key.public());
    let clock = Clock::start();
    runtime()?.block_on(async {
        let ends = ends(command.parent_pipe)?;
        let (requests, metrics) = (listen(command.listen).await?, listen(command.metrics).await?);
        let witness = witness::Witness::open(options, key, clock)?;
        let text = witness.says_metrics();
        ready(&format!("requests={} metrics={} key={public}", local(&requests)?, local(&metrics)?));
        tokio::select! {
            () = witness::serve(witness, requests) => Ok(()),
            () = crate::metrics_door::serve(metrics, text) => Ok(()),
            () = ends => Ok(()),
        }
    })
}
