//! Experiments with disks, links and faults, run by an ordinary user.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{self, Place, Running, Said, beside_others, number};

/// The user without rights, and his group.
const NOBODY: u32 = 65_534;

/// Becomes that user where everybody may use the two devices, whatever this machine has set: their copies lie in a mount
/// namespace that ends with the program. The first argument is an empty folder for them.
const BECOME: &str = "set -e
mount -t tmpfs -o mode=755 devices \"$1\"
mknod -m 666 \"$1/fuse\" c 10 229
mknod -m 666 \"$1/tun\" c 10 200
mount --bind \"$1/fuse\" /dev/fuse
mount --bind \"$1/tun\" /dev/net/tun
shift
exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";

/// A program as that user; `devices` is made.
fn as_nobody(devices: &Path, program: &Path) -> std::process::Command {
    std::fs::create_dir_all(devices).expect("a folder");
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "--propagation=private", "sh", "-c", BECOME, "sh"]);
    command.arg(devices).arg(program);
    command
}

/// Why there is nothing to be tried here, if so.
fn missing(programs: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        // Whoever runs this is an ordinary user already, and everything else of the suite runs as he.
        return Some("another user can be become only by root".to_owned());
    }
    let place = Place::new();
    let mut tried = as_nobody(&place.path().join("devices"), Path::new("unshare"));
    tried.args(["--user", "--map-root-user", "--net", "--mount"]);
    tried.args(["sh", "-c", "exec 3<>/dev/fuse 4<>/dev/net/tun"]);
    let tried = tried.output().expect("util-linux is there");
    if !tried.status.success() {
        let said = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        return Some(format!("an ordinary user gets no namespaces or devices here: {said}"));
    }
    let none = programs.iter().find(|name| program(name).is_none())?;
    Some(format!("{none} is not installed (assay doctor --install {none})"))
}

fn program(name: &str) -> Option<std::path::PathBuf> {
    let beside = Path::new(harness::ASSAY).with_file_name(name);
    if beside.is_file() { Some(beside) } else { testbed::install::find(name) }
}

/// Runs an experiment of the repository at toy length as that user, with copies of what he may not reach.
fn run(file: &str, programs: &[&str], more: &[&str]) -> Option<(Place, Value, Said)> {
    if let Some(why) = missing(programs) {
        harness::say(&format!("SKIPPED {file} as an ordinary user: {why}"));
        return None;
    }
    let place = Place::new();
    let copy = |from: &Path, to: &str| {
        let to = place.path().join(to);
        harness::copy_program(from, &to);
        to
    };
    let assay = copy(Path::new(harness::ASSAY), "bin/assay");
    for name in programs {
        copy(&program(name).expect("looked for above"), &format!("bin/{name}"));
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(file);
    copy(&source, "experiment.toml");
    std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    let mut command = as_nobody(&place.path().join("devices"), &assay);
    command
        .args(["run", "experiment.toml", "--profile=toy", "--json", "--progress=none"])
        .arg("--no-calibration")
        .args(more)
        .current_dir(place.path())
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", place.path().join("bin").display()))
        .env("HOME", place.path())
        .env("ASSAY_TEST_PLACE", place.path())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let said = Running::start(&mut command).finish_within(Duration::from_secs(400));
    let document = serde_json::from_str(&said.stdout).unwrap_or(Value::Null);
    Some((place, document, said))
}

/// The trials of a document; each had committed transactions, and its faults had their effect.
fn trials(document: &Value, said: &Said) -> Vec<Value> {
    let settings = document["settings"].as_array().cloned().unwrap_or_default();
    assert!(!settings.is_empty(), "no result:\n{}\n{}", said.stdout, said.stderr);
    let trials: Vec<Value> = settings.iter().map(|setting| setting["trials"][0].clone()).collect();
    for trial in &trials {
        assert!(number(&trial["counts"]["committed"]) > 10, "{}: {trial:.600}", said.stderr);
        for fault in trial["faults"].as_array().into_iter().flatten() {
            assert_eq!(fault["happened"], true, "{fault}");
        }
    }
    trials
}

fn loses_nothing(trial: &Value) {
    for fate in ["lost", "duplicate", "phantom"] {
        assert_eq!(number(&trial["fates"][fate]), 0, "{fate}: {}", trial["fates"]);
    }
}

/// Claim: an ordinary user has the power of a replica cut, on a disk of its own, and every acknowledged transaction is there.
#[test]
fn demo_kv() {
    let _beside = beside_others();
    let Some((_place, document, said)) = run("kv/demo-kv.toml", &[], &[]) else { return };
    trials(&document, &said).iter().for_each(loses_nothing);
}

/// Claim: an ordinary user kills, pauses, cuts off and takes the power of a leader, on disks and links of the trial's own.
#[test]
fn faults_of_kv() {
    let _beside = beside_others();
    let Some((_place, document, said)) = run("kv/faults.toml", &[], &[]) else { return };
    let trials = trials(&document, &said);
    assert_eq!(trials.len(), 4);
    trials.iter().for_each(loses_nothing);
}

/// Claim: an ordinary user runs a network of validators on links with delay, and cuts half of it off.
#[test]
fn validators_far_apart() {
    let _beside = beside_others();
    let file = "cometbft/testnet-wan.toml";
    let Some((_place, document, said)) = run(file, &["cometbft"], &[]) else { return };
    assert_eq!(trials(&document, &said).len(), 2);
}

/// Claim: an ordinary user makes one of six buckets slow.
#[test]
fn a_slow_bucket() {
    let _beside = beside_others();
    let file = "object-ledger/slow-bucket.toml";
    let Some((_place, document, said)) = run(file, &["object-ledger"], &[]) else { return };
    trials(&document, &said).iter().for_each(loses_nothing);
}

/// Claim: where the kernel gives no namespaces, the message names the setting that refuses them, or what a container lacks.
#[test]
fn a_refusal_names_its_setting() {
    if let Some(why) = missing(&[]) {
        harness::say(&format!("SKIPPED a kernel without user namespaces: {why}"));
        return;
    }
    let _beside = beside_others();
    let place = Place::new();
    let to = place.path().join("assay");
    harness::copy_program(Path::new(harness::ASSAY), &to);
    std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    // In a namespace of its own the number of further ones can be set to none, for that one alone.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all \
                  ./assay run demo-kv --profile=toy --progress=none --no-calibration";
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .current_dir(place.path())
        .env("HOME", place.path())
        .env("ASSAY_TEST_PLACE", place.path())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let said = Running::start(&mut command).finish();
    if said.stderr.contains("unshare:") || said.stderr.contains("setpriv:") {
        harness::say(&format!("SKIPPED a kernel without user namespaces: {}", said.stderr.trim()));
        return;
    }
    said.expect_code(1).expect_stderr("max_user_namespaces is 0");
}
