//! `assay tell` and the socket of a run folder: a load is started, marked and stopped from elsewhere.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use record::RunFolder;
use rustix::process::Signal;

use crate::harness::{Echo, Place, Running, await_that, beside_others, finish};

const LIMIT: Duration = Duration::from_secs(60);

fn run(place: &Place, echo: &Echo, length: &str, more: &[&str]) -> Running {
    place.write(
        "experiment.toml",
        format!(
            "name = \"told\"\n[system]\nkind = \"http\"\n[system.deploy]\nurl = \"http://{}/\"\n[load]\nrate = \"200/s\"\n\
             warmup = \"0s\"\nduration = \"{length}\"\n",
            echo.http
        ),
    );
    let words = ["run", "experiment.toml", "--progress", "none", "--no-calibration"];
    let words: Vec<&str> = words.into_iter().chain(more.iter().copied()).collect();
    Running::start(&mut place.command(&words))
}

fn has_rows(place: &Place) -> bool {
    let log = place.runs().pop().map(|run| run.join("settings/default/trial-0/rows.log"));
    log.and_then(|path| path.metadata().ok()).is_some_and(|it| it.len() > 1_000)
}

/// Details of the marks of the newest run's trial.
fn marks(place: &Place) -> Vec<String> {
    let run = RunFolder::open(place.run_folder()).expect("a run folder");
    let trials = run.trials().expect("it has trials");
    let events = trials[0].events().expect("its events can be read");
    events.into_iter().filter(|it| it.name == "mark").map(|it| it.detail).collect()
}

/// Claim: with `--hold` nothing is sent before `start`; a mark is in the folder while the load goes on, and on the page
/// afterwards; `stop` ends the run as Ctrl-C does, and the socket is gone.
#[test]
fn a_load_is_started_marked_and_stopped() {
    let _beside = beside_others();
    // A path that is longer than a socket's name may be.
    let (echo, place) = (Echo::start(&[]), Place::new());
    let long = "x".repeat(120);
    let running = run(&place, &echo, "60s", &["--hold", "--runs", &long]);
    let runs = place.path().join(&long);
    let found = || std::fs::read_dir(&runs).ok()?.flatten().next().map(|entry| entry.path());
    await_that(LIMIT, "there is a socket", || {
        found().is_some_and(|run| run.join("control").exists())
    });
    let folder = found().expect("a run folder");
    let named = folder.display().to_string();
    let tell = |order: &[&str]| {
        let words: Vec<&str> =
            ["tell", "--run", &named].into_iter().chain(order.iter().copied()).collect();
        finish(&mut place.command(&words))
    };
    tell(&["mark", "too early"]).expect_code(1).expect_stderr("no load goes on");
    let log = folder.join("settings/default/trial-0/rows.log");
    assert!(!log.exists(), "it did not wait");
    tell(&["start"]).expect_code(0).expect_stdout("the load starts");
    tell(&["start"]).expect_code(1).expect_stderr("no load waits");
    await_that(LIMIT, "it sends", || log.metadata().is_ok_and(|it| it.len() > 1_000));
    tell(&["mark", "deployed", "v2"]).expect_code(0).expect_stdout("after the start of the load");
    let trial = || RunFolder::open(&folder).expect("a run").trials().expect("trials").remove(0);
    let is_mark = |it: &model::facts::Event| it.name == "mark" && it.detail == "deployed v2";
    assert!(trial().events().expect("events").iter().any(is_mark), "as it happens");
    assert!(folder.join("settings/default/trial-0/events.ndjson").exists());
    tell(&["stop"]).expect_code(0).expect_stdout("the run stops");
    running.finish_within(LIMIT).expect_code(130);
    assert!(trial().events().expect("events").iter().any(is_mark), "afterwards");
    assert!(!folder.join("control").exists());
    let page = std::fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(page.contains(">moment"), "a tick on the line of charts");
    tell(&["stop"]).expect_code(1).expect_stderr("is not of a run that goes on");
}

/// Claim: a mark survives `kill -9`; the socket that is left over is said to be of no run, and does not stand in the way of
/// a report.
#[test]
fn a_mark_survives_a_crash() {
    let _beside = beside_others();
    let (echo, place) = (Echo::start(&[]), Place::new());
    let running = run(&place, &echo, "60s", &[]);
    await_that(LIMIT, "it sends", || has_rows(&place));
    place.assay(&["tell", "mark", "before the end"]).expect_code(0);
    running.signal(Signal::KILL);
    running.finish();
    assert_eq!(marks(&place), ["before the end"]);
    place.assay(&["tell", "mark", "after it"]).expect_code(1).expect_stderr("goes on");
    place.assay(&["report", "--format", "json"]).expect_code(0);
    let run = RunFolder::open(place.run_folder()).expect("a run folder");
    assert!(run.path().join("control").exists());
    let sealed = run.seal_files().expect("the socket does not stand in the way");
    assert_eq!(run.check_seal().expect("a seal"), record::FilesSeal::Holds { files: sealed });
}

/// Claim: orders that are none, endless or never come get an answer or none, and the load neither ends nor fails for them; the
/// text of a mark drives no terminal and no page.
#[test]
fn strange_orders_are_answered() {
    let _beside = beside_others();
    let (echo, place) = (Echo::start(&[]), Place::new());
    let running = run(&place, &echo, "3s", &[]);
    await_that(LIMIT, "it sends", || has_rows(&place));
    let socket = place.run_folder().join("control");
    let said = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let silent = UnixStream::connect(&socket).expect("it listens");
    for bytes in [&b""[..], b"\n", b"mark\n", b"mark  \n", b"stop now\n", b"\xff\xfe\n", b"halt\n"]
    {
        assert!(said(bytes).starts_with("error: expected start, stop or mark TEXT"), "{bytes:?}");
    }
    let endless = said(&[b'x'; 100_000]);
    assert!(endless.is_empty() || endless.starts_with("error: "), "{endless}");
    assert!(said(b"mark <script>\x1b[2J</script>\n").starts_with("ok: marked"));
    drop(silent);
    let said = running.finish_within(LIMIT);
    assert!([0, 97].contains(&said.code), "{}", said.stderr);
    assert_eq!(marks(&place).len(), 1);
    let page = std::fs::read_to_string(place.run_folder().join("report.html")).expect("a page");
    assert!(!page.contains("<script>\u{1b}") && !page.contains('\u{1b}'));
}
