//! `assay watch`: a run that another process carries out, followed from its folder to its end, in a terminal and in a browser's
//! way. The runs here are long and end when what they are about has been seen, so that nothing depends on a busy machine.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Place, Running, await_that, beside_others, processes_of, signal};

/// Something that is waited for comes within this, on the busiest machine.
const SOON: Duration = Duration::from_secs(60);

const RUN: [&str; 5] =
    ["run", "experiment.toml", "--progress=none", "--no-calibration", "--no-preflight"];

/// Five minutes of load on a server that is paused for a second after one.
const LONG: &str = r#"
    name = "followed"
    system = { kind = "echo" }
    load = { rate = "200/s", duration = "5m", timeout = "5s", warmup = "0s" }
    [[fault]]
    at = "1s"
    for = "1s"
    pause = "echo"
"#;

/// A run that goes on.
fn started(place: &Place) -> Running {
    place.write("experiment.toml", LONG);
    let running = Running::start(&mut place.command(&RUN));
    await_that(SOON, "there is a plan", || {
        place.runs().first().is_some_and(|run| run.join("plan.toml").is_file())
    });
    running
}

/// `assay watch` whose standard error goes to a file.
fn watching(place: &Place, arguments: &[&str], file: &str) -> (Running, PathBuf) {
    let path = place.path().join(file);
    let stderr = File::create(&path).expect("the temporary folder can be written");
    let arguments = [&["watch"], arguments].concat();
    (Running::start(place.command(&arguments).stderr(stderr)), path)
}

fn said(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn await_said(path: &Path, words: &str) {
    await_that(SOON, words, || said(path).contains(words));
}

/// Claim: a watch shows each phase of the run, its rates from the rows alone, and the faults that begin and end; it ends with
/// the run, and says the verdict and where the report is. For a run that has ended it says both at once.
#[test]
fn in_a_terminal_to_the_end() {
    let _beside = beside_others();
    let place = Place::new();
    let run = started(&place);
    let (watch, file) = watching(&place, &["--progress=line"], "said");
    await_said(&file, "fault pause echo began");
    await_said(&file, "fault pause echo ended");
    await_said(&file, "followed 1/1 default measure");
    run.signal(Signal::INT);
    let (ran, watched) = (run.finish(), watch.finish());
    watched.expect_code(0);
    let shown = said(&file);
    assert!(shown.lines().any(|line| line.contains("followed 1/1 default done")), "{shown}");
    let line = shown.lines().find(|line| line.contains(" measure ")).expect("it was awaited");
    for words in ["offered ", "ended ", "committed ", "due and not ended ", "own lag p99 "] {
        assert!(line.contains(words), "{words}: {line}");
    }
    let report = format!("report       runs/{}/report.html\n", name_of(&place));
    watched.expect_stdout("followed · ").expect_stdout("(exit code 130)").expect_stdout(&report);
    ran.expect_code(130).expect_stdout(&report);
    let again = place.assay(&["watch", &format!("runs/{}", name_of(&place))]);
    assert_eq!((again.code, again.stdout.as_str()), (0, watched.stdout.as_str()));
    assert_eq!(again.stderr, "");
}

fn name_of(place: &Place) -> String {
    place.run_folder().file_name().expect("a name").to_string_lossy().into_owned()
}

/// Claim: while a run goes on no other process goes on with it; when it is killed, the watch ends, too, and says what can be
/// done.
#[test]
fn a_run_that_dies() {
    let _beside = beside_others();
    let place = Place::new();
    let run = started(&place);
    let folder = format!("runs/{}", name_of(&place));
    let (watch, file) = watching(&place, &["--progress=line", &folder], "said");
    await_said(&file, "followed 1/1 default measure");
    let refused = place.assay(&["run", "--resume", &folder, "--progress=none"]);
    refused.expect_code(1).expect_stderr("is carried out by another process; wait for its end");
    run.signal(Signal::KILL);
    drop(run);
    watch.finish().expect_code(1);
    let shown = said(&file);
    assert!(shown.contains(&format!("to go on with it: assay run --resume {folder}")), "{shown}");
    for left in processes_of(place.path()) {
        signal(left.id, Signal::KILL);
    }
    await_that(SOON, "nothing runs any more", || processes_of(place.path()).is_empty());
}

/// The address that a watch has printed, and its query.
fn address(file: &Path) -> (String, String) {
    await_said(file, ": http://");
    let said = said(file);
    let url = said.split("http://").nth(1).and_then(|rest| rest.lines().next()).expect("a URL");
    let (host, query) = url.split_once('/').expect("a path");
    (host.replace("0.0.0.0", "127.0.0.1"), query.to_owned())
}

fn ask(host: &str, target: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(host).expect("it listens");
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    BufReader::new(stream)
}

fn get(host: &str, target: &str) -> String {
    let mut answer = String::new();
    ask(host, target).read_to_string(&mut answer).expect("it answers");
    answer
}

/// The next event: its name and what it says.
fn event(events: &mut BufReader<TcpStream>) -> (String, String) {
    let mut name = String::new();
    loop {
        let mut line = String::new();
        assert!(events.read_line(&mut line).expect("events") > 0, "the events end with `over`");
        if let Some(of) = line.strip_prefix("event: ") {
            of.trim_end().clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (name, data.trim_end().to_owned());
        }
    }
}

/// Claim: the page of a run that goes on is the report's own of what its rows say so far, without a verdict; who listens is told
/// figures that grow up to those of the record, and of the end; then the page is the report. Elsewhere than on loopback nothing
/// is given without the token.
#[test]
fn in_a_browser_to_the_end() {
    let _beside = beside_others();
    let place = Place::new();
    let run = started(&place);
    let (watch, file) = watching(&place, &["--web", "--progress=none"], "own");
    let (foreign, foreign_file) =
        watching(&place, &["--web=0.0.0.0:0", "--progress=none"], "foreign");
    let ((host, query), (elsewhere, token)) = (address(&file), address(&foreign_file));
    assert_eq!(query, "");
    assert!(get(&host, "/").contains("The run goes on; nothing is judged before its end"));
    for path in ["/", "/report", "/events"] {
        assert!(get(&elsewhere, path).starts_with("HTTP/1.1 403 "), "{path}");
    }
    assert!(token.starts_with("?token="), "{token}");
    assert!(get(&elsewhere, &format!("/{token}")).starts_with("HTTP/1.1 200 "));

    let mut events = ask(&host, "/events");
    let mut ended = 0;
    let mut pages = 0;
    while ended < 400 || pages < 2 {
        let (name, data) = event(&mut events);
        assert_eq!(name, "figures");
        let figures: Value = serde_json::from_str(&data).expect("JSON");
        let now = figures["ended"].as_u64().expect("a count");
        assert!(now >= ended, "{now} after {ended}");
        ended = now;
        pages = figures["page"].as_u64().expect("a count");
        assert!(figures["text"].as_str().expect("a text").contains("due and not ended"), "{data}");
    }
    let page = get(&host, "/report");
    // The last word of the reason is one of the glossary, and marked as such.
    for words in ["<article class=\"run\"", "the run goes on; nothing is judged before its"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.contains("UNDECIDED") && !page.contains("Interrupted:"));
    run.signal(Signal::INT);
    while event(&mut events).0 == "figures" {}
    drop(events);
    let last = get(&host, "/report");
    let report = std::fs::read_to_string(place.run_folder().join("report.html")).expect("a report");
    assert!(last.ends_with(&report), "the report itself is served at the end");
    watch.finish().expect_code(0).expect_stdout("(exit code 130)");
    foreign.finish().expect_code(0);
    run.finish().expect_code(130);
    let document = place.report().1;
    let counts = &crate::harness::trial(&document)["counts"];
    let due = counts["due"].as_u64().expect("a count");
    assert!(ended <= due, "{ended} had ended of {due}");
    assert!(TcpStream::connect(&host).is_err(), "nothing listens any more");
}

/// Claim: what is no run, and an address that is none, are refused with what to do.
#[test]
fn nothing_to_watch() {
    let place = Place::new();
    let none = place.assay(&["watch"]);
    none.expect_code(1)
        .expect_stderr("there is no run under `runs`; name one, or start one: assay run demo");
    std::fs::create_dir(place.path().join("other")).expect("a folder");
    let other = place.assay(&["watch", "other"]);
    other
        .expect_code(1)
        .expect_stderr("expected a run folder, got other, which holds no plan.toml; `assay list`");
    place
        .assay(&["watch", "nowhere"])
        .expect_code(1)
        .expect_stderr("nowhere is missing; name a run folder");
    let address = place.assay(&["watch", "--web=8080"]);
    address
        .expect_code(2)
        .expect_stderr("expected an address and a port such as 127.0.0.1:9464, got `8080`");
}
