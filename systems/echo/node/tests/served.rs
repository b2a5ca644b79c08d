//! The node as a process: started, spoken to over loopback, and ended in each way that it can end.
//!
//! Without the test harness, because this executable is also the node: called with `serve` it is nothing else.
//! By hand: `served serve --http 8080`. It never leaves a process behind.

#![expect(clippy::unwrap_used, reason = "a test; without the harness clippy cannot know")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use echo_node::ledger::records;
use echo_node::protocol::{Code, Reply, read_reply, write_submit};
use wire::frames::next_frame;

/// Longer than any answer takes; reached only when a test fails.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "serve") {
        return echo_node::serve(&words[1..]);
    }
    let tests: [(&str, fn()); 6] = [
        ("a_request_is_answered", a_request_is_answered),
        ("a_commit_is_stored", a_commit_is_stored),
        ("the_end_of_the_pipe_ends_it", the_end_of_the_pipe_ends_it),
        ("a_signal_ends_it", a_signal_ends_it),
        ("it_outlives_its_input_unless_told", it_outlives_its_input_unless_told),
        ("mistakes_are_said", mistakes_are_said),
    ];
    println!("\nrunning {} tests", tests.len());
    for (name, test) in tests {
        // A failed assertion ends the process with a status that cargo reports.
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

/// A running node; killed if a test fails.
struct Node {
    child: Child,
    stdin: Option<ChildStdin>,
    ready: String,
}

impl Node {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert!(ready.starts_with("ready frames=127.0.0.1:"), "{ready:?}");
        let stdin = child.stdin.take();
        Self { child, stdin, ready }
    }

    fn connect(&self, name: &str) -> TcpStream {
        let mut words = self.ready.split_whitespace();
        let address = words.find_map(|word| word.strip_prefix(&format!("{name}="))).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .unwrap();
    }

    /// Waits for its end, which a connection to it shows without looking at a clock.
    fn ended(mut self, mut witness: TcpStream) -> (ExitStatus, String) {
        let mut rest = Vec::new();
        witness.read_to_end(&mut rest).expect("it closes its connections when it ends");
        let status = self.child.wait().unwrap();
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (status, log)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Only this child: after `wait` this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn submit(stream: &mut TcpStream, tx: u64) -> Code {
    let mut bytes = Vec::new();
    write_submit(&mut bytes, 1, tx, 0, b"payload");
    stream.write_all(&bytes).unwrap();
    let mut answer = [0; 24];
    stream.read_exact(&mut answer).unwrap();
    let frame = next_frame(&answer).unwrap().unwrap();
    let Ok(Reply::Answer(answer)) = read_reply(frame.payload) else { panic!("no answer") };
    assert_eq!(answer.tx, tx);
    answer.code
}

fn stored(ledger: &Path) -> Vec<u64> {
    let bytes = std::fs::read(ledger).unwrap();
    records(&bytes).map(|record| record.expect("intact").tx).collect()
}

/// Claim: both faces answer over real sockets, HTTP with keep-alive.
fn a_request_is_answered() {
    let node = Node::start(&["--http", "0"]);
    assert_eq!(submit(&mut node.connect("frames"), 3), Code::Committed);
    let mut http = node.connect("http");
    for path in ["/", "/again"] {
        write!(http, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = [0; 67];
        http.read_exact(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.ends_with(b"\r\n\r\nok\n"));
    }
}

/// Claim: what is acknowledged is in the file after a graceful end, and nothing else is; a file that is there
/// already is not written to.
fn a_commit_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let argument = format!("--ledger={}", ledger.display());
    let node = Node::start(&[&argument, "--service", "1ms"]);
    let mut stream = node.connect("frames");
    (0..20).for_each(|tx| assert_eq!(submit(&mut stream, tx), Code::Committed));
    node.signal(rustix::process::Signal::TERM);
    let (status, _) = node.ended(stream);
    assert!(status.success());
    assert_eq!(stored(&ledger), (0..20).collect::<Vec<u64>>());
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["serve", &argument])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("making the ledger"), "{said}");
}

/// Claim: when the other end of its standard input is closed, however that comes about, it ends.
fn the_end_of_the_pipe_ends_it() {
    let mut node = Node::start(&["--parent-pipe"]);
    let mut stream = node.connect("frames");
    assert_eq!(submit(&mut stream, 1), Code::Committed);
    node.stdin = None;
    let (status, log) = node.ended(stream);
    assert!(status.success() && log.contains("ended by the end of the parent's pipe"), "{log}");
}

/// Claim: SIGTERM and SIGINT end it with success.
fn a_signal_ends_it() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let node = Node::start(&["--parent-pipe"]);
        let mut stream = node.connect("frames");
        assert_eq!(submit(&mut stream, 1), Code::Committed);
        node.signal(signal);
        let (status, log) = node.ended(stream);
        assert!(status.success() && log.contains("ended by a signal"), "{log}");
    }
}

/// Claim: without `--parent-pipe` the end of its standard input means nothing.
fn it_outlives_its_input_unless_told() {
    let mut node = Node::start(&[]);
    node.stdin = None;
    let mut stream = node.connect("frames");
    (0..100).for_each(|tx| assert_eq!(submit(&mut stream, tx), Code::Committed));
}

/// Claim: a mistake on the command line is said on standard error with exit code 2, and help is not one.
fn mistakes_are_said() {
    let run = |arguments: &[&str]| {
        Command::new(std::env::current_exe().unwrap())
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let wrong = run(&["--servers", "0"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&wrong.stderr),
        "assay serve echo: --servers: `0` is below 1\n"
    );
    let help = run(&["--help"]);
    assert!(help.status.success());
    assert!(String::from_utf8_lossy(&help.stdout).contains("--lose N"));
    let no_pipe = run(&["--parent-pipe"]);
    let said = String::from_utf8_lossy(&no_pipe.stderr);
    assert!(!no_pipe.status.success() && said.contains("watching standard input"), "{said}");
}
