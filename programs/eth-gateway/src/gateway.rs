//! From a question to its answer: what is kept, what others are asking for just now, and the node, in this order.
//!
//! An answer is true of a head that the node had while the request was open, or not longer before it than `latest_age`. So
//! what may be another under another head is asked for by its block's hash and kept by it; what cannot be bound to a block's
//! hash (a search over blocks that are not final, a transaction in no block) is not kept, and no request joins a call that
//! the node may have answered before they came.
//!
//! Kept answers come from a small future, because each request moves it. Calls that may wait for the node have a box of their
//! own.

mod asking;
mod fate;
mod perform;
mod served;
#[cfg(test)]
mod simulation;

pub use perform::Form;
pub use served::calls_of;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use clock::Clock;

use crate::answers::Problem;
use crate::cache::{Answers, Holds};
use crate::follower::Follower;
use crate::json;
use crate::metrics::{Metrics, Source};
use crate::options::Options;
use crate::quantity::Quantity;
use crate::query::{At, Logs, Query, State};
use crate::rpc::{Answer, Call, Failure};
use crate::upstream::{Node, Upstreams};
use crate::view::{Header, Id, View, hex};
use asking::Asking;

/// So many times a node may refuse a block's hash as a parameter before it is believed that it knows none (EIP-1898).
const HASH_REFUSALS_MAX: u32 = 3;

/// The code of a contract's own refusal, which it would give again.
const REVERTED: i64 = 3;

/// See the module.
pub struct Gateway {
    node: Arc<dyn Node>,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    cache: Option<Arc<Answers>>,
    asking: Option<Asking>,
    /// None where nothing is kept that depends on the head.
    follower: Option<Arc<Follower>>,
    hash_refusals: AtomicU32,
    /// Results of one batch of a client, together.
    batch_bytes_max: usize,
    sent: fate::Sent,
}

/// The cost of one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Time in which the request waited for the node; none if it did not.
    pub node: Option<Duration>,
}

/// The answer to a question.
#[derive(Clone, Debug)]
pub struct Got {
    pub result: Bytes,
    /// It will never be another.
    pub is_final: bool,
}

impl Got {
    fn now(result: Bytes) -> Self {
        Self { result, is_final: false }
    }

    fn for_good(result: Bytes) -> Self {
        Self { result, is_final: true }
    }

    fn is_null(&self) -> bool {
        *self.result == *b"null"
    }
}

type Given = Result<Got, Problem>;

impl Gateway {
    /// # Errors
    /// When the node's URL is none.
    pub fn new(options: &Options, clock: Clock) -> Result<Arc<Self>, String> {
        let metrics = Arc::new(Metrics::default());
        let upstream = Upstreams::new(options, clock, Arc::clone(&metrics))?;
        Ok(Self::before(upstream, options, clock, metrics))
    }

    /// A gateway before any node.
    pub fn before(
        node: Arc<dyn Node>,
        options: &Options,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let cache = options.cache.then(|| Arc::new(Answers::new(options.cache_bytes)));
        let follower = cache.as_ref().filter(|_| options.latest).map(|cache| {
            let (node, cache) = (Arc::clone(&node), Arc::clone(cache));
            Follower::new(node, clock, cache, options.latest_age, options.final_depth)
        });
        Arc::new(Self {
            asking: options.coalesce.then(|| Asking::new(Arc::clone(&node))),
            node,
            metrics,
            clock,
            cache,
            follower,
            hash_refusals: AtomicU32::new(0),
            batch_bytes_max: options.upstream_bytes_max,
            sent: fate::Sent::default(),
        })
    }

    /// Entries and bytes of the cache.
    pub fn cache_size(&self) -> Option<(u64, u64)> {
        self.cache.as_ref().map(|cache| cache.size())
    }

    /// Answers a question.
    pub async fn answer(self: &Arc<Self>, query: &Query, spent: &mut Spent) -> Given {
        match query {
            Query::Height => match self.view(spent).await? {
                Some(view) => Ok(Got::now(Query::height_result(view.head.height).into())),
                None => {
                    let call = Call::new("eth_blockNumber", "[]".to_owned());
                    self.unbound(call, spent).await
                }
            },
            Query::Block { at, full } => {
                let full = *full;
                self.at_block(at, |at| Query::block_call(at, full), true, spent).await
            }
            Query::TransactionInBlock { at, index } => {
                let index = *index;
                self.at_block(at, |at| Query::place_call(at, index), true, spent).await
            }
            Query::Transaction(hash) => {
                let call = Call::new("eth_getTransactionByHash", format!("[\"{hash}\"]"));
                self.in_a_block(call, spent).await
            }
            Query::Receipt(hash) => {
                let call = Call::new("eth_getTransactionReceipt", format!("[\"{hash}\"]"));
                self.in_a_block(call, spent).await
            }
            Query::State { what, at } => Box::pin(self.state(what, at, spent)).await,
            Query::Logs(logs) => Box::pin(self.logs(logs, spent)).await,
            Query::GasPrice => Box::pin(self.gas_price(spent)).await,
            Query::ChainId => {
                let call = Call::new("eth_chainId", "[]".to_owned());
                self.content(call, spent).await
            }
            Query::Other(call) => {
                Ok(Got::now(Box::pin(self.ask_alone(call.clone(), spent)).await?))
            }
        }
    }

    /// The chain as it is seen now, for those who wait for new heads; none where it cannot be seen.
    pub async fn seen(&self) -> Option<Arc<View>> {
        self.follower.as_ref()?.view().await.ok()
    }

    /// A block's header as JSON.
    pub async fn header(&self, hash: crate::view::Hash) -> Option<String> {
        let got =
            self.content(crate::follower::by_hash(&hash), &mut Spent::default()).await.ok()?;
        let mut block: serde_json::Value = serde_json::from_slice(&got.result).ok()?;
        for more in ["transactions", "uncles", "withdrawals", "size", "totalDifficulty"] {
            block.as_object_mut()?.remove(more);
        }
        Some(block.to_string())
    }

    /// A view of the chain that is not too old; none where the head is not followed.
    async fn view(&self, spent: &mut Spent) -> Result<Option<Arc<View>>, Problem> {
        let Some(follower) = &self.follower else { return Ok(None) };
        let began = self.clock.now();
        let view = follower.view().await;
        let took = self.clock.now().saturating_since(began);
        if !took.is_zero() {
            spent.node = Some(spent.node.unwrap_or_default() + took);
        }
        view.map(Some).map_err(Problem::Node)
    }

    /// The answer to a call that is kept for good: its key names a block by its hash, or it was final and still is.
    fn kept_for_good(&self, key: &str) -> Option<Got> {
        let kept = self.cache.as_ref()?.get(key)?;
        let holds = match kept.holds {
            Holds::Always => true,
            Holds::Final(generation) => Some(generation) == self.generation(),
            Holds::In(_) => false,
        };
        holds.then(|| {
            self.metrics.came_from(Source::Cache);
            Got::for_good(kept.result)
        })
    }

    fn generation(&self) -> Option<u64> {
        self.follower.as_ref().map(|follower| follower.generation())
    }

    fn keep(&self, key: String, result: &Bytes, holds: Holds) {
        if let Some(cache) = self.cache.as_ref().filter(|_| **result != *b"null") {
            cache.keep(key, result, holds);
        }
    }

    /// The result of a call that names its block by a hash: it can never be another.
    async fn content(&self, call: Call, spent: &mut Spent) -> Given {
        let key = call.key();
        if let Some(got) = self.kept_for_good(&key) {
            return Ok(got);
        }
        let result = Box::pin(self.ask_with_others(call, spent)).await?;
        self.keep(key, &result, Holds::Always);
        Ok(Got::for_good(result))
    }

    /// The result of a call that depends on what the node holds just now.
    async fn unbound(&self, call: Call, spent: &mut Spent) -> Given {
        Ok(Got::now(Box::pin(self.ask_after_others(call, spent)).await?))
    }

    /// Something of a block; `call` makes the call of it for a block that is named in any way.
    async fn at_block(
        &self,
        at: &At,
        call: impl Fn(&At) -> Call,
        may_be_absent: bool,
        spent: &mut Spent,
    ) -> Given {
        match at {
            At::Hash(_) => self.content(call(at), spent).await,
            At::Height(height) => {
                let numbered = call(at);
                let key = numbered.key();
                match self.kept_for_good(&key) {
                    Some(got) => Ok(got),
                    None => {
                        let at = (*height, may_be_absent);
                        Box::pin(self.at_height(at, numbered, call, spent)).await
                    }
                }
            }
            _ => Box::pin(self.at_word(at, call, spent)).await,
        }
    }

    /// The same at a height, where nothing is kept for good.
    async fn at_height(
        &self,
        (height, may_be_absent): (u64, bool),
        numbered: Call,
        call: impl Fn(&At) -> Call,
        spent: &mut Spent,
    ) -> Given {
        let Some(view) = self.view_for(height, spent).await? else {
            return self.unbound(numbered, spent).await;
        };
        if view.is_final(height) {
            return self.at_final(numbered, view.generation, spent).await;
        }
        if height > view.head.height && may_be_absent {
            return Ok(Got::now(Bytes::from_static(b"null")));
        }
        match view.hash_at(height) {
            Some(hash) => self.at_hash(&hex(&hash), numbered, call, spent).await,
            None => self.unbound(numbered, spent).await,
        }
    }

    /// The same at a block that a word names.
    async fn at_word(&self, at: &At, call: impl Fn(&At) -> Call, spent: &mut Spent) -> Given {
        match at {
            At::Latest => match self.view(spent).await? {
                Some(view) => self.at_hash(&hex(&view.head.hash), call(at), call, spent).await,
                None => self.unbound(call(at), spent).await,
            },
            At::Safe | At::Finalized if self.follower.is_some() => {
                let block = self.unbound(Query::block_call(at, false), spent).await?;
                match Header::read(&block.result) {
                    Some(header) => {
                        let hash = hex(&header.id.hash);
                        let known = Query::block_call(&At::Hash(hash.clone()), false).key();
                        self.keep(known, &block.result, Holds::Always);
                        self.at_hash(&hash, call(at), call, spent).await
                    }
                    None => self.unbound(call(at), spent).await,
                }
            }
            _ => self.unbound(call(at), spent).await,
        }
    }

    /// A view to look a height up in. What is final stays final, so for that any view will do.
    async fn view_for(&self, height: u64, spent: &mut Spent) -> Result<Option<Arc<View>>, Problem> {
        let known = self.follower.as_ref().and_then(|follower| follower.known());
        match known.filter(|view| view.is_final(height)) {
            Some(view) => Ok(Some(view)),
            None => self.view(spent).await,
        }
    }

    /// Something of a block whose hash is known, though it may be answered by a node that does not have it: then as that
    /// node has it, and not kept.
    async fn at_hash(
        &self,
        hash: &str,
        otherwise: Call,
        call: impl Fn(&At) -> Call,
        spent: &mut Spent,
    ) -> Given {
        let got = self.content(call(&At::Hash(hash.to_owned())), spent).await;
        match got {
            Ok(got) if got.is_null() => self.unbound(otherwise, spent).await,
            Ok(got) => Ok(Got { is_final: false, ..got }),
            Err(Problem::Node(Failure::Refused { code, .. })) if code != REVERTED => {
                let other = self.unbound(otherwise, spent).await;
                if other.is_ok() && matches!(code, -32602 | -32601) {
                    self.hash_refusals.fetch_add(1, Relaxed);
                }
                other
            }
            Err(problem) => Err(problem),
        }
    }

    /// The result of a call about a final block.
    async fn at_final(&self, call: Call, generation: u64, spent: &mut Spent) -> Given {
        let key = call.key();
        let result = self.ask_with_others(call, spent).await?;
        self.keep(key, &result, Holds::Final(generation));
        Ok(if *result == *b"null" { Got::now(result) } else { Got::for_good(result) })
    }

    /// A result that names its block in itself, as transactions and receipts do.
    async fn in_a_block(&self, call: Call, spent: &mut Spent) -> Given {
        let key = call.key();
        match self.kept_for_good(&key) {
            Some(got) => Ok(got),
            None => Box::pin(self.in_its_block(call, key, spent)).await,
        }
    }

    /// The same where nothing is kept for good.
    async fn in_its_block(&self, call: Call, key: String, spent: &mut Spent) -> Given {
        let kept = self.cache.as_ref().and_then(|cache| cache.get(&key));
        if let Some(kept) = kept
            && let Holds::In(block) = kept.holds
            && let Some(view) = self.view(spent).await?
            && view.has(block)
        {
            self.metrics.came_from(Source::Cache);
            let is_final = view.is_final(block.height);
            if is_final {
                self.keep(key, &kept.result, Holds::Final(view.generation));
            }
            return Ok(Got { result: kept.result, is_final });
        }
        let known = self.follower.as_ref().and_then(|follower| follower.known());
        let result = self.ask_after_others(call, spent).await?;
        let Some(block) = Id::of_place(&result) else { return Ok(Got::now(result)) };
        let generation =
            known.filter(|view| view.is_final(block.height)).map(|view| view.generation);
        if self.follower.is_some() {
            self.keep(key, &result, generation.map_or(Holds::In(block), Holds::Final));
        }
        Ok(Got { result, is_final: generation.is_some() })
    }

    /// Something about accounts or contracts.
    async fn state(&self, what: &State, at: &At, spent: &mut Spent) -> Given {
        let knows_hashes = self.hash_refusals.load(Relaxed) < HASH_REFUSALS_MAX;
        if !knows_hashes && !matches!(at, At::Hash(_)) {
            return self.unbound(what.call(at), spent).await;
        }
        self.at_block(at, |at| what.call(at), false, spent).await
    }

    async fn logs(&self, logs: &Logs, spent: &mut Spent) -> Given {
        let call = logs.call();
        match (&logs.from, &logs.to) {
            (At::Hash(_), _) => self.content(call, spent).await,
            (At::Height(from), At::Height(to)) if from <= to => {
                if let Some(got) = self.kept_for_good(&call.key()) {
                    return Ok(got);
                }
                let Some(view) = self.view_for(*to, spent).await? else {
                    return self.unbound(call, spent).await;
                };
                if view.is_final(*to) {
                    return self.at_final(call, view.generation, spent).await;
                }
                match view.hash_at(*to).filter(|_| from == to) {
                    Some(hash) => {
                        let of = |at: &At| Logs { from: at.clone(), ..logs.clone() }.call();
                        self.at_hash(&hex(&hash), call, of, spent).await
                    }
                    None => self.unbound(call, spent).await,
                }
            }
            _ => self.unbound(call, spent).await,
        }
    }

    /// The price of gas is the node's advice and no fact of the chain: it is kept under the head under which it was asked for.
    async fn gas_price(&self, spent: &mut Spent) -> Given {
        let call = Call::new("eth_gasPrice", "[]".to_owned());
        let Some(view) = self.view(spent).await? else { return self.unbound(call, spent).await };
        let key = format!("{}{}", call.key(), hex(&view.head.hash));
        if let Some(got) = self.kept_for_good(&key) {
            return Ok(Got { is_final: false, ..got });
        }
        let got = self.unbound(call, spent).await?;
        self.keep(key, &got.result, Holds::Always);
        Ok(got)
    }

    /// Asks the node, or waits with those who already ask for the same, which can only have one answer.
    async fn ask_with_others(&self, call: Call, spent: &mut Spent) -> Result<Bytes, Problem> {
        match &self.asking {
            None => self.ask_alone(call, spent).await,
            Some(asking) => {
                let answer = asking.join(call, &self.metrics);
                self.waited(answer, spent).await
            }
        }
    }

    /// Asks the node, together with those who came while the same was under way, when that is over.
    async fn ask_after_others(&self, call: Call, spent: &mut Spent) -> Result<Bytes, Problem> {
        match &self.asking {
            None => self.ask_alone(call, spent).await,
            Some(asking) => {
                let answer = asking.follow(call, &self.metrics);
                self.waited(answer, spent).await
            }
        }
    }

    async fn ask_alone(&self, call: Call, spent: &mut Spent) -> Result<Bytes, Problem> {
        self.metrics.came_from(Source::Node);
        self.waited(self.node.ask(call), spent).await
    }

    async fn waited(
        &self,
        answer: impl Future<Output = Answer>,
        spent: &mut Spent,
    ) -> Result<Bytes, Problem> {
        let began = self.clock.now();
        let answer = answer.await;
        let took = self.clock.now().saturating_since(began);
        spent.node = Some(spent.node.unwrap_or_default() + took);
        answer.map_err(Problem::Node)
    }
}

/// The quantity that a result is.
fn quantity(result: &[u8]) -> Option<Quantity> {
    json::plain_string(result).and_then(Quantity::from_hex)
}
