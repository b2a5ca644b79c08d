//! The cost of other shapes of HTTP: HTTP/2 with many streams on few connections beside h2load, and a user's flow of three steps
//! beside the same three requests without a user. In turn, so that a ratio is of two runs that follow each other.

use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::peers::{read_assay, read_h2load};
use super::{Bench, Contender, DRIVERS, SERVER_CPU, find, middle, spread};

/// Connections, and streams on each.
const CONNECTIONS: u32 = 4;
const STREAMS: u32 = 64;

/// Heads the part.
pub(super) const HEAD: &str = "## Cost of a request over HTTP/2, and of a step of a flow\n\n";

/// One contender's rounds.
#[derive(Default)]
struct Rounds {
    us_per_request: Vec<f64>,
    per_second: Vec<f64>,
    ratios: Vec<f64>,
}

impl Bench {
    /// Both tables; the first is left out, by name, where a program is missing.
    pub(super) fn shapes(&self) -> Result<String, String> {
        let mut text = String::from(
            "Closed loop, one thread on one processor, the server on the other. Assay is counted until the drain ended, with every row recorded.\n\n",
        );
        text.push_str(&self.http2()?);
        text.push_str(&self.flows()?);
        let _ = writeln!(text, "Medians of {} rounds, in turn.\n", self.size.rounds);
        Ok(text)
    }

    fn http2(&self) -> Result<String, String> {
        let (Some(nginx), Some(h2load)) = (find("nginx"), find("h2load")) else {
            eprintln!("SKIPPED HTTP/2 beside h2load: it takes nginx and h2load");
            return Ok("HTTP/2 was not measured: it takes nginx and h2load.\n\n".to_owned());
        };
        let server = Http2Server::start(&nginx, &self.folder.join("http2"))?;
        let url = format!("http://{}/", server.address);
        let seconds = self.size.seconds;
        let clients = CONNECTIONS * STREAMS;
        let of_assay = format!(
            "run {url} --http2 --clients {clients} --connections {CONNECTIONS} --duration {seconds}s --threads 1 --warmup 0s \
             --set workload.streams={STREAMS} {}",
            self.quietly()
        );
        let of_h2load = format!("-t1 -c{CONNECTIONS} -m{STREAMS} -D{seconds} {url}");
        let mut contenders = vec![Contender {
            name: "h2load",
            program: h2load,
            arguments: words(&of_h2load),
            read: read_h2load,
            driver: None,
            is_load_only: false,
        }];
        contenders.extend(DRIVERS.iter().map(|way| self.assay_as(way.load, way.driver, &of_assay)));
        let rounds = self.in_turn(&contenders, &url)?;
        Ok(table(
            &format!("nginx, {STREAMS} streams on each of {CONNECTIONS} connections"),
            "h2load",
            &contenders,
            &rounds,
        ))
    }

    fn flows(&self) -> Result<String, String> {
        let (_server, url) = self.server()?;
        let write = |name: &str, workload: &str| {
            let path = self.folder.join(name);
            let text = format!(
                "name = \"bench\"\n[system]\nkind = \"http\"\n[system.deploy]\nurl = \"{url}\"\n{workload}\n[load]\nmodel = \
                 \"closed\"\nclients = 64\nduration = \"{}s\"\nwarmup = \"0s\"\nthreads = 1\n",
                self.size.seconds
            );
            std::fs::write(&path, text).map_err(|error| format!("writing {name}: {error}"))?;
            Ok::<_, String>(format!("run {} {}", path.display(), self.quietly()))
        };
        let requests = write(
            "requests.toml",
            "[workload]\nheaders = { X-Token = \"200\" }\ntargets_text = \"GET /bytes/10\\nGET /bytes/20\\nGET /bytes/30\\n\"\n",
        )?;
        let steps = write(
            "flow.toml",
            "[[workload.step]]\npath = \"/bytes/10\"\nheaders = { X-Token = \"none\" }\ntake = { token = \"status\" }\n\
             [[workload.step]]\npath = \"/bytes/20\"\nheaders = { X-Token = \"{{token}}\" }\n\
             [[workload.step]]\npath = \"/bytes/30\"\nheaders = { X-Token = \"{{token}}\" }\n",
        )?;
        let contenders: Vec<Contender> = DRIVERS
            .iter()
            .take(1)
            .flat_map(|way| {
                [
                    self.assay_as("three requests", way.driver, &requests),
                    self.assay_as("a flow of three steps", way.driver, &steps),
                ]
            })
            .collect();
        let rounds = self.in_turn(&contenders, &url)?;
        Ok(table("64 users, HTTP/1.1", "three requests", &contenders, &rounds))
    }

    fn quietly(&self) -> String {
        let runs = self.folder.join("runs");
        format!("--json --progress none --no-calibration --runs {}", runs.display())
    }

    fn assay_as(&self, name: &'static str, driver: &'static str, arguments: &str) -> Contender {
        Contender {
            name,
            program: self.assay.clone(),
            arguments: words(arguments),
            read: |text, _| read_assay(text),
            driver: Some(driver),
            is_load_only: true,
        }
    }

    /// Rounds of all contenders; ratios are to the first.
    fn in_turn(&self, contenders: &[Contender], url: &str) -> Result<Vec<Rounds>, String> {
        let task = self.task(url, self.size.seconds, None);
        let mut rounds: Vec<Rounds> = contenders.iter().map(|_| Rounds::default()).collect();
        for _ in 0..self.size.rounds {
            let mut first = None;
            for (contender, at) in contenders.iter().zip(&mut rounds) {
                let (cost, said) = self.once(contender, &task)?;
                let requests = said.requests.filter(|requests| *requests > 0.0);
                let requests =
                    requests.ok_or_else(|| format!("{} says of no request", contender.name))?;
                let us = cost.cpu_ms * 1e3 / requests;
                at.us_per_request.push(us);
                at.per_second.push(requests / f64::from(task.seconds) / 1e3);
                at.ratios.push(us / *first.get_or_insert(us));
            }
        }
        Ok(rounds)
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn table(of: &str, first: &str, contenders: &[Contender], rounds: &[Rounds]) -> String {
    let mut text = format!(
        "| {of} | k requests/s | CPU µs/request (range) | ÷ {first}, same round (range) |\n| --- | --- | --- | --- |\n"
    );
    for (contender, at) in contenders.iter().zip(rounds) {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            contender.name,
            middle(&at.per_second, 1),
            spread(&at.us_per_request, 2),
            spread(&at.ratios, 2)
        );
    }
    text.push('\n');
    text
}

/// nginx that answers at once over HTTP/2, by prior knowledge; stopped when this is dropped.
struct Http2Server {
    child: Child,
    address: String,
}

impl Http2Server {
    fn start(nginx: &Path, folder: &PathBuf) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("starting nginx: {error}");
        std::fs::create_dir_all(folder).map_err(failed)?;
        let free = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = free.local_addr().map_err(failed)?.to_string();
        drop(free);
        let here = folder.display();
        let config = format!(
            "daemon off; master_process off; pid {here}/pid; error_log {here}/error.log;
             events {{ worker_connections 512; }}
             http {{ access_log off; client_body_temp_path {here}/body; proxy_temp_path {here}/proxy;
               fastcgi_temp_path {here}/fastcgi; uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;
               server {{ listen {address} http2; keepalive_requests 1000000000; http2_max_concurrent_streams 128;
                 location / {{ return 200 \"ok\"; }} }} }}"
        );
        let path = folder.join("nginx.conf");
        std::fs::write(&path, config).map_err(failed)?;
        let mut command = Command::new("taskset");
        command.args(["-c", SERVER_CPU]).arg(nginx).arg("-c").arg(&path).arg("-p").arg(folder);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().map_err(failed)?;
        let server = Self { child, address };
        for _ in 0..100 {
            if TcpStream::connect(&server.address).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err("nginx does not listen".to_owned())
    }
}

impl Drop for Http2Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
