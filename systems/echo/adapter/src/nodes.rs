//! The nodes of a trial: what they are called, how they are started, where each listens and keeps its files.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::plan::CLIENT;
use sut::{Deployment, Scrape, SutError, Testbed};

use crate::metrics;
use crate::options::{Echo, Protocol};

/// The name of the only node in the testbed, for faults by name; several are this with their number.
const NODE: &str = "echo";

/// The events' name in the node's folder.
pub(crate) const EVENTS_FILE: &str = "echo.events";

/// The ledger's name in the node's folder.
pub(crate) const LEDGER_FILE: &str = "echo.ledger";

/// The name of the address where it says its own metrics, in its ready line.
const METRICS: &str = "metrics";

/// How long a node may take to start: it binds a few ports.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(10);

/// A node that is up.
#[derive(Debug)]
pub(crate) struct Place {
    /// Its name in the testbed; of one that was attached to, what to call it.
    pub(crate) name: String,
    /// Where it keeps its files, if it was started here.
    pub(crate) folder: Option<PathBuf>,
    /// Whether it is the first.
    is_first: bool,
}

impl Place {
    /// Where it speaks `protocol`.
    pub(crate) fn address(&self, of: &Deployment, protocol: Protocol) -> Option<SocketAddr> {
        of.endpoint(&self.endpoint(protocol.endpoint()))
    }

    /// The name of its address `name` in the deployment: of the first node as in its ready line, of the others with the
    /// node behind it.
    fn endpoint(&self, name: &str) -> String {
        if self.is_first { name.to_owned() } else { format!("{name}@{}", self.name) }
    }
}

/// All of them, in the order of their numbers: what the adapter remembers of a deployment.
#[derive(Debug)]
pub(crate) struct Places(pub(crate) Vec<Place>);

impl Places {
    /// A node that runs already.
    pub(crate) fn attached() -> Self {
        Self(vec![Place { name: NODE.to_owned(), folder: None, is_first: true }])
    }
}

/// What the nodes of a trial are called.
fn names(count: u32) -> Vec<String> {
    match count {
        1 => vec![NODE.to_owned()],
        _ => (0..count).map(|number| format!("{NODE}{number}")).collect(),
    }
}

/// Starts all nodes, and says where they are and what is to be asked of them.
pub(crate) fn start_all(echo: &Echo, bed: &mut Testbed) -> Result<Deployment, SutError> {
    let mut deployment = Deployment::new(bed.clock());
    let mut places = Vec::new();
    for name in names(echo.nodes) {
        let (folder, endpoints, scrape) = start(echo, &name, bed)?;
        let place = Place { name, folder: Some(folder), is_first: places.is_empty() };
        let named = endpoints.into_iter().map(|(name, address)| (place.endpoint(&name), address));
        deployment.endpoints.extend(named);
        deployment.scrape.extend(scrape);
        places.push(place);
    }
    deployment.folder = places[0].folder.clone();
    deployment.state = Some(Arc::new(Places(places)));
    deployment.nodes = bed.nodes();
    Ok(deployment)
}

/// Where a node keeps its files, its addresses by the names of its ready line, and what is to be asked of it.
type Started = (PathBuf, Vec<(String, SocketAddr)>, Option<Scrape>);

fn start(echo: &Echo, name: &str, bed: &mut Testbed) -> Result<Started, SutError> {
    // On a disk of its own, where the plan gives it one.
    let folder = bed.node_folder(name)?;
    let mut arguments = vec!["--parent-pipe".to_owned()];
    arguments.push(format!("--ledger={}", folder.join(LEDGER_FILE).display()));
    // On the plan's links the node has an address of its own; else it is one of the host's loopback.
    let on_links = bed.network_address(name)?;
    let address = on_links.unwrap_or(Ipv4Addr::LOCALHOST);
    arguments.push(format!("--listen={address}:0"));
    if echo.protocol == Protocol::Http {
        arguments.push(format!("--http={address}:0"));
    }
    if echo.says_metrics {
        arguments.push(format!("--metrics={address}:0"));
    }
    if echo.confess {
        // For tests: not on the disk, whose power may be cut.
        let confession = bed.folder().join(format!("{name}.confession"));
        arguments.push(format!("--confess={}", confession.display()));
    }
    if echo.stamps {
        arguments.push(format!("--events={}", folder.join(EVENTS_FILE).display()));
    }
    arguments.extend(echo.arguments.iter().cloned());
    match echo.program {
        Some(program) => bed.spawn_program(name, program, arguments)?,
        None => {
            let serve = ["serve", "echo"].map(str::to_owned);
            bed.spawn_self(name, serve.into_iter().chain(arguments))?
        }
    };
    let ready = bed.ready_line(name, READY_WITHIN)?;
    let mut endpoints = endpoints(&ready)?;
    bed.at_restart(name, |arguments| start_again(arguments, &endpoints))?;
    let said = endpoints.iter().find(|(known, _)| known == METRICS);
    let scrape = said.map(|(_, address)| metrics::scrape(name, *address));
    for (_, address) in &mut endpoints {
        // Where the links are forwarders, the instrument dials one.
        *address = bed.forward(CLIENT, name, *address)?.unwrap_or(*address);
    }
    Ok((folder, endpoints, scrape))
}

/// A node that is started again listens where it did, and its files go on.
fn start_again(arguments: &mut Vec<String>, endpoints: &[(String, SocketAddr)]) {
    for (option, name) in [("--listen=", "frames"), ("--http=", "http"), ("--metrics=", METRICS)] {
        let address = endpoints.iter().find(|(known, _)| known == name);
        let argument = arguments.iter_mut().find(|argument| argument.starts_with(option));
        if let (Some((_, address)), Some(argument)) = (address, argument) {
            *argument = format!("{option}{address}");
        }
    }
    arguments.push("--again".to_owned());
}

/// The addresses in the ready line.
fn endpoints(ready: &BTreeMap<String, String>) -> Result<Vec<(String, SocketAddr)>, SutError> {
    let mut found = Vec::new();
    for (name, value) in ready {
        let address = value.parse().map_err(|_| {
            SutError::Deploy(format!("the node says `{name}={value}`, which is no address"))
        })?;
        found.push((name.clone(), address));
    }
    Ok(found)
}
