//! The system: starting a server or attaching to one, its connections, its keys as a ledger.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clock::Clock;
use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use model::plan::CLIENT;
use sut::content::Letters;
use sut::{
    Deployment, DurabilityFacts, Endpoint, Kind, Ledger, Link, Role, SutError, System, Testbed,
    Workload,
};
use testbed::{NodeSpec, free_port};

use crate::control::Control;
use crate::durability;
use crate::ledger::Keys;
use crate::options::{AppendFsync, Redis};
use crate::session::SetSession;

/// The name of the only server in the testbed, for faults by name; where there are replicas, each server is this with its
/// number, and the first is the primary.
const NODE: &str = "redis";

/// The program, as the list of those that can be installed calls it.
const PROGRAM: &str = "redis-server";

/// The server's address in the deployment, which is the primary's where there are replicas, and the first replica's.
const SERVER: &str = "server";
const REPLICA: &str = "replica";

/// The server's own port, where it has an address of its own.
const PORT: u16 = 6379;

/// How long the server may take until it serves: it takes 20 ms, and longer with a large file to read.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How often a server that was started again is asked whether it serves.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Redis {
    fn attached(&self, address: SocketAddr, bed: &Testbed) -> Result<Deployment, SutError> {
        let (facts, durability) =
            facts(address, "attached, with settings of its own", bed.clock())?;
        let endpoints = vec![(SERVER.to_owned(), address)];
        Ok(Deployment { endpoints, facts, durability, ..Deployment::new(bed.clock()) })
    }
}

impl System for Redis {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("set")]
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        if let Some(address) = self.attach {
            return self.attached(address, bed);
        }
        let program = sut::program(self.program.as_deref(), PROGRAM)?;
        let names: Vec<String> = match self.replicas {
            0 => vec![NODE.to_owned()],
            count => (0..=count).map(|number| format!("{NODE}{number}")).collect(),
        };
        let mut servers: Vec<SocketAddr> = Vec::new();
        for name in &names {
            let (host, port) = match bed.network_address(name)? {
                Some(own) => (own, PORT),
                None => (Ipv4Addr::LOCALHOST, free_port()?),
            };
            servers.push(SocketAddr::new(IpAddr::V4(host), port));
        }
        let clock = bed.clock();
        for (name, address) in names.iter().zip(&servers) {
            // On a disk of its own, where the plan gives it one.
            let folder = bed.node_folder(name)?;
            let mut arguments = arguments(*address, &folder.display().to_string(), self.sync);
            let is_replica = *address != servers[0];
            if is_replica {
                // Where the links are forwarders, a replica dials one.
                let primary = bed.forward(name, &names[0], servers[0])?.unwrap_or(servers[0]);
                arguments.push("--replicaof".to_owned());
                arguments.push(format!("{} {}", primary.ip(), primary.port()));
            }
            bed.spawn(NodeSpec::new(name, &program).args(arguments))?;
            let is_up = || {
                Control::is_serving(*address, clock) && (!is_replica || follows(*address, clock))
            };
            bed.wait_ready(name, is_up, READY_WITHIN)?;
        }
        let mut settings = format!("appendonly yes, appendfsync {}", self.sync.word());
        if self.replicas > 0 {
            let promoted = if self.promotes { ", of which the first is promoted" } else { "" };
            settings.push_str(&format!(", asynchronous replicas {}{promoted}", self.replicas));
        }
        let (facts, durability) = facts(servers[0], &settings, clock)?;
        let mut endpoints = Vec::new();
        for (what, (name, address)) in [SERVER, REPLICA].iter().zip(names.iter().zip(&servers)) {
            // Where the links are forwarders, the instrument dials one.
            let dialled = bed.forward(CLIENT, name, *address)?.unwrap_or(*address);
            endpoints.push(((*what).to_owned(), dialled));
        }
        let folder = Some(bed.node_folder(&names[0])?);
        Ok(Deployment {
            endpoints,
            nodes: bed.nodes(),
            facts,
            durability,
            folder,
            clocks: ClockRelation::OneHost,
            ..Deployment::new(bed.clock())
        })
    }

    fn workload(&self, _seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Letters { run_mark: self.run_mark, count: self.payload_bytes })
    }

    fn connect(&self, to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        let session = SetSession::new(self.run_mark, self.in_flight_max);
        Ok(Link::Wire(Endpoint { address: server(to)?, tls: None }, Box::new(session)))
    }

    fn outlives_trials(&self) -> bool {
        true
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let asked = Control::open(server(to)?, to.clock).and_then(|mut control| {
            let role = control.info("role")?;
            Ok((role == "master", format!("the server is a {role}")))
        });
        let (ok, detail) = asked
            .map_err(|error| SutError::Deploy(format!("asking the server what it is: {error}")))?;
        Ok(vec![PreflightFinding::new("set", ok, detail)])
    }

    /// A server that was started again reads its file first; what it cannot be asked it does not hold.
    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let address = if self.promotes { endpoint(of, REPLICA)? } else { server(of)? };
        let deadline = of.clock.now().plus(READY_WITHIN);
        while !Control::is_serving(address, of.clock) {
            let now = of.clock.now();
            if now >= deadline || of.stop.load(Ordering::Relaxed) {
                return Err(SutError::Ledger(format!(
                    "the server at {address} does not serve any more; a fault that takes it down has to end before \
                     the load does"
                )));
            }
            of.clock.sleep_until(now.plus(LOOK_EVERY));
        }
        let control = Control::open(address, of.clock).and_then(|mut control| {
            if self.promotes {
                control.promote()?;
            }
            Ok(control)
        });
        let control =
            control.map_err(|error| SutError::Ledger(format!("asking {address}: {error}")))?;
        let whose = if self.promotes { "promoted replica's" } else { "server's" };
        Ok(Some(Box::new(Keys::new(control, self.run_mark, whose, Arc::clone(&of.stop)))))
    }
}

fn server(of: &Deployment) -> Result<SocketAddr, SutError> {
    endpoint(of, SERVER)
}

fn endpoint(of: &Deployment, name: &str) -> Result<SocketAddr, SutError> {
    let found = of.endpoint(name);
    found.ok_or_else(|| SutError::Deploy(format!("the deployment has no address of a {name}")))
}

/// Whether a replica has all that the primary had when it connected, and hears what comes.
fn follows(replica: SocketAddr, clock: Clock) -> bool {
    let link = Control::open(replica, clock).and_then(|mut it| it.info("master_link_status"));
    link.is_ok_and(|link| link == "up")
}

/// Every setting that what is kept depends on is said, so that a configuration of the distribution's changes nothing.
fn arguments(address: SocketAddr, folder: &str, sync: AppendFsync) -> Vec<String> {
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let settings = [
        ("bind", host.as_str()),
        ("port", &port),
        ("dir", folder),
        ("daemonize", "no"),
        // The network is the trial's own.
        ("protected-mode", "no"),
        ("appendonly", "yes"),
        ("appendfsync", sync.word()),
        ("no-appendfsync-on-rewrite", "no"),
        // Nothing else writes: no snapshots, no rewriting of the file.
        ("save", ""),
        ("auto-aof-rewrite-percentage", "0"),
    ];
    settings.iter().flat_map(|(key, value)| [format!("--{key}"), (*value).to_owned()]).collect()
}

/// Facts for the reader, and those of them that decide what is kept.
type Facts = (BTreeMap<String, String>, DurabilityFacts);

fn facts(address: SocketAddr, settings: &str, clock: Clock) -> Result<Facts, SutError> {
    let asked = Control::open(address, clock).and_then(|mut control| {
        let version = control.info("redis_version")?;
        Ok(durability::of_server(version, |name| control.setting(name)))
    });
    let durability = asked
        .map_err(|error| SutError::Deploy(format!("asking the server at {address}: {error}")))?;
    let facts = BTreeMap::from([
        ("redis.version".to_owned(), durability.version.clone()),
        ("redis.settings".to_owned(), settings.to_owned()),
    ]);
    Ok((facts, durability))
}
