//! The numbers that stand alone: one entry each, and nothing of them anywhere else.
//!
//! From this list come the names that thresholds and table columns know, their suggestions, units and values, what makes
//! them doubtful, and the tables of docs/reference/metrics.md. Latencies with a word (`p99`, `committed.mean`) and
//! numbers of stages and series are made of parts and stand in `metric_names`.

use model::result::{
    BatchesResult, Family, Fates, FlowResult, HealthResult, LatencyResult, ProcessorOf,
    StatedLatency, TrialResult,
};
use model::series::OWN_PROCESSOR;

use crate::figures::float::to_f64;
use crate::figures::vegeta::time as vegeta_time;
use crate::names::need::Need;
use crate::names::unit::Unit;

/// A number that stands alone.
pub(crate) struct Entry {
    pub name: &'static str,
    /// A former name, still understood.
    pub alias: Option<&'static str>,
    pub section: Section,
    pub unit: Unit,
    pub meaning: &'static str,
    /// The families that it is made of: an audit that voids one voids the number.
    pub needs: &'static [Need],
    pub value: Value,
}

/// How a number is taken from a trial; `None` where the trial has none.
pub(crate) enum Value {
    Number(fn(&TrialResult) -> Option<f64>),
    Text(fn(&TrialResult) -> String),
}

/// Where a number stands in the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Latencies,
    Rates,
    Connections,
    Attempts,
    Fates,
    Flows,
    Stated,
    Vegeta,
}

use Section::{Attempts, Connections, Flows, Latencies, Rates, Stated, Vegeta};
use Unit::{Bytes, Count, Ns, Number, PerSecond, Ratio};

const BYTES: &[Need] = &[Need::of(Family::Bytes)];
const COMMITTED: &[Need] = &[Need::of(Family::Committed)];
/// Counted by the engine as they happen, whatever answers turn out to mean.
const ENGINE: &[Need] = &[];
const FAILURES: &[Need] = &[Need::of(Family::Failures), Need::of(Family::Timeouts)];
const FATES: &[Need] = &[Need::of(Family::Fates)];
const OFFERED: &[Need] = &[Need::of(Family::Offered)];
const OUTSTANDING: &[Need] = &[Need::of(Family::Outstanding)];
const PROCESSOR: &[Need] = &[Need::of(Family::Series), Need::against(Family::Committed)];
const RESPONSE: &[Need] = &[Need::of(Family::Response)];
const SENT: &[Need] = &[Need::of(Family::Sent)];
const SERVICE: &[Need] = &[Need::of(Family::Service)];
const STATED: &[Need] = &[Need::of(Family::Stated)];
const SUCCESS: &[Need] = &[
    Need::of(Family::Committed),
    Need::against(Family::Failures),
    Need::against(Family::Timeouts),
];
const CODES: &[Need] =
    &[Need::of(Family::Committed), Need::of(Family::Failures), Need::of(Family::Timeouts)];
const TIMEOUTS: &[Need] = &[Need::of(Family::Timeouts)];

/// All of them, in alphabetical order.
pub(crate) const ENTRIES: &[Entry] = &[
    entry(
        "acknowledged_early",
        Count,
        Section::Fates,
        FATES,
        "acknowledged, and in the ledger only at its second reading (`ledger.settle`)",
        |t| fate(t, |f| f.acknowledged_early),
    ),
    entry("attempts.max", Count, Attempts, SENT, "the most attempts of any transaction", |t| {
        some(t.attempts.max)
    }),
    entry(
        "attempts.mean",
        Number,
        Attempts,
        SENT,
        "attempts ÷ transactions that were sent at least once",
        |t| t.attempts.mean,
    ),
    entry(
        "batches.completion",
        Ratio,
        Attempts,
        SENT,
        "share of batches sent because the previous one had completed",
        |t| share(t, |b| b.completion),
    ),
    entry("batches.count", Count, Attempts, SENT, "batches sent", |t| some(batches(t)?.count)),
    entry(
        "batches.delay",
        Ratio,
        Attempts,
        SENT,
        "share of batches sent because their first transaction had waited for `delay_max`",
        |t| share(t, |b| b.delay),
    ),
    entry(
        "batches.drain",
        Ratio,
        Attempts,
        SENT,
        "share of batches sent because the load was over",
        |t| share(t, |b| b.drain),
    ),
    entry(
        "batches.full",
        Ratio,
        Attempts,
        SENT,
        "share of batches sent because they were full",
        |t| share(t, |b| b.full),
    ),
    entry("batches.size.max", Count, Attempts, SENT, "transactions of the largest batch", |t| {
        some(batches(t)?.size_max?)
    }),
    entry("batches.size.mean", Number, Attempts, SENT, "transactions of a batch", |t| {
        batches(t)?.size_mean
    }),
    entry("bytes_in", Bytes, Rates, BYTES, "bytes of received bodies", |t| some(t.vegeta.bytes_in)),
    entry("bytes_out", Bytes, Rates, BYTES, "bytes of sent bodies", |t| some(t.vegeta.bytes_out)),
    entry(
        "committed",
        PerSecond,
        Rates,
        COMMITTED,
        "as `goodput`; any stage's name is the rate at which it was reached in time",
        // A load that ends before a stage of that name says nothing of it.
        |t| t.load_goes_to("committed").then_some(t.rates.goodput_per_s),
    ),
    entry("committed.count", Count, Rates, COMMITTED, "reached the final stage, whenever", |t| {
        some(t.counts.committed)
    }),
    entry(
        "connections.answers.max",
        Count,
        Connections,
        ENGINE,
        "the most answers on one connection",
        |t| health(t, |h| h.answers_max),
    ),
    entry(
        "connections.answers.mean",
        Number,
        Connections,
        ENGINE,
        "answers on one connection",
        |t| t.health.as_ref()?.answers_mean,
    ),
    entry(
        "connections.answers.min",
        Count,
        Connections,
        ENGINE,
        "the fewest answers on one connection",
        |t| health(t, |h| h.answers_min),
    ),
    entry(
        "connections.closed",
        Count,
        Connections,
        ENGINE,
        "closed by the system in good order",
        |t| health(t, |h| h.closed),
    ),
    entry(
        "connections.doubtful",
        Count,
        Connections,
        ENGINE,
        "answers on connections that broke the protocol later",
        |t| health(t, |h| h.doubtful),
    ),
    entry(
        "connections.lost",
        Count,
        Connections,
        ENGINE,
        "transactions that had been sent and not answered when their connection was lost",
        |t| health(t, |h| h.lost),
    ),
    entry(
        "connections.opened",
        Count,
        Connections,
        ENGINE,
        "TCP connections on which transactions could go",
        |t| health(t, |h| h.opened),
    ),
    entry(
        "connections.protocol_errors",
        Count,
        Connections,
        ENGINE,
        "protocol errors of the server; each ended its connection",
        |t| health(t, |h| h.protocol_errors),
    ),
    entry(
        "connections.reopened",
        Count,
        Connections,
        ENGINE,
        "connections that took the place of a lost one",
        |t| health(t, |h| h.reopened),
    ),
    entry(
        "connections.reset",
        Count,
        Connections,
        ENGINE,
        "reset by the system or broken in the network",
        |t| health(t, |h| h.reset),
    ),
    entry(
        "connections.unasked_bytes",
        Bytes,
        Connections,
        ENGINE,
        "unsolicited bytes received",
        |t| health(t, |h| h.unasked_bytes),
    ),
    entry(
        "connections.unopened",
        Count,
        Connections,
        ENGINE,
        "connections that could not be opened",
        |t| health(t, |h| h.unopened),
    ),
    entry("duplicates", Count, Section::Fates, FATES, "in the ledger more than once", |t| {
        fate(t, |f| f.duplicate)
    }),
    entry("entries", Count, Section::Fates, FATES, "entries of the ledger", |t| {
        fate(t, |f| f.entries)
    }),
    entry("errors", Count, Rates, FAILURES, "transactions with an error text", |t| {
        some(t.errors.iter().map(|error| error.count).sum())
    }),
    entry(
        "flow.completed",
        Count,
        Flows,
        SUCCESS,
        "users who began in the window and came to the end of their flow",
        |t| Some(to_f64(flows(t)?.completed)),
    ),
    entry("flow.max", Ns, Flows, RESPONSE, "longest flow of those that were completed", |t| {
        flows(t)?.max_ns.map(to_f64)
    }),
    entry("flow.p50", Ns, Flows, RESPONSE, "median flow of those that were completed", |t| {
        flows(t)?.p50_ns.map(to_f64)
    }),
    entry(
        "flow.p99",
        Ns,
        Flows,
        RESPONSE,
        "p99 of all flows that were begun, from when the first transaction was due to the last answer, thinking included; what \
         was not completed counts as infinite",
        |t| Some(flows(t)?.p99_of_all_ns.map_or(f64::INFINITY, to_f64)),
    ),
    entry("flow.rate", PerSecond, Flows, SUCCESS, "flows that were completed, per second", |t| {
        Some(flows(t)?.completed_per_s)
    }),
    entry("flow.success", Ratio, Flows, SUCCESS, "completed of the flows that were begun", |t| {
        let all = flows(t)?;
        Some(to_f64(all.completed) / to_f64(all.begun))
    }),
    entry(
        "goodput",
        PerSecond,
        Rates,
        COMMITTED,
        "reached the final stage in time: those due in the window that got there, less the growth of what is outstanding over it",
        |t| Some(t.rates.goodput_per_s),
    ),
    entry("inf", Count, Rates, FAILURES, "never reached the final stage", |t| {
        some(final_latency(t)?.inf)
    }),
    entry(
        "late",
        Count,
        Section::Fates,
        FATES,
        "no answer in time, in the ledger all the same",
        |t| fate(t, |f| f.late),
    ),
    entry("lost", Count, Section::Fates, FATES, "acknowledged, and not in the ledger", |t| {
        fate(t, |f| f.lost)
    }),
    entry("offered", PerSecond, Rates, OFFERED, "fell due in the window", |t| {
        Some(t.rates.offered_per_s)
    }),
    entry("offered.count", Count, Rates, OFFERED, "how many fell due in the window", |t| {
        some(t.counts.due)
    }),
    entry("once", Count, Section::Fates, FATES, "in the ledger exactly once", |t| {
        fate(t, |f| f.once)
    }),
    entry("outstanding.max", Count, Rates, OUTSTANDING, "the most outstanding at once", |t| {
        t.seconds.iter().map(|second| second.outstanding).max().map(to_f64)
    }),
    entry("phantom", Count, Section::Fates, FATES, "in the ledger, and never submitted", |t| {
        fate(t, |f| f.phantom)
    }),
    entry("planned", PerSecond, Rates, &[], "what the plan asks for", |t| t.rates.planned_per_s),
    entry(
        "processor.all",
        Ns,
        Rates,
        PROCESSOR,
        "processor time of this process and all nodes together in the window, for each transaction that was committed in it",
        |t| t.processor.ns_per_transaction,
    ),
    entry(
        "processor.generator",
        Ns,
        Rates,
        PROCESSOR,
        "the same of this process alone, its clients included",
        |t| {
            let own = |it: &&ProcessorOf| it.process == OWN_PROCESSOR.0;
            t.processor.processes.iter().find(own)?.ns_per_transaction
        },
    ),
    entry("refused_as_logged", Count, Section::Fates, FATES, "refused, and logged as such", |t| {
        fate(t, |f| f.refused_as_logged)
    }),
    entry(
        "refused_yet_present",
        Count,
        Section::Fates,
        FATES,
        "refused, and in the ledger all the same",
        |t| fate(t, |f| f.refused_yet_present),
    ),
    entry(
        "rejected",
        Count,
        Rates,
        FAILURES,
        "refused or failed; by class `rejected.CLASS`: bad_request, conflict, expired, limited, overloaded, server, transport, client",
        |t| some(t.counts.rejected),
    ),
    entry(
        "reordered",
        Count,
        Section::Fates,
        FATES,
        "in the ledger before one that was committed before they were due",
        |t| fate(t, |f| f.reordered),
    ),
    entry("resent", Count, Attempts, SENT, "transactions that were sent more than once", |t| {
        some(t.attempts.resent)
    }),
    entry(
        "restricted_mean",
        Ns,
        Latencies,
        RESPONSE,
        "restricted mean: over all that were due, where no answer counts with the timeout",
        |t| final_latency(t)?.restricted_mean_ns,
    ),
    entry("sent", PerSecond, Rates, SENT, "sent, of those that fell due in the window", |t| {
        Some(t.rates.sent_per_s)
    }),
    entry(
        "sent.count",
        Count,
        Rates,
        SENT,
        "how many of those that fell due in the window were sent",
        |t| some(t.counts.sent),
    ),
    entry("shed", Count, Rates, TIMEOUTS, "due, never sent", |t| some(t.counts.shed)),
    entry("stated.count", Count, Stated, STATED, "entries that state both times", |t| {
        some(stated(t)?.count)
    }),
    entry(
        "stated.duplicates",
        Count,
        Stated,
        STATED,
        "of them, entries of a transaction that came before",
        |t| some(stated(t)?.duplicates),
    ),
    entry("stated.max", Ns, Stated, STATED, "largest", |t| stated(t)?.max_ns.map(to_f64)),
    entry("stated.mean", Ns, Stated, STATED, "mean", |t| stated(t)?.mean_ns),
    entry("stated.min", Ns, Stated, STATED, "smallest", |t| stated(t)?.min_ns.map(to_f64)),
    entry("stated.negative", Count, Stated, STATED, "recorded before they were submitted", |t| {
        some(stated(t)?.negative)
    }),
    entry("stated.p50", Ns, Stated, STATED, "median", |t| stated(t)?.p50_ns.map(to_f64)),
    entry("stated.p99", Ns, Stated, STATED, "p99", |t| stated(t)?.p99_ns.map(to_f64)),
    entry("stated.stddev", Ns, Stated, STATED, "standard deviation", |t| stated(t)?.stddev_ns),
    entry("success", Ratio, Rates, SUCCESS, "committed of those that were due", |t| {
        (t.counts.due > 0).then(|| to_f64(t.counts.committed) / to_f64(t.counts.due))
    }),
    entry(
        "throughput.max",
        PerSecond,
        Rates,
        COMMITTED,
        "in the window of `measure.window` with the most commits",
        |t| Some(t.throughput_windows?.1),
    ),
    entry("throughput.min", PerSecond, Rates, COMMITTED, "in the one with the fewest", |t| {
        Some(t.throughput_windows?.0)
    }),
    entry(
        "trials",
        Count,
        Rates,
        OFFERED,
        "as `offered.count`: what studies with a probe call a trial",
        |t| some(t.counts.due),
    ),
    entry("unknown", Count, Rates, TIMEOUTS, "without an answer in time", |t| {
        some(t.counts.unknown)
    }),
    entry("vegeta.attack", Ns, Vegeta, SENT, "from the first send to the last", |t| {
        vegeta_time(t, |v| v.attack_ns)
    })
    .once("attack"),
    Entry {
        value: Value::Text(codes),
        ..entry("vegeta.codes", Unit::Text, Vegeta, CODES, "how often each status came", |_| None)
            .once("codes")
    },
    entry("vegeta.max", Ns, Vegeta, SERVICE, "largest", |t| vegeta_time(t, |v| v.max_ns)),
    entry("vegeta.mean", Ns, Vegeta, SERVICE, "mean", |t| vegeta_time(t, |v| v.mean_ns)),
    entry("vegeta.min", Ns, Vegeta, SERVICE, "smallest", |t| vegeta_time(t, |v| v.min_ns)),
    entry("vegeta.p50", Ns, Vegeta, SERVICE, "median", |t| vegeta_time(t, |v| v.p50_ns)),
    entry("vegeta.p90", Ns, Vegeta, SERVICE, "p90", |t| vegeta_time(t, |v| v.p90_ns)),
    entry("vegeta.p95", Ns, Vegeta, SERVICE, "p95", |t| vegeta_time(t, |v| v.p95_ns)),
    entry("vegeta.p99", Ns, Vegeta, SERVICE, "p99", |t| vegeta_time(t, |v| v.p99_ns)),
    entry("vegeta.rate", PerSecond, Vegeta, SENT, "requests ÷ attack", |t| Some(t.vegeta.rate))
        .once("rate"),
    entry("vegeta.requests", Count, Vegeta, SENT, "all results", |t| some(t.vegeta.requests))
        .once("requests"),
    entry("vegeta.success", Ratio, Vegeta, SUCCESS, "statuses 200 to 399 ÷ requests", |t| {
        (t.counts.due > 0).then_some(t.vegeta.success)
    }),
    entry("vegeta.throughput", PerSecond, Vegeta, COMMITTED, "successes ÷ (attack + wait)", |t| {
        Some(t.vegeta.throughput)
    })
    .once("throughput"),
    entry("vegeta.wait", Ns, Vegeta, SERVICE, "from the last send to the last answer", |t| {
        vegeta_time(t, |v| v.wait_ns)
    })
    .once("wait"),
];

const fn entry(
    name: &'static str,
    unit: Unit,
    section: Section,
    needs: &'static [Need],
    meaning: &'static str,
    value: fn(&TrialResult) -> Option<f64>,
) -> Entry {
    Entry { name, alias: None, section, unit, meaning, needs, value: Value::Number(value) }
}

/// Names are of one thing.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Entry {
    /// With the name that it had once.
    const fn once(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }
}

/// The number called `name`, or called so once.
pub(crate) fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name || entry.alias == Some(name))
}

/// `200:4566 404:234`, as vegeta prints them.
fn codes(trial: &TrialResult) -> String {
    let pairs = trial.vegeta.status_codes.iter().map(|(code, count)| format!("{code}:{count}"));
    pairs.collect::<Vec<_>>().join(" ")
}

/// The latency to the stage that counts as committed.
pub(crate) fn final_latency(trial: &TrialResult) -> Option<&LatencyResult> {
    trial.latency.iter().find(|latency| latency.stage == trial.final_stage)
}

fn fate(trial: &TrialResult, of: fn(&Fates) -> u64) -> Option<f64> {
    trial.fates.as_ref().map(|fates| to_f64(of(fates)))
}

fn health(trial: &TrialResult, of: fn(&HealthResult) -> u64) -> Option<f64> {
    trial.health.as_ref().map(|health| to_f64(of(health)))
}

/// All flows together; none where no user began one.
fn flows(trial: &TrialResult) -> Option<&FlowResult> {
    trial.flows.as_ref().map(|flows| &flows.all).filter(|all| all.begun > 0)
}

fn stated(trial: &TrialResult) -> Option<&StatedLatency> {
    trial.stated.as_ref()
}

fn batches(trial: &TrialResult) -> Option<&BatchesResult> {
    trial.batches.as_ref()
}

fn share(trial: &TrialResult, of: fn(&BatchesResult) -> u64) -> Option<f64> {
    let batches = batches(trial)?;
    (batches.count > 0).then(|| to_f64(of(batches)) / to_f64(batches.count))
}

#[expect(clippy::unnecessary_wraps, reason = "what an entry's function gives")]
fn some(count: u64) -> Option<f64> {
    Some(to_f64(count))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn table(section: Section) -> String {
        let mut text = "| name | meaning | unit |\n| --- | --- | --- |\n".to_owned();
        for entry in ENTRIES.iter().filter(|entry| entry.section == section) {
            let once = entry.alias.map(|alias| format!(" (once `{alias}`)")).unwrap_or_default();
            let unit = entry.unit.word();
            let _ = writeln!(text, "| `{}`{once} | {} | {unit} |", entry.name, entry.meaning);
        }
        text
    }

    /// Claim: names and old names are in order and each of one thing.
    #[test]
    fn names_are_of_one_thing() {
        assert!(ENTRIES.is_sorted_by_key(|entry| entry.name), "the list is alphabetical");
        let mut all: Vec<_> =
            ENTRIES.iter().flat_map(|it| [Some(it.name), it.alias]).flatten().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "a name twice");
    }

    /// Claim: the tables of docs/reference/metrics.md are this list; `ASSAY_TEST_BLESS=1` makes them so.
    #[test]
    fn the_page_is_the_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        let page = std::fs::read_to_string(path).unwrap();
        let mut made = page.clone();
        for section in
            [Latencies, Rates, Connections, Attempts, Section::Fates, Flows, Stated, Vegeta]
                .into_iter()
        {
            let (begin, end) = (format!("<!-- names: {section:?} -->\n"), "<!-- end -->");
            let from =
                made.find(&begin).unwrap_or_else(|| panic!("{section:?} is missing")) + begin.len();
            let length = made[from..].find(end).expect("each table has its end");
            made.replace_range(from..from + length, &format!("\n{}\n", table(section)));
        }
        if std::env::var_os("ASSAY_TEST_BLESS").is_some() {
            std::fs::write(path, &made).unwrap();
        } else {
            assert!(page == made, "docs/reference/metrics.md is not the list: ASSAY_TEST_BLESS=1");
        }
    }
}
