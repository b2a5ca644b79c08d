//! A store of others: three members of etcd, each on a disk of the testbed's own, cut from their power.

use crate::harness::{DISK, Place, beside_others, has_all, number, processes_of, trial_of};

/// Claim: members that sync lose nothing of what they have acknowledged when all three lose their power, and those that do
/// not lose puts or their whole cluster.
#[test]
fn power_takes_nothing_that_was_synced() {
    if !has_all("etcd", &["etcd", DISK]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let document = place.toy("durability/etcd", &[]);
    let of = |key: &str| &trial_of(&document, key)["fates"];
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
