//! Run folders that a stranger made: links, pipes, lengths that are not those of the seal, escape sequences, and files that
//! were changed after the run was sealed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::rows::{any_row, new_trial};
use model::Seed;
use record::{FilesSeal, RecordError, RunFolder, TrialFolder};

/// A sealed trial, and the run that it is of.
fn sealed() -> (tempfile::TempDir, RunFolder, TrialFolder) {
    let (keep, trial) = new_trial(2);
    let mut rng = Seed(9).rng();
    let mut log = trial.row_log().unwrap();
    for tx in 0..50 {
        log.append(&[any_row(&mut rng, tx, 2)]).unwrap();
    }
    log.close().unwrap();
    trial.seal().unwrap();
    let path = trial.path().ancestors().nth(3).unwrap().to_owned();
    let run = RunFolder::open(path).unwrap();
    run.write_text("experiment.toml", "name = \"own\"\n").unwrap();
    run.write_plan(&crate::folder::plan(1, &[("default", 1)])).unwrap();
    (keep, run, trial)
}

/// Does `work` within a minute, or fails: a reader that waits would wait for ever.
fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    is_done.recv_timeout(Duration::from_secs(60)).expect("a reader that does not wait")
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

/// Claim: a link in the place of a file is not followed, wherever it leads, and one in the place of a trial's folder leaves
/// the trial out.
#[test]
fn links_are_not_followed() {
    let (_keep, run, trial) = sealed();
    for name in ["experiment.toml", "plan.toml"] {
        let path = run.path().join(name);
        fs::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
    }
    let said = [run.experiment().unwrap_err(), run.plan_text().unwrap_err()];
    for error in said {
        assert!(matches!(error, RecordError::NotRegular { .. }), "{error}");
        assert!(error.to_string().contains("got a link"), "{error}");
    }
    let facts = trial.path().join("trial.json");
    let elsewhere = run.path().parent().unwrap().join("elsewhere.json");
    fs::rename(&facts, &elsewhere).unwrap();
    symlink(&elsewhere, &facts).unwrap();
    assert!(matches!(trial.facts(), Err(RecordError::NotRegular { .. })));
}

/// Claim: a pipe in the place of any file is refused at once.
#[test]
fn pipes_are_not_waited_for() {
    for name in ["trial.json", "transactions.parquet", "latency.hlog", "seal.json", "faults.ndjson"]
    {
        let (keep, _run, trial) = sealed();
        pipe(&trial.path().join(name));
        let error = soon(move || {
            let facts = trial.facts().map(|_| ());
            let rows = trial.for_each_batch(|_| ()).map(|_| ());
            let faults = trial.faults().map(|_| ());
            drop(keep);
            facts.and(rows).and(faults).unwrap_err()
        });
        assert!(error.to_string().contains("got a pipe"), "{name}: {error}");
    }
    let (keep, run, _trial) = sealed();
    pipe(&run.path().join("plan.toml"));
    let error = soon(move || {
        let found = run.plan().unwrap_err();
        drop(keep);
        found
    });
    assert!(error.to_string().contains("got a pipe"), "{error}");
}

/// Claim: a file that is longer than its seal says is refused by its length: six sparse terabytes take no time.
#[test]
fn lengths_are_compared_first() {
    for name in ["transactions.parquet", "latency.hlog"] {
        let (keep, _run, trial) = sealed();
        let file = OpenOptions::new().write(true).open(trial.path().join(name)).unwrap();
        file.set_len(6 << 40).unwrap();
        let error = soon(move || {
            let found = trial.for_each_batch(|_| ()).unwrap_err();
            drop(keep);
            found
        });
        assert!(error.to_string().contains("bytes and was sealed with"), "{name}: {error}");
    }
}

/// Claim: a file that a stranger put beside a trial's is not read for the list of files, however long it is.
#[test]
fn added_files_are_not_read() {
    let (keep, run, trial) = sealed();
    let long = fs::File::create(trial.path().join("long.parquet")).unwrap();
    long.set_len(6 << 40).unwrap();
    let files = soon(move || {
        let files = run.raw_files().unwrap();
        drop(keep);
        files
    });
    assert!(files.iter().all(|file| !file.path.ends_with("long.parquet")), "{files:?}");
    assert!(files.iter().any(|file| file.path.ends_with("transactions.parquet")), "{files:?}");
}

/// Claim: no error repeats an escape sequence that a stranger wrote into trial.json or plan.toml.
#[test]
fn errors_drive_no_terminal() {
    const ESCAPE: &str = "\\u001b]0;PWNED\\u0007\\u001b[2J";
    let (_keep, run, trial) = sealed();
    let path = trial.path().join("trial.json");
    let whole: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let mut said = Vec::new();
    for key in ["/schema", "/declared/clocks"] {
        let mut changed = whole.clone();
        *changed.pointer_mut(key).unwrap() = "ESCAPE".into();
        fs::write(&path, changed.to_string().replace("ESCAPE", ESCAPE)).unwrap();
        said.push(trial.facts().unwrap_err().to_string());
    }
    fs::write(&path, format!("{{\"{ESCAPE}\": 1, \"schema\": 3}}")).unwrap();
    said.push(trial.facts().unwrap_err().to_string());
    run.write_text("plan.toml", &format!("schema = \"{ESCAPE}\"\n")).unwrap();
    said.push(run.plan().unwrap_err().to_string());
    for error in said {
        assert!(error.chars().all(|c| !c.is_control()), "{error:?}");
    }
}

/// Claim: a sealed run folder says which file was changed, taken away, added or replaced by a link, and a copy holds. Reports are no
/// part of it.
#[test]
fn the_seal_over_all_files() {
    let (_keep, run, trial) = sealed();
    assert_eq!(run.check_seal().unwrap(), FilesSeal::Absent);
    let files = run.seal_files().unwrap();
    assert_eq!(run.check_seal().unwrap(), FilesSeal::Holds { files });
    // Nothing is written through a link that waits where a file is made.
    let waiting = run.path().join("seal.sha256.partial");
    let elsewhere = run.path().parent().unwrap().join("elsewhere");
    symlink(&elsewhere, &waiting).unwrap();
    assert!(matches!(
        run.seal_files(),
        Err(RecordError::Name { .. } | RecordError::NotRegular { .. })
    ));
    assert!(!elsewhere.exists());
    fs::remove_file(&waiting).unwrap();
    run.write_text("report.md", "made again").unwrap();
    assert_eq!(run.check_seal().unwrap(), FilesSeal::Holds { files });
    let summed = std::process::Command::new("sha256sum")
        .args(["--check", "--quiet", "seal.sha256"])
        .current_dir(run.path())
        .status();
    assert!(summed.is_ok_and(|status| status.success()), "coreutils reads the same");

    let facts = trial.path().join("trial.json");
    let (kept, text) = (fs::read(&facts).unwrap(), "of another");
    let plan = run.path().join("plan.toml");
    fs::write(&facts, text).unwrap();
    fs::write(run.path().join("more"), text).unwrap();
    fs::remove_file(&plan).unwrap();
    symlink("/etc/passwd", &plan).unwrap();
    let FilesSeal::Broken { why } = run.check_seal().unwrap() else { panic!("it is broken") };
    assert_eq!(
        why,
        [
            "plan.toml: no regular file",
            "plan.toml: missing",
            "settings/default/trial-0/trial.json: changed",
            "more: added"
        ]
    );
    fs::write(&facts, kept).unwrap();
    run.write_text("seal.sha256", "no digests").unwrap();
    assert!(matches!(run.check_seal(), Err(RecordError::Damaged { .. })));
}
