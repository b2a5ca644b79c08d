//! `cargo xtask bench kv`: three replicas of etcd with its own load tool, and three of ours with Assay, in turn on one
//! machine: same clients, same connections, same keys and values, TLS between all, and both as durable as they are when
//! nothing is said of it. What does a put cost, how many are there a second, and how late are they?

mod groups;
mod page;

use std::path::{Path, PathBuf};

use super::workbench::{Workbench, make_empty, to_f64};
use groups::{Account, Etcd, Group, Kv};

/// A load.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shape {
    clients: u32,
    connections: u32,
    /// Keys that each transaction stores.
    puts: u32,
    value_bytes: u32,
}

/// How much is measured.
struct Size {
    shapes: &'static [Shape],
    rounds: usize,
    seconds: u32,
}

/// As many connections as clients, up to the hundred of etcd's published figures.
const fn shape(clients: u32, puts: u32, value_bytes: u32) -> Shape {
    let connections = if clients < CONNECTIONS_MAX { clients } else { CONNECTIONS_MAX };
    Shape { clients, connections, puts, value_bytes }
}
const CONNECTIONS_MAX: u32 = 100;

const FULL: Size = Size {
    shapes: &[shape(1, 1, 16), shape(64, 1, 16), shape(1000, 1, 16), shape(1000, 16, 16)],
    rounds: 3,
    seconds: 3,
};
const TOY: Size = Size { shapes: &[shape(64, 1, 16), shape(64, 16, 16)], rounds: 1, seconds: 1 };

/// Keys that are stored, drawn alike.
const KEYS: u32 = 100_000;

/// What a turn begins with, so that connections stand and its size is known: so many transactions a client.
const PILOT_EACH: u32 = 20;
const PILOT_MIN: u32 = 200;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Etcd,
    Kv,
}

impl Whose {
    const ALL: [Self; 2] = [Self::Etcd, Self::Kv];
}

/// What one turn came to; times of processors in µs for all of it.
#[derive(Clone, Copy)]
struct Outcome {
    transactions: u64,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    replicas_cpu_us: f64,
    /// The whole process.
    client_cpu_us: f64,
    /// Syncs of all replicas for each transaction.
    syncs: f64,
}

impl Outcome {
    fn cpu_us(&self) -> f64 {
        (self.replicas_cpu_us + self.client_cpu_us) / to_f64(self.transactions)
    }
}

/// The shape, whose turns, and what each round gave.
type Row = (Shape, Whose, Vec<Outcome>);

/// Measures, prints, and writes results/bench-kv.md if not at toy size.
pub fn run(root: &Path, toy: bool) -> Result<(), String> {
    let size = if toy { TOY } else { FULL };
    let found = super::find_in("etcd", "etcd").zip(super::find_in("etcd-benchmark", "benchmark"));
    let Some((etcd, tool)) = found else {
        println!("SKIPPED bench kv: run assay doctor --install etcd, and etcd-benchmark");
        return Ok(());
    };
    let host = super::machine();
    let bench = Bench { at: Workbench::new(root, "bench-kv")?, etcd, tool, size };
    let text = page::text(&bench.rounds()?, &bench.size, &host);
    bench.at.finish(&text, toy)
}

struct Bench {
    at: Workbench,
    etcd: PathBuf,
    tool: PathBuf,
    size: Size,
}

impl Bench {
    fn rounds(&self) -> Result<Vec<Row>, String> {
        let mut rows: Vec<Row> = Vec::new();
        for round in 0..self.size.rounds {
            for shape in self.size.shapes {
                for whose in Whose::ALL {
                    let outcome = self.turn(*shape, whose)?;
                    eprintln!(
                        "round {}, {} × {} puts of {} B, {}: {:.0}/s, {:.1} µs, p99 {:.2} ms",
                        round + 1,
                        shape.clients,
                        shape.puts,
                        shape.value_bytes,
                        page::name(whose),
                        outcome.per_second,
                        outcome.cpu_us(),
                        outcome.p99_ms
                    );
                    match rows.iter_mut().find(|(s, w, _)| s == shape && *w == whose) {
                        Some((.., list)) => list.push(outcome),
                        None => rows.push((*shape, whose, vec![outcome])),
                    }
                }
            }
        }
        Ok(rows)
    }

    /// A group of its own, empty; a pilot that says how long the turn proper has to be; the turn; what the group says of it.
    fn turn(&self, shape: Shape, whose: Whose) -> Result<Outcome, String> {
        let folder = self.at.folder.join("group");
        make_empty(&folder)?;
        let ours = Kv::start(&self.at.assay, &folder)?;
        let tls = folder.join("kv/tls");
        let group = match whose {
            Whose::Kv => Group::Kv(ours),
            // Its certificates are all that is wanted of ours.
            Whose::Etcd => {
                Group::Kv(ours).end()?;
                Group::Etcd(Etcd::start(&self.etcd, &folder, &tls)?)
            }
        };
        let load = |amount| match whose {
            Whose::Etcd => self.theirs(shape, &group.address(), &tls, amount),
            Whose::Kv => self.ours(shape, &group.address(), &tls, amount),
        };
        let pilot_count = (shape.clients * PILOT_EACH).max(PILOT_MIN);
        let pilot = load(Amount { transactions: pilot_count, seconds: 1 })?;
        let before = group.cpu_us()?;
        // Its tool takes a number of transactions, and Assay a time.
        let transactions = groups::whole(pilot.per_second * f64::from(self.size.seconds));
        let transactions = u32::try_from(transactions).unwrap_or(u32::MAX);
        let mut outcome = load(Amount {
            transactions: transactions.max(pilot_count),
            seconds: self.size.seconds,
        })?;
        outcome.replicas_cpu_us = group.cpu_us()? - before;
        let Account { executed, syncs } = group.end()?;
        let said = pilot.transactions + outcome.transactions;
        let puts = if whose == Whose::Etcd { shape.puts } else { 1 };
        let executed = executed / u64::from(puts);
        if executed != said {
            return Err(format!(
                "{} executed {executed} transactions, and its clients know of {said}",
                page::name(whose)
            ));
        }
        outcome.syncs = to_f64(syncs) / to_f64(executed);
        Ok(outcome)
    }

    fn theirs(
        &self,
        shape: Shape,
        endpoints: &str,
        tls: &Path,
        amount: Amount,
    ) -> Result<Outcome, String> {
        let Shape { clients, connections, puts, value_bytes } = shape;
        let kind = if puts == 1 { "put".to_owned() } else { format!("txn-put --txn-ops={puts}") };
        let tls = tls.display();
        let words = format!(
            "{kind} --total={} --endpoints={endpoints} --target-leader --clients={clients} --conns={connections} \
             --key-space-size={KEYS} --val-size={value_bytes} --precise --cacert={tls}/ca.pem --cert={tls}/client.pem \
             --key={tls}/client.key",
            amount.transactions
        );
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let (said, client_cpu_us) = self.at.timed(&self.tool, &words)?;
        let number = |before: &str, behind: &str| -> Option<f64> {
            let line = said.lines().find(|line| line.contains(before))?;
            let (_, rest) = line.split_once(before)?;
            rest.trim().trim_end_matches(behind).trim().parse().ok()
        };
        let read = || {
            Some(Outcome {
                transactions: amount.transactions.into(),
                per_second: number("Requests/sec:", "")?,
                p50_ms: number("50% in", "secs.")? * 1e3,
                p99_ms: number(" 99% in", "secs.")? * 1e3,
                replicas_cpu_us: 0.0,
                client_cpu_us,
                syncs: 0.0,
            })
        };
        let has_failed = said.contains("Error distribution");
        let read = read().filter(|_| !has_failed);
        read.ok_or_else(|| format!("etcd's load tool said: {said}{}", self.at.complaint()))
    }

    fn ours(
        &self,
        shape: Shape,
        leader: &str,
        tls: &Path,
        amount: Amount,
    ) -> Result<Outcome, String> {
        let Shape { clients, connections, puts, value_bytes } = shape;
        let experiment = format!(
            r#"
            name = "bench-kv"
            [system]
            kind = "kv"
            [system.deploy]
            attach = {leader:?}
            identity = {tls:?}
            [workload]
            kind = "put"
            keys = {KEYS}
            puts = {puts}
            value = "{value_bytes}B"
            [load]
            model = "closed"
            clients = {clients}
            connections = {connections}
            threads = 1
            warmup = "0s"
            duration = "{}s"
            [measure]
            ledger = false
            "#,
            amount.seconds
        );
        let (document, client_cpu_us) = self.at.run(&experiment)?;
        let trial = &document["settings"][0]["trials"][0];
        let count = |name: &str| trial["counts"][name].as_u64();
        let committed = count("committed").filter(|committed| Some(*committed) == count("sent"));
        let response = &trial["latency"][0]["response"];
        let quantile = |name: &str| {
            let found = response["quantiles"].as_array()?.iter().find(|q| q["name"] == name)?;
            found["value_ns"].as_f64().map(|ns| ns / 1e6)
        };
        let read = || {
            let transactions = committed?;
            Some(Outcome {
                transactions,
                per_second: to_f64(transactions) / f64::from(amount.seconds),
                p50_ms: quantile("p50")?,
                p99_ms: quantile("p99")?,
                replicas_cpu_us: 0.0,
                client_cpu_us,
                syncs: 0.0,
            })
        };
        read().ok_or_else(|| format!("not all was committed: {trial}"))
    }
}

/// How much a client does: the tools are asked in different words.
#[derive(Clone, Copy)]
struct Amount {
    transactions: u32,
    seconds: u32,
}
