//! Readers that are not ours (pyarrow, DuckDB, hdrh) read a sealed trial and agree with what went in.
//!
//! They run under the Python named by `ASSAY_TEST_PYTHON`, else `python3`. Where its modules are missing the
//! test says so in a line that begins with SKIPPED; `cargo xtask test` installs them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::process::Command;

use crate::rows::{http_row, let_wait, new_trial, read_all};
use model::facts::{Event, LedgerEntry, MetricSample};
use model::{Class, NO_STAMP, Outcome, Row, Seed};
use serde_json::{Value, json};

const MODULES: [&str; 3] = ["pyarrow.parquet", "duckdb", "hdrh.log"];

/// A Python that has the modules, or the reason why there is none.
fn python() -> Result<String, String> {
    let python = std::env::var("ASSAY_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    for module in MODULES {
        let import = Command::new(&python).args(["-c", &format!("import {module}")]).output();
        match import {
            Ok(output) if output.status.success() => {}
            Ok(_) => return Err(format!("{python} has no module {module}")),
            Err(error) => return Err(format!("{python} cannot be started: {error}")),
        }
    }
    Ok(python)
}

/// 200,000 rows over four seconds (two row groups), on two stages, with every outcome and a probe, in the
/// order of their ends.
fn some_rows() -> Vec<Row> {
    let mut rng = Seed(21).rng();
    let mut rows: Vec<Row> = (0..200_000).map(|tx| http_row(&mut rng, tx)).collect();
    for row in &mut rows {
        row.marks[1] = row.end + 100_000 + rng.below(1_000_000_000).cast_signed();
        row.end = row.marks[1];
        match rng.below(100) {
            0 => {
                (row.marks[1], row.outcome) = (NO_STAMP, Outcome::Rejected(Class::Limited));
                (row.code, row.error) = (429, 1);
            }
            1 => (row.marks[1], row.outcome) = (NO_STAMP, Outcome::Unknown),
            2 => {
                (row.sent, row.marks) = (NO_STAMP, [NO_STAMP; 4]);
                if rng.below(2) == 0 {
                    row.ready = NO_STAMP;
                }
                row.outcome = Outcome::Shed;
            }
            3 => row.stream = 1,
            _ => {}
        }
    }
    rows.sort_by_key(|row| row.end);
    assert!(let_wait(&mut rng, &mut rows) > 50_000);
    rows
}

fn nearest_rank(sorted: &[i64], q: f64) -> i64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.max(1) - 1]
}

/// Claim: counts, sums and quantiles that three foreign readers find are those of the rows that went in; the
/// interval log's are within its three digits.
#[test]
fn other_readers_agree() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            println!("SKIPPED other_readers_agree: {why}");
            return;
        }
    };
    let rows = some_rows();
    let (_keep, trial) = new_trial(2);
    let mut log = trial.row_log().unwrap();
    log.append(&rows).unwrap();
    log.close().unwrap();
    trial.seal().unwrap();
    trial
        .write_metrics(&[MetricSample { at: 1, source: "a".into(), name: "b".into(), value: 2.5 }])
        .unwrap();
    let event = Event { at: 1, name: "phase".into(), tx: None, detail: "warm-up".into() };
    trial.write_events(&[event.clone(), event]).unwrap();
    let mut ledger = trial.ledger_writer().unwrap();
    for position in 0..3 {
        ledger.push(LedgerEntry::new(position, position, true), None).unwrap();
    }
    ledger.close().unwrap();

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_run.py");
    let output = Command::new(python).arg(script).arg(trial.path()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();

    assert_eq!(found["pyarrow"]["rows"], rows.len());
    assert_eq!(found["pyarrow"]["row_groups"], 2);
    assert_eq!(found["pyarrow"]["stages"], json!(["accepted", "committed"]));
    assert_eq!(found["duckdb"]["tables"], json!({"metrics": 1, "events": 2, "ledger": 3}));
    assert_eq!(found["duckdb"]["types"]["tx"], "UBIGINT");
    assert_eq!(found["duckdb"]["types"]["outcome"], "VARCHAR");
    assert_eq!(found["duckdb"]["types"]["code"], "USMALLINT");
    check_sums(&found, &rows);
    check_latencies(&found, &rows);
    assert_eq!(read_all(&trial).1.len(), rows.len());
}

fn check_sums(found: &Value, rows: &[Row]) {
    let mut outcomes = BTreeMap::new();
    for row in rows {
        *outcomes.entry(row.outcome.to_string()).or_insert(0_u64) += 1;
    }
    assert_eq!(outcomes.len(), 4);
    assert_eq!(found["duckdb"]["outcomes"], json!(outcomes));
    let sum = |stamp: &dyn Fn(&Row) -> i64| -> String {
        let stamps = rows.iter().map(stamp).filter(|stamp| *stamp != NO_STAMP);
        stamps.map(i128::from).sum::<i128>().to_string()
    };
    let stamps = &found["duckdb"]["stamps"];
    assert_eq!(stamps["due"], sum(&|row| row.due));
    assert_eq!(stamps["ready"], sum(&|row| row.ready));
    assert_eq!(stamps["products"], products(rows));
    assert_eq!(stamps["sent"], sum(&|row| row.sent));
    assert_eq!(stamps["end"], sum(&|row| row.end));
    assert_eq!(stamps["end_not_null"], rows.len());
    assert_eq!(found["duckdb"]["bytes_in"], rows.len() * 615);
}

/// A sum in which no two rows can change places: were a stamp given to another row, it would differ.
fn products(rows: &[Row]) -> String {
    let product = |row: &Row| i128::from(row.tx) * i128::from(row.ready);
    rows.iter().filter(|row| row.ready != NO_STAMP).map(product).sum::<i128>().to_string()
}

fn check_latencies(found: &Value, rows: &[Row]) {
    let sorted = |stream: Option<u8>, latency: &dyn Fn(&Row) -> Option<i64>| {
        let rows = rows.iter().filter(|row| stream.is_none_or(|stream| row.stream == stream));
        let mut values: Vec<i64> = rows.filter_map(latency).collect();
        values.sort_unstable();
        values
    };
    let quantiles = [0.5, 0.9, 0.99, 1.0];
    for (name, stage) in [("accepted", 0), ("committed", 1)] {
        let values = sorted(None, &|row| row.response_ns(stage));
        let entry = &found["pyarrow"]["latencies"][name];
        assert_eq!(entry["count"], values.len());
        assert_eq!(entry["quantiles"], json!(quantiles.map(|q| nearest_rank(&values, q))));
    }
    type Latency<'a> = &'a dyn Fn(&Row) -> Option<i64>;
    let series: [(&str, u8, Latency); 8] = [
        ("accepted", 0, &|row| row.response_ns(0)),
        ("committed", 0, &|row| row.response_ns(1)),
        ("service", 0, &|row| row.service_ns(1)),
        ("send_lag", 0, &|row| row.send_lag_ns()),
        ("probe.accepted", 1, &|row| row.response_ns(0)),
        ("probe.committed", 1, &|row| row.response_ns(1)),
        ("probe.service", 1, &|row| row.service_ns(1)),
        ("probe.send_lag", 1, &|row| row.send_lag_ns()),
    ];
    let tags = found["hdrh"]["tags"].as_object().unwrap();
    assert_eq!(tags.len(), series.len(), "{:?}", tags.keys());
    for (tag, stream, latency) in series {
        let values = sorted(Some(stream), latency);
        assert_eq!(tags[tag]["count"], values.len(), "{tag}");
        for (index, q) in quantiles.into_iter().enumerate() {
            let expected = nearest_rank(&values, q) as f64;
            let shown = tags[tag]["quantiles"][index].as_f64().unwrap();
            let error = (shown - expected).abs() / expected;
            assert!(error <= 1.1e-3, "{tag} at {q}: {shown} is not {expected}");
        }
    }
    // Due over 4 s, answered up to 1 s later: seconds 0 to 4 or 5.
    assert!((5..=6).contains(&tags["committed"]["intervals"].as_u64().unwrap()));
    assert_eq!(found["hdrh"]["start_s"], 1_795_243_832.0);
}
