//! Atomizers, an archiver and a watchtower as processes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use atomizer_node::protocol::request::write_standing_request;

/// A process.
pub struct Node {
    pub name: String,
    words: Vec<String>,
    child: Child,
    ready: String,
    pub cpu_ms_before: u64,
}

impl Node {
    fn start(name: &str, words: &[String]) -> Self {
        let (child, ready) = start_process(name, words);
        let (name, words) = (name.to_owned(), words.to_vec());
        Self { name, words, child, ready, cpu_ms_before: 0 }
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        let _ = self.child.wait();
    }

    /// Starts it again, where it was.
    pub fn start_again(&mut self) {
        for key in ["clients", "blocks", "errors"] {
            let option = if key == "clients" { "listen" } else { key };
            let wants = format!("--{option}=");
            if self.ready.contains(&format!(" {key}="))
                && !self.words.iter().any(|it| it.starts_with(&wants))
            {
                let word = format!("{wants}{}", self.address(key));
                self.words.push(word);
            }
        }
        (self.child, self.ready) = start_process(&self.name, &self.words);
    }

    /// Where it listens.
    pub fn address(&self, key: &str) -> SocketAddr {
        let wanted = format!("{key}=");
        let word = self.ready.split_whitespace().find_map(|it| it.strip_prefix(&wanted));
        word.and_then(|it| it.parse().ok()).expect("an address")
    }

    /// Milliseconds of processor time, of all its threads.
    pub fn cpu_ms(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).expect("it runs");
        let words: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        let ticks = |at: usize| words[at].parse::<u64>().unwrap_or(0);
        (ticks(11) + ticks(12)) * 10
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Who leads, as it says: itself, and whom it names.
    fn standing(&self) -> Option<(u8, u8)> {
        let mut stream = TcpStream::connect(self.address("clients")).ok()?;
        let (mut bytes, mut answer) = (Vec::new(), [0; 18]);
        write_standing_request(&mut bytes);
        stream.write_all(&bytes).ok()?;
        stream.read_exact(&mut answer).ok()?;
        Some((answer[8], answer[9]))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn start_process(name: &str, words: &[String]) -> (Child, String) {
    let serve = std::env::current_exe().expect("this program").with_file_name("serve");
    let mut child = Command::new(serve)
        .args(words)
        .arg("--parent-pipe")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("build the example `serve` first");
    let mut ready = String::new();
    let out = child.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut ready).expect("a line");
    assert!(ready.starts_with("ready"), "{name}: {ready}");
    (child, ready)
}

/// The one that leads.
pub fn leader(nodes: &[Node]) -> usize {
    for _ in 0..2000 {
        let leads = |node: &Node| node.standing().is_some_and(|(own, leader)| own == leader);
        if let Some(index) = nodes.iter().position(leads) {
            return index;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("nobody leads after 10 s")
}

/// Free ports of this host.
fn ports(count: usize) -> Vec<u16> {
    let bind = |_| TcpListener::bind("127.0.0.1:0").expect("a port");
    let held: Vec<_> = (0..count).map(bind).collect();
    held.iter().map(|it| it.local_addr().expect("bound").port()).collect()
}

/// Starts so many atomizers with more options, and the archiver and the watchtower beside them.
pub fn start(folder: &Path, count: usize, more: &[String]) -> (Vec<Node>, Vec<Node>) {
    let text = |path: PathBuf| path.display().to_string();
    let ports = ports(count);
    let atomizers: Vec<Node> = (0..count)
        .map(|index| {
            let mut words = vec!["node".to_owned(), format!("--replica={index}")];
            if !more.iter().any(|it| it == "--log=memory") {
                words.push(format!("--data={}", text(folder.join(format!("atomizer{index}")))));
            }
            words.push(format!("--peers={}", ports[index]));
            let others = (0..count).filter(|it| *it != index);
            words.extend(others.map(|it| format!("--peer={it}={}", ports[it])));
            words.extend_from_slice(more);
            Node::start(&format!("atomizer {index}"), &words)
        })
        .collect();
    let mut archiver = vec!["archiver".to_owned(), format!("--data={}", text(archive(folder)))];
    let mut watchtower = vec!["watchtower".to_owned()];
    for node in &atomizers {
        archiver.push(format!("--atomizer={}", node.address("blocks")));
        watchtower.push(format!("--atomizer={}", node.address("blocks")));
        watchtower.push(format!("--errors={}", node.address("errors")));
    }
    let others = vec![Node::start("archiver", &archiver), Node::start("watchtower", &watchtower)];
    (atomizers, others)
}

/// Where the archiver's blocks are.
pub fn archive(folder: &Path) -> PathBuf {
    folder.join("archive")
}
