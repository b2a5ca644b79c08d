//! The folder around the trials: names, order, copies, and files that are missing or damaged.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use crate::rows::{http_row, new_trial, read_all};
use model::facts::{Environment, Event, MetricSample};
use model::plan::Plan;
use model::{NO_STAMP, Seed, WallTime};
use record::{RecordError, RunFolder};

pub fn plan(seed: u64, keys: &[(&str, u32)]) -> Plan {
    let setting = |(key, trials): &(&str, u32)| {
        serde_json::json!({
            "key": key, "values": {"rate": "50/s"}, "trials": trials, "expect": null,
            "system": {"kind": "http", "deploy": {"url": "http://127.0.0.1/", "n": 3, "x": [1, "a", true, 1.5]},
                       "workload": {"deep": {"er": {"still": "ok"}}}},
            "load": {
                "arrivals": {"model": "open", "schedule": {"shape": "constant", "rate": "50/s"}},
                "connections": 1, "connections_max": 2, "threads": 1, "warmup": "1s", "duration": "30s",
                "drain_max": "5s", "timeout": "10s", "backlog_max": 1000, "lookahead": 64,
                "pacing": "balanced", "transactions_max": 0
            },
            "probe": null,
            "measure": {"until": "", "window": "1s", "ledger": true},
            "faults": [{"at": "1s", "for": "2s", "kind": "pause", "on": ["n*"]}]
        })
    };
    serde_json::from_value(serde_json::json!({
        "schema": "assay.plan/2", "name": "n", "question": "q?\nline \"two\"", "notes": "", "seed": seed,
        "shuffled": true, "percentiles": [0.5, 0.99], "profile": "",
        "axes": [{"name": "rate", "labels": ["50/s"]}],
        "settings": keys.iter().map(setting).collect::<Vec<_>>(),
        "order": [[0, 0], [1, 0]],
        "thresholds": [{"expr": "p99 < 1s", "at": {}, "level": "fail"}],
        "tables": []
    }))
    .unwrap()
}

/// Claim: runs of one name in one second get folders of their own, and are listed oldest first.
#[test]
fn folders_are_unique() {
    let runs = tempfile::tempdir().unwrap();
    let started = WallTime::from_unix_ns(1_795_243_832_000_000_000);
    let made: Vec<_> =
        (0..3).map(|_| RunFolder::create(runs.path(), "k latency", started).unwrap()).collect();
    let names: Vec<_> =
        made.iter().map(|run| run.path().file_name().unwrap().to_str().unwrap()).collect();
    assert!(names[0].starts_with("20261121T065032Z_k_latency~"), "{names:?}");
    assert_eq!(names[1], format!("{}-2", names[0]));
    assert_eq!(names[2], format!("{}-3", names[0]));
    assert!(
        RunFolder::list(runs.path()).unwrap().is_empty(),
        "a folder without a plan is no run yet"
    );
    for run in &made {
        run.write_plan(&plan(1, &[("default", 1)])).unwrap();
    }
    assert_eq!(RunFolder::list(runs.path()).unwrap().len(), 3);
}

/// Claim: a plan comes back from plan.toml as it was, with any seed.
#[test]
fn plans_round_trip() {
    let runs = tempfile::tempdir().unwrap();
    let run = RunFolder::create(runs.path(), "x", WallTime::from_unix_ns(0)).unwrap();
    for seed in [0, 1, u64::from(u32::MAX), i64::MAX.cast_unsigned(), u64::MAX] {
        let plan = plan(seed, &[("rate=50/s", 2), ("default", 1)]);
        run.write_plan(&plan).unwrap();
        let found = run.plan().unwrap();
        let value = |plan: &Plan| serde_json::to_value(plan).unwrap();
        assert_eq!(value(&found), value(&plan));
    }
}

/// Claim: a result document of another version is said to be one, and is not read as if its words meant the same.
#[test]
fn results_of_another_version() {
    let runs = tempfile::tempdir().unwrap();
    let run = RunFolder::create(runs.path(), "x", WallTime::from_unix_ns(0)).unwrap();
    fs::write(run.path().join("summary.json"), "{\"schema\": \"assay.result/1\", \"name\": \"x\"}")
        .unwrap();
    let error = run.result().unwrap_err();
    assert!(
        matches!(&error, RecordError::OtherVersion { found, .. } if found == "assay.result/1"),
        "{error}"
    );
}

/// Claim: trials come in the order of the plan, those without a folder left out, and a plan that claims four
/// billion trials costs nothing.
#[test]
fn trials_in_the_order_of_the_plan() {
    let runs = tempfile::tempdir().unwrap();
    let run = RunFolder::create(runs.path(), "x", WallTime::from_unix_ns(0)).unwrap();
    run.write_plan(&plan(1, &[("z=1/s", u32::MAX), ("a/b", 3), ("never", 2)])).unwrap();
    for (key, index) in [("a/b", 2), ("a/b", 0), ("z=1/s", 11), ("z=1/s", 2)] {
        run.trial(key, index).unwrap();
    }
    fs::create_dir(run.path().join("settings/a~b")).unwrap();
    fs::create_dir(run.path().join("settings/z=1per-s/trial-007")).unwrap();
    let found: Vec<_> = run
        .trials()
        .unwrap()
        .iter()
        .map(|trial| (trial.setting().to_owned(), trial.trial(), trial.relative_path().to_owned()))
        .collect();
    let expected = [
        ("z=1/s", 2, "settings/z=1per-s/trial-2"),
        ("z=1/s", 11, "settings/z=1per-s/trial-11"),
        ("a/b", 0, "settings/aper-b/trial-0"),
        ("a/b", 2, "settings/aper-b/trial-2"),
    ];
    assert_eq!(found, expected.map(|(key, trial, path)| (key.to_owned(), trial, path.to_owned())));
}

/// Claim: texts, environment, facts and faults come back, names that leave the folder are refused, and a fault
/// line that a crash cut off is left out.
#[test]
fn small_files_round_trip() {
    let (_keep, trial) = new_trial(2);
    let run = RunFolder::open(trial.path().join("../../..")).unwrap();
    run.write_text("experiment.toml", "a = 1\n").unwrap();
    assert_eq!(run.text("experiment.toml").unwrap(), "a = 1\n");
    for name in ["", "..", "../x", "/etc/passwd", "a/b", ".hidden", "a\0b"] {
        assert!(matches!(run.write_text(name, ""), Err(RecordError::Name { .. })), "{name:?}");
    }
    let environment =
        Environment { cpu: "x".to_owned(), cpu_mhz: (1.0, 2.5), ..Default::default() };
    run.write_environment(&environment).unwrap();
    assert_eq!(run.environment().unwrap().cpu_mhz, (1.0, 2.5));
    let mut facts = trial.facts().unwrap();
    assert!(!facts.complete);
    facts.complete = true;
    trial.write_facts(&facts).unwrap();
    assert!(trial.facts().unwrap().complete);
    assert!(trial.faults().unwrap().is_empty());
    trial.fault_log().unwrap().close().unwrap();
    assert!(trial.faults().unwrap().is_empty(), "a trial whose faults never came");
}

/// Claim: events and samples can be read as soon as they happened, also those of a trial that was cut off, and their file goes when
/// Parquet has them.
#[test]
fn events_are_there_as_they_happen() {
    let (_keep, trial) = new_trial(1);
    let event = |at| Event { at, name: "mark".to_owned(), tx: None, detail: format!("at {at}") };
    assert!(trial.events().unwrap().is_empty());
    let mut log = trial.event_log().unwrap();
    for at in 0..3 {
        log.append(&event(at));
        assert_eq!(trial.events().unwrap().last(), Some(&event(at)));
    }
    let path = trial.path().join("events.ndjson");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 5]).unwrap();
    assert_eq!(trial.events().unwrap(), [event(0), event(1)]);
    trial.write_events(&[event(7)]).unwrap();
    assert_eq!(trial.events().unwrap(), [event(7)]);
    assert!(!path.exists());
    let sample =
        MetricSample { at: 5, source: "host".to_owned(), name: "load1".to_owned(), value: 0.1 };
    trial.metric_log().unwrap().append(&sample);
    assert_eq!(trial.metrics().unwrap(), std::slice::from_ref(&sample));
    trial.write_metrics(&[sample.clone(), sample.clone()]).unwrap();
    assert_eq!(trial.metrics().unwrap().len(), 2);
    assert!(!trial.path().join("metrics.ndjson").exists());
}

/// Claim: a copy of the folder, in another place, reads the same.
#[test]
fn a_copy_reads_the_same() {
    let (_keep, trial) = new_trial(1);
    let run = RunFolder::open(trial.path().join("../../..")).unwrap();
    run.write_plan(&plan(1, &[("default", 1)])).unwrap();
    let mut log = trial.row_log().unwrap();
    let rows: Vec<_> = (0..10_000).map(|tx| http_row(&mut Seed(tx).rng(), tx)).collect();
    log.append(&rows).unwrap();
    log.close().unwrap();
    trial.seal().unwrap();
    trial
        .write_events(&[Event { at: 0, name: "x".into(), tx: None, detail: String::new() }])
        .unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    copy(run.path(), elsewhere.path());
    let copied = RunFolder::open(elsewhere.path()).unwrap().trials().unwrap().remove(0);
    assert_eq!(read_all(&copied), read_all(&trial));
    assert_eq!(copied.events().unwrap(), trial.events().unwrap());
    let here = run.path().canonicalize().unwrap();
    for file in files(elsewhere.path()) {
        let bytes = fs::read(&file).unwrap();
        let needle = here.as_os_str().as_encoded_bytes();
        assert!(
            !bytes.windows(needle.len()).any(|w| w == needle),
            "{} names a path",
            file.display()
        );
    }
}

/// Claim: each file, cut short or with a byte changed, is refused by an error that names it and says what to do.
#[test]
fn damaged_files_are_named() {
    let (_keep, trial) = new_trial(1);
    let mut log = trial.row_log().unwrap();
    log.append(&[http_row(&mut Seed(1).rng(), 1)]).unwrap();
    log.close().unwrap();
    trial.seal().unwrap();
    let sample = MetricSample { at: 0, source: "s".into(), name: "n".into(), value: 1.0 };
    trial.write_metrics(&[sample]).unwrap();
    trial.write_events(&[]).unwrap();
    trial.ledger_writer().unwrap().close().unwrap();
    let rows = |t: &record::TrialFolder| t.for_each_batch(|_| ()).map(|_| ());
    type Reader<'a> = &'a dyn Fn(&record::TrialFolder) -> Result<(), RecordError>;
    let readers: [(&str, Reader); 7] = [
        ("trial.json", &|t| t.facts().map(|_| ())),
        ("transactions.parquet", &rows),
        ("latency.hlog", &rows),
        ("seal.json", &rows),
        ("metrics.parquet", &|t| t.metrics().map(|_| ())),
        ("events.parquet", &|t| t.events().map(|_| ())),
        ("ledger.parquet", &|t| t.for_each_ledger_entry(|_, _| ()).map(|_| ())),
    ];
    for (name, read) in readers {
        let path = trial.path().join(name);
        let whole = fs::read(&path).unwrap();
        read(&trial).unwrap();
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 0xff;
        for bytes in [&whole[..whole.len() / 2], &changed, &[][..]] {
            fs::write(&path, bytes).unwrap();
            let error = read(&trial).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("restore it"), "{error}");
        }
        fs::write(&path, &whole).unwrap();
    }
    let missing = RunFolder::open("/no/such/run").unwrap_err().to_string();
    assert!(missing.contains("/no/such/run") && missing.contains("assay list"), "{missing}");
}

/// Claim: rows of an earlier version, in Parquet or still in the log, are refused by a sentence that says what to do.
#[test]
fn rows_of_an_earlier_version_are_refused() {
    let (_keep, trial) = new_trial(1);
    let mut log = trial.row_log().unwrap();
    log.append(&[http_row(&mut Seed(1).rng(), 1)]).unwrap();
    log.close().unwrap();
    let refused = |error: RecordError, found: &str| {
        let said = error.to_string();
        for part in
            ["written by another version", found, "environment.json", "run the experiment again"]
        {
            assert!(said.contains(part), "{said}");
        }
    };
    let path = trial.path().join("rows.log");
    let now = fs::read(&path).unwrap();
    let mut earlier = now.clone();
    earlier[8] = 1;
    fs::write(&path, &earlier).unwrap();
    refused(trial.for_each_batch(|_| ()).unwrap_err(), "row log of version 1");
    fs::write(&path, &now).unwrap();

    trial.seal().unwrap();
    let path = trial.path().join("transactions.parquet");
    let mut earlier = fs::read(&path).unwrap();
    let schema = b"assay.transactions/4";
    let at = earlier.windows(schema.len()).position(|bytes| bytes == schema).unwrap();
    earlier[at + schema.len() - 1] = b'2';
    fs::write(&path, &earlier).unwrap();
    refused(record::TransactionsFile::open(&path).unwrap_err(), "assay.transactions/2");
}

/// Claim: rows as they were written before they had a receive lag, in Parquet and still in the log, are read as they
/// were, and say that no stamp was had.
#[test]
fn rows_without_a_receive_lag() {
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/earlier");
    let mut sealed = Vec::new();
    let file = record::TransactionsFile::open(&earlier.join("transactions-3.parquet")).unwrap();
    file.for_each_batch(|rows| sealed.extend_from_slice(rows)).unwrap();
    let told: Vec<_> =
        sealed.iter().map(|row| (row.due, row.sent, row.end, row.bytes_in)).collect();
    let expected =
        [(0, 1_000, 90_000, 9), (20_000, 91_000, 140_000, 9), (40_000, NO_STAMP, 1_040_000, 0)];
    assert_eq!(told, expected);
    assert_eq!(file.stages(), ["accepted", "committed"]);

    let (_keep, trial) = new_trial(1);
    fs::copy(earlier.join("rows-2.log"), trial.path().join("rows.log")).unwrap();
    let (read, logged) = read_all(&trial);
    assert_eq!((read.dropped_bytes, logged.len()), (0, 104));
    assert!(logged.iter().all(|row| row.marks[0] > row.sent && row.end == row.marks[0]));
    assert!(sealed.iter().chain(&logged).all(|row| row.receive_lag_ns().is_none()));
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
