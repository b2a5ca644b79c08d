//! `[system.deploy]` and `[workload]`: what an experiment can ask for. Every mistake is reported with its place.

use std::sync::{Arc, LazyLock, OnceLock};

use atomizer_node::shard::Lie;
use model::Seed;
use model::options::{Options, Problems, Section};
use model::plan::{Arrivals, LoadPlan};
use sut::{Request, System};

use crate::known::{Known, MadeLater};
use crate::session::Refresh;
use crate::wallet::{OUTPUTS_EACH, Purse, Shares, Wallet};

/// Who is followed: what is in a block of theirs is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observe {
    /// The archiver: blocks that it has.
    Archiver,
    /// The atomizers: blocks as they send them out.
    Atomizer,
    /// The watchtower: it is asked what became of each.
    Watchtower,
}

/// The system as an experiment wants it.
pub(crate) struct Atomizer {
    pub(crate) atomizers: u8,
    pub(crate) log: &'static str,
    /// Of the command line of each atomizer.
    pub(crate) arguments: Vec<String>,
    pub(crate) depth: u64,
    pub(crate) archive_sync: &'static str,
    pub(crate) watchtower: bool,
    pub(crate) watchtower_stub: bool,
    pub(crate) observe: Observe,
    pub(crate) observe_errors: bool,
    pub(crate) stamps: bool,
    /// After so many sends of a generator heights are looked up, and what that is of a connection.
    pub(crate) refresh_every: u32,
    pub(crate) refresh: Refresh,
    pub(crate) in_flight_max: u32,
    pub(crate) resends: bool,
    /// Shards that vouch; none: sessions do that themselves.
    pub(crate) shards: u8,
    /// How some of them lie, by number.
    pub(crate) lies: Vec<(u8, &'static str)>,
    pub(crate) purse: Purse,
    /// What sessions tell and ask each other. A plan that is only looked at costs no table.
    pub(crate) known: MadeLater,
    /// The main load's, once its seed is known.
    pub(crate) wallet: OnceLock<Wallet>,
}

/// Atomizers at most.
const ATOMIZERS_MAX: u64 = 15;
/// Generators unless said otherwise: as many as published.
const GENERATORS: u64 = 10;
/// Outstanding on a connection unless said otherwise: what stands in queues and blocks for seconds.
const IN_FLIGHT_MAX: u64 = 1 << 20;
/// Heights a transaction may be behind, unless said otherwise.
const DEPTH: u64 = 1;
/// Transactions that a hash can be recognised of: between these, by the load.
const RECENT_MIN: u64 = 1 << 16;
const RECENT_MAX: u64 = 1 << 23;

/// Shards at most.
const SHARDS_MAX: u64 = 15;

/// Options of atomizers that take a value, by key.
const VALUES: [(&str, &str); 7] = [
    ("depth", "--depth"),
    ("linger_us", "--linger-us"),
    ("batch_bytes", "--batch-bytes"),
    ("queue_max", "--queue-max"),
    ("window", "--window"),
    ("election_timeout_ms", "--election-timeout-ms"),
    ("batch_idle_ms", "--batch-idle-ms"),
];

/// Switches of atomizers, what the published system does among them.
const SWITCHES: [(&str, &str); 7] = [
    ("as_published", "--as-published"),
    ("no_batch_cap", "--no-batch-cap"),
    ("admit_late", "--admit-late"),
    ("copy_blocks", "--copy-blocks"),
    ("broadcast_to_all", "--broadcast-to-all"),
    ("ignore_height_zero", "--ignore-height-zero"),
    ("silent", "--silent"),
];

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let atomizers = deploy.integer("atomizers", 1, ATOMIZERS_MAX, problems).unwrap_or(1);
    let log = deploy.one_of("log", &["memory", "file", "fsync"], problems).unwrap_or("fsync");
    if log == "memory" && atomizers > 1 {
        let message = "several atomizers keep their log: what they promise has to survive them";
        let help = Some("write log = \"file\" or \"fsync\"".to_owned());
        deploy.reject("log", message.to_owned(), help, problems);
    }
    let mut arguments = Vec::new();
    let interval = deploy.duration("block_interval", problems);
    arguments.extend(interval.map(|it| format!("--block-interval-ms={}", it.as_millis())));
    let mut depth = DEPTH;
    for (key, option) in VALUES {
        let least = u64::from(["window", "election_timeout_ms"].contains(&key));
        let value = deploy.integer(key, least, 1 << 40, problems);
        if key == "depth" {
            depth = value.unwrap_or(DEPTH);
        }
        arguments.extend(value.map(|value| format!("{option}={value}")));
    }
    let up_to = ["receive", "accumulate", "log", "apply", "block"];
    let up_to = deploy.one_of("up_to", &up_to, problems);
    arguments.extend(up_to.map(|rung| format!("--up-to={rung}")));
    for (key, option) in SWITCHES {
        if deploy.boolean(key, problems) == Some(true) {
            arguments.push(option.to_owned());
        }
    }
    let sync = deploy.one_of("archive_sync", &["data", "none"], problems).unwrap_or("data");
    let watchtower = deploy.boolean("watchtower", problems).unwrap_or(true);
    let stub = deploy.boolean("watchtower_stub", problems).unwrap_or(false);
    let observe = deploy.one_of("observe", &["archiver", "atomizer", "watchtower"], problems);
    let observe = match observe {
        Some("atomizer") => Observe::Atomizer,
        Some("watchtower") => Observe::Watchtower,
        _ => Observe::Archiver,
    };
    if observe == Observe::Watchtower && !watchtower {
        let help = Some("leave out `watchtower`, or observe the archiver".to_owned());
        deploy.reject("observe", "there is no watchtower to be asked".to_owned(), help, problems);
    }
    // Who asks the watchtower hears of refusals from it.
    let errors = deploy.boolean("observe_errors", problems);
    let errors = errors.unwrap_or(observe != Observe::Watchtower);
    let stamps = deploy.boolean("stamps", problems).unwrap_or(false);
    let refresh_every = deploy.integer("refresh_every", 1, 1_000_000, problems).unwrap_or(1);
    let refresh_every = u32::try_from(refresh_every).expect("bounded");
    let in_flight_max = deploy.integer("in_flight_max", 1, 1 << 24, problems);
    let shards = deploy.integer("shards", 0, SHARDS_MAX, problems).unwrap_or(0);
    let lies = lies(&mut deploy, shards, problems);
    deploy.finish(problems);

    let mut workload = Section::open(request.workload, "workload", problems);
    let purse = read_workload(&mut workload, problems);
    if shards == 0 && purse.double_lag > 1 {
        let message = "what was spent long ago is vouched for by nobody, unless shards are asked";
        let help = Some("write system.deploy.shards = 1".to_owned());
        workload.reject("double_lag", message.to_owned(), help, problems);
    }
    let Shares([_, _, _, stale, future]) = purse.shares;
    if shards > 0 && stale + future > 0 {
        let message = "shards say the height themselves, so that none is stale or of the future";
        workload.reject("stale", message.to_owned(), None, problems);
    }
    let recent = workload.integer("recent", 1, 1 << 26, problems);
    workload.finish(problems);
    if problems.list.len() > before {
        return None;
    }
    let recent = usize::try_from(recent.unwrap_or_else(|| recent_of(request.load))).ok()?;
    let rate = request.load.is_some_and(|load| load.resend.is_some());
    Some(Box::new(Atomizer {
        atomizers: u8::try_from(atomizers).ok()?,
        log,
        arguments,
        depth,
        archive_sync: sync,
        watchtower,
        watchtower_stub: stub,
        observe,
        observe_errors: errors,
        stamps,
        refresh_every,
        refresh: Refresh::of(refresh_every, request.load),
        in_flight_max: u32::try_from(in_flight_max.unwrap_or(IN_FLIGHT_MAX)).ok()?,
        resends: rate,
        shards: u8::try_from(shards).ok()?,
        lies,
        purse,
        known: LazyLock::new(Box::new(move || Arc::new(Known::new(recent)))),
        wallet: std::sync::OnceLock::new(),
    }))
}

/// The lies of shards, by the shard's number: each as `shardN.LIE`, of the one list that nodes have.
fn lies(deploy: &mut Section<'_>, shards: u64, problems: &mut Problems) -> Vec<(u8, &'static str)> {
    let mut lies = Vec::new();
    for text in deploy.strings("byzantine", problems).into_iter().flatten() {
        let known = text.split_once('.').and_then(|(name, lie)| {
            let number: u8 = name.strip_prefix("shard")?.parse().ok()?;
            let lie =
                Lie::ALL.iter().map(|(name, _)| *name).find(|it| *it == lie.replace('_', "-"))?;
            (u64::from(number) < shards).then_some((number, lie))
        });
        match known {
            Some(lie) => lies.push(lie),
            None => {
                let names: Vec<String> = Lie::ALL
                    .iter()
                    .map(|(name, _)| format!("shardN.{}", name.replace('-', "_")))
                    .collect();
                let message = format!("`system.deploy.byzantine`: there is no fault `{text}`");
                let help =
                    format!("expected {}, with N below system.deploy.shards", names.join(" or "));
                deploy.reject("byzantine", message, Some(help), problems);
            }
        }
    }
    lies
}

/// Generators, the outputs that each begins with, and what else than plain spends there is.
fn read_workload(section: &mut Section<'_>, problems: &mut Problems) -> Purse {
    section.one_of("kind", &["spend"], problems);
    let generators = section.integer("generators", 1, 100_000, problems).unwrap_or(GENERATORS);
    let outputs = section.integer("outputs", 2, 1 << 40, problems).unwrap_or(OUTPUTS_EACH);
    let mut shares = [0; 5];
    let keys = ["partial", "double_spend", "unknown_input", "stale", "future"];
    for (share, key) in shares.iter_mut().zip(keys) {
        let part = section.percent(key, problems).unwrap_or(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most a thousand"
        )]
        let thousandths = (part * 1_000.0).round() as u64;
        *share = thousandths;
    }
    if shares.iter().sum::<u64>() > 900 {
        let message = "at least a tenth of the load is plain spends";
        section.reject("double_spend", message.to_owned(), None, problems);
    }
    let double_lag = section.integer("double_lag", 1, 1 << 32, problems).unwrap_or(1);
    let generators = u32::try_from(generators).expect("bounded");
    Purse { generators, outputs, shares: Shares(shares), double_lag }
}

/// The wallet of options that have been read before.
pub(crate) fn wallet(workload: &Options, seed: Seed) -> Wallet {
    let mut problems = Problems::default();
    let mut section = Section::open(workload, "workload", &mut problems);
    read_workload(&mut section, &mut problems).wallet(seed)
}

/// As many as the load sends in ten seconds, or may have outstanding.
fn recent_of(load: Option<&LoadPlan>) -> u64 {
    let wanted = match load.map(|load| &load.arrivals) {
        Some(Arrivals::Closed { clients, .. }) => u64::from(*clients) * 4,
        _ => RECENT_MAX / 4,
    };
    wanted.clamp(RECENT_MIN, RECENT_MAX)
}

/// Everything is started on this host.
pub(crate) fn targets(_request: &Request<'_>) -> Vec<String> {
    Vec::new()
}
