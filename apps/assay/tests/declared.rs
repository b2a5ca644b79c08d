//! Declarations that only an adapter knows: its stages in thresholds and tables, its series on the page.

use serde_json::Value;

use crate::harness::{Place, beside_others, expect_holds, written_thresholds};

/// Claim: thresholds, tables and `measure.until` may name any stage that the system declares, whatever it is called.
#[test]
fn stages_of_the_system() {
    let _beside = beside_others();
    let (said, document) = Place::new().experiment(
        r#"
        system.kind = "echo"
        load = { rate = "200/s", connections = 2, warmup = "0s", duration = "1s" }
        [system.deploy]
        stages = 3
        service = "1ms"
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

/// Claim: a background load that ends when it is accepted, beside a probe that ends when it is committed, end to end: rows,
/// counts, latencies and fates are each by their own final stage, also after the folder is read again.
#[test]
fn each_stream_to_its_own_stage() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(
        r#"
        system.kind = "echo"
        load = { rate = "100/s", connections = 2, warmup = "0s", duration = "2s", timeout = "20s", until = "accepted" }
        [system.deploy]
        stages = 3
        service = "5ms"
        [probe]
        interval = "100ms"
        until = "committed"
        [[threshold]]
        expr = "stage.accepted.throughput > 1/s and p50 >= 5ms and p50.accepted < 20s and inf == 0"
        [[threshold]]
        expr = "committed > 1/s"
        level = "warn"
        "#,
    );
    let trial = &document["settings"][0]["trials"][0];
    assert_eq!(trial["final_stage"], "committed", "{}", said.stderr);
    let ends: Vec<_> = trial["streams"].as_array().unwrap().iter().collect();
    let ends: Vec<_> = ends.iter().map(|of| (&of["stream"], &of["until"])).collect();
    let word = |word: &str| Value::from(word);
    let expected = [(word("main"), word("accepted")), (word("probe"), word("committed"))];
    assert_eq!(ends, expected.each_ref().map(|(stream, until)| (stream, until)));
    for (counts, due) in [("background", 200), ("counts", 20)] {
        let counts = &trial[counts];
        assert_eq!((&counts["due"], &counts["committed"]), (&due.into(), &due.into()), "{counts}");
    }
    let holds: Vec<_> = written_thresholds(trial).into_iter().map(|it| &it["holds"]).collect();
    assert_eq!(holds, [&Value::Bool(true), &Value::Null], "the load is not followed so far");
    // What only had to be accepted was done all the same.
    assert_eq!(trial["fates"]["once"], 220, "{}", trial["fates"]);
    assert_eq!(trial["fates"]["lost"], 0);

    let said = place.assay(&["convert", place.run_folder().to_str().unwrap(), "--to", "csv"]);
    let mut lines = said.expect_code(0).stdout.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place_of = |name: &str| head.iter().position(|it| *it == name).unwrap();
    let (stream, committed) = (place_of("stream"), place_of("committed_ns"));
    let (end, accepted) = (place_of("end_ns"), place_of("accepted_ns"));
    let mut seen = [0, 0];
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let is_probe = cells[stream] == "1";
        seen[usize::from(is_probe)] += 1;
        let own = if is_probe { committed } else { accepted };
        assert_eq!(cells[own], cells[end], "{line}");
        assert_eq!(cells[committed].is_empty(), !is_probe, "{line}");
    }
    assert_eq!(seen, [200, 20]);
    let run = place.run_folder().display().to_string();
    place.assay(&["report", &run]).expect_stdout("Streams").expect_stdout("until");
    let (_, read) = place.report();
    assert_eq!(read["settings"][0]["trials"][0]["streams"], trial["streams"]);
}

/// Claim: a system's own series, of names that the instrument has never heard, come out as they are declared: what adds up
/// in sums, what is progress by the minute, with its words on the page; a sum that is none is not made, and says why.
#[test]
fn series_of_the_system() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(
        r#"
        system.kind = "echo"
        load = { rate = "60/s", connections = 2, warmup = "0s", duration = "8s", timeout = "20s" }
        [system.deploy]
        metrics = true
        service = "25ms"
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
