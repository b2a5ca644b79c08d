//! The keys of an experiment file with their defaults and meanings: the one table that the reader takes its
//! defaults from, that `assay check --explain` and the documents print, and that names of environment
//! variables are looked up in. A key that is not here does not exist, but for those of each kind of fault, which the
//! testbed's list declares.

use std::time::Duration;

use model::options::did_you_mean;
use model::quantity::parse_duration;

/// What holds where a key is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// It must be written.
    Required,
    /// There is none of it then.
    Nothing,
    /// This value, as it would be written.
    Fixed(&'static str),
    /// A value that depends on others; the rule in words.
    Rule(&'static str),
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its dotted path; `[]` stands after a list of tables.
    pub path: &'static str,
    /// What holds without it.
    pub fallback: Fallback,
    /// What it means, in one line.
    pub meaning: &'static str,
}

use Fallback::{Fixed, Nothing, Required, Rule};

const fn key(path: &'static str, fallback: Fallback, meaning: &'static str) -> Key {
    Key { path, fallback, meaning }
}

/// Where a pair of links does not say it.
const AS_OTHERS: &str = "as in [links], or in [links.client] where the instrument is an end";

/// Every key, in the order of the file's sections.
pub const KEYS: &[Key] = &[
    key("name", Rule("the file's name"), "short name; part of the run folder's name"),
    key("question", Fixed(""), "the question that the experiment answers"),
    key("notes", Fixed(""), "the authors' notes, for the report"),
    key("seed", Fixed("1"), "seed of the run; every trial's seed is split from it"),
    key("trials", Fixed("1"), "trials of each setting"),
    key(
        "order",
        Rule("shuffled with several trials a setting, else as-written"),
        "order of the trials: shuffled (by the seed) or as-written",
    ),
    key("system.kind", Required, "which system: the adapter's name"),
    key("system.deploy", Nothing, "how the system is started or reached; read by its adapter"),
    key("workload", Nothing, "what the transactions are; read by the system's adapter"),
    key("load.model", Fixed("open"), "open: arrivals do not wait for answers; closed: clients do"),
    key("load.arrival", Fixed("constant"), "constant, poisson, burst, ramp, steps or trace"),
    key("load.rate", Required, "open: transactions that fall due in a time, such as 50/s; max"),
    key("load.rate_per", Fixed("total"), "what the rate is of: total, connection or generator"),
    key("load.generators", Fixed("1"), "open: the rate, that many times (rate_per = generator)"),
    key("load.ramp.from", Required, "ramp: rate at the start"),
    key("load.ramp.to", Required, "ramp: rate at the end of the measured window"),
    key("load.steps[].rate", Required, "steps, as a list: rate of one step"),
    key("load.steps[].for", Required, "steps, as a list: length of one step"),
    key("load.steps.every", Required, "steps, as a rule: length of each step"),
    key("load.steps.add.rate", Nothing, "steps, as a rule: added to the rate at each step"),
    key("load.steps.add.generators", Nothing, "steps, as a rule: added to the generators"),
    key("load.steps.until.rate", Nothing, "steps, as a rule: the last step's rate at most"),
    key("load.steps.until.generators", Nothing, "steps, as a rule: the last step's generators"),
    key("load.burst.every", Fixed("1s"), "burst: all of a period's transactions at its start"),
    key("load.trace.file", Required, "trace: file of due times, one a line"),
    key("load.trace.speed", Fixed("1"), "trace: 2 plays it in half the time"),
    key(
        "load.clients",
        Rule("window × connections with a window, else required"),
        "closed: clients",
    ),
    key("load.think", Fixed("0s"), "closed: pause between an answer and the next transaction"),
    key(
        "load.window",
        Fixed("0"),
        "closed: outstanding transactions a connection; 0 = plain clients",
    ),
    key(
        "load.poll",
        Fixed("10ms"),
        "closed: how often a session that polls does so while it waits",
    ),
    key(
        "load.connections",
        Rule("64; closed: as many as clients; closed with a window: 1"),
        "connections opened before the warm-up",
    ),
    key(
        "load.connections_max",
        Rule("open: 1024 or load.connections; max, closed, batches, affinity: load.connections"),
        "when all are busy, more are opened, up to this; fixed: none is",
    ),
    key("load.threads", Fixed("1"), "engine threads"),
    key(
        "load.warmup",
        Rule("2s, at most a tenth of load.duration; 0s for a trace"),
        "load that is sent and not counted",
    ),
    key(
        "load.duration",
        Rule("30s; steps: as long as they last; a trace: to its last due time"),
        "the measured window",
    ),
    key("load.drain", Rule("as load.timeout"), "longest wait for what is outstanding at the end"),
    key("load.timeout", Fixed("30s"), "a transaction without an answer after this is unknown"),
    key("load.backlog_max", Fixed("1000000"), "due transactions that may wait for a connection"),
    key("load.lookahead", Fixed("1024"), "transactions prepared ahead, each thread"),
    key(
        "load.pacing",
        Fixed("balanced"),
        "exact (spins), balanced, coalesced (cheap, late by 1 ms)",
    ),
    key("load.batch.size_max", Fixed("100"), "batches: the most transactions of one"),
    key(
        "load.batch.delay_max",
        Fixed("1ms"),
        "batches: the longest wait for company, from when due",
    ),
    key("load.batch.in_flight_max", Fixed("1"), "batches: the most outstanding on a connection"),
    key(
        "load.affinity",
        Fixed("any"),
        "client: a client stays on one connection, in order; any: any",
    ),
    key("load.resend.attempts_max", Fixed("3"), "most times one is sent; without load.resend once"),
    key(
        "load.resend.after",
        Rule("as load.timeout: only when its connection is lost"),
        "without an answer for this long it is sent again",
    ),
    key("load.transactions_max", Fixed("0"), "most transactions in all; 0 = no bound but the time"),
    key(
        "probe.trials",
        Rule("as many intervals as load.duration holds"),
        "how many transactions the probe sends",
    ),
    key(
        "probe.schedule",
        Fixed("open"),
        "open (due every interval) or sequential (after an answer)",
    ),
    key("probe.interval", Fixed("1s"), "between the probe's transactions"),
    key("probe.timeout", Rule("as load.timeout"), "beyond it a probe counts as infinite"),
    key(
        "probe.connections",
        Rule("open: timeouts that fit an interval, at most 64; sequential: 1"),
        "connections of the probe's own",
    ),
    key("measure.until", Rule("the system's last stage"), "the stage that counts as committed"),
    key("measure.window", Fixed("1s"), "throughput is sampled per window of this length"),
    key("measure.percentiles", Fixed("50 90 95 99 99.9"), "percentiles that tables show"),
    key("measure.ledger", Fixed("true"), "whether the ledger is read after the drain"),
    key("threshold[].expr", Required, "a promise, such as p99 < 1s"),
    key("threshold[].at", Nothing, "which settings, by axis; all without it"),
    key(
        "threshold[].level",
        Fixed("fail"),
        "what breaking it means: fail, invalid, saturated, warn",
    ),
    key("links.through", Fixed("switch"), "how: switch (packets, takes root) or forwarders (TCP)"),
    key("links.delay", Fixed("0s"), "every packet between two nodes is this late"),
    key("links.jitter", Fixed("0s"), "and by up to this much more or less, evenly"),
    key("links.loss", Fixed("0%"), "share of packets that vanish"),
    key("links.bandwidth", Fixed("max"), "what passes, such as 100Mbit/s or 10MB/s; max: no limit"),
    key("links.reorder", Fixed("0%"), "share of packets that go at once and overtake others"),
    key("links.client.delay", Fixed("0s"), "the same between the instrument and the nodes"),
    key("links.client.jitter", Fixed("0s"), "the same between the instrument and the nodes"),
    key("links.client.loss", Fixed("0%"), "the same between the instrument and the nodes"),
    key("links.client.bandwidth", Fixed("max"), "the same between the instrument and the nodes"),
    key("links.client.reorder", Fixed("0%"), "the same between the instrument and the nodes"),
    key("links.pair[].from", Required, "links that differ: the sending node (name, or name*)"),
    key("links.pair[].to", Required, "the receiving node; client is the instrument"),
    key("links.pair[].delay", Rule(AS_OTHERS), "as links.delay, on these links"),
    key("links.pair[].jitter", Rule(AS_OTHERS), "as links.jitter, on these links"),
    key("links.pair[].loss", Rule(AS_OTHERS), "as links.loss, on these links"),
    key("links.pair[].bandwidth", Rule(AS_OTHERS), "as links.bandwidth, on these links"),
    key("links.pair[].reorder", Rule(AS_OTHERS), "as links.reorder, on these links"),
    key(
        "disk.nodes",
        Required,
        "nodes that keep their files on a disk of the testbed's own (a list)",
    ),
    key("disk.size", Fixed("1GiB"), "what it takes; it is held in Assay's memory"),
    key(
        "disk.names",
        Fixed("journal"),
        "when names are durable: journal (as ext4), strict (as POSIX)",
    ),
    key("disk.sync_delay", Fixed("0s"), "every fsync and fdatasync takes this much longer"),
    key("disk.read_delay", Fixed("0s"), "every read that the kernel's cache cannot answer"),
    key("disk.write_delay", Fixed("0s"), "every write"),
    key("fault[].at", Required, "time after the start of the measured window"),
    key("fault[].for", Nothing, "how long; what cannot be undone has no length"),
    key("expect[].at", Nothing, "which settings, by axis; all without it"),
    key("expect[].verdict", Required, "the verdict that they should have: pass, fail, invalid"),
    key("report.tables[].rows", Rule("the only axis"), "axis down the side"),
    key("report.tables[].group", Nothing, "axes that make a table each"),
    key("report.tables[].columns", Required, "metrics, or the axis along the top"),
    key("report.tables[].cell", Nothing, "the metric in each cell, with an axis along the top"),
    key("report.tables[].unit", Fixed(""), "unit of durations: ns, us, ms or s"),
];

/// Names of variables, or beginnings of names, that are not about experiments.
pub const VARIABLES_OTHER: &[&str] = &[
    "ASSAY_TEST_",
    "ASSAY_BENCH_",
    "ASSAY_GOLDEN",
    "ASSAY_CACHE",
    "ASSAY_CONFIG",
    "ASSAY_DRIVER",
    "ASSAY_URING",
    "ASSAY_RUNS",
    "ASSAY_VERSION",
];

/// Tables whose keys belong to an adapter: their first part is fixed, the rest of a name is the key.
const OPEN_ENDED: [&str; 2] = ["system.deploy", "workload"];

/// The path that a variable sets. `ASSAY_LOAD_BACKLOG_MAX` is the key of [`KEYS`] that reads so when its
/// dots are underscores, `load.backlog_max`; under `system.deploy` and `workload`, whose keys only an adapter
/// knows, the rest of the name is one key (`ASSAY_WORKLOAD_VALUE_SIZE` is `workload.value_size`). Two
/// underscores are always a dot (`ASSAY_SYSTEM_DEPLOY__WATCH__QUEUE` is `system.deploy.watch.queue`).
///
/// # Errors
/// The nearest variable that exists, in words, or nothing.
pub fn variable_path(name: &str) -> Result<String, Option<String>> {
    let lower = name.strip_prefix("ASSAY_").unwrap_or(name).to_ascii_lowercase();
    let flat = lower.replace("__", "_");
    for key in KEYS.iter().filter(|key| !key.path.contains("[]")) {
        if key.path.replace('.', "_") == flat {
            return Ok(key.path.to_owned());
        }
    }
    for table in OPEN_ENDED {
        let prefix = format!("{}_", table.replace('.', "_"));
        if flat.starts_with(&prefix) {
            // The table's own part may be written with one underscore or two a dot.
            let own = lower.len() - lower_rest(&lower, &prefix).len();
            let rest = lower[own..].trim_start_matches('_');
            if !rest.is_empty() {
                return Ok(format!("{table}.{}", rest.replace("__", ".")));
            }
        }
    }
    let known: Vec<String> = KEYS
        .iter()
        .filter(|key| !key.path.contains("[]"))
        .map(|key| format!("ASSAY_{}", key.path.replace('.', "_").to_ascii_uppercase()))
        .collect();
    Err(did_you_mean(name, known.iter().map(String::as_str)))
}

/// What follows `prefix` in `lower`, where underscores of the prefix may be doubled.
fn lower_rest<'a>(lower: &'a str, prefix: &str) -> &'a str {
    let mut rest = lower;
    for part in prefix.split_terminator('_') {
        rest = rest.strip_prefix(part).unwrap_or(rest);
        rest = rest.strip_prefix("__").or_else(|| rest.strip_prefix('_')).unwrap_or(rest);
    }
    rest
}

/// The fixed default of a key.
///
/// # Panics
/// If the key has none: a mistake in this crate, which its tests would show.
pub(crate) fn fixed(path: &str) -> &'static str {
    match KEYS.iter().find(|key| key.path == path).map(|key| key.fallback) {
        Some(Fixed(text)) => text,
        _ => unreachable!("`{path}` has no fixed default in KEYS"),
    }
}

pub(crate) fn fixed_duration(path: &str) -> Duration {
    parse_duration(fixed(path)).expect("defaults are written correctly; a test reads them all")
}

pub(crate) fn fixed_integer(path: &str) -> u64 {
    fixed(path).parse().expect("defaults are written correctly; a test reads them all")
}

pub(crate) fn fixed_count(path: &str) -> u32 {
    fixed(path).parse().expect("defaults are written correctly; a test reads them all")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: no two keys share a variable's name, so a name means one path.
    #[test]
    fn variable_names_are_unique() {
        let mut names = std::collections::BTreeSet::new();
        for key in KEYS.iter().filter(|key| !key.path.contains("[]")) {
            assert!(names.insert(key.path.replace('.', "_")), "{}", key.path);
        }
    }

    /// Claim: underscores in a variable's name are told apart from dots, in known and in open-ended tables.
    #[test]
    fn variables_map_to_paths() {
        for (name, path) in [
            ("ASSAY_LOAD_RATE", "load.rate"),
            ("ASSAY_LOAD_RATE_PER", "load.rate_per"),
            ("ASSAY_LOAD_BACKLOG_MAX", "load.backlog_max"),
            ("ASSAY_LOAD__BACKLOG_MAX", "load.backlog_max"),
            ("ASSAY_LOAD_BURST_EVERY", "load.burst.every"),
            ("ASSAY_SEED", "seed"),
            ("ASSAY_SYSTEM_KIND", "system.kind"),
            ("ASSAY_WORKLOAD_VALUE_SIZE", "workload.value_size"),
            ("ASSAY_SYSTEM_DEPLOY_RETRY_MAX", "system.deploy.retry_max"),
            ("ASSAY_SYSTEM__DEPLOY__RETRY_MAX", "system.deploy.retry_max"),
            ("ASSAY_SYSTEM_DEPLOY_WATCH__QUEUE_TO_CACHE", "system.deploy.watch.queue_to_cache"),
        ] {
            assert_eq!(variable_path(name).as_deref(), Ok(path), "{name}");
        }
        let near = variable_path("ASSAY_LOAD_RAET");
        assert_eq!(near, Err(Some("did you mean `ASSAY_LOAD_RATE`?".to_owned())));
        assert!(variable_path("ASSAY_WORKLOAD_").is_err());
    }
}
