//! What the node says of itself, and what that is: names that nobody else knows, and all that may be made of them.

use std::net::SocketAddr;

use model::series::{SeriesFacts, SeriesUnit};
use sut::{Scrape, ScrapeSeries};

/// Nodes are not asked at one instant, and one at full speed serves a few hundred transactions in between.
const WITH_MAX: u32 = 1_000;
/// At most so many behind, one is near the others.
const NEAR_MAX: u32 = 10_000;

/// What is to be asked of the node called `source`.
pub(crate) fn scrape(source: &str, address: SocketAddr) -> Scrape {
    let of = SeriesFacts::of_node;
    let kept = ScrapeSeries::new;
    let length = of("backlog", "transactions that wait or are being served", unit()).adding_up();
    let served = of("served", "transactions served", unit());
    let rate = of("served_each_second", "transactions served", SeriesUnit::PerSecond);
    let series = vec![
        kept("echo_queue_length", length.foremost(), false),
        kept("echo_commits_total", served.progress("transactions", WITH_MAX, NEAR_MAX), false),
        kept("echo_commits_total", rate.throughput("served transactions"), true),
    ];
    Scrape::new(source, address, series)
}

fn unit() -> SeriesUnit {
    SeriesUnit::of("transactions")
}
