//! Groups of three replicas on this machine, started for one turn and gone after it: etcd's and ours, with the same
//! certificates, each of them keeping its log on the same disk. What they cost and how often they synced is asked of the
//! kernel and of themselves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::super::measure::TICK_MS;

pub const REPLICAS: usize = 3;

/// How long a group may take to begin, and to end.
const WAIT_MS_MAX: u64 = 30_000;
const LOOK_EVERY_MS: u64 = 50;

/// What a group did, from its start to its end, by its own account.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Transactions that one replica executed; of etcd, keys that were put.
    pub executed: u64,
    /// Syncs of the log, of all replicas.
    pub syncs: u64,
}

/// Three replicas of either.
pub enum Group {
    Etcd(Etcd),
    Kv(Kv),
}

impl Group {
    /// Where clients connect, as the group's client wants it.
    pub fn address(&self) -> String {
        match self {
            Self::Etcd(group) => group.endpoints.join(","),
            Self::Kv(group) => group.leader.clone(),
        }
    }

    /// Processor time of all replicas so far, µs.
    pub fn cpu_us(&self) -> Result<f64, String> {
        let ids: Vec<u32> = match self {
            Self::Etcd(group) => group.replicas.iter().map(Child::id).collect(),
            Self::Kv(group) => children_of(group.owner.id())?,
        };
        if ids.len() != REPLICAS {
            return Err(format!("{} replicas run, not {REPLICAS}", ids.len()));
        }
        ids.iter().map(|id| cpu_us(*id)).sum()
    }

    /// Ends it, and says what it did.
    pub fn end(self) -> Result<Account, String> {
        match self {
            Self::Etcd(group) => group.account(),
            Self::Kv(group) => group.end(),
        }
    }
}

/// etcd as its documentation starts it: nothing is said of how it syncs or batches.
pub struct Etcd {
    replicas: Vec<Child>,
    endpoints: Vec<String>,
    metrics: Vec<String>,
}

impl Etcd {
    /// `tls` holds `ca.pem`, `replica0.pem` and `replica0.key`.
    pub fn start(program: &Path, folder: &Path, tls: &Path) -> Result<Self, String> {
        let held: Vec<TcpListener> = (0..3 * REPLICAS)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .collect::<Result<_, _>>()
            .map_err(|error| format!("finding free ports: {error}"))?;
        let ports: Vec<u16> = held
            .iter()
            .map(|listener| listener.local_addr().map(|address| address.port()))
            .collect::<Result<_, _>>()
            .map_err(|error| format!("finding free ports: {error}"))?;
        drop(held);
        let (peers, rest) = ports.split_at(REPLICAS);
        let (clients, metrics) = rest.split_at(REPLICAS);
        let cluster: Vec<String> = peers
            .iter()
            .enumerate()
            .map(|(number, port)| format!("e{number}=https://localhost:{port}"))
            .collect();
        let mut group = Self {
            replicas: Vec::new(),
            endpoints: clients.iter().map(|port| format!("https://localhost:{port}")).collect(),
            metrics: metrics.iter().map(|port| format!("127.0.0.1:{port}")).collect(),
        };
        for number in 0..REPLICAS {
            let (peer, client) = (peers[number], clients[number]);
            let mut words: Vec<String> = [
                format!("--name=e{number}"),
                format!("--data-dir={}", folder.join(format!("e{number}")).display()),
                format!("--listen-client-urls=https://127.0.0.1:{client}"),
                format!("--advertise-client-urls=https://localhost:{client}"),
                format!("--listen-peer-urls=https://127.0.0.1:{peer}"),
                format!("--initial-advertise-peer-urls=https://localhost:{peer}"),
                format!("--initial-cluster={}", cluster.join(",")),
                format!("--listen-metrics-urls=http://{}", group.metrics[number]),
                "--log-level=error".to_owned(),
            ]
            .into();
            for whose in ["", "peer-"] {
                words.push(format!("--{whose}client-cert-auth"));
                for (option, file) in [
                    ("trusted-ca-file", "ca.pem"),
                    ("cert-file", "replica0.pem"),
                    ("key-file", "replica0.key"),
                ] {
                    words.push(format!("--{whose}{option}={}", tls.join(file).display()));
                }
            }
            group.replicas.push(start(program, &words, folder, &format!("e{number}"))?);
        }
        wait("etcd to elect a leader", || {
            let well = |address: &String| {
                get(address, "/health").is_some_and(|it| it.contains("\"true\""))
            };
            group.metrics.iter().all(well).then_some(())
        })?;
        Ok(group)
    }

    fn account(&self) -> Result<Account, String> {
        let mut account = Account { executed: 0, syncs: 0 };
        for address in &self.metrics {
            let text = get(address, "/metrics").ok_or("etcd does not say its metrics")?;
            let number = |name: &str| -> Result<u64, String> {
                let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
                let value: Option<f64> = line.and_then(|value| value.trim().parse().ok());
                value.map(whole).ok_or_else(|| format!("etcd does not say {name}"))
            };
            account.executed = account.executed.max(number("etcd_mvcc_put_total")?);
            account.syncs += number("etcd_disk_wal_fsync_duration_seconds_count")?;
        }
        Ok(account)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for replica in &mut self.replicas {
            let _ = replica.kill();
            let _ = replica.wait();
        }
    }
}

/// Ours, as `assay serve kv --replicas 3` starts it: nothing is said of how it syncs or batches.
pub struct Kv {
    owner: Child,
    leader: String,
    said: PathBuf,
}

impl Kv {
    /// Its certificates are in `tls` in `folder`.
    pub fn start(assay: &Path, folder: &Path) -> Result<Self, String> {
        let data = folder.join("kv");
        let words = ["serve", "kv", "--replicas", "3", "--data"].map(str::to_owned);
        let words: Vec<String> = words.into_iter().chain([data.display().to_string()]).collect();
        let said = folder.join("kv.log");
        let mut group =
            Self { owner: start(assay, &words, folder, "kv")?, leader: String::new(), said };
        let output = group.owner.stdout.take().ok_or("the group has no output")?;
        let mut lines = BufReader::new(output).lines();
        for _ in 0..REPLICAS {
            let line = lines.next().and_then(Result::ok).ok_or("the group did not start")?;
            let address = line.split_whitespace().find_map(|word| word.strip_prefix("clients="));
            if line.starts_with("replica0 ") {
                // The first one leads when a group begins.
                group.leader = address.ok_or("a replica says no address")?.to_owned();
            }
        }
        Ok(group)
    }

    /// Each replica's last words are what it executed, and how often it synced its log.
    fn end(mut self) -> Result<Account, String> {
        drop(self.owner.stdin.take());
        wait("the replicas to end", || self.owner.try_wait().ok()?)?;
        let text = wait("the replicas' last words", || {
            let text = std::fs::read_to_string(&self.said).ok()?;
            (text.matches(" syncs").count() == REPLICAS).then_some(text)
        })?;
        let before = |line: &str, word: &str| -> Option<u64> {
            let words: Vec<&str> = line.split_whitespace().collect();
            let at = words.iter().position(|it| it.trim_end_matches(',') == word)?;
            words.get(at.checked_sub(1)?)?.parse().ok()
        };
        let executed = text.lines().filter_map(|line| before(line, "transactions")).max();
        let syncs = text.lines().filter_map(|line| before(line, "syncs")).sum();
        let executed = executed.ok_or_else(|| format!("the replicas said: {text}"))?;
        Ok(Account { executed, syncs })
    }
}

impl Drop for Kv {
    fn drop(&mut self) {
        // Its replicas end with their standard inputs, which are the owner's.
        let _ = self.owner.kill();
        let _ = self.owner.wait();
    }
}

/// Starts a program that ends with this one, and writes what it complains of to `NAME.log`.
fn start(program: &Path, words: &[String], folder: &Path, name: &str) -> Result<Child, String> {
    let log = std::fs::File::create(folder.join(format!("{name}.log")))
        .map_err(|error| format!("making {name}.log in {}: {error}", folder.display()))?;
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL"])
        .arg(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("starting {} by setpriv: {error}", program.display()))
}

fn wait<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> Result<T, String> {
    for _ in 0..WAIT_MS_MAX / LOOK_EVERY_MS {
        if let Some(found) = found() {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(LOOK_EVERY_MS));
    }
    Err(format!("waited {} s in vain for {what}", WAIT_MS_MAX / 1000))
}

/// The whole answer, head and body, or nothing.
fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The processes that this one started and that run.
fn children_of(parent: u32) -> Result<Vec<u32>, String> {
    let entries = std::fs::read_dir("/proc").map_err(|error| format!("reading /proc: {error}"))?;
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(ids.filter(|id| stat(*id).is_some_and(|stat| stat[1] == parent.to_string())).collect())
}

/// The fields of proc(5)'s stat behind the name, so that the state is the first.
fn stat(id: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// User and system time of a process, all its threads.
fn cpu_us(id: u32) -> Result<f64, String> {
    let fields = stat(id).ok_or_else(|| format!("process {id} has ended"))?;
    let tick = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    let ticks = tick(11).zip(tick(12)).map(|(user, system)| user + system);
    ticks.map(|ticks| ticks * TICK_MS * 1e3).ok_or_else(|| format!("the stat of {id} is short"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a counter that Prometheus's format says as a float"
)]
pub(super) fn whole(value: f64) -> u64 {
    value as u64
}
