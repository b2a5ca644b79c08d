//! The files of a testnet: made by the program's own `testnet` command, then changed where the manifest, the
//! experiment or the host wants it. A home a node, the same genesis in each, and the manifest of it all.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::Clock;
use model::quantity::parse_duration;
use serde_json::{Value, json};
use sut::SutError;

use super::Wish;
use super::addresses::{METRICS_PORT, P2P_PORT, Places, RPC_PORT};
use crate::config_file::{Setting, changed, value_of};
use crate::manifest::{Manifest, Mode, NodePlan};
use crate::program::Program;

/// Where the program puts what it makes, before each home gets its node's name.
const MADE: &str = ".made";

/// What `time_scale` multiplies: every timeout of `[consensus]`, and by how much each grows with a round.
const TIMEOUTS: [&str; 7] = [
    "timeout_propose",
    "timeout_propose_delta",
    "timeout_prevote",
    "timeout_prevote_delta",
    "timeout_precommit",
    "timeout_precommit_delta",
    "timeout_commit",
];

/// What was made.
pub(super) struct Files {
    /// In the manifest's order.
    pub(super) homes: Vec<PathBuf>,
    /// The namespace of the nodes' metrics.
    pub(super) namespace: String,
    /// `timeout_commit = 10000ms, …`; empty unless they are stretched.
    pub(super) stretched: String,
}

/// Makes them in `folder`, for nodes at these places.
pub(super) fn generate(
    wish: &Wish,
    program: &Program,
    places: &Places,
    folder: &Path,
    clock: Clock,
) -> Result<Files, SutError> {
    let manifest = &wish.manifest;
    let made = folder.join(MADE);
    tried("making", &made, std::fs::create_dir_all(&made))?;
    let validators = manifest.count(Mode::Validator).to_string();
    let others = (manifest.nodes.len() - manifest.count(Mode::Validator)).to_string();
    let into = made.to_string_lossy();
    program.run(&["testnet", "--v", &validators, "--n", &others, "--o", &into], clock)?;
    let ids = ids(&read(&home(&made, 0).join("config/config.toml"))?);
    if ids.len() != manifest.nodes.len() {
        let words = "`cometbft testnet` did not write an id for each node in `persistent_peers`";
        return Err(SutError::Deploy(words.to_owned()));
    }
    let genesis = genesis(&read(&home(&made, 0).join("config/genesis.json"))?, manifest)?;
    let mut files = Files {
        homes: Vec::new(),
        namespace: crate::metrics::NAMESPACE.to_owned(),
        stretched: String::new(),
    };
    for (index, node) in manifest.nodes.iter().enumerate() {
        let own = folder.join(&node.name);
        tried("making", &own, std::fs::rename(home(&made, index), &own))?;
        write(&own.join("config/genesis.json"), &genesis)?;
        let path = own.join("config/config.toml");
        let file = read(&path)?;
        let timeouts = stretched(&file, wish.time_scale)?;
        let peers = |names: &[String]| peers(index, names, manifest, &ids, places);
        let mut settings = settings(wish, node, places.own[index], peers);
        settings.extend(timeouts.iter().cloned());
        settings.extend(manifest.settings.iter().cloned());
        settings.extend(wish.settings.iter().cloned());
        let file = changed(&file, &settings).map_err(|missing| {
            let version = &program.version;
            SutError::Deploy(format!(
                "changing {}: cometbft {version} has no setting `{missing}`; see system.deploy.config",
                path.display()
            ))
        })?;
        write(&path, &file)?;
        if let Some(namespace) = value_of(&file, "instrumentation", "namespace") {
            namespace.clone_into(&mut files.namespace);
        }
        files.stretched = in_force(&file, &timeouts);
        files.homes.push(own);
    }
    tried("removing", &made, std::fs::remove_dir_all(&made))?;
    write(&folder.join("manifest.toml"), &manifest.to_toml())?;
    Ok(files)
}

/// The home that the program made for the `index`-th node.
fn home(made: &Path, index: usize) -> PathBuf {
    made.join(format!("node{index}"))
}

fn read(path: &Path) -> Result<String, SutError> {
    tried("reading", path, std::fs::read_to_string(path))
}

fn write(path: &Path, text: &str) -> Result<(), SutError> {
    tried("writing", path, std::fs::write(path, text))
}

fn tried<T>(what: &str, path: &Path, result: std::io::Result<T>) -> Result<T, SutError> {
    result.map_err(|error| SutError::Deploy(format!("{what} {}: {error}", path.display())))
}

/// The nodes' ids in their order, from the list of all peers (`id@host:port,…`) that the program wrote.
fn ids(config: &str) -> Vec<String> {
    let all = value_of(config, "p2p", "persistent_peers").unwrap_or_default();
    let ids = all.split(',').filter_map(|peer| peer.split_once('@'));
    ids.map(|(id, _)| id.to_owned()).collect()
}

/// Peers of the node at `from` by name, as its file wants them.
fn peers(
    from: usize,
    names: &[String],
    manifest: &Manifest,
    ids: &[String],
    places: &Places,
) -> String {
    let place = |name: &String| manifest.nodes.iter().position(|node| node.name == *name);
    let peers = names.iter().filter_map(place);
    let peers = peers.map(|to| format!("{}@{}", ids[to], places.dialled[&(from, to)]));
    peers.collect::<Vec<_>>().join(",")
}

/// The genesis with what the manifest says of it. The program lists the validators in the order of their homes.
fn genesis(text: &str, manifest: &Manifest) -> Result<String, SutError> {
    let strange = |what: &str| {
        SutError::Deploy(format!("the genesis that `cometbft testnet` wrote has no {what}"))
    };
    let mut genesis: Value = serde_json::from_str(text)
        .map_err(|error| SutError::Deploy(format!("the genesis is no JSON: {error}")))?;
    genesis["initial_height"] = json!(manifest.initial_height.to_string());
    let params = genesis.get_mut("consensus_params").ok_or_else(|| strange("consensus_params"))?;
    params["abci"]["vote_extensions_enable_height"] =
        json!(manifest.vote_extensions_enable_height.to_string());
    if let Some(bytes) = manifest.block_max_bytes {
        params["block"]["max_bytes"] = json!(bytes.to_string());
    }
    let validators = genesis.get_mut("validators").and_then(Value::as_array_mut);
    let validators = validators.ok_or_else(|| strange("validators"))?;
    for (validator, node) in validators.iter_mut().zip(&manifest.nodes) {
        validator["name"] = json!(node.name);
        validator["power"] = json!(node.power.to_string());
    }
    validators.retain(|validator| validator["power"] != "0");
    Ok(format!("{genesis:#}\n"))
}

/// What differs from the program's own defaults.
fn settings(
    wish: &Wish,
    node: &NodePlan,
    own: Ipv4Addr,
    peers: impl Fn(&[String]) -> String,
) -> Vec<Setting> {
    let listen = |port: u16| format!("tcp://{own}:{port}");
    let yes_or_no = |is_on: bool| is_on.to_string();
    let metrics = format!("{own}:{METRICS_PORT}");
    let is_seed = node.mode == Mode::Seed;
    vec![
        Setting::text("", "proxy_app", "kvstore"),
        Setting::text("", "log_level", "error"),
        Setting::text("", "moniker", &node.name),
        Setting::text("rpc", "laddr", &listen(RPC_PORT)),
        Setting::text("p2p", "laddr", &listen(P2P_PORT)),
        Setting::text("p2p", "seeds", &peers(&node.seeds)),
        Setting::text("p2p", "persistent_peers", &peers(&node.persistent_peers)),
        Setting::raw("p2p", "addr_book_strict", "false"),
        Setting::raw("p2p", "allow_duplicate_ip", "true"),
        Setting::raw("p2p", "pex", &yes_or_no(wish.manifest.uses_pex())),
        Setting::raw("p2p", "seed_mode", &yes_or_no(is_seed && wish.manifest.uses_pex())),
        Setting::raw("instrumentation", "prometheus", &yes_or_no(wish.serves_metrics)),
        Setting::text("instrumentation", "prometheus_listen_addr", &metrics),
    ]
}

/// The timeouts, `scale` times as long as the program wrote them; none if it is 1.
fn stretched(file: &str, scale: f64) -> Result<Vec<Setting>, SutError> {
    if (scale - 1.0).abs() < f64::EPSILON {
        return Ok(Vec::new());
    }
    let mut settings = Vec::new();
    for key in TIMEOUTS {
        let own = value_of(file, "consensus", key).and_then(|text| parse_duration(text).ok());
        let own = own.ok_or_else(|| {
            SutError::Deploy(format!("stretching the time: `consensus.{key}` is no duration"))
        })?;
        settings.push(Setting::text("consensus", key, &in_ms(own.mul_f64(scale))));
    }
    Ok(settings)
}

/// As Go reads durations.
fn in_ms(time: Duration) -> String {
    format!("{}ms", time.as_millis().max(1))
}

/// What of the stretched timeouts holds in the end: the experiment has the last word.
fn in_force(file: &str, timeouts: &[Setting]) -> String {
    let lines = timeouts.iter().filter_map(|timeout| {
        let value = value_of(file, "consensus", &timeout.key)?;
        Some(format!("{} = {value}", timeout.key))
    });
    lines.collect::<Vec<_>>().join(", ")
}
