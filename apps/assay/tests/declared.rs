//! What an adapter declares and nobody else knows: its stages in promises and tables, its series on the page.

use serde_json::Value;

use crate::harness::{Place, beside_others, expect_holds, written_thresholds};

/// Claim: promises, tables and `measure.until` may name any stage that the system declares, whatever it is called.
#[test]
fn stages_of_the_system() {
    let _beside = beside_others();
    let (said, document) = Place::new().experiment(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        stages = 3
        service = "1ms"
        [load]
        rate = "200/s"
        connections = 2
        warmup = "0s"
        duration = "1s"
        [measure]
        until = "started"
        [[threshold]]
        expr = "stage.started.throughput >= 95% of offered and p99.started < 20s and started > 1/s"
        [[threshold]]
        expr = "p50.started < 1ns"
        level = "warn"
        [report]
        tables = [{ columns = ["p99.started", "stage.started.throughput"] }]
        "#,
    );
    expect_holds(&said, &document);
    let trial = &document["settings"][0]["trials"][0];
    assert_eq!(trial["final_stage"], "started");
    let holds: Vec<_> = written_thresholds(trial).into_iter().map(|it| &it["holds"]).collect();
    assert_eq!(holds, [true, false], "{}", trial["thresholds"]);
    let cells = document["tables"][0]["rows"][0].as_array().unwrap();
    assert!(cells[1..].iter().all(|cell| cell["value"].as_f64() > Some(0.0)), "{cells:?}");
}

/// Claim: a system's own series, of names that the instrument has never heard, come out as they are declared: what adds up
/// in sums, what is progress by the minute, with its words on the page; a sum that is none is not made, and says why.
#[test]
fn series_of_the_system() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(
        r#"
        [system]
        kind = "echo"
        [system.deploy]
        metrics = true
        service = "25ms"
        [load]
        rate = "60/s"
        connections = 2
        warmup = "0s"
        duration = "8s"
        timeout = "20s"
        [[threshold]]
        expr = "nodes.sum.backlog.max > 40 and nodes.max.transactions_per_minute.mean > 600"
        [[threshold]]
        expr = "nodes.median.served_transactions_per_minute.mean > 600 and echo.served.last > 100"
        [[threshold]]
        expr = "nodes.sum.served.max > 1"
        level = "warn"
        [report]
        tables = [{ columns = ["nodes.sum.backlog.max", "nodes.max.transactions_per_minute.max"] }]
        "#,
    );
    let trial = &document["settings"][0]["trials"][0];
    let thresholds = written_thresholds(trial);
    let holds: Vec<&Value> = thresholds.iter().map(|it| &it["holds"]).collect();
    assert_eq!(holds, [&Value::Bool(true), &Value::Bool(true), &Value::Null], "{}", said.stderr);
    let why = "`served` does not add up, because it is declared as of each node alone (transactions served)";
    assert!(thresholds[2]["detail"].as_str().unwrap().contains(why), "{}", thresholds[2]);
    let cells = document["tables"][0]["rows"][0].as_array().unwrap();
    assert!(cells[1..].iter().all(|cell| cell["value"].as_f64() > Some(0.0)), "{cells:?}");

    // What they are is kept once, with the trial.
    let run = place.run_folder();
    let facts =
        std::fs::read(run.join(trial["path"].as_str().unwrap()).join("trial.json")).unwrap();
    let facts: Value = serde_json::from_slice(&facts).unwrap();
    let kept = facts["declared"]["series"].as_array().unwrap();
    let backlog = kept.iter().find(|it| it["name"] == "backlog").unwrap();
    assert_eq!((&backlog["aggregate"], &backlog["said_by"]), (&"sum".into(), &"node".into()));

    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    for words in [
        "Transactions that wait or are being served",
        "data-name=\"series-backlog-0-default\"",
        "data-name=\"series-transactions_per_minute-0-default\"",
        "/settings/0/trials/0/resources/nodes.sum.backlog/2",
    ] {
        assert!(page.contains(words), "{words} is not on the page");
    }
    assert!(!page.contains("resources/nodes.sum.served/") && !page.contains("(undeclared)"));
}
