//! `cargo xtask figures`: the figures of a published API study, made anew: a server that behaves as that API did
//! (nginx with the configuration in experiments/http/target-sets/), the experiment beside it, and its report as a page
//! and as SVG files.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Bodies by file, bytes: about what the study's API answered.
const PAGES: [(&str, usize); 4] =
    [("small.json", 90), ("block.json", 9_000), ("full.json", 60_000), ("log.json", 40_000)];
/// How long nginx may take to listen.
const START_TRIES_MAX: u32 = 100;

/// Makes the figures in target/figures; with `toy`, a second a setting.
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let Some(nginx) = crate::suite::program("nginx") else {
        println!("SKIPPED figures: nginx is not installed (apt-get install nginx-light)");
        return Ok(());
    };
    let folder = root.join("target/figures");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| at("removing", &folder, &error))?;
    }
    let server = Server::start(&nginx, root, &folder.join("server"))?;
    let experiment = root.join("experiments/http/target-sets.toml");
    let mut run = Command::new(root.join("target/release/assay"));
    run.arg("run").arg(&experiment).arg("--runs").arg(folder.join("runs"));
    run.args(["--set", &format!("system.deploy.url=http://{}", server.address)]);
    if toy {
        run.args(["--profile", "toy", "--no-calibration", "--progress", "none"]);
    }
    let status = run.status().map_err(|error| format!("starting assay: {error}"))?;
    drop(server);
    // 97 and 99 are verdicts: the figures show what they rest on.
    if !matches!(status.code(), Some(0 | 97 | 99)) {
        return Err(format!("the run ended with {status}"));
    }
    let made = newest(&folder.join("runs"))?;
    let svg = folder.join("svg");
    let mut report = Command::new(root.join("target/release/assay"));
    report.arg("report").arg(&made).args(["--format", "svg", "-o"]).arg(&svg);
    report.stderr(Stdio::null());
    let status = report.status().map_err(|error| format!("starting assay: {error}"))?;
    let count = fs::read_dir(&svg).map_err(|error| at("reading", &svg, &error))?.count();
    let page = made.join("report.html");
    if !matches!(status.code(), Some(0 | 97 | 99)) || count == 0 || !page.is_file() {
        return Err(format!("no figures came of {}", made.display()));
    }
    println!("page      {}\nfigures   {} ({count} files)", page.display(), svg.display());
    Ok(())
}

fn newest(runs: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(runs).map_err(|error| at("reading", runs, &error))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders.pop().ok_or_else(|| format!("there is no run in {}", runs.display()))
}

fn at(doing: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{doing} {}: {error}", path.display())
}

/// nginx on a free port of loopback; ended when dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(nginx: &Path, root: &Path, prefix: &Path) -> Result<Self, String> {
        let pages = prefix.join("pages");
        fs::create_dir_all(&pages).map_err(|error| at("making", &pages, &error))?;
        for (name, length) in PAGES {
            let path = pages.join(name);
            let body = format!("{{\"data\":\"{}\"}}", "0".repeat(length.saturating_sub(11)));
            fs::write(&path, body).map_err(|error| at("writing", &path, &error))?;
        }
        let given = root.join("experiments/http/target-sets/nginx.conf");
        let text = fs::read_to_string(&given).map_err(|error| at("reading", &given, &error))?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| format!("looking for a free port: {error}"))?;
        let config = prefix.join("nginx.conf");
        let text = text.replace("127.0.0.1:8000", &address.to_string());
        fs::write(&config, text).map_err(|error| at("writing", &config, &error))?;
        let mut command = Command::new(nginx);
        command.arg("-p").arg(prefix).arg("-c").arg(&config).args(["-e", "/dev/null"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|error| format!("starting nginx: {error}"))?;
        let mut server = Self { child, address };
        for _ in 0..START_TRIES_MAX {
            if TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!(
                    "nginx ended with {status}; run it by hand: {}",
                    given.display()
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("nginx does not listen on {address}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
