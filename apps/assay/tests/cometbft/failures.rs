//! Networks that break: each gives a clear message or a clear report, and leaves nothing behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::harness::{
    self, Place, Running, audit, await_that, beside_others, number, processes_of, trial,
};
use rustix::process::Signal;
use serde_json::Value;

use super::{TRANSACTIONS, cometbft, experiment, facts, run};

/// Writes a program.
fn program(place: &Place, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = place.write("program", format!("#!/bin/sh\n{script}"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// An experiment with the program that was written.
fn with_own_program(more: &str) -> String {
    experiment(Path::new("program"), more)
}

fn runs(command: &[&str]) -> bool {
    let mut command = Command::new(command[0])
        .args(&command[1..])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    command.as_mut().is_ok_and(|status| status.success())
}

/// Every transaction's fate: what is due is committed, refused or unknown, and the ledger has what is committed.
#[track_caller]
fn expect_every_fate_known(document: &Value) {
    let trial = trial(document);
    let counts = &trial["counts"];
    let of = |name: &str| number(&counts[name]);
    let sum = of("committed") + of("rejected") + of("unknown") + of("shed");
    assert_eq!((of("due"), sum), (TRANSACTIONS, TRANSACTIONS), "{counts}");
    let fates = &trial["fates"];
    let of = |name: &str| number(&fates[name]);
    assert_eq!((of("lost"), of("phantom"), of("duplicate")), (0, 0, 0), "{fates}");
    assert_eq!(of("entries"), of("once") + of("late") + of("refused_yet_present"), "{fates}");
    for name in ["ledger", "conservation"] {
        assert_eq!(audit(document, name).0, "ok", "{name}: {}", audit(document, name).1);
    }
}

/// Claim: the validator that is loaded and watched is killed in mid-load. Its clients' transactions end as what
/// they are, the chain is read from a node that lives, and every fate is known.
#[test]
fn the_loaded_node_is_killed() {
    let Some(program) = cometbft("the_loaded_node_is_killed") else { return };
    let _beside = beside_others();
    let killed = "[[fault]]\nat = \"2s\"\nkill = \"node0\"\n";
    let text =
        experiment(&program, "observe = [0, 2]").replace("timeout = \"20s\"", "timeout = \"4s\"");
    let (said, document, place) = run(&format!("{text}\n{killed}"));
    assert!(!trial(&document).is_null(), "no trial\n{}\n{}", said.stdout, said.stderr);
    expect_every_fate_known(&document);
    let committed = number(&trial(&document)["counts"]["committed"]);
    assert!(committed < TRANSACTIONS, "the killed node's clients have answers to all");
    if committed == 0 {
        harness::say(
            "the_loaded_node_is_killed: nothing was committed before the kill, so that none of it could be lost",
        );
    }
    let ended = facts(&place, &document)["after"]["nodes"][0]["ended"].clone();
    assert!(ended.as_str().is_some_and(|how| how.contains("SIGKILL")), "{ended}");
}

/// Claim: a validator whose disk is full stops making blocks and goes on answering. The others go on, everything
/// is committed, the chain is read without it, and the report says which node stood still.
#[test]
fn a_full_disk_stops_one_node() {
    let Some(cometbft) = cometbft("a_full_disk_stops_one_node") else { return };
    if !runs(&["unshare", "-m", "true"]) {
        harness::say(
            "SKIPPED cometbft tests: a_full_disk_stops_one_node: no mount namespaces here",
        );
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    // The disk is the node's own: it goes with the node's mount namespace.
    program(
        &place,
        &format!(
            r#"real={}
case "$*" in
"start --home "*/node3)
    exec unshare -m sh -c 'mkdir "$3/kept" && cp "$3"/data/* "$3/kept" && mount -t tmpfs -o size=600k small "$3/data" && cp "$3"/kept/* "$3/data" && exec "$0" "$@"' "$real" "$@" ;;
esac
exec "$real" "$@"
"#,
            cometbft.display()
        ),
    );
    let text = with_own_program("").replace("256B", "4KiB");
    let (said, document) = place.experiment(&text);
    assert!(!trial(&document).is_null(), "no trial\n{}\n{}", said.stdout, said.stderr);
    expect_every_fate_known(&document);
    assert_eq!(number(&trial(&document)["counts"]["committed"]), TRANSACTIONS);
    let facts = facts(&place, &document);
    let way = facts["after"]["ledger"]["detail"].as_str().expect("the ledger's way");
    assert!(
        way.contains(".3:26657 over HTTP") && way.contains("without what stands still"),
        "{way}"
    );
    let log = place.trial_folder(&document).join("nodes/node3.log");
    let log = std::fs::read_to_string(log).expect("the node has a log");
    assert!(log.contains("no space left on device"), "{log}");
    let left = processes_of(place.path());
    assert!(left.is_empty(), "still running: {left:?}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("there is /proc");
    assert!(!mounts.contains(&place.path().display().to_string()), "{mounts}");
}

/// Claim: a program of another version is named with what it said, before anything is started.
#[test]
fn another_version_is_named() {
    let place = Place::new();
    program(&place, "echo 1.0.1");
    let (said, _) = place.experiment(&with_own_program(""));
    said.expect_code(1).expect_stderr("it says `1.0.1`, and this adapter knows 0.38.x only");
}

/// Claim: a node that ends while the network begins is named at once, not after the time that the network was
/// given, and with its own last words.
#[test]
fn a_node_that_crashes_is_named() {
    let Some(cometbft) = cometbft("a_node_that_crashes_is_named") else { return };
    let _beside = beside_others();
    let more = "config.consensus.timeout_commit = \"soon\"";
    let (said, ..) = run(&experiment(&cometbft, more));
    // All of them have that setting, and any may end first.
    said.expect_code(1)
        .expect_stderr("ended before it was ready: exited with status 1")
        .expect_stderr("time: invalid duration \"soon\"");
    let place = Place::new();
    let script = format!(
        "case \"$*\" in \"start --home \"*/node2) echo out of luck >&2; exit 7;; esac\nexec {} \"$@\"\n",
        cometbft.display()
    );
    program(&place, &script);
    let (said, _) = place.experiment(&with_own_program(""));
    said.expect_code(1)
        .expect_stderr("node `node2` ended before it was ready: exited with status 7")
        .expect_stderr("out of luck");
    let left = processes_of(place.path());
    assert!(left.is_empty(), "still running: {left:?}");
}

/// Claim: a network without a majority of votes never begins, and after its time that is said, with how far it
/// came and what to do.
#[test]
fn a_network_that_never_begins_is_named() {
    let Some(cometbft) = cometbft("a_network_that_never_begins_is_named") else { return };
    let _beside = beside_others();
    let place = Place::new();
    let asleep = format!(
        "case \"$*\" in \"start --home \"*/node[23]) exec sleep 60;; esac\nexec {} \"$@\"\n",
        cometbft.display()
    );
    program(&place, &asleep);
    let (said, _) = place.experiment(&with_own_program("ready_within = \"15s\""));
    said.expect_code(1)
        .expect_stderr("node `node0` was not at height 2 15s after a network of 4 nodes began")
        .expect_stderr("is at height 0 and has 1 peers; raise system.deploy.ready_within");
    let left = processes_of(place.path());
    assert!(left.is_empty(), "still running: {left:?}");
}

/// Claim: where another program listens on a port of the nodes on all addresses, no network of addresses is free,
/// and the message says which ports and how to find who has them.
#[test]
fn ports_that_are_all_taken_are_named() {
    let Some(cometbft) = cometbft("ports_that_are_all_taken_are_named") else { return };
    // In a network of its own, so that no other test finds its ports taken.
    let own = ["unshare", "-rn"];
    if !runs(&[own[0], own[1], "ip", "link", "set", "lo", "up"]) {
        harness::say(
            "SKIPPED cometbft tests: ports_that_are_all_taken_are_named: no network namespaces here",
        );
        return;
    }
    let place = Place::new();
    place.write("experiment.toml", experiment(&cometbft, ""));
    let script = format!(
        "ip link set lo up && {assay} serve echo --listen 0.0.0.0:26657 >served & until grep -q ready served; do sleep 0.05; done; {assay} run experiment.toml --json --progress none --no-calibration; code=$?; kill $!; wait; exit $code",
        assay = harness::ASSAY
    );
    let mut command = place.started_by(&[own[0], own[1], "sh", "-c", &script], &[]);
    let said = harness::finish(&mut command);
    said.expect_code(1)
        .expect_stderr("ports 26656, 26657 and 26660 could not be bound on 4 addresses")
        .expect_stderr("`ss -ltn` says so");
    let left = processes_of(place.path());
    assert!(left.is_empty(), "still running: {left:?}");
}

/// The network namespaces of processes: `net:[4026532008]`, as the kernel tells them apart.
fn namespaces(of: impl Iterator<Item = u32>) -> BTreeSet<PathBuf> {
    of.filter_map(|id| std::fs::read_link(format!("/proc/{id}/ns/net")).ok()).collect()
}

/// Processes on this machine that are in one of these namespaces or hold one by a descriptor. A namespace that nobody
/// is in and nobody holds is no more, nor are its devices.
fn holders(namespaces: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let processes = entries(Path::new("/proc")).map(|entry| entry.path());
    let is_held =
        |link: &Path| std::fs::read_link(link).is_ok_and(|target| namespaces.contains(&target));
    let holds = |process: &PathBuf| {
        is_held(&process.join("ns/net"))
            || entries(&process.join("fd")).any(|descriptor| is_held(&descriptor.path()))
    };
    processes.filter(holds).collect()
}

/// Claim: kill -9 of Assay itself while a network on links of its own is loaded leaves no node, and no namespace, which
/// is no device; what was recorded can be reported, invalid.
#[test]
fn a_killed_run_leaves_no_network() {
    let test = "a_killed_run_leaves_no_network";
    let Some(cometbft) = cometbft(test) else { return };
    if !runs(&["unshare", "-n", "test", "-w", "/dev/net/tun"]) {
        harness::say(&format!(
            "SKIPPED cometbft tests: {test}: no namespaces and TUN devices here"
        ));
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let links = "[links]\ndelay = \"5ms\"\n";
    place.write("experiment.toml", format!("{}\n{links}", experiment(&cometbft, "")));
    let arguments = ["run", "experiment.toml", "--progress", "none", "--no-calibration"];
    let running = Running::start(&mut place.command(&arguments));
    await_that(Duration::from_secs(90), "the load has begun", || {
        let rows = |run: PathBuf| run.join("settings/default/trial-0/rows.log");
        let size = |log: PathBuf| std::fs::metadata(log).map_or(0, |log| log.len());
        place.runs().pop().is_some_and(|run| size(rows(run)) > 500)
    });
    let all = processes_of(place.path());
    let nodes = all.iter().filter(|process| process.command.contains(" start --home "));
    assert_eq!(namespaces(nodes.map(|node| node.id)).len(), 4, "one for each node: {all:?}");
    // The trial's own processes may be in the instrument's namespace; Assay itself began in this test's.
    let used = namespaces(all.iter().map(|process| process.id));
    let host = namespaces(std::iter::once(std::process::id()));
    let used: BTreeSet<PathBuf> = used.difference(&host).cloned().collect();
    assert!(!holders(&used).is_empty());
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, -1);
    await_that(Duration::from_secs(5), "no process is left", || {
        processes_of(place.path()).is_empty()
    });
    await_that(Duration::from_secs(5), "no namespace is held", || holders(&used).is_empty());
    let (_, document) = place.report();
    assert_eq!(document["verdict"], "invalid");
    assert!(number(&trial(&document)["counts"]["due"]) > 0, "{}", trial(&document)["counts"]);
}
