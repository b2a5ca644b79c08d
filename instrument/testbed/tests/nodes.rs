//! Nodes are real processes: they are started, disturbed and ended, and nothing of them is left behind whatever
//! ends first. Everything here is a shell or this very test binary.
#![expect(clippy::unwrap_used, reason = "what the tests stand on fails as they do")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clock::Clock;
use testbed::{Account, FOLDER_AT, NodeSpec, Testbed, TestbedError};

const PATIENCE: Duration = Duration::from_secs(10);

/// A node with a child of its own, which says who they are.
const FAMILY: &str = "sleep 300 & echo ready child=$! self=$$; wait";

fn shell(name: &str, script: &str) -> NodeSpec {
    NodeSpec::new(name, "/bin/sh").args(["-c", script])
}

fn bed(folder: &Path) -> Testbed {
    Testbed::new(folder, Clock::start())
}

/// The state letter of a process; `None` when it is gone or only waits to be reaped.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    (!matches!(state, 'Z' | 'X')).then_some(state)
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::start();
    let deadline = clock.now().plus(PATIENCE);
    while !is_so() {
        assert!(clock.now() < deadline, "waited too long until {what}");
        clock.sleep_until(clock.now().plus(Duration::from_millis(2)));
    }
}

/// Starts [`FAMILY`] and gives the ids of both.
fn start_family(bed: &mut Testbed, name: &str) -> [u32; 2] {
    let node = bed.spawn(shell(name, FAMILY)).unwrap();
    let said = bed.ready_line(name, PATIENCE).unwrap();
    assert_eq!(said["self"], node.pid.to_string());
    [node.pid, said["child"].parse().unwrap()]
}

fn all_gone(pids: &[u32]) {
    wait_until(&format!("{pids:?} are gone"), || pids.iter().all(|&pid| state(pid).is_none()));
}

/// Every process below this one.
fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().map(|word| word.parse().unwrap()) {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

/// Claim: a node is ready when it says so, and what it says is handed over; both streams are in its log.
#[test]
fn a_ready_line_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(&folder.path().join("nodes"));
    let spec =
        shell("a.1", "echo starting $COLOUR in $PWD >&2; echo ready addr=127.0.0.1:7 odd; cat")
            .env("COLOUR", "green")
            .cwd("/usr");
    let node = bed.spawn(spec).unwrap();
    let said = bed.ready_line("a.1", PATIENCE).unwrap();
    assert_eq!(
        said.into_iter().collect::<Vec<_>>(),
        [("addr".to_owned(), "127.0.0.1:7".to_owned())]
    );
    let log = std::fs::read_to_string(&node.log).unwrap();
    assert_eq!(log, "starting green in /usr\nready addr=127.0.0.1:7 odd\n");
    let facts = bed.nodes();
    assert_eq!(
        (facts[0].name.as_str(), facts[0].pid, facts[0].ended.as_str()),
        ("a.1", node.pid, "")
    );
}

/// Claim: what goes wrong at the start is told with the node's own words and what to do.
#[test]
fn a_node_that_does_not_start_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    bed.spawn(shell("dies", "echo no such disk >&2; exit 3")).unwrap();
    let error = bed.ready_line("dies", PATIENCE).unwrap_err().to_string();
    assert_eq!(
        error,
        "node `dies` ended before it was ready: exited with status 3; its last lines:\nno such disk"
    );
    bed.spawn(shell("mute", "cat")).unwrap();
    let error =
        bed.wait_ready("mute", || false, Duration::from_millis(20)).unwrap_err().to_string();
    assert_eq!(error, "node `mute` was not ready after 20ms; it wrote nothing");
    bed.spawn(shell("last-word", "echo ready x=1; exit 0")).unwrap();
    assert_eq!(bed.ready_line("last-word", PATIENCE).unwrap()["x"], "1");
    let error = bed.spawn(NodeSpec::new("none", "no-such-program")).unwrap_err().to_string();
    assert!(
        error.starts_with("node `none` could not be started with no-such-program: No such file"),
        "{error}"
    );
    assert!(error.ends_with("; install it, or give its full path"), "{error}");
    assert!(matches!(bed.spawn(shell("mute", "")), Err(TestbedError::NameTaken(_))));
    assert!(matches!(bed.spawn(shell("../up", "")), Err(TestbedError::BadName(_))));
    assert_eq!(
        bed.kill("nobody").unwrap_err().to_string(),
        "there is no node `nobody`; there are: dies, mute, last-word"
    );
    assert_eq!(
        bed.pause("dies").unwrap_err().to_string(),
        "node `dies` cannot be asked to pause: it has ended (exited with status 3)"
    );
}

/// Claim: pause stops the node and its children, resume lets them go on.
#[test]
fn pause_and_resume_reach_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    let family = start_family(&mut bed, "n");
    bed.pause("n").unwrap();
    wait_until("both are stopped", || family.iter().all(|&pid| state(pid) == Some('T')));
    bed.resume("n").unwrap();
    wait_until("both go on", || family.iter().all(|&pid| state(pid) == Some('S')));
    // A paused node can be ended too.
    bed.pause("n").unwrap();
    bed.stop_all(PATIENCE).unwrap();
    all_gone(&family);
}

/// Claim: a killed node's children go with it, it can be started again under its name, and every end is kept.
#[test]
fn kill_and_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    let first = start_family(&mut bed, "n");
    bed.kill("n").unwrap();
    wait_until("its end is noticed", || !bed.ends().is_empty());
    all_gone(&first);
    assert_eq!(bed.nodes()[0].ended, "killed by SIGKILL, as asked");
    let second = bed.restart("n").unwrap();
    assert_ne!(second.pid, first[0]);
    assert_eq!(bed.ready_line("n", PATIENCE).unwrap()["self"], second.pid.to_string());
    assert_eq!(bed.nodes()[0].ended, "");
    let third = bed.restart("n").unwrap();
    bed.ready_line("n", PATIENCE).unwrap();
    let ends: Vec<(u32, bool)> = bed.ends().iter().map(|end| (end.pid, end.asked)).collect();
    assert_eq!(ends, [(first[0], true), (second.pid, true)]);
    bed.stop_all(PATIENCE).unwrap();
    assert_eq!(bed.nodes()[0].ended, "", "an end by tear-down is not one of its own");
    assert_eq!(bed.ends()[2].pid, third.pid);
}

/// Claim: a node that dies in mid-run is noticed without being asked about, with how and when, and what it had
/// started is ended.
#[test]
fn a_death_in_mid_run_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    let script = "sleep 300 & echo ready child=$!; read line; exit 7";
    let control = bed.control();
    bed.spawn(shell("n", script)).unwrap();
    let child: u32 = bed.ready_line("n", PATIENCE).unwrap()["child"].parse().unwrap();
    let pid = control.nodes()[0].pid;
    Command::new("/bin/kill").args(["-SEGV", &pid.to_string()]).status().unwrap();
    // Nobody asks the testbed: the child's end shows that the keeper noticed.
    all_gone(&[child]);
    let end = control.ends().remove(0);
    assert_eq!((end.how.as_str(), end.asked), ("killed by SIGSEGV", false));
    assert!(end.at <= bed.clock().now());
    assert_eq!(control.nodes()[0].ended, "killed by SIGSEGV");
}

/// Claim: at the end each node gets end of file and SIGTERM to end by itself; who ignores both is killed after the grace.
#[test]
fn stop_is_gentle_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    let at_eof = bed.spawn(shell("at-eof", "trap '' TERM; echo ready; cat; echo saw eof")).unwrap();
    let at_term = bed
        .spawn(shell(
            "at-term",
            "trap 'echo saw term; exit' TERM; echo ready; while :; do sleep 0.01; done",
        ))
        .unwrap();
    let deaf =
        bed.spawn(shell("deaf", "trap '' TERM; echo ready; while :; do sleep 300; done")).unwrap();
    for name in ["at-eof", "at-term", "deaf"] {
        bed.wait_ready(name, || log_says(folder.path(), name, "ready"), PATIENCE).unwrap();
    }
    bed.stop_all(Duration::from_millis(500)).unwrap();
    all_gone(&[at_eof.pid, at_term.pid, deaf.pid]);
    assert!(log_says(folder.path(), "at-eof", "saw eof"));
    assert!(log_says(folder.path(), "at-term", "saw term"));
    let how = |name: &str| bed.ends().into_iter().find(|end| end.name == name).unwrap().how;
    assert_eq!(how("at-eof"), "exited with status 0, as asked");
    assert_eq!(how("deaf"), "killed by SIGKILL, as asked");
    assert!(bed.nodes().iter().all(|node| node.ended.is_empty()));
}

fn log_says(folder: &Path, name: &str, text: &str) -> bool {
    std::fs::read_to_string(folder.join(format!("{name}.log"))).is_ok_and(|log| log.contains(text))
}

/// Claim: a node lives on when the thread that asked for it ends (the kernel's death signal is tied to the
/// thread that starts a process, so another one does).
#[test]
fn a_node_outlives_the_thread_that_asked_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    let family =
        std::thread::scope(|scope| scope.spawn(|| start_family(&mut bed, "n")).join().unwrap());
    let control = bed.control();
    // The death signal is sent before join returns at the latest; two ticks of the keeper would notice an end.
    bed.clock().sleep_until(bed.clock().now().plus(Duration::from_millis(120)));
    assert!(control.ends().is_empty());
    assert!(family.iter().all(|&pid| state(pid).is_some()));
    drop(bed);
    all_gone(&family);
}

/// Claim: dropping the testbed leaves neither nodes nor their children; nor does a panic.
#[test]
fn drop_and_panic_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut dropped = bed(folder.path());
    let family = start_family(&mut dropped, "n");
    drop(dropped);
    all_gone(&family);
    let (sender, receiver) = std::sync::mpsc::channel();
    let path = folder.path().to_owned();
    let outcome = std::thread::spawn(move || {
        let mut bed = bed(&path);
        sender.send(start_family(&mut bed, "m")).unwrap();
        panic!("on purpose");
    })
    .join();
    assert!(outcome.is_err());
    all_gone(&receiver.recv().unwrap());
}

/// Claim: `spawn_self` runs the given program in place of this one, with its first arguments before the node's.
#[test]
fn the_own_program_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    let script = "echo ready first=$1 second=$2; cat".to_owned();
    bed.set_own_program("/bin/sh", vec!["-c".to_owned(), script, "sh".to_owned()]);
    bed.spawn_self("n", ["serve", "echo"]).unwrap();
    let said = bed.ready_line("n", PATIENCE).unwrap();
    assert_eq!((said["first"].as_str(), said["second"].as_str()), ("serve", "echo"));
}

/// Claim: when the process that owns the testbed is killed with SIGKILL, aborts or exits, its nodes, their
/// children and the guard are gone a moment later; its nodes are even if somebody has killed the guard first.
#[test]
fn the_end_of_the_parent_leaves_nothing() {
    if let Some(folder) = std::env::var_os("TESTBED_TEST_PARENT") {
        be_the_parent(Path::new(&folder));
    }
    for way in ["kill", "kill-paused", "kill-without-guard", "abort", "exit"] {
        let folder = tempfile::tempdir().unwrap();
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_end_of_the_parent_leaves_nothing", "--nocapture"])
            .env("TESTBED_TEST_PARENT", folder.path())
            .env("TESTBED_TEST_WAY", way)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the parent's nodes are ready", || folder.path().join("ready").exists());
        let below = descendants(parent.id());
        // Two families and the guard.
        assert_eq!(below.len(), 5, "{below:?}");
        let guard = below.iter().copied().find(|&pid| is_guard(pid)).unwrap();
        let (nodes, their_children): (Vec<u32>, Vec<u32>) =
            below.iter().filter(|&&pid| pid != guard).partition(|&&pid| is_group_leader(pid));
        assert_eq!((nodes.len(), their_children.len()), (2, 2));
        if way == "kill-without-guard" {
            kill(guard);
            all_gone(&[guard]);
        }
        if way.starts_with("kill") {
            parent.kill().unwrap();
        } else {
            drop(parent.stdin.take());
        }
        assert!(!parent.wait().unwrap().success());
        if way == "kill-without-guard" {
            all_gone(&nodes);
            their_children.into_iter().for_each(kill);
        }
        all_gone(&below);
    }
}

fn is_guard(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|s| s.contains("testbed-guard"))
}

fn is_group_leader(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(2)) == Some(&pid.to_string())
}

fn kill(pid: u32) {
    Command::new("/bin/kill").args(["-KILL", &pid.to_string()]).status().unwrap();
}

/// The other process of the test above: it starts nodes and ends without a chance to clean up.
fn be_the_parent(folder: &Path) -> ! {
    let way = std::env::var("TESTBED_TEST_WAY").unwrap();
    let mut bed = bed(folder);
    start_family(&mut bed, "a");
    start_family(&mut bed, "b");
    if way == "kill-paused" {
        bed.pause("a").unwrap();
    }
    std::fs::write(folder.join("ready"), "").unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    match way.as_str() {
        "abort" => std::process::abort(),
        _ => std::process::exit(5),
    }
}

/// Claim: what a node in a namespace of its own has started ends with it, also what has left its process group and session;
/// a pause holds it, too; and the next node is process 1 again, of another namespace, while one without is where it was.
#[test]
fn nothing_of_a_node_survives() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED node tests: nothing_of_a_node_survives: namespaces take root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    let script =
        "setsid sleep 300 & echo ready self=$$; trap 'exit 0' TERM; while :; do sleep 0.05; done";
    for life in 0..2 {
        let name = format!("alone{life}");
        let node = bed.spawn(shell(&name, script).in_own_namespace()).unwrap();
        assert_eq!(bed.ready_line(&name, PATIENCE).unwrap()["self"], "1");
        let mut away = Vec::new();
        wait_until("the grandchild has left", || {
            let group = |pid: &u32| -> Option<u32> {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
            };
            away = descendants(node.pid);
            away.retain(|pid| group(pid).is_some_and(|group| group != node.pid));
            !away.is_empty()
        });
        bed.pause(&name).unwrap();
        wait_until("all of it stands still", || away.iter().all(|pid| state(*pid) == Some('T')));
        bed.resume(&name).unwrap();
        wait_until("all of it goes on", || away.iter().all(|pid| state(*pid) == Some('S')));
        if life == 0 {
            bed.kill(&name).unwrap();
        } else {
            bed.stop_all(PATIENCE).unwrap();
        }
        all_gone(&[&away[..], &[node.pid]].concat());
    }
    let plain = bed.spawn(shell("plain", "echo ready self=$$; cat")).unwrap();
    assert_eq!(bed.ready_line("plain", PATIENCE).unwrap()["self"], plain.pid.to_string());
}

/// Claim: a node runs as the account that it was given, with its group and no other, and has its folder although those above
/// it are closed to it; and it still ends with the testbed.
#[test]
fn a_node_has_an_account() {
    let Some(nobody) = Account::named("nobody").filter(|_| Account::can_be_chosen()) else {
        println!("SKIPPED node tests: a_node_has_an_account: it takes root and the user nobody");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut bed = bed(folder.path());
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::fs::write(own.join("word"), "held").unwrap();
    let script = "echo ready user=$(id -u) group=$(id -g) groups=$(id -G | tr ' ' ,) word=$(cat /mnt/word); cat";
    let spec = shell("small", script).as_account(nobody, &own);
    let node = bed.spawn(spec.in_own_namespace()).unwrap();
    let said = bed.ready_line("small", PATIENCE).unwrap();
    assert_eq!(said["user"], nobody.user.to_string());
    assert_eq!((&said["group"], &said["groups"]), (&nobody.group.to_string(), &said["group"]));
    assert_eq!(
        (said["word"].as_str(), FOLDER_AT),
        ("held", "/mnt"),
        "in a folder that is closed to it"
    );
    assert!(!Path::new(FOLDER_AT).join("word").exists(), "nobody else sees it there");
    drop(bed);
    all_gone(&[node.pid]);
}
