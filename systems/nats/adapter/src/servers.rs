//! The servers of a trial: what they are called, how each is configured and started, where it listens and keeps its files.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use model::plan::CLIENT;
use sut::{SutError, Testbed};
use testbed::{NodeSpec, own_loopback};

use crate::control::Control;

/// How long a cluster may take until it has a leader and its stream can be read, at its start and after faults.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);

/// The name of the only server in the testbed, for faults by name; several are this with their number.
const NODE: &str = "nats";

/// The program, as the list of those that can be installed calls it; another version has its number after it.
const PROGRAM: &str = "nats-server";

/// Ports of a server that has an address of its own: for clients, and for other servers.
const CLIENTS_PORT: u16 = 4222;
const SERVERS_PORT: u16 = 6222;

/// Servers as an experiment wants them.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    pub(crate) count: u8,
    /// The trial's mark, of which the addresses are made.
    pub(crate) run_mark: u64,
    pub(crate) program: Option<PathBuf>,
    /// A version that is pinned beside the newest.
    pub(crate) version: Option<String>,
    /// Of JetStream's files, as the configuration takes it; `None`: the server's default.
    pub(crate) sync_interval: Option<String>,
}

/// A server that is up.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Where clients connect.
    pub(crate) address: SocketAddr,
}

/// Where a server is to listen.
struct Plan {
    name: String,
    clients: SocketAddr,
    servers: SocketAddr,
}

impl Servers {
    fn find(&self) -> Result<PathBuf, SutError> {
        let name = match &self.version {
            Some(version) => format!("{PROGRAM}-{version}"),
            None => PROGRAM.to_owned(),
        };
        sut::program(self.program.as_deref(), &name)
    }

    /// Starts all of them and waits until each takes clients.
    pub(crate) fn start(&self, bed: &mut Testbed) -> Result<(Vec<Place>, PathBuf), SutError> {
        let program = self.find()?;
        let names: Vec<String> = match self.count {
            1 => vec![NODE.to_owned()],
            count => (0..count).map(|number| format!("{NODE}{number}")).collect(),
        };
        let mut plans = Vec::new();
        for (number, name) in names.into_iter().enumerate() {
            let address = |host: Ipv4Addr, port| SocketAddr::new(IpAddr::V4(host), port);
            let (clients, servers) = match bed.network_address(&name)? {
                Some(own) => (address(own, CLIENTS_PORT), address(own, SERVERS_PORT)),
                None => {
                    let own = own_loopback(self.run_mark, number);
                    (address(own, CLIENTS_PORT), address(own, SERVERS_PORT))
                }
            };
            plans.push(Plan { name, clients, servers });
        }
        let mut places = Vec::new();
        for number in 0..plans.len() {
            let Plan { name, clients, .. } = &plans[number];
            let configuration = self.configuration(number, &plans, bed)?;
            // Beside the disk, whose power may be cut: it is the trial's, not the server's.
            let path = bed.folder().join(format!("{name}.conf"));
            std::fs::write(&path, configuration).map_err(|error| {
                SutError::Deploy(format!("writing {}: {error}", path.display()))
            })?;
            let path = path.display().to_string();
            let node = NodeSpec::new(name, &program).args(["--config", path.as_str()]);
            bed.spawn(node.in_own_namespace())?;
            let dialled = bed.forward(CLIENT, name, *clients)?.unwrap_or(*clients);
            places.push(Place { address: dialled });
        }
        let clock = bed.clock();
        for (plan, place) in plans.iter().zip(&places) {
            let is_up = || Control::open(place.address, clock).is_ok();
            bed.wait_ready(&plan.name, is_up, READY_WITHIN)?;
        }
        let folder = bed.node_folder(&plans[0].name)?;
        Ok((places, folder))
    }

    fn configuration(
        &self,
        number: usize,
        plans: &[Plan],
        bed: &mut Testbed,
    ) -> Result<String, SutError> {
        let Plan { name, clients, servers } = &plans[number];
        // On a disk of its own, where the plan gives it one.
        let folder = bed.node_folder(name)?;
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        line(format!("server_name: \"{name}\""));
        line(format!("listen: \"{clients}\""));
        line("jetstream {".to_owned());
        line(format!("  store_dir: \"{}\"", folder.display()));
        // Of the host's own disk it would take what is free, which says nothing of this trial.
        line("  max_memory_store: 256MB".to_owned());
        line("  max_file_store: 4GB".to_owned());
        if let Some(interval) = &self.sync_interval {
            line(format!("  sync_interval: {interval}"));
        }
        line("}".to_owned());
        if plans.len() > 1 {
            let mut routes = String::new();
            for (_, plan) in plans.iter().enumerate().filter(|(other, _)| *other != number) {
                // Where the links are forwarders, a server dials one.
                let dialled = bed.forward(name, &plan.name, plan.servers)?;
                let comma = if routes.is_empty() { "" } else { "," };
                let _ =
                    write!(routes, "{comma} \"nats-route://{}\"", dialled.unwrap_or(plan.servers));
            }
            line("cluster {".to_owned());
            line("  name: assay".to_owned());
            line(format!("  listen: \"{servers}\""));
            line("  no_advertise: true".to_owned());
            line(format!("  routes: [{routes} ]"));
            line("}".to_owned());
        }
        Ok(text)
    }
}
