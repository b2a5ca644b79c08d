//! A testnet on this host: addresses, files, and a node for each home, seeds first. It waits until the network
//! makes blocks and every node follows; what it waits for in vain is said with the node's own last words.

mod addresses;
mod files;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clock::Instant;
use sut::{Scrape, SutError, Testbed};
use testbed::{NodeSpec, TestbedError};

use crate::care::{Care, Tended};
use crate::config_file::Setting;
use crate::manifest::{Manifest, Mode};
use crate::metrics::scrape;
use crate::program::Program;
use crate::rpc::Rpc;
#[cfg(test)]
pub(crate) use addresses::free_subnet;
use addresses::{METRICS_PORT, RPC_PORT};

/// The most nodes: the published testnet's, what one machine has carried, and fewer than a /24 has addresses.
pub(crate) const NODES_MAX: u64 = 200;

/// How often a starting node is asked.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// What is to be started.
pub(crate) struct Wish {
    /// The program that the experiment names; absent: the installed one.
    pub(crate) program: Option<PathBuf>,
    pub(crate) manifest: Manifest,
    /// Where the manifest was read; empty: it is of the experiment's numbers.
    pub(crate) manifest_file: String,
    /// Settings of the nodes' own file; they have the last word.
    pub(crate) settings: Vec<Setting>,
    /// What consensus timeouts are multiplied by.
    pub(crate) time_scale: f64,
    /// The percentage of garbage to live memory at which Go collects; absent: Go's own, 100.
    pub(crate) gogc: Option<u64>,
    pub(crate) serves_metrics: bool,
    pub(crate) ready_within: Duration,
    pub(crate) caught_up_within: u64,
    pub(crate) wipes_validators: bool,
    pub(crate) run_mark: u64,
}

impl Wish {
    /// At this height a node follows the others: it has seen a second block. Where blocks are made of transactions
    /// only, there is but the first until the load comes.
    fn height_begun(&self) -> u64 {
        let waits_for_load = |setting: &Setting| {
            setting.path() == "consensus.create_empty_blocks" && setting.value == "false"
        };
        let waits = self.settings.iter().any(waits_for_load);
        self.manifest.initial_height + u64::from(!waits)
    }

    /// What differs from a network in the field, and what a manifest asked for in vain, in words.
    pub(crate) fn fidelity(&self) -> Vec<String> {
        let scale = self.time_scale;
        let is_scaled = (scale - 1.0).abs() > f64::EPSILON;
        let stretched = is_scaled.then(|| {
            format!("time_scale = {scale}: consensus timeouts are {scale} times as long as the program's own")
        });
        let notes = self.manifest.notes.iter();
        let notes = notes.map(|note| format!("manifest {}: {note}", self.manifest_file));
        stretched.into_iter().chain(notes).collect()
    }
}

/// A testnet that makes blocks.
pub(crate) struct Started {
    /// What clients dial to reach those that follow the chain, in the manifest's order.
    pub(crate) clients: Vec<SocketAddr>,
    pub(crate) scrape: Vec<Scrape>,
    pub(crate) care: Care,
    pub(crate) facts: BTreeMap<String, String>,
}

/// Makes the files, starts the nodes, and waits until all that follow the chain do.
pub(crate) fn start(wish: &Wish, bed: &mut Testbed) -> Result<Started, SutError> {
    let program = Program::find(wish.program.as_deref(), bed.clock())?;
    let places = addresses::choose(&wish.manifest, wish.run_mark, bed)?;
    let folder = bed.folder().join("testnet");
    let files = files::generate(wish, &program, &places, &folder, bed.clock())?;
    let nodes = wish.manifest.nodes.iter().zip(&files.homes).zip(&places.own);
    let nodes: Vec<Tended> = nodes
        .map(|((node, home), own)| Tended {
            name: node.name.clone(),
            mode: node.mode,
            home: home.clone(),
            clients: SocketAddr::new(IpAddr::V4(*own), RPC_PORT),
        })
        .collect();
    start_in_order(wish, &program, &nodes, bed)?;
    let metrics = |node: &Tended| {
        let address = SocketAddr::new(node.clients.ip(), METRICS_PORT);
        scrape(&node.name, address, &files.namespace)
    };
    let served = if wish.serves_metrics { nodes.as_slice() } else { &[] };
    let followers = nodes.iter().zip(places.clients);
    let followers = followers.filter(|(node, _)| node.mode != Mode::Seed);
    Ok(Started {
        scrape: served.iter().map(metrics).collect(),
        care: Care {
            clock: bed.clock(),
            nodes: nodes.clone(),
            caught_up_within: wish.caught_up_within,
            wipes_validators: wish.wipes_validators,
        },
        facts: facts(wish, program.version, files.stretched),
        clients: followers.map(|(_, clients)| clients).collect(),
    })
}

fn facts(wish: &Wish, version: String, stretched: String) -> BTreeMap<String, String> {
    let manifest = &wish.manifest;
    let settings = wish.settings.iter().map(|s| format!("{} = {}", s.path(), s.value));
    let known = if manifest.uses_pex() { "from seeds" } else { "persistent peers" };
    let facts = [
        ("program", version),
        ("settings", settings.collect::<Vec<_>>().join(", ")),
        ("manifest", wish.manifest_file.clone()),
        ("validators", manifest.count(Mode::Validator).to_string()),
        ("full_nodes", manifest.count(Mode::Full).to_string()),
        ("seeds", manifest.count(Mode::Seed).to_string()),
        ("zones", manifest.zones()),
        ("peers", known.to_owned()),
        ("timeouts", stretched),
        ("gogc", wish.gogc.map(|percent| percent.to_string()).unwrap_or_default()),
    ];
    let said = facts.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(name, value)| (format!("cometbft.{name}"), value)).collect()
}

/// Seeds first, so that whoever asks one finds it; then the others; then those that are to come later.
fn start_in_order(
    wish: &Wish,
    program: &Program,
    nodes: &[Tended],
    bed: &mut Testbed,
) -> Result<(), SutError> {
    let deadline = bed.clock().now().plus(wish.ready_within);
    let plans = &wish.manifest.nodes;
    let together: Vec<usize> = (0..nodes.len()).filter(|n| plans[*n].start_at == 0).collect();
    let (seeds, others): (Vec<usize>, Vec<usize>) =
        together.into_iter().partition(|n| nodes[*n].mode == Mode::Seed);
    let begun = wish.height_begun();
    for group in [seeds, others] {
        for n in &group {
            spawn(wish, program, &nodes[*n], bed)?;
        }
        for n in &group {
            wait(&nodes[*n], begun, deadline, wish, bed)?;
        }
    }
    let mut later: Vec<usize> = (0..nodes.len()).filter(|n| plans[*n].start_at > 0).collect();
    later.sort_by_key(|n| plans[*n].start_at);
    let votes_from_the_start = |n: &usize| plans[*n].power > 0 && plans[*n].start_at == 0;
    let first = (0..nodes.len()).find(votes_from_the_start).expect("the manifest's reader looks");
    for n in &later {
        wait(&nodes[first], plans[*n].start_at, deadline, wish, bed)?;
        spawn(wish, program, &nodes[*n], bed)?;
        wait(&nodes[*n], plans[*n].start_at, deadline, wish, bed)?;
    }
    Ok(())
}

fn spawn(wish: &Wish, program: &Program, node: &Tended, bed: &mut Testbed) -> Result<(), SutError> {
    let mut spec = NodeSpec::new(&node.name, &program.path)
        .args(["start", "--home"])
        .args([node.home.to_string_lossy()]);
    if let Some(percent) = wish.gogc {
        spec = spec.env("GOGC", percent.to_string());
    }
    bed.spawn(spec)?;
    Ok(())
}

/// Waits until a node has a block of this height; a seed, which follows no chain, until it answers. Ends at once
/// when any node has ended.
fn wait(
    node: &Tended,
    height: u64,
    deadline: Instant,
    wish: &Wish,
    bed: &mut Testbed,
) -> Result<(), SutError> {
    let clock = bed.clock();
    let control = bed.control();
    let mut rpc = Rpc::new(node.clients, clock);
    let mut asked = clock.now();
    let mut fallen = None;
    let is_there = || {
        if clock.now() < asked {
            return false;
        }
        asked = clock.now().plus(ASK_EVERY);
        fallen = control.ends().into_iter().next();
        let is_high = |status: crate::rpc::Status| {
            node.mode == Mode::Seed || status.height().is_ok_and(|at| at >= height)
        };
        // Not there yet is what is being waited for.
        fallen.is_some() || rpc.status().is_ok_and(is_high)
    };
    let left = deadline.saturating_since(clock.now());
    let result = bed.wait_ready(&node.name, is_there, left);
    let result = match fallen {
        Some(end) => bed.wait_ready(&end.name, || false, Duration::ZERO),
        None => result,
    };
    result.map_err(|error| match error {
        TestbedError::NotReady { node, log, .. } => SutError::Deploy(format!(
            "node `{node}` was not at height {height} {} after a network of {} nodes began to be started: {}; raise system.deploy.ready_within, or look at the nodes' logs in {}; {}",
            model::quantity::show_duration(wish.ready_within),
            wish.manifest.nodes.len(),
            state(&mut rpc),
            bed.folder().display(),
            if log.is_empty() { "it wrote nothing".to_owned() } else { format!("its last lines:\n{log}") },
        )),
        error => error.into(),
    })
}

/// How far a node has come, in words.
fn state(rpc: &mut Rpc) -> String {
    let height = rpc.height();
    match (height, rpc.peers()) {
        (Ok(height), Ok(peers)) => {
            format!("it answers, is at height {height} and has {peers} peers")
        }
        (Err(error), _) | (_, Err(error)) => error,
    }
}
