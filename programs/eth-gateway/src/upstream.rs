//! The nodes behind the gateway, in the order in which they are preferred: what one does not answer another one may.
//!
//! A call of the node goes through its limiter's allowance, into a batch, over a kept connection. Each of the three can be
//! switched off.

mod address;
mod identity;
mod limiter;
mod one;
mod pool;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use clock::{Clock, Instant};

use identity::Pinned;
use one::{Ended, Upstream};

use crate::metrics::Metrics;
use crate::options::Options;
use crate::rpc::{Answer, Call, Failure};

/// An answer that is to come.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;

/// A source of the chain: nodes in a network, or one that a test plays.
pub trait Node: Send + Sync {
    /// Asks one thing.
    fn ask(&self, call: Call) -> Asked<'_>;
}

/// A node that failed is asked last for so long, and twice as long each time after that.
const DOWN_MIN: Duration = Duration::from_secs(1);
/// The longest time for which it is.
const DOWN_DOUBLINGS_MAX: u32 = 5;

/// See the module.
pub struct Upstreams {
    nodes: Vec<Known>,
    clock: Clock,
    metrics: Arc<Metrics>,
}

/// A node, and how it did lately.
struct Known {
    upstream: Arc<Upstream>,
    failures: AtomicU32,
    down_until: AtomicI64,
}

impl Upstreams {
    /// # Errors
    /// When a node's URL is none, or TLS to it cannot be had.
    pub fn new(
        options: &Options,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, String> {
        let pinned = Arc::new(Pinned::default());
        let urls = options.upstream.split(',').map(str::trim).filter(|url| !url.is_empty());
        let nodes = urls.map(|url| {
            let upstream =
                Upstream::new(url, options, clock, Arc::clone(&metrics), Arc::clone(&pinned))?;
            Ok(Known {
                upstream,
                failures: AtomicU32::new(0),
                down_until: AtomicI64::new(i64::MIN),
            })
        });
        let nodes: Vec<Known> = nodes.collect::<Result<_, String>>()?;
        if nodes.is_empty() {
            return Err("upstream names no node; write http://HOST:PORT/".to_owned());
        }
        Ok(Arc::new(Self { nodes, clock, metrics }))
    }

    /// Those that are not down, in their order, then the others.
    fn order(&self) -> Vec<&Known> {
        let now = self.clock.now().as_ns();
        let (mut up, down): (Vec<&Known>, Vec<&Known>) =
            self.nodes.iter().partition(|node| node.down_until.load(Relaxed) <= now);
        up.extend(down);
        up
    }

    async fn ask_in_order(&self, call: Call) -> Answer {
        let order = self.order();
        let mut left = order.len();
        // An earlier node may have taken a change: that a later one refuses it then says nothing of it.
        let mut unknown = None;
        let is_change = call.is_change();
        for node in order {
            left -= 1;
            let Ended { answer, was_sent } = node.upstream.ask(call.clone()).await;
            match answer {
                Err(failure) if failure.is_of_node() => {
                    node.failed(self.clock.now());
                    if left == 0 {
                        return Err(unknown.unwrap_or(failure));
                    }
                    self.metrics.failed_over();
                    if is_change && was_sent && failure.is_unknown() {
                        unknown.get_or_insert(failure);
                    }
                }
                answer => {
                    node.failures.store(0, Relaxed);
                    return answer.map_err(|failure| unknown.unwrap_or(failure));
                }
            }
        }
        Err(Failure::Busy)
    }
}

impl Known {
    fn failed(&self, now: Instant) {
        let failures = self.failures.fetch_add(1, Relaxed).min(DOWN_DOUBLINGS_MAX);
        self.down_until.store(now.plus(DOWN_MIN * 2_u32.pow(failures)).as_ns(), Relaxed);
    }
}

impl Node for Upstreams {
    fn ask(&self, call: Call) -> Asked<'_> {
        match &self.nodes[..] {
            [only] => Box::pin(async { only.upstream.ask(call).await.answer }),
            _ => Box::pin(self.ask_in_order(call)),
        }
    }
}
