//! What is left when a run does not end as planned: killed, interrupted once and twice, a full disk. What was
//! recorded can be reported, nothing keeps running, ports are free again, and the exit code is the documented
//! one.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::harness::{
    self, DISK, Place, Running, await_that, beside_others, expect_audit, finish, has_all, number,
    port_is_free, processes_of, trial,
};
use rustix::process::Signal;
use serde_json::Value;

/// Nothing of a run may be there this long after its end.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Ten seconds of load; `more` are keys of `[load]` and what follows them.
fn experiment(more: &str) -> String {
    format!(
        r#"
        name = "crash"
        [system]
        kind = "echo"
        [system.deploy]
        servers = 64
        service = "20ms"
        [load]
        rate = "1000/s"
        connections = 4
        warmup = "0s"
        {more}
        "#
    )
}

const TEN_SECONDS: &str = "duration = \"10s\"\ntimeout = \"5s\"";

/// Starts a run and waits until its trial has recorded something.
fn started(place: &Place, text: &str) -> Running {
    place.write("experiment.toml", text);
    let running = Running::start(&mut place.command(&ARGUMENTS));
    await_rows(&log_of(place));
    running
}

const ARGUMENTS: [&str; 4] = ["run", "experiment.toml", "--progress=none", "--no-calibration"];

/// The row log of the only trial, once there is one.
fn log_of(place: &Place) -> PathBuf {
    await_that(Duration::from_secs(10), "there is a run", || !place.runs().is_empty());
    place.run_folder().join("settings/default/trial-0/rows.log")
}

fn await_rows(log: &Path) {
    await_that(Duration::from_secs(10), "rows are recorded", || {
        std::fs::metadata(log).is_ok_and(|log| log.len() > 5_000)
    });
}

/// The address of the run's node, from the adapter's facts or the node's own log.
fn node_address(place: &Place) -> String {
    let nodes = place.run_folder().join("settings/default/trial-0/nodes");
    let log = std::fs::read_to_string(nodes.join("echo.log")).expect("the node has a log");
    let words = log.split_whitespace();
    let mut found = words.filter_map(|word| word.split_once("frames=").map(|(_, rest)| rest));
    found.next().unwrap_or_else(|| panic!("no address in `{log}`")).to_owned()
}

#[track_caller]
fn expect_nothing_left(place: &Place, address: &str) {
    await_that(GONE_WITHIN, "no process is left", || processes_of(place.path()).is_empty());
    assert!(port_is_free(address), "a process still listens on {address}");
}

/// Claim: kill -9 in mid-run leaves no process, no listener and a folder that is reported: what was recorded,
/// invalid, because it was cut off.
#[test]
fn killed_in_mid_run() {
    let _beside = beside_others();
    let place = Place::new();
    let running = started(&place, &experiment(TEN_SECONDS));
    let address = node_address(&place);
    assert!(!port_is_free(&address), "the node serves");
    let names: Vec<String> =
        processes_of(place.path()).into_iter().map(|process| process.command).collect();
    assert!(names.iter().any(|name| name.contains("serve echo")), "{names:?}");
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, -1);
    expect_nothing_left(&place, &address);

    let (said, document) = place.report();
    assert_eq!(document["verdict"], "invalid");
    assert_eq!(document["interrupted"], true);
    expect_audit(&document, "complete", "failed", "the run ended without closing this trial");
    expect_audit(&document, "complete", "failed", "it shows the part that was recorded");
    expect_what_was_recorded(&document);
    // Invalid or interrupted: either is documented, and nothing may call it a success.
    assert!([97, 130].contains(&said.code), "{}", said.code);
    assert_eq!(document["exit_code"], said.code);
    let again = place.report().0;
    assert_eq!((again.code, again.stdout), (said.code, said.stdout), "a report changes nothing");
}

/// Everything that is mounted below `place`, in whichever namespace a thread still is.
fn mounts_below(place: &Path) -> Vec<String> {
    let threads = |process: PathBuf| std::fs::read_dir(process.join("task")).into_iter().flatten();
    let processes = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let of_thread = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("mountinfo")).unwrap_or_default()
    };
    let below = place.to_str().expect("a path of text");
    let all = processes.flat_map(|process| threads(process.path())).flatten().map(of_thread);
    let mut found: Vec<String> = all
        .flat_map(|mounts| mounts.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|mount| mount.contains(below))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Claim: with a disk of the node's own, kill -9 and Ctrl-C in mid-run leave no process, no listener and nothing mounted
/// in any namespace, also while the power is cut; what had been recorded is reported, and after Ctrl-C also the ledger
/// was read from the disk.
#[test]
fn ended_with_a_disk() {
    if !has_all("ended_with_a_disk", &[DISK]) {
        return;
    }
    let disk = "[disk]\nnodes = [\"echo\"]\nsize = \"64MiB\"";
    let cut = "[[fault]]\nat = \"200ms\"\nfor = \"8s\"\npower = \"echo\"";
    for (signal, fault) in [(Signal::KILL, ""), (Signal::KILL, cut), (Signal::INT, "")] {
        let _beside = beside_others();
        let place = Place::new();
        let running = started(&place, &experiment(&format!("{TEN_SECONDS}\n{disk}\n{fault}")));
        let address = node_address(&place);
        if fault.is_empty() {
            let mounted = mounts_below(place.path());
            assert!(mounted.iter().any(|mount| mount.contains("fuse")), "{mounted:?}");
        } else {
            let journal = place.run_folder().join("settings/default/trial-0/faults.ndjson");
            await_that(Duration::from_secs(5), "the power is cut", || {
                std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("power"))
            });
        }
        running.signal(signal);
        let said = running.finish_within(Duration::from_secs(20));
        expect_nothing_left(&place, &address);
        assert_eq!(mounts_below(place.path()), Vec::<String>::new(), "{signal:?} {fault}");
        let (_, document) = place.report();
        assert!(number(&trial(&document)["counts"]["due"]) > 50, "{signal:?} {fault}");
        if signal == Signal::INT {
            said.expect_code(130);
            let fates = &trial(&document)["fates"];
            assert!(number(&fates["once"]) > 50 && number(&fates["lost"]) == 0, "{fates}");
        }
    }
}

/// A good part of the rows is there, all committed or outstanding, with latencies of 20 ms.
fn expect_what_was_recorded(document: &Value) {
    let counts = &trial(document)["counts"];
    let (due, committed) = (number(&counts["due"]), number(&counts["committed"]));
    assert!(due >= 100 && committed >= due / 2, "{counts}");
    let p50 = &trial(document)["latency"][0]["response"]["quantiles"][0]["value_ns"];
    assert!((19_000_000..80_000_000).contains(&number(p50)), "{p50}");
}

/// Claim: the first Ctrl-C stops the load, drains, reports and ends with 130; the folder is complete and its
/// report is the same; the measured part holds.
#[test]
fn interrupted_once() {
    let _beside = beside_others();
    let place = Place::new();
    let running = started(&place, &experiment(TEN_SECONDS));
    let address = node_address(&place);
    running.signal(Signal::INT);
    let said = running.finish_within(Duration::from_secs(9));
    said.expect_code(130)
        .expect_stderr("stopping: answers have 500ms more, then the report is written")
        .expect_stdout("exit code 130: interrupted: the partial result was written");
    expect_nothing_left(&place, &address);
    let run = place.run_folder();
    let trial_folder = run.join("settings/default/trial-0");
    assert!(
        run.join("summary.json").is_file() && trial_folder.join("transactions.parquet").is_file()
    );
    assert!(!trial_folder.join("rows.log").exists(), "the trial is sealed");
    let (again, document) = place.report();
    again.expect_code(130);
    assert_eq!(document["interrupted"], true);
    let counts = &trial(&document)["counts"];
    assert_eq!(counts["due"], counts["committed"], "the drain brought an end to all: {counts}");
    expect_audit(&document, "conservation", "ok", "rows and engine agree");
    let (outcome, detail) = harness::audit(&document, "complete");
    assert!(outcome == "warn" && detail.contains("of 10.0 s were measured"), "{outcome} {detail}");
}

/// A load whose server falls silent for 40 s soon after it has begun. `more` are keys of `[system.deploy]`.
fn falls_silent(more: &str) -> String {
    let load = "duration = \"20s\"\ntimeout = \"30s\"\nconnections_max = \"fixed\"";
    let stall = "service = \"20ms\"\nfaults = { stall = { at = \"700ms\", for = \"40s\" } }";
    experiment(load).replace("service = \"20ms\"", &format!("{stall}\n{more}"))
}

/// Claim: the first Ctrl-C ends a run whose server is silent long before its timeout, over wires and through a client
/// library: it is said how many have no answer, they are unknown, and the trial is sealed and reported.
#[test]
fn interrupted_once_while_the_server_is_silent() {
    for more in ["", "load_by = \"call\""] {
        let _beside = beside_others();
        let place = Place::new();
        let text = falls_silent(more).replace("connections = 4", "connections = 32");
        let running = started(&place, &text);
        let address = node_address(&place);
        harness::pass(Duration::from_millis(1_000));
        running.signal(Signal::INT);
        // Without its bound the drain lasts as long as the timeout: 30 s.
        let said = running.finish_within(Duration::from_secs(10));
        said.expect_code(130).expect_stderr("had no answer by then and count as unknown");
        expect_nothing_left(&place, &address);
        let sealed = place.run_folder().join("settings/default/trial-0/transactions.parquet");
        assert!(sealed.is_file(), "the trial is sealed");
        let (_, document) = place.report();
        let counts = &trial(&document)["counts"];
        assert!(number(&counts["unknown"]) > 0 && number(&counts["committed"]) > 0, "{counts}");
        expect_audit(&document, "conservation", "ok", "rows and engine agree");
        expect_audit(&document, "drain", "skipped", "cut off before its drain ended");
    }
}

/// Claim: the second Ctrl-C waits for no answer: what is outstanding becomes unknown, and the run still reports and
/// ends with 130.
#[test]
fn interrupted_twice() {
    let _beside = beside_others();
    let place = Place::new();
    let running = started(&place, &falls_silent(""));
    let address = node_address(&place);
    // Into the stall, so that there is something to drain.
    harness::pass(Duration::from_millis(1_000));
    running.signal(Signal::INT);
    harness::pass(Duration::from_millis(300));
    running.signal(Signal::INT);
    let said = running.finish_within(Duration::from_secs(15));
    said.expect_code(130).expect_stderr(
        "not waiting for answers any more; press Ctrl-C again to quit without a report",
    );
    expect_nothing_left(&place, &address);
    let (_, document) = place.report();
    let counts = &trial(&document)["counts"];
    let [due, committed, unknown, shed] =
        ["due", "committed", "unknown", "shed"].map(|outcome| number(&counts[outcome]));
    // Four connections hold 64 each; what waited for one of them was never sent.
    assert!((50..=256).contains(&unknown) && committed + unknown + shed == due, "{counts}");
    expect_audit(&document, "conservation", "ok", "rows and engine agree");
}

/// Claim: the third Ctrl-C ends the process at once, with 130, and its node with it.
#[test]
fn interrupted_three_times() {
    let _beside = beside_others();
    let place = Place::new();
    let running = started(&place, &experiment(TEN_SECONDS));
    let address = node_address(&place);
    for _ in 0..3 {
        running.signal(Signal::INT);
        harness::pass(Duration::from_millis(30));
    }
    running.finish_within(Duration::from_secs(5)).expect_code(130);
    expect_nothing_left(&place, &address);
    let (_, document) = place.report();
    assert!(number(&trial(&document)["counts"]["due"]) > 50, "{}", trial(&document)["counts"]);
}

/// Claim: Ctrl-C between trials ends the run after the one that is running; the others are not started, and
/// the report says that it was interrupted.
#[test]
fn interrupted_with_settings_left() {
    let _beside = beside_others();
    let place = Place::new();
    let matrix =
        "[matrix]\nr = { set = \"load.rate\", values = [\"500/s\", \"600/s\", \"700/s\"] }";
    place.write("experiment.toml", experiment(&format!("{TEN_SECONDS}\n{matrix}")));
    let running = Running::start(&mut place.command(&ARGUMENTS));
    await_that(Duration::from_secs(10), "there is a run", || !place.runs().is_empty());
    let settings = place.run_folder().join("settings");
    await_that(Duration::from_secs(10), "a trial has begun", || begun(&settings).len() == 1);
    await_rows(&settings.join(&begun(&settings)[0]).join("trial-0/rows.log"));
    running.signal(Signal::TERM);
    let said = running.finish_within(Duration::from_secs(9));
    said.expect_code(130);
    assert_eq!(begun(&settings).len(), 1, "one setting was begun");
    let (_, document) = place.report();
    assert_eq!(document["interrupted"], true);
}

/// The names of the settings that have a folder.
fn begun(settings: &Path) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(settings).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

/// A small file system of its own, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, said by name, where it cannot be mounted.
    fn mount(test: &str, folder: PathBuf, size: &str) -> Option<Self> {
        std::fs::create_dir_all(&folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&folder)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(folder)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                harness::say(&format!(
                    "SKIPPED {test}: a small file system cannot be mounted ({why})"
                ));
                None
            }
            Err(error) => {
                harness::say(&format!("SKIPPED {test}: mount cannot be started ({error})"));
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
    }
}

/// Claim: a disk that fills in mid-run stops the load at once with words that say so; what was recorded can be
/// reported, nothing keeps running, and the exit code is that of a run that could not be carried out or does
/// not hold.
#[test]
fn a_full_disk() {
    let _beside = beside_others();
    let place = Place::new();
    let disk = place.path().join("runs");
    let Some(_disk) = SmallDisk::mount("a_full_disk", disk, "400k") else { return };
    let text = experiment("duration = \"20s\"\ntimeout = \"2s\"").replace("1000/s", "5000/s");
    let text = text.replace("servers = 64", "servers = 640");
    place.write("experiment.toml", text);
    // Long before the 20 s that were asked for.
    let running = Running::start(&mut place.command(&ARGUMENTS));
    let said = running.finish_within(Duration::from_secs(12));
    assert!([1, 97].contains(&said.code), "{}\n{}", said.code, said.stderr);
    let all = format!("{}{}", said.stderr, said.stdout);
    assert!(all.contains("the disk is full"), "{all}");
    assert!(!all.contains("panicked"), "{all}");
    await_that(GONE_WITHIN, "no process is left", || processes_of(place.path()).is_empty());
    let (report, document) = place.report();
    assert!([97, 130].contains(&report.code), "{}\n{}", report.code, report.stderr);
    assert!(number(&trial(&document)["counts"]["due"]) > 500, "{}", trial(&document)["counts"]);
    assert_eq!(document["verdict"], "invalid", "{}", document["reason"]);
}

/// Claim: a disk that is full before the run begins is said with code 1 before anything is sent.
#[test]
fn a_disk_without_any_room() {
    let _beside = beside_others();
    let place = Place::new();
    let disk = place.path().join("runs");
    let test = "a_disk_without_any_room";
    let Some(_disk) = SmallDisk::mount(test, disk.clone(), "16k") else { return };
    std::fs::write(disk.join("filler"), vec![0_u8; 16 << 10]).ok();
    place.write("experiment.toml", experiment(TEN_SECONDS));
    let said = finish(&mut place.command(&ARGUMENTS));
    said.expect_code(1).expect_stderr("the disk is full");
    await_that(GONE_WITHIN, "no process is left", || processes_of(place.path()).is_empty());
}

/// Claim: a node that dies by itself in mid-run does not stop the report: what it did not answer is unknown,
/// and its end is said.
#[test]
fn a_node_that_dies() {
    let _beside = beside_others();
    let place = Place::new();
    let running = started(&place, &experiment("duration = \"2s\"\ntimeout = \"1s\""));
    let address = node_address(&place);
    let node = processes_of(place.path()).into_iter().find(|p| p.command.contains("serve echo"));
    harness::signal(node.expect("the node runs").id, Signal::KILL);
    let said = running.finish();
    // Dead is what the system is, and its numbers say so; there was no promise.
    assert!([0, 99].contains(&said.code), "{}\n{}", said.code, said.stdout);
    said.expect_stdout("node echo ended during the trial");
    expect_nothing_left(&place, &address);
    let (_, document) = place.report();
    let counts = &trial(&document)["counts"];
    assert_eq!(number(&counts["due"]), 2_000);
    assert!(number(&counts["committed"]) < 1_900, "{counts}");
    assert_eq!(trial(&document)["fates"]["phantom"], 0);
}
