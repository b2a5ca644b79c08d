//! `[system.deploy]` and `[workload]` of a CometBFT network: every key typed, every mistake reported with its
//! place. Nothing is started here.

mod network;

use std::sync::Arc;

use model::options::{Options, Problems, Section, Value};
use sut::{Request, System};

use crate::answer::Method;
use crate::loadtime::{Loadtime, Stamp};
use crate::system::CometBft;
use crate::transaction::BYTES_MIN;

/// The longest transaction: a request may have 1,000,000 bytes (`rpc.max_body_bytes`), and base64 takes 4 for 3.
const TRANSACTION_BYTES_MAX: u64 = 740_000;

/// What the published reports submit.
const TRANSACTION_BYTES: u64 = 1024;

/// Outstanding on a connection unless said otherwise: several blocks at the rates that one machine reaches.
const IN_FLIGHT_MAX: u64 = 65_536;

/// Reads both tables.
pub(crate) fn build(request: &Request<'_>, problems: &mut Problems) -> Option<Box<dyn System>> {
    let system = read(request, problems)?;
    Some(Box::new(system))
}

pub(crate) fn read(request: &Request<'_>, problems: &mut Problems) -> Option<CometBft> {
    let before = problems.list.len();
    let mut deploy = Section::open(request.deploy, "system.deploy", problems);
    let attach = deploy.addresses("attach", "127.0.0.1:26657", problems).unwrap_or_default();
    let wish = network::wish(&mut deploy, request, problems);
    let method = Method::of_word(deploy.one_of("method", Method::WORDS, problems));
    let spreads = deploy.one_of("submit_to", &["first", "each"], problems) == Some("each");
    let names: Vec<String> = match &wish {
        Some(wish) if attach.is_empty() => {
            wish.manifest.followers().map(|node| node.name.clone()).collect()
        }
        _ => (0..attach.len()).map(|_| String::new()).collect(),
    };
    let observe = observe(&mut deploy, &names, problems);
    let in_flight_max = in_flight_max(&mut deploy, method, problems);
    let is_attached = deploy.raw("attach").is_some();
    if is_attached {
        network::refuse_beside_attach(&mut deploy, problems);
    }
    deploy.finish(problems);
    let (transaction_bytes, loadtime) = workload(request, problems);
    (problems.list.len() == before).then_some(CometBft {
        start: wish.filter(|_| !is_attached),
        attach,
        method,
        spreads,
        sightings: (observe.len() > 1).then(Arc::default),
        observe,
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

/// A node answers `broadcast_tx_commit` requests of one connection one after another, a block each: more than
/// one outstanding would wait in the socket and look like the system's slowness.
fn in_flight_max(deploy: &mut Section<'_>, method: Method, problems: &mut Problems) -> u32 {
    let written = deploy.integer("in_flight_max", 1, 1 << 20, problems);
    let default = if method == Method::Commit { 1 } else { IN_FLIGHT_MAX };
    u32::try_from(written.unwrap_or(default)).expect("bounded above")
}

/// Which nodes are watched: a place or a name, or a list of them. `names` are those of the nodes that serve
/// clients, empty where nodes have none.
fn observe(deploy: &mut Section<'_>, names: &[String], problems: &mut Problems) -> Vec<usize> {
    let Some(written) = deploy.raw("observe") else { return vec![0] };
    let places = match &written.value {
        Value::Array(list) => list.iter().map(|one| place(one, names)).collect(),
        _ => vec![place(written, names)],
    };
    let mut observe = Vec::new();
    for place in places {
        match place {
            Ok(place) if !observe.contains(&place) => observe.push(place),
            Ok(place) => {
                let message = format!("`system.deploy.observe` has node {place} twice");
                deploy.reject("observe", message, None, problems);
            }
            Err(message) => deploy.reject("observe", message, None, problems),
        }
    }
    if observe.is_empty() && problems.is_empty() {
        let message = "`system.deploy.observe` names no node, and without one no commit is seen";
        deploy.reject("observe", message, None, problems);
    }
    observe
}

fn place(written: &Options, names: &[String]) -> Result<usize, String> {
    let found = match &written.value {
        Value::Integer(number) => {
            usize::try_from(*number).ok().filter(|place| *place < names.len())
        }
        Value::String(name) => names.iter().position(|known| known == name && !name.is_empty()),
        _ => None,
    };
    found.ok_or_else(|| {
        format!(
            "`system.deploy.observe` must be places between 0 and {} or names of nodes that are no seeds, but has {}",
            names.len().saturating_sub(1),
            written.label()
        )
    })
}
