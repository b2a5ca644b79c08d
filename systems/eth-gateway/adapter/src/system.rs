//! The system: a node, the gateway before it, the requests of a scenario, and the adapter of HTTP for all the rest.

use std::net::SocketAddr;

use ethereum_adapter::Rpc;
use model::Seed;
use model::facts::{ClockRelation, CodeRemark, PreflightFinding};
use sut::{Deployment, Endpoint, Kind, Link, Role, SutError, System, Testbed, Workload};
use testbed::free_port;

use crate::metrics;
use crate::options::Gateway;
use crate::targets::{self, Draw};
use crate::upstream::{self, PROGRAM, Upstream};

/// The gateway's name in the testbed, for faults by name.
const GATEWAY: &str = "gateway";

/// The requests' file, in the folder of the trial's nodes.
const FILE: &str = "targets.txt";

impl Gateway {
    fn inner(&self) -> Result<&dyn System, SutError> {
        let inner = self.inner.get().map(AsRef::as_ref);
        inner.ok_or_else(|| SutError::Deploy("the gateway was not deployed".to_owned()))
    }

    /// Starts the gateway before a node.
    fn start(&self, node: &str, bed: &mut Testbed) -> Result<SocketAddr, SutError> {
        // A life that a fault starts is found where the first was.
        let listen = format!("127.0.0.1:{}", free_port()?);
        let ours = ["--listen", &listen, "--upstream", node];
        let mut words: Vec<String> = ours.map(str::to_owned).to_vec();
        words.extend(self.is_plain.then(|| "--plain".to_owned()));
        words.extend(self.arguments.iter().cloned());
        bed.spawn_program(GATEWAY, PROGRAM, words)?;
        upstream::ready(bed, GATEWAY)
    }

    /// Writes the requests from what the node's chain holds. It is asked through the gateway, which knows how to reach a node
    /// by any URL.
    fn write_targets(&self, gateway: SocketAddr, bed: &Testbed) -> Result<String, SutError> {
        let mut rpc = Rpc::at_path(gateway, "/rpc", bed.clock());
        let written = Draw::new(&mut rpc, self.seed)
            .and_then(|mut chain| targets::write(self.scenario, self.draw, &mut chain));
        let failed =
            |why: String| SutError::Deploy(format!("drawing requests from the chain: {why}"));
        let path = bed.folder().join(FILE);
        // Where no node was started nothing has made the folder.
        std::fs::create_dir_all(bed.folder())
            .map_err(|why| failed(format!("making {}: {why}", bed.folder().display())))?;
        std::fs::write(&path, written.map_err(failed)?)
            .map_err(|why| failed(format!("writing {}: {why}", path.display())))?;
        let path = path.canonicalize().unwrap_or(path);
        Ok(path.display().to_string())
    }
}

impl System for Gateway {
    fn stages(&self) -> Vec<String> {
        vec!["committed".to_owned()]
    }

    fn kinds(&self) -> Vec<Kind> {
        match self.inner.get() {
            Some(inner) => inner.kinds(),
            None => vec![Kind::recorded("request")],
        }
    }

    fn code_remarks(&self) -> Vec<CodeRemark> {
        self.inner.get().map(|inner| inner.code_remarks()).unwrap_or_default()
    }

    fn fidelity(&self) -> Vec<String> {
        let words = "plain: the gateway keeps nothing, joins nothing and does not listen to the node's limiter, as the published API";
        self.is_plain.then(|| words.to_owned()).into_iter().collect()
    }

    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        let node = upstream::start(&self.upstream, self.transactions, bed)?;
        let gateway = self.start(&node, bed)?;
        let file = self.write_targets(gateway, bed)?;
        let _ = self.node.set(node);
        let inner = self.of_load.of_file(&format!("http://{gateway}"), &file);
        // A second deployment of one system would go to another address.
        let _ = self.inner.set(inner.map_err(SutError::Deploy)?);
        let mut deployment = self.inner()?.deploy(bed)?;
        let facts = &mut deployment.facts;
        let node = match &self.upstream {
            Upstream::Played(words) => format!("played, {}", words.join(" ")),
            Upstream::Started(kind) => format!("{kind:?}, {} transactions", self.transactions),
            Upstream::At(url) => without_secrets(url),
        };
        facts.insert("eth-gateway.node".to_owned(), node);
        facts.insert("eth-gateway.scenario".to_owned(), format!("{:?}", self.scenario));
        let switches = if self.is_plain { "off" } else { "on" };
        facts.insert("eth-gateway.savings".to_owned(), switches.to_owned());
        facts.insert("eth-gateway.arguments".to_owned(), self.arguments.join(" "));
        facts.retain(|_, value| !value.is_empty());
        deployment.nodes = bed.nodes();
        deployment.scrape = vec![metrics::scrape(GATEWAY, gateway)];
        deployment.clocks = ClockRelation::OneHost;
        Ok(deployment)
    }

    fn workload(&self, seed: Seed, worker: u32, workers: u32) -> Box<dyn Workload> {
        let inner = self.inner.get().expect("the engine asks when the system is deployed");
        inner.workload(seed, worker, workers)
    }

    fn connect(&self, to: &Deployment, role: Role, index: u32) -> Result<Link, SutError> {
        self.inner()?.connect(to, role, index)
    }

    fn route(&self, to: &Deployment, role: Role, index: u32, life: u32) -> Option<Endpoint> {
        self.inner.get()?.route(to, role, index, life)
    }

    fn preflight(&self, to: &Deployment) -> Result<Vec<PreflightFinding>, SutError> {
        let findings = self.inner()?.preflight(to)?;
        // Calls before the load are no part of it.
        if let (Upstream::Played(_), Some(node)) = (&self.upstream, self.node.get()) {
            upstream::forget(node, to.clock)?;
        }
        Ok(findings)
    }
}

/// Scheme, host and port of a URL: a user and a path may be a key to the node.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: nothing of a URL that may be a key stands in the record.
    #[test]
    fn secrets() {
        assert_eq!(
            without_secrets("https://me:key@node.example:8/v3/id?k=1"),
            "https://node.example:8"
        );
        assert_eq!(without_secrets("http://127.0.0.1:8545/"), "http://127.0.0.1:8545");
    }
}
