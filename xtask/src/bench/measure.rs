//! One program run once: what it printed, and what the kernel says it cost.

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Clock ticks of `/proc/*/stat`, fixed at 100 a second by the kernel's interface to user space.
pub const TICK_MS: f64 = 10.0;

/// What one run of a program cost.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Its standard output.
    pub stdout: String,
    /// User and system time, milliseconds, of it and its children that it waited for.
    pub cpu_ms: f64,
    /// Peak resident memory, bytes.
    pub rss_bytes: u64,
    /// Whether it ended well.
    pub succeeded: bool,
}

/// Runs `program` on processor `cpu` to its end, or kills it after `seconds_max`; `env` is one more variable for it.
pub fn run(
    program: &Path,
    arguments: &[String],
    cpu: &str,
    folder: &Path,
    seconds_max: u64,
    env: Option<(&str, &str)>,
) -> Result<Cost, String> {
    let before = children_ticks()?;
    let mut child = Command::new("taskset")
        .args(["-c", cpu])
        .arg(program)
        .args(arguments)
        .current_dir(folder)
        .env("TOKIO_WORKER_THREADS", "1")
        .env("GOMAXPROCS", "1")
        .envs(env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("starting {}: {error}", program.display()))?;
    let mut stdout = child.stdout.take().expect("asked for a pipe");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        // A tool that prints other than UTF-8 has printed no figure.
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let (succeeded, rss_bytes) = wait(&mut child, seconds_max)?;
    let stdout = reader.join().map_err(|_| "the reader thread panicked".to_owned())?;
    let cpu_ms = (children_ticks()? - before) * TICK_MS;
    Ok(Cost { stdout, cpu_ms, rss_bytes, succeeded })
}

fn wait(child: &mut Child, seconds_max: u64) -> Result<(bool, u64), String> {
    let mut rss_bytes = 0;
    let pause = Duration::from_millis(50);
    let mut left = Duration::from_secs(seconds_max);
    loop {
        rss_bytes = rss_bytes.max(peak_rss(child.id()).unwrap_or(0));
        match child.try_wait() {
            Ok(Some(status)) => return Ok((status.success(), rss_bytes)),
            Ok(None) if left.is_zero() => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok((false, rss_bytes));
            }
            Ok(None) => {
                std::thread::sleep(pause);
                left = left.saturating_sub(pause);
            }
            Err(error) => return Err(format!("waiting: {error}")),
        }
    }
}

fn peak_rss(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// User and system ticks of the children of this process that have been waited for.
pub fn children_ticks() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/self/stat")
        .map_err(|e| format!("reading /proc/self/stat: {e}"))?;
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let tick = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    // Fields 16 and 17 of proc(5), counted from 1 with the name as field 2.
    tick(13)
        .zip(tick(14))
        .map(|(user, system)| user + system)
        .ok_or_else(|| "/proc/self/stat is short".to_owned())
}

/// A program that is stopped when this is dropped.
pub struct Server {
    child: Child,
}

impl Server {
    /// Starts `program` on processor `cpu` and waits for its line `ready http=ADDRESS`.
    pub fn start(program: &Path, arguments: &[&str], cpu: &str) -> Result<(Self, String), String> {
        let mut child = Command::new("taskset")
            .args(["-c", cpu])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| format!("starting {}: {error}", program.display()))?;
        let stdout = child.stdout.take().expect("asked for a pipe");
        let server = Self { child };
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line)
            .map_err(|error| format!("reading the server's first line: {error}"))?;
        let address = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("http="))
            .ok_or_else(|| format!("the server said `{}` and no address", line.trim()))?;
        Ok((server, address.to_owned()))
    }

    /// Stops the process for `length` (SIGSTOP, then SIGCONT): a freeze as a garbage collector or a
    /// suspended machine makes it.
    pub fn freeze(&self, length: Duration) {
        let signal = |name: &str| {
            let _ = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        };
        signal("-STOP");
        std::thread::sleep(length);
        signal("-CONT");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processors' busy time that was neither this process's nor its children's is other people's; a busy
/// machine's figures are marked.
pub fn machine_load() -> f64 {
    std::fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0)
}
