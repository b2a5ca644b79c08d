//! Programs of others as systems: the example of the book, programs that do wrong in every way, and what is left of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{
    Place, Running, await_that, beside_others, expect_audit, number, processes_of, trial,
};

/// An experiment with this command, and these keys of `[load]` and what follows them.
fn experiment(command: &str, more: &str) -> String {
    format!(
        r#"
        name = "exec"
        [system]
        kind = "exec"
        [system.deploy]
        command = {command}
        [load]
        rate = "200/s"
        connections = 1
        warmup = "0s"
        {more}
        "#
    )
}

/// A place with a file of this checkout in it.
fn place_with(path: &str) -> Place {
    let place = Place::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let name = from.file_name().unwrap().to_str().unwrap().to_owned();
    place.write(&name, std::fs::read(&from).unwrap());
    place
}

/// Claim: a program is a whole system: what it takes is committed, in many lines or few, and its ledger holds each of it
/// once; a batch is one line to it.
#[test]
fn the_example_is_a_system() {
    let _beside = beside_others();
    for more in
        ["duration = \"1s\"", "duration = \"1s\"\nbatch = { size_max = 10, delay_max = \"50ms\" }"]
    {
        let place = place_with("../../systems/exec/example.py");
        let text = experiment("[\"python3\", \"example.py\"]", more);
        let (said, document) = place.experiment(&text);
        let (counts, fates) = (&trial(&document)["counts"], &trial(&document)["fates"]);
        assert_eq!(number(&counts["due"]), 200, "{} {counts}", said.stderr);
        assert_eq!(counts["due"], counts["committed"], "{counts}");
        assert_eq!(number(&fates["once"]), 200, "{fates}");
        expect_audit(&document, "ledger", "ok", "");
        expect_audit(&document, "protocol", "ok", "");
        expect_audit(&document, "client_failures", "ok", "");
    }
}

/// Claim: whatever a program does wrong in mid-run is a failure of class `client`, with what it did and the last lines that
/// it wrote; nothing of it is called the system's, and nothing of it is left.
#[test]
fn what_programs_do_wrong() {
    for (way, words) in [
        ("ends", "the program closed its channel"),
        ("ends before the load", "the program closed its channel"),
        ("leaves a child", "the program closed its channel"),
        ("closes", "the program closed its channel"),
        ("babbles", "a line that cannot be read"),
        ("answers twice", "which is not outstanding here"),
        ("answers for a stranger", "which is not outstanding here"),
        ("sends an endless line", "a line of more than 1048576 bytes"),
        ("holds answers", "no answer within the timeout"),
    ] {
        let _beside = beside_others();
        let place = place_with("tests/exec/hostile.py");
        let command = format!("[\"python3\", \"hostile.py\", \"{way}\"]");
        let load = "duration = \"600ms\"\ntimeout = \"400ms\"\ndrain = \"2s\"";
        let (said, document) = place.experiment(&experiment(&command, load));
        if way == "ends before the load" && document.is_null() {
            // It had ended before its channel was taken up: the run says so.
            assert!(said.stderr.contains("these are the last words of"), "{way}: {}", said.stderr);
            continue;
        }
        let trial = trial(&document);
        let counts = &trial["counts"];
        let (due, committed) = (number(&counts["due"]), number(&counts["committed"]));
        assert!(due == 120 && committed < due, "{way}: {} {counts}", said.stderr);
        assert!(committed == 0 || committed >= 20, "{way}: what was right stays right: {counts}");
        assert_eq!(number(&counts["unknown"]), 0, "{way}: {counts}");
        let client = number(&counts["rejected_by_class"]["client"]);
        assert_eq!(client + committed + number(&counts["shed"]), due, "{way}: {counts}");
        assert!(client > 10, "{way}: {counts}");
        expect_audit(&document, "client_failures", "failed", "failed in this client");
        expect_audit(&document, "protocol", "ok", "");
        let errors = trial["errors"].to_string();
        assert!(errors.contains(words), "{way}: {errors}");
        let has_last_words = errors.contains(&format!("these are the last words of {way}"));
        assert!(has_last_words || way == "holds answers", "{way}: {errors}");
        assert!(processes_of(place.path()).is_empty(), "{way}");
    }
}

/// A trial of a program that keeps its ledger in a way of its own.
fn with_ledger(way: &str, settle: &str) -> (crate::harness::Said, Value) {
    let place = place_with("tests/exec/ledgers.py");
    let within = if way == "breaks off" { "\nanswer_within = \"1s\"" } else { "" };
    let command = format!("[\"python3\", \"ledgers.py\", \"{way}\"]{within}");
    let more = format!("duration = \"1s\"\n[ledger]\nsettle = \"{settle}\"");
    place.experiment(&experiment(&command, &more))
}

/// Claim: what comes into the ledger between two readings was acknowledged early, and what does not is lost; each is
/// counted and named, and where one reading is asked for, nothing is said to be early.
#[test]
fn early_is_not_lost() {
    let _beside = beside_others();
    for (way, settle, lost, early) in [
        ("stores late", "100ms", 0, 7),
        ("stores late", "0s", 7, 0),
        ("loses", "100ms", 4, 0),
        ("keeps all", "100ms", 0, 0),
    ] {
        let (said, document) = with_ledger(way, settle);
        let fates = &trial(&document)["fates"];
        let found = (number(&fates["lost"]), number(&fates["acknowledged_early"]));
        assert_eq!(found, (lost, early), "{way}, {settle}: {}", said.stderr);
        assert_eq!(number(&fates["once"]), 200 - lost, "{way}, {settle}");
        assert_eq!(
            said.stderr.contains("it is read again in 100ms"),
            settle == "100ms" && way != "keeps all"
        );
        if early > 0 {
            assert_eq!(fates["examples"]["acknowledged_early"][0], 193);
            expect_audit(
                &document,
                "ledger",
                "warn",
                "7 acknowledged early: in the ledger only at its second reading",
            );
        }
        if lost > 0 {
            said.expect_code(99);
        } else {
            assert_ne!(said.code, 99, "{way}: {}", document["reason"]);
        }
    }
}

/// Claim: a ledger that was promised and cannot be read makes the run invalid, and one that its own audit refuses makes it
/// failed, each with the sentence of whoever says so, though no threshold was written.
#[test]
fn a_promised_ledger() {
    let _beside = beside_others();
    for (way, code, words) in [
        (
            "fails",
            97,
            "the ledger could not be read: reading the ledger: the program `exec`, answering `ledger`: it says that it failed: the disk is gone",
        ),
        ("breaks off", 97, "no answer within 1s"),
        ("refuses", 99, "the ledger's own audit refuses it: number 3 is withheld"),
    ] {
        let (said, document) = with_ledger(way, "2s");
        said.expect_code(code);
        let reason = document["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{way}: {reason}");
        assert!(Value::is_null(&trial(&document)["fates"]), "{way}");
    }
}

/// Claim: a program is killed in mid-load and started again, through each driver: the load goes on with its second life,
/// nothing is the client's failure, and the ledger of the second life shows whether what the first acknowledged survived.
#[test]
fn a_crash_in_the_load() {
    let _beside = beside_others();
    for driver in ["io_uring", "epoll"] {
        for way in ["writes", "forgets"] {
            let place = place_with("tests/exec/ledgers.py");
            let command = format!("[\"python3\", \"ledgers.py\", \"{way}\"]");
            let fault = "[[fault]]\nat = \"500ms\"\nrestart = \"exec\"\nfor = \"200ms\"";
            let load = format!("duration = \"4s\"\ntimeout = \"20s\"\n{fault}");
            let by = ["env", &format!("ASSAY_DRIVER={driver}")];
            let (said, document) = place.experiment_by(&by, &experiment(&command, &load), &[]);
            let trial = trial(&document);
            let (counts, fates) = (&trial["counts"], &trial["fates"]);
            assert_eq!(number(&counts["due"]), 800, "{way}, {driver}: {} {counts}", said.stderr);
            // A class that nothing ended in is not there.
            assert!(counts["rejected_by_class"]["client"].is_null(), "{way}: {counts}");
            let committed = number(&counts["committed"]);
            assert!((1..800).contains(&committed), "{way}, {driver}: {counts}");
            let log = place.trial_folder(&document).join("nodes/exec.log");
            assert_eq!(
                fs::read_to_string(&log).unwrap_or_default(),
                "",
                "{way}: nothing went wrong"
            );
            let lost = number(&fates["lost"]);
            let ended = trial["errors"].to_string();
            assert!(ended.contains("exec: a fault of the plan ended it"), "{way}: {ended}");
            match way {
                "writes" => assert_eq!(lost, 0, "{driver}: {fates}"),
                _ => assert!(lost > 0 && lost < committed, "{driver}: {lost} of {committed}"),
            }
            assert_eq!(said.code == 99, way == "forgets", "{}: {}", said.code, said.stderr);
        }
    }
}

/// Claim: the system of the book's how-to keeps every order; one that acknowledges before it commits loses all of them and
/// fails.
#[test]
fn the_system_of_the_how_to() {
    let _beside = beside_others();
    let page = include_str!("../../../docs/how-to/own-system.md");
    let program = block(page, "```python file=orders.py");
    let text = block(page, "```toml experiment file=orders.toml");
    let liar = program.replace("        database.commit()\n", "");
    assert_ne!(liar, program);
    for (program, lies) in [(program, false), (liar, true)] {
        let place = Place::new();
        place.write("orders.py", program);
        let (said, document) = place.experiment_with(&text, &["--duration=1s", "--warmup=0s"]);
        let trial = trial(&document);
        let committed = number(&trial["counts"]["committed"]);
        // The table stays locked by the first order that is never committed, so most of the liar's are not acknowledged.
        assert!(if lies { committed > 0 } else { committed == 50 }, "{}", said.stderr);
        let lost = if lies { committed } else { 0 };
        assert_eq!(number(&trial["fates"]["lost"]), lost, "{}", trial["fates"]);
        assert_eq!(said.code == 99, lies, "{}: {}", said.code, said.stderr);
    }
}

/// The content of a page's block that opens with `head`.
fn block(page: &str, head: &str) -> String {
    let from = page.find(head).unwrap() + head.len();
    page[from..].split("\n```").next().unwrap().trim_start().to_owned() + "\n"
}

/// Claim: kill -9 of the instrument leaves neither the program nor what it has started.
#[test]
fn killed_with_the_instrument() {
    let _beside = beside_others();
    let place = place_with("../../systems/exec/example.py");
    let command = "[\"bash\", \"-c\", \"sleep 1000 & python3 example.py\"]";
    place.write("experiment.toml", experiment(command, "duration = \"30s\""));
    let arguments = ["run", "experiment.toml", "--progress=none", "--no-calibration"];
    let running = Running::start(&mut place.command(&arguments));
    let runs = |word: &str| {
        processes_of(place.path()).iter().any(|process| process.command.contains(word))
    };
    await_that(Duration::from_secs(30), "rows are recorded", || {
        place.runs().pop().is_some_and(|run| {
            let log = run.join("settings/default/trial-0/rows.log");
            std::fs::metadata(log).is_ok_and(|log| log.len() > 500)
        })
    });
    assert!(runs("example.py") && runs("sleep"), "both run");
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, -1);
    await_that(Duration::from_secs(10), "nothing is left", || {
        processes_of(place.path()).is_empty()
    });
}

/// Claim: inner steps that a program times are spans of their transactions on the trial's line, and rates by stage.
#[test]
fn inner_steps() {
    let _beside = beside_others();
    let place = Place::new();
    let program = include_str!("../../../systems/exec/example.py")
        .replace("\"kinds\": [\"submit\"],", "\"kinds\": [\"submit\"], \"steps\": [\"queued\"],")
        .replace(
            "\"reached\": \"committed\"}",
            "\"reached\": \"committed\", \"steps\": [[\"queued\", __import__(\"time\").monotonic_ns() - 5000000, 5000000]]}",
        );
    place.write("example.py", program);
    let text = experiment("[\"python3\", \"example.py\"]", "duration = \"1s\"")
        .replace("command =", "steps = [\"queued\"]\ncommand =");
    let (said, document) = place.experiment(&text);
    let stages = &trial(&document)["node_stages"];
    let found = stages.to_string();
    assert!(found.contains("queued"), "{} {found}", said.stderr);
    let traces = place.trial_folder(&document).join("traces.parquet");
    assert!(traces.is_file(), "{}", said.stderr);
    assert!(!Value::is_null(stages), "{document}");
}
