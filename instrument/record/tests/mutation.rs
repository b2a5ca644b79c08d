//! Files of a run folder with bytes changed, cut off or added, read as each of its formats.

use std::fs;
use std::time::Duration;

use crate::rows::{any_row, new_trial};
use model::Seed;
use model::facts::{Event, MetricSample, TrialFacts};
use model::node_events::{NodeEvent, NodeSpan};
use record::{fuzz_run_folder, fuzz_run_folder_and_parquet};

/// Claim: no mutation of any file's bytes panics out of a reader, whichever format it is read as.
#[test]
fn mutated_files_never_panic_out() {
    // Panics of the parquet crate that are caught would fill the output; nothing else runs in this process.
    std::panic::set_hook(Box::new(|_| {}));
    let (_keep, trial) = new_trial(2);
    let mut rng = Seed(9).rng();
    let mut log = trial.row_log().unwrap();
    for tx in 0..200 {
        log.append(&[any_row(&mut rng, tx, 2)]).unwrap();
    }
    log.flush().unwrap();
    let log_bytes = fs::read(trial.path().join("rows.log")).unwrap();
    log.close().unwrap();
    trial.seal().unwrap();
    let sample =
        |i: u32| MetricSample { at: 0, source: "s".into(), name: "n".into(), value: f64::from(i) };
    trial.write_metrics(&(0..50).map(sample).collect::<Vec<_>>()).unwrap();
    let event = |i| Event { at: i, name: "x".into(), tx: Some(1), detail: "d".into() };
    trial.write_events(&(0..50).map(event).collect::<Vec<_>>()).unwrap();
    let mut ledger = trial.ledger_writer().unwrap();
    for position in 0..50 {
        ledger.push(model::facts::LedgerEntry::new(position, 1, true), None).unwrap();
    }
    ledger.close().unwrap();
    let stages = [model::node_events::NodeStage::new("stored", "in the ledger")];
    let mut events = trial.node_events_writer(model::WallTime::from_unix_ns(0), &stages).unwrap();
    for tx in 0..50_u32 {
        let (at, took) = (
            model::WallTime::from_unix_ns(i64::from(tx) << 26),
            Duration::from_micros(1 << (tx % 20)),
        );
        events.event(&NodeEvent { stage: 0, node: "n", at, count: 1, took: Some(took) });
        events.span(&NodeSpan { tx: tx.into(), stage: 0, node: "n", from: at, to: at });
    }
    assert!(events.close().is_whole);
    let file = |name: &str| fs::read(trial.path().join(name)).unwrap();
    let plan =
        b"schema = 'assay.plan/2'\nname = 'n'\nsettings = [{ key = 'a/b', trials = 3 }]\n".to_vec();
    let facts = serde_json::to_vec(&TrialFacts::default()).unwrap();
    let seeds = [
        (0, log_bytes),
        (2, plan),
        (3, facts),
        (6, file("seal.json")),
        (8, file("transactions.parquet")),
        (9, file("metrics.parquet")),
        (10, file("events.parquet")),
        (11, file("ledger.parquet")),
        (14, file("stages.parquet")),
        (15, file("traces.parquet")),
    ];
    let mut escaped = Vec::new();
    for (format, seed) in &seeds {
        for _ in 0..20_000 {
            let mut bytes = vec![*format];
            bytes.extend_from_slice(seed);
            for _ in 0..=rng.below(4) {
                let at = 1 + usize::try_from(rng.below(seed.len() as u64)).unwrap();
                match rng.below(4) {
                    0 => bytes.truncate(at),
                    1 => bytes.insert(at.min(bytes.len()), rng.next_u64() as u8),
                    _ if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
                    _ => {}
                }
            }
            let whole = std::panic::catch_unwind(|| {
                fuzz_run_folder(&bytes);
                fuzz_run_folder_and_parquet(&bytes);
            });
            if whole.is_err() {
                escaped.push((*format, bytes));
            }
        }
    }
    let _ = std::panic::take_hook();
    assert!(escaped.is_empty(), "{} of them, the first {:02x?}", escaped.len(), escaped[0]);
}
