//! `[system.deploy]` and `[workload]` of a CometBFT network: every key typed, every mistake reported with its
//! place. Nothing is started here.

use std::net::SocketAddr;
use std::time::Duration;

use model::options::{Options, Problems, Section, Value};
use sut::{Request, System};

use crate::answer::Method;
use crate::config_file::Setting;
use crate::loadtime::{Loadtime, Stamp};
use crate::system::CometBft;
use crate::testnet::VALIDATORS_MAX;
use crate::transaction::BYTES_MIN;

/// The longest transaction: a request may have 1,000,000 bytes (`rpc.max_body_bytes`), and base64 takes 4 for 3.
const TRANSACTION_BYTES_MAX: u64 = 740_000;

/// What the published reports submit.
const TRANSACTION_BYTES: u64 = 1024;

/// Outstanding on a connection unless said otherwise: several blocks at the rates that one machine reaches.
const IN_FLIGHT_MAX: u64 = 65_536;

/// How long a network may take to begin: 16 nodes need a few seconds, 64 a minute.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Keys that say what is started, and so stand against `attach`.
const OF_A_START: [&str; 4] = ["program", "validators", "config", "ready_within"];

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let system = read(request, problems)?;
    Some(Box::new(system))
}

pub(crate) fn read(request: &Request<'_>, problems: &mut Problems) -> Option<CometBft> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let attach = attach(&mut deploy, problems);
    let program = deploy.string("program", problems).map(|path| request.folder.join(path));
    let validators = deploy.integer("validators", 1, VALIDATORS_MAX, problems).unwrap_or(4);
    let ready_within = deploy.duration("ready_within", problems).unwrap_or(READY_WITHIN);
    let settings = settings(&mut deploy, problems);
    let method = Method::of_word(deploy.one_of("method", Method::WORDS, problems));
    let spreads = deploy.one_of("submit_to", &["first", "each"], problems) == Some("each");
    let count = if attach.is_empty() {
        usize::try_from(validators).expect("bounded above")
    } else {
        attach.len()
    };
    let last = u64::try_from(count - 1).expect("few nodes");
    let observe = deploy.integer("observe", 0, last, problems).unwrap_or(0);
    let in_flight_max = in_flight_max(&mut deploy, method, problems);
    for key in OF_A_START {
        if !attach.is_empty() && deploy.raw(key).is_some() {
            let message = format!("`{key}` says what is started, and `attach` that nothing is");
            deploy.reject(key, message, Some("remove one of the two".to_owned()), problems);
        }
    }
    deploy.finish(problems);
    let (transaction_bytes, loadtime) = workload(request, problems);
    (problems.list.len() == before).then_some(CometBft {
        program,
        validators: count,
        settings,
        ready_within,
        attach,
        method,
        spreads,
        observe: usize::try_from(observe).expect("few nodes"),
        in_flight_max,
        transaction_bytes,
        loadtime,
        run_mark: request.run_mark,
    })
}

/// The size of a transaction, and for the published load tool's payload what stands in all of them.
fn workload(request: &Request<'_>, problems: &mut Problems) -> (usize, Option<Loadtime>) {
    let mut workload = Section::open(request.workload, "workload", problems);
    let is_loadtime =
        workload.one_of("kind", &["kvstore", "loadtime"], problems) == Some("loadtime");
    let bytes = workload.size("size", problems).unwrap_or(TRANSACTION_BYTES);
    let size = usize::try_from(bytes).unwrap_or(usize::MAX);
    let stamp = workload.one_of("stamp", Stamp::WORDS, problems);
    if !is_loadtime && stamp.is_some() {
        let message = "`workload.stamp` says which time a payload carries, and only those of `kind = \"loadtime\"` carry one";
        workload.reject("stamp", message, None, problems);
    }
    let payload = Loadtime::new(request.load, size, request.run_mark, Stamp::of_word(stamp));
    let bytes_min = if is_loadtime { payload.bytes_min() } else { BYTES_MIN };
    let bytes_max = usize::try_from(TRANSACTION_BYTES_MAX).expect("a small number");
    if !(bytes_min..=bytes_max).contains(&size) {
        let message = format!(
            "`workload.size` must lie between {bytes_min}B, what says whose it is, and {bytes_max}B, what a node's RPC takes, but is {bytes}B"
        );
        workload.reject("size", message, None, problems);
    }
    workload.finish(problems);
    (size.clamp(bytes_min, bytes_max), is_loadtime.then_some(payload))
}

/// `["127.0.0.1:26657", …]`: where clients reach the nodes.
fn attach(deploy: &mut Section<'_>, problems: &mut Problems) -> Vec<SocketAddr> {
    let Some(texts) = deploy.strings("attach", problems) else { return Vec::new() };
    let mut nodes = Vec::new();
    for text in &texts {
        match text.parse() {
            Ok(address) => nodes.push(address),
            Err(_) => {
                let message = format!("`{text}` is not an address such as 127.0.0.1:26657");
                deploy.reject("attach", message, None, problems);
            }
        }
    }
    if texts.is_empty() {
        deploy.reject("attach", "`attach` names no node", None, problems);
    }
    nodes
}

/// A node answers `broadcast_tx_commit` requests of one connection one after another, a block each: more than
/// one outstanding would wait in the socket and look like the system's slowness.
fn in_flight_max(deploy: &mut Section<'_>, method: Method, problems: &mut Problems) -> u32 {
    let written = deploy.integer("in_flight_max", 1, 1 << 20, problems);
    let default = if method == Method::Commit { 1 } else { IN_FLIGHT_MAX };
    u32::try_from(written.unwrap_or(default)).expect("bounded above")
}

/// `[system.deploy.config]`: keys of the nodes' own config.toml, in its tables.
fn settings(deploy: &mut Section<'_>, problems: &mut Problems) -> Vec<Setting> {
    let mut list = Vec::new();
    let Some(config) = deploy.section("config", problems) else { return list };
    for (name, _, options) in config.entries() {
        let Value::Table(table) = &options.value else {
            put(&mut list, "", name, options, problems);
            continue;
        };
        for (key, (_, options)) in table {
            put(&mut list, name, key, options, problems);
        }
    }
    list
}

fn put(
    list: &mut Vec<Setting>,
    table: &str,
    key: &str,
    options: &Options,
    problems: &mut Problems,
) {
    match Setting::of_value(table, key, &options.value) {
        Some(setting) => list.push(setting),
        None => {
            let path = Setting::raw(table, key, "").path();
            let message = format!(
                "`system.deploy.config.{path}` must be text, a whole number, or true or false, but is {}",
                options.type_word()
            );
            problems.add(options.span, message, None);
        }
    }
}
