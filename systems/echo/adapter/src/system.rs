//! The system: starting the node or attaching to one, its ladder, its connections, its ledger.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use echo_node::events::Stage;
use model::Seed;
use model::facts::{ClockRelation, PreflightFinding};
use model::plan::CLIENT;
use sut::{
    Deployment, Endpoint, Kind, Ledger, Link, NodeEvents, NodeStage, Role, Session, SutError,
    System, Testbed, Workload,
};

use crate::client::EchoClient;
use crate::control::Control;
use crate::events;
use crate::http_session::HttpSession;
use crate::ledger::Reader;
use crate::metrics;
use crate::session::{FrameSession, Use};
use crate::workload::Payloads;

/// The node's name in the testbed, for faults by name.
const NODE: &str = "echo";

/// The events' name in the deployment's folder.
const EVENTS_FILE: &str = "echo.events";

/// The ledger's name in the node's folder.
const LEDGER_FILE: &str = "echo.ledger";

/// The name of the address where it says its own metrics, in its ready line.
const METRICS: &str = "metrics";

/// How long the node may take to start: it binds two ports.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// What is spoken with the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Frames,
    Http,
}

impl Protocol {
    /// The name of its address, in the node's ready line and in the deployment.
    const fn endpoint(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Http => "http",
        }
    }
}

/// The canary as an experiment wants it.
pub(crate) struct Echo {
    pub(crate) arguments: Vec<String>,
    /// The program of its own that is the node; `None`: this one.
    pub(crate) program: Option<&'static str>,
    pub(crate) protocol: Protocol,
    pub(crate) observes: bool,
    pub(crate) polls: bool,
    /// Whether what leaves together is one frame.
    pub(crate) batches: bool,
    /// Which roles go through a client library.
    pub(crate) called: Vec<Role>,
    pub(crate) stages: u8,
    pub(crate) in_flight_max: u32,
    pub(crate) attach: Option<SocketAddr>,
    pub(crate) confess: bool,
    /// Whether the node says its own metrics.
    pub(crate) says_metrics: bool,
    /// Whether the node stamps events.
    pub(crate) stamps: bool,
    pub(crate) payload_bytes: usize,
    pub(crate) kinds: Vec<Kind>,
    /// How many keys there are, where a kind reads.
    pub(crate) keys: Option<u64>,
    pub(crate) run_mark: u64,
}

impl Echo {
    /// The protocol on a connection, without a connection.
    pub(crate) fn session(&self, role: Role, address: SocketAddr) -> Box<dyn Session> {
        let purpose = match role {
            Role::Observe => Use::Observe,
            Role::Submit | Role::Probe if self.polls => Use::SubmitAndAsk,
            Role::Submit | Role::Probe => Use::Submit,
        };
        match self.protocol {
            Protocol::Http => Box::new(HttpSession::new(address, self.in_flight_max)),
            Protocol::Frames => Box::new(FrameSession::new(
                self.run_mark,
                self.stages,
                self.in_flight_max,
                purpose,
                self.batches,
            )),
        }
    }

    fn attached(&self, address: SocketAddr, bed: &Testbed) -> Result<Deployment, SutError> {
        let endpoints = vec![(self.protocol.endpoint().to_owned(), address)];
        let deployment = Deployment { endpoints, ..Deployment::new(bed.clock()) };
        std::net::TcpStream::connect_timeout(&address, READY_WITHIN).map_err(|error| {
            SutError::Deploy(format!(
                "attaching to {address}: {error}; is `assay serve echo` running there?"
            ))
        })?;
        Ok(deployment)
    }

    fn facts(&self) -> BTreeMap<String, String> {
        let program = self.program.map(|program| ("echo.program".to_owned(), program.to_owned()));
        let arguments = ("echo.arguments".to_owned(), self.arguments.join(" "));
        [arguments].into_iter().chain(program).collect()
    }

    /// A connection for questions, where the node speaks frames.
    fn control(&self, of: &Deployment) -> Option<io::Result<Control>> {
        of.endpoint(Protocol::Frames.endpoint()).map(Control::open)
    }
}

impl System for Echo {
    fn stages(&self) -> Vec<String> {
        let names: &[&str] = match self.stages {
            1 => &["committed"],
            2 => &["accepted", "committed"],
            _ => &["accepted", "started", "committed"],
        };
        names.iter().map(ToString::to_string).collect()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.kinds.clone()
    }

    fn node_stages(&self) -> Vec<NodeStage> {
        let stages = if self.stamps { &Stage::ALL[..] } else { &[] };
        stages.iter().map(|stage| NodeStage::new(stage.word(), stage.summary())).collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        if let Some(address) = self.attach {
            return self.attached(address, bed);
        }
        // On a disk of its own, where the plan gives it one.
        let folder = bed.node_folder(NODE)?;
        let ledger = folder.join(LEDGER_FILE);
        let mut arguments = vec!["--parent-pipe".to_owned()];
        arguments.push(format!("--ledger={}", ledger.display()));
        // On the plan's links the node has an address of its own; else it is one of the host's loopback.
        let on_links = bed.network_address(NODE)?;
        let address = on_links.unwrap_or(Ipv4Addr::LOCALHOST);
        arguments.push(format!("--listen={address}:0"));
        if self.protocol == Protocol::Http {
            arguments.push(format!("--http={address}:0"));
        }
        if self.says_metrics {
            arguments.push(format!("--metrics={address}:0"));
        }
        if self.confess {
            // For tests: not on the disk, whose power may be cut.
            let confession = bed.folder().join("echo.confession");
            arguments.push(format!("--confess={}", confession.display()));
        }
        if self.stamps {
            arguments.push(format!("--events={}", folder.join(EVENTS_FILE).display()));
        }
        arguments.extend(self.arguments.iter().cloned());
        match self.program {
            Some(program) => bed.spawn_program(NODE, program, arguments)?,
            None => {
                let serve = ["serve", "echo"].map(str::to_owned);
                bed.spawn_self(NODE, serve.into_iter().chain(arguments))?
            }
        };
        let ready = bed.ready_line(NODE, READY_WITHIN)?;
        let mut endpoints = endpoints(&ready)?;
        bed.at_restart(NODE, |arguments| start_again(arguments, &endpoints))?;
        let scrape = endpoints.iter().find(|(name, _)| name == METRICS);
        let scrape = scrape.map(|(_, address)| metrics::scrape(NODE, *address));
        for (_, address) in &mut endpoints {
            // Where the links are forwarders, the instrument dials one.
            *address = bed.forward(CLIENT, NODE, *address)?.unwrap_or(*address);
        }
        Ok(Deployment {
            endpoints,
            nodes: bed.nodes(),
            facts: self.facts(),
            folder: Some(folder),
            scrape: scrape.into_iter().collect(),
            clocks: ClockRelation::OneHost,
            ..Deployment::new(bed.clock())
        })
    }

    fn workload(&self, seed: Seed, _worker: u32, _workers: u32) -> Box<dyn Workload> {
        Box::new(Payloads::new(seed, self.payload_bytes, self.kinds.len(), self.keys))
    }

    fn connect(&self, to: &Deployment, role: Role, _index: u32) -> Result<Link, SutError> {
        let name = self.protocol.endpoint();
        let address = to
            .endpoint(name)
            .ok_or_else(|| SutError::Deploy(format!("the node has no address called {name}")))?;
        if self.called.contains(&role) {
            let client = EchoClient::new(address, self.run_mark, self.stages);
            return Ok(Link::Call(Box::new(client)));
        }
        Ok(Link::Wire(Endpoint { address, tls: None }, self.session(role, address)))
    }

    fn observers(&self) -> u32 {
        u32::from(self.observes)
    }

    /// Nothing is submitted: a check would stand in the ledger as nobody's.
    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let Some(control) = self.control(to) else { return Ok(Vec::new()) };
        let failed = |error| SutError::Deploy(format!("asking the node what it takes: {error}"));
        let mut control = control.map_err(failed)?;
        let mut findings = Vec::new();
        for (number, kind) in (0_u16..).zip(&self.kinds) {
            let ok = control.check(number).map_err(failed)?;
            let detail = if ok { "would be taken" } else { "refused as invalid" };
            findings.push(PreflightFinding {
                kind: kind.name.clone(),
                ok,
                detail: detail.to_owned(),
            });
        }
        Ok(findings)
    }

    fn ledger(&self, of: &Deployment) -> Result<Option<Box<dyn Ledger>>, SutError> {
        if self.protocol == Protocol::Http {
            // Requests carry no id, so nothing of them is stored.
            return Ok(None);
        }
        let Some(control) = self.control(of) else { return Ok(None) };
        let synced = control.and_then(|mut control| control.sync().map(|_| control));
        let is_dead = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        match (&of.folder, synced) {
            (Some(folder), Ok(_)) => self.file(folder, "read after it had stored everything"),
            // Nobody is left to store anything: what its file holds is what there is.
            (Some(folder), Err(error)) if is_dead(&error) => {
                self.file(folder, "as it was left when the node ended")
            }
            (None, Ok(control)) => Ok(Some(Box::new(Reader::of_node(control, self.run_mark)))),
            (_, Err(error)) => Err(SutError::Ledger(format!(
                "having the node store everything: {error}; what it holds back would look lost"
            ))),
        }
    }

    fn node_events(&self, of: &Deployment, to: &mut dyn NodeEvents) -> Result<(), SutError> {
        let Some(folder) = &of.folder else { return Ok(()) };
        if let Err(error) = self.settle(of) {
            to.problem(format!(
                "having `{NODE}` write all its events: {error}; the last are missing"
            ));
        }
        events::read(&folder.join(EVENTS_FILE), NODE, to);
        Ok(())
    }
}

impl Echo {
    /// Has the node write everything that it holds, if it is still there.
    fn settle(&self, of: &Deployment) -> io::Result<()> {
        match self.control(of) {
            Some(control) => match control.and_then(|mut control| control.sync()) {
                // Nobody is left to write anything: what the file holds is what there is.
                Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(error),
                _ => Ok(()),
            },
            None => Ok(()),
        }
    }

    fn file(
        &self,
        folder: &Path,
        state: &'static str,
    ) -> Result<Option<Box<dyn Ledger>>, SutError> {
        let reader = Reader::of_file(&folder.join(LEDGER_FILE), state, self.run_mark)?;
        Ok(Some(Box::new(reader)))
    }
}

/// The addresses in the ready line.
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
