//! What the report knows of metrics by their names: the words, the unit, which come first, and the order of sources.
//!
//! It must never know a system: what is not named here comes by name, after the rest.

use model::picture::is_node;

use crate::paint::clean;
use crate::svg::Unit;

/// Metrics that come first, in this order.
const FIRST: [&str; 10] = [
    "cpu_cores",
    "steal_share",
    "steal_cores",
    "run_queue",
    "memory_available_bytes",
    "rss_bytes",
    "load1",
    "cpu_mhz",
    "mempool_transactions",
    "mempool_bytes",
];
/// How many of the first are known of every process, and are not what nodes say of themselves.
const OF_THE_HOST: usize = 8;
/// Words of the names that come next: what a chain does a minute, and how its nodes are doing.
const NEXT: [&str; 4] = ["minute", "height", "peers", "round"];

/// Where a metric stands among the charts.
pub(crate) fn rank(name: &str) -> usize {
    let next = || NEXT.iter().position(|next| name.split('_').any(|word| word == *next));
    let first = FIRST.iter().position(|first| *first == name);
    first.or_else(|| next().map(|at| FIRST.len() + at)).unwrap_or(FIRST.len() + NEXT.len())
}

/// Whether it is of what the host says, of itself or of processes.
pub(crate) fn is_of_the_host(name: &str) -> bool {
    FIRST[..OF_THE_HOST].contains(&name)
}

/// Whether a metric is one of those that every reader looks at; what else nodes say of themselves is for those who
/// look for it.
pub(crate) fn is_foremost(name: &str) -> bool {
    rank(name) < FIRST.len() + NEXT.len()
}

/// Generator, host, then the nodes, node-2 before node-10, then what is said of all of them.
pub(crate) fn source_rank(source: &str) -> (u8, String, u64) {
    let kind = match source {
        "generator" => 0,
        "host" => 1,
        _ if is_node(source) => 2,
        _ => 3,
    };
    let stem = source.trim_end_matches(|c: char| c.is_ascii_digit());
    (kind, stem.to_owned(), source[stem.len()..].parse().unwrap_or(0))
}

/// A metric's name in words, its unit, and the unit's word for the axis.
pub(crate) fn named(name: &str) -> (String, Unit, &'static str) {
    let (stem, unit, word) = if let Some(stem) = name.strip_suffix("_bytes") {
        (stem, Unit::Bytes, "")
    } else if let Some(stem) = name.strip_suffix("_share") {
        (stem, Unit::Share, "")
    } else if let Some(stem) = name.strip_suffix("_ns") {
        (stem, Unit::Ns, "")
    } else if let Some(stem) = name.strip_suffix("_per_second") {
        (stem, Unit::Number, "per second")
    } else if let Some(stem) = name.strip_suffix("_milliseconds") {
        (stem, Unit::Number, "ms")
    } else if let Some(stem) = name.strip_suffix("_seconds") {
        (stem, Unit::Number, "s")
    } else if let Some(stem) = name.strip_suffix("_nodes") {
        (stem, Unit::Number, "nodes")
    } else if let Some(stem) = name.strip_suffix("_rounds") {
        (stem, Unit::Number, "rounds")
    } else if let Some(stem) = name.strip_suffix("_blocks") {
        (stem, Unit::Number, "blocks")
    } else if let Some(stem) = name.strip_suffix("_cores") {
        (stem, Unit::Number, "cores")
    } else if let Some(stem) = name.strip_suffix("_mhz") {
        (stem, Unit::Number, "MHz")
    } else {
        (name, Unit::Number, "")
    };
    let words = match stem {
        "cpu" if word == "cores" => "processor".to_owned(),
        "cpu" => "processor clock".to_owned(),
        "rss" => "memory in use".to_owned(),
        "mempool" => "mempool, bytes".to_owned(),
        "steal" if word == "cores" => "cores stolen by the hypervisor".to_owned(),
        "steal" => "share stolen by the hypervisor".to_owned(),
        "load1" => "load average, one minute".to_owned(),
        "tcp_retransmits" => "TCP retransmits".to_owned(),
        stem => stem.replace('_', " "),
    };
    (clean(&words), unit, word)
}
