//! A store of others: three members of etcd, each on a disk of the testbed's own, cut from their power.

use std::path::Path;

use crate::harness::{self, Place, beside_others, number, processes_of};

/// Claim: members that sync lose nothing of what they have acknowledged when all three lose their power, and those that do
/// not lose puts or their whole cluster.
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
    let quietly = ["--profile=toy", "--json", "--progress=none", "--no-calibration"];
    let document =
        place.assay_with_programs(&[&["run", file.as_str()], &quietly[..]].concat()).json();
    let of = |key: &str| {
        let settings = document["settings"].as_array().into_iter().flatten();
        let found = settings.into_iter().find(|setting| setting["key"] == key);
        &found.unwrap_or_else(|| panic!("no setting {key}"))["trials"][0]["fates"]
    };
    let fates = of("setting=default,fault=power-all");
    for fate in ["lost", "duplicate", "phantom", "reordered"] {
        assert_eq!(number(&fates[fate]), 0, "{fate}: {fates}");
    }
    assert!(number(&fates["once"]) > 50, "{fates}");
    let unsafely = of("setting=unsafe,fault=power-all");
    let is_lossy = unsafely.is_null() || number(&unsafely["lost"]) > 0;
    assert!(is_lossy, "no leader any more, or puts are missing: {unsafely}");
    assert!(processes_of(place.path()).is_empty(), "{:?}", processes_of(place.path()));
}
