//! `cargo xtask bench gateway`: the Ethereum gateway with everything on against everything off, and against nginx serving a
//! file of the same body; TLS off and on, nothing kept yet and everything kept. What a request costs, how long it takes, and
//! how many calls of the node it makes.
//!
//! Ratios are between contenders of the same round. The node is the gateway's own mock, so that it costs little.

use std::fmt::Write as _;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{machine, median};

/// The generator's processor, which the node has too, and the server's.
const GENERATOR_CPU: &str = "0";
const SERVER_CPU: &str = "1";
const CONNECTIONS: &str = "64";
/// Clock ticks of `/proc/*/stat` in a second.
const TICKS: f64 = 100.0;
/// How a page is to be read that was made on a machine with other work.
const BUSY: &str = "A load average above 0.5 says that other programs had their part of the processors: requests a CPU-second and ratios hold \
                    then, latencies are theirs as well.";
/// Blocks of the mock chain; each has four transactions, so there are five times as many paths that nothing has asked for.
const BLOCKS: u32 = 20_000;
/// Below this a request costs what its head costs, and a body next to nothing.
const BODY_BYTES_MIN: usize = 1024;
/// Blocks of the published first set of targets.
const DRAWN: u32 = 100;

/// A server and what is asked of it.
#[derive(Clone, Copy, PartialEq)]
enum Contender {
    Nginx,
    /// One block over and over, kept.
    Warm,
    /// The published first set of targets: blocks and transactions by hash and height.
    FirstSet,
    /// Each path once, on a gateway that has just started.
    Cold,
    /// The same with all switches off.
    Plain,
}

const CONTENDERS: [(Contender, &str); 5] = [
    (Contender::Nginx, "nginx, a file of the same body"),
    (Contender::Warm, "everything on, one block, kept"),
    (Contender::FirstSet, "everything on, blocks and transactions"),
    (Contender::Cold, "everything on, nothing kept yet"),
    (Contender::Plain, "everything off"),
];

/// What one run gave.
struct Figures {
    per_cpu_second: f64,
    p99_ms: f64,
    calls_per_request: Option<f64>,
}

/// Runs all contenders and writes results/bench-gateway.md (not at toy size).
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let gateway = root.join("target/release/eth-gateway");
    if !gateway.is_file() {
        return Err(format!(
            "{} is missing; run: target/release/assay doctor --install eth-gateway",
            gateway.display()
        ));
    }
    let (rounds, seconds) = if toy { (1, 1) } else { (5, 2) };
    let folder = root.join("target/bench-gateway");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("making {}: {error}", folder.display()))?;
    let mut text = format!(
        "# The Ethereum gateway beside nginx\n\nMade by `cargo xtask bench gateway`. {}\n\nOne thread of each server on a processor of its own; wrk with \
         {CONNECTIONS} connections, which asks as fast as it is answered, and the mock node on the other. {rounds} rounds of {seconds} s each, the \
         contenders of a round one after the other; medians. The ratio is to nginx of the same round and the same TLS, which serves the body of one \
         block from a file. Calls are JSON-RPC calls of the node. {BUSY}\n\n",
        machine()
    );
    for is_tls in [false, true] {
        let bench = Bench { gateway: gateway.clone(), folder: folder.clone(), seconds, is_tls };
        text.push_str(&bench.table(rounds)?);
    }
    print!("{text}");
    if !toy {
        let path = root.join("results/bench-gateway.md");
        std::fs::write(&path, text)
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
    }
    std::fs::remove_dir_all(&folder)
        .map_err(|error| format!("removing {}: {error}", folder.display()))
}

struct Bench {
    gateway: PathBuf,
    folder: PathBuf,
    seconds: u32,
    is_tls: bool,
}

impl Bench {
    fn table(&self, rounds: usize) -> Result<String, String> {
        self.certificate()?;
        let mut columns: Vec<Vec<Figures>> = CONTENDERS.map(|_| Vec::new()).into();
        for _ in 0..rounds {
            for (column, (contender, _)) in columns.iter_mut().zip(CONTENDERS) {
                column.push(self.once(contender)?);
            }
        }
        let mut text = format!("## TLS {}\n\n", if self.is_tls { "on" } else { "off" });
        text.push_str("| server | requests a CPU-second | of nginx's | p99 ms | calls a request |\n| --- | --- | --- | --- | --- |\n");
        let (nginx, of) = (&columns[0], |values: Vec<f64>| median(&values).unwrap_or_default());
        for (column, (_, name)) in columns.iter().zip(CONTENDERS) {
            let ratios = column
                .iter()
                .zip(nginx)
                .map(|(it, nginx)| it.per_cpu_second / nginx.per_cpu_second);
            let calls: Vec<f64> = column.iter().filter_map(|it| it.calls_per_request).collect();
            let _ = writeln!(
                text,
                "| {name} | {:.0} | {:.2} | {:.2} | {} |",
                of(column.iter().map(|it| it.per_cpu_second).collect()),
                of(ratios.collect()),
                of(column.iter().map(|it| it.p99_ms).collect()),
                median(&calls).map_or_else(|| "–".to_owned(), |calls| format!("{calls:.4}")),
            );
        }
        text.push('\n');
        Ok(text)
    }

    fn once(&self, contender: Contender) -> Result<Figures, String> {
        let blocks = BLOCKS.to_string();
        let node = self.start(
            GENERATOR_CPU,
            &["mock", "--listen", "127.0.0.1:0", "--blocks", &blocks].map(str::to_owned),
        )?;
        let mut words = vec![
            "--listen".to_owned(),
            "127.0.0.1:0".to_owned(),
            "--threads".to_owned(),
            "1".to_owned(),
        ];
        words.extend(["--upstream".to_owned(), format!("http://{}/", node.address)]);
        if contender == Contender::Plain {
            words.push("--plain".to_owned());
        }
        if self.is_tls {
            for (name, file) in [("--tls-certificate", "certificate.pem"), ("--tls-key", "key.pem")]
            {
                words.extend([name.to_owned(), self.folder.join(file).display().to_string()]);
            }
        }
        let gateway = self.start(SERVER_CPU, &words)?;
        let scheme = if self.is_tls { "https" } else { "http" };
        let base = format!("{scheme}://{}", gateway.address);
        let one = get(&format!("{base}/block/7"))?;
        if one.len() < BODY_BYTES_MIN {
            return Err(format!("a block of the mock node has only {} bytes", one.len()));
        }
        if contender == Contender::Nginx {
            drop(gateway);
            return self.nginx(&one);
        }
        let targets: Vec<String> = match contender {
            Contender::Warm => vec!["/block/7".to_owned()],
            Contender::FirstSet => first_set(&base)?,
            _ => {
                let block = |height: u32| {
                    (0..4)
                        .map(move |index| format!("/block/{height}/transaction/{index}"))
                        .chain([format!("/block/{height}")])
                };
                (0..BLOCKS - 100).flat_map(block).collect()
            }
        };
        // What is kept was asked for before; what is not was never asked for.
        if contender == Contender::FirstSet {
            self.wrk(&base, &targets, gateway.child.id(), 1)?;
        }
        let before = calls(&base)?;
        let (requests, mut figures) =
            self.wrk(&base, &targets, gateway.child.id(), self.seconds)?;
        figures.calls_per_request = Some((calls(&base)? - before) / requests.max(1.0));
        Ok(figures)
    }

    /// Starts the gateway's program on a processor and waits until it serves; what it logs goes into a file.
    fn start(&self, cpu: &str, words: &[String]) -> Result<Running, String> {
        let log = self.folder.join(format!("log-{cpu}"));
        let file = std::fs::File::create(&log);
        let file = file.map_err(|error| format!("making {}: {error}", log.display()))?;
        let mut command = Command::new("taskset");
        command.args(["-c", cpu]).arg(&self.gateway).args(words).stderr(file);
        Running::start(&mut command).map_err(|why| {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            format!("{why}: {}", said.trim())
        })
    }

    fn nginx(&self, body: &str) -> Result<Figures, String> {
        let folder = self.folder.display();
        let port = free_port()?;
        std::fs::write(self.folder.join("block"), body)
            .map_err(|error| format!("writing the body: {error}"))?;
        let tls = format!(
            "ssl_certificate {folder}/certificate.pem; ssl_certificate_key {folder}/key.pem;"
        );
        let (ssl, tls) = if self.is_tls { (" ssl", tls) } else { ("", String::new()) };
        let config = format!(
            "daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; open_file_cache max=16;\n\
             client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
             server {{ listen 127.0.0.1:{port}{ssl}; {tls} root {folder}; default_type application/json; }} }}\n"
        );
        let path = self.folder.join("nginx.conf");
        std::fs::write(&path, config)
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
        let program =
            crate::suite::program("nginx").ok_or("nginx is missing; run: apt-get install nginx")?;
        let child = Command::new("taskset")
            .args(["-c", SERVER_CPU])
            .arg(program)
            .arg("-c")
            .arg(&path)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.map_err(|error| format!("starting nginx: {error}"))?;
        let running = Running { child, address: format!("127.0.0.1:{port}") };
        let scheme = if self.is_tls { "https" } else { "http" };
        let base = format!("{scheme}://{}", running.address);
        let came = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            get(&format!("{base}/block")).is_ok_and(|came| came == body)
        });
        if !came {
            return Err("nginx does not serve the body".to_owned());
        }
        Ok(self.wrk(&base, &["/block".to_owned()], running.child.id(), self.seconds)?.1)
    }

    /// Loads the server with these paths, each in turn; requests, and what they cost the process.
    fn wrk(
        &self,
        base: &str,
        targets: &[String],
        pid: u32,
        seconds: u32,
    ) -> Result<(f64, Figures), String> {
        let script = self.folder.join("targets.lua");
        let quoted: Vec<String> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        let lua = format!(
            "local paths = {{{}}}\nlocal at = 0\nlocal made = {{}}\nfunction init() for i, path in ipairs(paths) do made[i] = wrk.format(nil, path) end end\n\
             function request() at = at % #made + 1 return made[at] end\n",
            quoted.join(",")
        );
        std::fs::write(&script, lua)
            .map_err(|error| format!("writing {}: {error}", script.display()))?;
        let before = ticks(pid)?;
        let seconds = format!("{seconds}s");
        let output = Command::new("taskset")
            .args([
                "-c",
                GENERATOR_CPU,
                "wrk",
                "-t1",
                "-c",
                CONNECTIONS,
                "-d",
                &seconds,
                "--latency",
                "-s",
            ])
            .arg(&script)
            .arg(base)
            .output();
        let output =
            output.map_err(|error| format!("starting wrk: {error}; run: apt-get install wrk"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let cpu_s = (ticks(pid)? - before) / TICKS;
        if said.contains("Non-2xx") || said.contains("Socket errors") {
            return Err(format!("not all requests were answered: {said}"));
        }
        let line = |with: &str| said.lines().map(str::trim).find(|line| line.contains(with));
        let requests =
            line("requests in").and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
        // Shares of other things end in these characters, too.
        let p99 = said.lines().find_map(|line| line.trim().strip_prefix("99%"));
        let p99 = p99.and_then(|rest| milliseconds(rest.trim()));
        let (Some(requests), Some(p99_ms)) = (requests, p99) else {
            return Err(format!("wrk said: {said}"));
        };
        let figures = Figures {
            per_cpu_second: requests / cpu_s.max(1.0 / TICKS),
            p99_ms,
            calls_per_request: None,
        };
        Ok((requests, figures))
    }

    /// A certificate for loopback; one for both servers.
    fn certificate(&self) -> Result<(), String> {
        let status = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "certificate.pem"])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("making a certificate: openssl ended with {status}")),
            Err(error) => Err(format!("starting openssl: {error}; run: apt-get install openssl")),
        }
    }
}

/// A server that ends with its value.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    /// Starts a program that says `ready http=ADDRESS` or `ready https=ADDRESS`.
    fn start(command: &mut Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("starting the gateway: {error}"))?;
        let stdout = child.stdout.take().ok_or("the gateway has no output")?;
        let mut running = Self { child, address: String::new() };
        let mut line = String::new();
        let read = std::io::BufReader::new(stdout).read_line(&mut line);
        read.map_err(|error| format!("reading what the gateway says: {error}"))?;
        let address = line.trim().strip_prefix("ready http").and_then(|rest| rest.split_once('='));
        let (_, address) = address.ok_or_else(|| format!("the gateway said `{}`", line.trim()))?;
        address.clone_into(&mut running.address);
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Paths of blocks and transactions by hash and height, as the published generator draws them.
fn first_set(base: &str) -> Result<Vec<String>, String> {
    let mut targets = vec!["/block/last/height".to_owned()];
    for drawn in 0..DRAWN {
        let height = drawn * (BLOCKS / DRAWN / 2);
        let block: Value = serde_json::from_str(&get(&format!("{base}/block/{height}"))?)
            .map_err(|error| format!("reading block {height}: {error}"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        targets.push(format!("/block/{}", text(&block["hash"])));
        let all = block["transactions"].as_array().into_iter().flatten();
        targets.extend(all.map(|hash| format!("/transaction/{}", text(hash))));
        targets.push(format!("/block/{height}"));
    }
    Ok(targets)
}

/// Calls of the node so far, as the gateway counts them.
fn calls(base: &str) -> Result<f64, String> {
    let metrics = get(&format!("{base}/metrics"))?;
    let counted = metrics.lines().filter(|line| line.starts_with("eth_gateway_node_calls_total{"));
    Ok(counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}

fn get(url: &str) -> Result<String, String> {
    let output = Command::new("curl").args(["-sSfk", "--max-time", "20", url]).output();
    let output =
        output.map_err(|error| format!("starting curl: {error}; run: apt-get install curl"))?;
    if !output.status.success() {
        return Err(format!("getting {url}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn free_port() -> Result<u16, String> {
    let listener =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("finding a port: {error}"))
}

/// User and system ticks of a process.
fn ticks(pid: u32) -> Result<f64, String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .map_err(|error| format!("reading what {pid} used: {error}"))?;
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let tick = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    tick(11)
        .zip(tick(12))
        .map(|(user, system)| user + system)
        .ok_or_else(|| format!("/proc/{pid}/stat is short"))
}

fn milliseconds(text: &str) -> Option<f64> {
    for (unit, factor) in [("us", 1e-3), ("ms", 1.0), ("s", 1e3)] {
        if let Some(number) = text.strip_suffix(unit) {
            return number.parse::<f64>().ok().map(|number| number * factor);
        }
    }
    None
}
