//! Metrics that nodes serve themselves, over HTTP in Prometheus's text format, sampled on the run's clock.
//!
//! One thread asks all nodes each round over connections that stay open, and waits for all of them at once: a node
//! that hangs, or is gone, is a gap in its own series and holds up no other. It must never send anything but `GET` of
//! the path that was named, and never guess: between two answers there is nothing.
//!
//! It costs what reading the answers costs. That is measured, and where it is more than a hundredth of a core the
//! rounds come more seldom.

mod followed;
mod parse;
mod rounds;

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, Instant};
use model::facts::MetricSample;
use model::series::SeriesFacts;

use crate::TestbedError;
use crate::sampler::SampleSink;
use rounds::Rounds;

pub use parse::fuzz_metrics;

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
    /// As the node calls it: `cometbft_mempool_size`. The sum and the count of a histogram are metrics of their own,
    /// `…_sum` and `…_count`.
    pub metric: String,
    /// What it is in the record: its name, its words, its unit, and what may be made of it.
    pub series: SeriesFacts,
    /// Whether it is a counter of which the increase each second is kept: over the time between two answers, stamped
    /// with the second. Across a restart there is none.
    pub per_second: bool,
}

impl Scrape {
    /// Of the node called `source`, which serves them at `/metrics`.
    #[must_use]
    pub fn new(source: &str, address: SocketAddr, series: Vec<ScrapeSeries>) -> Self {
        Self { source: source.to_owned(), address, path: "/metrics".to_owned(), series }
    }
}

impl ScrapeSeries {
    /// What a metric is in the record, and whether its increase each second is kept.
    #[must_use]
    pub fn new(metric: &str, series: SeriesFacts, per_second: bool) -> Self {
        Self { metric: metric.to_owned(), series, per_second }
    }
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scraped {
    /// Node by node and series by series, in time order.
    pub samples: Vec<MetricSample>,
    /// Nodes, interval, answers and what went wrong, in words for the trial's facts.
    pub said: String,
}

/// Nodes that are being asked.
#[derive(Debug)]
pub struct MetricScraper {
    /// The thread sees its end close.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Rounds>>,
}

impl MetricScraper {
    /// Starts asking: at once, and then each `interval` ([`crate::SAMPLE_INTERVAL`] is right for nearly all), or more
    /// seldom where that would take more than a hundredth of a core. A node that does not answer is asked again in
    /// the next round, for ever. `told` hears of each sample, in the thread that asks.
    ///
    /// # Errors
    /// When a path is not one, or when no thread can be started.
    pub fn start(
        clock: Clock,
        interval: Duration,
        nodes: &[Scrape],
        told: SampleSink,
    ) -> Result<Self, TestbedError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            |source: io::Error| TestbedError::Host { what, source }
        };
        for node in nodes {
            if !wire::http1::is_request_target(&node.path) {
                let error = io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("`{}` is not a path; write one such as /metrics", node.path),
                );
                return Err(
                    failed(&format!("the metrics of {} cannot be asked for", node.source))(error),
                );
            }
        }
        let no_thread = "the thread that asks nodes for their metrics could not be started";
        let (stop, stopped) = UnixStream::pair().map_err(failed(no_thread))?;
        let mut rounds = Rounds::new(clock, interval, nodes, told);
        let thread = std::thread::Builder::new().name("testbed-scraper".to_owned());
        let thread = thread.spawn(move || {
            rounds.run(&stopped);
            rounds
        });
        Ok(Self { stop: Some(stop), thread: Some(thread.map_err(failed(no_thread))?) })
    }

    /// Ends the asking, after a last short round, and gives all samples, stamped in nanoseconds after `trial_start`.
    #[must_use]
    pub fn finish(mut self, trial_start: Instant) -> Scraped {
        match self.stop() {
            Some(rounds) => rounds.scraped(trial_start),
            // A panic of the thread has been printed; its samples are lost, which the absence of series shows.
            None => Scraped {
                samples: Vec::new(),
                said: "lost: the thread that asked for them ended".to_owned(),
            },
        }
    }

    fn stop(&mut self) -> Option<Rounds> {
        self.stop = None;
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

impl Drop for MetricScraper {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

#[cfg(test)]
mod tests;
