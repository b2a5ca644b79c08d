//! `cargo xtask bench testnet`: one network of four real validators, driven in turn by the published load tool and
//! by Assay attached to it: same bursts, same payload, same node. What does a transaction cost the generator, and
//! what does each tool know of it afterwards?
//!
//! The network belongs to a run of Assay's own, which makes it, keeps it and takes it down.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::workbench::{Workbench, to_f64};
use super::{find_in, machine, spread};

/// A load.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    connections: u32,
    /// Transactions a second on each connection.
    rate: u32,
    seconds: u32,
}

/// How much is measured.
struct Size {
    shapes: &'static [Shape],
    rounds: usize,
}

/// At the low rate a turn is longer, so that a tool's start and end are not most of what a transaction costs.
const FULL: Size = Size {
    shapes: &[
        Shape { connections: 1, rate: 200, seconds: 25 },
        Shape { connections: 1, rate: 800, seconds: 12 },
        Shape { connections: 2, rate: 800, seconds: 12 },
    ],
    rounds: 2,
};
const TOY: Size = Size { shapes: &[Shape { connections: 1, rate: 50, seconds: 3 }], rounds: 1 };

/// What the published reports submit.
const TRANSACTION_BYTES: u32 = 1024;

/// Longest waits, for a network to begin and for a mempool to drain.
const WAIT_SECONDS_MAX: u32 = 90;

/// The turns of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The published tool.
    Theirs,
    /// Assay, in bursts as the published tool sends them.
    Bursts,
    /// Assay, evenly paced.
    Even,
}

impl Turn {
    const ALL: [Self; 3] = [Self::Theirs, Self::Bursts, Self::Even];

    const fn name(self) -> &'static str {
        match self {
            Self::Theirs => "load (cometbft 0.38.19)",
            Self::Bursts => "assay, same bursts",
            Self::Even => "assay, evenly paced",
        }
    }
}

/// What one turn came to.
#[derive(Clone, Default)]
struct Outcome {
    sent: u64,
    /// Unknown of a tool that throws its replies away.
    replies: Option<u64>,
    refused: Option<u64>,
    committed: Option<u64>,
    in_chain: u64,
    /// Processor time of the whole process, µs.
    cpu_us: f64,
    /// Of that, until the last commit was seen.
    load_cpu_us: Option<f64>,
}

/// Measures, prints, and writes results/bench-testnet.md if not at toy size.
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let size = if toy { TOY } else { FULL };
    let (Some(tool), Some(_)) = (find_in("cometbft-load", "load"), find_in("cometbft", "cometbft"))
    else {
        println!("SKIPPED bench testnet: run assay doctor --install cometbft, and cometbft-load");
        return Ok(());
    };
    let host = machine();
    let at = Workbench::new(root, "bench-testnet")?;
    let network = Network::start(&at.assay, &at.folder, &size)?;
    let bench = Bench { at, tool, nodes: network.nodes.clone(), size };
    let rows = bench.rounds()?;
    drop(network);
    bench.at.finish(&page(&rows, &bench.size, &host), toy)
}

/// The shape, the turn, and what each round gave.
type Row = (Shape, Turn, Vec<Outcome>);

struct Bench {
    at: Workbench,
    tool: PathBuf,
    /// `127.x.y.1:26657`, …
    nodes: Vec<String>,
    size: Size,
}

impl Bench {
    fn rounds(&self) -> Result<Vec<Row>, String> {
        let mut rows: Vec<Row> = Vec::new();
        let mut height = self.settled()?;
        for round in 0..self.size.rounds {
            for shape in self.size.shapes {
                for turn in Turn::ALL {
                    let outcome = self.turn(*shape, turn, &mut height)?;
                    eprintln!(
                        "round {} {}×{} {}: {:.1} µs a transaction{}",
                        round + 1,
                        shape.connections,
                        shape.rate,
                        turn.name(),
                        outcome.cpu_us / to_f64(outcome.sent),
                        outcome.load_cpu_us.map_or_else(String::new, |us| format!(
                            ", {:.1} until committed",
                            us / to_f64(outcome.sent)
                        ))
                    );
                    match rows.iter_mut().find(|(s, t, _)| s == shape && *t == turn) {
                        Some((.., list)) => list.push(outcome),
                        None => rows.push((*shape, turn, vec![outcome])),
                    }
                }
            }
        }
        Ok(rows)
    }

    /// `height` is the last block before it, and then the last of it.
    fn turn(&self, shape: Shape, turn: Turn, height: &mut u64) -> Result<Outcome, String> {
        let mut outcome = match turn {
            Turn::Theirs => self.theirs(shape)?,
            Turn::Bursts => self.ours(shape, r#"burst = { every = "1s" }"#)?,
            Turn::Even => self.ours(shape, "")?,
        };
        let after = self.settled()?;
        outcome.in_chain = self.in_chain(*height + 1, after)?;
        *height = after;
        Ok(outcome)
    }

    /// The tool sends its first burst after a second and stops before the last: one second more for as many.
    fn theirs(&self, shape: Shape) -> Result<Outcome, String> {
        let Shape { connections, rate, seconds } = shape;
        let statistics = self.at.folder.join("load.csv");
        let seconds = seconds + 1;
        let words = format!(
            "-c {connections} -T {seconds} -r {rate} -s {TRANSACTION_BYTES} --broadcast-tx-method sync --endpoints ws://{}/websocket --stats-output {}",
            self.nodes[0],
            statistics.display()
        );
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let (_, cpu_us) = self.at.timed(&self.tool, &words)?;
        let text = std::fs::read_to_string(&statistics)
            .map_err(|error| format!("reading {}: {error}", statistics.display()))?;
        let sent = text.lines().find_map(|line| line.strip_prefix("total_txs,"));
        let sent = sent.and_then(|rest| rest.split(',').next()?.parse().ok());
        let sent = sent.ok_or_else(|| format!("the load tool's statistics say `{text}`"))?;
        Ok(Outcome { sent, cpu_us, ..Outcome::default() })
    }

    fn ours(&self, shape: Shape, burst: &str) -> Result<Outcome, String> {
        let Shape { connections, rate, seconds } = shape;
        let total = connections * rate;
        let experiment = format!(
            r#"
            name = "bench-testnet"
            [system]
            kind = "cometbft"
            [system.deploy]
            attach = {:?}
            [workload]
            kind = "loadtime"
            size = "{TRANSACTION_BYTES}B"
            [load]
            rate = "{total}/s"
            {burst}
            pacing = "coalesced"
            connections = {connections}
            threads = 1
            warmup = "0s"
            duration = "{seconds}s"
            timeout = "30s"
            drain = "30s"
            "#,
            self.nodes
        );
        let (document, cpu_us) = self.at.run(&experiment)?;
        let trial = &document["settings"][0]["trials"][0];
        let count = |pointer: &str| trial.pointer(pointer).and_then(Value::as_u64);
        let (refused, accepted) = (count("/counts/rejected"), count("/latency/0/response/count"));
        Ok(Outcome {
            sent: count("/counts/sent").ok_or_else(|| format!("no trial in {document}"))?,
            replies: refused.zip(accepted).map(|(refused, accepted)| refused + accepted),
            refused,
            committed: count("/counts/committed"),
            in_chain: 0,
            cpu_us,
            load_cpu_us: super::load_cpu_ms(&self.at.runs()).map(|ms| ms * 1e3),
        })
    }

    /// Waits for an empty mempool and two more blocks; gives the height.
    fn settled(&self) -> Result<u64, String> {
        let node = &self.nodes[0];
        wait("the mempool to drain", || {
            number(&ask(node, "num_unconfirmed_txs")?["total"]).filter(|left| *left == 0)
        })?;
        let height = wait("a height", || height(node))?;
        wait("two more blocks", || height_of(node, height + 2))
    }

    /// Payloads of the published form in these blocks.
    fn in_chain(&self, first: u64, last: u64) -> Result<u64, String> {
        let mut count = 0;
        for height in first..=last {
            let block = ask(&self.nodes[0], &format!("block?height={height}"))
                .ok_or_else(|| format!("block {height} could not be read"))?;
            let txs = block["block"]["data"]["txs"].as_array().map_or(&[][..], Vec::as_slice);
            // `a=` in base64; the network's owner submits keys that are longer.
            let is_payload = |tx: &&Value| {
                tx.as_str().is_some_and(|tx| tx.starts_with("YT0") || tx.starts_with("YT1"))
            };
            count += txs.iter().filter(is_payload).count() as u64;
        }
        Ok(count)
    }
}

/// The run that keeps the network; interrupted when this is dropped, upon which it takes the network down.
struct Network {
    owner: Child,
    nodes: Vec<String>,
}

impl Network {
    fn start(assay: &Path, folder: &Path, size: &Size) -> Result<Self, String> {
        let turns = u32::try_from(size.rounds * Turn::ALL.len()).unwrap_or(1);
        // A turn, its drain and its settling take less; without anybody to stop it, it ends by itself.
        let turns = size.shapes.iter().map(|shape| turns * (shape.seconds + WAIT_SECONDS_MAX));
        let seconds = turns.sum::<u32>() + WAIT_SECONDS_MAX;
        let experiment = format!(
            r#"
            name = "bench-testnet-owner"
            [system]
            kind = "cometbft"
            [system.deploy]
            validators = 4
            [workload]
            kind = "kvstore"
            size = "64B"
            [load]
            rate = "1/s"
            warmup = "0s"
            duration = "{seconds}s"
            [measure]
            ledger = false
            "#
        );
        let path = folder.join("owner.toml");
        std::fs::write(&path, experiment)
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
        let owner = Command::new(assay)
            .args([
                "run",
                "owner.toml",
                "--progress",
                "none",
                "--no-calibration",
                "--runs",
                "owner",
            ])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("starting {}: {error}", assay.display()))?;
        let mut network = Self { owner, nodes: Vec::new() };
        network.nodes = wait("the network to begin", || addresses(&folder.join("owner")))?;
        let first = network.nodes[0].clone();
        wait("the first blocks", || height_of(&first, 3))?;
        Ok(network)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let pid = self.owner.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let _ = self.owner.wait();
    }
}

/// Where clients reach the nodes of the run under `runs`, as the nodes' own files say.
fn addresses(runs: &Path) -> Option<Vec<String>> {
    let run = std::fs::read_dir(runs).ok()?.flatten().next()?.path();
    let testnet = run.join("settings/default/trial-0/nodes/testnet");
    let address = |node: usize| {
        let path = testnet.join(format!("node{node}/config/config.toml"));
        let file = std::fs::read_to_string(path).ok()?;
        let listens = file.lines().filter_map(|line| line.strip_prefix("laddr = \"tcp://"));
        let mut listens = listens.map(|rest| rest.trim_end_matches('"').to_owned());
        // The program writes 127.0.0.1 for every node, and the adapter an address for each.
        listens.find(|it| it.ends_with(":26657") && !it.starts_with("127.0.0.1"))
    };
    (0..4).map(address).collect()
}

fn height_of(node: &str, least: u64) -> Option<u64> {
    height(node).filter(|height| *height >= least)
}

fn height(node: &str) -> Option<u64> {
    number(&ask(node, "status")?["sync_info"]["latest_block_height"])
}

/// CometBFT writes 64-bit numbers as text.
fn number(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// The result of one of a node's questions by GET; `None` while there is none.
fn ask(node: &str, question: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(node).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(stream, "GET /{question} HTTP/1.0\r\nHost: {node}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let mut document: Value = serde_json::from_str(body).ok()?;
    Some(document["result"].take())
}

fn wait<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> Result<T, String> {
    for _ in 0..WAIT_SECONDS_MAX * 10 {
        if let Some(found) = found() {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err(format!("waited {WAIT_SECONDS_MAX} s in vain for {what}"))
}

fn page(rows: &[Row], size: &Size, host: &str) -> String {
    let mut text = format!(
        "# The published load tool beside Assay, on a real network\n\nMade by `cargo xtask bench testnet`. {host}\n\n\
         One network of four CometBFT 0.38.19 validators on this machine, loaded through the first of them with \
         `broadcast_tx_sync` and payloads of {TRANSACTION_BYTES} bytes in the published form, {} seconds a turn in \
         the order of the table (the longest at the lowest rate: what a tool costs before and after the load is \
         the smaller share of a transaction, for both alike), in turn by the published tool and by Assay attached to it. c × r: connections × transactions a second on each, \
         in one burst at each second's beginning; evenly paced is what the published tool cannot do. Assay's pacing is \
         `coalesced`: what falls due is sent, and answers are read, in quanta of a millisecond, so marks are late by \
         up to one; the published tool takes none. CPU: of the whole process, user and system, for each transaction \
         sent; Assay's includes the record, reading the chain back, analysis and report, and the column beside it ends \
         with the drain, when every reply has been read and the last commit seen. The published tool throws every reply away, so it does not know what was \
         refused or committed; what stands in the chain was counted here, block by block.\n\n\
         | c × r | tool | CPU µs/tx (range) | until committed | ÷ load, same round (range) | until committed ÷ load | sent | replies read | refused | committed | in chain |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        size.shapes.iter().map(|it| it.seconds.to_string()).collect::<Vec<_>>().join(", ")
    );
    for (shape, turn, list) in rows {
        let theirs = rows.iter().find(|(s, t, _)| s == shape && *t == Turn::Theirs);
        let cost = |it: &Outcome| it.cpu_us / to_f64(it.sent);
        let costs: Vec<f64> = list.iter().map(cost).collect();
        let load: Vec<f64> =
            list.iter().filter_map(|it| Some(it.load_cpu_us? / to_f64(it.sent))).collect();
        let pairs = || theirs.into_iter().flat_map(|(.., theirs)| list.iter().zip(theirs));
        let ratios: Vec<f64> = pairs().map(|(own, theirs)| cost(own) / cost(theirs)).collect();
        let until = |(own, theirs): (&Outcome, &Outcome)| {
            Some(own.load_cpu_us? / to_f64(own.sent) / cost(theirs))
        };
        let ratios_until: Vec<f64> = pairs().filter_map(until).collect();
        let _ = writeln!(
            text,
            "| {} × {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            shape.connections,
            shape.rate,
            turn.name(),
            spread(&costs, 1),
            spread(&load, 1),
            spread(&ratios, 2),
            spread(&ratios_until, 2),
            counts(list, |it| Some(it.sent)),
            counts(list, |it| it.replies),
            counts(list, |it| it.refused),
            counts(list, |it| it.committed),
            counts(list, |it| Some(it.in_chain)),
        );
    }
    let _ =
        writeln!(text, "\nMedians of {} rounds; counts are of all rounds together.", size.rounds);
    text
}

/// A sum over rounds, or a dash where the tool does not know.
fn counts(list: &[Outcome], of: impl Fn(&Outcome) -> Option<u64>) -> String {
    let known: Option<Vec<u64>> = list.iter().map(of).collect();
    known.map_or_else(|| "–".to_owned(), |known| known.iter().sum::<u64>().to_string())
}
