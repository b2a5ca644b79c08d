//! A store of others: three members of etcd, each on a disk of the testbed's own, cut from their power.

use std::path::Path;

use crate::harness::{self, Place, beside_others, number, processes_of};

/// Claim: members that sync lose nothing of what they have acknowledged when all three lose their power.
#[test]
fn power_takes_nothing_that_was_synced() {
    let is_root = rustix::process::geteuid().is_root();
    if testbed::install::find("etcd").is_none() || !is_root || !Path::new("/dev/fuse").exists() {
        harness::say("SKIPPED etcd tests: they take etcd, root and /dev/fuse");
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/durability/etcd.toml");
    let file = file.display().to_string();
    let words = ["--profile=toy", "--json", "--progress=none", "--no-calibration"];
    let only =
        ["--set", "matrix.setting.values=[[]]", "--set", "matrix.setting.labels=[\"default\"]"];
    let document = place
        .assay_with_programs(&[&["run", file.as_str()], &words[..], &only[..]].concat())
        .json();
    let trial = &document["settings"][0]["trials"][0];
    let fates = &trial["fates"];
    for fate in ["lost", "duplicate", "phantom", "reordered"] {
        assert_eq!(number(&fates[fate]), 0, "{fate}: {fates}");
    }
    assert!(number(&fates["once"]) > 100, "{fates}");
    assert!(processes_of(place.path()).is_empty(), "{:?}", processes_of(place.path()));
}
