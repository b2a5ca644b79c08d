//! The atomizer as users meet it: sums by stage and fates, faults, the published benchmark's meaning of confirmed, and the
//! event files that the published program has left.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{
    Place, WRONG_FATES, beside_others, expect_checks, expect_none, failed_audits, number, trial,
};

/// A setting of a run's document by its key.
fn setting<'a>(document: &'a Value, key: &str) -> &'a Value {
    let settings = document["settings"].as_array().into_iter().flatten();
    let found =
        settings.into_iter().find(|it| it["key"].as_str().is_some_and(|it| it.ends_with(key)));
    &found.unwrap_or_else(|| panic!("no setting {key} in {document}"))["trials"][0]
}

fn count(trial: &Value, name: &str) -> u64 {
    number(&trial["counts"][name])
}

fn rejected(trial: &Value, class: &str) -> u64 {
    trial["counts"]["rejected_by_class"][class].as_u64().unwrap_or(0)
}

fn passed(trial: &Value, stage: &str) -> u64 {
    let stages = trial["node_stages"]["stages"].as_array().into_iter().flatten();
    let found = stages.into_iter().find(|it| it["stage"] == stage);
    number(&found.unwrap_or_else(|| panic!("no stage {stage}: {trial}"))["passed"])
}

/// Every transaction in the ledger is one that was submitted, once, and every check of the chain holds.
#[track_caller]
fn expect_sound(trial: &Value) {
    expect_none(trial, &WRONG_FATES[..4]);
    let names = expect_checks(trial);
    for name in ["no_double_spend", "value_conserved", "blocks_in_order"] {
        assert!(names.contains(&name), "{names:?}");
    }
}

/// The time of each followed transaction that was committed is divided into all of these legs, and nothing of it is left.
#[track_caller]
fn expect_divided(trial: &Value, legs: &[&str]) {
    let way = &trial["node_stages"]["way"];
    let all = way["legs"].as_array().into_iter().flatten();
    let (names, lengths): (Vec<&str>, Vec<u64>) =
        all.map(|it| (it["leg"].as_str().unwrap_or_default(), number(&it["sum_ns"]))).unzip();
    assert_eq!(names, legs, "{way}");
    assert!(number(&way["transactions"]) > 0, "{way}");
    assert_eq!((number(&way["incomplete"]), number(&way["disordered"])), (0, 0), "{way}");
    assert_eq!(lengths.iter().sum::<u64>(), number(&way["total_ns"]), "{way}");
}

/// Claim: what nodes stamped, stage by stage, is what clients and ledger say became of every transaction, to the last one:
/// with what the published system does, where all goes through the log, and without it, where what is out of range is
/// refused before. Clients to whom blocks are sent as well take no harm of it.
#[test]
fn sums_by_stage_are_the_fates() {
    let _beside = beside_others();
    let place = Place::new();
    let (_, document) = place.experiment(
        r#"
        system.kind = "atomizer"
        workload = { kind = "spend", double_spend = "5%", stale = "5%", future = "5%" }
        [system.deploy]
        stamps = true
        [load]
        rate = "2000/s"
        connections = 3
        connections_max = "fixed"
        warmup = "0s"
        duration = "3s"
        timeout = "20s"
        [matrix]
        flaws = { set = "system.deploy", values = [
            { as_published = true, refresh_every = 50, stamps = true }, { stamps = true } ], labels = ["on", "off"] }
        "#,
    );
    for flaws in ["on", "off"] {
        let trial = setting(&document, flaws);
        expect_sound(trial);
        expect_divided(
            trial,
            &[
                "send",
                "to the node",
                "queue",
                "sync",
                "agreement",
                "waiting for the block",
                "to the archiver",
                "seen",
            ],
        );
        let due = count(trial, "due");
        assert_eq!(
            (due, count(trial, "sent"), count(trial, "unknown")),
            (6_000, 6_000, 0),
            "{flaws}"
        );
        let of = |stage: &str| passed(trial, stage);
        let [receive, accumulate, log, apply] = ["receive", "accumulate", "log", "apply"].map(of);
        let [admit, expire, spent] = ["admit", "expire", "spent"].map(of);
        let [partial, refuse, stale] = ["partial", "refuse", "stale"].map(of);
        assert_eq!((receive, accumulate + refuse, partial), (due, due, 0), "{flaws}");
        assert_eq!((accumulate, apply), (log + stale, log), "{flaws}");
        assert_eq!(admit + expire + spent, apply, "{flaws}");
        assert_eq!(expire + refuse + stale, rejected(trial, "expired"), "{flaws}");
        let gaps = trial["node_stages"]["gaps"].as_array().into_iter().flatten();
        let missing: u64 = gaps.map(|gap| number(&gap["missing"])).sum();
        assert_eq!(missing, 0, "no stage lacks what another one took: {}", trial["node_stages"]);
        assert_eq!(spent, rejected(trial, "conflict"), "{flaws}");
        let committed = count(trial, "committed");
        assert_eq!([admit, of("block"), of("archive")], [committed; 3], "{flaws}");
        assert_eq!(number(&trial["fates"]["entries"]), committed, "{flaws}");
        assert!(committed > 2_000 && spent > 20, "{flaws}: {}", trial["counts"]);
        if flaws == "on" {
            assert_eq!(accumulate, log, "all goes through the log");
            assert!(expire > 500, "{}", trial["counts"]);
        } else {
            assert!(refuse + stale > 500 && expire < 100, "{}", trial["counts"]);
        }
        let audits = trial["audits"].as_array().into_iter().flatten();
        let conservation = audits.into_iter().find(|it| it["name"] == "conservation");
        assert_eq!(conservation.expect("it is an audit")["outcome"], "ok", "{flaws}");
    }
}

/// Claim: shards that vouch let no input be spent twice, however long after, and all else is committed; one that lies lets it
/// happen, and the check of the ledger finds just that.
#[test]
fn shards_vouch_and_one_lies() {
    let _beside = beside_others();
    let place = Place::new();
    let (_, document) = place.experiment(
        r#"
        [system]
        kind = "atomizer"
        [system.deploy]
        shards = 2
        [workload]
        kind = "spend"
        partial = "5%"
        double_spend = "10%"
        double_lag = 200       # two seconds
        [load]
        rate = "1000/s"
        connections = 2
        connections_max = "fixed"
        warmup = "0s"
        duration = "5s"
        timeout = "20s"
        [matrix]
        lie = { set = "system.deploy.byzantine", values = [[], ["shard0.vouches_twice", "shard1.vouches_twice"]], labels = ["honest", "lying"] }
        "#,
    );
    let honest = setting(&document, "honest");
    expect_sound(honest);
    // On a busy machine a shard's height may be too old when an atomizer hears it, which is a refusal, too.
    let (committed, conflict) = (count(honest, "committed"), rejected(honest, "conflict"));
    assert!(committed > 1_000 && conflict > 20, "{}", honest["counts"]);
    let lying = setting(&document, "lying");
    let checks = lying["checks"].as_array().into_iter().flatten();
    let failed: Vec<&str> = checks
        .filter(|check| check["outcome"] != "ok")
        .map(|check| check["name"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(failed, ["no_double_spend"], "{}", lying["checks"]);
}

/// Claim: with the published benchmark's watchtower every answer is a commit, double spends and what came too late among
/// them, and the ledger lacks just those; one that knows says so of each, and nothing is lost.
#[test]
fn confirmed_when_the_question_came_back() {
    let _beside = beside_others();
    let place = Place::new();
    let (_, document) = place.experiment(
        r#"
        system.kind = "atomizer"
        workload = { kind = "spend", double_spend = "10%", stale = "10%" }
        [load]
        rate = "500/s"
        connections = 2
        connections_max = "fixed"
        warmup = "0s"
        duration = "3s"
        timeout = "20s"
        [matrix]
        says = { set = "system.deploy", values = [
            { observe = "watchtower", watchtower_stub = true }, { observe = "watchtower" } ], labels = ["stub", "what-is"] }
        "#,
    );
    let stub = setting(&document, "stub");
    assert_eq!(
        (count(stub, "due"), count(stub, "committed")),
        (1_500, 1_500),
        "{}",
        stub["counts"]
    );
    let fates = &stub["fates"];
    let (lost, entries) = (number(&fates["lost"]), number(&fates["entries"]));
    assert_eq!((lost + entries, number(&fates["phantom"])), (1_500, 0), "{fates}");
    assert!(lost > 150, "{fates}");
    let knows = setting(&document, "what-is");
    expect_sound(knows);
    let committed = count(knows, "committed");
    assert_eq!(committed + count(knows, "rejected"), 1_500, "{}", knows["counts"]);
    assert_eq!(number(&knows["fates"]["entries"]), committed);
    assert!(committed > 900 && rejected(knows, "expired") > 50, "{}", knows["counts"]);
}

/// Claim: a leader of three that is killed under load, and an archiver that is killed and started again, lose nothing that
/// was acknowledged and let nothing be spent twice; blocks go on after it.
#[test]
fn killed_under_load() {
    let _beside = beside_others();
    let place = Place::new();
    for name in ["kills", "archiver"] {
        let document = place.toy(&format!("atomizer/{name}"), &[]);
        let trial = trial(&document);
        expect_sound(trial);
        let fault = &trial["faults"][0];
        assert_eq!(fault["happened"], true, "{fault}");
        let back_after = fault["back_after_ns"].as_i64();
        assert!(back_after.is_some(), "{name}: nothing was committed behind it: {fault}");
        assert!(count(trial, "committed") > 500, "{name}: {}", trial["counts"]);
    }
}

/// What a benchmark of `seconds` with `rate` transactions a second leaves in `folder`; with `loses` each sampler loses the
/// newest record at each flush, once a second, as the published program does.
fn event_files(folder: &Path, seconds: u64, rate: u64, loses: bool) {
    fs::create_dir_all(folder).expect("it can be made");
    // Event, file, events a second: what is stamped of each transaction, of each batch, and of each block.
    let samplers: [(u8, &str, u64); 6] = [
        (1, "atomizer_controller", rate),
        (2, "tx_notify", rate),
        (3, "send_complete_txs", 50),
        (4, "state_machine", 50),
        (5, "atomizer", rate),
        (8, "atomizer", 4),
    ];
    let mut files: std::collections::BTreeMap<&str, Vec<(i64, [u8; 25])>> = Default::default();
    for (event, name, each_second) in samplers {
        for n in 0..seconds * each_second {
            let after_ns =
                i64::try_from((n + 1) * 1_000_000_000 / each_second).expect("some seconds");
            let end = 1_645_781_131_000_000_000 + after_ns - 1;
            let mut record = [event; 25];
            record[1..9].copy_from_slice(&end.to_le_bytes());
            record[9..17].copy_from_slice(&900_i64.to_le_bytes());
            record[17..].copy_from_slice(&(rate / each_second).to_le_bytes());
            files.entry(name).or_default().push((end, record));
        }
    }
    for (name, mut records) in files {
        records.sort_by_key(|(end, record)| (*end, record[0]));
        let second = |end: i64| end / 1_000_000_000;
        let is_newest = |at: usize| {
            records.get(at + 1).is_none_or(|(next, _)| second(*next) > second(records[at].0))
        };
        let kept = (0..records.len()).filter(|at| !(loses && is_newest(*at)));
        let bytes: Vec<u8> = kept.flat_map(|at| records[at].1).collect();
        fs::write(folder.join(format!("event_sampler_{name}.bin")), bytes)
            .expect("it can be written");
    }
}

/// Claim: files in the form of the published program become a run whose page draws the stages; where one record is lost at
/// each flush the audit of sums says which stages lack how many, and where none is it holds.
#[test]
fn event_files_of_the_published_program() {
    let _beside = beside_others();
    for loses in [true, false] {
        let place = Place::new();
        event_files(&place.path().join("left"), 6, 1_000, loses);
        let said = place.assay(&["convert", "left", "--from", "event-sampler", "-o", "runs"]);
        said.expect_code(0).expect_stderr("next: assay report");
        let (_, document) = place.report();
        let trial = trial(&document);
        // Six flushes: one record each, which is one transaction, a batch of twenty, or a block of 250.
        let lost = if loses { [6, 6, 120, 120, 0, 1_500] } else { [0; 6] };
        for (stage, lost) in
            ["receive", "accumulate", "log", "apply", "admit", "block"].iter().zip(lost)
        {
            assert_eq!(passed(trial, stage), 6_000 - lost, "{stage}");
        }
        assert_eq!(
            failed_audits(&document).contains(&"conservation"),
            loses,
            "{}",
            trial["audits"]
        );
        let run = place.run_folder().display().to_string();
        let shown = place.assay(&["report", &run]);
        shown.expect_stdout("Inside the nodes");
        place.assay(&["report", &run, "--format", "html", "-o", "page.html"]);
        let page = fs::read_to_string(place.path().join("page.html")).expect("there is a page");
        for drawn in ["data-chart=\"node-stages\"", "data-chart=\"node-stage-times\""] {
            assert!(page.contains(drawn), "{drawn}");
        }
        let words = "5,880 passed log";
        assert_eq!(
            page.contains(words) && shown.stdout.contains("conservation"),
            loses,
            "{}",
            shown.stdout
        );
    }
}

/// Claim: what a service of anybody's stamped, whatever its stages are called, becomes a run: each of its stages stands in the
/// table with what it passed, in a chart and in a Parquet file; the published form is refused where it would hold nothing.
#[test]
fn event_files_of_any_service() {
    let _beside = beside_others();
    let place = Place::new();
    let stages = [("parse", "bytes into requests"), ("Über-apply", "done")];
    let stages = stages.map(|(name, label)| sampler::Stage::new(name, label));
    let path = place.path().join("ev");
    let clock = clock::Clock::start();
    let sampler = sampler::Sampler::create(&path, "svc", &stages, clock, Default::default());
    let sampler = sampler.expect("a file can be made");
    let mut ring = sampler.ring();
    for n in 0..4_000_i64 {
        let at = |ns: i64| clock::Instant::from_ns(n * 1_000_000 + ns);
        ring.event(0, at(0), at(500), 2);
        ring.event(1, at(500), at(900), 1);
        ring.span(1, at(500), at(900), 7);
    }
    drop(ring);
    sampler.close().expect("it is written");
    let refused = place.assay(&["convert", "ev", "-o", "event_sampler_x.bin"]);
    refused.expect_code(2).expect_stderr("write --to run -o runs");
    let said = place.assay(&["convert", "ev", "-o", "runs"]);
    said.expect_code(0).expect_stderr("4000 records of single transactions are left out");
    let (_, document) = place.report();
    let trial = trial(&document);
    assert_eq!((passed(trial, "parse"), passed(trial, "Über-apply")), (8_000, 4_000));
    assert!(!failed_audits(&document).contains(&"conservation"), "{}", trial["audits"]);
    let run = place.run_folder();
    let files = fs::read_dir(run.join("settings")).expect("a run").flatten();
    let tables = files.map(|it| it.path().join("trial-0/stages.parquet"));
    assert_eq!(tables.filter(|it| it.is_file()).count(), 1);
    let run = run.display().to_string();
    place.assay(&["report", &run]).expect_stdout("Über-apply");
    place.assay(&["report", &run, "--format", "html", "-o", "page.html"]);
    let page = fs::read_to_string(place.path().join("page.html")).expect("there is a page");
    for drawn in ["data-chart=\"node-stages\"", "data-chart=\"node-stage-times\"", "Über-apply"] {
        assert!(page.contains(drawn), "{drawn}");
    }
}
