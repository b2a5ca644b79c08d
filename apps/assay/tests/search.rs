//! The search for the highest rate, on real nodes whose limit is known.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Echo, Place, Running, beside_others, until};

/// A search on echo, which refuses what is beyond `limit`, and ten at once: a machine that sends late sends in bursts.
fn limited(limit: &str) -> String {
    format!(
        r#"
        system.kind = "echo"
        load = {{ rate = "20/s", connections = 2, warmup = "0s", duration = "2s", timeout = "5s" }}
        [system.deploy]
        faults = {{ limit = {{ rate = "{limit}", burst = 10 }} }}
        [search]
        find = "load.rate"
        bracket = "1s"
        trials = 1
        [[threshold]]
        expr = "success >= 90%"
        "#
    )
}

/// Claim: the rate that a limiter lets through is found, confirmed by a trial of its own and refuted above it, and what
/// limits is named; every trial stands in the plan and in the result, and the report of the folder finds the same.
#[test]
fn a_limiter_is_found() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(&limited("100/s"));
    said.expect_code(0);
    let search = &document["search"];
    assert_eq!(search["end"], "found", "{search}");
    let confirmed = search["confirmed"].as_f64().unwrap();
    let refuted = search["refuted"].as_f64().unwrap();
    // Of 2 s it lets 210 through, nine tenths of 117/s: of larger bursts fewer, and more of those that come later.
    assert!((20.0..=150.0).contains(&confirmed) && refuted > confirmed, "{search}");
    // On a starved machine the generator may be late below the limit, and is named.
    assert!(search["limit"] == "limiter" || search["limit"] == "generator", "{search}");
    let trials = search["trials"].as_array().unwrap();
    let mut confirming =
        trials.iter().filter(|trial| trial["role"] == "confirm" && trial["class"] == "kept");
    assert!(confirming.next_back().is_some_and(|trial| trial["value"] == search["confirmed"]));
    let in_settings = |setting: &Value| setting["trials"].as_array().map_or(0, Vec::len);
    let measured: usize = document["settings"].as_array().unwrap().iter().map(in_settings).sum();
    assert_eq!(measured, trials.len());
    let (_, again) = place.report();
    assert_eq!(again["search"], *search);
}

/// Claim: where not even a rate close to nothing is kept the run says so and fails.
#[test]
fn nothing_is_kept() {
    let _beside = beside_others();
    let text = limited("100/s").replace("success >= 90%", "lost >= 1");
    let (said, document) = Place::new().experiment(&text);
    said.expect_code(99);
    assert_eq!(document["search"]["end"], "not_even", "{}", document["search"]);
    assert_eq!(document["search"]["confirmed"], Value::Null);
}

/// Claim: a search that was stopped by Ctrl-C goes on from its folder: its whole trials stay as they are, the one that was
/// cut short is run anew, and the result is that of one search, which the folder alone gives again.
#[test]
fn goes_on_after_ctrl_c() {
    let _beside = beside_others();
    let place = Place::new();
    place.write("find.toml", limited("60/s"));
    let quietly = ["run", "find.toml", "--no-calibration", "--progress", "none"];
    let running = Running::start(&mut place.command(&quietly));
    let sealed = || {
        let run = place.runs().pop()?;
        let seals = walk(&run).into_iter().filter(|path| path.ends_with("seal.json")).collect();
        Some::<Vec<std::path::PathBuf>>(seals).filter(|seals| seals.len() >= 2)
    };
    let whole = until(RUN_LIMIT, sealed).expect("two trials end");
    running.signal(Signal::INT);
    running.finish().expect_code(130);
    let before: Vec<String> = whole.iter().map(text).collect();
    let run = place.run_folder().display().to_string();
    let said = place.assay(&["run", "--resume", &run, "--no-calibration", "--progress", "none"]);
    said.expect_code(0);
    assert_eq!(whole.iter().map(text).collect::<Vec<_>>(), before, "whole trials stay");
    assert_eq!(place.runs().len(), 1, "it is the same run");
    let summary = text(place.run_folder().join("summary.json"));
    let summary: Value = serde_json::from_str(&summary).expect("a result");
    assert_eq!(
        (&summary["search"]["end"], &summary["interrupted"]),
        (&"found".into(), &false.into())
    );
    let (_, again) = place.report();
    assert_eq!(again["search"], summary["search"]);
    let statement = summary["statements"][0]["words"].as_str().unwrap_or_default();
    assert!(statement.is_empty(), "a share is no time: {statement}");
}

/// A search is longer than most runs.
const RUN_LIMIT: std::time::Duration = std::time::Duration::from_secs(120);

fn text(path: impl AsRef<std::path::Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).map(|it| it.flatten().collect::<Vec<_>>());
    let below = |path: std::path::PathBuf| match path.is_dir() {
        true => walk(&path),
        false => vec![path],
    };
    entries.unwrap_or_default().into_iter().flat_map(|entry| below(entry.path())).collect()
}

/// A closed loop on one server that takes 5 ms a request: eleven clients wait for 55 ms.
const CLIENTS: &str = r#"
    system.kind = "echo"
    load = { model = "closed", clients = 2, warmup = "0s", duration = "2s", timeout = "5s" }
    [system.deploy]
    service = "5ms"
    [search]
    find = "load.clients"
    bracket = "1s"
    trials = 1
    most = 64
    [[threshold]]
    expr = "p99 < 52ms"
"#;

/// Claim: the most clients that keep a threshold are found in whole numbers, each trial runs with as many as its setting
/// says, and terminal, page and plan speak of clients.
#[test]
fn clients_are_found() {
    let _beside = beside_others();
    let place = Place::new();
    let (said, document) = place.experiment(CLIENTS);
    let search = &document["search"];
    assert_eq!(search["find"], "load.clients", "{search}");
    // A busy machine may find fewer; eleven clients wait too long on any.
    for trial in search["trials"].as_array().unwrap() {
        let (value, class) = (trial["value"].as_f64().unwrap(), trial["class"].as_str().unwrap());
        assert!(value.fract() == 0.0 && (value < 11.0 || class != "kept"), "{trial}");
        assert_eq!(trial["rest"], Value::Null, "each trial has a server of its own");
        let setting = trial["setting"].as_str().unwrap();
        assert!(setting.starts_with(&format!("clients={value},")), "{setting}");
    }
    if search["end"] == "found" {
        said.expect_code(0).expect_stdout("confirmed by a trial of 2s").expect_stdout("client");
    }
    let plan = text(place.run_folder().join("plan.toml"));
    assert!(plan.contains("find = \"load.clients\""), "{plan}");
}

/// Claim: with `deploy = "once"` one server serves all trials and the result says so; before each trial but the first it
/// rests, and the record says for how long; entries of earlier trials are not held against a later one.
#[test]
fn one_server_serves_all_trials() {
    let _beside = beside_others();
    let place = Place::new();
    // Few trials: a busy machine may rest for a minute before each.
    let once = "deploy = \"once\"\n        most = \"40/s\"\n        find =";
    let text_once = limited("100/s").replace("find =", once);
    let (_, document) = place.experiment(&text_once);
    let search = &document["search"];
    assert_eq!(search["deploy"], "once", "{search}");
    let trials = search["trials"].as_array().unwrap();
    assert!(trials.len() > 2, "{search}");
    assert_eq!(trials[0]["rest"], Value::Null, "{search}");
    for trial in &trials[1..] {
        assert!(trial["rest"]["probes"].as_u64().unwrap() >= 3, "{trial}");
    }
    for setting in document["settings"].as_array().unwrap() {
        let fates = &setting["trials"][0]["fates"];
        assert_eq!(fates["phantom"], 0, "what an earlier trial left: {fates}");
    }
    let nodes: Vec<_> = walk(&place.run_folder())
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("/nodes/"))
        .filter_map(|path| {
            path.strip_prefix(place.run_folder()).ok().map(|it| it.starts_with("nodes"))
        })
        .collect();
    assert!(nodes.iter().all(|is_own| *is_own), "no trial has nodes of its own: {nodes:?}");
    if !search["confirmed"].is_null() {
        let reason = document["reason"].as_str().unwrap();
        assert!(reason.contains("kept its state between trials"), "{reason}");
    }
}

/// Claim: a server that was there before rests between trials until its answers are as fast as before the first.
#[test]
fn an_attached_server_rests() {
    let _beside = beside_others();
    let place = Place::new();
    let server = Echo::start(&["--limit-rate=100", "--limit-burst=1"]);
    let url = format!("http://{}/", server.http);
    let find = ["--find=success >= 90%", "--rate=20/s", "--duration=2s", "--warmup=0s"];
    // Few trials: a busy machine may rest for a minute before each.
    let few = ["--set", "search.most=40/s", "--no-calibration", "--progress=none", "--json"];
    let mut command = place.command(&[&["run", &url][..], &find, &few].concat());
    let said = Running::start(&mut command).finish_within(Duration::from_secs(420));
    let document = said.json();
    let trials = document["search"]["trials"].as_array().unwrap();
    assert_eq!(trials[0]["rest"], Value::Null, "{document}");
    let rested = trials[1..].iter().all(|trial| trial["rest"]["probes"].as_u64().unwrap_or(0) >= 3);
    assert!(rested && trials.len() > 2, "{}", document["search"]);
}

/// Claim: a search over a key that cannot be searched is refused before anything is started, with what to write instead.
#[test]
fn unfit_searches_are_refused() {
    let of = |text: &str| {
        let place = Place::new();
        let file = place.write("unfit.toml", text);
        place.assay(&["check", &file.display().to_string()])
    };
    of(&limited("1/s").replace("load.rate", "load.clients"))
        .expect_code(2)
        .expect_stderr("a search for clients needs a closed loop");
    of(&CLIENTS.replace("find = \"load.clients\"", "find = \"load.connections\""))
        .expect_code(2)
        .expect_stderr("a search for connections needs a load with one rate");
}
