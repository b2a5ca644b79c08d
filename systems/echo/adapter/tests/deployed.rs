//! The adapter with a node that it starts as a process: ready when it says so, checked before the load, spoken
//! to with its own sessions, its ledger read back in each way, nothing left behind.
//!
//! Without the test harness, because this executable is also the node: called with `serve echo` it is nothing
//! else.

#![expect(clippy::unwrap_used, reason = "a test; without the harness clippy cannot know")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

use clock::Clock;
use model::Seed;
use model::options::Value;
use sut::conformance::options::{read, text, texts};
use sut::{Deployment, Link, Mark, Marks, Role, Session, SutError, System, Testbed, Transaction};

const RUN: u64 = 0xabcd;
const COUNT: u64 = 500;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.len() >= 2 && words[0] == "serve" && words[1] == "echo" {
        return echo_node::serve(&words[2..]);
    }
    let tests: [(&str, fn()); 8] = [
        ("a_whole_trial", a_whole_trial),
        ("an_attached_node", an_attached_node),
        ("a_lost_entry", a_lost_entry),
        ("a_kind_that_cannot_succeed", a_kind_that_cannot_succeed),
        ("a_killed_node", a_killed_node),
        ("two_nodes", two_nodes),
        ("over_http", over_http),
        ("metrics_of_its_own", metrics_of_its_own),
    ];
    println!("\nrunning {} tests", tests.len());
    for (name, test) in tests {
        // A failed assertion ends the process with a status that cargo reports.
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

fn system(deploy: &[(&str, Value)], workload: &[(&str, Value)]) -> Box<dyn System> {
    read(echo_adapter::ADAPTER.build, RUN, deploy, workload).unwrap()
}

/// A system that is up, and what it stands on.
struct Trial {
    system: Box<dyn System>,
    deployment: Deployment,
    bed: Testbed,
    _folder: tempfile::TempDir,
}

impl Trial {
    fn start(system: Box<dyn System>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut bed = Testbed::new(folder.path(), Clock::start());
        bed.set_own_program(std::env::current_exe().unwrap(), Vec::new());
        let deployment = system.deploy(&mut bed).unwrap();
        Self { system, deployment, bed, _folder: folder }
    }

    /// A connection of the role, opened.
    fn connect(&self, role: Role) -> Wire {
        let link = self.system.connect(&self.deployment, role, 0).unwrap();
        let Link::Wire(endpoint, mut session) = link else { panic!("a wire") };
        let mut stream = TcpStream::connect(endpoint.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut out = Vec::new();
        session.open(&mut out);
        stream.write_all(&out).unwrap();
        Wire { stream, session, unread: Vec::new() }
    }

    /// Submits `COUNT` transactions and waits for the last stage of each. Gives their ids in that order.
    fn load(&self) -> Vec<u64> {
        let last = u8::try_from(self.system.stages().len() - 1).unwrap();
        let mut observer = (self.system.observers() > 0).then(|| self.connect(Role::Observe));
        if let Some(observer) = &mut observer {
            while !observer.session.is_ready() {
                assert!(observer.reached(last).is_empty());
            }
        }
        let mut wire = self.connect(Role::Submit);
        let mut workload = self.system.workload(Seed(1), 0, 1);
        let (mut committed, mut payload) = (Vec::new(), Vec::new());
        for id in 0..COUNT {
            payload.clear();
            let kind = workload.next(id, None, &mut payload).kind;
            let mut out = Vec::new();
            wire.session.submit(&Transaction::new(id, kind, &payload), &mut out);
            wire.stream.write_all(&out).unwrap();
            while !committed.contains(&id) {
                let ears = observer.as_mut().unwrap_or(&mut wire);
                committed.extend(ears.reached(last));
            }
        }
        committed
    }

    fn ledger(&self) -> Result<(Vec<(u64, bool)>, String), SutError> {
        let mut ledger = self.system.ledger(&self.deployment)?.expect("it has a ledger");
        let mut entries = Vec::new();
        while let Some(entry) = ledger.next(&mut Vec::new())? {
            assert_eq!(entry.position, entries.len() as u64);
            entries.push((entry.tx, entry.ours));
        }
        Ok((entries, ledger.way()))
    }
}

/// A session on a socket.
struct Wire {
    stream: TcpStream,
    session: Box<dyn Session>,
    unread: Vec<u8>,
}

impl Wire {
    /// Asks if the protocol must, reads once, and gives what reached `stage`.
    fn reached(&mut self, stage: u8) -> Vec<u64> {
        let mut out = Vec::new();
        if self.session.poll(&mut out).is_some() {
            self.stream.write_all(&out).unwrap();
            self.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        }
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(count) => {
                assert!(count > 0, "the node hung up");
                self.unread.extend_from_slice(&chunk[..count]);
            }
            // Asked too early: nothing is said, and the question is repeated.
            Err(_) if !out.is_empty() => return Vec::new(),
            Err(error) => panic!("no answer: {error}"),
        }
        let mut marks = Marks::default();
        let used = self.session.receive(&self.unread, &mut out, &mut marks).unwrap();
        self.unread.drain(..used);
        let reached = |mark: &Mark| match mark {
            Mark::Reached { tx, stage: found, .. } if *found == stage => Some(*tx),
            Mark::Reached { .. } => None,
            Mark::Ended { .. } => panic!("refused: {mark:?}"),
        };
        marks.list().iter().filter_map(reached).collect()
    }
}

fn every_id() -> Vec<(u64, bool)> {
    (0..COUNT).map(|tx| (tx, true)).collect()
}

/// Claim: whichever way commits are learnt, each transaction is learnt once and stands in the ledger once.
fn a_whole_trial() {
    for (commit, stages) in [("answer", 1), ("observer", 2), ("poll", 2)] {
        let trial = Trial::start(system(
            &[
                ("commit", text(commit)),
                ("stages", Value::Integer(stages)),
                ("service", text("100us")),
            ],
            &[],
        ));
        assert_eq!(trial.deployment.nodes.len(), 1);
        assert!(trial.system.preflight(&trial.deployment).unwrap().iter().all(|found| found.ok));
        assert_eq!(trial.load(), (0..COUNT).collect::<Vec<u64>>(), "{commit}");
        let (entries, way) = trial.ledger().unwrap();
        assert_eq!(entries, every_id(), "{commit}");
        assert_eq!(way, "the node's file, read after it had stored everything");
    }
}

/// Claim: a node that says its metrics is asked for nothing that it has not declared, and says what it has served.
fn metrics_of_its_own() {
    let trial = Trial::start(system(&[("metrics", Value::Boolean(true))], &[]));
    sut::conformance::series_conformance(&trial.deployment.scrape).unwrap();
    let [scrape] = trial.deployment.scrape.as_slice() else { panic!("one node") };
    assert_eq!(trial.load().len() as u64, COUNT);
    let mut stream = TcpStream::connect(scrape.address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    for series in &scrape.series {
        assert!(said.contains(&format!("\n{} ", series.metric)), "{} in {said}", series.metric);
    }
    assert!(said.contains(&format!("\necho_commits_total {COUNT}\n")), "{said}");
    assert!(Trial::start(system(&[], &[])).deployment.scrape.is_empty());
}

/// Claim: a node that was already running serves, and lists its ledger itself; entries of other runs are nobody's.
fn an_attached_node() {
    let other = Trial::start(system(&[], &[]));
    let address = other.deployment.endpoint("frames").unwrap();
    let mut bytes = Vec::new();
    echo_node::protocol::write_submit(&mut bytes, RUN + 1, 77, 0, b"");
    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.write_all(&bytes).unwrap();
    stranger.read_exact(&mut [0; 24]).unwrap();
    let trial = Trial::start(system(&[("attach", text(&address.to_string()))], &[]));
    assert!(trial.deployment.nodes.is_empty());
    assert_eq!(trial.load().len() as u64, COUNT);
    let (entries, way) = trial.ledger().unwrap();
    assert_eq!(entries[0], (77, false));
    assert_eq!(entries[1..], every_id());
    assert_eq!(way, "the node's own listing, over a connection of its own");
}

/// Claim: a lie asked for in the experiment is carried out by the node.
fn a_lost_entry() {
    let trial = Trial::start(system(&[("faults.lose", Value::Integer(100))], &[]));
    assert_eq!(trial.load().len() as u64, COUNT);
    assert_eq!(trial.ledger().unwrap().0.len() as u64, COUNT - COUNT / 100);
}

/// Claim: the preflight names a kind that the node refuses, and leaves nothing in the ledger.
fn a_kind_that_cannot_succeed() {
    let kinds = texts(&["put", "broken"]);
    let trial = Trial::start(system(&[("faults.refuse", text("broken"))], &[("kinds", kinds)]));
    let findings = trial.system.preflight(&trial.deployment).unwrap();
    let said: Vec<(&str, bool)> = findings.iter().map(|f| (f.kind.as_str(), f.ok)).collect();
    assert_eq!(said, [("put", true), ("broken", false)]);
    assert_eq!(findings[1].detail, "refused as invalid");
    assert_eq!(trial.ledger().unwrap().0, []);
}

/// Claim: of a node that was killed, what its file holds is read, and said to be that; of one that does not
/// answer, nothing is concluded.
fn a_killed_node() {
    let mut trial = Trial::start(system(&[], &[]));
    trial.load();
    assert_eq!(trial.ledger().unwrap().0, every_id());
    trial.bed.kill("echo").unwrap();
    trial.bed.stop_all(Duration::from_secs(5)).unwrap();
    let (entries, way) = trial.ledger().unwrap();
    assert_eq!(entries, every_id());
    assert_eq!(way, "the node's file, as it was left when the node ended");
    let mut silent = trial.deployment.clone();
    // Accepts nothing it could answer: a listener of ours that hangs up.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    silent.endpoints = vec![("frames".to_owned(), listener.local_addr().unwrap())];
    let hang_up = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let said = trial.system.ledger(&silent).err().expect("nothing is concluded").to_string();
    hang_up.join().unwrap();
    assert!(said.contains("what it holds back would look lost"), "{said}");
}

/// Claim: of two nodes a connection goes to the first, in its next life to the second and then to the first again; the
/// ledger is what both hold, without an order, also when the first is gone.
fn two_nodes() {
    let mut trial =
        Trial::start(system(&[("nodes", Value::Integer(2)), ("sync", Value::Boolean(true))], &[]));
    let names: Vec<String> = trial.deployment.nodes.iter().map(|node| node.name.clone()).collect();
    assert_eq!(names, ["echo0", "echo1"]);
    let way = |life| {
        let (to, role) = (&trial.deployment, Role::Submit);
        trial.system.route(to, role, 3, life).expect("a way").address
    };
    let first = trial.deployment.endpoint("frames").unwrap();
    let second = trial.deployment.endpoint("frames@echo1").unwrap();
    assert_eq!([1, 2, 3].map(way), [second, first, second]);
    assert_eq!(trial.load().len() as u64, COUNT);
    let mut bytes = Vec::new();
    echo_node::protocol::write_submit(&mut bytes, RUN, 9_999, 0, b"to the second");
    let mut to_second = TcpStream::connect(second).unwrap();
    to_second.write_all(&bytes).unwrap();
    to_second.read_exact(&mut [0; 24]).unwrap();
    trial.bed.kill("echo0").unwrap();
    let limit = trial.bed.clock().now().plus(Duration::from_secs(10));
    while TcpStream::connect(first).is_ok() {
        assert!(trial.bed.clock().now() < limit, "a killed node still listens");
    }
    let (entries, way) = trial.ledger().unwrap();
    let mut all = every_id();
    all.push((9_999, true));
    assert_eq!(entries, all);
    assert_eq!(
        way,
        "each node's in turn: the node's file, as it was left when the node ended; the node's file, read after it had \
         stored everything"
    );
    let ledger = trial.system.ledger(&trial.deployment).unwrap().unwrap();
    assert_eq!(ledger.ordered_from(), None);
}

/// Claim: over HTTP the same node answers, and has no ledger to read.
fn over_http() {
    let trial = Trial::start(system(&[("protocol", text("http"))], &[]));
    assert_eq!(trial.load().len() as u64, COUNT);
    assert!(trial.system.ledger(&trial.deployment).unwrap().is_none());
}
