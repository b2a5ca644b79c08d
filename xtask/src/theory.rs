//! `cargo xtask theory`: real trials on the echo system against queueing theory. For each queue, ten seeds; the
//! theory's mean and p99 must lie inside the printed 95 % intervals in at least nine.
//!
//! M/M/1: the response time is exponential with rate μ − λ. M/M/c: Erlang C for the wait, convolved with the
//! service time (Gross and Harris, Fundamentals of Queueing Theory, chapter 2).

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const HEAD: &str = "# Real trials against queueing theory\n\nEach trial is `assay run` on the echo system: open loop, Poisson arrivals, exponential service. Counted are the trials in which the theory's value lies inside the printed 95 % interval. An interval of p99 may have a lower end alone where the window holds too few excursions; it says less than one with two ends, so those with two that hold the value are counted apart.\n\n";

const COLUMNS: &str = "| queue | utilisation | service | window | theory's mean ms | inside | theory's p99 ms | inside | of them closed | trials |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// Seconds of a toy trial.
const TOY_SECONDS: u32 = 6;

/// Trials at a time, so that ten seeds do not fight for two processors.
const PARALLEL: usize = 5;

/// Seeds of each queue that must agree with theory, in tenths.
const AGREE_TENTHS: usize = 9;

struct Queue {
    servers: u32,
    utilisation: f64,
    /// Mean service time: long against the tens of microseconds that loopback and timers add to the mean response
    /// time, short enough that the window holds many busy periods.
    service_ms: u32,
    /// The measured window.
    seconds: u32,
}

/// The busier the queue, the longer its memory: busy queues get shorter service times, which lengthens the window
/// in the queue's own time.
const QUEUES: [Queue; 4] = [
    Queue { servers: 1, utilisation: 0.5, service_ms: 4, seconds: 60 },
    Queue { servers: 1, utilisation: 0.8, service_ms: 2, seconds: 60 },
    Queue { servers: 1, utilisation: 0.9, service_ms: 1, seconds: 60 },
    Queue { servers: 4, utilisation: 0.8, service_ms: 4, seconds: 60 },
];

/// Runs the trials and prints the table; with `toy`, one queue, two seeds, a few seconds, and no judgement on
/// intervals that so few samples cannot carry.
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let assay = root.join("target/release/assay");
    let folder = root.join("target/theory");
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("making {}: {error}", folder.display()))?;
    let (queues, seeds) = if toy { (&QUEUES[..1], 2) } else { (&QUEUES[..], 10) };
    let mut text = String::from(HEAD);
    let machine = crate::bench::machine();
    let _ = writeln!(
        text,
        "{machine} `cargo xtask theory`: {seeds} seeds a queue, {PARALLEL} at a time.\n\n{COLUMNS}"
    );
    let mut short = Vec::new();
    for queue in queues {
        let seconds = if toy { TOY_SECONDS } else { queue.seconds };
        let found = trials(&assay, &folder, queue, seeds, seconds)?;
        let (mean, p99) = queue.theory();
        let inside = |truth: f64, pick: fn(&Interval) -> (f64, f64)| {
            found
                .iter()
                .filter(|interval| (pick(interval).0..=pick(interval).1).contains(&truth))
                .count()
        };
        let means = inside(mean, |interval| interval.mean);
        let tails = inside(p99, |interval| interval.p99);
        let name = format!("M/M/{}", queue.servers);
        let closed = found
            .iter()
            .filter(|interval| {
                interval.p99.1.is_finite() && interval.p99.0 <= p99 && p99 <= interval.p99.1
            })
            .count();
        let _ = writeln!(
            text,
            "| {name} | {} | {} ms | {seconds} s | {:.2} | {means} | {:.2} | {tails} | {closed} | {} |",
            queue.utilisation,
            queue.service_ms,
            mean * 1e3,
            p99 * 1e3,
            found.len()
        );
        let wanted = seeds * AGREE_TENTHS / 10;
        if !toy && (means < wanted || tails < wanted) {
            short.push(format!("{name} at {}", queue.utilisation));
        }
    }
    print!("{text}");
    if !toy {
        let path = root.join("docs/theory.md");
        std::fs::create_dir_all(root.join("docs"))
            .map_err(|error| format!("making docs: {error}"))?;
        std::fs::write(&path, text)
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
    }
    if short.is_empty() {
        Ok(())
    } else {
        Err(format!("theory lies outside too often: {}", short.join(", ")))
    }
}

/// The printed intervals of one trial, in seconds.
struct Interval {
    mean: (f64, f64),
    p99: (f64, f64),
}

fn trials(
    assay: &Path,
    folder: &Path,
    queue: &Queue,
    seeds: usize,
    seconds: u32,
) -> Result<Vec<Interval>, String> {
    let mut found = Vec::new();
    let all: Vec<usize> = (1..=seeds).collect();
    for group in all.chunks(PARALLEL) {
        let mut running = Vec::new();
        for seed in group {
            let file =
                folder.join(format!("mm{}-{}-{seed}.toml", queue.servers, queue.utilisation));
            std::fs::write(&file, queue.experiment(*seed, seconds))
                .map_err(|error| format!("writing {}: {error}", file.display()))?;
            let child = Command::new(assay)
                .arg("run")
                .arg(&file)
                .args(["--json", "--progress", "none", "--no-calibration", "--runs"])
                .arg(folder.join("runs"))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| format!("starting {}: {error}", assay.display()))?;
            running.push((file, child));
        }
        for (file, child) in running {
            let output = child.wait_with_output().map_err(|error| format!("waiting: {error}"))?;
            let document: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
                format!("{}: exit {:?}, no result: {error}", file.display(), output.status.code())
            })?;
            found.push(
                interval(&document).ok_or_else(|| format!("{}: no intervals", file.display()))?,
            );
        }
    }
    let _ = std::fs::remove_dir_all(folder.join("runs"));
    Ok(found)
}

fn interval(document: &Value) -> Option<Interval> {
    let response = &document["settings"][0]["trials"][0]["latency"][0]["response"];
    let seconds = |value: &Value| value.as_f64().map(|ns| ns / 1e9);
    let p99 = response["quantiles"].as_array()?.iter().find(|q| q["name"] == "p99")?;
    Some(Interval {
        mean: (seconds(&response["mean_low_ns"])?, seconds(&response["mean_high_ns"])?),
        p99: (seconds(&p99["low_ns"])?, seconds(&p99["high_ns"]).unwrap_or(f64::INFINITY)),
    })
}

impl Queue {
    fn service_s(&self) -> f64 {
        f64::from(self.service_ms) / 1e3
    }

    fn arrivals_per_s(&self) -> f64 {
        self.utilisation * f64::from(self.servers) / self.service_s()
    }

    fn experiment(&self, seed: usize, seconds: u32) -> String {
        format!(
            "name = \"theory\"\nseed = {seed}\n[system]\nkind = \"echo\"\n[system.deploy]\nservers = {}\nservice = {{ mean = \"{}ms\", distribution = \"exponential\" }}\n[load]\nmodel = \"open\"\narrival = \"poisson\"\nrate = \"{}/s\"\nconnections = 8\nwarmup = \"2s\"\nduration = \"{seconds}s\"\n",
            self.servers,
            self.service_ms,
            self.arrivals_per_s()
        )
    }

    /// Mean and p99 of the response time, in seconds.
    fn theory(&self) -> (f64, f64) {
        let (servers, mu, lambda) =
            (f64::from(self.servers), 1.0 / self.service_s(), self.arrivals_per_s());
        let waits = erlang_c(self.servers, lambda / mu);
        let mean = 1.0 / mu + waits / (servers * mu - lambda);
        // P(T > t) by convolution; bisected for its p99.
        let free = servers - 1.0 - lambda / mu;
        let beyond = |t: f64| {
            let excess = if free.abs() < 1e-12 {
                waits * mu * t
            } else {
                waits / free * (1.0 - (-mu * t * free).exp())
            };
            (-mu * t).exp() * (1.0 + excess)
        };
        let (mut low, mut high) = (0.0, 1_000.0 * self.service_s());
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if beyond(middle) > 0.01 { low = middle } else { high = middle }
        }
        (mean, high)
    }
}

/// Probability that an arrival waits, for `servers` and an offered load of `erlangs`.
fn erlang_c(servers: u32, erlangs: f64) -> f64 {
    let mut blocked = 1.0;
    for n in 1..=servers {
        blocked = erlangs * blocked / (f64::from(n) + erlangs * blocked);
    }
    let rho = erlangs / f64::from(servers);
    blocked / (1.0 - rho * (1.0 - blocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: M/M/1 gives the exponential's mean and p99, and Erlang C agrees with a published value.
    #[test]
    fn known_queues() {
        let queue = Queue { servers: 1, utilisation: 0.5, service_ms: 4, seconds: 60 };
        let (mean, p99) = queue.theory();
        assert!((mean - 0.008).abs() < 1e-9, "{mean}");
        assert!((p99 - 0.008 * 100_f64.ln()).abs() < 1e-6, "{p99}");
        // Ten agents, eight erlangs: 0.409.
        assert!((erlang_c(10, 8.0) - 0.409).abs() < 5e-4);
    }
}
