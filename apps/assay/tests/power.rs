//! The canary on a disk of its own: what a cut of the power takes of what it has acknowledged, and what a bad disk does.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;

use crate::harness::{self, DISK, Place, Said, beside_others, has_all, number, trial};

/// Runs two seconds of load on a node that syncs or not, with these faults; `None`, said by name, where there can be no
/// disk.
fn run(test: &str, sync: bool, faults: &str) -> Option<(Place, Said, Value)> {
    if !has_all(test, &[DISK]) {
        return None;
    }
    let place = Place::new();
    let (said, document) = place.experiment(&format!(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        sync = {sync}
        [disk]
        nodes = ["echo"]
        size = "64MiB"
        [load]
        model = "closed"
        clients = 4
        think = "5ms"
        connections = 2
        warmup = "0s"
        duration = "2s"
        timeout = "5s"
        {faults}
        "#
    ));
    Some((place, said, document))
}

/// Claim: a node that syncs before it acknowledges loses nothing of that to a cut of the power, whatever the disk had
/// happened to write of the rest; one that does not is told what it lost, by id, and what the cut took is in the journal
/// of faults.
#[test]
fn what_was_acknowledged() {
    let _beside = beside_others();
    for (sync, loss) in [(true, "drop"), (true, "tear"), (false, "drop")] {
        let faults =
            format!("[[fault]]\nat = \"1s\"\nfor = \"200ms\"\npower = \"echo\"\nloss = \"{loss}\"");
        let Some((place, said, document)) = run("what_was_acknowledged", sync, &faults) else {
            return;
        };
        let trial = trial(&document);
        let fates = &trial["fates"];
        assert!(number(&fates["once"]) > 0, "{sync} {loss}: {fates} {}", said.stderr);
        assert_eq!(number(&fates["lost"]) > 0, !sync, "{sync} {loss}: {fates}");
        assert_eq!(number(&fates["phantom"]) + number(&fates["duplicate"]), 0, "{fates}");
        let fault = &trial["faults"][0];
        assert_eq!(
            (&fault["kind"], &fault["began"]["what"]),
            (&"power".into(), &"power_cut".into())
        );
        assert_eq!(fault["ended"]["what"], "started_again", "{fault}");
        let disk = facts(&place, &document)["after"]["disks"][0].clone();
        assert_eq!(number(&disk["power_losses"]), 1);
        assert_eq!(disk["syncs"]["calls"].as_u64().unwrap() > 20, sync, "{disk}");
        if !sync {
            harness::expect_audit(
                &document,
                "ledger",
                "warn",
                "acknowledged and not in the ledger (tx ",
            );
            said.expect_code(99);
        }
    }
}

fn facts(place: &Place, document: &Value) -> Value {
    let path = place.trial_folder(document).join("trial.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Claim: a disk that is slow for a while is felt by a node that waits for it; one that fails its syncs ends a node that
/// does not acknowledge what it could not store, and nothing of that is lost.
#[test]
fn bad_disks() {
    let _beside = beside_others();
    let slow =
        "[[fault]]\nat = \"500ms\"\nfor = \"500ms\"\ndisk = \"echo\"\nsync_delay = \"100ms\"";
    let Some((_, _, document)) = run("bad_disks", true, slow) else { return };
    let slow = trial(&document);
    assert!(number(&slow["faults"][0]["silence_ns"]) > 90_000_000, "{}", slow["faults"]);
    assert_eq!(slow["faults"][0]["began"]["what"], "keys");
    assert_eq!(number(&slow["fates"]["lost"]), 0);
    let faulty = "[[fault]]\nat = \"500ms\"\nfor = \"1s\"\ndisk = \"echo\"\nsync_errors = 1\n\
                  [[fault]]\nat = \"1s\"\nfor = \"100ms\"\nrestart = \"echo\"";
    let Some((place, _, document)) = run("bad_disks", true, faulty) else { return };
    let faulty = trial(&document);
    assert_eq!(number(&faulty["fates"]["lost"]), 0, "{}", faulty["fates"]);
    assert!(number(&facts(&place, &document)["after"]["disks"][0]["syncs"]["errors"]) > 0);
}

/// Claim: a cut of the power without a disk to lose anything is refused before anything is sent, and so is one of a node
/// that has none.
#[test]
fn without_a_disk() {
    let _beside = beside_others();
    let text = |disk: &str| {
        format!(
            "[system]\nkind = \"echo\"\n{disk}\n[load]\nrate = \"10/s\"\nduration = \"1s\"\n\
             [[fault]]\nat = \"0s\"\nfor = \"1s\"\npower = \"echo\"\n"
        )
    };
    let (said, _) = Place::new().experiment(&text(""));
    said.expect_stderr("a cut of the power needs [disk]").expect_stderr("add [disk] with nodes");
    if !has_all("without_a_disk", &[DISK]) {
        return;
    }
    let (said, _) = Place::new().experiment(&text("[disk]\nnodes = [\"other\"]"));
    said.expect_stderr("no node has a disk of its own");
}
