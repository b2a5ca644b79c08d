//! The part of `[system.deploy]` that says what is started: how many nodes of which role or which manifest, and
//! how they are set. Nothing is started here.

use std::path::Path;
use std::time::Duration;

use model::options::{Options, Problems, Section, Value};
use sut::Request;

use crate::config_file::Setting;
use crate::manifest::{self, Manifest};
use crate::testnet::{NODES_MAX, Wish};

/// How long a network may take to begin: 16 nodes need a few seconds, 64 a minute.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Blocks that a node may be behind and still count as caught up.
const CAUGHT_UP_WITHIN: u64 = 5;

/// Keys that say what is started, and so stand against `attach`.
const OF_A_START: [&str; 13] = [
    "program",
    "validators",
    "full_nodes",
    "seeds",
    "peers",
    "manifest",
    "metrics",
    "time_scale",
    "gogc",
    "caught_up_within",
    "wipe_validators",
    "config",
    "ready_within",
];

/// Keys that say how many there are or know each other, and so stand against `manifest`.
const OF_COUNTS: [&str; 4] = ["validators", "full_nodes", "seeds", "peers"];

/// Reads what is to be started.
pub(super) fn wish(
    deploy: &mut Section<'_>,
    request: &Request<'_>,
    problems: &mut Problems,
) -> Option<Wish> {
    let program = deploy.string("program", problems).map(|path| request.folder.join(path));
    let counted = counted(deploy, problems);
    let manifest_file = deploy.string("manifest", problems);
    let manifest = match manifest_file {
        Some(file) => from_file(file, request.folder, deploy, problems),
        None => counted,
    };
    let time_scale = deploy.number("time_scale", 0.01, 1000.0, problems).unwrap_or(1.0);
    let gogc = deploy.integer("gogc", 1, 10_000, problems);
    let metrics = deploy.boolean("metrics", problems);
    let caught_up_within = deploy.integer("caught_up_within", 0, 1_000_000, problems);
    let wipes_validators = deploy.boolean("wipe_validators", problems).unwrap_or(false);
    let ready_within = deploy.duration("ready_within", problems).unwrap_or(READY_WITHIN);
    let settings = settings(deploy, problems);
    let manifest = manifest?;
    Some(Wish {
        program,
        serves_metrics: metrics.or(manifest.prometheus).unwrap_or(true),
        manifest,
        manifest_file: manifest_file.unwrap_or_default().to_owned(),
        settings,
        time_scale,
        gogc,
        ready_within,
        caught_up_within: caught_up_within.unwrap_or(CAUGHT_UP_WITHIN),
        wipes_validators,
        run_mark: request.run_mark,
    })
}

/// Names what stands beside `attach` and cannot.
pub(super) fn refuse_beside_attach(deploy: &mut Section<'_>, problems: &mut Problems) {
    for key in OF_A_START {
        if deploy.raw(key).is_some() {
            let message = format!("`{key}` says what is started, and `attach` that nothing is");
            deploy.reject(key, message, Some("remove one of the two".to_owned()), problems);
        }
    }
}

/// `validators`, `full_nodes`, `seeds` and `peers`.
fn counted(deploy: &mut Section<'_>, problems: &mut Problems) -> Option<Manifest> {
    let validators = deploy.integer("validators", 1, NODES_MAX, problems).unwrap_or(4);
    let full_nodes = deploy.integer("full_nodes", 0, NODES_MAX, problems).unwrap_or(0);
    let seeds = deploy.integer("seeds", 0, NODES_MAX, problems).unwrap_or(0);
    let peers = deploy.integer("peers", 1, NODES_MAX - 1, problems);
    let sum = validators + full_nodes + seeds;
    if sum > NODES_MAX {
        let message = format!(
            "`validators`, `full_nodes` and `seeds` are {sum} nodes together; at most {NODES_MAX} can be started"
        );
        deploy.reject("validators", message, None, problems);
        return None;
    }
    if let Some(message) = peers.and_then(|peers| impossible(peers, sum, seeds)) {
        deploy.reject("peers", message, None, problems);
        return None;
    }
    let count = |number| usize::try_from(number).expect("bounded above");
    let peers = peers.map(count);
    Some(Manifest::of_counts(count(validators), count(full_nodes), count(seeds), peers))
}

/// Why no node can be told of so many others.
fn impossible(peers: u64, nodes: u64, seeds: u64) -> Option<String> {
    if seeds > 0 {
        let message = "`peers` says of how many others each node is told, and `seeds` that nodes find each other; remove one of the two";
        return Some(message.to_owned());
    }
    let message = format!(
        "each node is to know {peers} others (`peers`), but in a network of {nodes} there are {}",
        nodes - 1
    );
    (peers >= nodes).then_some(message)
}

/// A manifest in the published form; its mistakes stand at the key that names it.
fn from_file(
    file: &str,
    folder: &Path,
    deploy: &mut Section<'_>,
    problems: &mut Problems,
) -> Option<Manifest> {
    for key in OF_COUNTS {
        if deploy.raw(key).is_some() {
            let message =
                format!("`{key}` says what nodes there are or know, and so does the manifest");
            deploy.reject(key, message, Some("remove one of the two".to_owned()), problems);
        }
    }
    let path = folder.join(file);
    let nodes_max = usize::try_from(NODES_MAX).expect("a small number");
    let read = text(&path).map_err(|error| vec![error]);
    match read.and_then(|text| manifest::read(&text, nodes_max)) {
        Ok(manifest) => Some(manifest),
        Err(mistakes) => {
            for mistake in mistakes {
                let message = format!("the manifest {}: {mistake}", path.display());
                deploy.reject("manifest", message, None, problems);
            }
            None
        }
    }
}

fn text(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > manifest::BYTES_MAX {
        return Err(format!("it has {size} bytes; at most {} are read", manifest::BYTES_MAX));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
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
