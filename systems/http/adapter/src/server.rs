//! The system: an HTTP server that is already there. Attaching looks its name up once, and tries each address
//! once, so that a load is never spread over addresses where nobody listens.

use std::cell::OnceCell;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use model::Seed;
use model::facts::{CodeRemark, PreflightFinding};
use sut::ask::{AskError, Questioner};
use sut::{
    Deployment, Endpoint, Kind, Link, Role, Session, SutError, System, Testbed, Tls, Workload,
};

use crate::flow::{self, Flows};
use crate::http2_session::Http2Session;
use crate::preflight::Pass;
use crate::requests::Requests;
use crate::rules::Rules;
use crate::session::HttpSession;
use crate::url::Origin;
use crate::workload::{Order, Source};

/// The most addresses of a name that are used.
const ADDRESSES_MAX: usize = 16;

/// The longest wait for a connection (and its TLS handshake) to one address.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// The name of the endpoints in a deployment.
const ENDPOINT: &str = "http";

/// An HTTP/1.1 server and what is asked of it.
pub(crate) struct HttpSystem {
    pub(crate) origin: Origin,
    pub(crate) tls: Option<Tls>,
    pub(crate) requests: Arc<Requests>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) order: Order,
    /// The flows of users beside the targets, or instead of them.
    pub(crate) flows: Option<Arc<Flows>>,
    pub(crate) pipeline: u32,
    /// Requests outstanding on an HTTP/2 connection; absent: it is HTTP/1.1.
    pub(crate) streams: Option<u32>,
    pub(crate) has_preflight: bool,
    /// Whether the server's certificate is not verified.
    pub(crate) is_insecure: bool,
    /// How long the load waits for an answer; before it nobody waits for longer.
    pub(crate) patience: Duration,
}

impl HttpSystem {
    /// Looks the name up and tries each address once.
    ///
    /// # Errors
    /// When there is no such name, or nobody answers at any of its addresses.
    pub(crate) fn attach(&self, clock: Clock) -> Result<Deployment, SutError> {
        let mut deployment = Deployment::new(clock);
        let mut failures = Vec::new();
        for address in self.addresses()? {
            let mut questioner = self.questioner(address, clock);
            match questioner.connect(CONNECT_TIME_MAX) {
                Ok(()) => {
                    deployment.facts.insert("http.transport".to_owned(), questioner.transport());
                    deployment.endpoints.push((ENDPOINT.to_owned(), address));
                }
                Err(error) => failures.push(format!("{address}: {}", self.explain(&error))),
            }
        }
        if deployment.endpoints.is_empty() {
            return Err(SutError::Deploy(format!(
                "connecting to {}: {}",
                self.origin,
                failures.join("; ")
            )));
        }
        let used: Vec<_> = deployment.endpoints.iter().map(|(_, at)| at.to_string()).collect();
        deployment.facts.insert("http.origin".to_owned(), self.origin.to_string());
        deployment.facts.insert("http.addresses".to_owned(), used.join(", "));
        if !failures.is_empty() {
            deployment.facts.insert("http.addresses_not_used".to_owned(), failures.join("; "));
        }
        let targets = self.requests.sequence.len().to_string();
        deployment.facts.insert("http.targets".to_owned(), targets);
        if let Some(flows) = &self.flows {
            deployment.facts.insert("http.steps".to_owned(), flows.steps.len().to_string());
        }
        Ok(deployment)
    }

    /// For what comes before the load, which never uses it.
    pub(crate) fn questioner(&self, address: SocketAddr, clock: Clock) -> Questioner {
        let mut questioner = Questioner::new(address, self.tls.clone(), self.rules.limits(), clock);
        if self.rules.reads_heads() {
            questioner = questioner.keeping_heads();
        }
        match &self.rules.correlate {
            Some(name) => questioner.watching(name),
            None => questioner,
        }
    }

    /// Why there was no answer, in words that name what an experiment can change.
    pub(crate) fn explain(&self, error: &AskError) -> String {
        let name = self.tls.as_ref().map(|tls| tls.server_name.to_str());
        crate::tls::explain(error, name.as_deref().unwrap_or(&self.origin.host))
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, SutError> {
        let Origin { host, port, .. } = &self.origin;
        let found = (host.as_str(), *port).to_socket_addrs().map_err(|error| {
            SutError::Deploy(format!(
                "looking up `{host}` of {}: {error}; is the name right, and is there a network?",
                self.origin
            ))
        })?;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found.take(ADDRESSES_MAX) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Ok(addresses)
    }
}

impl System for HttpSystem {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    /// Nothing is read back, so what a ledger would record is not asked.
    fn kinds(&self) -> Vec<Kind> {
        let steps = self.flows.iter().flat_map(|flows| flows.kinds());
        self.requests.kinds.iter().map(Kind::recorded).chain(steps).collect()
    }

    fn fidelity(&self) -> Vec<String> {
        let told = "insecure: the server's certificate was not verified, so this may have been another server";
        if self.is_insecure { vec![told.to_owned()] } else { Vec::new() }
    }

    fn code_remarks(&self) -> Vec<CodeRemark> {
        let counts = |status: &u16| self.rules.counts_as_committed_unasked(*status);
        let remark = |code| CodeRemark { code, remark: crate::preflight::NOT_FOLLOWED.to_owned() };
        crate::preflight::REDIRECTS.into_iter().filter(counts).map(remark).collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        self.attach(bed.clock())
    }

    fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload> {
        let targets = Source::new(self.requests.clone(), self.order, seed, worker);
        match &self.flows {
            None => Box::new(targets),
            Some(flows) => {
                let users =
                    flow::source::Source::new(flows.clone(), Some(targets), seed, worker, workers);
                Box::new(users)
            }
        }
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        if role == Role::Observe || to.endpoints.is_empty() {
            return Err(SutError::Deploy("an HTTP server has no such connection".to_owned()));
        }
        let (_, address) = to.endpoints[index as usize % to.endpoints.len()];
        let (requests, rules) = (self.requests.clone(), self.rules.clone());
        let session: Box<dyn Session> = match self.streams {
            Some(streams) => {
                let session = Http2Session::new(requests, rules, streams);
                Box::new(session.walking(self.flows.clone()))
            }
            None => {
                let session = HttpSession::new(requests, rules, self.pipeline);
                Box::new(session.walking(self.flows.clone()))
            }
        };
        Ok(Link::Wire(Endpoint { address, tls: self.tls.clone() }, session))
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let Some((_, address)) = to.endpoints.first().filter(|_| self.has_preflight) else {
            return Ok(Vec::new());
        };
        let speaks_tls = OnceCell::new();
        Pass { system: self, address: *address, clock: to.clock, stop: &to.stop, speaks_tls }.run()
    }
}
