//! `cargo xtask bench durability --beside`: the load tools that systems bring themselves beside Assay, in turns on the same
//! server at the same rate and durability: what came through, and what the load side's processors took for an operation.

mod servers;

use std::path::Path;

use servers::{Etcd, Kafka, Nats, Postgres, Redis, Server};

use crate::bench::workbench::{Workbench, to_f64};

/// A server, the tool beside it, and how both are asked.
struct Pair {
    system: &'static str,
    tool: &'static str,
    /// Operations a second, for both: what the server does with little waiting, so that a turn has many of them.
    rate: u32,
    /// Looks for the programs; an error names a missing one.
    find: fn() -> Result<(), String>,
    start: fn(&Path) -> Result<Box<dyn Server>, String>,
}

/// All of them.
const PAIRS: [Pair; 5] = [
    Pair {
        system: "postgres",
        tool: "pgbench",
        rate: 4_000,
        find: Postgres::find,
        start: Postgres::start,
    },
    Pair {
        system: "kafka",
        tool: "ProducerPerformance",
        rate: 400,
        find: Kafka::find,
        start: Kafka::start,
    },
    Pair { system: "nats", tool: "nats bench", rate: 1_000, find: Nats::find, start: Nats::start },
    Pair {
        system: "redis",
        tool: "redis-benchmark",
        rate: 1_000,
        find: Redis::find,
        start: Redis::start,
    },
    Pair {
        system: "etcd",
        tool: "etcd-benchmark",
        rate: 1_000,
        find: Etcd::find,
        start: Etcd::start,
    },
];

/// The load of a turn, the same for both.
#[derive(Clone, Copy)]
pub(super) struct Amount {
    pub(super) seconds: u32,
    pub(super) rate: u32,
}

/// Operations outstanding at most, each on a connection of its own where the protocol has one at a time; a tool without a rate
/// keeps all of them busy.
pub(super) const CONNECTIONS: u32 = 16;

/// Bytes of a value.
pub(super) const VALUE_BYTES: u32 = 64;

/// The figures of one turn.
pub(super) struct Outcome {
    /// Acknowledged a second.
    pub(super) per_second: f64,
    /// Processor time of the load side for an acknowledged operation, µs.
    pub(super) cpu_us: f64,
}

/// One of them.
type Figure = fn(&Outcome) -> f64;

/// Where all of it stands.
const PAGE: &str = "results/bench-durability-beside.md";

const HEAD: &str = "\
# Their own load tools beside Assay

Made by `cargo xtask bench durability --beside`, a part alone by its system's name after it: one server of each system that syncs \
before it acknowledges, on this machine's own disk; its load tool and Assay take turns at it, with as many connections and values \
of 64 bytes. pgbench, ProducerPerformance, nats bench and etcd's benchmark keep a rate, which Assay is given, too (pgbench's \
arrivals are Poisson's, the others' evenly spaced); redis-benchmark has none, so both keep all connections busy. pgbench's timers are made as exact as Assay makes its own (prctl(2), \
PR_SET_TIMERSLACK of 1 ns): by default Linux may be 50 µs late, which saves a tool wake-ups and costs it exactness. Medians \
of the rounds, with the lowest and the highest.
";

const COLUMNS: &str = "\
| tool | its operations a second | Assay's | ratio | its processor time an operation | Assay's | ratio |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

/// Measures, prints, and writes results/bench-durability-beside.md if not at toy size; with `only` one system, whose part takes
/// the place of the one that the page has.
pub fn run(root: &Path, toy: bool, only: Option<&str>) -> Result<(), String> {
    if let Some(only) = only
        && !PAIRS.iter().any(|pair| pair.system == only)
    {
        let known: Vec<&str> = PAIRS.iter().map(|pair| pair.system).collect();
        return Err(format!("expected one of {}, got `{only}`", known.join(", ")));
    }
    let at = Workbench::new(root, "bench-durability-beside")?;
    for pair in PAIRS.iter().filter(|pair| only.is_none_or(|only| only == pair.system)) {
        let heading = format!("## {} and {}\n\n", pair.system, pair.tool);
        let host = crate::bench::machine();
        let made = match (pair.find)() {
            Ok(()) => format!("{COLUMNS}{}", measured(&at, pair, toy)?),
            Err(missing) => format!("Skipped: {missing}.\n"),
        };
        let made = format!("{heading}{host}\n\n{made}");
        println!("{made}");
        // As it goes, because the next may fail.
        if !toy {
            super::keep(&root.join(PAGE), HEAD, &heading, &made)?;
        }
    }
    std::fs::remove_dir_all(&at.folder)
        .map_err(|error| format!("removing {}: {error}", at.folder.display()))
}

/// All rounds of a pair, as a row of the table.
fn measured(at: &Workbench, pair: &Pair, toy: bool) -> Result<String, String> {
    let rounds = if toy { 1 } else { 9 };
    let amount = Amount { seconds: if toy { 2 } else { 20 }, rate: pair.rate };
    let folder = at.folder.join(pair.system);
    crate::bench::workbench::make_empty(&folder)?;
    let server = (pair.start)(&folder)?;
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    // Inherited by what is started from here on, and not by the server.
    for round in 0..rounds {
        eprintln!("{}, round {round} …", pair.system);
        // The order changes, because a table or a log grows.
        if round % 2 == 0 {
            theirs.push(server.theirs(at, amount)?);
            ours.push(assay(at, server.as_ref(), amount)?);
        } else {
            ours.push(assay(at, server.as_ref(), amount)?);
            theirs.push(server.theirs(at, amount)?);
        }
    }
    Ok(row(pair, &theirs, &ours))
}

/// Assay at the same server.
fn assay(at: &Workbench, server: &dyn Server, amount: Amount) -> Result<Outcome, String> {
    let Amount { seconds, rate } = amount;
    let load = match server.arrival() {
        Some(arrival) => format!("arrival = \"{arrival}\"\nrate = \"{rate}/s\""),
        None => format!("model = \"closed\"\nclients = {CONNECTIONS}"),
    };
    let experiment = format!(
        "name = \"beside\"\n[system]\nkind = \"{}\"\n[system.deploy]\n{}\n[workload]\npayload = \"{VALUE_BYTES}B\"\n\
         [load]\n{load}\nconnections = {}\nthreads = 1\nwarmup = \"0s\"\nduration = \"{seconds}s\"\n\
         timeout = \"5s\"\n[measure]\nledger = false\n",
        server.kind(),
        server.attach(),
        server.connections()
    );
    let (document, cpu_us) = at.run(&experiment)?;
    let trial = &document["settings"][0]["trials"][0];
    let committed = trial["counts"]["committed"].as_u64().filter(|count| *count > 0);
    let committed = committed
        .ok_or_else(|| format!("Assay committed nothing: {}{}", trial["counts"], at.complaint()))?;
    let committed = to_f64(committed);
    Ok(Outcome { per_second: committed / f64::from(seconds), cpu_us: cpu_us / committed })
}

/// A row of the table.
fn row(pair: &Pair, theirs: &[Outcome], ours: &[Outcome]) -> String {
    let of = |side: &[Outcome], figure: Figure| side.iter().map(figure).collect();
    let ratios = |figure: Figure| {
        ours.iter().zip(theirs).map(|(ours, theirs)| figure(ours) / figure(theirs)).collect()
    };
    let (rate, cpu): (Figure, Figure) = (|it| it.per_second, |it| it.cpu_us);
    format!(
        "| {} | {} | {} | {} | {} | {} | {} |\n",
        pair.tool,
        spread(of(theirs, rate), 0, ""),
        spread(of(ours, rate), 0, ""),
        spread(ratios(rate), 3, ""),
        spread(of(theirs, cpu), 0, " µs"),
        spread(of(ours, cpu), 0, " µs"),
        spread(ratios(cpu), 2, ""),
    )
}

/// The median, and lowest and highest where there are several.
fn spread(mut values: Vec<f64>, digits: usize, unit: &str) -> String {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    match values[..] {
        [_] => format!("{median:.digits$}{unit}"),
        [least, .., most] => format!("{median:.digits$}{unit} ({least:.digits$}–{most:.digits$})"),
        [] => "–".to_owned(),
    }
}
