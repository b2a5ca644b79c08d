//! How fast one node keeps what another sends it, over loopback, and what that costs.
//!
//! `durable [--tls] [--sync data|whole|none|nothing] [--bytes 4096] [--window 64] [--seconds 2] [--folder PATH]`: two
//! shells on threads of this process. One sends records, a window of them at once; the other appends each
//! (`nothing`: keeps none) and answers when it is durable. Prints one line: records and bytes a second, processor
//! time of both sides and of the whole process for each record, syncs and how long one takes. It is a measuring aid.

#![expect(clippy::unwrap_used, reason = "a measuring aid: it ends at the first mistake")]

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use clock::{Clock, CpuTime, Instant};
use process::shell::{Bounds, Identity, Peer, Shell, Until, listen_address};
use process::store::{Store, StoreOptions, Sync};
use process::{Connection, Input, Node, Outputs};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

struct Keeper {
    bytes: usize,
    keeps: bool,
    next: u64,
    peer: Option<Connection>,
    used: Duration,
}

impl Node for Keeper {
    fn step(&mut self, _now: Instant, input: Input<'_>, out: &mut Outputs) {
        match input {
            Input::Opened { connection, .. } => self.peer = Some(connection),
            Input::Bytes(connection, bytes) => {
                let whole = bytes.chunks_exact(self.bytes);
                let used = bytes.len() - whole.remainder().len();
                for record in whole {
                    self.next += 1;
                    if self.keeps {
                        out.append(0, record);
                    }
                }
                out.used(used);
                if !self.keeps && used > 0 {
                    out.send(connection).extend_from_slice(&self.next.to_le_bytes());
                }
            }
            Input::Persisted { below, .. } => {
                let peer = self.peer.expect("records come on a connection");
                out.send(peer).extend_from_slice(&below.to_le_bytes());
            }
            Input::Stop => self.used = CpuTime::of_this_thread().since(CpuTime::default()),
            _ => {}
        }
    }
}

struct Sender {
    record: Vec<u8>,
    window: u64,
    sent: u64,
    done: u64,
    ends: Instant,
    pipe: Option<std::io::PipeWriter>,
    used: Duration,
}

impl Node for Sender {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        let connection = match input {
            Input::Wake => return out.dial(0),
            Input::Dialled { connection, .. } => connection,
            Input::Bytes(connection, bytes) => {
                let (numbers, _) = bytes.as_chunks::<8>();
                if let Some(number) = numbers.last() {
                    self.done = u64::from_le_bytes(*number);
                }
                out.used(numbers.len() * 8);
                connection
            }
            Input::Stop => {
                self.used = CpuTime::of_this_thread().since(CpuTime::default());
                return;
            }
            _ => return,
        };
        if now >= self.ends {
            self.pipe = None;
            return;
        }
        while self.sent < self.done + self.window {
            out.send(connection).extend_from_slice(&self.record);
            self.sent += 1;
        }
    }
}

fn identity(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> Identity {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap().pem();
    let (key, believed) = (key.serialize_pem(), authority.pem());
    Identity::from_pem(certificate.as_bytes(), key.as_bytes(), believed.as_bytes()).unwrap()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).map(String::as_str)
    };
    let number =
        |name: &str, other: u64| value(name).map_or(other, |word| word.parse().expect("a number"));
    let bytes = usize::try_from(number("--bytes", 4096)).unwrap();
    let (window, seconds) = (number("--window", 64), number("--seconds", 2));
    let sync = match value("--sync").unwrap_or("data") {
        "data" => Some(Sync::Data),
        "whole" => Some(Sync::Whole),
        "none" => Some(Sync::None),
        "nothing" => None,
        other => panic!("`{other}` is not a way to sync"),
    };
    let folder = value("--folder").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(folder).unwrap();

    let listeners = [("records", listen_address("0").unwrap())];
    let mut keeper = Shell::bind(&listeners, Bounds::default()).unwrap();
    let mut peer = Peer::at(keeper.addresses()[0]);
    if words.iter().any(|word| word == "--tls") {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let made = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        keeper = keeper.encrypting(0, &identity(&made, "keeper.test"));
        peer = peer.encrypted("keeper.test", &identity(&made, "sender.test")).unwrap();
    }
    if let Some(sync) = sync {
        let options = StoreOptions { sync, ..StoreOptions::default() };
        let (store, _) = Store::open(folder.path(), &["records"], &[], options).unwrap();
        keeper = keeper.keeping(store);
    }
    let sender = Shell::bind(&[], Bounds::default()).unwrap().dialling(vec![peer]);
    let (clock, keeps) = (Clock::start(), sync.is_some());
    let ((ends, end), (kept, until)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let thread = std::thread::spawn(move || {
        let mut node = Keeper { bytes, keeps, next: 0, peer: None, used: Duration::ZERO };
        let until = [Until::EndOfFile(OwnedFd::from(kept))];
        (keeper.run(&mut node, clock, &until).unwrap(), node.used)
    });
    let (record, pipe) = (vec![0x5a; bytes], Some(end));
    let (began, before) = (clock.now(), CpuTime::of_this_process());
    let ends_at = began.plus(Duration::from_secs(seconds));
    let used = Duration::ZERO;
    let mut node = Sender { record, window, sent: 0, done: 0, ends: ends_at, pipe, used };
    sender.run(&mut node, clock, &[Until::EndOfFile(OwnedFd::from(ends))]).unwrap();
    let (took, all) =
        (clock.now().saturating_since(began), CpuTime::of_this_process().since(before));
    drop(until);
    let (facts, keeper_used) = thread.join().unwrap();
    let count = u32::try_from(node.done.max(1)).unwrap();
    let per = |used: Duration| used.as_secs_f64() * 1e6 / f64::from(count);
    let syncs = facts.store.syncs.max(1);
    println!(
        "{} records {:.0}/s {:.1} MiB/s cpu us/record: sender {:.2} keeper {:.2} all {:.2}; syncs {} records/sync {:.1} us/sync {:.0}",
        node.done,
        f64::from(count) / took.as_secs_f64(),
        f64::from(count) * node.record.len() as f64 / took.as_secs_f64() / f64::from(1 << 20),
        per(node.used),
        per(keeper_used),
        per(all),
        facts.store.syncs,
        facts.store.records as f64 / syncs as f64,
        facts.store.sync_ns as f64 / syncs as f64 / 1e3,
    );
}
