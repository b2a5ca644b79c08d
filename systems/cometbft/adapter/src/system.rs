//! The system: starting a testnet or attaching to one, its ladder, its connections, its ledger.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use sut::{
    Deployment, Endpoint, Kind, Ledger, Link, Role, Session, SutError, System, Testbed, Texts,
    Workload,
};

use crate::answer::Method;
use crate::ledger::Chain;
use crate::loadtime::{Loadtime, Stamp};
use crate::manifest::Mode;
use crate::observer::{ObserveSession, SUBSCRIBE};
use crate::rpc::Rpc;
use crate::session::SubmitSession;
use crate::settle::Use;
use crate::sightings::Sightings;
use crate::testnet::{self, Wish};
use crate::transaction::KeyValues;

/// Where nodes speak WebSocket.
pub(crate) const TARGET: &str = "/websocket";

/// What the adapter remembers of a deployment: up to this height the chain is of earlier trials.
struct HeightAtStart(u64);

/// A network as an experiment wants it.
pub(crate) struct CometBft {
    /// What is started; absent: nodes that run already.
    pub(crate) start: Option<Wish>,
    /// Nodes that run already; empty: they are started.
    pub(crate) attach: Vec<SocketAddr>,
    pub(crate) method: Method,
    /// Whether connections are spread over all nodes, or all go to the first.
    pub(crate) spreads: bool,
    /// The nodes whose blocks are watched.
    pub(crate) observe: Vec<usize>,
    /// What several observers share.
    pub(crate) sightings: Option<Arc<Sightings>>,
    pub(crate) in_flight_max: u32,
    pub(crate) transaction_bytes: usize,
    /// The published load tool's payload; absent: `key=value`.
    pub(crate) loadtime: Option<Loadtime>,
    pub(crate) run_mark: u64,
}

impl CometBft {
    /// The protocol on a connection, without a connection.
    pub(crate) fn session(&self, role: Role, index: u32, address: SocketAddr) -> Box<dyn Session> {
        let seed = Seed(self.run_mark).split_index("connection", u64::from(index));
        let greeting = (role == Role::Observe).then(|| SUBSCRIBE.to_owned());
        let channel = Texts::new(address.to_string(), TARGET, greeting, seed);
        match role {
            Role::Submit | Role::Probe => Box::new(SubmitSession::new(
                channel,
                self.method,
                self.in_flight_max,
                self.loadtime,
            )),
            Role::Observe => {
                Box::new(ObserveSession::new(channel, self.run_mark, self.sightings.clone()))
            }
        }
    }

    fn nodes<'a>(&self, of: &'a Deployment) -> Vec<&'a SocketAddr> {
        of.endpoints.iter().map(|(_, address)| address).collect()
    }

    /// The nodes in the order in which the chain is rather read from the later: the one that is loaded, full nodes,
    /// which may be stopped and wiped, and validators.
    fn readers(&self, of: &Deployment) -> Vec<SocketAddr> {
        let mut nodes: Vec<SocketAddr> = self.nodes(of).into_iter().copied().collect();
        if let Some(wish) = &self.start {
            nodes[1..].rotate_left(wish.manifest.count(Mode::Validator) - 1);
        }
        nodes
    }

    /// Starts the nodes, or takes those that run. Gives where clients reach those that follow the chain.
    fn reach(&self, bed: &mut Testbed) -> Result<(Vec<SocketAddr>, Deployment), SutError> {
        let Some(wish) = &self.start else {
            return Ok((self.attach.clone(), Deployment::new(bed.clock())));
        };
        let started = testnet::start(wish, bed)?;
        let deployment = Deployment {
            nodes: bed.nodes(),
            facts: started.facts,
            folder: Some(bed.folder().to_owned()),
            scrape: started.scrape,
            care: Some(Arc::new(started.care)),
            ..Deployment::new(bed.clock())
        };
        Ok((started.clients, deployment))
    }
}

/// Whose clocks the ledger's times are by, for what is made of them.
fn clocks(nodes: &[SocketAddr], are_ours: bool) -> ClockRelation {
    if are_ours || nodes.iter().all(|address| address.ip().is_loopback()) {
        ClockRelation::OneHost
    } else {
        ClockRelation::OtherHosts
    }
}

impl System for CometBft {
    fn stages(&self) -> Vec<String> {
        ["accepted", "committed"].map(str::to_owned).to_vec()
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::recorded("key-value")]
    }

    fn fidelity(&self) -> Vec<String> {
        let given = self.loadtime.is_some_and(|loadtime| loadtime.stamp == Stamp::Given);
        let words = "payloads carry the time at which they were written and not when they were due, as the published load tool has it: what a transaction waited before is not in the ledger's latency";
        let mut switches: Vec<String> = given.then(|| words.to_owned()).into_iter().collect();
        switches.extend(self.start.iter().flat_map(Wish::fidelity));
        switches
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let (nodes, mut deployment) = self.reach(bed)?;
        let facts = &mut deployment.facts;
        let mut heights = Vec::new();
        for address in &nodes {
            let status = Rpc::new(*address, bed.clock()).status().map_err(SutError::Deploy)?;
            heights.push(status.height().map_err(SutError::Deploy)?);
            facts.insert("cometbft.network".to_owned(), status.node_info.network);
            facts.insert("cometbft.version".to_owned(), status.node_info.version);
        }
        // The highest: what is in blocks by now cannot be of this trial.
        let height = heights.iter().max().copied().unwrap_or(0);
        facts.insert("cometbft.height_at_start".to_owned(), height.to_string());
        facts.insert("cometbft.nodes".to_owned(), nodes.len().to_string());
        facts.insert("cometbft.method".to_owned(), self.method.name().to_owned());
        deployment.clocks = clocks(&nodes, self.start.is_some());
        deployment.state = Some(Arc::new(HeightAtStart(height)));
        let endpoints = nodes.iter().enumerate();
        deployment.endpoints =
            endpoints.map(|(n, address)| (format!("rpc-{n}"), *address)).collect();
        Ok(deployment)
    }

    fn workload(&self, seed: Seed, worker: u32, _workers: u32) -> Box<dyn Workload> {
        match &self.loadtime {
            None => Box::new(KeyValues::new(seed, worker, self.run_mark, self.transaction_bytes)),
            Some(loadtime) => loadtime.workload(seed, worker),
        }
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        let nodes = self.nodes(to);
        let place = match role {
            Role::Observe => {
                let index = usize::try_from(index).expect("an index of observers");
                *self.observe.get(index).expect("the engine asks for as many as there are")
            }
            Role::Submit | Role::Probe if self.spreads => {
                usize::try_from(index).expect("an index of connections") % nodes.len().max(1)
            }
            Role::Submit | Role::Probe => 0,
        };
        let address = *nodes.get(place).copied().ok_or_else(|| {
            SutError::Deploy(format!("there is no node {place}, but {} nodes", nodes.len()))
        })?;
        Ok(Link::Wire(Endpoint { address, tls: None }, self.session(role, index, address)))
    }

    /// `broadcast_tx_commit` is told of the commit in the reply.
    fn observers(&self) -> u32 {
        if self.method == Method::Commit {
            return 0;
        }
        u32::try_from(self.observe.len()).expect("few nodes")
    }

    /// Asks the application of the first node; nothing is submitted.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let Some(address) = self.nodes(to).first().copied() else { return Ok(Vec::new()) };
        let mut payload = Vec::new();
        let kind = self.workload(Seed(self.run_mark), 0, 1).next(0, None, &mut payload).kind;
        let base64 = match &self.loadtime {
            None => STANDARD.encode(payload),
            Some(loadtime) => loadtime.base64_now(&payload),
        };
        let code = Rpc::new(*address, to.clock).check(&base64).map_err(SutError::Deploy)?;
        let detail = match code {
            0 => "would be taken".to_owned(),
            code => format!("refused by the check of the application, code {code}"),
        };
        let index = usize::try_from(kind).expect("one kind");
        Ok(vec![PreflightFinding::new(&self.kinds()[index].name, code == 0, detail)])
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let HeightAtStart(height) = of.state().expect("deploy says so");
        let first = height + 1;
        let nodes = self.readers(of);
        let usage = if self.attach.is_empty() { Use::Own } else { Use::Shared };
        let (timed, how) = (self.loadtime.is_some(), (of.clock, Arc::clone(&of.stop)));
        Ok(Some(Box::new(Chain::open(&nodes, first, self.run_mark, usage, timed, how)?)))
    }
}
