//! What an adapter declares and nobody else knows: its stages in promises and tables, its series on the page.

use crate::harness::{Place, beside_others};

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
    said.expect_code(0);
    let trial = &document["settings"][0]["trials"][0];
    assert_eq!(trial["final_stage"], "started");
    let holds: Vec<_> =
        trial["thresholds"].as_array().unwrap().iter().map(|it| &it["holds"]).collect();
    assert_eq!(holds, [true, false], "{}", trial["thresholds"]);
    let cells = document["tables"][0]["rows"][0].as_array().unwrap();
    assert!(cells[1..].iter().all(|cell| cell["value"].as_f64() > Some(0.0)), "{cells:?}");
}
