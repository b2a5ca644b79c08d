//! Every audit has a trial on the canary that is built to make it object, carried out by the real binary: the audit says
//! why in its own words. Where nothing holds that the trial is read for, the verdict is invalid and the exit code 97; where the
//! system is at fault, the numbers hold, and a threshold decides. And one clean trial satisfies all.
//!
//! The machine may be busy with other things while this runs; then audits that look at times may fail beside the one
//! that a trial is about, which is right and not asserted against.

mod of_the_instrument;
mod of_the_system;

use std::path::Path;
use std::time::Duration;

use crate::harness::{
    self, OF_THE_MACHINE, Place, Running, Said, audit, await_that, beside_others, expect_audit,
    trial,
};
use serde_json::Value;

/// Every audit that there is, in the order of its list; the last looks across trials.
pub fn audits() -> Vec<String> {
    let said = Place::new().assay(&["list", "audits", "--json"]);
    let listed = said.expect_code(0).json();
    let names = listed["audits"].as_array().expect("a list").iter();
    let names = names.map(|it| it["name"].as_str().expect("a name").to_owned());
    // Figures stand after their audit.
    names.filter(|name| !name.starts_with("audit.")).collect()
}

/// Asserts what a trial that was built to fail one audit must come to.
#[track_caller]
fn expect_failed(said: &Said, document: &Value, name: &str, words: &[&str]) {
    assert_ne!(document, &Value::Null, "no result: {}", said.stderr);
    let voids = found(document, name)["voids"].as_array().expect("a list");
    // Without a threshold a run is invalid where nothing of the headline holds.
    let is_void = |family: &str| voids.iter().any(|it| it["family"] == family);
    let is_invalid = is_void("response") && is_void("committed");
    said.expect_code(if is_invalid { 97 } else { 0 });
    assert_eq!(document["verdict"], if is_invalid { "invalid" } else { "pass" });
    for words in words {
        expect_audit(document, name, "failed", words);
    }
    assert_ne!(voids, &[] as &[Value], "it says which numbers");
}

/// Asserts what a trial must come to whose system fails an implicit threshold: the numbers hold, and an
/// audit tells of it.
#[track_caller]
fn expect_broken(said: &Said, document: &Value, name: &str, words: &[&str]) {
    said.expect_code(99);
    assert_eq!(
        (&document["verdict"], &document["exit_meaning"]),
        (&"fail".into(), &"a threshold or a check failed".into())
    );
    expect_told(document, name, words);
}

/// Asserts that an audit warns in these words, and voids nothing.
#[track_caller]
fn expect_told(document: &Value, name: &str, words: &[&str]) {
    for words in words {
        expect_audit(document, name, "warn", words);
    }
    assert_eq!(found(document, name)["voids"], serde_json::json!([]));
}

/// The audit of that name, of the first trial or of the run.
fn found<'a>(document: &'a Value, name: &str) -> &'a Value {
    let of_run = document["audits"].as_array().into_iter().flatten();
    let mut all = trial(document)["audits"].as_array().into_iter().flatten().chain(of_run);
    all.find(|audit| audit["name"] == name).expect("it is in the list")
}

/// Runs an experiment on the canary beside other trials; `text` follows `[system.deploy]`.
fn canary(text: &str) -> (Said, Value) {
    let _beside = beside_others();
    Place::new().experiment(&format!("[system]\nkind = \"echo\"\n[system.deploy]\n{text}"))
}

/// Claim: to a clean trial on a real server, twice, no audit objects but those that look at times, which may have a
/// busy machine to object to; none is left out but those of links and of disks, which it has not. (That a trial which
/// nothing disturbs satisfies all of them is asserted in virtual time: `instrument/exact`.)
#[test]
fn a_clean_trial_satisfies_all() {
    let _beside = beside_others();
    let (said, document) = Place::new().experiment(
        r#"
        trials = 2
        system.kind = "echo"
        load = { rate = "400/s", connections = 4, warmup = "300ms", duration = "3s", timeout = "5s" }
        [system.deploy]
        servers = 64
        service = "20ms"
        "#,
    );
    let all = audits();
    for name in all.iter().map(String::as_str) {
        let (outcome, detail) = audit(&document, name);
        if name == "links" || name == "disks" {
            // A network and disks of its own would take root.
            assert_eq!(outcome, "skipped", "{detail}");
            continue;
        }
        if name == "receive_lag" && detail.contains("the kernel stamped nothing") {
            harness::say("this kernel stamps nothing that is received");
            continue;
        }
        assert_ne!(outcome, "skipped", "{name}: {detail}");
        assert!(outcome == "ok" || OF_THE_MACHINE.contains(&name), "{name} is {outcome}: {detail}");
    }
    harness::expect_holds(&said, &document);
    let names = trial(&document)["audits"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|audit| audit["name"].as_str().unwrap()).collect();
    assert_eq!(names, all[..all.len() - 1], "a trial has all but those across trials");
}

/// Claim: every audit of the list has a test of its name, of the system or of the instrument.
#[test]
fn every_audit_has_its_trial() {
    let sources =
        [include_str!("audits/of_the_instrument.rs"), include_str!("audits/of_the_system.rs")];
    for name in audits() {
        let test = format!("#[test]\nfn {name}() {{");
        assert!(sources.iter().any(|source| source.contains(&test)), "{name} has no trial");
    }
}

/// 500 a second for a second, where only counts matter; more keys of `[load]` may follow.
const QUICK_LOAD: &str = r#"
[load]
rate = "500/s"
connections = 4
warmup = "0s"
duration = "1s"
timeout = "2s"
"#;

/// A trial of two seconds without anything wrong.
const SMALL: &str = r#"
system = { kind = "echo" }
load = { rate = "500/s", connections = 4, warmup = "0s", duration = "2s", timeout = "2s" }
"#;

/// A small trial, whose folder is then altered and reported again.
fn altered(alter: impl FnOnce(&Path)) -> (Place, Said, Value) {
    let _beside = beside_others();
    let place = Place::new();
    let (_, document) = place.experiment(SMALL);
    assert_eq!(audit(&document, "clock").0, "ok");
    alter(&place.trial_folder(&document));
    let (said, document) = place.report();
    (place, said, document)
}

/// A run in a place of its own that has just been started.
fn started(experiment: &str) -> (Place, Running) {
    let place = Place::new();
    place.write("experiment.toml", experiment);
    let arguments = ["run", "experiment.toml", "--json", "--progress", "none", "--no-calibration"];
    let running = Running::start(&mut place.command(&arguments));
    (place, running)
}

/// Waits until a run has recorded that many bytes of rows.
fn await_rows(place: &Place, bytes: u64) {
    await_that(Duration::from_secs(10), "rows are recorded", || {
        let log = place.runs().pop().map(|run| run.join("settings/default/trial-0/rows.log"));
        log.and_then(|log| std::fs::metadata(log).ok()).is_some_and(|log| log.len() > bytes)
    });
}
