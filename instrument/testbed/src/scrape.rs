//! Metrics that nodes serve themselves, over HTTP in Prometheus's text format.

use std::net::SocketAddr;

/// What is to be asked of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scrape {
    /// The source of the samples: the node's name.
    pub source: String,
    /// Where it serves them.
    pub address: SocketAddr,
    /// On which path: `/metrics`.
    pub path: String,
    /// Which of them are kept.
    pub series: Vec<ScrapeSeries>,
}

/// One metric that is kept. Where a metric has several lines (labels), their sum is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrapeSeries {
    /// As the node calls it: `cometbft_mempool_size`.
    pub metric: String,
    /// As the record calls it, with the unit last: `mempool_transactions`.
    pub name: String,
    /// Whether it is a counter of which the increase each second is kept.
    pub per_second: bool,
}
