//! Which of the metrics that a node serves are kept, and what they are in the record: names, words, units, what adds up
//! over nodes, what is progress. Where a quantity is meant, the unit is last in the name.
//! Names are those of version 0.38; another namespace is the experiment's.

use std::net::SocketAddr;

use model::series::{SeriesFacts, SeriesUnit};
use sut::{Scrape, ScrapeSeries};

/// Whether the value is kept as it is, or its increase each second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Value,
    Increase,
}

use Keep::{Increase, Value};
use SeriesUnit::{Bytes, BytesPerSecond, Number, PerSecond};

/// The namespace of a node's own metrics unless its file says otherwise.
pub(crate) const NAMESPACE: &str = "cometbft";

/// Nodes are not asked at one instant: at most so many blocks behind the highest, one is with the others.
const WITH_BLOCKS_MAX: u32 = 1;
/// At most so many behind, it is near them.
const NEAR_BLOCKS_MAX: u32 = 10;

/// What a node says of itself: `<namespace>_<metric>`, what it is in the record, and how it is kept: what the published
/// reports plot, and what says why, in the order in which it is shown. Memory is not asked for: the host says it of every
/// process.
fn of_the_node() -> Vec<(&'static str, SeriesFacts, Keep)> {
    let of = SeriesFacts::of_node;
    let (blocks, nodes, rounds) = (unit("blocks"), unit("nodes"), unit("rounds"));
    let transactions = unit("transactions");
    vec![
        (
            "mempool_size",
            of("mempool_transactions", "mempool", transactions.clone()).adding_up().foremost(),
            Value,
        ),
        (
            "mempool_size_bytes",
            of("mempool_bytes", "mempool, bytes", Bytes).adding_up().foremost(),
            Value,
        ),
        (
            "consensus_height",
            of("height_blocks", "height", blocks).progress(
                "blocks",
                WITH_BLOCKS_MAX,
                NEAR_BLOCKS_MAX,
            ),
            Value,
        ),
        ("p2p_peers", of("peers_nodes", "peers", nodes.clone()).foremost(), Value),
        ("consensus_rounds", of("round_rounds", "round", rounds).foremost(), Value),
        ("consensus_height", of("blocks_per_second", "blocks", PerSecond), Increase),
        (
            "consensus_num_txs",
            of("block_transactions", "transactions in the latest block", transactions.clone()),
            Value,
        ),
        (
            "consensus_total_txs",
            of("committed_transactions", "committed since the node began", transactions.clone()),
            Value,
        ),
        (
            "consensus_total_txs",
            of("committed_transactions_per_second", "committed transactions", PerSecond)
                .throughput("committed transactions"),
            Increase,
        ),
        ("consensus_block_size_bytes", of("block_size_bytes", "block size", Bytes), Value),
        (
            "consensus_missing_validators",
            of("missing_validators_nodes", "missing validators", nodes),
            Value,
        ),
        (
            "consensus_quorum_prevote_delay",
            of("quorum_prevote_delay_seconds", "quorum prevote delay", unit("s")),
            Value,
        ),
        ("blocksync_syncing", of("block_syncing_flag", "syncing blocks", Number), Value),
        (
            "mempool_failed_txs",
            of("mempool_failed_transactions", "failed in the mempool", transactions.clone()),
            Value,
        ),
        (
            "mempool_rejected_txs",
            of("mempool_rejected_transactions", "rejected by the mempool", transactions.clone()),
            Value,
        ),
        (
            "mempool_evicted_txs",
            of("mempool_evicted_transactions", "evicted from the mempool", transactions),
            Value,
        ),
        (
            "mempool_recheck_times",
            of("mempool_rechecked_transactions_per_second", "rechecked in the mempool", PerSecond),
            Increase,
        ),
        (
            "p2p_message_receive_bytes_total",
            of("received_bytes_per_second", "received from peers", BytesPerSecond).adding_up(),
            Increase,
        ),
        (
            "p2p_message_send_bytes_total",
            of("sent_bytes_per_second", "sent to peers", BytesPerSecond).adding_up(),
            Increase,
        ),
        (
            "p2p_peer_pending_send_bytes",
            of("pending_send_bytes", "waiting to be sent to peers", Bytes),
            Value,
        ),
    ]
}

fn unit(of: &str) -> SeriesUnit {
    SeriesUnit::of(of)
}

/// What is to be asked of the node called `source`, which serves its metrics at `address`.
pub(crate) fn scrape(source: &str, address: SocketAddr, namespace: &str) -> Scrape {
    let of_the_node = of_the_node().into_iter();
    let of_the_node =
        of_the_node.map(|(metric, series, keep)| (format!("{namespace}_{metric}"), series, keep));
    // What its runtime says.
    let goroutines = SeriesFacts::of_node("goroutines", "goroutines", Number);
    let all = of_the_node.chain([("go_goroutines".to_owned(), goroutines, Value)]);
    let series =
        all.map(|(metric, series, keep)| ScrapeSeries::new(&metric, series, keep == Increase));
    Scrape::new(source, address, series.collect())
}
