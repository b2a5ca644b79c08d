//! Calls that are under way, and who waits for them. A client that goes away takes no other's answer along.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::metrics::{Metrics, Source};
use crate::rpc::{Answer, Call, Failure};
use crate::upstream::Node;

type Waiting = Vec<oneshot::Sender<Answer>>;

/// See the module.
#[derive(Clone)]
pub struct Asking {
    node: Arc<dyn Node>,
    calls: Arc<Mutex<HashMap<String, Under>>>,
}

/// A call that is under way.
#[derive(Default)]
struct Under {
    now: Waiting,
    /// Those who came after it was asked and need an answer that is younger.
    next: Waiting,
}

impl Asking {
    pub fn new(node: Arc<dyn Node>) -> Self {
        Self { node, calls: Arc::default() }
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Under>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a call that can only have one answer, whoever asked for it.
    pub async fn join(&self, call: Call, metrics: &Metrics) -> Answer {
        self.wait(call, metrics, true).await
    }

    /// Waits for a call that is asked after this. Where the same one is under way that is when it is over: of equal calls
    /// one at a time is under way, however many there are.
    pub async fn follow(&self, call: Call, metrics: &Metrics) -> Answer {
        self.wait(call, metrics, false).await
    }

    async fn wait(&self, call: Call, metrics: &Metrics, joins: bool) -> Answer {
        let (answer, answered) = oneshot::channel();
        let key = call.key();
        let is_first = {
            let mut calls = self.calls();
            match calls.get_mut(&key) {
                Some(under) if joins => {
                    under.now.push(answer);
                    false
                }
                Some(under) => {
                    under.next.push(answer);
                    false
                }
                None => {
                    let under = Under { now: vec![answer], next: Vec::new() };
                    calls.insert(key.clone(), under);
                    true
                }
            }
        };
        metrics.came_from(if is_first { Source::Node } else { Source::Coalesced });
        if is_first {
            tokio::spawn(self.clone().ask(call, key));
        }
        answered.await.unwrap_or(Err(Failure::Busy))
    }

    /// Asks as long as a request waits.
    async fn ask(self, call: Call, key: String) {
        loop {
            let answer = self.node.ask(call.clone()).await;
            let (waiting, is_done) = {
                let mut calls = self.calls();
                let under = calls.remove(&key).unwrap_or_default();
                let is_done = under.next.is_empty();
                if !is_done {
                    calls.insert(key.clone(), Under { now: under.next, next: Vec::new() });
                }
                (under.now, is_done)
            };
            for waiting in waiting {
                // A client that has gone away needs none.
                let _ = waiting.send(answer.clone());
            }
            if is_done {
                return;
            }
        }
    }
}
