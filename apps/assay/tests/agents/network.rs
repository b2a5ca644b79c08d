//! Four agents, each in a network namespace of its own, a `nats-server` in another, and links between them: one plan, whole;
//! and the documented result when an agent or NATS is cut off or paused.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clock::Clock;
use model::plan::{LinkPlan, LinksPlan, Through};
use serde_json::Value;
use testbed::{NodeSpec, Testbed};

use super::{LIMIT, QUIETLY, agents_of, await_rows, due, experiment_at, nats_server};
use crate::harness::{ASSAY, Place, Running, Said, audit, await_that, beside_others, pass, say};

const NATS_PORT: u16 = 4_222;
const HTTP_PORT: u16 = 8_080;

/// Agents on links of a millisecond each way.
struct Hosts {
    bed: Testbed,
    nats: SocketAddr,
    http: SocketAddr,
    place: Place,
}

impl Hosts {
    /// Starts all; nothing, with a word about it, where this process may not.
    fn start(program: &PathBuf) -> Option<Self> {
        let place = Place::new();
        let mut bed = Testbed::new(&place.path().join("nodes"), Clock::start());
        let link = LinkPlan { delay: Duration::from_millis(1), ..LinkPlan::default() };
        let client = LinkPlan::default();
        let plan = LinksPlan { through: Through::Switch, between: link, client, pairs: Vec::new() };
        if let Err(error) = bed.with_network(&plan) {
            say(&format!("agents: skipped: four namespaces: {error}"));
            return None;
        }
        let address = |bed: &mut Testbed, name| -> Ipv4Addr {
            bed.network_address(name).expect("there is room").expect("there is a network")
        };
        let nats = SocketAddr::from((address(&mut bed, "nats"), NATS_PORT));
        let http = SocketAddr::from((address(&mut bed, "echo"), HTTP_PORT));
        let (ip, port) = (nats.ip().to_string(), nats.port().to_string());
        let listen = ["-a", ip.as_str(), "-p", port.as_str()];
        bed.spawn(NodeSpec::new("nats", program).args(listen)).expect("it starts");
        let echo = ["serve".to_owned(), "echo".to_owned(), format!("--http={http}")];
        bed.spawn(NodeSpec::new("echo", ASSAY).args(echo)).expect("it starts");
        let mut hosts = Self { bed, nats, http, place };
        hosts.listens(nats);
        hosts.listens(http);
        let url = format!("nats://{nats}");
        let spool = hosts.place.path().display().to_string();
        for name in ["a", "b", "c", "d"] {
            address(&mut hosts.bed, name);
            let words = ["agent", "--nats", &url, "--group", "g", "--spool", &spool];
            hosts.bed.spawn(NodeSpec::new(name, ASSAY).args(words)).expect("it starts");
        }
        Some(hosts)
    }

    fn listens(&self, address: SocketAddr) {
        let _inside = self.bed.enter_network().expect("the test may");
        await_that(LIMIT, "it listens", || std::net::TcpStream::connect(address).is_ok());
    }

    /// A run over all four, begun.
    fn run(&self) -> Running {
        let text = experiment_at(&self.http.to_string(), "rate = \"200/s\"", 1, "4s");
        self.place.write("experiment.toml", text);
        let url = format!("nats://{}", self.nats);
        let spread = ["--agents", "g=4", "--nats", url.as_str()];
        let words: Vec<&str> = QUIETLY.into_iter().chain(spread).collect();
        let _inside = self.bed.enter_network().expect("the test may");
        Running::start(&mut self.place.command(&words))
    }

    /// A run that has rows by now.
    fn begun(&self) -> Running {
        let before = self.place.runs().len();
        let run = self.run();
        await_that(LIMIT, "it has a folder", || self.place.runs().len() > before);
        await_rows(&self.place);
        run
    }

    fn cut(&self, name: &str, is_cut: bool) {
        let control = self.bed.control();
        let links = control.links().expect("there is a network");
        for other in ["nats", "echo", "client", "a", "b", "c", "d"] {
            if other != name {
                links.cut(name, other, is_cut).expect("both are on it");
                links.cut(other, name, is_cut).expect("both are on it");
            }
        }
    }

    /// Asserts that nothing of the plan is missing, and gives what was said.
    #[track_caller]
    fn whole(&self, run: Running) -> (Said, Value) {
        let said = run.finish_within(LIMIT);
        let document = said.json();
        let of = agents_of(&self.place);
        assert_eq!(of.len(), 4, "{}", said.stderr);
        assert!(of.iter().all(|it| it["lost"] == "" && it["not_offered"] == 0), "{of:?}");
        assert_eq!(due(&self.place).len(), 900);
        assert_eq!(audit(&document, "complete").0, "ok");
        (said, document)
    }
}

/// Claim: four agents in four namespaces carry out the plan of one host, to the nanosecond; what is cut off or paused and
/// comes back in time costs no row (an agent that was paused is named as late); an agent that stays away is lost, named and
/// counted.
#[test]
fn four_namespaces() {
    let _beside = beside_others();
    let Some(program) = nats_server() else { return };
    let Some(mut hosts) = Hosts::start(&program) else { return };

    hosts.whole(hosts.run());
    let spread = due(&hosts.place);
    let one = experiment_at(&hosts.http.to_string(), "rate = \"200/s\"", 4, "4s");
    hosts.place.write("experiment.toml", one);
    {
        let _inside = hosts.bed.enter_network().expect("the test may");
        hosts.place.assay(&QUIETLY);
    }
    assert_eq!(spread, due(&hosts.place), "four agents are one host of four threads");

    // NATS is cut off from everybody, and is back: agents go on.
    let run = hosts.begun();
    hosts.cut("nats", true);
    pass(Duration::from_secs(2));
    hosts.cut("nats", false);
    hosts.whole(run);

    // NATS is paused, and goes on.
    let run = hosts.begun();
    hosts.bed.pause("nats").expect("it runs");
    pass(Duration::from_secs(2));
    hosts.bed.resume("nats").expect("it is paused");
    hosts.whole(run);

    // An agent is paused, and goes on: all is delivered, and it was late.
    let run = hosts.begun();
    hosts.bed.pause("b").expect("it runs");
    pass(Duration::from_millis(1_500));
    hosts.bed.resume("b").expect("it is paused");
    let (said, document) = hosts.whole(run);
    said.expect_code(97);
    let (outcome, detail) = audit(&document, "send_lag");
    assert_eq!(outcome, "failed", "{detail}");
    assert!(detail.contains("was late"), "{detail}");

    // An agent is cut off and stays away: it is lost, and all of the plan is counted.
    let run = hosts.begun();
    hosts.cut("c", true);
    let said = run.finish_within(LIMIT);
    said.expect_code(97);
    let document = said.json();
    let (outcome, detail) = audit(&document, "complete");
    assert!(outcome == "failed" && detail.contains("was lost"), "{detail}");
    let of = agents_of(&hosts.place);
    assert_eq!(of.iter().filter(|it| it["lost"] != "").count(), 1, "{of:?}");
    let sum = |name: &str| of.iter().filter_map(|it| it[name].as_u64()).sum::<u64>();
    assert_eq!(sum("rows") + sum("not_offered"), 900, "{of:?}");
    hosts.bed.stop_all(Duration::from_secs(5)).expect("all end");
}
