//! What the services say of themselves, and what that is.

use std::net::SocketAddr;

use model::series::{SeriesFacts, SeriesUnit};
use sut::{Scrape, ScrapeSeries};

/// A watcher is behind the pipelines by what is on its way.
const BLOCKS_WITH_MAX: u32 = 5;
const BLOCKS_NEAR_MAX: u32 = 50;

fn height() -> ScrapeSeries {
    let height =
        SeriesFacts::of_node("height", "blocks on the main chain", SeriesUnit::of("blocks"));
    ScrapeSeries::new(
        "ledger_height",
        height.progress("blocks", BLOCKS_WITH_MAX, BLOCKS_NEAR_MAX),
        false,
    )
}

fn stalled() -> ScrapeSeries {
    let label = "what fails at present and is tried again";
    let stalled = SeriesFacts::of_node("stalled", label, SeriesUnit::of("failures"));
    ScrapeSeries::new("ledger_stalled", stalled.foremost(), false)
}

/// What is to be asked of the service `what` that is called `source`.
pub(crate) fn scrape(what: &str, source: &str, address: SocketAddr) -> Scrape {
    let of = SeriesFacts::of_node;
    let count = |what: &str| SeriesUnit::of(what);
    let series = match what {
        "queue" => vec![
            ScrapeSeries::new(
                "ledger_accepted_total",
                of("accepted_each_second", "transactions acknowledged", SeriesUnit::PerSecond)
                    .throughput("acknowledged transactions"),
                true,
            ),
            ScrapeSeries::new(
                "ledger_done_total",
                of(
                    "done_each_second",
                    "transactions of batches that are done",
                    SeriesUnit::PerSecond,
                ),
                true,
            ),
            ScrapeSeries::new(
                "ledger_pending",
                of("pending", "transactions in no batch yet", count("transactions")).foremost(),
                false,
            ),
            ScrapeSeries::new(
                "ledger_batches_open",
                of("batches_open", "batches that are not done", count("batches")),
                false,
            ),
            ScrapeSeries::new(
                "ledger_batches_again_total",
                of("batches_again", "batches given out again", count("batches")),
                false,
            ),
        ],
        "pipeline" => vec![
            height(),
            ScrapeSeries::new(
                "ledger_blocks_lost_total",
                of("blocks_lost", "blocks that are not on the main chain", count("blocks")),
                false,
            ),
            stalled(),
            ScrapeSeries::new(
                "ledger_bucket_put_failures_total",
                of("put_failures", "writes to buckets that failed", count("attempts")),
                false,
            ),
            ScrapeSeries::new(
                "ledger_bucket_left_out_total",
                of("left_out", "pieces that were given up", count("pieces")),
                false,
            ),
        ],
        "watcher" => vec![
            height(),
            ScrapeSeries::new(
                "ledger_refused",
                of("refused", "something read is refused", count("refusals")),
                false,
            ),
            stalled(),
        ],
        "bucket" => vec![
            ScrapeSeries::new(
                "ledger_puts_total",
                of("puts_each_second", "objects written", SeriesUnit::PerSecond),
                true,
            ),
            ScrapeSeries::new(
                "ledger_gets_total",
                of("gets_each_second", "objects asked for", SeriesUnit::PerSecond),
                true,
            ),
            ScrapeSeries::new(
                "ledger_failed_total",
                of("failed", "requests that failed", count("requests")),
                false,
            ),
        ],
        _ => Vec::new(),
    };
    Scrape::new(source, address, series)
}
