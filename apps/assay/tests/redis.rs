//! A real program on the testbed's own disk: Redis of the distribution, killed and cut from its power, syncing and not.

use std::path::Path;

use serde_json::Value;

use crate::harness::{self, Place, beside_others, number, program};

/// The only trial of the setting with this key.
fn trial<'a>(document: &'a Value, key: &str) -> &'a Value {
    let settings = document["settings"].as_array().into_iter().flatten();
    let found = settings.into_iter().find(|setting| setting["key"] == key);
    &found.unwrap_or_else(|| panic!("no setting {key}"))["trials"][0]
}

/// Claim: of what Redis has acknowledged nothing is lost when it is killed, whether it syncs or not, and nothing when its
/// power is cut, if it syncs; if it does not, all from before the cut is lost and named by id. One experiment, one report, which
/// has the settings that the server says with what its documentation promises.
#[test]
fn only_power_and_only_without_syncing() {
    let is_root = rustix::process::geteuid().is_root();
    if program("redis-server").is_none() || !is_root || !Path::new("/dev/fuse").exists() {
        harness::say("SKIPPED redis tests: they take redis-server, root and /dev/fuse");
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/redis/power-loss.toml");
    let file = file.display().to_string();
    let quietly = ["--profile=toy", "--json", "--progress=none", "--no-calibration"];
    let said = place.assay(&[&["run", file.as_str()], &quietly[..]].concat());
    let document = said.json();
    for (key, is_lossy) in [
        ("sync=always,fault=kill", false),
        ("sync=always,fault=power", false),
        ("sync=no,fault=kill", false),
        ("sync=no,fault=power", true),
    ] {
        let trial = trial(&document, key);
        let fates = &trial["fates"];
        let lost = number(&fates["lost"]);
        assert_eq!(lost > 0, is_lossy, "{key}: {fates}");
        for fate in ["duplicate", "phantom", "refused_yet_present", "reordered"] {
            assert_eq!(number(&fates[fate]), 0, "{key}: {fate}: {fates}");
        }
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
        let durability = &trial(&document, &format!("sync={sync},fault=power"))["durability"];
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
