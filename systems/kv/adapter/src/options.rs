//! `[system.deploy]` and `[workload]`: what an experiment can ask for. Every mistake is reported with its place.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Duration;

use isolation::checks::promised;
use isolation::workload::{BANK, Bank, LIST_APPEND, Lists};
use kv_node::SEGMENT_BYTES_MIN;
use kv_node::database::transaction::{OPERATIONS_MAX, TRANSACTION_BYTES_MAX};
use model::Seed;
use model::options::{Options, Problems, Section};
use sut::{Request, System};

use crate::session::nobody;
use crate::workload::{Puts, Sort};

/// Outstanding on a connection unless said otherwise.
const IN_FLIGHT_MAX: u64 = 1024;

/// Clients that bring transactions unless said otherwise, where the arrivals are open: as many as published.
const CLIENTS: u64 = 16_384;

/// Clients at most: as many sessions as a replica keeps.
const CLIENTS_MAX: u64 = 1 << 20;

/// Bytes of a value unless said otherwise, and at most: with what stands beside it, it fits a transaction.
const VALUE_BYTES: u64 = 16;
const VALUE_BYTES_MAX: u64 = 512 << 10;

/// Keys that are stored unless said otherwise.
const PUT_KEYS: u64 = 100_000;

/// Replicas unless said otherwise: as many as survive the loss of one; and at most.
const REPLICAS: u64 = 3;
const REPLICAS_MAX: u64 = 15;

/// How long replicas are without a leader until another wants to lead, unless said otherwise.
const ELECTION_TIMEOUT_MS: u64 = 1000;
/// The pause after which a leader says again that it is there.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// The database as an experiment wants it.
pub(crate) struct Kv {
    /// What the replicas run, where that is another program than this one.
    pub(crate) program: Option<PathBuf>,
    /// Of the command line of each replica.
    pub(crate) arguments: Vec<String>,
    pub(crate) attach: Option<SocketAddr>,
    /// The folder with certificates for one that is attached to.
    pub(crate) identity: Option<PathBuf>,
    pub(crate) replicas: u8,
    pub(crate) tls: bool,
    /// Whether replicas keep a log on the disk.
    pub(crate) keeps: bool,
    /// Whether one of them keeps a ledger.
    pub(crate) ledger: bool,
    pub(crate) election_timeout_ms: u64,
    pub(crate) in_flight_max: u32,
    pub(crate) resends: bool,
    /// What transactions do; `workload` is what it was read from, and is read again once the seed is known.
    pub(crate) sort: Sort,
    pub(crate) workload: Options,
    pub(crate) value_bytes: usize,
    /// How many clients bring transactions where the arrivals are open.
    pub(crate) clients: u32,
    pub(crate) run_mark: u64,
    /// By connection: the replica that it was told leads.
    pub(crate) leaders: Vec<Arc<AtomicU8>>,
}

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    const { assert!(TRANSACTION_BYTES_MAX >= 1 << 20) }
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let attach = deploy.address("attach", "127.0.0.1:4000", problems);
    let in_flight_max = deploy.integer("in_flight_max", 1, 65_536, problems);
    let in_flight_max = in_flight_max.unwrap_or_else(|| carried(request));
    let identity = deploy.string("identity", problems).map(|folder| request.folder.join(folder));
    let program = deploy.string("program", problems).map(|path| request.folder.join(path));
    let arguments = arguments(&mut deploy, problems);
    let replicas = deploy.integer("replicas", 1, REPLICAS_MAX, problems);
    let tls = deploy.boolean("tls", problems);
    let keeps = deploy.boolean("keeps", problems);
    let ledger = deploy.boolean("ledger", problems);
    let election = deploy.duration("election_timeout", problems);
    if election.is_some_and(|it| it <= HEARTBEAT) {
        let message = "expected more than 50ms, after which a leader says again that it is there";
        deploy.reject("election_timeout", message, None, problems);
    }
    let is_ours = program.is_some()
        || !arguments.is_empty()
        || replicas.is_some()
        || tls.is_some()
        || keeps.is_some();
    if attach.is_some() && (is_ours || ledger.is_some() || election.is_some()) {
        let message = "a replica that runs already has its own settings".to_owned();
        deploy.reject("attach", message, Some("remove it, or the others".to_owned()), problems);
    }
    if attach.is_none() && identity.is_some() {
        let message = "replicas that are started here get certificates of their own".to_owned();
        deploy.reject("identity", message, Some("remove it, or attach".to_owned()), problems);
    }
    let replicas = replicas.unwrap_or(REPLICAS);
    if keeps == Some(false) && replicas > 1 {
        let message = "replicas of a group keep a log: what they promise has to survive them";
        let help = Some("set replicas = 1, too".to_owned());
        deploy.reject("keeps", message.to_owned(), help, problems);
    }
    deploy.finish(problems);

    let mut workload = Section::open(request.workload, "workload", problems);
    let sort = read_sort(&mut workload, Seed(0), problems);
    let value_bytes =
        workload.size_within("value", 0..=VALUE_BYTES_MAX, problems).unwrap_or(VALUE_BYTES);
    if let Sort::Puts(puts) = sort
        && value_bytes.saturating_mul(puts.puts.into()) > VALUE_BYTES_MAX
    {
        let message = format!("all values of a transaction can be at most {VALUE_BYTES_MAX} bytes");
        workload.reject("puts", message, Some("fewer, or a smaller value".to_owned()), problems);
    }
    let clients = workload.integer("clients", 1, CLIENTS_MAX, problems).unwrap_or(CLIENTS);
    workload.finish(problems);
    if problems.list.len() > before {
        return None;
    }
    let connections = request.load.map_or(1, |load| load.connections_max.max(load.connections));
    Some(Box::new(Kv {
        program,
        arguments,
        attach,
        identity,
        replicas: u8::try_from(replicas).ok()?,
        tls: tls.unwrap_or(true),
        keeps: keeps.unwrap_or(true),
        ledger: ledger.unwrap_or(true),
        election_timeout_ms: election
            .map_or(ELECTION_TIMEOUT_MS, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
        in_flight_max: u32::try_from(in_flight_max).ok()?,
        resends: request.load.is_some_and(|load| load.resend.is_some()),
        sort,
        workload: request.workload.clone(),
        value_bytes: usize::try_from(value_bytes).ok()?,
        clients: u32::try_from(clients).ok()?,
        run_mark: request.run_mark,
        leaders: (0..connections.saturating_mul(2)).map(|_| nobody()).collect(),
    }))
}

/// What of the deployment is said to each replica.
fn arguments(deploy: &mut Section<'_>, problems: &mut Problems) -> Vec<String> {
    let mut arguments = Vec::new();
    let sizes = [
        ("memory_max", "--bytes-max"),
        ("segment", "--segment-bytes"),
        ("snapshot_after", "--snapshot-after-bytes"),
    ];
    for (key, option) in sizes {
        let size = deploy.size(key, problems);
        let least = u64::try_from(SEGMENT_BYTES_MIN).unwrap_or(u64::MAX);
        if key == "segment" && size.is_some_and(|bytes| bytes < least) {
            let message = format!(
                "`system.deploy.segment` must be at least {} MiB: the longest entry has to fit",
                least >> 20
            );
            deploy.reject(key, message, None, problems);
        }
        arguments.extend(size.map(|bytes| format!("{option}={bytes}")));
    }
    let window = deploy.integer("window", 1, 1024, problems);
    arguments.extend(window.map(|window| format!("--window={window}")));
    let sync = deploy.one_of("sync", &["data", "segment", "none"], problems);
    arguments.extend(sync.map(|sync| format!("--sync={sync}")));
    let log_thread = deploy.one_of("log_thread", &["own", "node"], problems);
    arguments.extend(log_thread.map(|which| format!("--log-thread={which}")));
    for (key, option) in [("wait_for_all", "--wait-for-all"), ("resend_values", "--resend-values")]
    {
        if deploy.boolean(key, problems) == Some(true) {
            arguments.push(option.to_owned());
        }
    }
    arguments
}

/// What transactions do, and the keys that are that kind's alone.
fn read_sort(workload: &mut Section<'_>, seed: Seed, problems: &mut Problems) -> Sort {
    let kinds = ["map-and-list", "proposal", "put", LIST_APPEND, BANK];
    match workload.one_of("kind", &kinds, problems) {
        Some("proposal") => Sort::Proposal,
        Some("put") => Sort::Puts(Puts {
            keys: workload.integer("keys", 1, u64::MAX, problems).unwrap_or(PUT_KEYS),
            puts: puts(workload, problems),
            seed,
        }),
        Some(LIST_APPEND) => {
            promised(workload, problems);
            Sort::Lists(Lists::read(workload, seed, problems))
        }
        Some(BANK) => Sort::Bank(Bank::read(workload, seed, problems)),
        _ => Sort::MapAndList,
    }
}

/// How many keys a transaction stores.
fn puts(workload: &mut Section<'_>, problems: &mut Problems) -> u32 {
    let most = u64::try_from(OPERATIONS_MAX).expect("a small number");
    let puts = workload.integer("puts", 1, most, problems).unwrap_or(1);
    u32::try_from(puts).expect("at most as many as operations")
}

/// What transactions do, of options that have been read before, with their seed.
pub(crate) fn sort(workload: &Options, seed: Seed) -> Option<Sort> {
    let mut problems = Problems::default();
    let mut section = Section::open(workload, "workload", &mut problems);
    let sort = read_sort(&mut section, seed, &mut problems);
    problems.is_empty().then_some(sort)
}

/// As much as batches would put on a connection.
fn carried(request: &Request<'_>) -> u64 {
    let batch = request.load.and_then(|load| load.batch);
    let wanted =
        batch.map_or(0, |batch| u64::from(batch.size_max) * u64::from(batch.in_flight_max));
    wanted.clamp(IN_FLIGHT_MAX, 65_536)
}
