//! The cost of watching to a load: runs at a high rate, by turns alone and with `assay watch --web` beside, whose page and events
//! are read. The figure is the instrument's own send lag, held against how it differs between runs that are alone.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::peers::{self, Task};
use super::{Bench, GENERATOR_CPU, measure, spread};

/// Heads the part.
pub const HEAD: &str = "## A load that is watched\n\n";

const RATE: u32 = 50_000;
const SECONDS: u32 = 10;
const PAIRS: usize = 5;
/// A run that takes longer hangs.
const SECONDS_MAX: u64 = 120;
/// Between two looks for the run's folder.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One run's own send lag, µs, and how it was watched.
#[derive(Clone, Copy, Default)]
struct Run {
    p99_us: f64,
    p999_us: f64,
    seen: Seen,
}

/// Events and pages that the reader got.
#[derive(Clone, Copy, Default)]
struct Seen {
    events: u32,
    pages: u32,
}

impl Bench {
    /// The table, without its head.
    pub(super) fn watched(&self) -> Result<String, String> {
        let is_toy = self.size.rounds == 1;
        let (pairs, seconds, rate) = if is_toy { (1, 3, 1_000) } else { (PAIRS, SECONDS, RATE) };
        let (_server, url) = self.server()?;
        let folder = self.folder.join("watched");
        let task = Task { url, connections: 64, seconds, rate: Some(rate), folder };
        let mut all = Vec::new();
        for pair in 0..pairs {
            // Whatever drifts on the host favours neither.
            let mut both = [Run::default(); 2];
            let turns = if pair % 2 == 0 { [false, true] } else { [true, false] };
            for is_watched in turns {
                both[usize::from(is_watched)] = self.watched_run(&task, is_watched)?;
            }
            all.push(both);
        }
        Ok(table(&all, rate, seconds))
    }

    fn watched_run(&self, task: &Task, is_watched: bool) -> Result<Run, String> {
        super::workbench::make_empty(&task.folder)?;
        let is_over = AtomicBool::new(false);
        let (cost, seen) = std::thread::scope(|scope| {
            let watching = is_watched
                .then(|| scope.spawn(|| watch(&self.assay, &task.folder.join("runs"), &is_over)));
            let words = peers::assay(task);
            let cost =
                measure::run(&self.assay, &words, GENERATOR_CPU, &task.folder, SECONDS_MAX, None);
            is_over.store(true, Ordering::Relaxed);
            let seen = watching.map_or(Ok(Seen::default()), |thread| {
                thread.join().map_err(|_| "the reader's thread panicked".to_owned())?
            });
            (cost, seen)
        });
        let (cost, seen) = (cost?, seen?);
        let document: Value = serde_json::from_str(&cost.stdout)
            .map_err(|error| format!("assay printed no JSON ({error}): {}", cost.stdout))?;
        let quantiles = &document["settings"][0]["trials"][0]["own_lag"]["quantiles"];
        let us = |name: &str| {
            let mut of = quantiles.as_array().into_iter().flatten();
            let found = of.find(|it| it["name"] == name).and_then(|it| it["value_ns"].as_f64());
            found.map(|ns| ns / 1e3).ok_or_else(|| format!("the result has no own lag at {name}"))
        };
        if is_watched && (seen.events == 0 || seen.pages == 0) {
            return Err(format!("{} events and {} pages were seen", seen.events, seen.pages));
        }
        Ok(Run { p99_us: us("p99")?, p999_us: us("p99.9")?, seen })
    }
}

/// Watches the only run under `runs` to its end, as a browser does: it reads the events and fetches each page.
fn watch(assay: &Path, runs: &Path, is_over: &AtomicBool) -> Result<Seen, String> {
    let Some(run) = first_run(runs, is_over) else { return Ok(Seen::default()) };
    let mut child = Watch::start(assay, &run)?;
    let host = child.host()?;
    let failed = |error: std::io::Error| format!("reading the events of {host}: {error}");
    let mut seen = Seen::default();
    let mut shown = 0;
    for line in ask(&host, "/events").map_err(failed)?.lines() {
        let line = line.map_err(failed)?;
        let Some(figures) = line.strip_prefix("data: ") else { continue };
        seen.events += 1;
        let figures: Value = serde_json::from_str(figures).unwrap_or_default();
        let page = figures["page"].as_u64().unwrap_or(0);
        if page > shown {
            shown = page;
            let mut text = String::new();
            ask(&host, "/report")
                .and_then(|mut it| it.read_to_string(&mut text))
                .map_err(failed)?;
            seen.pages += u32::from(text.contains("<article"));
        }
    }
    Ok(seen)
}

/// The folder of the run, once it can be watched; none: the run was over before.
fn first_run(runs: &Path, is_over: &AtomicBool) -> Option<PathBuf> {
    while !is_over.load(Ordering::Relaxed) {
        let found = std::fs::read_dir(runs).ok().and_then(|all| all.flatten().next());
        if let Some(run) = found.map(|it| it.path()).filter(|it| it.join("plan.toml").is_file()) {
            return Some(run);
        }
        std::thread::sleep(LOOK_EVERY);
    }
    None
}

fn ask(host: &str, path: &str) -> std::io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(host)?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    Ok(BufReader::new(stream))
}

/// `assay watch --web`; it is ended when this is dropped.
struct Watch(Child);

impl Watch {
    fn start(assay: &Path, run: &Path) -> Result<Self, String> {
        Command::new(assay)
            .args(["watch", "--web", "--progress", "none"])
            .arg(run)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map(Self)
            .map_err(|error| format!("starting {}: {error}", assay.display()))
    }

    /// Where its page is.
    fn host(&mut self) -> Result<String, String> {
        let stderr = self.0.stderr.take().expect("asked for a pipe");
        let mut line = String::new();
        BufReader::new(stderr)
            .read_line(&mut line)
            .map_err(|error| format!("reading what assay watch says: {error}"))?;
        let host = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        host.map(str::to_owned).ok_or_else(|| format!("assay watch said `{}`", line.trim()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn table(all: &[[Run; 2]], rate: u32, seconds: u32) -> String {
    let mut text = format!(
        "Own send lag of {seconds} s at {rate}/s to a server that answers at once, alone and with `assay watch --web` beside, \
         whose events are read and each of whose pages is fetched; server and generator on a processor each, the watch where \
         there is room. Pairs by turns.\n\n| pair | alone p99 µs | watched p99 µs | alone p99.9 µs | watched p99.9 µs | events | pages |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for (number, [alone, watched]) in all.iter().enumerate() {
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {} |",
            number + 1,
            alone.p99_us,
            watched.p99_us,
            alone.p999_us,
            watched.p999_us,
            watched.seen.events,
            watched.seen.pages
        );
    }
    let line = |name: &str, of: fn(&Run) -> f64| {
        let ratios: Vec<f64> = all.iter().map(|[alone, watched]| of(watched) / of(alone)).collect();
        // Each run that was alone against the one before.
        let next = all.windows(2).map(|two| of(&two[1][0]) / of(&two[0][0]));
        let noise: Vec<f64> = next.collect();
        format!(
            "{name}: watched ÷ alone {}; alone ÷ alone before {}",
            spread(&ratios, 2),
            spread(&noise, 2)
        )
    };
    let _ = writeln!(
        text,
        "\nMedians and ranges. {}. {}.\n",
        line("p99", |run| run.p99_us),
        line("p99.9", |run| run.p999_us)
    );
    text
}
