//! Agents that fail, and runs over agents that are killed: lateness is named, and nothing is left over.

use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;

use super::{LIMIT, QUIETLY, Spread, agents_of, await_rows, end, experiment, nats_server};
use crate::harness::{Echo, Place, Running, audit, await_that, beside_others, pass, processes_of};

/// Claim: an agent that is stopped for a second and a half goes on and delivers all that it owes; it was late, which is
/// said with its name, and the run is invalid.
#[test]
fn a_paused_agent_is_named() {
    let _beside = beside_others();
    let Some(spread) = Spread::new() else { return };
    let (_server, place) = (spread.serve(), &spread.place);
    let agents = [spread.agent(), spread.agent()];
    let run = spread.run(experiment(&spread.echo, "rate = \"100/s\"", 1, "4s"), 2);
    await_rows(place);
    agents[0].signal(Signal::STOP);
    pass(Duration::from_millis(1_500));
    agents[0].signal(Signal::CONT);
    let said = run.finish_within(LIMIT);
    let document = said.json();
    said.expect_code(97);
    assert_eq!(audit(&document, "complete").0, "ok");
    let of = agents_of(place);
    assert!(of.iter().all(|it| it["lost"] == "" && it["not_offered"] == 0), "{of:?}");
    let (outcome, detail) = audit(&document, "send_lag");
    assert_eq!(outcome, "failed", "{detail}");
    let name = format!("-{} was late", agents[0].id());
    assert!(detail.starts_with("agent ") && detail.contains(&name), "{detail}");
    assert!(detail.contains(&format!("-{} p", agents[1].id())), "the other is shown: {detail}");
    end(agents);
}

/// Claim: an agent that is started before NATS says so, waits for it, and takes part in a run afterwards; one that is told
/// to end while it waits ends.
#[test]
fn an_agent_waits_for_nats() {
    let _beside = beside_others();
    let Some(spread) = Spread::new() else { return };
    // Hangs up on whoever comes: an agent that has come has set up all else, and goes on waiting.
    let door = TcpListener::bind(spread.address).expect("it is free");
    let ended = spread.agent();
    drop(door.accept().expect("the agent comes"));
    ended.signal(Signal::TERM);
    ended.finish_within(LIMIT).expect_code(0).expect_stderr("waits for it");
    let early = spread.agent();
    drop(door.accept().expect("the agent comes"));
    drop(door);
    let _server = spread.serve();
    let text = experiment(&spread.echo, "rate = \"100/s\"", 1, "1s");
    let said = spread.run(text, 1).finish_within(LIMIT);
    assert_eq!(audit(&said.json(), "complete").0, "ok");
    early.signal(Signal::TERM);
    let said = early.finish_within(LIMIT);
    said.expect_code(0)
        .expect_stderr("is a nats-server running there?")
        .expect_stderr("waits for runs");
}

/// The names in a folder, if it is there.
fn entries(folder: &std::path::Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Claim: after `kill -9` of a run with agents of its own no process of it is left, the server of NATS and the agents
/// among them, and nothing among the temporary files; the record says that it was cut off.
#[test]
fn a_killed_run_leaves_nothing() {
    let _beside = beside_others();
    if nats_server().is_none() {
        return;
    }
    let (echo, place) = (Echo::start(&[]), Place::new());
    let temporary = place.path().join("temporary");
    std::fs::create_dir(&temporary).expect("the place can be written");
    place.write("experiment.toml", experiment(&echo, "rate = \"100/s\"", 1, "30s"));
    let words: Vec<&str> = QUIETLY.into_iter().chain(["--agents", "2"]).collect();
    let mut command = place.command(&words);
    command.env("ASSAY_CACHE", testbed::install::cache_folder()).env("TMPDIR", &temporary);
    let run = Running::start(&mut command);
    await_rows(&place);
    assert_eq!(entries(&temporary), [format!("assay-agents-{}", run.id())]);
    assert!(processes_of(place.path()).len() >= 3, "{:?}", processes_of(place.path()));
    run.signal(Signal::KILL);
    run.finish();
    await_that(LIMIT, "no process is left", || processes_of(place.path()).is_empty());
    await_that(LIMIT, "no file is left", || entries(&temporary).is_empty());
    let (_, document) = place.report();
    assert_eq!(audit(&document, "complete").0, "failed");
}
