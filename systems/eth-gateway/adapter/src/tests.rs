//! Options, without a node: what an experiment can ask for, and what it is told of mistakes. And what is put on a chain,
//! before a stand-in of a node.

mod chain;
mod hostile;

use ethereum_adapter::NodeKind;
use model::options::Value;
use sut::conformance::options::{self, text};
use sut::conformance::series_conformance;

use crate::options::Gateway;
use crate::options::read;
use crate::targets::Scenario;
use crate::upstream::Upstream;

fn system(deploy: &[(&str, Value)], workload: &[(&str, Value)]) -> Result<Gateway, Vec<String>> {
    options::read(read, 1, deploy, workload)
}

/// Claim: what is asked for is had, keys of the load's adapter included.
#[test]
fn what_is_asked_for() {
    let gateway = system(
        &[("node", text("geth")), ("plain", Value::Boolean(true))],
        &[("scenario", text("everything")), ("preflight", Value::Boolean(false))],
    )
    .unwrap();
    assert_eq!(gateway.upstream, Upstream::Started(NodeKind::Geth));
    assert!(gateway.is_plain && gateway.scenario == Scenario::Everything);
    let gateway = system(&[("upstream", text("http://127.0.0.1:8545/"))], &[]).unwrap();
    assert_eq!(gateway.upstream, Upstream::At("http://127.0.0.1:8545/".to_owned()));
    for (written, url) in [
        ("127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("https://mainnet.example/v3/project", "https://mainnet.example/v3/project"),
    ] {
        let gateway = system(&[("upstream", text(written))], &[]).unwrap();
        assert_eq!(gateway.upstream, Upstream::At(url.to_owned()));
    }
}

/// Claim: each mistake is said, those in keys of the load's adapter included.
#[test]
fn mistakes() {
    for (deploy, workload, words) in [
        (vec![("node", text("parity"))], vec![], "mock"),
        (vec![("upstream", text("somewhere"))], vec![], "not a URL"),
        (vec![("upstream", text("ftp://host"))], vec![], "not a URL"),
        (vec![("upstream", text("127.0.0.1:1")), ("node", text("geth"))], vec![], "is not started"),
        (vec![("plane", Value::Boolean(true))], vec![], "not a key"),
        (vec![], vec![("scenario", text("some"))], "blocks"),
        (vec![], vec![("draw", Value::Integer(0))], "draw"),
        (vec![], vec![("pre_flight", Value::Boolean(true))], "not a key"),
    ] {
        let said = system(&deploy, &workload).err().unwrap_or_default().join("; ");
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Claim: what the gateway is asked about itself is declared as the record wants it.
#[test]
fn metrics() {
    let address = "127.0.0.1:1".parse().unwrap();
    series_conformance(&[crate::metrics::scrape("gateway", address)]).unwrap();
}
