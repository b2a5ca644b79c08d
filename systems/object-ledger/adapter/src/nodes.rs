//! The services of a trial: what they are called, how they are started, and who is told where whom is.
//!
//! Everybody who reads the ledger's file gets one of his own: on links that are forwarders each dials other addresses.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use exec_adapter::{Program, Start, Vocabulary};
use model::Seed;
use model::plan::CLIENT;
use serde_json::json;
use sut::{Scrape, SutError, Testbed};
use testbed::free_port;

use crate::metrics;
use crate::stages::{STAGES, STEPS};

/// The program that is all of the services, the probe and the audit.
const PROGRAM: &str = "object-ledger";

/// The names of services in the testbed, for faults and links by name; buckets and pipelines have numbers behind theirs.
pub(crate) const QUEUE: &str = "queue";
const TIMESTAMP: &str = "timestamp";
const SEQUENCER: &str = "sequencer";
const WATCHER: &str = "watcher";
const PIPELINE: &str = "pipeline";
const PROBE: &str = "probe";
const AUDIT: &str = "audit";

/// What an address is called in a ready line.
const REQUESTS: &str = "requests";
const METRICS: &str = "metrics";

/// How long a service may take to start.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How long the probe may take to start watching, and the audit to say the next part of what it has read.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// A ledger as an experiment wants it.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) pipelines: u32,
    /// Their names.
    pub(crate) buckets: Vec<String>,
    /// Those whose folders are audited.
    pub(crate) audit_buckets: Vec<String>,
    pub(crate) required: u32,
    pub(crate) retries: u32,
    pub(crate) batch_max: u32,
    /// Channels of the probe.
    pub(crate) channels: u32,
    /// How much later services answer, as they take it.
    pub(crate) timestamp_delay: String,
    pub(crate) sequencer_delay: String,
    pub(crate) bucket_delay: String,
    /// Buckets that have to have their piece before an object counts as stored.
    pub(crate) acknowledge: u32,
    /// Pieces that an object has to have beyond those that rebuild it, for the audit.
    pub(crate) audit_margin: u32,
    /// A ledger's file whose stores are used instead of buckets of the trial's own.
    pub(crate) ledger: Option<PathBuf>,
    /// What services do wrong on purpose, by their names.
    pub(crate) byzantine: BTreeMap<String, String>,
    pub(crate) bucket_to_queue: Duration,
    pub(crate) queue_to_cache: Duration,
    pub(crate) omc: Duration,
    pub(crate) lease: Duration,
    pub(crate) attempt_max: Duration,
    pub(crate) give_up: Duration,
    pub(crate) push: bool,
    pub(crate) watcher: bool,
    pub(crate) full_copies: bool,
    pub(crate) hedged: bool,
    /// Whether the queue syncs what it acknowledges.
    pub(crate) sync: bool,
    pub(crate) run_mark: u64,
}

/// What is up.
pub(crate) struct Up {
    /// Where the load goes.
    pub(crate) queue: SocketAddr,
    pub(crate) probe: Program,
    pub(crate) audit: Program,
    pub(crate) scrape: Vec<Scrape>,
    /// Where pipelines say what fails.
    pub(crate) pipelines: Vec<SocketAddr>,
}

/// A service that is up, as all who reach it without a forwarder do.
struct Service {
    requests: SocketAddr,
    metrics: SocketAddr,
    /// Its public key, if it signs.
    key: String,
}

/// The services that everybody has to know.
struct Known {
    name: String,
    queue: Service,
    timestamp: Service,
    sequencer: Service,
    /// None where the stores are somebody's.
    buckets: Vec<SocketAddr>,
    /// The file with what services and pipelines share.
    secret: PathBuf,
}

/// Starts everything.
pub(crate) fn start(wish: &Wish, bed: &mut Testbed) -> Result<Up, SutError> {
    let mut scrape = Vec::new();
    let mut serve = |bed: &mut Testbed, what: &str, name: &str, more: Vec<String>| {
        serve(bed, what, name, more, &mut scrape)
    };
    let delay = |delay: &str| format!("--delay={delay}");
    let name = format!("{:016x}", wish.run_mark);
    let secret = secret_file(wish, bed)?;
    let known_to = format!("--secret={}", secret.display());
    let fault = |name: &str| wish.byzantine.get(name).map(|fault| format!("--fault={fault}"));
    let sync = format!("--sync={}", if wish.sync { "data" } else { "none" });
    let data = |bed: &mut Testbed, name: &str| -> Result<String, SutError> {
        Ok(format!("--data={}", bed.node_folder(name)?.join("data").display()))
    };
    let words = vec![data(bed, QUEUE)?, sync, known_to.clone()];
    let queue = serve(bed, "queue", QUEUE, words)?;
    let of = format!("--name={name}");
    let mut words =
        vec![data(bed, TIMESTAMP)?, delay(&wish.timestamp_delay), of.clone(), known_to.clone()];
    words.extend(fault(TIMESTAMP));
    let timestamp = serve(bed, "timestamp", TIMESTAMP, words)?;
    let mut words = vec![data(bed, SEQUENCER)?, delay(&wish.sequencer_delay), of, known_to];
    words.push(format!("--timestamp={}", timestamp.key));
    words.extend(fault(SEQUENCER));
    let sequencer = serve(bed, "sequencer", SEQUENCER, words)?;
    let mut buckets = Vec::new();
    for name in wish.buckets.iter().filter(|_| wish.ledger.is_none()) {
        let mut words = vec![data(bed, name)?, delay(&wish.bucket_delay)];
        words.extend(fault(name));
        buckets.push(serve(bed, "bucket", name, words)?.requests);
    }
    let known = Known { name, queue, timestamp, sequencer, buckets, secret };
    let (probe, notes) = start_probe(wish, &known, bed)?;
    let mut watchers = vec![(PROBE, notes)];
    let push = || wish.push.then(|| "--push".to_owned());
    if wish.watcher {
        let mut words = vec![
            format!("--ledger={}", file(wish, &known, WATCHER, bed)?.display()),
            format!("--bucket-to-queue={}", in_words(wish.bucket_to_queue)),
            format!("--queue-to-cache={}", in_words(wish.queue_to_cache)),
            format!("--omc={}", in_words(wish.omc)),
        ];
        words.extend(push());
        watchers.push((WATCHER, serve(bed, "watcher", WATCHER, words)?.requests));
    }
    let mut pipelines = Vec::new();
    for number in 0..wish.pipelines {
        let name = match wish.pipelines {
            1 => PIPELINE.to_owned(),
            _ => format!("{PIPELINE}{number}"),
        };
        let mut words = vec![
            format!("--ledger={}", file(wish, &known, &name, bed)?.display()),
            format!("--count-max={}", wish.batch_max),
            format!("--lease={}", in_words(wish.lease)),
        ];
        for (watcher, address) in &watchers {
            let dialled = bed.forward(&name, watcher, *address)?.unwrap_or(*address);
            words.push(format!("--watcher={dialled}"));
        }
        words.extend(push());
        pipelines.push(serve(bed, PIPELINE, &name, words)?.metrics);
    }
    let audit = start_audit(wish, &known, bed)?;
    let queue = known.queue.requests;
    let queue = bed.forward(CLIENT, QUEUE, queue)?.unwrap_or(queue);
    Ok(Up { queue, probe, audit, scrape, pipelines })
}

/// Writes what services and pipelines share: on loopback it keeps out whoever is not of this trial.
fn secret_file(wish: &Wish, bed: &Testbed) -> Result<PathBuf, SutError> {
    let failed = |why: std::io::Error| SutError::Deploy(format!("writing the secret: {why}"));
    let path = std::path::absolute(bed.folder().join("ledger-secret")).map_err(failed)?;
    // Nothing of the trial has a file yet.
    std::fs::create_dir_all(bed.folder()).map_err(failed)?;
    std::fs::write(&path, format!("trial {:016x} of this host\n", wish.run_mark))
        .map_err(failed)?;
    Ok(path)
}

/// The address of the host that a node listens on: its own on the plan's links, else loopback.
fn host(bed: &mut Testbed, name: &str) -> Result<IpAddr, SutError> {
    Ok(bed.network_address(name)?.unwrap_or(Ipv4Addr::LOCALHOST).into())
}

fn serve(
    bed: &mut Testbed,
    what: &str,
    name: &str,
    more: Vec<String>,
    scrape: &mut Vec<Scrape>,
) -> Result<Service, SutError> {
    let any = SocketAddr::new(host(bed, name)?, 0);
    // A pipeline is asked nothing.
    let listens = what != PIPELINE;
    let mut words: Vec<String> = ["serve", what, "--parent-pipe"].map(str::to_owned).into();
    words.push(format!("--metrics={any}"));
    words.extend(listens.then(|| format!("--listen={any}")));
    words.extend(more);
    bed.spawn_program(name, PROGRAM, words)?;
    let ready = bed.ready_line(name, READY_WITHIN)?;
    let metrics = address(name, &ready, METRICS)?;
    let requests = if listens { address(name, &ready, REQUESTS)? } else { any };
    bed.at_restart(name, |arguments| {
        // One that is started again listens where it did.
        for (option, address) in [("--metrics=", metrics), ("--listen=", requests)] {
            if let Some(argument) = arguments.iter_mut().find(|it| it.starts_with(option)) {
                *argument = format!("{option}{address}");
            }
        }
    })?;
    scrape.push(metrics::scrape(what, name, metrics));
    let key = ready.get("key").cloned().unwrap_or_default();
    Ok(Service { requests, metrics, key })
}

fn address(
    name: &str,
    ready: &BTreeMap<String, String>,
    what: &str,
) -> Result<SocketAddr, SutError> {
    let address = ready.get(what).and_then(|address| address.parse().ok());
    address.ok_or_else(|| {
        SutError::Deploy(format!("`{name}` does not say its address `{what}`: {ready:?}"))
    })
}

/// The ledger's file, as `reader` is to have it.
fn file(wish: &Wish, known: &Known, reader: &str, bed: &mut Testbed) -> Result<PathBuf, SutError> {
    let mut dialled = |to: &str, address: SocketAddr| -> Result<SocketAddr, SutError> {
        Ok(bed.forward(reader, to, address)?.unwrap_or(address))
    };
    let queue = dialled(QUEUE, known.queue.requests)?;
    let timestamp = dialled(TIMESTAMP, known.timestamp.requests)?;
    let sequencer = dialled(SEQUENCER, known.sequencer.requests)?;
    let mut text = format!(
        "name = \"{}\"\nsecret_file = {:?}\nqueue = \"{queue}\"\ntimestamp = \"{timestamp}\"\nsequencer = \"{sequencer}\"\n\n\
         [keys]\ntimestamp = \"{}\"\nsequencer = \"{}\"\n\n\
         [storage]\nrequired_piece_count = {}\nacknowledge = {}\nretry_max = {}\nfull_copies = {}\nhedged_writes = {}\nattempt_ms_max = {}\n",
        known.name,
        known.secret.display().to_string(),
        known.timestamp.key,
        known.sequencer.key,
        wish.required,
        wish.acknowledge,
        wish.retries,
        wish.full_copies,
        wish.hedged,
        wish.attempt_max.as_millis(),
    );
    if let Some(stores) = &wish.ledger {
        // Each trial has a folder of its own in the stores.
        let stores = std::path::absolute(stores).unwrap_or_else(|_| stores.clone());
        let _ = writeln!(text, "prefix = \"assay-{}\"", known.name);
        text = format!("stores = {:?}\n{text}", stores.display().to_string());
    }
    for (place, (name, address)) in wish.buckets.iter().zip(&known.buckets).enumerate() {
        let address = dialled(name, *address)?;
        let _ = write!(
            text,
            "\n[[bucket]]\nprovider = \"aws\"\nbucket = \"b{place}\"\nendpoint = \"http://{address}\"\n"
        );
    }
    let failed = |why: std::io::Error| {
        SutError::Deploy(format!("writing the ledger's file for `{reader}`: {why}"))
    };
    let path = std::path::absolute(bed.folder().join(format!("{reader}-ledger.toml")));
    let path = path.map_err(failed)?;
    std::fs::write(&path, text).map_err(failed)?;
    Ok(path)
}

/// A program that is driven over descriptors that it inherits.
fn driven(name: &str, arguments: &[&str], wish: &Wish) -> Result<Start, SutError> {
    let program = testbed::program::find(PROGRAM)?.display().to_string();
    let arguments = arguments.iter().map(|&word| word.to_owned());
    Ok(Start {
        name: name.to_owned(),
        command: std::iter::once(program).chain(arguments).collect(),
        folder: None,
        environment: Vec::new(),
        words: Vocabulary::default(),
        channels: 0,
        in_flight_max: 1,
        start_within: ANSWER_WITHIN,
        answer_within: ANSWER_WITHIN,
        options: json!({}),
        run_mark: wish.run_mark,
        seed: Seed(wish.run_mark),
    })
}

/// Starts the probe; gives also where pipelines tell it when batches take steps.
fn start_probe(
    wish: &Wish,
    known: &Known,
    bed: &mut Testbed,
) -> Result<(Program, SocketAddr), SutError> {
    let listen = SocketAddr::new(host(bed, PROBE)?, free_port()?);
    let ledger = file(wish, known, PROBE, bed)?.display().to_string();
    let milliseconds = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
    let words = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let start = Start {
        words: Vocabulary {
            stages: words(&STAGES),
            kinds: words(&["probe"]),
            steps: STEPS.iter().map(|(name, _)| (*name).to_owned()).collect(),
            keys: None,
        },
        channels: wish.channels,
        in_flight_max: 64,
        options: json!({
            "ledger": ledger,
            "listen": listen.to_string(),
            "bucket_to_queue_ms": milliseconds(wish.bucket_to_queue),
            "queue_to_cache_ms": milliseconds(wish.queue_to_cache),
            "omc_ms": milliseconds(wish.omc),
            "push": wish.push,
            "give_up_ms": milliseconds(wish.give_up),
        }),
        ..driven(PROBE, &["probe"], wish)?
    };
    Ok((Program::start(start, bed)?, listen))
}

/// Starts the audit, which does nothing before it is asked for the ledger.
fn start_audit(wish: &Wish, known: &Known, bed: &mut Testbed) -> Result<Program, SutError> {
    let mut folders = Vec::new();
    for (place, name) in wish.buckets.iter().enumerate() {
        if wish.audit_buckets.contains(name) {
            let folder = bed.node_folder(name)?.join("data").join(format!("b{place}"));
            folders.push(folder.display().to_string());
        }
    }
    let options = match &wish.ledger {
        Some(_) => json!({
            "ledger": file(wish, known, AUDIT, bed)?.display().to_string(),
            "margin": wish.audit_margin,
        }),
        None => json!({
            "name": known.name,
            "timestamp": known.timestamp.key,
            "sequencer": known.sequencer.key,
            "buckets": folders,
            "margin": wish.audit_margin,
        }),
    };
    let start = Start { options, ..driven(AUDIT, &["audit", "--driven"], wish)? };
    Program::start(start, bed)
}

/// A time as the services take it: whole microseconds.
pub(crate) fn in_words(duration: Duration) -> String {
    format!("{}us", duration.as_micros())
}
