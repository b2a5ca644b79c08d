//! The system: starting a server or attaching to one, its connections, its keys as a ledger.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::facts::{ClockRelation, PreflightFinding};
use model::plan::CLIENT;
use model::seed::Rng;
use model::{Seed, TxId};
use sut::{
    Deployment, Endpoint, Kind, Ledger, Link, Made, Role, SutError, System, Testbed, Workload,
};
use testbed::{NodeSpec, free_port, install};

use crate::control::Control;
use crate::ledger::Keys;
use crate::options::Program;
use crate::session::SetSession;

/// The node's name in the testbed, for faults by name.
const NODE: &str = "redis";

/// The program, as the list of those that can be installed calls it.
const PROGRAM: &str = "redis-server";

/// The server's address in the deployment.
const SERVER: &str = "server";

/// The server's own port, where it has an address of its own.
const PORT: u16 = 6379;

/// How long the server may take until it serves: it takes 20 ms, and longer with a large file to read.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How often a server that was started again is asked whether it serves.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// When the server syncs its append-only file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppendFsync {
    Always,
    EverySecond,
    No,
}

impl AppendFsync {
    const fn word(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
            Self::No => "no",
        }
    }
}

/// A Redis server as an experiment wants it.
pub(crate) struct Redis {
    pub(crate) sync: AppendFsync,
    pub(crate) program: Program,
    pub(crate) attach: Option<SocketAddr>,
    pub(crate) in_flight_max: u32,
    pub(crate) payload_bytes: usize,
    pub(crate) run_mark: u64,
}

impl Redis {
    fn find(&self) -> Result<PathBuf, SutError> {
        self.program.clone().or_else(|| install::find(PROGRAM)).ok_or_else(|| SutError::Missing {
            program: PROGRAM.to_owned(),
            hint:
                "run: assay doctor --install redis-server, or name one with system.deploy.program"
                    .to_owned(),
        })
    }

    fn attached(&self, address: SocketAddr, bed: &Testbed) -> Result<Deployment, SutError> {
        let facts = facts(address, "attached, with settings of its own")?;
        let endpoints = vec![(SERVER.to_owned(), address)];
        Ok(Deployment { endpoints, facts, ..Deployment::new(bed.clock()) })
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
        let program = self.find()?;
        // On a disk of its own, where the plan gives it one.
        let folder = bed.node_folder(NODE)?;
        let (host, port) = match bed.network_address(NODE)? {
            Some(own) => (own, PORT),
            None => (Ipv4Addr::LOCALHOST, free_port()?),
        };
        let address = SocketAddr::new(IpAddr::V4(host), port);
        let arguments = arguments(address, &folder.display().to_string(), self.sync);
        bed.spawn(NodeSpec::new(NODE, program).args(arguments))?;
        bed.wait_ready(NODE, || Control::is_serving(address), READY_WITHIN)?;
        let facts = facts(address, &format!("appendonly yes, appendfsync {}", self.sync.word()))?;
        // Where the links are forwarders, the instrument dials one.
        let dialled = bed.forward(CLIENT, NODE, address)?.unwrap_or(address);
        Ok(Deployment {
            endpoints: vec![(SERVER.to_owned(), dialled)],
            nodes: bed.nodes(),
            facts,
            folder: Some(folder),
            clocks: ClockRelation::OneHost,
            ..Deployment::new(bed.clock())
        })
    }

    fn workload(&self, seed: Seed, worker: u32, _workers: u32) -> Box<dyn Workload> {
        let rng = seed.split_index("payload", u64::from(worker)).rng();
        Box::new(Values { rng, payload_bytes: self.payload_bytes })
    }

    fn connect(&self, to: &Deployment, _role: Role, _index: u32) -> Result<Link, SutError> {
        let session = SetSession::new(self.run_mark, self.in_flight_max);
        Ok(Link::Wire(Endpoint { address: server(to)?, tls: None }, Box::new(session)))
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let asked = Control::open(server(to)?).and_then(|mut control| {
            let role = control.info("role")?;
            Ok((role == "master", format!("the server is a {role}")))
        });
        let (ok, detail) = asked
            .map_err(|error| SutError::Deploy(format!("asking the server what it is: {error}")))?;
        Ok(vec![PreflightFinding::new("set", ok, detail)])
    }

    /// A server that was started again reads its file first; what it cannot be asked it does not hold.
    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let address = server(of)?;
        let deadline = of.clock.now().plus(READY_WITHIN);
        while !Control::is_serving(address) {
            let now = of.clock.now();
            if now >= deadline || of.stop.load(Ordering::Relaxed) {
                return Err(SutError::Ledger(format!(
                    "the server at {address} does not serve any more; a fault that takes it down has to end before \
                     the load does"
                )));
            }
            of.clock.sleep_until(now.plus(LOOK_EVERY));
        }
        let control = Control::open(address);
        let control =
            control.map_err(|error| SutError::Ledger(format!("asking {address}: {error}")))?;
        Ok(Some(Box::new(Keys::new(control, self.run_mark))))
    }
}

fn server(of: &Deployment) -> Result<SocketAddr, SutError> {
    let found = of.endpoint(SERVER);
    found.ok_or_else(|| SutError::Deploy("the deployment has no address of a server".to_owned()))
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

fn facts(address: SocketAddr, settings: &str) -> Result<BTreeMap<String, String>, SutError> {
    let version = Control::open(address).and_then(|mut control| control.info("redis_version"));
    let version = version
        .map_err(|error| SutError::Deploy(format!("asking the server at {address}: {error}")))?;
    Ok(BTreeMap::from([
        ("redis.version".to_owned(), version),
        ("redis.settings".to_owned(), settings.to_owned()),
    ]))
}

/// Random lower-case letters.
struct Values {
    rng: Rng,
    payload_bytes: usize,
}

impl Workload for Values {
    fn next(&mut self, _id: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
        let letters = (0..self.payload_bytes)
            .map(|_| b'a' + u8::try_from(self.rng.below(26)).expect("below 26"));
        payload.extend(letters);
        Made::of(0, client)
    }
}
