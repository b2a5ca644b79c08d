//! Loads over several agents and a real `nats-server`: their union is the plan of one host, and what becomes of an agent or
//! of NATS in the middle of a run is said and counted.

mod failing;
mod merged;
mod network;
mod placed;
mod secured;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use record::RunFolder;
use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{
    Echo, Place, Running, Server, audit, await_that, beside_others, pass, say, trial,
};

const LIMIT: Duration = Duration::from_secs(60);

/// The server, or nothing with a word about it where it is not installed.
fn nats_server() -> Option<PathBuf> {
    let found = testbed::install::find("nats-server");
    if found.is_none() {
        say(
            "agents: skipped: nats-server is not installed; run: assay doctor --install nats-server",
        );
    }
    found
}

/// A system to load, the folder that agents and runs are started in, and the address of their NATS.
struct Spread {
    echo: Echo,
    place: Place,
    program: PathBuf,
    address: SocketAddr,
    url: String,
}

impl Spread {
    /// Nothing where `nats-server` is not installed.
    fn new() -> Option<Self> {
        let program = nats_server()?;
        let address = Server::free_address();
        let url = format!("nats://{address}");
        Some(Self { echo: Echo::start(&[]), place: Place::new(), program, address, url })
    }

    /// Starts NATS.
    fn serve(&self) -> Server {
        let mut command = Command::new(&self.program);
        let (host, port) = (self.address.ip().to_string(), self.address.port().to_string());
        command.args(["-a", &host, "-p", &port]).stdout(Stdio::null()).stderr(Stdio::null());
        Server::start(&mut command, self.address)
    }

    /// Starts an agent, and waits until it says that it waits.
    fn agent(&self) -> Running {
        let spool = self.place.path().display().to_string();
        let arguments = ["agent", "--nats", &self.url, "--group", "g", "--spool", &spool];
        Running::start(&mut self.place.command(&arguments))
    }

    /// Starts a run of this text over so many agents.
    fn run(&self, text: String, agents: u8) -> Running {
        self.place.write("experiment.toml", text);
        let spread = format!("g={agents}");
        let spread = ["--agents", &spread, "--nats", &self.url];
        let words: Vec<&str> = QUIETLY.into_iter().chain(spread).collect();
        Running::start(&mut self.place.command(&words))
    }
}

fn end(agents: impl IntoIterator<Item = Running>) {
    for agent in agents {
        agent.signal(Signal::TERM);
        agent.finish();
    }
}

fn experiment(echo: &Echo, schedule: &str, threads: u32, length: &str) -> String {
    experiment_at(&echo.http, schedule, threads, length)
}

fn experiment_at(http: &str, schedule: &str, threads: u32, length: &str) -> String {
    format!(
        "name = \"spread\"\nseed = 11\n[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://{http}/\"\n[load]\n{schedule}\n\
         connections = 8\nthreads = {threads}\nwarmup = \"500ms\"\nduration = \"{length}\"\ntimeout = \"2s\"\n",
    )
}

const QUIETLY: [&str; 6] =
    ["run", "experiment.toml", "--json", "--progress", "none", "--no-calibration"];

/// Transaction, due time and worker of each row of the newest run, in order.
fn due(place: &Place) -> Vec<(u64, i64, u8)> {
    let run = RunFolder::open(place.run_folder()).expect("a run folder");
    let trials = run.trials().expect("it has trials");
    let mut rows = Vec::new();
    let read = trials[0].for_each_batch(|batch| {
        rows.extend(batch.iter().map(|row| (row.tx, row.due, row.worker)));
    });
    read.expect("its rows can be read");
    rows.sort_unstable();
    rows
}

fn agents_of(place: &Place) -> Vec<Value> {
    let run = RunFolder::open(place.run_folder()).expect("a run folder");
    let path = run.trials().expect("it has trials")[0].path().join("trial.json");
    let text = std::fs::read_to_string(path).expect("it has facts");
    let facts: Value = serde_json::from_str(&text).expect("they are JSON");
    facts["load"]["agents"].as_array().cloned().unwrap_or_default()
}

/// Waits until rows of the first agent have come.
fn await_rows(place: &Place) {
    await_that(LIMIT, "rows have come", || {
        let all = place.runs().pop().map(|run| run.join("settings/default/trial-0/rows-0.log"));
        all.and_then(|path| path.metadata().ok()).is_some_and(|it| it.len() > 1_000)
    });
}

/// Claim: two agents on this machine offer exactly the transactions of one host with as many threads, to the nanosecond and
/// by the same workers; their rows are one run, and one more line says who carried it out.
#[test]
fn two_agents_are_one_host() {
    let _beside = beside_others();
    if nats_server().is_none() {
        return;
    }
    let echo = Echo::start(&[]);
    for schedule in ["arrival = \"poisson\"\nrate = \"200/s\"", "rate = \"173/s\""] {
        let place = Place::new();
        place.write("experiment.toml", experiment(&echo, schedule, 1, "1s"));
        let arguments: Vec<&str> = QUIETLY.into_iter().chain(["--agents", "2"]).collect();
        let said = place.assay_with_programs(&arguments);
        assert!(said.stderr.contains("2 agents on this machine"), "{}", said.stderr);
        let agents = agents_of(&place);
        assert_eq!(agents.len(), 2, "{}", said.stderr);
        assert!(agents.iter().all(|it| it["lost"] == "" && it["not_offered"] == 0), "{agents:?}");
        let spread = due(&place);

        let alone = Place::new();
        alone.write("experiment.toml", experiment(&echo, schedule, 2, "1s"));
        alone.assay(&QUIETLY);
        assert_eq!(spread, due(&alone));
        assert!(spread.iter().any(|row| row.2 == 1) && spread.iter().any(|row| row.2 == 0));
    }
}

/// Claim: an agent that is killed in the middle is named, its share is counted as not offered, and the run is invalid; it
/// costs no drain, which is longer here than the test allows, and leaves no file.
#[test]
fn a_killed_agent_is_counted() {
    let _beside = beside_others();
    let Some(spread) = Spread::new() else { return };
    let (_server, place) = (spread.serve(), &spread.place);
    let (one, other) = (spread.agent(), spread.agent());
    let text = experiment(&spread.echo, "rate = \"100/s\"", 1, "4s") + "drain = \"5m\"\n";
    let run = spread.run(text, 2);
    await_rows(place);
    let spool = place.path().join(format!("assay-agent-{}", one.id()));
    assert!(spool.is_dir());
    one.signal(Signal::KILL);
    one.finish();
    await_that(LIMIT, "its rows are gone", || !spool.exists());
    let said = run.finish_within(LIMIT);
    said.expect_code(97);
    let document = said.json();
    let (outcome, detail) = audit(&document, "complete");
    assert_eq!(outcome, "failed", "{detail}");
    assert!(detail.contains("was lost") && detail.contains("were not offered"), "{detail}");
    let agents = agents_of(place);
    let lost: Vec<_> = agents.iter().filter(|it| it["lost"] != "").collect();
    assert_eq!(lost.len(), 1, "{agents:?}");
    let sum = |name: &str| agents.iter().filter_map(|it| it[name].as_u64()).sum::<u64>();
    assert_eq!(
        sum("rows") + sum("not_offered"),
        450,
        "all that was planned is counted: {agents:?}"
    );
    end([other]);
}

/// Claim: a NATS that is killed in the middle and comes back costs no row and no verdict.
#[test]
fn a_killed_nats_costs_nothing() {
    let _beside = beside_others();
    let Some(spread) = Spread::new() else { return };
    let (server, place) = (spread.serve(), &spread.place);
    let agents = [spread.agent(), spread.agent()];
    let run = spread.run(experiment(&spread.echo, "rate = \"100/s\"", 1, "4s"), 2);
    await_rows(place);
    drop(server);
    pass(Duration::from_secs(2));
    let _server = spread.serve();
    let said = run.finish_within(LIMIT);
    said.expect_stderr("NATS is gone").expect_stderr("NATS is back");
    let of = agents_of(place);
    assert!(of.iter().all(|it| it["lost"] == ""), "{of:?}");
    assert_eq!(due(place).len(), 450);
    assert_eq!(audit(&said.json(), "complete").0, "ok");
    assert!(trial(&said.json()).is_object());
    end(agents);
}

/// An agent of another version, which answers every call.
fn foreign_agent(address: SocketAddr) {
    let mut stream = TcpStream::connect(address).expect("NATS is there");
    stream.write_all(b"CONNECT {\"verbose\":false}\r\nSUB assay.g.call 1\r\n").expect("it reads");
    std::thread::spawn(move || {
        let (mut heard, mut part) = (String::new(), [0; 4_096]);
        while let Ok(count @ 1..) = stream.read(&mut part) {
            heard.push_str(&String::from_utf8_lossy(&part[..count]));
            let Some((_, rest)) = heard.split_once("\"run\":\"") else { continue };
            let Some((run, _)) = rest.split_once('"') else { continue };
            let hello = "{\"version\":\"assay.agents/9\",\"from\":\"old-1\",\"said\":\"hello\"}\n";
            let message = format!("PUB assay.g.run.{run} {}\r\n{hello}\r\n", hello.len());
            let _ = stream.write_all(message.as_bytes());
            heard.clear();
        }
    });
}

/// Claim: an agent of another version is refused by name, with both versions; too few agents are said with those that
/// answered; nothing is sent in either case.
#[test]
fn foreign_and_missing_agents_are_refused() {
    let _beside = beside_others();
    let Some(spread) = Spread::new() else { return };
    let _server = spread.serve();
    let run = || {
        let text = experiment(&spread.echo, "rate = \"10/s\"", 1, "1s");
        spread.run(text, 2).finish_within(LIMIT)
    };
    let said = run();
    said.expect_code(1).expect_stderr("expected 2 idle agents in group g, got none");
    foreign_agent(spread.address);
    let said = run();
    said.expect_code(1).expect_stderr("old-1").expect_stderr("assay.agents/9");
    said.expect_stderr("assay.agents/1");
}
