//! `cargo xtask bench load`: Assay's engine beside the generators that are installed, one server, one run.
//!
//! Four questions: what a request costs the generator, what rate it keeps, what it says of a server that
//! froze for a second, and how much memory it takes. Ratios are between tools of the same round; the machine
//! is shared, so medians of several rounds are printed with their ranges.

pub mod durability;
pub mod gateway;
pub mod honest;
pub mod kv;
mod measure;
mod multiplexed;
pub mod page;
mod peers;
pub mod published;
pub mod report;
mod shapes;
mod steady;
pub mod testnet;
mod watched;
mod workbench;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use measure::{Cost, Server};
use peers::{PEERS, Peer, Said, Task};

/// The example of `load` that paces without an engine.
const PACER: &str = "closed_loop";

/// Other pacings than the default, at a rate.
const PACINGS: [(&str, &str); 2] =
    [("assay, exact", "load.pacing=exact"), ("assay, coalesced", "load.pacing=coalesced")];

/// How long and how often.
struct Size {
    rounds: usize,
    seconds: u32,
    rates: &'static [u32],
    freeze_at_s: u64,
    freeze_run_s: u32,
}

const FULL: Size = Size {
    rounds: 7,
    seconds: 2,
    rates: &[1_000, 10_000, 50_000],
    freeze_at_s: 4,
    freeze_run_s: 10,
};
const TOY: Size = Size { rounds: 1, seconds: 1, rates: &[1_000], freeze_at_s: 1, freeze_run_s: 3 };

/// The generator's processor and the server's.
const GENERATOR_CPU: &str = "0";
const SERVER_CPU: &str = "1";

/// Assay's two ways to the kernel, each a contender of its own: which one a host allows is not a matter of taste.
const DRIVERS: [Way; 2] = [
    Way { driver: "io_uring", whole: "assay", load: "assay, until the drain ended" },
    Way { driver: "epoll", whole: "assay on epoll", load: "assay on epoll, until the drain ended" },
];

/// Assay on one driver: as a whole, and without what comes after the load (sealing the record and analysing it).
struct Way {
    driver: &'static str,
    whole: &'static str,
    load: &'static str,
}

/// Where the results stand.
const DOCUMENT: &str = "results/bench-load.md";
/// Heads the part on fixed rates.
const FIDELITY: &str = "## Fidelity at fixed rates\n\n";

/// Runs all parts and writes results/bench-load.md (not at toy size).
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let size = if toy { TOY } else { FULL };
    let (rounds, seconds) = (size.rounds, size.seconds);
    let bench = Bench::new(root, size)?;
    let mut text =
        String::from("# Load generators side by side\n\nMade by `cargo xtask bench load`. ");
    let _ = writeln!(text, "{}\n", machine());
    text.push_str(&bench.cost()?);
    text.push_str(&multiplexed::table(root, rounds, seconds)?);
    text.push_str(shapes::HEAD);
    text.push_str(&bench.shapes()?);
    text.push_str(steady::HEAD);
    text.push_str(&bench.steady()?);
    text.push_str(watched::HEAD);
    text.push_str(&bench.watched()?);
    text.push_str(FIDELITY);
    text.push_str(&bench.fidelity()?);
    text.push_str(&bench.freeze()?);
    print!("{text}");
    if toy { Ok(()) } else { write(root, &text) }
}

/// A part that can be run alone: its option, its heading in the document, and its measurement.
type Part = (&'static str, &'static str, fn(&Bench) -> Result<String, String>);
const PARTS: [Part; 4] = [
    ("--rates", FIDELITY, Bench::fidelity),
    ("--steady", steady::HEAD, Bench::steady),
    ("--shapes", shapes::HEAD, Bench::shapes),
    ("--watched", watched::HEAD, Bench::watched),
];

/// Runs one part alone, and puts it into the document with its own machine and day.
pub fn run_part(root: &Path, option: &str) -> Result<(), String> {
    let part = PARTS.iter().find(|(known, ..)| *known == option);
    let (_, heading, measure) = part.ok_or_else(|| format!("bench load has no part `{option}`"))?;
    let machine = machine();
    let text = measure(&Bench::new(root, FULL)?)?;
    put(root, heading, &format!("Made by `cargo xtask bench load {option}`. {machine}\n\n{text}"))
}

/// Prints a part and puts it into the document below its heading, in place of what stands there.
fn put(root: &Path, heading: &str, part: &str) -> Result<(), String> {
    let path = root.join(DOCUMENT);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("reading {}: {error}", path.display()))?;
    let (before, old) = text.split_once(heading).unwrap_or((&text, ""));
    let after = old.find("\n## ").map_or("", |at| &old[at + 1..]);
    print!("{part}");
    let part = part.trim_end();
    let text = format!("{}\n\n{heading}{part}\n\n{after}", before.trim_end());
    write(root, &format!("{}\n", text.trim_end()))
}

fn write(root: &Path, text: &str) -> Result<(), String> {
    let path = root.join(DOCUMENT);
    std::fs::write(&path, text).map_err(|error| format!("writing {}: {error}", path.display()))
}

struct Bench {
    assay: PathBuf,
    /// Paces without an engine: an example of `load`.
    pacer: PathBuf,
    folder: PathBuf,
    size: Size,
}

impl Bench {
    fn new(root: &Path, size: Size) -> Result<Self, String> {
        let assay = workbench::built_assay(root)?;
        let folder = root.join("target/bench");
        std::fs::create_dir_all(&folder)
            .map_err(|error| format!("making {}: {error}", folder.display()))?;
        let pacer = root.join("target/release/examples").join(PACER);
        let build = ["build", "--release", "-q", "--workspace", "--example", PACER];
        let built = std::process::Command::new("cargo").args(build).current_dir(root).status();
        if !built.is_ok_and(|status| status.success()) {
            return Err(format!("the example `{PACER}` of `load` was not built"));
        }
        Ok(Self { assay, pacer, folder, size })
    }

    fn server(&self) -> Result<(Server, String), String> {
        let (server, address) =
            Server::start(&self.assay, &["serve", "echo", "--http", "127.0.0.1:0"], SERVER_CPU)?;
        Ok((server, format!("http://{address}/")))
    }

    fn task(&self, url: &str, seconds: u32, rate: Option<u32>) -> Task {
        Task { url: url.to_owned(), connections: 64, seconds, rate, folder: self.folder.clone() }
    }

    /// Every installed peer that can do the task, Assay first, with each of its drivers.
    fn contenders(&self, task: &Task) -> Vec<Contender> {
        let assay = |name, driver, is_load_only| Contender {
            name,
            program: self.assay.clone(),
            arguments: peers::assay(task),
            read: |text, _| peers::read_assay(text),
            driver: Some(driver),
            is_load_only,
        };
        let mut list = Vec::new();
        for Way { driver, whole, load } in DRIVERS {
            list.push(assay(load, driver, true));
            list.push(assay(whole, driver, false));
        }
        for (name, set) in PACINGS.into_iter().filter(|_| task.rate.is_some()) {
            let mut one = assay(name, DRIVERS[0].driver, true);
            one.arguments.extend(["--set".to_owned(), set.to_owned()]);
            list.push(one);
        }
        if let Some(arguments) = peers::bare(task) {
            list.push(Contender {
                name: "a sleep, a send and a receive each, no engine",
                program: self.pacer.clone(),
                arguments,
                read: peers::read_bare,
                driver: None,
                is_load_only: false,
            });
        }
        for Peer { name, program, arguments, read } in PEERS {
            match (find(program), arguments(task)) {
                (Some(path), Some(words)) => {
                    list.push(Contender {
                        name,
                        program: path,
                        arguments: words,
                        read,
                        driver: None,
                        is_load_only: false,
                    });
                }
                (None, Some(_)) => {
                    eprintln!("SKIPPED {name}: not installed (assay doctor --install {program})")
                }
                (_, None) => {}
            }
        }
        list
    }

    fn once(&self, contender: &Contender, task: &Task) -> Result<(Cost, Said), String> {
        let limit = u64::from(task.seconds) * 3 + 20;
        let cost = measure::run(
            &contender.program,
            &contender.arguments,
            GENERATOR_CPU,
            &self.folder,
            limit,
            contender.driver.map(|driver| ("ASSAY_DRIVER", driver)),
        )?;
        if !cost.succeeded {
            // Assay ends with 97 where it found its own measurement wanting; its figures stand all the same.
            eprintln!("{}: ended with an exit code other than 0", contender.name);
        }
        let mut cost = cost;
        if contender.is_load_only {
            cost.cpu_ms = load_cpu_ms(&self.folder.join("runs"))
                .ok_or("the trial says nothing of its cost")?;
        }
        let said = (contender.read)(&cost.stdout, &self.folder);
        let _ = std::fs::remove_dir_all(self.folder.join("runs"));
        Ok((cost, said))
    }

    /// Closed loop: processor time of the generator for each request, as a ratio to wrk's in the same round.
    fn cost(&self) -> Result<String, String> {
        let (_server, url) = self.server()?;
        let task = self.task(&url, self.size.seconds, None);
        let contenders = self.contenders(&task);
        let mut samples: Vec<Vec<Sample>> = contenders.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.size.rounds {
            for (index, contender) in contenders.iter().enumerate() {
                let (cost, said) = self.once(contender, &task)?;
                let requests = said.requests.filter(|requests| *requests > 0.0);
                samples[index].push(Sample {
                    us_per_request: requests.map(|requests| cost.cpu_ms * 1e3 / requests),
                    per_second: requests.map(|requests| requests / f64::from(task.seconds)),
                    rss_bytes: cost.rss_bytes,
                });
            }
        }
        let wrk = contenders.iter().position(|contender| contender.name == "wrk");
        let mut text = String::from(
            "## Cost of a request\n\nOne engine thread on one processor, 64 keep-alive connections, no pipelining, closed loop; the server on the other processor. Processor time is the whole process's, start and report included. Assay records every row while it loads; what follows the drain (sealing, intervals, audits) is not counted in its lines until the drain ended. It uses io_uring where the kernel allows it, and epoll elsewhere.\n\n| tool | k requests/s | CPU µs/request (range) | ÷ wrk, same round (range) | peak MB |\n| --- | --- | --- | --- | --- |\n",
        );
        for (contender, list) in contenders.iter().zip(&samples) {
            let ratios: Vec<f64> = list
                .iter()
                .enumerate()
                .filter_map(|(round, sample)| {
                    Some(sample.us_per_request? / samples[wrk?][round].us_per_request?)
                })
                .collect();
            let costs: Vec<f64> = list.iter().filter_map(|sample| sample.us_per_request).collect();
            let rates: Vec<f64> =
                list.iter().filter_map(|sample| sample.per_second.map(|r| r / 1e3)).collect();
            let peak = list.iter().map(|sample| sample.rss_bytes).max().unwrap_or(0) / 1_000_000;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {peak} |",
                contender.name,
                middle(&rates, 1),
                spread(&costs, 2),
                spread(&ratios, 2)
            );
        }
        let _ = writeln!(text, "\nMedians of {} rounds.\n", self.size.rounds);
        Ok(text)
    }

    /// Open loop: the rate asked for and the rate answered, and what the tool says of latency.
    fn fidelity(&self) -> Result<String, String> {
        let (_server, url) = self.server()?;
        let mut text = String::from(
            "The server answers in tens of microseconds; anything far above is the tool's own lateness. A rate is the share of what was asked for. Own lag is how late Assay itself sent, as it says. Other pacings than the default are counted until the drain ended. *No engine* is one thread that sleeps to each due time, sends, and blocks for the answer, on one connection: two wake-ups a request and nothing else, which is what sending each request at its own time costs on this machine. A tool that costs less sends several at a time, and later: look at its p50.\n\n| rate | tool | sent | p50 ms | p99 ms | p99.9 ms | max ms | own lag p99 ms | CPU cores | peak MB |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for rate in self.size.rates {
            let task = self.task(&url, self.size.seconds * 2, Some(*rate));
            for contender in self.contenders(&task) {
                let (cost, said) = self.once(&contender, &task)?;
                let asked = f64::from(*rate) * f64::from(task.seconds);
                let _ = writeln!(
                    text,
                    "| {rate}/s | {} | {} | {} | {} | {} | {} | {} | {:.2} | {} |",
                    contender.name,
                    said.requests
                        .map_or("–".to_owned(), |sent| format!("{:.2} %", sent / asked * 100.0)),
                    cell(said.p50_ms),
                    cell(said.p99_ms),
                    cell(said.p999_ms),
                    cell(said.max_ms),
                    cell(said.own_lag_p99_ms),
                    cost.cpu_ms / 1e3 / f64::from(task.seconds),
                    cost.rss_bytes / 1_000_000
                );
            }
        }
        text.push('\n');
        Ok(text)
    }

    /// A server that is stopped for one second in the middle of 1,000 requests a second.
    fn freeze(&self) -> Result<String, String> {
        let mut text = format!(
            "## A server frozen for one second\n\n1,000 requests a second for {} s; the server is stopped for one second. Truth for ten seconds, from the schedule alone: one request in ten is due during the freeze, so p95 is 500 ms, p99 900 ms, p99.9 990 ms, the largest 1,000 ms.\n\n| tool | sent | p50 ms | p95 ms | p99 ms | p99.9 ms | max ms |\n| --- | --- | --- | --- | --- | --- | --- |\n",
            self.size.freeze_run_s
        );
        let probe = self.task("", self.size.freeze_run_s, Some(1000));
        for (index, contender) in self.contenders(&probe).iter().enumerate() {
            // What is said of latency is the whole program's.
            if contender.is_load_only || contender.program == self.pacer {
                continue;
            }
            // A server of its own for each, so that none inherits another's backlog.
            let (server, url) = self.server()?;
            let task = self.task(&url, self.size.freeze_run_s, Some(1000));
            let contender = &self.contenders(&task)[index];
            let at = Duration::from_secs(self.size.freeze_at_s);
            let (_, said) = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(at);
                    server.freeze(Duration::from_secs(1));
                });
                self.once(contender, &task)
            })?;
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                contender.name,
                said.requests.map_or("–".to_owned(), |sent| sent.to_string()),
                cell(said.p50_ms),
                cell(said.p95_ms),
                cell(said.p99_ms),
                cell(said.p999_ms),
                cell(said.max_ms)
            );
        }
        text.push('\n');
        Ok(text)
    }
}

struct Contender {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    read: fn(&str, &Path) -> Said,
    /// Which driver of Assay's; `None`: it is another tool.
    driver: Option<&'static str>,
    /// Whether only what the load itself costs is counted.
    is_load_only: bool,
}

struct Sample {
    us_per_request: Option<f64>,
    per_second: Option<f64>,
    rss_bytes: u64,
}

/// Processor time of the only trial under `runs` during its load.
fn load_cpu_ms(runs: &Path) -> Option<f64> {
    let run = std::fs::read_dir(runs).ok()?.flatten().next()?.path();
    let text = std::fs::read_to_string(run.join("settings/default/trial-0/trial.json")).ok()?;
    let document: serde_json::Value = serde_json::from_str(&text).ok()?;
    document["after"]["generator_cpu_ns"].as_f64().map(|ns| ns / 1e6)
}

/// The program in the cache folder of `assay doctor --install` (`NAME/VERSION/` or its `bin/`), or on the path.
fn find(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    find_in(program, program).or_else(|| {
        std::env::split_paths(&paths).map(|path| path.join(program)).find(|path| path.is_file())
    })
}

/// The program in the cache folder of `assay doctor --install`, under the name that it has there.
fn find_in(name: &str, program: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("ASSAY_CACHE").map(PathBuf::from).or_else(|| {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        base.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))
            .map(|base| base.join("assay"))
    })?;
    let versions = std::fs::read_dir(cache.join(name)).ok()?.flatten().map(|entry| entry.path());
    versions
        .flat_map(|folder| [folder.clone(), folder.join("bin")])
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The machine, its kernel, the date and how busy it was.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split(':').nth(1));
    let kernel = read("/proc/sys/kernel/osrelease");
    let cpus = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let date = std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let date = date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    format!(
        "{cpus} processors ({}), Linux {}, {}; load average before: {:.2}.",
        model.unwrap_or("unknown").trim(),
        kernel.trim(),
        date.unwrap_or_default(),
        measure::machine_load()
    )
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(
        || "–".to_owned(),
        |value| if value < 10.0 { format!("{value:.3}") } else { format!("{value:.0}") },
    )
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

fn middle(values: &[f64], digits: usize) -> String {
    median(values).map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn spread(values: &[f64], digits: usize) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    median(values).map_or_else(
        || "–".to_owned(),
        |value| format!("{value:.digits$} ({low:.digits$}–{high:.digits$})"),
    )
}
