//! From a request to its answer: what is kept, what others are asking for just now, and the node, in this order.

mod perform;

pub use perform::Form;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clock::{Clock, Instant};
use tokio::sync::oneshot;

use crate::answers::Problem;
use crate::cache::{Answers, Holds, Kept};
use crate::json;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::quantity::Quantity;
use crate::rpc::{Answer, Call, Failure};
use crate::upstream::Upstream;

/// See the module.
pub struct Gateway {
    upstream: Arc<Upstream>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    cache: Option<Answers>,
    /// Who waits for which call that is under way.
    asking: Option<Mutex<HashMap<String, Vec<oneshot::Sender<Answer>>>>>,
    last: Option<Last>,
    final_depth: u64,
}

/// The last height, as it was when it was asked for.
struct Last {
    height: AtomicU64,
    asked: AtomicI64,
    age_max: Duration,
}

/// What one request has cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Time in which the request waited for the node; none if it did not.
    pub node: Option<Duration>,
}

/// How long the result of a call may be kept.
#[derive(Clone, Copy, Debug)]
enum Lasting {
    /// For good, whatever it is.
    ForGood,
    /// What belongs to a block of this height: for good once that is deep enough.
    Block(u64),
    /// What names its block in itself, as transactions and receipts do.
    ItsBlock,
    /// Until the next block.
    Last,
}

/// What a call gave.
struct Got {
    result: Bytes,
    /// It will never be another.
    is_final: bool,
}

impl Gateway {
    /// # Errors
    /// When the node's URL is none.
    pub fn new(options: &Options, clock: Clock) -> Result<Arc<Self>, String> {
        let metrics = Arc::new(Metrics::default());
        let upstream = Upstream::new(options, clock, Arc::clone(&metrics))?;
        let last = Last {
            height: AtomicU64::new(0),
            asked: AtomicI64::new(i64::MIN / 2),
            age_max: options.latest_age,
        };
        Ok(Arc::new(Self {
            upstream,
            metrics,
            clock,
            cache: options.cache.then(|| Answers::new(options.cache_bytes)),
            asking: options.coalesce.then(|| Mutex::new(HashMap::new())),
            last: options.latest.then_some(last),
            final_depth: options.final_depth,
        }))
    }

    /// Entries and bytes of the cache.
    pub fn cache_size(&self) -> Option<(u64, u64)> {
        self.cache.as_ref().map(Answers::size)
    }

    /// The last height: not older than allowed, or asked for.
    async fn height(self: &Arc<Self>, spent: &mut Spent) -> Result<u64, Problem> {
        if let Some(last) = &self.last {
            let asked = Instant::from_ns(last.asked.load(Relaxed));
            if self.clock.now().saturating_since(asked) < last.age_max {
                return Ok(last.height.load(Relaxed));
            }
        }
        let asked = self.clock.now();
        let result = self.ask(Call::new("eth_blockNumber", "[]".to_owned()), spent).await?;
        let height = quantity(&result).and_then(Quantity::to_u64);
        let height = height.ok_or(Problem::Shape("eth_blockNumber"))?;
        if let Some(last) = &self.last {
            last.height.store(height, Relaxed);
            last.asked.store(asked.as_ns(), Relaxed);
        }
        Ok(height)
    }

    /// The result of a call: kept, or asked for and kept as long as it lasts.
    async fn get(
        self: &Arc<Self>,
        call: Call,
        lasting: Lasting,
        spent: &mut Spent,
    ) -> Result<Got, Problem> {
        let Some(cache) = &self.cache else {
            return Ok(Got { result: self.ask(call, spent).await?, is_final: false });
        };
        let key = call.key();
        // What is kept for good needs no height; for the rest it is asked for once for all.
        if let Some(Kept { result, holds: Holds::ForGood }) = cache.get(&key, None) {
            self.metrics.came_from(0);
            return Ok(Got { result, is_final: true });
        }
        let height = match (lasting, &self.last) {
            (Lasting::ForGood, _) | (_, None) => None,
            _ => Some(self.height(spent).await?),
        };
        if let Some(kept) = height.and_then(|height| cache.get(&key, Some(height))) {
            self.metrics.came_from(0);
            return Ok(Got { result: kept.result, is_final: false });
        }
        let result = self.ask(call, spent).await?;
        let holds = self.holds(lasting, height, &result);
        if let Some(holds) = holds.filter(|_| *result != *b"null") {
            cache.keep(key, &result, holds);
        }
        Ok(Got { result, is_final: holds == Some(Holds::ForGood) })
    }

    fn holds(&self, lasting: Lasting, height: Option<u64>, result: &Bytes) -> Option<Holds> {
        let block = match lasting {
            Lasting::ForGood => return Some(Holds::ForGood),
            Lasting::Last => return height.map(Holds::AtHeight),
            Lasting::Block(block) => Some(block),
            Lasting::ItsBlock => {
                json::member(result, "blockNumber").and_then(quantity).and_then(Quantity::to_u64)
            }
        };
        let height = height?;
        // What is in no block yet may be in one at any time.
        let is_deep = block?.checked_add(self.final_depth)? <= height;
        Some(if is_deep { Holds::ForGood } else { Holds::AtHeight(height) })
    }

    /// Asks the node, or waits with those who already ask for the same.
    async fn ask(self: &Arc<Self>, call: Call, spent: &mut Spent) -> Result<Bytes, Problem> {
        let began = self.clock.now();
        let answer = match &self.asking {
            None => {
                self.metrics.came_from(2);
                self.upstream.ask(call).await
            }
            Some(asking) => self.ask_with_others(asking, call).await,
        };
        let took = self.clock.now().saturating_since(began);
        spent.node = Some(spent.node.unwrap_or_default() + took);
        answer.map_err(Problem::Node)
    }

    async fn ask_with_others(
        self: &Arc<Self>,
        asking: &Mutex<HashMap<String, Vec<oneshot::Sender<Answer>>>>,
        call: Call,
    ) -> Answer {
        let key = call.key();
        let (answer, answered) = oneshot::channel();
        let is_first = {
            let mut asking = asking.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = asking.entry(key.clone()).or_default();
            waiting.push(answer);
            waiting.len() == 1
        };
        self.metrics.came_from(if is_first { 2 } else { 1 });
        if is_first {
            let this = Arc::clone(self);
            // A task of its own: the client that asked first may go away, and the others still wait.
            tokio::spawn(async move {
                let answer = this.upstream.ask(call).await;
                let waiting = this.asking.as_ref().and_then(|asking| {
                    asking.lock().unwrap_or_else(PoisonError::into_inner).remove(&key)
                });
                for waiting in waiting.unwrap_or_default() {
                    let _ = waiting.send(answer.clone());
                }
            });
        }
        answered.await.unwrap_or(Err(Failure::Busy))
    }
}

/// The quantity that a result is.
fn quantity(result: &[u8]) -> Option<Quantity> {
    json::plain_string(result).and_then(Quantity::from_hex)
}
