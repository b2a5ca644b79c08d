//! A node that is a program of its own: built from the checkout where the user asks for it, found beside `assay`, and
//! where it is not, the message says what to run.

use std::path::Path;
use std::process::Command;

use crate::harness::{self, Place, beside_others, expect_holds, finish, trial};

const EXPERIMENT: &str = r#"
    system.kind = "echo"
    load = { rate = "200/s", connections = 2, warmup = "0s", duration = "1s" }
    [system.deploy]
    program = "echo-node"
    service = "1ms"
    "#;

/// With the user's own home, where the compiler may be, and a cache folder that is empty.
fn at_home(place: &Place, command: &mut Command) {
    command.env("ASSAY_CACHE", place.path().join("cache"));
    if let Some(home) = std::env::var_os("HOME") {
        command.env("HOME", home);
    }
}

/// Claim: `doctor --install` builds the node beside `assay`, and a trial starts that program, whose ledger holds what was
/// acknowledged.
#[test]
fn built_and_started() {
    let _beside = beside_others();
    let place = Place::new();
    let mut install = place.command(&["doctor", "--install", "echo-node"]);
    at_home(&place, &mut install);
    let said = finish(&mut install);
    said.expect_code(0).expect_stderr("cargo build --release").expect_stderr("--bin echo-node");
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_assay")).with_file_name("echo-node");
    assert_eq!(said.stdout.trim(), beside.display().to_string());
    let (said, document) = place.experiment(EXPERIMENT);
    expect_holds(&said, &document);
    let trial = trial(&document);
    let facts = std::fs::read_to_string(place.trial_folder(&document).join("trial.json")).unwrap();
    let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts["declared"]["system"]["echo.program"], "echo-node", "{facts}");
    assert_eq!(trial["fates"]["once"], 200, "{trial}");
}

/// Claim: where the program is nowhere, nothing else takes its place: the message names the places and the command, and
/// that command says what it needs.
#[test]
fn missing_is_told() {
    let _beside = beside_others();
    let place = Place::new();
    // Apart from the target folder nothing lies beside it.
    let alone = place.path().join("bin/assay");
    harness::copy_program(Path::new(harness::ASSAY), &alone);
    let experiment = place.write("experiment.toml", EXPERIMENT);
    let started = |arguments: &[&str]| {
        let mut command = Command::new(&alone);
        command.args(arguments).current_dir(place.path()).env("PATH", "/nowhere");
        at_home(&place, &mut command);
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        finish(&mut command)
    };
    let run = ["run", &experiment.display().to_string(), "--progress", "none", "--no-calibration"];
    started(&run)
        .expect_code(1)
        .expect_stderr("echo-node is not there: looked for beside this program in ")
        .expect_stderr("; run: assay doctor --install echo-node");
    started(&["doctor", "--install", "echo-node"])
        .expect_code(1)
        .expect_stderr("neither this program nor the working folder is in one")
        .expect_stderr("--checkout FOLDER");
}
