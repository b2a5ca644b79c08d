//! One node: its limiter, its batches and its connections.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clock::Clock;
use tokio::sync::oneshot;

use super::address::Address;
use super::identity::Pinned;
use super::limiter::{Admission, Limiter};
use super::pool::{Pool, Posted, Speed, body};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::rpc::{self, Answer, Call, Failure, Reply};

/// See the module.
pub struct Upstream {
    pool: Pool,
    clock: Clock,
    metrics: Arc<Metrics>,
    /// None where the limiter is not listened to.
    limiter: Option<Mutex<Limiter>>,
    batching: Option<Batching>,
}

struct Batching {
    linger: Duration,
    calls_max: usize,
    open: Mutex<Vec<Waiting>>,
    /// Posts of quick calls that are under way.
    posts: AtomicUsize,
}

/// The end of a call.
pub struct Ended {
    pub answer: Answer,
    /// Without an answer: the node may have got the call.
    pub was_sent: bool,
}

impl Ended {
    fn unsent(failure: Failure) -> Self {
        Self { answer: Err(failure), was_sent: false }
    }
}

/// A call and who waits for it.
struct Waiting {
    call: Call,
    ended: oneshot::Sender<Ended>,
}

impl Upstream {
    /// # Errors
    /// When the node's URL is none, or TLS to it cannot be had.
    pub fn new(
        url: &str,
        options: &Options,
        clock: Clock,
        metrics: Arc<Metrics>,
        pinned: Arc<Pinned>,
    ) -> Result<Arc<Self>, String> {
        let address = Address::read(url)?;
        let limiter = Limiter::new(options.allowed_rps, options.queue_max);
        let batching = Batching {
            linger: options.batch_linger,
            calls_max: options.batch_max,
            open: Mutex::new(Vec::new()),
            posts: AtomicUsize::new(0),
        };
        Ok(Arc::new(Self {
            pool: Pool::new(options, address, pinned)?,
            clock,
            metrics,
            limiter: options.pace.then(|| Mutex::new(limiter)),
            batching: options.batch.then_some(batching),
        }))
    }

    /// Asks the node one thing.
    pub async fn ask(self: &Arc<Self>, call: Call) -> Ended {
        if let Err(failure) = self.admitted().await {
            return Ended::unsent(failure);
        }
        let (ended, ends) = oneshot::channel();
        let waiting = Waiting { call, ended };
        match &self.batching {
            Some(batching) if waiting.call.is_shared() => self.gather(batching, waiting),
            _ => {
                let this = Arc::clone(self);
                tokio::spawn(async move { this.send(vec![waiting]).await });
            }
        }
        ends.await.unwrap_or_else(|_| Ended::unsent(Failure::Busy))
    }

    /// Waits for the turn that the limiter's allowance gives.
    async fn admitted(&self) -> Result<(), Failure> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let admission = {
            let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
            limiter.admit(self.clock.now())
        };
        match admission {
            Admission::Now => Ok(()),
            Admission::After(wait) => {
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Admission::Never(retry_after) => {
                self.metrics.kept_back();
                Err(Failure::Limited { retry_after, early: true })
            }
        }
    }

    /// Puts a call into the open batch. The first sends it off: at once if the node has nothing to do for us, else after the
    /// linger. The one that fills it sends it at once.
    fn gather(self: &Arc<Self>, batching: &Batching, waiting: Waiting) {
        let mut open = batching.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push(waiting);
        let is_first = open.len() == 1;
        let full = (open.len() >= batching.calls_max).then(|| std::mem::take(&mut *open));
        drop(open);
        let this = Arc::clone(self);
        if let Some(calls) = full {
            tokio::spawn(async move { this.send(calls).await });
        } else if is_first {
            let is_idle = batching.posts.load(Relaxed) == 0;
            let linger = batching.linger;
            tokio::spawn(async move {
                if !is_idle {
                    tokio::time::sleep(linger).await;
                }
                let calls = this.batching.as_ref().map(|batching| {
                    std::mem::take(
                        &mut *batching.open.lock().unwrap_or_else(PoisonError::into_inner),
                    )
                });
                this.send(calls.unwrap_or_default()).await;
            });
        }
    }

    /// Posts calls and gives each that waits its answer.
    async fn send(&self, calls: Vec<Waiting>) {
        let Some(first) = calls.first() else { return };
        let speed = if first.call.is_slow() { Speed::Slow } else { Speed::Quick };
        let posts = self.batching.as_ref().map(|batching| &batching.posts);
        let posts = posts.filter(|_| speed == Speed::Quick);
        if let Some(posts) = posts {
            posts.fetch_add(1, Relaxed);
        }
        let all: Vec<Call> = calls.iter().map(|waiting| waiting.call.clone()).collect();
        let was_sent = AtomicBool::new(false);
        let answers = self.exchange(&all, speed, &was_sent).await;
        let was_sent = was_sent.into_inner();
        if let Some(posts) = posts {
            posts.fetch_sub(1, Relaxed);
        }
        for (waiting, answer) in calls.into_iter().zip(answers) {
            if let Err(failure) = &answer {
                self.metrics.failed(failure.word());
            }
            // A client that has gone away needs none.
            let _ = waiting.ended.send(Ended { answer, was_sent });
        }
    }

    /// The answers of one post. The bound for an answer is one call's: where a batch's is larger its halves are asked for
    /// by themselves.
    async fn exchange(&self, calls: &[Call], speed: Speed, was_sent: &AtomicBool) -> Vec<Answer> {
        self.metrics.posted(calls.iter().map(|call| call.method.as_ref()));
        let received = match self.pool.post(body(calls), speed, was_sent).await {
            Ok(Posted::Answered(received)) => received,
            Ok(Posted::Limited(stated)) => {
                return calls.iter().map(|_| self.answer(Reply::Limited(stated))).collect();
            }
            Err(Failure::TooLarge) if calls.len() > 1 => {
                let (left, right) = calls.split_at(calls.len() / 2);
                let mut answers = Box::pin(self.exchange(left, speed, was_sent)).await;
                answers.extend(Box::pin(self.exchange(right, speed, was_sent)).await);
                return answers;
            }
            Err(failure) => return calls.iter().map(|_| Err(failure.clone())).collect(),
        };
        let replies = rpc::read(received.status, received.retry_after, &received.body, calls.len());
        replies.into_iter().map(|reply| self.answer(reply)).collect()
    }

    fn answer(&self, reply: Reply) -> Answer {
        match reply {
            Reply::Answer(answer) => answer,
            Reply::Limited(stated) => {
                let retry_after = match &self.limiter {
                    Some(limiter) => {
                        let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
                        limiter.refused(self.clock.now(), stated)
                    }
                    None => stated.backoff.unwrap_or(Duration::from_secs(1)),
                };
                Err(Failure::Limited { retry_after, early: false })
            }
        }
    }
}
