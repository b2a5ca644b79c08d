//! What a replica says of itself, and what that is: names that nobody else knows, and all that may be made of them.

use std::net::SocketAddr;

use model::series::{SeriesFacts, SeriesUnit};
use sut::{Scrape, ScrapeSeries};

/// Replicas are not asked at one instant, and one at full speed executes this many in between.
const WITH_MAX: u32 = 20_000;
/// At most so many behind, one is near the others.
const NEAR_MAX: u32 = 100_000;

/// What is to be asked of the replica called `source`.
pub(crate) fn scrape(source: &str, address: SocketAddr) -> Scrape {
    let of = SeriesFacts::of_node;
    let kept = ScrapeSeries::new;
    let transactions = || SeriesUnit::of("transactions");
    let position = of("position", "transactions executed", transactions());
    let rate = of("executed_each_second", "transactions executed", SeriesUnit::PerSecond);
    let entries =
        of("entries_each_second", "entries of the log carried out", SeriesUnit::PerSecond);
    let held = of("held", "bytes held, as they count for the bound", SeriesUnit::Bytes);
    let series = vec![
        kept("kv_position_total", position.progress("transactions", WITH_MAX, NEAR_MAX), false),
        kept("kv_position_total", rate.throughput("executed transactions"), true),
        kept("kv_entries_total", entries, true),
        kept("kv_bytes", held, false),
    ];
    Scrape::new(source, address, series)
}
