//! A real program on the testbed's own disk: Redis of the distribution, killed and cut from its power, syncing and not.

use crate::harness::{
    self, DISK, Place, WRONG_FATES, beside_others, expect_none, has_all, number, trial_of,
};

/// Claim: of what Redis has acknowledged nothing is lost when it is killed, whether it syncs or not, and nothing when its
/// power is cut, if it syncs; if it does not, all from before the cut is lost and named by id. One experiment, one report, which
/// has the settings that the server says with what its documentation promises.
#[test]
fn only_power_and_only_without_syncing() {
    if !has_all("redis", &["redis-server", DISK]) {
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let document = place.toy("redis/power-loss", &[]);
    for (key, is_lossy) in [
        ("sync=always,fault=kill", false),
        ("sync=always,fault=power", false),
        ("sync=no,fault=kill", false),
        ("sync=no,fault=power", true),
    ] {
        let trial = trial_of(&document, key);
        let fates = &trial["fates"];
        let lost = number(&fates["lost"]);
        assert_eq!(lost > 0, is_lossy, "{key}: {fates}");
        expect_none(trial, &WRONG_FATES[1..]);
        assert!(number(&fates["once"]) > 100, "{key}: it went on behind the fault: {fates}");
        let fault = &trial["faults"][0];
        assert_eq!(fault["ended"]["what"], "started_again", "{key}: {fault}");
        let audits = trial["audits"].as_array().into_iter().flatten();
        let of =
            |name: &str| audits.clone().find(|audit| audit["name"] == name).expect("it looked");
        assert_eq!(of("ledger")["outcome"] == "warn", is_lossy, "{key}: {}", of("ledger"));
        assert_ne!(of("disks")["outcome"], "failed", "{key}: {}", of("disks"));
        if is_lossy {
            assert_eq!(fault["began"]["what"], "power_cut", "{fault}");
            assert!(number(&fault["began"]["lost_bytes"]) > 10_000, "{fault}");
            let named = fates["examples"]["lost"].as_array().map_or(0, Vec::len);
            assert!(named > 50, "{fates}");
            // Those that it had acknowledged before the cut, and none from after it.
            assert_eq!(fates["examples"]["lost"][0], 0);
            assert_eq!(trial["verdict"], "fail");
        }
    }
    for (sync, words) in
        [("always", "fsync after every write"), ("no", "let the OS flush the data")]
    {
        let durability = &trial_of(&document, &format!("sync={sync},fault=power"))["durability"];
        let found = harness::durability_setting(durability, "appendfsync");
        assert_eq!(
            (&found["value"], &found["default"]),
            (&sync.into(), &"everysec".into()),
            "{found}"
        );
        assert!(found["promise"]["words"].as_str().is_some_and(|it| it.contains(words)), "{found}");
        assert_eq!(found["promise"]["document"], "redis.conf of Redis 7.0");
        let save = harness::durability_setting(durability, "save");
        assert_eq!(save["value"], "", "no snapshots: {save}");
    }
    let page = std::fs::read_to_string(place.run_folder().join("report.html")).unwrap_or_default();
    assert!(page.contains("power") && page.contains("lost"), "one report says it");
    assert!(
        page.contains("r0-durability") && page.contains("let the OS flush the data"),
        "and that"
    );
}
