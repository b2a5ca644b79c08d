//! The servers of the comparison, each started for it alone and ended with it, and how their own load tools are asked.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Amount, CONNECTIONS, Outcome, VALUE_BYTES};
use crate::bench::workbench::{Workbench, to_f64};

/// A server that runs, and its own tool.
pub(super) trait Server {
    /// The word in `system.kind`.
    fn kind(&self) -> &'static str;
    /// The lines of `[system.deploy]` by which Assay attaches to it.
    fn attach(&self) -> String;
    /// Connections of either side.
    fn connections(&self) -> u32 {
        CONNECTIONS
    }
    /// How the tool spaces what it sends; `None`: it has no rate and keeps all connections busy.
    fn arrival(&self) -> Option<&'static str> {
        Some("constant")
    }
    /// One turn of the tool.
    fn theirs(&self, at: &Workbench, amount: Amount) -> Result<Outcome, String>;
}

/// How long a server may take until it serves, in tenths of a second.
const TENTHS_MAX: u32 = 600;

/// A process that ends with its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that `assay doctor` has installed, or one in PATH.
fn program(name: &str) -> Result<PathBuf, String> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = folder("ASSAY_CACHE").or_else(|| folder("HOME").map(|it| it.join(".cache/assay")));
    let versions = cache.and_then(|cache| std::fs::read_dir(cache.join(name)).ok());
    let mut found = versions.into_iter().flatten().flatten().map(|entry| entry.path());
    let found = found.find(|folder| folder.join("verified").is_file());
    let found = found.map(|folder| folder.join(name));
    let found = found.or_else(|| crate::suite::prepare::program(name));
    found.ok_or_else(|| format!("{name} is not installed; run: assay doctor --install {name}"))
}

/// Timers of this thread, and of what it starts, are so many nanoseconds late at most; 0 is the default.
fn exact_to(slack_ns: &str) -> Result<(), String> {
    std::fs::write("/proc/self/timerslack_ns", slack_ns)
        .map_err(|error| format!("making timers exact: {error}"))
}

fn free_address() -> Result<SocketAddr, String> {
    let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = held.and_then(|listener| listener.local_addr());
    address.map_err(|error| format!("finding a free port: {error}"))
}

/// Starts a server and waits until it listens.
fn started(
    program: &Path,
    words: &[String],
    folder: &Path,
    address: SocketAddr,
) -> Result<Ended, String> {
    let log = folder.join("server.log");
    let file = std::fs::File::create(&log).map_err(|error| format!("making a log: {error}"))?;
    let other = file.try_clone().map_err(|error| format!("making a log: {error}"))?;
    let child = Command::new(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(other)
        .spawn()
        .map_err(|error| format!("starting {}: {error}", program.display()))?;
    let server = Ended(child);
    for _ in 0..TENTHS_MAX {
        if TcpStream::connect(address).is_ok() {
            return Ok(server);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    Err(format!("{} does not listen on {address}: {said}", program.display()))
}

/// Runs a program that has to succeed.
fn done(program: &Path, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).current_dir("/").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("starting {}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} ended with {}: {said}", program.display(), output.status))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("writing {}: {error}", path.display()))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The number after some words in what a tool printed.
fn number(said: &str, before: &str) -> Option<f64> {
    let (_, rest) = said.split_once(before)?;
    let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The processor time of an operation, where a tool did so many.
fn outcome(
    per_second: Option<f64>,
    count: f64,
    cpu_us: f64,
    said: &str,
) -> Result<Outcome, String> {
    let per_second = per_second.filter(|rate| *rate > 0.0);
    let per_second = per_second.ok_or_else(|| format!("the tool said: {said}"))?;
    Ok(Outcome { per_second, cpu_us: cpu_us / count.max(1.0) })
}

/// PostgreSQL as it is unless told otherwise: a commit is synced before it is acknowledged.
pub(super) struct Postgres {
    server: Ended,
    address: SocketAddr,
    script: PathBuf,
}

impl Postgres {
    pub(super) fn find() -> Result<(), String> {
        ["postgres", "pgbench", "psql", "runuser"]
            .map(program)
            .into_iter()
            .try_for_each(|it| it.map(drop))
    }

    /// As the user `postgres`: the server refuses to be root's.
    pub(super) fn start(folder: &Path) -> Result<Box<dyn Server>, String> {
        let (address, runuser) = (free_address()?, program("runuser")?);
        let server = program("postgres")?;
        let server = server.canonicalize().unwrap_or(server);
        let initdb = server.with_file_name("initdb").display().to_string();
        // In a place that this user may enter.
        let data = std::env::temp_dir().join(format!("assay-beside-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&data);
        let data = data.display().to_string();
        let made = [
            "-u",
            "postgres",
            "--",
            &initdb,
            "-D",
            &data,
            "-U",
            "assay",
            "--auth=trust",
            "--locale=C",
        ];
        done(&runuser, &made)?;
        let settings = format!(
            "-u postgres -- {} -D {data} -p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories=",
            server.display(),
            address.port()
        );
        let up = started(&runuser, &words(&settings), folder, address)?;
        let port = address.port().to_string();
        let sql = "CREATE TABLE theirs (position bigserial PRIMARY KEY, tx bigint NOT NULL, content bytea NOT NULL)";
        let psql = program("psql")?;
        let asked = ["-h", "127.0.0.1", "-p", &port, "-U", "assay", "-d", "postgres", "-c", sql];
        // It listens a little before it serves.
        let mut made = done(&psql, &asked);
        for _ in 0..TENTHS_MAX {
            if made.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            made = done(&psql, &asked);
        }
        made?;
        let script = folder.join("insert.sql");
        let content = "x".repeat(64);
        write(
            &script,
            &format!(
                "\\set tx random(1, 1000000000)\nINSERT INTO theirs (tx, content) VALUES (:tx, '{content}');\n"
            ),
        )?;
        Ok(Box::new(Self { server: up, address, script }))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // `runuser` passes the signal on that ends it, but not one that cannot be caught.
        let data = std::env::temp_dir().join(format!("assay-beside-{}", std::process::id()));
        let first = std::fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        if let Some(id) = first.lines().next() {
            let _ = Command::new("kill").args(["-QUIT", id]).status();
        }
        let _ = self.server.0.wait();
        let _ = std::fs::remove_dir_all(&data);
    }
}

impl Server for Postgres {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn attach(&self) -> String {
        format!("attach = \"{}\"\nlogin = \"assay\"\ndatabase = \"postgres\"", self.address)
    }

    fn arrival(&self) -> Option<&'static str> {
        Some("poisson")
    }

    fn theirs(&self, at: &Workbench, amount: Amount) -> Result<Outcome, String> {
        let Amount { seconds, rate } = amount;
        let asked = format!(
            "-n -M prepared -h 127.0.0.1 -p {} -U assay -c {CONNECTIONS} -j 1 -T {seconds} -R {rate} -f {} postgres",
            self.address.port(),
            self.script.display()
        );
        exact_to("1")?;
        let timed = at.timed(&program("pgbench")?, &words(&asked));
        exact_to("0")?;
        let (said, cpu_us) = timed?;
        let count = number(&said, "transactions actually processed: ").unwrap_or_default();
        outcome(number(&said, "tps = "), count, cpu_us, &said)
    }
}

/// Redis with an append-only file that is synced before it answers.
pub(super) struct Redis {
    _server: Ended,
    address: SocketAddr,
}

impl Redis {
    pub(super) fn find() -> Result<(), String> {
        ["redis-server", "redis-benchmark"].map(program).into_iter().try_for_each(|it| it.map(drop))
    }

    pub(super) fn start(folder: &Path) -> Result<Box<dyn Server>, String> {
        let address = free_address()?;
        let mut settings = words(&format!(
            "--port {} --bind 127.0.0.1 --appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0",
            address.port()
        ));
        settings.extend(["--save".to_owned(), String::new()]);
        let server = started(&program("redis-server")?, &settings, folder, address)?;
        Ok(Box::new(Self { _server: server, address }))
    }
}

impl Server for Redis {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn attach(&self) -> String {
        format!("attach = \"{}\"\nin_flight_max = 1", self.address)
    }

    fn arrival(&self) -> Option<&'static str> {
        None
    }

    fn theirs(&self, at: &Workbench, amount: Amount) -> Result<Outcome, String> {
        // It takes a number of requests: about as many as a second of this machine has, by the seconds.
        let count = 30_000 * amount.seconds;
        let asked = format!(
            "-h 127.0.0.1 -p {} -c {CONNECTIONS} -n {count} -t set -r 100000000 -d {VALUE_BYTES} --csv",
            self.address.port()
        );
        let (said, cpu_us) = at.timed(&program("redis-benchmark")?, &words(&asked))?;
        outcome(number(&said, "\"SET\","), f64::from(count), cpu_us, &said)
    }
}

/// Kafka, one broker, that syncs each batch before it acknowledges it.
pub(super) struct Kafka {
    _server: Ended,
    address: SocketAddr,
    program: PathBuf,
    log: PathBuf,
}

impl Kafka {
    pub(super) fn find() -> Result<(), String> {
        program("kafka").map(drop)
    }

    pub(super) fn start(folder: &Path) -> Result<Box<dyn Server>, String> {
        let (address, controller) = (free_address()?, free_address()?);
        let (program, data) = (program("kafka")?, folder.join("data"));
        std::fs::create_dir_all(&data).map_err(|error| format!("making a folder: {error}"))?;
        let meta = "version=1\nnode.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n";
        write(&data.join("meta.properties"), meta)?;
        let settings = folder.join("server.properties");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@{controller}\n\
             listeners=PLAINTEXT://{address},CONTROLLER://{controller}\nadvertised.listeners=PLAINTEXT://{address}\n\
             controller.listener.names=CONTROLLER\nlog.dirs={}\nlog.flush.interval.messages=1\n",
            data.display()
        );
        write(&settings, &text)?;
        let asked = format!(
            "-Xmx256m -XX:-UsePerfData -Dorg.slf4j.simpleLogger.defaultLogLevel=warn kafka.Kafka {}",
            settings.display()
        );
        let server = started(&program, &words(&asked), folder, address)?;
        Ok(Box::new(Self { _server: server, address, program, log: folder.join("server.log") }))
    }
}

impl Server for Kafka {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    fn attach(&self) -> String {
        format!("attach = [\"{}\"]", self.address)
    }

    fn theirs(&self, at: &Workbench, amount: Amount) -> Result<Outcome, String> {
        let Amount { seconds, rate } = amount;
        let count = rate * seconds;
        let asked = format!(
            "-Xmx128m -XX:-UsePerfData -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
             org.apache.kafka.tools.ProducerPerformance --topic theirs --num-records {count} --record-size {VALUE_BYTES} \
             --throughput {rate} --bootstrap-server {} --command-property acks=all linger.ms=0",
            self.address
        );
        let (said, cpu_us) = at.timed(&self.program, &words(&asked))?;
        let last = said.lines().rfind(|line| line.contains("99.9th")).unwrap_or_default();
        let said = format!("{said}{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        outcome(number(last, "records sent, "), to_f64(count.into()), cpu_us, &said)
    }
}

/// NATS, one server, that syncs each message before it acknowledges it.
pub(super) struct Nats {
    _server: Ended,
    address: SocketAddr,
}

impl Nats {
    pub(super) fn find() -> Result<(), String> {
        ["nats-server", "nats"].map(program).into_iter().try_for_each(|it| it.map(drop))
    }

    pub(super) fn start(folder: &Path) -> Result<Box<dyn Server>, String> {
        let (address, configuration) = (free_address()?, folder.join("server.conf"));
        let data = folder.join("data").display().to_string();
        let text = format!(
            "listen: \"{address}\"\njetstream {{ store_dir: \"{data}\"\n sync_interval: always }}\n"
        );
        write(&configuration, &text)?;
        let asked = ["--config".to_owned(), configuration.display().to_string()];
        let server = started(&program("nats-server")?, &asked, folder, address)?;
        Ok(Box::new(Self { _server: server, address }))
    }
}

impl Server for Nats {
    fn kind(&self) -> &'static str {
        "nats"
    }

    fn attach(&self) -> String {
        format!("attach = [\"{}\"]", self.address)
    }

    fn theirs(&self, at: &Workbench, amount: Amount) -> Result<Outcome, String> {
        let Amount { seconds, rate } = amount;
        let asked = format!(
            "bench js pub sync theirs -s nats://{} --create --clients {CONNECTIONS} --size {VALUE_BYTES} \
             --throughput {rate} --duration {seconds}s --no-progress",
            self.address
        );
        let (said, cpu_us) = at.timed(&program("nats")?, &words(&asked))?;
        let count = to_f64((rate * seconds).into());
        outcome(number(&said, "aggregated stats: "), count, cpu_us, &said)
    }
}

/// etcd, one member, that syncs its log before it answers.
pub(super) struct Etcd {
    _server: Ended,
    address: SocketAddr,
    tool: PathBuf,
}

impl Etcd {
    pub(super) fn find() -> Result<(), String> {
        program("etcd").and_then(|_| Self::tool()).map(drop)
    }

    /// The program of `etcd-benchmark` has another name.
    fn tool() -> Result<PathBuf, String> {
        let tool = crate::bench::find_in("etcd-benchmark", "benchmark");
        tool.ok_or_else(|| {
            "etcd-benchmark is not installed; run: assay doctor --install etcd-benchmark".to_owned()
        })
    }

    pub(super) fn start(folder: &Path) -> Result<Box<dyn Server>, String> {
        let (address, members) = (free_address()?, free_address()?);
        let asked = format!(
            "--data-dir={} --listen-client-urls=http://{address} --advertise-client-urls=http://{address} \
             --listen-peer-urls=http://{members} --initial-advertise-peer-urls=http://{members} \
             --initial-cluster=default=http://{members} --log-level=warn",
            folder.join("data").display()
        );
        let server = started(&program("etcd")?, &words(&asked), folder, address)?;
        Ok(Box::new(Self { _server: server, address, tool: Self::tool()? }))
    }
}

impl Server for Etcd {
    fn kind(&self) -> &'static str {
        "etcd"
    }

    fn attach(&self) -> String {
        format!("attach = [\"{}\"]\nin_flight_max = {CONNECTIONS}", self.address)
    }

    /// A client of etcd has one, with a stream for each operation.
    fn connections(&self) -> u32 {
        1
    }

    fn theirs(&self, at: &Workbench, amount: Amount) -> Result<Outcome, String> {
        let Amount { seconds, rate } = amount;
        let count = rate * seconds;
        // Keys are as long as Assay's.
        let asked = format!(
            "put --endpoints={} --conns={} --clients={CONNECTIONS} --rate={rate} --total={count} --key-size=39 \
             --key-space-size=1000000 --val-size={VALUE_BYTES}",
            self.address,
            self.connections()
        );
        let (said, cpu_us) = at.timed(&self.tool, &words(&asked))?;
        let per_second = number(&said, "Requests/sec:");
        let per_second = per_second.filter(|_| !said.contains("Error distribution"));
        outcome(per_second, to_f64(count.into()), cpu_us, &said)
    }
}
