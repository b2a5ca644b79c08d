//! A broker of others: three servers of NATS JetStream, each on a disk of the testbed's own, cut from their power.

use std::path::Path;

use crate::harness::{self, Place, beside_others, number, processes_of};

/// Claim: a stream with three replicas that syncs every two minutes, which is its servers' default, loses acknowledged
/// messages when all three lose their power, each named by id; it is read by a consumer on another server than its leader,
/// and no process is left.
#[test]
fn power_of_all_takes_what_was_not_synced() {
    let is_root = rustix::process::geteuid().is_root();
    if testbed::install::find("nats-server").is_none()
        || !is_root
        || !Path::new("/dev/fuse").exists()
    {
        harness::say("SKIPPED nats tests: they take nats-server, root and /dev/fuse");
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/durability/nats.toml");
    let file = file.display().to_string();
    let quietly = ["--profile=toy", "--json", "--progress=none", "--no-calibration"];
    let document =
        place.assay_with_programs(&[&["run", file.as_str()], &quietly[..]].concat()).json();
    let trial = &document["settings"][0]["trials"][0];
    let fates = &trial["fates"];
    assert!(number(&fates["lost"]) > 0, "{fates}");
    assert!(fates["examples"]["lost"].as_array().is_some_and(|lost| !lost.is_empty()), "{fates}");
    assert_eq!(number(&fates["phantom"]), 0, "{fates}");
    assert_eq!(trial["faults"].as_array().map_or(0, Vec::len), 3, "each server had its own cut");
    assert!(processes_of(place.path()).is_empty(), "{:?}", processes_of(place.path()));
}
