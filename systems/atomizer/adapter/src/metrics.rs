//! What nodes say of themselves, and what that is.

use std::net::SocketAddr;

use model::series::{SeriesFacts, SeriesUnit};
use sut::{Scrape, ScrapeSeries};

/// What is to be asked of an archiver.
pub(crate) fn archiver(source: &str, address: SocketAddr) -> Scrape {
    let of = SeriesFacts::of_node;
    let height = of("archived_height", "the last block that is durable", SeriesUnit::of("blocks"));
    let rate = of("archived_each_second", "transactions archived", SeriesUnit::PerSecond);
    let series = vec![
        ScrapeSeries::new("archiver_height", height, false),
        ScrapeSeries::new(
            "archiver_transactions_total",
            rate.throughput("archived transactions"),
            true,
        ),
    ];
    Scrape::new(source, address, series)
}

/// What is to be asked of an atomizer.
pub(crate) fn atomizer(source: &str, address: SocketAddr) -> Scrape {
    let of = SeriesFacts::of_node;
    let rate = |name: &str, words: &str| of(name, words, SeriesUnit::PerSecond);
    let series = vec![
        ScrapeSeries::new(
            "atomizer_received_total",
            rate("received_each_second", "notifications received"),
            true,
        ),
        ScrapeSeries::new(
            "atomizer_admitted_total",
            rate("admitted_each_second", "transactions admitted"),
            true,
        ),
        ScrapeSeries::new(
            "atomizer_expired_total",
            rate("expired_each_second", "transactions expired"),
            true,
        ),
    ];
    Scrape::new(source, address, series)
}

/// The series that a shard serves.
pub(crate) fn shard(source: &str, address: SocketAddr) -> Scrape {
    let of = SeriesFacts::of_node;
    let rate = |name: &str, words: &str| of(name, words, SeriesUnit::PerSecond);
    let series = vec![
        ScrapeSeries::new(
            "shard_vouched_total",
            rate("vouched_each_second", "inputs vouched for"),
            true,
        ),
        ScrapeSeries::new(
            "shard_spent_total",
            rate("refused_each_second", "transactions that shards refused as spent"),
            true,
        ),
    ];
    Scrape::new(source, address, series)
}
