//! Two processes over TLS, one of which keeps what it is sent and is killed again and again: what it said was
//! durable is there each time.
//!
//! Without the test harness, because this executable is also the process that is killed: called with `keep` it is
//! nothing else. By hand: `pingpong keep FOLDER CERTIFICATES`. It never leaves a process behind.

#![expect(clippy::unwrap_used, reason = "a test; without the harness clippy cannot know")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use clock::{Clock, Instant};
use process::shell::{Bounds, Identity, Peer, Shell, Until, listen_address};
use process::store::{Store, StoreOptions};
use process::{Connection, Input, Node, Outputs};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Small segments, so that every life of the keeper goes through several.
const OPTIONS: StoreOptions =
    StoreOptions { sync: process::store::Sync::Data, segment_bytes: 64 << 10 };
/// Numbers on their way at once.
const WINDOW: u64 = 64;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "keep") {
        return keep(Path::new(&words[1]), Path::new(&words[2]));
    }
    println!("\nrunning 1 test");
    // A failed assertion ends the process with a status that cargo reports.
    what_was_acknowledged_outlives_kills();
    println!("test what_was_acknowledged_outlives_kills ... ok");
}

/// Keeps the numbers that it is sent, and says of each how many are durable.
struct Keeper {
    next: u64,
    /// The connection that waits for each number.
    asked: BTreeMap<u64, Connection>,
    acknowledgements: u64,
}

impl Node for Keeper {
    fn step(&mut self, _now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Opened { connection, .. } => {
                out.send(connection).extend_from_slice(&self.next.to_le_bytes());
            }
            Input::Bytes(connection, bytes) => {
                let (numbers, _) = bytes.as_chunks::<8>();
                for number in numbers {
                    assert_eq!(u64::from_le_bytes(*number), self.next, "sent in order");
                    let filler = [7; 100];
                    assert_eq!(out.append_parts(0, &[number, &filler]), self.next);
                    self.asked.insert(self.next, connection);
                    self.next += 1;
                }
                out.used(numbers.len() * 8);
            }
            Input::Persisted { log: 0, below } => {
                let waiting = self.asked.split_off(&below);
                let done = std::mem::replace(&mut self.asked, waiting);
                if let Some((_, connection)) = done.last_key_value() {
                    self.acknowledgements += 1;
                    out.send(*connection).extend_from_slice(&below.to_le_bytes());
                }
            }
            _ => {}
        }
    }
}

/// The process that is killed.
fn keep(folder: &Path, certificates: &Path) {
    let (store, stored) = Store::open(folder, &["numbers"], &[], OPTIONS).unwrap();
    let log = &stored.logs[0];
    for (number, bytes) in log.iter() {
        assert_eq!(bytes[..8], number.to_le_bytes(), "a record is not the one that was kept");
    }
    let counters = store.counters();
    let shell = Shell::bind(&[("numbers", listen_address("0").unwrap())], Bounds::default())
        .unwrap()
        .encrypting(0, &identity(certificates, "keeper"))
        .keeping(store);
    shell.announce(&[("next", &log.next().to_string())]).unwrap();
    let mut node = Keeper { next: log.next(), asked: BTreeMap::new(), acknowledgements: 0 };
    shell.run(&mut node, Clock::start(), &[Until::parent_pipe().unwrap()]).unwrap();
    let counts = counters.read();
    println!("{} {} {}", node.acknowledgements, counts.syncs, counts.records);
}

fn identity(folder: &Path, name: &str) -> Identity {
    let of = |what: &str| folder.join(what);
    Identity::read(&of(&format!("{name}.pem")), &of(&format!("{name}.key")), &of("authority.pem"))
        .unwrap()
}

fn make_certificates(folder: &Path) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    fs::write(folder.join("authority.pem"), authority.pem()).unwrap();
    for name in ["keeper", "sender"] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([format!("{name}.test")]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

/// Sends numbers, a window of them at once, until so many are acknowledged.
struct Sender {
    next: u64,
    acknowledged: u64,
    enough: u64,
    pipe: Option<std::io::PipeWriter>,
    hello: Option<u64>,
}

impl Node for Sender {
    fn step(&mut self, _now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Wake => out.dial(0),
            Input::Bytes(connection, bytes) => {
                let (numbers, _) = bytes.as_chunks::<8>();
                for number in numbers {
                    let number = u64::from_le_bytes(*number);
                    if self.hello.replace(number).is_none() {
                        self.next = number;
                    }
                    assert!(number >= self.acknowledged, "what was durable is not there");
                    self.acknowledged = number;
                }
                out.used(numbers.len() * 8);
                while self.hello.is_some() && self.next < self.acknowledged + WINDOW {
                    out.send(connection).extend_from_slice(&self.next.to_le_bytes());
                    self.next += 1;
                }
                if self.acknowledged >= self.enough {
                    self.pipe = None;
                }
            }
            Input::Closed(_) | Input::Unreachable { .. } => panic!("the keeper is gone: {input:?}"),
            _ => {}
        }
    }
}

struct Life {
    child: Child,
    address: SocketAddr,
    next: u64,
}

fn start(folder: &Path, certificates: &Path) -> Life {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("keep")
        .args([folder, certificates])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut ready).unwrap();
    let word = |key: &str| {
        let found = ready.split_whitespace().find_map(|word| word.strip_prefix(key));
        found.unwrap_or_else(|| panic!("{ready:?}"))
    };
    let (address, next) = (word("numbers=").parse().unwrap(), word("next=").parse().unwrap());
    child.stdout = Some(said.into_inner());
    Life { child, address, next }
}

/// Claim: over five lives of a keeper, each ended by SIGKILL in the midst of its work, every number that it
/// acknowledged is there in the next life, in order and once; and it has synced at least once for each
/// acknowledgement, and far fewer times than it was sent numbers.
fn what_was_acknowledged_outlives_kills() {
    let (folder, certificates) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_certificates(certificates.path());
    let mut acknowledged = 0;
    for life in 1..=6_u64 {
        let Life { mut child, address, next } = start(folder.path(), certificates.path());
        assert!(next >= acknowledged, "{next} of {acknowledged}");
        let sender = identity(certificates.path(), "sender");
        let peer = Peer::at(address).encrypted("keeper.test", &sender).unwrap();
        let shell = Shell::bind(&[], Bounds::default()).unwrap().dialling(vec![peer]);
        let (until, pipe) = std::io::pipe().unwrap();
        let enough = acknowledged + 700 * life;
        let pipe = Some(pipe);
        let mut node = Sender { next: 0, acknowledged, enough, pipe, hello: None };
        let until = [Until::EndOfFile(OwnedFd::from(until))];
        shell.run(&mut node, Clock::start(), &until).unwrap();
        acknowledged = node.acknowledged;
        if life < 6 {
            child.kill().unwrap();
            child.wait().unwrap();
            continue;
        }
        drop(child.stdin.take());
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success());
        let counts: Vec<u64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [acknowledgements, syncs, records] = counts[..] else { panic!("{said:?}") };
        assert!(syncs >= acknowledgements && records >= 700 * life, "{said:?}");
        assert!(syncs < records / 2, "a window of {WINDOW} shares its syncs: {said:?}");
    }
    let (_, stored) = Store::open(folder.path(), &["numbers"], &[], OPTIONS).unwrap();
    assert!(stored.logs[0].next() >= acknowledged);
    for (number, bytes) in stored.logs[0].iter() {
        assert_eq!(bytes[..8], number.to_le_bytes());
    }
}
