//! Which of the metrics that a node serves are kept, and what they are called in the record: the unit is last.
//! Names are those of version 0.38; another namespace is the experiment's.

use std::net::SocketAddr;

use sut::{Scrape, ScrapeSeries};

/// Whether the value is kept as it is, or its increase each second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Value,
    PerSecond,
}

use Keep::{PerSecond, Value};

/// The namespace of a node's own metrics unless its file says otherwise.
pub(crate) const NAMESPACE: &str = "cometbft";

/// What a node says of itself: `<namespace>_<metric>`, the name in the record: what the published reports plot, and
/// what says why. Memory is not asked for: the host says it of every process.
const OF_THE_NODE: [(&str, &str, Keep); 20] = [
    ("consensus_height", "height_blocks", Value),
    ("consensus_height", "blocks_per_second", PerSecond),
    ("consensus_rounds", "round_rounds", Value),
    ("consensus_num_txs", "block_transactions", Value),
    ("consensus_total_txs", "committed_transactions", Value),
    ("consensus_total_txs", "committed_transactions_per_second", PerSecond),
    ("consensus_block_size_bytes", "block_size_bytes", Value),
    ("consensus_missing_validators", "missing_validators_nodes", Value),
    ("consensus_quorum_prevote_delay", "quorum_prevote_delay_seconds", Value),
    ("blocksync_syncing", "block_syncing_flag", Value),
    ("mempool_size", "mempool_transactions", Value),
    ("mempool_size_bytes", "mempool_bytes", Value),
    ("mempool_failed_txs", "mempool_failed_transactions", Value),
    ("mempool_rejected_txs", "mempool_rejected_transactions", Value),
    ("mempool_evicted_txs", "mempool_evicted_transactions", Value),
    ("mempool_recheck_times", "mempool_rechecked_transactions_per_second", PerSecond),
    ("p2p_peers", "peers_nodes", Value),
    ("p2p_message_receive_bytes_total", "received_bytes_per_second", PerSecond),
    ("p2p_message_send_bytes_total", "sent_bytes_per_second", PerSecond),
    ("p2p_peer_pending_send_bytes", "pending_send_bytes", Value),
];

/// What its runtime says.
const OF_THE_RUNTIME: [(&str, &str, Keep); 1] = [("go_goroutines", "goroutines", Value)];

/// What is to be asked of the node called `source`, which serves its metrics at `address`.
pub(crate) fn scrape(source: &str, address: SocketAddr, namespace: &str) -> Scrape {
    let of_the_node = OF_THE_NODE.iter();
    let of_the_node =
        of_the_node.map(|(metric, name, keep)| (format!("{namespace}_{metric}"), *name, *keep));
    let of_the_runtime = OF_THE_RUNTIME.iter();
    let of_the_runtime =
        of_the_runtime.map(|(metric, name, keep)| ((*metric).to_owned(), *name, *keep));
    let series = of_the_node.chain(of_the_runtime).map(|(metric, name, keep)| ScrapeSeries {
        metric,
        name: name.to_owned(),
        per_second: keep == PerSecond,
    });
    let path = "/metrics".to_owned();
    Scrape { source: source.to_owned(), address, path, series: series.collect() }
}
