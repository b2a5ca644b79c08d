//! The replicas of a trial: what they are called, how they are started, where each listens and keeps its files.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use model::plan::CLIENT;
use sut::{Deployment, Scrape, SutError, Testbed};

use crate::control::Control;
use crate::metrics;
use crate::system::Kv;

/// The name of the only replica in the testbed, for faults by name; several are this with their number.
const NODE: &str = "kv";

/// The ledger's name in the replica's folder.
const LEDGER_FILE: &str = "kv.ledger";

/// The names of its addresses in its ready line.
const CLIENTS: &str = "clients";
const METRICS: &str = "metrics";

/// How long a replica may take to start.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(10);

/// A replica that is up.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its name in the testbed; of one that was attached to, what to call it.
    pub(crate) name: String,
    /// Where clients connect.
    pub(crate) address: SocketAddr,
}

/// What the adapter remembers of a deployment.
#[derive(Debug)]
pub(crate) struct Places {
    /// The replicas in the order of their numbers.
    pub(crate) replicas: Vec<Place>,
    /// The position that was learned before anything was sent.
    pub(crate) since: u64,
}

/// A deployment of these replicas, which are asked how far they are.
pub(crate) fn deployment(bed: &Testbed, replicas: Vec<Place>) -> Result<Deployment, SutError> {
    let mut since = 0;
    for Place { name, address } in &replicas {
        let state = Control::open(*address).and_then(|mut control| control.state());
        let state = state.map_err(|error| {
            SutError::Deploy(format!("asking `{name}` at {address} how it stands: {error}"))
        })?;
        since = since.max(state.position);
    }
    let endpoints = replicas.iter().map(|place| (place.name.clone(), place.address)).collect();
    let state = Some(Arc::new(Places { replicas, since }) as _);
    Ok(Deployment { endpoints, state, ..Deployment::new(bed.clock()) })
}

/// A replica that runs already.
pub(crate) fn attached(address: SocketAddr) -> Vec<Place> {
    vec![Place { name: NODE.to_owned(), address }]
}

/// Starts all replicas, and says where they are and what is to be asked of them.
pub(crate) fn start_all(kv: &Kv, bed: &mut Testbed) -> Result<Deployment, SutError> {
    let folder = bed.node_folder(NODE)?;
    let (place, scrape) = start(kv, NODE, bed)?;
    let started = deployment(bed, vec![place])?;
    Ok(Deployment { scrape: vec![scrape], folder: Some(folder), nodes: bed.nodes(), ..started })
}

fn start(kv: &Kv, name: &str, bed: &mut Testbed) -> Result<(Place, Scrape), SutError> {
    // On a disk of its own, where the plan gives it one.
    let folder = bed.node_folder(name)?;
    // On the plan's links the node has an address of its own; else it is one of the host's loopback.
    let host = bed.network_address(name)?.unwrap_or(Ipv4Addr::LOCALHOST);
    let serve = ["serve", "kv", "--parent-pipe"].map(str::to_owned);
    let own = [
        format!("--listen={host}:0"),
        format!("--metrics={host}:0"),
        format!("--ledger={}", folder.join(LEDGER_FILE).display()),
    ];
    bed.spawn_self(name, serve.into_iter().chain(own).chain(kv.arguments.iter().cloned()))?;
    let ready = bed.ready_line(name, READY_WITHIN)?;
    let clients = address(&ready, CLIENTS)?;
    let metrics = address(&ready, METRICS)?;
    bed.at_restart(name, |arguments| start_again(arguments, clients, metrics))?;
    let scrape = metrics::scrape(name, metrics);
    // Where the links are forwarders, the instrument dials one.
    let dialled = bed.forward(CLIENT, name, clients)?.unwrap_or(clients);
    Ok((Place { name: name.to_owned(), address: dialled }, scrape))
}

/// A replica that is started again listens where it did.
fn start_again(arguments: &mut [String], clients: SocketAddr, metrics: SocketAddr) {
    for (option, address) in [("--listen=", clients), ("--metrics=", metrics)] {
        if let Some(argument) = arguments.iter_mut().find(|it| it.starts_with(option)) {
            *argument = format!("{option}{address}");
        }
    }
}

fn address(ready: &BTreeMap<String, String>, name: &str) -> Result<SocketAddr, SutError> {
    let address = ready.get(name).and_then(|address| address.parse().ok());
    address.ok_or_else(|| {
        SutError::Deploy(format!("the replica does not say its address `{name}`: {ready:?}"))
    })
}
