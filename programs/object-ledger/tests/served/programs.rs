//! A whole ledger of real processes on loopback.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use clock::Clock;

const PROGRAM: &str = env!("CARGO_BIN_EXE_object-ledger");
/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
pub const BUCKETS: usize = 6;
/// Services and pipelines share it.
const SECRET: &str = "sixteen letters, and more";

/// A service that runs, or has been killed.
struct Service {
    words: Vec<String>,
    child: Option<Child>,
    /// From its line `ready`: where what is.
    said: BTreeMap<String, String>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Service {
    fn start(&mut self) {
        let mut child = Command::new(PROGRAM)
            .args(&self.words)
            .arg("--parent-pipe")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it says something");
        assert!(line.starts_with("ready "), "{:?}: {line}", self.words);
        let pairs = line.split_whitespace().filter_map(|word| word.split_once('='));
        self.said = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        self.child = Some(child);
    }

    /// As a crash: no signal that could be handled.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
    }
}

/// All services, by name: queue, timestamp, sequencer, bucket0 to bucket5, pipeline0, pipeline1, watcher.
pub struct Ledger {
    pub folder: tempfile::TempDir,
    services: BTreeMap<String, Service>,
}

impl Ledger {
    /// A folder, and no service.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), services: BTreeMap::new() }
    }

    /// Starts everything; `storage` are lines of `[storage]`.
    pub fn start(storage: &str) -> Self {
        let mut ledger = Self::empty();
        std::fs::write(ledger.path("secret"), SECRET).expect("the folder is ours");
        let secrets = format!("[pipelines]\nsecret = \"{SECRET}\"\n");
        std::fs::write(ledger.path("secrets.toml"), secrets).expect("the folder is ours");
        let secret = format!("--secret={}", ledger.path("secret"));
        for name in ["queue", "timestamp", "sequencer"] {
            let data = ledger.path(name);
            let mut words = vec!["serve", name, "--data", &data, &secret];
            let stamp;
            if name != "queue" {
                words.push("--name=served");
            }
            if name == "sequencer" {
                stamp = format!("--timestamp={}", ledger.at("timestamp", "key"));
                words.push(&stamp);
            }
            ledger.add(name, &words);
        }
        (0..BUCKETS).for_each(|index| {
            let name = format!("bucket{index}");
            ledger.add(&name, &["serve", "bucket", "--data", &ledger.path(&name)]);
        });
        ledger.write_file(storage);
        let file = ledger.file();
        let waits = ["--bucket-to-queue=20ms", "--queue-to-cache=20ms", "--omc=10ms"];
        ledger.add("watcher", &[&["serve", "watcher", "--ledger", &file], &waits[..]].concat());
        let watcher = ledger.at("watcher", "requests");
        for name in ["pipeline0", "pipeline1"] {
            // A short lease, so that a batch whose pipeline has died is tried again soon.
            let words =
                ["serve", "pipeline", "--ledger", &file, "--lease=3s", "--watcher", &watcher];
            ledger.add(name, &words);
        }
        ledger
    }

    fn add(&mut self, name: &str, words: &[&str]) {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        let mut service = Service { words, child: None, said: BTreeMap::new() };
        service.start();
        // The next start takes the same addresses.
        for (listens, option) in [("requests", "--listen"), ("metrics", "--metrics")] {
            if let Some(address) = service.said.get(listens) {
                service.words.extend([option.to_owned(), address.clone()]);
            }
        }
        self.services.insert(name.to_owned(), service);
    }

    fn write_file(&self, storage: &str) {
        let address = |name: &str| self.at(name, "requests");
        let mut text = format!(
            "name = \"served\"\nsecret = \"pipelines\"\ncredentials = \"secrets.toml\"\nqueue = \"{}\"\ntimestamp = \"{}\"\nsequencer = \"{}\"\n",
            address("queue"),
            address("timestamp"),
            address("sequencer")
        );
        let key = |name: &str| self.at(name, "key");
        let (timestamp, sequencer) = (key("timestamp"), key("sequencer"));
        text += &format!("[keys]\ntimestamp = \"{timestamp}\"\nsequencer = \"{sequencer}\"\n");
        text += &format!("[storage]\n{storage}\n");
        for index in 0..BUCKETS {
            let at = address(&format!("bucket{index}"));
            text += &format!(
                "[[bucket]]\nprovider = \"aws\"\nbucket = \"b{index}\"\nendpoint = \"http://{at}\"\n"
            );
        }
        std::fs::write(self.file(), text).expect("the folder is ours");
    }

    /// Starts one more service.
    pub fn also(&mut self, name: &str, words: &[&str]) {
        self.add(name, words);
    }

    /// Runs any command; gives its code, and what it says.
    pub fn runs(&self, words: &[&str]) -> (i32, String) {
        let output =
            Command::new(PROGRAM).args(words).stdin(Stdio::null()).output().expect("it runs");
        let said = text(&output.stdout) + &text(&output.stderr);
        (output.status.code().unwrap_or(-1), said)
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn file(&self) -> String {
        self.path("ledger.toml")
    }

    /// The files of a bucket that hold objects whose name begins so.
    pub fn objects(&self, bucket: usize, prefix: &str) -> Vec<PathBuf> {
        let folder = self.folder.path().join(format!("bucket{bucket}/b{bucket}/{prefix}"));
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// What a service said of itself when it was ready.
    pub fn at(&self, service: &str, what: &str) -> String {
        self.services[service].said[what].clone()
    }

    /// The most memory that a service has had, in bytes.
    pub fn most_bytes(&self, service: &str) -> u64 {
        let id = self.services[service].child.as_ref().expect("it runs").id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
        let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).expect("its peak");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }

    pub fn kill(&mut self, name: &str) {
        self.services.get_mut(name).expect("a service").kill();
    }

    pub fn start_again(&mut self, name: &str) {
        self.services.get_mut(name).expect("a service").start();
    }

    /// Runs a command of the client with the ledger's file.
    pub fn client(&self, words: &[&str]) -> Output {
        let (command, rest) = words.split_first().expect("a command");
        let mut client = Command::new(PROGRAM);
        client.arg(command).args(["--ledger", &self.file()]).args(rest);
        client.stdin(Stdio::null()).output().expect("it runs")
    }

    /// What the audit reads from the folders of these buckets.
    pub fn audited(&self, buckets: &[usize]) -> String {
        let mut audit = Command::new(PROGRAM);
        // Buckets that were killed may still be missing pieces.
        audit.args(["audit", "--name", "served", "--margin", "0"]);
        for (option, whose) in [("--timestamp", "timestamp"), ("--sequencer", "sequencer")] {
            audit.args([option, &self.at(whose, "key")]);
        }
        for bucket in buckets {
            audit.args(["--bucket", &self.path(&format!("bucket{bucket}/b{bucket}"))]);
        }
        let output = audit.stdin(Stdio::null()).output().expect("it runs");
        assert!(output.status.success(), "{buckets:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What a command says that does well.
    pub fn said(&self, words: &[&str]) -> String {
        let output = self.client(words);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{words:?}: {out}{err}");
        out
    }

    /// What a command complains of that does not do well.
    pub fn complains(&self, words: &[&str]) -> String {
        let output = self.client(words);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(!output.status.success(), "{words:?}: {out}");
        err
    }

    /// Submits each, in their order, until one is not acknowledged; gives those that were.
    pub fn submit<'a>(&self, transactions: &'a [String]) -> &'a [String] {
        let mut client = Command::new(PROGRAM)
            .args(["submit", "--ledger", &self.file()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let mut input = client.stdin.take().expect("it is piped");
        // It may end before it has read all of them.
        let _ = input.write_all((transactions.join("\n") + "\n").as_bytes());
        drop(input);
        let output = client.wait_with_output().expect("it is ours");
        let acknowledged =
            text(&output.stdout).lines().filter(|it| it.starts_with("accepted ")).count();
        &transactions[..acknowledged]
    }

    /// How often each transaction is on the main chain, read from the buckets alone; waits until all of these are.
    pub fn wait_for(&self, wanted: &[String]) -> BTreeMap<String, u32> {
        let clock = Clock::start();
        loop {
            let output = self.client(&["ledger"]);
            let mut found: BTreeMap<String, u32> = BTreeMap::new();
            for line in text(&output.stdout).lines() {
                let entry: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
                let transaction = entry["transaction"].as_str().expect("text").to_owned();
                *found.entry(transaction).or_default() += 1;
            }
            if output.status.success() && wanted.iter().all(|it| found.contains_key(it)) {
                return found;
            }
            let missing = wanted.iter().filter(|it| !found.contains_key(*it)).count();
            let waited = clock.now().as_ns() < i64::try_from(PATIENCE.as_nanos()).expect("fits");
            assert!(waited, "{missing} of {} are missing: {}", wanted.len(), text(&output.stderr));
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A service's metrics.
    pub fn metrics(&self, service: &str) -> String {
        let mut stream =
            TcpStream::connect(self.at(service, "metrics")).expect("it serves metrics");
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }

    /// Waits until a line stands in a service's metrics.
    pub fn wait_for_metric(&self, service: &str, line: &str) {
        let clock = Clock::start();
        while !self.metrics(service).lines().any(|it| it == line) {
            let waited = clock.now().as_ns() < i64::try_from(PATIENCE.as_nanos()).expect("fits");
            assert!(waited, "{service} never says `{line}`:\n{}", self.metrics(service));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Transactions with names of their own.
pub fn transactions(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|it| format!("{prefix}-{it}")).collect()
}
