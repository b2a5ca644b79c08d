//! Systems that are wrong in what can be seen without starting them.

use model::{Seed, TxId};

use super::super::*;
use crate::{Deployment, Kind, Link, Made, NodeStage, Role, SutError, System, Testbed};

/// A system that is wrong in what can be seen without starting it.
struct Paper {
    stages: Vec<&'static str>,
    node_stages: Vec<&'static str>,
    kinds: Vec<&'static str>,
    kind: u32,
    is_random: bool,
    forgets_clients: bool,
}

impl System for Paper {
    fn stages(&self) -> Vec<String> {
        self.stages.iter().map(ToString::to_string).collect()
    }
    fn node_stages(&self) -> Vec<NodeStage> {
        let label = |name: &str| if name == "mute" { "" } else { "what a node does" };
        self.node_stages.iter().map(|name| NodeStage::new(name, label(name))).collect()
    }
    fn kinds(&self) -> Vec<Kind> {
        self.kinds.iter().copied().map(Kind::recorded).collect()
    }
    fn deploy(&self, bed: &mut Testbed) -> Result<Deployment, SutError> {
        Ok(Deployment::new(bed.clock()))
    }
    fn workload(&self, seed: Seed, _: u32, _: u32) -> Box<dyn Workload> {
        static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let salt = CALLS.fetch_add(u64::from(self.is_random), std::sync::atomic::Ordering::Relaxed);
        struct Source(u64, u32, bool);
        impl Workload for Source {
            fn next(&mut self, tx: TxId, client: Option<u32>, payload: &mut Vec<u8>) -> Made {
                payload.extend_from_slice(&(tx ^ self.0).to_le_bytes());
                Made::of(self.1, client.filter(|_| !self.2))
            }
        }
        Box::new(Source(seed.0 ^ salt, self.kind, self.forgets_clients))
    }
    fn connect(&self, _: &Deployment, _: Role, _: u32) -> Result<Link, SutError> {
        Err(SutError::Deploy("on paper only".to_owned()))
    }
}

/// Claim: a ladder, kinds or a workload that break the contract are caught with the right words; good ones pass.
#[test]
fn systems() {
    let good = || Paper {
        stages: vec!["accepted", "committed"],
        node_stages: vec!["raft.send", "stored"],
        kinds: vec!["put"],
        kind: 0,
        is_random: false,
        forgets_clients: false,
    };
    system_conformance(&good()).unwrap();
    for (system, words) in [
        (Paper { stages: vec![], ..good() }, "has 0 stages; 1 to 4 are possible"),
        (Paper { stages: vec!["a", "b", "c", "d", "e"], ..good() }, "has 5 stages"),
        (Paper { stages: vec!["Committed!"], ..good() }, "calls a stage `Committed!`"),
        (Paper { stages: vec!["a", "a"], ..good() }, "has two stages called `a`"),
        (Paper { node_stages: vec!["Raft"], ..good() }, "calls a node stage `Raft`"),
        (Paper { node_stages: vec!["raft."], ..good() }, "calls a node stage `raft.`"),
        (Paper { node_stages: vec!["mute"], ..good() }, "what its node stage `mute` is"),
        (Paper { node_stages: vec!["x"; 33], ..good() }, "has 33 node stages; at most 32"),
        (Paper { node_stages: vec!["committed"], ..good() }, "has two stages called `committed`"),
        (Paper { kinds: vec![], ..good() }, "has no kind of transaction"),
        (Paper { kinds: vec!["x", "x"], ..good() }, "has two kinds called `x`"),
        (Paper { kind: 1, ..good() }, "made transaction 0 of kind 1, but there are 1 kinds"),
        (Paper { is_random: true, ..good() }, "made another transaction 0 from the same seed"),
        (
            Paper { forgets_clients: true, ..good() },
            "transaction 0 of client 3 and made one of client 0",
        ),
    ] {
        let said = system_conformance(&system).expect_err(words).to_string();
        assert!(said.contains(words), "{said}");
    }
}

/// Claim: an adapter whose nodes mean different things by one name, keep two metrics under one, or call one what no
/// threshold can write, is told which; one that does not passes.
#[test]
fn series_that_nodes_mean_differently() {
    use crate::{Scrape, ScrapeSeries};
    use model::series::{SeriesFacts, SeriesUnit};

    let backlog = SeriesFacts::of_node("backlog", "what waits", SeriesUnit::Number).adding_up();
    let node = |source: &str, series: &[SeriesFacts]| Scrape {
        source: source.to_owned(),
        address: ([127, 0, 0, 1], 1).into(),
        path: "/metrics".to_owned(),
        series: series
            .iter()
            .map(|series| ScrapeSeries {
                metric: "queue".to_owned(),
                series: series.clone(),
                per_second: false,
            })
            .collect(),
    };
    let alike =
        [node("a", std::slice::from_ref(&backlog)), node("b", std::slice::from_ref(&backlog))];
    series_conformance(&alike).expect("they agree");
    let other = SeriesFacts { unit: SeriesUnit::Bytes, ..backlog.clone() };
    let dotted = SeriesFacts { name: "back.log".to_owned(), ..backlog.clone() };
    let liar = [node("a", &[backlog.clone(), backlog]), node("b", &[other, dotted])];
    let said = series_conformance(&liar).expect_err("three rules are broken").to_string();
    for words in [
        "two metrics are kept as `backlog`",
        "b: the series `backlog` is declared twice",
        "`back.log`",
    ] {
        assert!(said.contains(words), "{said}");
    }
}
