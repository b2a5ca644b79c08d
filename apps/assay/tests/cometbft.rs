//! Real networks of a few CometBFT nodes, loaded for a few seconds: everything is committed, another node's chain
//! says so, and nothing is left behind. Other shapes are in `cometbft/shapes.rs`, what breaks in
//! `cometbft/failures.rs`.

mod failures;
mod shapes;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::{
    self, Place, Running, Said, WRONG_FATES, audit, await_that, beside_others, expect_none, number,
    processes_of, trial,
};
use serde_json::Value;

/// The installed program; `None`, said by name, if there is none.
fn cometbft(test: &str) -> Option<PathBuf> {
    let found = testbed::install::find("cometbft");
    if found.is_none() {
        harness::say(&format!("SKIPPED cometbft tests: {test}: cometbft is not installed"));
    }
    found
}

/// Transactions of the experiment: 50/s for four seconds, none of them warm-up.
const TRANSACTIONS: u64 = 200;

/// `more` are keys of `[system.deploy]`.
fn experiment(program: &Path, more: &str) -> String {
    format!(
        r#"
        name = "cometbft"
        system.kind = "cometbft"
        load = {{ rate = "50/s", connections = 2, warmup = "0s", duration = "4s", timeout = "20s", drain = "20s" }}
        workload = {{ kind = "kvstore", size = "256B" }}
        [system.deploy]
        program = "{}"
        validators = 4
        {more}
        "#,
        program.display()
    )
}

/// Runs it; whatever became of it, no node may be left.
fn run(text: &str) -> (Said, Value, Place) {
    let place = Place::new();
    let (said, document) = place.experiment(text);
    let left = processes_of(place.path());
    assert!(left.is_empty(), "still running: {left:?}");
    (said, document, place)
}

#[track_caller]
fn expect_all_committed(said: &Said, document: &Value) {
    let trial = trial(document);
    assert!(!trial.is_null(), "no trial was recorded\n{}\n{}", said.stdout, said.stderr);
    let counts = &trial["counts"];
    let of = |name: &str| number(&counts[name]);
    assert_eq!(
        (of("due"), of("sent"), of("committed")),
        (TRANSACTIONS, TRANSACTIONS, TRANSACTIONS)
    );
    let fates = &trial["fates"];
    let of = |name: &str| number(&fates[name]);
    assert_eq!((of("entries"), of("once")), (TRANSACTIONS, TRANSACTIONS));
    expect_none(trial, &WRONG_FATES);
    expect_none(trial, &["late"]);
    for name in ["ledger", "conservation", "duplicates", "complete"] {
        assert_eq!(audit(document, name).0, "ok", "{name}: {}", audit(document, name).1);
    }
}

/// The trial's own facts.
fn facts(place: &Place, document: &Value) -> Value {
    let text = std::fs::read_to_string(place.trial_folder(document).join("trial.json"));
    serde_json::from_str(&text.expect("the trial has facts")).expect("they are JSON")
}

/// Claim: what four validators accept over pipelined WebSocket connections is committed, each transaction
/// stands once in the chain of another node than the one that was loaded, and no process is left.
#[test]
fn four_validators_commit_everything() {
    let Some(program) = cometbft("four_validators_commit_everything") else { return };
    let _beside = beside_others();
    let (said, document, place) = run(&experiment(&program, ""));
    expect_all_committed(&said, &document);
    let facts = facts(&place, &document);
    let way = facts["after"]["ledger"]["detail"].as_str().expect("the ledger's way");
    assert!(way.contains(".4:26657 over HTTP, with all mempools empty"), "{way}");
    assert_eq!(facts["declared"]["system"]["cometbft.version"], "0.38.19");
    assert_eq!(facts["after"]["nodes"].as_array().map(Vec::len), Some(4));
}

/// Claim: submitted to all nodes in turn and watched at the last, with settings of the nodes' own file, it is
/// the same.
#[test]
fn submitted_to_each_and_watched_elsewhere() {
    let Some(program) = cometbft("submitted_to_each_and_watched_elsewhere") else { return };
    let _beside = beside_others();
    let more = r#"submit_to = "each"
        observe = 3
        config.consensus.timeout_commit = "300ms""#;
    let (said, document, _place) = run(&experiment(&program, more));
    expect_all_committed(&said, &document);
}

/// Claim: one of four validators is killed in mid-load: more than two thirds go on, so everything is committed
/// all the same, and the chain is read from one that lives.
#[test]
fn three_of_four_go_on() {
    let Some(program) = cometbft("three_of_four_go_on") else { return };
    let _beside = beside_others();
    let killed = "[[fault]]\nat = \"1s\"\nkill = \"node3\"\n";
    let text = format!("{}\n{killed}", experiment(&program, ""));
    let (said, document, place) = run(&text);
    expect_all_committed(&said, &document);
    let facts = facts(&place, &document);
    let ended = facts["after"]["nodes"][3]["ended"].as_str().expect("how it ended");
    assert!(ended.contains("SIGKILL"), "{ended}");
    let way = facts["after"]["ledger"]["detail"].as_str().expect("the ledger's way");
    assert!(way.contains(".3:26657 over HTTP"), "{way}");
}

/// Where clients reach the nodes of a run that is under way, as its nodes' own files say.
fn addresses(place: &Place) -> Vec<String> {
    let testnet = place.run_folder().join("settings/default/trial-0/nodes/testnet");
    let address = |node: usize| {
        let path = testnet.join(format!("node{node}/config/config.toml"));
        let file = std::fs::read_to_string(path).expect("the node has a file");
        let listens = file.lines().filter_map(|line| line.strip_prefix("laddr = \"tcp://"));
        let mut listens = listens.map(|rest| rest.trim_end_matches('"').to_owned());
        listens.find(|address| address.ends_with(":26657")).expect("the node serves clients")
    };
    (0..4).map(address).collect()
}

/// Claim: in a network that a run has attached to, transactions of others are not held against it; in one that
/// a run has started itself, each of them is a phantom.
#[test]
fn attached_to_a_network_of_another_run() {
    let Some(program) = cometbft("attached_to_a_network_of_another_run") else { return };
    let _beside = beside_others();
    let owner = Place::new();
    owner.write(
        "experiment.toml",
        experiment(&program, "").replace("duration = \"4s\"", "duration = \"12s\""),
    );
    let quietly = ["run", "experiment.toml", "--json", "--progress", "none", "--no-calibration"];
    let running = Running::start(&mut owner.command(&quietly));
    await_that(Duration::from_secs(90), "the load has begun", || {
        let rows = |run: PathBuf| run.join("settings/default/trial-0/rows.log");
        let size = |log: PathBuf| std::fs::metadata(log).map_or(0, |log| log.len());
        owner.runs().pop().is_some_and(|run| size(rows(run)) > 500)
    });
    let nodes = addresses(&owner);
    let attached = experiment(&program, &format!("attach = {nodes:?}\nobserve = 2"));
    let attached: Vec<&str> = attached
        .lines()
        .filter(|line| !line.contains("program =") && !line.contains("validators ="))
        .collect();
    let (said, document, _place) = run(&attached.join("\n"));
    expect_all_committed(&said, &document);
    let said = running.finish();
    let document: Value = serde_json::from_str(&said.stdout).expect("a document");
    let fates = &trial(&document)["fates"];
    assert_eq!(number(&fates["once"]), 12 * 50);
    assert_eq!(number(&fates["phantom"]), TRANSACTIONS, "{fates}");
    said.expect_code(99);
}

/// Claim: a mempool of 20 transactions refuses what finds it full; refused ones are overloaded, are not in the
/// chain, and are not counted as success.
#[test]
fn a_full_mempool_is_said() {
    let Some(program) = cometbft("a_full_mempool_is_said") else { return };
    let _beside = beside_others();
    let more = "config.mempool.size = 20";
    let text = experiment(&program, more);
    let (_, document, _place) = run(&text);
    let trial = trial(&document);
    let counts = &trial["counts"];
    let overloaded = number(&counts["rejected_by_class"]["overloaded"]);
    assert!(overloaded > 0, "{counts}");
    assert_eq!(number(&counts["committed"]) + overloaded, TRANSACTIONS, "{counts}");
    assert_eq!(number(&trial["fates"]["once"]), number(&counts["committed"]));
    assert_eq!(number(&trial["fates"]["refused_yet_present"]), 0);
}

/// Claim: a program that is no cometbft, a setting that it does not have, and a network that does not begin in
/// time are each named, with exit code 1, and nothing is left.
#[test]
fn a_network_that_cannot_start_is_named() {
    let echo = Path::new("/bin/echo");
    let (said, _, _place) = run(&experiment(echo, ""));
    said.expect_code(1).expect_stderr("this adapter knows 0.38.x only");
    let Some(program) = cometbft("a_network_that_cannot_start_is_named") else { return };
    let _beside = beside_others();
    let (said, _, _place) = run(&experiment(&program, "config.mempool.sice = 20"));
    said.expect_code(1).expect_stderr("has no setting `mempool.sice`");
    let (said, _, _place) = run(&experiment(&program, "ready_within = \"50ms\""));
    said.expect_code(1).expect_stderr("node0");
}
