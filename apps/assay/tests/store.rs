//! `--rows`: run folders copied to an object store that speaks S3, `rclone serve s3` on loopback.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{
    Echo, Place, Running, Server, await_that, beside_others, expect_code_or_busy, expect_holds,
    finish, processes_of, say, trial,
};

const LIMIT: Duration = Duration::from_secs(60);

/// Random enough to be found wherever it stood.
const SECRET: &str = "n0b0dy-shall-see-this-store-key";

/// A store with a bucket `kept`, whose objects are files of this folder; `None`, said by name, without rclone.
fn store(test: &str, place: &Place) -> Option<(Server, SocketAddr, PathBuf)> {
    let found = testbed::install::find("rclone");
    if found.is_none() {
        say(&format!("SKIPPED {test}: it takes rclone; assay doctor --install rclone gets it"));
    }
    let mut command = Command::new(found?);
    let (address, folder) = (Server::free_address(), place.path().join("store"));
    std::fs::create_dir_all(folder.join("kept")).expect("the place can be written");
    command.args(["serve", "s3", "--addr", &address.to_string()]).arg(&folder);
    command.env("RCLONE_CONFIG", "").env("RCLONE_AUTH_KEY", format!("\"assay,{SECRET}\""));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Some((Server::start(&mut command, address), address, folder.join("kept")))
}

/// A load of a second whose folder goes to `url`.
fn run(place: &Place, echo: &Echo, address: SocketAddr, secret: &str, url: &str) -> Command {
    place.write(
        "experiment.toml",
        format!(
            "name = \"kept\"\n[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://{}/\"\n[load]\nrate = \"200/s\"\n\
             warmup = \"0s\"\nduration = \"1s\"\n",
            echo.http
        ),
    );
    let words = ["run", "experiment.toml", "--progress", "none", "--no-calibration", "--rows", url];
    let mut command = place.command(&words);
    command.env("ASSAY_CACHE", testbed::install::cache_folder());
    command.env("RCLONE_S3_ENDPOINT", format!("http://{address}"));
    command.env("AWS_ACCESS_KEY_ID", "assay").env("AWS_SECRET_ACCESS_KEY", secret);
    command
}

/// All files below a folder, by name.
fn files(folder: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let mut all = std::collections::BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => {
                    let name =
                        path.strip_prefix(folder).expect("it is below").display().to_string();
                    all.insert(name, std::fs::read(&path).expect("it can be read"));
                }
            }
        }
    }
    all
}

/// Claim: the copy has every byte of the run folder and gives its report; the secret is in neither, nor in what was printed.
#[test]
fn a_run_folder_is_copied_whole() {
    let _beside = beside_others();
    let (echo, place) = (Echo::start(&[]), Place::new());
    let Some((_server, address, kept)) = store("a_run_folder_is_copied_whole", &place) else {
        return;
    };
    let said = finish(&mut run(&place, &echo, address, SECRET, "s3://kept/nightly/"));
    said.expect_stderr("the run folder is also at s3://kept/nightly/");
    expect_holds(&said, &place.report().1);
    let own = place.run_folder();
    let copy = kept.join("nightly").join(own.file_name().expect("a run's name"));
    let (here, there) = (files(&own), files(&copy));
    assert!(
        here.contains_key("settings/default/trial-0/transactions.parquet"),
        "{:?}",
        here.keys()
    );
    assert!(here == there, "{:?} and {:?}", here.keys(), there.keys());
    let report =
        |folder: &Path| place.assay(&["report", &folder.display().to_string(), "--format", "json"]);
    assert_eq!(report(&copy).json(), report(&own).json());
    let secret = SECRET.as_bytes();
    assert!(!there.values().any(|bytes| bytes.windows(secret.len()).any(|part| part == secret)));
    assert!(!said.stderr.contains(SECRET) && !said.stdout.contains(SECRET));
}

/// Claim: the queries that docs/scale.md shows count what the report counts, and have a p99 between its p95 and its longest, in each engine that is here;
/// ClickHouse reads through the store's own protocol.
#[test]
fn engines_query_what_lies_there() {
    let test = "engines_query_what_lies_there";
    let _beside = beside_others();
    let Some(python) = std::env::var_os("ASSAY_TEST_PYTHON") else {
        say(&format!(
            "SKIPPED {test}: ASSAY_TEST_PYTHON names no Python (cargo xtask test makes one)"
        ));
        return;
    };
    let (echo, place) = (Echo::start(&["--service=2ms"]), Place::new());
    let Some((_server, address, kept)) = store(test, &place) else { return };
    let said = finish(&mut run(&place, &echo, address, SECRET, "s3://kept/nightly"));
    let (_, document) = place.report();
    expect_holds(&said, &document);
    let (trial, tests) = (trial(&document), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    let response = &trial["latency"][0]["response"];
    let p95 = response["quantiles"].as_array().into_iter().flatten().find(|it| it["name"] == "p95");
    let (p95, most) = (&p95.expect("a p95")["value_ns"], &response["max_ns"]);
    // Engines differ in which of two rows a quantile between them is.
    let near = p95.as_f64().expect("a time") * 0.99..=most.as_f64().expect("a time") * 1.01;
    for engine in ["duckdb", "clickhouse", "spark"] {
        let mut command = Command::new(&python);
        command.arg(tests.join("store/engines.py")).arg(engine);
        command.arg(tests.join("../../../docs/scale.md")).arg(kept.join("nightly"));
        command.arg(format!("http://{address}/kept/nightly"));
        command.env("AWS_ACCESS_KEY_ID", "assay").env("AWS_SECRET_ACCESS_KEY", SECRET);
        let output = command.current_dir(place.path()).output().expect("Python starts");
        let complaint = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(77) {
            say(&format!("SKIPPED {test}, {engine}: {}", complaint.trim()));
            continue;
        }
        let said: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{engine}: {error}: {complaint}"));
        assert_eq!(said["committed"][0], trial["counts"]["committed"], "{engine}: {said}");
        let p99 = said["committed"][1].as_f64().expect("a time") * 1e6;
        assert!(near.contains(&p99), "{engine}: {said}, not in {near:?}");
    }
}

/// Claim: a bucket that is not there, a key that does not fit and a store that is away are said before anything is sent; a URL
/// that is none or holds credentials is an error of usage.
#[test]
fn a_store_that_takes_nothing_is_said_before_the_load() {
    let _beside = beside_others();
    let test = "a_store_that_takes_nothing_is_said_before_the_load";
    let (echo, place) = (Echo::start(&[]), Place::new());
    let Some((server, address, kept)) = store(test, &place) else { return };
    let tried = |secret: &str, url: &str| finish(&mut run(&place, &echo, address, secret, url));
    tried(SECRET, "s3://missing/x").expect_code(1).expect_stderr("--rows s3://missing/x: rclone");
    let said = tried("another-key-than-its-own", "s3://kept/x");
    said.expect_code(1).expect_stderr("--rows s3://kept/x: rclone");
    assert!(!said.stderr.contains("another-key-than-its-own"), "{}", said.stderr);
    tried(SECRET, "http://kept/x")
        .expect_code(2)
        .expect_stderr("expected a URL that begins with s3://");
    tried(SECRET, "s3://assay:x@kept").expect_code(2).expect_stderr("AWS_ACCESS_KEY_ID");
    drop(server);
    tried(SECRET, "s3://kept/x").expect_code(1);
    assert!(place.runs().is_empty() && files(&kept).is_empty());
    let mut alone = run(&place, &echo, address, SECRET, "s3://kept/x");
    let said = finish(alone.env("ASSAY_CACHE", place.path()).env("PATH", place.path()));
    said.expect_code(1).expect_stderr("run: assay doctor --install rclone");
}

/// A program in rclone's place, whose lists are well and whose copies do this.
fn stand_in(place: &Place, copies: &str) -> PathBuf {
    let bin = place.path().join("bin");
    std::fs::create_dir_all(&bin).expect("the place can be written");
    let program = bin.join("rclone");
    std::fs::write(&program, format!("#!/bin/sh\n[ $1 = lsf ] && exit 0\n{copies}\n"))
        .expect("it can be written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    bin
}

fn with(mut command: Command, place: &Place, bin: &Path) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("ASSAY_CACHE", place.path()).env("PATH", format!("{}:{path}", bin.display()));
    command
}

/// Claim: a copy that fails leaves the run as it is, with how to copy it again, and takes the place of a good exit code.
#[test]
fn a_failed_copy_loses_nothing() {
    let _beside = beside_others();
    let (echo, place) = (Echo::start(&[]), Place::new());
    let bin = stand_in(&place, "echo 'the disk of the store is full' >&2; exit 5");
    let address = Server::free_address();
    let said = finish(&mut with(run(&place, &echo, address, SECRET, "s3://kept/x"), &place, &bin));
    said.expect_stderr("the disk of the store is full").expect_stderr("rclone copy --checksum");
    let (told, document) = place.report();
    expect_code_or_busy(&said, &document, 1);
    expect_holds(&told, &document);
}

/// Claim: after `kill -9` in the middle of a copy rclone is gone, too; after Ctrl-C it is ended, and the run is whole.
#[test]
fn a_copy_ends_with_its_run() {
    let _beside = beside_others();
    let (echo, place) = (Echo::start(&[]), Place::new());
    let bin = stand_in(&place, ": > copying; exec sleep 300");
    for (signal, code) in [(Signal::KILL, None), (Signal::INT, Some(1))] {
        let address = Server::free_address();
        let mut command = with(run(&place, &echo, address, SECRET, "s3://kept/x"), &place, &bin);
        let mark = place.path().join("copying");
        let _ = std::fs::remove_file(&mark);
        let running = Running::start(&mut command);
        await_that(LIMIT, "it copies", || mark.exists());
        running.signal(signal);
        let said = running.finish_within(LIMIT);
        await_that(LIMIT, "no process is left", || processes_of(place.path()).is_empty());
        let (told, document) = place.report();
        expect_holds(&told, &document);
        if let Some(code) = code {
            said.expect_stderr("interrupted");
            expect_code_or_busy(&said, &document, code);
        }
    }
}
