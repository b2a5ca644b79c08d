//! Many settings from one file, several trials of each, in an order that can be repeated; verdicts that are
//! declared; thresholds and the exit codes that they lead to.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::harness::{Place, Said, beside_others, expect_audit, expect_holds, number, trial};
use model::Row;
use record::RunFolder;
use serde_json::Value;

/// A second of little load; what a test is about stands before or after it. Service takes so long that the
/// lateness of a busy machine stays small beside it, and no audit depends on what else runs.
const BASE: &str = r#"
system.kind = "echo"
load = { rate = "100/s", connections = 4, warmup = "0s", duration = "600ms", timeout = "2s", drain = "2s" }
[system.deploy]
servers = 64
service = "100ms"
"#;

/// A threshold that an honest server meets and one that it does not, whatever the machine does: they count what stands in a
/// ledger, which no audit of times voids.
const MET: &str = "lost == 0";
const NOT_MET: &str = "lost >= 1";

/// A threshold of this level.
fn threshold(expr: &str, level: &str) -> String {
    format!("[[threshold]]\nexpr = \"{expr}\"\nlevel = \"{level}\"\n")
}

fn keys(document: &Value) -> Vec<&str> {
    let settings = document["settings"].as_array().expect("settings");
    settings.iter().map(|setting| setting["key"].as_str().expect("a key")).collect()
}

/// Rows of every trial of a run, by its relative path, in the order of their ids.
fn rows(run: &Path) -> BTreeMap<String, Vec<Row>> {
    let run = RunFolder::open(run).expect("it is a run folder");
    let mut all = BTreeMap::new();
    for trial in run.trials().expect("trials") {
        let mut rows = Vec::new();
        trial.for_each_batch(|batch| rows.extend_from_slice(batch)).expect("rows can be read");
        rows.sort_by_key(|row| row.tx);
        all.insert(trial.relative_path().to_owned(), rows);
    }
    all
}

/// Claim: a matrix makes a setting of every combination, without those excluded and with those included, in the
/// order of the file, and each is loaded as its own values say.
#[test]
fn every_combination_is_run_as_it_says() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(&format!(
        r#"{BASE}
        [matrix]
        rate    = {{ set = "load.rate", values = ["50/s", "100/s"] }}
        clients = {{ set = "load.connections", values = [1, 2, 3] }}
        [[exclude]]
        rate    = "50/s"
        clients = 3
        [[include]]
        rate    = "200/s"
        clients = 8
        "#
    ));
    expect_holds(&said, &document);
    let expected = [
        ("rate=50/s,clients=1", 30),
        ("rate=50/s,clients=2", 30),
        ("rate=100/s,clients=1", 60),
        ("rate=100/s,clients=2", 60),
        ("rate=100/s,clients=3", 60),
        ("rate=200/s,clients=8", 120),
    ];
    assert_eq!(keys(&document), expected.map(|(key, _)| key));
    for (setting, (key, due)) in document["settings"].as_array().unwrap().iter().zip(expected) {
        assert_eq!(number(&setting["trials"][0]["counts"]["due"]), due, "{key}");
        let folder = place.run_folder().join(setting["trials"][0]["path"].as_str().unwrap());
        assert!(folder.join("transactions.parquet").is_file(), "{}", folder.display());
    }
}

/// Claim: a profile stands over the file, --set over the profile, a flag over --set.
#[test]
fn layers_stand_over_each_other() {
    let _beside = beside_others();
    let due = |arguments: &[&str]| {
        let profile = "[profile.fast]\nload.rate = \"150/s\"\n";
        let (said, document) = Place::new().experiment_with(&format!("{BASE}{profile}"), arguments);
        expect_holds(&said, &document);
        number(&trial(&document)["counts"]["due"])
    };
    assert_eq!(due(&[]), 60);
    assert_eq!(due(&["--profile", "fast"]), 90);
    assert_eq!(due(&["--profile", "fast", "--set", "load.rate=200/s"]), 120);
    assert_eq!(due(&["--profile", "fast", "--set", "load.rate=200/s", "--rate", "250/s"]), 150);
}

/// Claim: an included setting may set what no axis does, and declare its verdict.
#[test]
fn an_included_setting_of_its_own() {
    let _beside = beside_others();
    let (said, document) = Place::new().experiment(&format!(
        r#"{BASE}
        [matrix]
        rate = {{ set = "load.rate", values = ["50/s", "100/s"] }}
        [[include]]
        rate   = "100/s"
        set    = {{ "system.deploy.faults.lose" = 10 }}
        expect = "fail"
        "#
    ));
    expect_holds(&said, &document);
    let settings = document["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 3);
    assert_eq!((&settings[2]["verdict"], &settings[2]["expect"]), (&"fail".into(), &"fail".into()));
    assert_eq!(number(&settings[2]["trials"][0]["fates"]["lost"]), 6);
}

/// Poisson arrivals of two kinds in two settings with two trials each, with a seed.
fn random_run(seed: &str) -> (Place, Said, Value) {
    let place = Place::new();
    let base = BASE.replace("load = { ", "load = { arrival = \"poisson\", ");
    let text = format!(
        r#"trials = 2
        {base}
        [workload]
        kinds = ["get", "put", "scan"]
        payload = "100B"
        [matrix]
        servers = {{ set = "system.deploy.servers", values = [48, 64] }}
        "#
    );
    let (said, document) = place.experiment_with(&text, &["--seed", seed]);
    (place, said, document)
}

/// Claim: several trials are shuffled; the seed is in the result and on the terminal, and the same seed gives
/// the same order, the same due times, the same kinds and the same bytes out; trials differ from each other,
/// and another seed gives others.
#[test]
fn a_seed_repeats_a_run() {
    let _beside = beside_others();
    let (first, said, document) = random_run("77");
    let (again, ..) = random_run("77");
    let (other, ..) = random_run("78");
    assert!(said.code == 0 || said.code == 97, "{}", said.stderr);
    assert_eq!(document["seed"], 77);
    let (order, done) = (planned_order(&first), carried_out(&first));
    assert_eq!(order, done, "the trials ran in the order of the plan");
    assert_eq!(order, planned_order(&again));
    let sent = |place: &Place| -> BTreeMap<String, Vec<(u64, i64, u32, u32)>> {
        let of = |row: &Row| (row.tx, row.due, row.kind, row.bytes_out);
        rows(&place.run_folder())
            .into_iter()
            .map(|(path, rows)| (path, rows.iter().map(of).collect()))
            .collect()
    };
    let (first_sent, again_sent, other_sent) = (sent(&first), sent(&again), sent(&other));
    assert_eq!(first_sent.len(), 4);
    assert!(first_sent.values().all(|rows| rows.len() > 20));
    assert_eq!(first_sent, again_sent);
    assert_ne!(first_sent, other_sent);
    let distinct: BTreeSet<_> = first_sent.values().collect();
    assert_eq!(distinct.len(), 4, "each trial has a seed of its own");
    let run = first.run_folder().display().to_string();
    first.assay(&["report", &run]).expect_stdout("seed 77");
}

/// The order of the plan, as (setting, trial).
fn planned_order(place: &Place) -> Vec<(usize, u32)> {
    RunFolder::open(place.run_folder()).unwrap().plan().unwrap().order
}

/// The order in which the trials of a run began.
fn carried_out(place: &Place) -> Vec<(usize, u32)> {
    let run = RunFolder::open(place.run_folder()).unwrap();
    let plan = run.plan().unwrap();
    let index = |key: &str| plan.settings.iter().position(|setting| setting.key == key).unwrap();
    let trials = run.trials().unwrap();
    let mut begun: Vec<_> = trials
        .iter()
        .map(|trial| (trial.facts().unwrap().load.started, index(trial.setting()), trial.trial()))
        .collect();
    begun.sort_unstable();
    begun.into_iter().map(|(_, setting, trial)| (setting, trial)).collect()
}

/// Claim: several trials of several settings come in another order than they are written, unless the experiment
/// wants them as written.
#[test]
fn trials_are_shuffled() {
    let _beside = beside_others();
    let order = |more: &str| {
        let place = Place::new();
        let matrix =
            "[matrix]\nr = { set = \"load.rate\", values = [\"20/s\", \"30/s\", \"40/s\"] }\n";
        let short = BASE.replace("600ms", "100ms");
        place.experiment(&format!("trials = 2\nseed = 3\n{more}\n{short}{matrix}"));
        assert_eq!(planned_order(&place), carried_out(&place));
        carried_out(&place)
    };
    let written = order("order = \"as-written\"");
    assert_eq!(written, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    let mut shuffled = order("");
    assert_ne!(shuffled, written);
    shuffled.sort_unstable();
    assert_eq!(shuffled, written);
}

/// Claim: a setting that is declared to fail and does so counts as met, and the run ends with 0; one that lies and was
/// not declared makes the run fail.
#[test]
fn a_declared_verdict() {
    let _beside = beside_others();
    let run = |declared: &str| {
        let matrix = "[matrix]\nserver = { set = \"system.deploy.faults\", labels = [\"honest\", \"liar\"], values = [{}, { lose = 10 }] }";
        let expect = format!("[[expect]]\nat = {{ server = \"{declared}\" }}\nverdict = \"fail\"");
        let met = threshold(MET, "fail");
        Place::new().experiment(&format!("{BASE}{matrix}\n{expect}\n{met}"))
    };
    let (said, document) = run("liar");
    said.expect_code(0);
    assert_eq!(document["verdict"], "pass");
    let verdict = |document: &Value, index: usize| document["settings"][index]["verdict"].clone();
    assert_eq!((verdict(&document, 0), verdict(&document, 1)), ("pass".into(), "fail".into()));
    let (said, document) = run("honest");
    said.expect_code(99);
    assert_eq!(document["verdict"], "fail");
}

/// Claim: a setting that was declared invalid and passes is a failure: the flaw that it looks for is not there.
#[test]
fn a_declared_verdict_that_does_not_come() {
    let _beside = beside_others();
    let met = threshold(MET, "fail");
    let (said, document) =
        Place::new().experiment(&format!("{BASE}{met}[[expect]]\nverdict = \"invalid\"\n"));
    said.expect_code(99);
    let reason = document["reason"].as_str().unwrap();
    assert!(reason.contains("expected invalid, came out pass"), "{reason}");
}

/// Claim: thresholds that are met end with 0; one that fails with 99, its value beside it; a failed one of level
/// `warn` or `saturated` with 0; and one of level `invalid` with 97.
#[test]
fn promises_and_exit_codes() {
    let _beside = beside_others();
    let run = |expr: &str, level: &str| {
        Place::new().experiment(&format!("{BASE}{}", threshold(expr, level)))
    };
    let (said, document) = run(MET, "fail");
    said.expect_code(0);
    assert_eq!(trial(&document)["thresholds"][0]["holds"], true);
    let (said, document) = run(NOT_MET, "fail");
    said.expect_code(99);
    assert_eq!(document["verdict"], "fail");
    assert_eq!(document["exit_meaning"], "a threshold or a check failed");
    let broken = &trial(&document)["thresholds"][0];
    assert_eq!((&broken["holds"], &broken["actual"]), (&false.into(), &"0".into()), "{broken}");
    let (said, document) = run(NOT_MET, "warn");
    expect_holds(&said, &document);
    let (said, document) = run(NOT_MET, "saturated");
    expect_holds(&said, &document);
    assert_eq!(document["settings"][0]["saturated"], true);
    let (said, document) = run(NOT_MET, "invalid");
    said.expect_code(97);
    assert_eq!(document["verdict"], "invalid");
}

/// Claim: what a ledger lost is a failed implicit threshold, and is named before those that were written;
/// a threshold on the same number stands in its place.
#[test]
fn a_ledger_makes_promises() {
    let _beside = beside_others();
    let lying = BASE.replace("servers = 64", "servers = 64\nfaults = { lose = 10 }");
    let (said, document) =
        Place::new().experiment(&format!("{lying}{}", threshold("phantom >= 1", "fail")));
    said.expect_code(99);
    expect_audit(&document, "ledger", "warn", "acknowledged and not in the ledger");
    assert_eq!(trial(&document)["thresholds"][0]["answer"], "failed");
    let reason = document["reason"].as_str().unwrap();
    assert!(reason.contains("lost 6 acknowledged transactions: tx "), "{reason}");
    let relaxed = threshold("lost <= 10", "fail");
    let (said, document) = Place::new().experiment(&format!("{lying}{relaxed}"));
    said.expect_code(0);
    assert_eq!(document["verdict"], "pass", "{}", document["reason"]);
}

/// Claim: what is printed ends with the code and its meaning in words, and the code printed is the code.
#[test]
fn the_last_line_says_what_the_code_means() {
    let _beside = beside_others();
    for (expr, code, words) in [
        (MET, 0, "exit code 0: no threshold failed"),
        (NOT_MET, 99, "exit code 99: a threshold or a check failed"),
    ] {
        let place = Place::new();
        place.write("my.toml", format!("{BASE}{}", threshold(expr, "fail")));
        let said = place.assay(&["run", "my.toml", "--progress", "none"]);
        said.expect_code(code);
        assert_eq!(said.stdout.trim_end().lines().last(), Some(words));
        assert!(!said.stdout.contains('\u{1b}') && said.stderr.is_empty(), "{}", said.stderr);
        let listed = place.assay(&["list"]);
        listed.expect_code(0).expect_stdout("my");
    }
}
