//! Runs the built binary in a folder of its own and reads what it says. Every run is bounded in time; nothing
//! outlives a test. It must never time a transaction: what it compares comes from the binary's own documents.

#![allow(missing_docs, reason = "test code")]

pub mod hostile_http2;
pub mod peers;
mod processes;
mod server;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::Clock;
use serde_json::Value;

pub use processes::{processes_of, signal};
pub use server::{Echo, Server, port_is_free};

/// The binary under test.
pub const ASSAY: &str = env!("CARGO_BIN_EXE_assay");

/// A run that takes longer hangs; on a busy machine the longest take a minute.
const RUN_LIMIT: Duration = Duration::from_secs(180);

/// How often something is looked at that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Two cores carry one trial whose times are asserted, or several whose counts are.
static MACHINE: RwLock<()> = RwLock::new(());

/// The machine for this trial alone: its times are asserted.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The machine together with other trials whose times do not matter.
pub fn beside_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Copies a program, to be run. One that is written by this process could be open in a child that another test begins just
/// then, and a program that is open for writing cannot be run.
pub fn copy_program(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().expect("it is in a folder")).expect("a folder");
    let copied = Command::new("cp").args([from, to]).status().expect("there is cp");
    assert!(copied.success(), "copying {}", from.display());
}

/// A value made once and used by several tests, one at a time.
pub fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder that is removed at the end of the test. Every process that `assay` starts in it is known by it.
pub struct Place {
    path: PathBuf,
    /// Removes it; a lasting place has none.
    _folder: Option<tempfile::TempDir>,
}

/// The output of a run.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        Self { path: folder.path().to_owned(), _folder: Some(folder) }
    }

    /// A place for a value that lives as long as the test process and so is never dropped: a folder under
    /// cargo's own, emptied before it is used.
    pub fn lasting(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("cargo's temporary folder can be written");
        Self { path, _folder: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).expect("the temporary folder can be written");
        }
        std::fs::write(&path, text).expect("the temporary folder can be written");
        path
    }

    /// `assay` with `arguments`, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.started_by(&[], arguments)
    }

    /// The same, started by other programs: `["nice", "-n", "19"]`.
    pub fn started_by(&self, before: &[&str], arguments: &[&str]) -> Command {
        let mut words = before.iter().chain(&[ASSAY]).chain(arguments);
        let mut command = Command::new(words.next().expect("at least the binary"));
        command
            .args(words)
            .current_dir(self.path())
            .env_remove("NO_COLOR")
            .env("HOME", self.path())
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env(processes::MARK, self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // What a developer has set for himself is no part of a test.
        for (name, _) in std::env::vars() {
            if name.starts_with("ASSAY_") && !name.starts_with("ASSAY_TEST_") {
                command.env_remove(name);
            }
        }
        // What the suite asks for is: the same tests once more through the other driver.
        if let Some(driver) = std::env::var_os("ASSAY_TEST_DRIVER") {
            command.env("ASSAY_DRIVER", driver);
        }
        command
    }

    pub fn assay(&self, arguments: &[&str]) -> Said {
        finish(&mut self.command(arguments))
    }

    /// The same, with the programs that are installed on this machine: their folder is elsewhere without a home.
    pub fn assay_with_programs(&self, arguments: &[&str]) -> Said {
        let cache = testbed::install::cache_folder();
        finish(self.command(arguments).env("ASSAY_CACHE", cache))
    }

    /// The command that runs a file of `experiments/` with a profile, and these programs, and prints its document alone.
    pub fn shipped(&self, name: &str, profile: &str, more: &[&str]) -> Command {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let file = folder.join(name).with_extension("toml").display().to_string();
        let quietly = ["--json", "--progress=none", "--no-calibration"];
        let words = [&["run", file.as_str(), "--profile", profile], &quietly[..], more].concat();
        let mut command = self.command(&words);
        command.env("ASSAY_CACHE", testbed::install::cache_folder());
        command
    }

    /// The document of the toy of a file of `experiments/`.
    pub fn toy(&self, name: &str, more: &[&str]) -> Value {
        finish(&mut self.shipped(name, "toy", more)).json()
    }

    /// The same with something on standard input.
    pub fn assay_with_input(&self, arguments: &[&str], input: &str) -> Said {
        let path = self.write("standard-input", input);
        let file = std::fs::File::open(path).expect("it was just written");
        finish(self.command(arguments).stdin(file))
    }

    /// Runs an experiment given as text and gives its result document.
    pub fn experiment(&self, text: &str) -> (Said, Value) {
        self.experiment_with(text, &[])
    }

    pub fn experiment_with(&self, text: &str, more: &[&str]) -> (Said, Value) {
        self.experiment_by(&[], text, more)
    }

    /// The same, with `assay` started by other programs.
    pub fn experiment_by(&self, before: &[&str], text: &str, more: &[&str]) -> (Said, Value) {
        self.write("experiment.toml", text);
        let quietly =
            ["run", "experiment.toml", "--json", "--progress", "none", "--no-calibration"];
        let arguments: Vec<&str> = quietly.iter().chain(more).copied().collect();
        let said = finish(&mut self.started_by(before, &arguments));
        let document = serde_json::from_str(&said.stdout).unwrap_or(Value::Null);
        (said, document)
    }

    /// The newest run folder under `runs`, relative to this place.
    pub fn run_folder(&self) -> PathBuf {
        let newest = self.runs().pop();
        newest.unwrap_or_else(|| panic!("there is no run under {}", self.path().display()))
    }

    /// All run folders, oldest first.
    pub fn runs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path().join("runs"));
        let entries = entries.map(|entries| entries.flatten().map(|entry| entry.path()));
        let mut folders: Vec<PathBuf> = entries.map(Iterator::collect).unwrap_or_default();
        folders.sort();
        folders
    }

    /// The newest run's folder of one trial, by the relative path of the result document.
    pub fn trial_folder(&self, document: &Value) -> PathBuf {
        let path = document["settings"][0]["trials"][0]["path"].as_str().expect("a trial's path");
        self.run_folder().join(path)
    }

    /// `assay report` of the newest run, as a document.
    pub fn report(&self) -> (Said, Value) {
        let run = self.run_folder().display().to_string();
        let said = self.assay(&["report", &run, "--format", "json", "--verdict"]);
        let document = serde_json::from_str(&said.stdout).unwrap_or(Value::Null);
        (said, document)
    }
}

impl Drop for Place {
    /// Nothing may still run in a folder that is about to be removed.
    fn drop(&mut self) {
        let left = processes_of(self.path());
        for process in &left {
            signal(process.id, rustix::process::Signal::KILL);
        }
        if !std::thread::panicking() {
            assert!(left.is_empty(), "still running at the end of the test: {left:?}");
        }
    }
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Said {
    Running::start(command).finish()
}

/// A process whose output is being read. It is killed when this is dropped.
pub struct Running {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = child.stdout.take().map(read_all);
        let stderr = child.stderr.take().map(read_all);
        Self { child, stdout, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, kind: rustix::process::Signal) {
        signal(self.child.id(), kind);
    }

    /// Waits for the end, killing the process if there is none.
    pub fn finish(self) -> Said {
        self.finish_within(RUN_LIMIT)
    }

    pub fn finish_within(mut self, limit: Duration) -> Said {
        let child = &mut self.child;
        let ended = until(limit, || child.try_wait().expect("the child can be waited for"));
        let Some(status) = ended else {
            let _ = self.child.kill();
            panic!("still running after {limit:?}");
        };
        let text = |reader: Option<JoinHandle<String>>| {
            reader.map(|reader| reader.join().expect("the reader ends")).unwrap_or_default()
        };
        Said {
            code: status.code().unwrap_or(-1),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_all(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Looks again and again until there is something, up to `limit`.
pub fn until<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let clock = Clock::start();
    let deadline = clock.now().plus(limit);
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if clock.now() >= deadline {
            return None;
        }
        clock.sleep_until(clock.now().plus(LOOK_EVERY));
    }
}

/// Waits until something holds; panics with `what` if it does not within `limit`.
#[track_caller]
pub fn await_that(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    assert!(until(limit, || holds().then_some(())).is_some(), "{what}: not within {limit:?}");
}

/// Lets a length of time pass that the test is about.
pub fn pass(time: Duration) {
    let clock = Clock::start();
    clock.sleep_until(clock.now().plus(time));
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Said {
    /// Asserts the exit code, showing everything if it is another.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "\n--- stdout\n{}\n--- stderr\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that standard output holds some words.
    #[track_caller]
    pub fn expect_stdout(&self, words: &str) -> &Self {
        assert!(self.stdout.contains(words), "no `{words}` in\n{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that standard error holds some words.
    #[track_caller]
    pub fn expect_stderr(&self, words: &str) -> &Self {
        assert!(self.stderr.contains(words), "no `{words}` in\n{}\n{}", self.stderr, self.stdout);
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }
}

/// The first trial of the first setting.
pub fn trial(document: &Value) -> &Value {
    &document["settings"][0]["trials"][0]
}

/// Fates of transactions and entries that are in order nowhere.
pub const WRONG_FATES: [&str; 5] =
    ["lost", "duplicate", "phantom", "refused_yet_present", "reordered"];

/// Nothing of a trial has any of these fates.
#[track_caller]
pub fn expect_none(trial: &Value, fates: &[&str]) {
    let counts = &trial["fates"];
    for fate in fates {
        assert_eq!(number(&counts[*fate]), 0, "{fate}: {counts}");
    }
}

/// Every check of a trial holds; gives their names. On a starved machine a replica may not have caught up with the others: then
/// `same-state` has nothing to compare, and says so.
#[track_caller]
pub fn expect_checks(trial: &Value) -> Vec<&str> {
    let mut names = Vec::new();
    for check in trial["checks"].as_array().into_iter().flatten() {
        let is_late = check["name"] == "same-state" && check["outcome"] == "warn";
        assert!(check["outcome"] == "ok" || is_late, "{check}");
        names.push(check["name"].as_str().unwrap_or_default());
    }
    names
}

/// The only trial of the setting with this key.
#[track_caller]
pub fn trial_of<'a>(document: &'a Value, key: &str) -> &'a Value {
    let settings = document["settings"].as_array().into_iter().flatten();
    let found = settings.into_iter().find(|setting| setting["key"] == key);
    &found.unwrap_or_else(|| panic!("no setting {key} in {document}"))["trials"][0]
}

/// The thresholds of a trial that its experiment writes, without those that every ledger makes.
pub fn written_thresholds(trial: &Value) -> Vec<&Value> {
    let all = trial["thresholds"].as_array().expect("a trial has a list of thresholds");
    all.iter().filter(|it| it["implicit"] == false).collect()
}

/// The audit called `name` in the first trial of the first setting, or in the run: outcome and detail.
#[track_caller]
pub fn audit<'a>(document: &'a Value, name: &str) -> (&'a str, &'a str) {
    let run = document["audits"].as_array().into_iter().flatten();
    let audits = trial(document)["audits"].as_array().into_iter().flatten().chain(run);
    let found = audits.into_iter().find(|audit| audit["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no audit called {name}"));
    (found["outcome"].as_str().unwrap_or(""), found["detail"].as_str().unwrap_or(""))
}

/// Asserts that an audit came out so and says some words.
#[track_caller]
pub fn expect_audit(document: &Value, name: &str, outcome: &str, words: &str) {
    let found = audit(document, name);
    assert!(
        found.0 == outcome && found.1.contains(words),
        "{name} is {} and says: {}\nexpected {outcome} and: {words}",
        found.0,
        found.1
    );
}

/// Audits that look at times, and so may rightly object to what else this machine does while a test runs, or to a
/// hypervisor that stops it for a while. What they say of a trial that nothing disturbs is asserted in virtual time
/// (`instrument/exact`); here each has a trial that is built to make it object.
pub const OF_THE_MACHINE: [&str; 12] = [
    "backlog_drift",
    "clock",
    "connections",
    "first_use",
    "generator_busy",
    "host",
    "latency_drift",
    "littles_law",
    "receive_lag",
    "repeatability",
    "send_lag",
    "warm_up",
];

/// The audits that failed, of all trials and of the run.
pub fn failed_audits(document: &Value) -> Vec<&str> {
    let trials = document["settings"].as_array().into_iter().flatten();
    let trials = trials.flat_map(|setting| setting["trials"].as_array().into_iter().flatten());
    let of_trials = trials.flat_map(|trial| trial["audits"].as_array().into_iter().flatten());
    let all = of_trials.chain(document["audits"].as_array().into_iter().flatten());
    all.filter(|it| it["outcome"] == "failed").filter_map(|it| it["name"].as_str()).collect()
}

/// Whether a run is invalid for what else this machine did, and for nothing more; if so, it is said.
pub fn only_the_machine_is_to_blame(code: i32, document: &Value) -> bool {
    let failed = failed_audits(document);
    let blamed =
        code == 97 && !failed.is_empty() && failed.iter().all(|name| OF_THE_MACHINE.contains(name));
    if blamed {
        say(&format!("NOTE this machine was not idle: {}", document["reason"]));
    }
    blamed
}

/// Asserts that a run ended with 0. On a machine that something else keeps busy the instrument rightly says so, with 97:
/// that is let pass if it is all that is wrong, and said. What fails by its answers ends with 99 on any machine.
#[track_caller]
pub fn expect_holds(said: &Said, document: &Value) {
    expect_code_or_busy(said, document, 0);
}

/// The same of a code that takes the place of a good one, but not of 97.
#[track_caller]
pub fn expect_code_or_busy(said: &Said, document: &Value, code: i32) {
    if !only_the_machine_is_to_blame(said.code, document) {
        said.expect_code(code);
    }
}

/// A count or any other whole number of a document.
#[track_caller]
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// A setting of a trial's `durability`, by the system's own name.
#[track_caller]
pub fn durability_setting<'a>(durability: &'a Value, name: &str) -> &'a Value {
    let mut settings = durability["settings"].as_array().into_iter().flatten();
    let found = settings.find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("no setting {name} in {durability}"))
}

/// Says something that must be seen though the test passes: written past what the test runner captures.
pub fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The devices of a disk of a node's own, and of links that can be cut.
pub const DISK: &str = "/dev/fuse";
pub const LINKS: &str = "/dev/net/tun";

/// Whether all that a test takes is here: programs by name, devices by path, for which it takes root. If not, that is said.
pub fn has_all(test: &str, wanted: &[&str]) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    let is_here = |name: &str| match name.starts_with('/') {
        true => is_root && Path::new(name).exists(),
        false => testbed::install::find(name).is_some() || program(name).is_some(),
    };
    let missing: Vec<&str> = wanted.iter().copied().filter(|name| !is_here(name)).collect();
    if !missing.is_empty() {
        say(&format!(
            "SKIPPED {test}: it takes {} (programs: assay doctor --install NAME; devices: root)",
            missing.join(", ")
        ));
    }
    missing.is_empty()
}

/// Whether a program is installed, by asking for it in every folder where programs are.
pub fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&paths).chain([PathBuf::from("/usr/sbin")]).collect();
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}
