//! What is counted, and how it is shown to Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::routes::ROUTES;

/// Statuses that are counted by themselves.
const STATUSES: [u16; 17] =
    [200, 204, 400, 401, 404, 405, 408, 422, 429, 500, 502, 503, 504, 101, 202, 304, 413];
/// Upper ends of the buckets of durations, in seconds.
const BOUNDS_S: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];
/// Methods that the node is asked.
pub const METHODS: [&str; 19] = [
    "eth_blockNumber",
    "eth_getBlockByNumber",
    "eth_getBlockByHash",
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getLogs",
    "eth_call",
    "eth_chainId",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionCount",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_estimateGas",
    "eth_feeHistory",
    "eth_sendRawTransaction",
    "other",
];
const FAILURES: [&str; 9] = [
    "limited",
    "kept_back",
    "unreachable",
    "garbage",
    "too_large",
    "late",
    "refused",
    "busy",
    "other_chain",
];
/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was kept.
    Cache,
    /// Others had asked for the same.
    Coalesced,
    /// The node was asked.
    Node,
}
const SOURCES: [&str; 3] = ["cache", "coalesced", "node"];

/// Durations by bucket.
#[derive(Default)]
struct Durations {
    buckets: [AtomicU64; BOUNDS_S.len() + 1],
    sum_ns: AtomicU64,
}

impl Durations {
    fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS_S.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS_S.len());
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    fn show(&self, name: &str, out: &mut String) {
        let _ = writeln!(out, "# TYPE {name} histogram");
        let mut below = 0;
        for (bound, bucket) in BOUNDS_S.iter().zip(&self.buckets) {
            below += bucket.load(Relaxed);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {below}");
        }
        below += self.buckets[BOUNDS_S.len()].load(Relaxed);
        let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {below}\n{name}_count {below}");
        let seconds = Duration::from_nanos(self.sum_ns.load(Relaxed)).as_secs_f64();
        let _ = writeln!(out, "{name}_sum {seconds}");
    }
}

/// Everything that is counted.
#[derive(Default)]
pub struct Metrics {
    requests: [[AtomicU64; STATUSES.len()]; ROUTES.len()],
    sources: [AtomicU64; SOURCES.len()],
    gateway: Durations,
    node: Durations,
    calls: [AtomicU64; METHODS.len()],
    failures: [AtomicU64; FAILURES.len()],
    posts: AtomicU64,
    failovers: AtomicU64,
    connections: AtomicU64,
    connections_refused: AtomicU64,
}

impl Metrics {
    /// A request was answered: by route and status, the gateway's own time and the node's.
    pub fn answered(&self, route: usize, status: u16, gateway: Duration, node: Option<Duration>) {
        // A status that is not in the list is none of this program's.
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(9);
        self.requests[route][status].fetch_add(1, Relaxed);
        self.gateway.add(gateway);
        if let Some(node) = node {
            self.node.add(node);
        }
    }

    /// An answer came from there.
    pub fn came_from(&self, source: Source) {
        self.sources[source as usize].fetch_add(1, Relaxed);
    }

    /// Which part of answers came from what was kept.
    #[cfg(test)]
    pub fn share_from_cache(&self) -> f64 {
        let counts: Vec<f64> =
            self.sources.iter().map(|count| f64::from(count.load(Relaxed) as u32)).collect();
        counts[0] / counts.iter().sum::<f64>().max(1.0)
    }

    /// A call went on to another node.
    pub fn failed_over(&self) {
        self.failovers.fetch_add(1, Relaxed);
    }

    /// A post with these methods went to the node.
    pub fn posted<'a>(&self, methods: impl Iterator<Item = &'a str>) {
        self.posts.fetch_add(1, Relaxed);
        for method in methods {
            let place = METHODS.iter().position(|known| *known == method);
            self.calls[place.unwrap_or(METHODS.len() - 1)].fetch_add(1, Relaxed);
        }
    }

    /// A call failed.
    pub fn failed(&self, word: &str) {
        let place = FAILURES.iter().position(|known| *known == word);
        if let Some(place) = place {
            self.failures[place].fetch_add(1, Relaxed);
        }
    }

    /// A call was not sent, because the limiter would have refused it.
    pub fn kept_back(&self) {
        self.failed("kept_back");
    }

    /// A client connected.
    pub fn opened(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    /// A client's connection ended.
    pub fn closed(&self) {
        self.connections.fetch_sub(1, Relaxed);
    }

    /// A client's connection was one too many.
    pub fn refused_connection(&self) {
        self.connections_refused.fetch_add(1, Relaxed);
    }

    /// All of it in Prometheus's text format.
    pub fn show(&self, cache: Option<(u64, u64)>) -> String {
        let mut out = String::with_capacity(4096);
        out.push_str("# TYPE eth_gateway_requests_total counter\n");
        for (route, statuses) in ROUTES.iter().zip(&self.requests) {
            for (status, count) in STATUSES.iter().zip(statuses) {
                let count = count.load(Relaxed);
                if count > 0 {
                    let name = route.name;
                    let _ = writeln!(
                        out,
                        "eth_gateway_requests_total{{route=\"{name}\",status=\"{status}\"}} {count}"
                    );
                }
            }
        }
        let listed =
            |out: &mut String, name: &str, label: &str, words: &[&str], counts: &[AtomicU64]| {
                let _ = writeln!(out, "# TYPE {name} counter");
                for (word, count) in words.iter().zip(counts) {
                    let _ = writeln!(out, "{name}{{{label}=\"{word}\"}} {}", count.load(Relaxed));
                }
            };
        listed(&mut out, "eth_gateway_answers_total", "source", &SOURCES, &self.sources);
        listed(&mut out, "eth_gateway_node_calls_total", "method", &METHODS, &self.calls);
        listed(&mut out, "eth_gateway_node_failures_total", "why", &FAILURES, &self.failures);
        self.gateway.show("eth_gateway_own_seconds", &mut out);
        self.node.show("eth_gateway_node_seconds", &mut out);
        let (posts, refused) = (self.posts.load(Relaxed), self.connections_refused.load(Relaxed));
        let _ = writeln!(
            out,
            "# TYPE eth_gateway_node_posts_total counter\neth_gateway_node_posts_total {posts}"
        );
        let _ = writeln!(
            out,
            "# TYPE eth_gateway_connections_refused_total counter\neth_gateway_connections_refused_total {refused}"
        );
        let failovers = self.failovers.load(Relaxed);
        let _ = writeln!(
            out,
            "# TYPE eth_gateway_failovers_total counter\neth_gateway_failovers_total {failovers}"
        );
        let open = self.connections.load(Relaxed);
        let _ =
            writeln!(out, "# TYPE eth_gateway_connections gauge\neth_gateway_connections {open}");
        if let Some((entries, bytes)) = cache {
            let _ = writeln!(
                out,
                "# TYPE eth_gateway_cache_entries gauge\neth_gateway_cache_entries {entries}"
            );
            let _ = writeln!(
                out,
                "# TYPE eth_gateway_cache_bytes gauge\neth_gateway_cache_bytes {bytes}"
            );
        }
        out
    }
}
