//! Stamps of a node's own, from its file to the verdict and the page.

use std::fs;

use serde_json::Value;

use crate::harness::{
    OF_THE_MACHINE, Place, alone, audit, beside_others, failed_audits, number, trial,
    written_thresholds,
};

/// An experiment on a node that stamps its stages and stops storing for a while.
fn stalled(place: &Place) -> Value {
    let (_, document) = place.experiment(
        r#"
        system.kind = "echo"
        load = { rate = "500/s", connections = 2, warmup = "1s", duration = "5s" }
        [system.deploy]
        events = true
        service = "100us"
        faults = { store_stall = { at = "2s", for = "2s" }, lose = 400 }
        [measure]
        ledger = false
        [[threshold]]
        expr = "stage.stored.throughput.min == 0/s and stage.answered.throughput.min > 0/s"
        [[threshold]]
        expr = "stage.stored.p99 < 1s"
        level = "warn"
        [[threshold]]
        expr = "stage.stored.throughput.max > stage.received.throughput.max"
        [report]
        tables = [{ columns = ["stage.stored.throughput.min", "stage.stored.p99", "stage.received.count"] }]
        "#,
    );
    // A busy machine may make the measurement doubtful; what nodes stamped never does.
    for name in failed_audits(&document) {
        assert!(OF_THE_MACHINE.contains(&name), "{:?}", audit(&document, name));
    }
    assert_ne!(trial(&document)["verdict"], "fail", "{}", trial(&document)["reason"]);
    document
}

/// Claim: a node whose storing stands still while all else goes on shows as one stage that diverges: in thresholds, in the
/// tables, in the result document and on the page; what it never stored is a finding and does not make the trial
/// invalid. The client sees nothing of it.
#[test]
fn one_stage_diverges() {
    let _alone = alone();
    let place = Place::new();
    let document = stalled(&place);
    let trial = trial(&document);
    let holds: Vec<&Value> = written_thresholds(trial).into_iter().map(|it| &it["holds"]).collect();
    assert_eq!(holds, [true, false, true], "{}", trial["thresholds"]);
    let stages = &trial["node_stages"];
    let names: Vec<&Value> =
        stages["stages"].as_array().unwrap().iter().map(|it| &it["stage"]).collect();
    assert_eq!(names, ["received", "started", "stored", "answered"]);
    let passed: Vec<u64> =
        stages["stages"].as_array().unwrap().iter().map(|it| number(&it["passed"])).collect();
    // One in 400 of 3,000 is acknowledged and never stored.
    assert_eq!((passed[0], passed[1], passed[3]), (3_000, 3_000, 3_000));
    assert!((2_991..=2_993).contains(&passed[2]), "{passed:?}");
    let gap = &stages["gaps"][1];
    assert_eq!((&gap["before"], &gap["stage"]), (&"started".into(), &"stored".into()));
    assert_eq!(number(&gap["missing"]), 3_000 - passed[2]);
    assert!(number(&gap["behind_max"]) > 400, "{gap}");
    assert!(number(&stages["gaps"][0]["behind_max"]) < 100, "{}", stages["gaps"]);
    let read = &stages["read"];
    assert_eq!((&read["is_whole"], number(&read["events"])), (&true.into(), passed.iter().sum()));
    assert_eq!(number(&read["spans_kept"]), number(&read["events"]));
    let cells = document["tables"][0]["rows"][0].as_array().unwrap();
    assert_eq!(cells[1]["value"], 0.0, "{cells:?}");
    let received = cells[3]["value"].as_f64().unwrap();
    assert!((2_400.0..=2_600.0).contains(&received), "of five seconds: {cells:?}");
    let page = fs::read_to_string(place.run_folder().join("report.html")).unwrap();
    for said in [
        "Which step inside the nodes falls behind?",
        "data-chart=\"node-stages\"",
        "data-chart=\"node-stage-times\"",
        "data-chart=\"waterfall\"",
        "fewer went on than came",
        "stored was most behind",
    ] {
        assert!(page.contains(said), "{said}");
    }
    let folder = place.run_folder();
    let said = place.assay(&["report", folder.to_str().unwrap()]);
    said.expect_stdout("Inside the nodes").expect_stdout("never passed stored");
    let seal = fs::read_to_string(place.trial_folder(&document).join("seal.json")).unwrap();
    assert!(seal.contains("stages.parquet") && seal.contains("traces.parquet"), "{seal}");
}

/// Claim: what the nodes stamped is damaged in the folder afterwards: the report says which file and what to do.
#[test]
fn a_damaged_record_is_said() {
    let _beside = beside_others();
    let place = Place::new();
    let document = stalled(&place);
    let path = place.trial_folder(&document).join("stages.parquet");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(&path, bytes).unwrap();
    let folder = place.run_folder();
    let said = place.assay(&["report", folder.to_str().unwrap()]);
    said.expect_code(1).expect_stderr("stages.parquet cannot be used").expect_stderr("restore it");
}

/// Claim: a node that is killed leaves its events as they are: what it had written counts, that the rest is missing is
/// said, and nothing else of the trial is lost.
#[test]
fn a_killed_node_loses_only_its_last_events() {
    let _beside = beside_others();
    let place = Place::new();
    let (_, document) = place.experiment(
        r#"
        system.kind = "echo"
        load = { rate = "200/s", connections = 2, warmup = "0s", duration = "3s", timeout = "1s" }
        [system.deploy]
        events = true
        [[fault]]
        kill = "echo"
        at = "1500ms"
        "#,
    );
    let trial = trial(&document);
    assert_eq!(number(&trial["counts"]["due"]), 600);
    let stages = &trial["node_stages"];
    let answered = number(&stages["stages"][3]["passed"]);
    assert!((200..=300).contains(&answered), "{answered}");
    assert_eq!(
        number(&stages["stages"][0]["passed"]),
        answered,
        "what it answered it had received"
    );
}

/// Claim: a stage that no node stamps is a mistake with its place and the stages there are, before anything is sent; so is
/// asking of a node stage what clients are asked.
#[test]
fn unknown_node_stages_are_mistakes() {
    let _beside = beside_others();
    let place = Place::new();
    for (expr, words) in [
        ("stage.stord.p99 < 1s", "did you mean `stored`?"),
        ("p99.stored < 1s", "write stage.stored.throughput or stage.stored.p99"),
        ("stage.stored.thruput > 1/s", "there are stage.NAME.throughput"),
    ] {
        let file = place.write(
            "x.toml",
            format!(
                "[system]\nkind = \"echo\"\n[system.deploy]\nevents = true\n[load]\nrate = \"10/s\"\nduration = \"1s\"\n\
                 [[threshold]]\nexpr = \"{expr}\"\n"
            ),
        );
        let said = place.assay(&["run", file.to_str().unwrap()]);
        said.expect_code(2).expect_stderr(words).expect_stderr("^");
    }
    let file = place.write(
        "y.toml",
        "[system]\nkind = \"echo\"\n[load]\nrate = \"10/s\"\nduration = \"1s\"\n[[threshold]]\nexpr = \"stage.stored.p99 < 1s\"\n",
    );
    let said = place.assay(&["run", file.to_str().unwrap()]);
    said.expect_code(2).expect_stderr("its only stage is committed");
}
