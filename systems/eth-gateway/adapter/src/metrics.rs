//! What the gateway says of itself while it is loaded: how often it asks its node, which is what its savings are about.

use std::net::SocketAddr;

use model::series::{SeriesFacts, SeriesUnit};
use sut::{Scrape, ScrapeSeries};

/// What is to be asked of the gateway called `source`.
pub(crate) fn scrape(source: &str, address: SocketAddr) -> Scrape {
    let of = SeriesFacts::of_node;
    let kept = ScrapeSeries::new;
    let count = |what: &str| SeriesUnit::of(what);
    let series = vec![
        kept(
            "eth_gateway_requests_total",
            of("requests", "requests answered", count("requests")),
            false,
        ),
        kept(
            "eth_gateway_node_calls_total",
            of("node_calls", "calls of the node", count("calls")),
            false,
        ),
        kept(
            "eth_gateway_node_calls_total",
            of("node_calls_each_second", "calls of the node", SeriesUnit::PerSecond),
            true,
        ),
        kept(
            "eth_gateway_node_failures_total",
            of("node_failures", "calls of the node that failed or were kept back", count("calls")),
            false,
        ),
    ];
    Scrape::new(source, address, series)
}
