//! A broker of others: Kafka on a disk of the testbed's own, cut from its power; and none of it left after a run that was
//! killed.

use std::time::Duration;

use rustix::process::Signal;

use crate::harness::{
    DISK, Place, Running, await_that, beside_others, has_all, number, processes_of, trial_of,
};

/// How long processes may take to end after the program that started them was killed.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Claim: a broker that syncs before it acknowledges loses nothing of what it has acknowledged when its power goes, and one
/// that leaves it to the kernel, which is its default, loses records, each named by id; none is stored twice or out of order,
/// and no process is left.
#[test]
fn power_takes_what_was_not_synced() {
    if !has_all("kafka", &["kafka", DISK]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let mut command = place.shipped("durability/kafka", "toy", &[]);
    // Three virtual machines of Java for each of several trials.
    let said = Running::start(&mut command).finish_within(Duration::from_secs(420));
    let document = said.json();
    for (key, is_lossy) in
        [("setting=safe,fault=power-all", false), ("setting=default,fault=power-all", true)]
    {
        let trial = trial_of(&document, key);
        let fates = &trial["fates"];
        assert_eq!(number(&fates["lost"]) > 0, is_lossy, "{key}: {fates}");
        for fate in ["duplicate", "phantom", "reordered"] {
            assert_eq!(number(&fates[fate]), 0, "{key}: {fate}: {fates}");
        }
        if is_lossy {
            let named = fates["examples"]["lost"].as_array().map_or(0, Vec::len);
            assert!(named > 0, "{fates}");
        } else {
            assert!(number(&fates["once"]) > 20, "{fates}");
        }
        assert_eq!(trial["faults"][0]["ended"]["what"], "started_again", "{key}");
    }
    assert!(processes_of(place.path()).is_empty(), "{:?}", processes_of(place.path()));
}

/// Claim: kill -9 of the program in mid-run leaves neither a broker nor a listener of one.
#[test]
fn nothing_is_left_of_a_run_that_was_killed() {
    if !has_all("kafka", &["kafka", DISK]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let text = "name = \"k\"\n[system]\nkind = \"kafka\"\n[load]\nmodel = \"closed\"\nclients = 4\nduration = \"60s\"\n";
    place.write("experiment.toml", text);
    let arguments = ["run", "experiment.toml", "--progress=none", "--no-calibration"];
    let cache = testbed::install::cache_folder();
    let running = Running::start(place.command(&arguments).env("ASSAY_CACHE", cache));
    let rows = || {
        let folder = place.runs().pop()?.join("settings/default/trial-0/rows.log");
        std::fs::metadata(folder).ok().filter(|log| log.len() > 5_000)
    };
    await_that(Duration::from_secs(120), "rows are recorded", || rows().is_some());
    let brokers = || {
        let processes = processes_of(place.path()).into_iter();
        processes.filter(|process| process.command.contains("kafka.Kafka")).count()
    };
    assert_eq!(brokers(), 1);
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, -1);
    await_that(GONE_WITHIN, "no process is left", || processes_of(place.path()).is_empty());
}
