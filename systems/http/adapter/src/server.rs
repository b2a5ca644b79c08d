//! An HTTP server that is already there. Attaching looks its name up once, and tries each address once, so that a load is
//! never spread over addresses where nobody listens.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use sut::ask::{AskError, Questioner};
use sut::{Deployment, SutError, Tls};

use crate::flow::Flows;
use crate::requests::Requests;
use crate::rules::Rules;
use crate::url::Origin;
use crate::workload::Order;

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
    /// The longest wait for an answer, before the load and in it.
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
        for address in addresses(&self.origin, &self.origin)? {
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
}

/// Each address of an origin once; `url` is the origin as messages say it.
pub(crate) fn addresses(
    origin: &Origin,
    url: &impl fmt::Display,
) -> Result<Vec<SocketAddr>, SutError> {
    let Origin { host, port, .. } = origin;
    let found = (host.as_str(), *port).to_socket_addrs().map_err(|error| {
        SutError::Deploy(format!(
            "looking up `{host}` of {url}: {error}; is the name right, and is there a network?"
        ))
    })?;
    let mut addresses = Vec::new();
    for address in found.take(ADDRESSES_MAX) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}
