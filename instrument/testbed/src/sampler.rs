//! Samples what the host, the instrument and the nodes use while a trial runs.
//!
//! It runs beside the measurement, so it must cost next to nothing: one thread, one round a second, files kept
//! open, no process listing. It must never hold up anything, and never guess: a node that is gone, a file that
//! the host does not have, is simply absent from then on.
//!
//! Series (source: names), as `series.rs` declares them:
//! * `generator` (this process): `cpu_cores`, `rss_bytes`, `threads`
//! * each node, with the processes it has started: `cpu_cores`, `rss_bytes`
//! * `host`: `cpu_cores` (used by everybody), `steal_cores` and `steal_share` (taken by the hypervisor),
//!   `run_queue` (runnable threads), `load1`, `memory_available_bytes`, `cpu_mhz` (mean of the processors, where
//!   the kernel knows it), `tcp_retransmits_per_second`, `listen_drops_per_second`
//!
//! Rates are of the interval that ends at the sample; the rest is of the moment.

mod parse;
mod sources;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use clock::{Clock, Instant};
use model::facts::MetricSample;

use crate::TestbedError;
use sources::{HostSource, OwnSource, TreeSource};

/// The interval that costs next to nothing and still shows a stall.
pub const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// The most rounds kept: two hours at one a second. Beyond, neighbours are merged and the interval doubles, so
/// that a soak of a week keeps its shape in bounded memory.
const ROUNDS_MAX: usize = 7200;
/// A last, short round is taken at the end if at least this much has passed since the one before: processor
/// time comes in ticks of 10 ms, so less would be noise.
const LAST_ROUND_MIN: Duration = Duration::from_millis(200);
/// Looking for children of nodes may take this part of the time (1 / 1000 of a core), and is done this often at most.
const CHILDREN_COST: u32 = 1000;
const CHILDREN_EVERY_MIN: Duration = Duration::from_secs(5);

/// Hears of each sample as it is made: when, of which source and series, and its value.
pub type SampleSink = Box<dyn FnMut(Instant, &str, &str, f64) + Send>;

/// A running sampler.
#[derive(Debug)]
pub struct ResourceSampler {
    orders: Sender<Order>,
    thread: Option<JoinHandle<Vec<Series>>>,
}

/// Who may tell the sampler of processes, from any thread. It does not keep it running.
#[derive(Clone, Debug)]
pub struct Watcher {
    orders: Sender<Order>,
}

#[derive(Debug)]
enum Order {
    Watch(Watch),
    Stop,
}

/// A node to follow.
#[derive(Debug)]
struct Watch {
    name: String,
    pid: u32,
}

impl ResourceSampler {
    /// Starts sampling: a round each `interval` ([`SAMPLE_INTERVAL`] is right for nearly all), of the host, this
    /// process and the named processes. `told` hears of each sample, in the sampler's thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        clock: Clock,
        interval: Duration,
        nodes: Vec<(String, u32)>,
        told: SampleSink,
    ) -> Result<Self, TestbedError> {
        let (orders, receiver) = channel();
        let thread = std::thread::Builder::new().name("testbed-sampler".to_owned());
        let thread = thread.spawn(move || {
            let mut sampling = Sampling::new(clock, interval, told);
            nodes.into_iter().for_each(|(name, pid)| sampling.watch(&Watch { name, pid }));
            sampling.run(&receiver);
            sampling.series
        });
        let failed = |source: io::Error| TestbedError::Host {
            what: "the thread that samples resources could not be started".to_owned(),
            source,
        };
        Ok(Self { orders, thread: Some(thread.map_err(failed)?) })
    }

    /// Follows one more process under a node's name (a node that was restarted). If the name is followed
    /// already, the new process takes its place.
    pub fn watch(&self, name: &str, pid: u32) {
        self.watcher().watch(name, pid);
    }

    /// A handle for those who start processes while it runs.
    #[must_use]
    pub fn watcher(&self) -> Watcher {
        Watcher { orders: self.orders.clone() }
    }

    /// Ends the sampling and gives all samples, series by series in time order, stamped in nanoseconds after `trial_start`.
    #[must_use]
    pub fn finish(mut self, trial_start: Instant) -> Vec<MetricSample> {
        let series = self.stop();
        let sample = |series: &Series, (at, value): (Instant, f64)| MetricSample {
            at: at.ns_since(trial_start),
            source: series.source.clone(),
            name: series.name.to_owned(),
            value,
        };
        series.iter().flat_map(|s| s.points.iter().map(move |&point| sample(s, point))).collect()
    }

    fn stop(&mut self) -> Vec<Series> {
        // It fails only if the thread is gone already.
        let _ = self.orders.send(Order::Stop);
        // A panic of the thread has been printed; its samples are lost, which the absence of metrics shows.
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Watcher {
    /// As [`ResourceSampler::watch`].
    pub fn watch(&self, name: &str, pid: u32) {
        // It fails only if the sampler has ended; then there is no sampler to tell.
        let _ = self.orders.send(Order::Watch(Watch { name: name.to_owned(), pid }));
    }
}

impl Drop for ResourceSampler {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// One line over time.
#[derive(Debug)]
struct Series {
    source: String,
    name: &'static str,
    points: Vec<(Instant, f64)>,
}

/// The thread's state.
struct Sampling {
    clock: Clock,
    interval: Duration,
    own: OwnSource,
    host: HostSource,
    nodes: Vec<TreeSource>,
    children_due: Instant,
    last_round: Instant,
    rounds: usize,
    series: Vec<Series>,
    told: SampleSink,
}

impl Sampling {
    fn new(clock: Clock, interval: Duration, told: SampleSink) -> Self {
        let now = clock.now();
        Self {
            clock,
            interval: interval.max(Duration::from_millis(10)),
            own: OwnSource::open(),
            host: HostSource::open(),
            nodes: Vec::new(),
            children_due: now,
            last_round: now,
            rounds: 0,
            series: Vec::new(),
            told,
        }
    }

    fn run(&mut self, orders: &Receiver<Order>) {
        let mut due = self.last_round.plus(self.interval);
        loop {
            match orders.recv_timeout(due.saturating_since(self.clock.now())) {
                Ok(Order::Watch(watch)) => self.watch(&watch),
                Err(RecvTimeoutError::Timeout) => {
                    self.round();
                    // Missed rounds are left out, not caught up with: the rates are of the time that passed.
                    let now = self.clock.now();
                    while due <= now {
                        due = due.plus(self.interval);
                    }
                }
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    if self.clock.now().saturating_since(self.last_round) >= LAST_ROUND_MIN {
                        self.round();
                    }
                    return;
                }
            }
        }
    }

    fn watch(&mut self, watch: &Watch) {
        self.nodes.retain(|node| node.name != watch.name);
        self.nodes.extend(TreeSource::open(&watch.name, watch.pid));
        self.children_due = self.clock.now();
    }

    fn round(&mut self) {
        let now = self.clock.now();
        let seconds = now.saturating_since(self.last_round).as_secs_f64();
        self.last_round = now;
        if now >= self.children_due {
            self.look_for_children(now);
        }
        let Self { own, host, nodes, series, told, .. } = self;
        let mut keep = |source: &str, name: &'static str, value: f64| {
            let place = series.iter().position(|s| s.source == source && s.name == name);
            let place = place.unwrap_or_else(|| {
                series.push(Series { source: source.to_owned(), name, points: Vec::new() });
                series.len() - 1
            });
            series[place].points.push((now, value));
            told(now, source, name, value);
        };
        own.read(seconds, &mut |name, value| keep("generator", name, value));
        nodes.retain_mut(|node| {
            let TreeSource { name, .. } = &*node;
            let name = name.clone();
            node.read(seconds, &mut |metric, value| keep(&name, metric, value))
        });
        host.read(seconds, &mut |name, value| keep("host", name, value));
        self.rounds += 1;
        if self.rounds == ROUNDS_MAX {
            self.thin();
        }
    }

    /// Nodes may start processes at any time; to look costs a directory listing each, so it is paid for by waiting.
    fn look_for_children(&mut self, now: Instant) {
        let before = clock::CpuTime::of_this_thread();
        self.nodes.iter_mut().for_each(TreeSource::look_for_children);
        let cost = clock::CpuTime::of_this_thread().since(before);
        self.children_due = now.plus((cost * CHILDREN_COST).max(CHILDREN_EVERY_MIN));
    }

    /// Merges neighbours: a rate's mean over both intervals, a reading's mean.
    fn thin(&mut self) {
        for series in &mut self.series {
            let merged = series.points.chunks(2).map(|pair| {
                let (at, _) = pair[pair.len() - 1];
                #[expect(clippy::cast_precision_loss, reason = "one or two")]
                let mean = pair.iter().map(|(_, value)| value).sum::<f64>() / pair.len() as f64;
                (at, mean)
            });
            series.points = merged.collect();
        }
        self.rounds /= 2;
        self.interval *= 2;
    }
}

#[cfg(test)]
mod tests;
