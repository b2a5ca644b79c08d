//! A broker of others: three servers of NATS JetStream, each on a disk of the testbed's own, cut from their power.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{
    self, DISK, Place, Running, Server, beside_others, has_all, number, processes_of, until,
};

/// Claim: a stream with three replicas that syncs every two minutes, which is its servers' default, loses acknowledged
/// messages when all three lose their power, each named by id; it is read by a consumer on another server than its leader,
/// and no process is left.
#[test]
fn power_of_all_takes_what_was_not_synced() {
    if !has_all("nats", &["nats-server", DISK]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let document = place.toy("durability/nats", &[]);
    let trial = &document["settings"][0]["trials"][0];
    let fates = &trial["fates"];
    assert!(number(&fates["lost"]) > 0, "{fates}");
    assert!(fates["examples"]["lost"].as_array().is_some_and(|lost| !lost.is_empty()), "{fates}");
    assert_eq!(number(&fates["phantom"]), 0, "{fates}");
    assert_eq!(trial["faults"].as_array().map_or(0, Vec::len), 3, "each server had its own cut");
    assert!(processes_of(place.path()).is_empty(), "{:?}", processes_of(place.path()));
}

/// Asks JetStream over a connection of its own.
fn ask(server: SocketAddr, subject: &str, body: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(server).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    let length = body.len();
    let said = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB inbox 1\r\nPUB $JS.API.{subject} inbox {length}\r\n{body}\r\n"
    );
    stream.write_all(said.as_bytes()).ok()?;
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("MSG "))?;
    serde_json::from_str(&lines.next()?).ok()
}

/// Claim: the stream is read anew where acknowledged messages are missing, from its first message on: of a stream from which
/// one is deleted, exactly that one is lost.
#[test]
fn a_second_reading_begins_at_the_first_message() {
    let Some(program) = testbed::install::find("nats-server") else {
        harness::say("SKIPPED nats tests: they take nats-server");
        return;
    };
    let _beside = beside_others();
    let place = Place::new();
    let address = Server::free_address();
    let store = place.path().join("store").display().to_string();
    let mut command = Command::new(program);
    command.args(["-js", "-sd", &store, "-a", &address.ip().to_string()]);
    command.args(["-p", &address.port().to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Server::start(&mut command, address);
    place.write(
        "experiment.toml",
        format!(
            "name = \"one\"\n[system]\nkind = \"nats\"\n[system.deploy]\nattach = [\"{address}\"]\n[load]\nrate = \"50/s\"\n\
             warmup = \"0s\"\nduration = \"3s\"\ntimeout = \"5s\"\n"
        ),
    );
    let quietly = ["run", "experiment.toml", "--json", "--progress=none", "--no-calibration"];
    let run = Running::start(&mut place.command(&quietly));
    let deleted = until(Duration::from_secs(60), || {
        let streams = ask(address, "STREAM.NAMES", "")?;
        let stream = streams["streams"].as_array()?.first()?.as_str()?.to_owned();
        let answer = ask(address, &format!("STREAM.MSG.DELETE.{stream}"), "{\"seq\":2}")?;
        (answer["success"] == true).then_some(())
    });
    assert!(deleted.is_some(), "a message was deleted while the load ran");
    let said = run.finish();
    let document = said.json();
    let fates = &document["settings"][0]["trials"][0]["fates"];
    assert_eq!(number(&fates["lost"]), 1, "{fates} {}", said.stderr);
    assert!(number(&fates["once"]) > 1, "{fates}");
}
