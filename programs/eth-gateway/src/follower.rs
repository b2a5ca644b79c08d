//! Follows the head of the node's chain: a request that depends on it gets the view of a head that the node had while the
//! request was open, or not longer before than allowed. Requests that wait share what is asked; none joins a question
//! that was asked before they came.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use clock::{Clock, Instant};
use tokio::sync::oneshot;

use crate::cache::{Answers, Holds};
use crate::rpc::{Call, Failure};
use crate::upstream::Node;
use crate::view::{Hash, Header, Step, View, hex};

/// How long the node's word for what is final is good enough.
const FINALITY_AGE: Duration = Duration::from_secs(4);

/// A view, or why there is none.
type Seen = Result<Arc<View>, Failure>;

/// See the module.
pub struct Follower {
    node: Arc<dyn Node>,
    clock: Clock,
    /// Blocks that came on the way are kept here.
    answers: Arc<Answers>,
    /// How old a view may be that a request is given.
    age_max: Duration,
    /// Taken for final where the node names no final block.
    final_depth: u64,
    state: Mutex<State>,
    generation: AtomicU64,
}

struct State {
    view: Option<Arc<View>>,
    /// When that view's head was asked for.
    asked: Instant,
    is_asking: bool,
    /// Those whom the question under way answers, and those who came after it was asked.
    waiting: Vec<oneshot::Sender<Seen>>,
    next: Vec<oneshot::Sender<Seen>>,
    finality: Finality,
    finality_asked: Instant,
}

/// Whether the node names final blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finality {
    Unknown,
    Named,
    ByDepth,
}

impl Follower {
    pub fn new(
        node: Arc<dyn Node>,
        clock: Clock,
        answers: Arc<Answers>,
        age_max: Duration,
        final_depth: u64,
    ) -> Arc<Self> {
        let long_ago = Instant::from_ns(i64::MIN / 2);
        let state = State {
            view: None,
            asked: long_ago,
            is_asking: false,
            waiting: Vec::new(),
            next: Vec::new(),
            finality: Finality::Unknown,
            finality_asked: long_ago,
        };
        Arc::new(Self {
            node,
            clock,
            answers,
            age_max,
            final_depth,
            state: Mutex::new(state),
            generation: AtomicU64::new(0),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often what was final turned out not to be.
    pub fn generation(&self) -> u64 {
        self.generation.load(Relaxed)
    }

    /// The view that was known last, however old.
    pub fn known(&self) -> Option<Arc<View>> {
        self.state().view.clone()
    }

    /// A view that is not too old.
    pub async fn view(self: &Arc<Self>) -> Seen {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state();
            let age = self.clock.now().saturating_since(state.asked);
            if let Some(view) = state.view.as_ref().filter(|_| age < self.age_max) {
                return Ok(Arc::clone(view));
            }
            if state.is_asking {
                state.next.push(answer);
            } else {
                state.is_asking = true;
                state.waiting.push(answer);
                tokio::spawn(Arc::clone(self).ask());
            }
        }
        answered.await.unwrap_or(Err(Failure::Busy))
    }

    /// Asks as long as a request waits.
    async fn ask(self: Arc<Self>) {
        let mut asking = Asking { of: &self, is_done: false };
        loop {
            let (asked, known) = (self.clock.now(), self.known());
            let seen = self.look(known.as_ref()).await;
            let (waiting, is_done) = {
                let mut state = self.state();
                if let Ok(view) = &seen {
                    state.view = Some(Arc::clone(view));
                    state.asked = asked;
                    self.generation.store(view.generation, Relaxed);
                }
                let next = std::mem::take(&mut state.next);
                state.is_asking = !next.is_empty();
                (std::mem::replace(&mut state.waiting, next), !state.is_asking)
            };
            for waiting in waiting {
                // A client that has gone away needs none.
                let _ = waiting.send(seen.clone());
            }
            self.refresh_finality();
            if is_done {
                asking.is_done = true;
                return;
            }
        }
    }

    /// Asks for the head, and joins it to what is known.
    async fn look(&self, known: Option<&Arc<View>>) -> Seen {
        let head = self.block(Call::new("eth_getBlockByNumber", "[\"latest\",false]".to_owned()));
        let head = head.await?.ok_or_else(|| Failure::Garbage("no last block".to_owned()))?;
        let mut view = match known {
            Some(known) if known.head == head.id => return Ok(Arc::clone(known)),
            Some(known) => self.join(known, head).await?,
            None => View::first(head),
        };
        if self.state().finality == Finality::ByDepth {
            view.finalize_below(self.final_depth);
        }
        if view.final_height.is_none() {
            self.ask_finality(&mut view).await;
        }
        Ok(Arc::new(view))
    }

    /// Asks for blocks until one of them joins.
    async fn join(&self, known: &View, head: Header) -> Result<View, Failure> {
        let mut news = vec![head];
        loop {
            match known.step(&news) {
                Step::Joined(view) => return Ok(view),
                Step::Lost => return self.after_gap(known, head).await,
                Step::Ask(hash) => match self.block(by_hash(&hash)).await {
                    Ok(Some(header)) if header.id.hash == hash => news.push(header),
                    // The head has moved on meanwhile, or another node answers: the gap is looked at as a whole.
                    Ok(_) | Err(Failure::Refused { .. }) => {
                        return self.after_gap(known, head).await;
                    }
                    Err(failure) => return Err(failure),
                },
            }
        }
    }

    /// Final blocks still are where the node's chain has the final block that is known.
    async fn after_gap(&self, known: &View, head: Header) -> Result<View, Failure> {
        let mut view = known.after_gap(head);
        let is_same = match known.anchor {
            Some(anchor) => {
                let call =
                    Call::new("eth_getBlockByNumber", format!("[\"0x{:x}\",false]", anchor.height));
                self.block(call).await?.map(|header| header.id) == Some(anchor)
            }
            None => false,
        };
        if !is_same {
            view.forget_final();
        }
        Ok(view)
    }

    /// Where a block stands; it is kept by its hash.
    async fn block(&self, call: Call) -> Result<Option<Header>, Failure> {
        let block: Bytes = self.node.ask(call).await?;
        let header = Header::read(&block);
        if let Some(header) = header {
            self.answers.keep(by_hash(&header.id.hash).key(), &block, Holds::Always);
        }
        Ok(header)
    }

    /// Asks for the final block when the last answer is old; no request waits for it.
    fn refresh_finality(self: &Arc<Self>) {
        {
            let mut state = self.state();
            let age = self.clock.now().saturating_since(state.finality_asked);
            if state.finality != Finality::Named || age < FINALITY_AGE {
                return;
            }
            state.finality_asked = self.clock.now();
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let call = Call::new("eth_getBlockByNumber", "[\"finalized\",false]".to_owned());
            let generation = this.generation();
            let Ok(Some(block)) = this.block(call).await else { return };
            let mut state = this.state();
            if let Some(known) = state.view.as_ref().filter(|it| it.generation == generation) {
                let mut view = View::clone(known);
                view.finalize(block.id);
                state.view = Some(Arc::new(view));
            }
        });
    }

    /// Asks for the final block for the first time.
    async fn ask_finality(&self, view: &mut View) {
        let call = Call::new("eth_getBlockByNumber", "[\"finalized\",false]".to_owned());
        let finality = match self.block(call).await {
            Ok(Some(block)) => {
                view.finalize(block.id);
                Finality::Named
            }
            // A node that once named a final block is believed when it names none, and so is one that could not be asked.
            Ok(None) | Err(Failure::Refused { .. }) if self.state().finality != Finality::Named => {
                view.finalize_below(self.final_depth);
                Finality::ByDepth
            }
            _ => return,
        };
        let mut state = self.state();
        state.finality = finality;
        state.finality_asked = self.clock.now();
    }
}

/// The question under way. If it ends before its time those who wait are told that there is no answer, and the next
/// request asks again.
struct Asking<'a> {
    of: &'a Follower,
    is_done: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.of.state();
        state.is_asking = false;
        state.waiting.clear();
        state.next.clear();
    }
}

/// A block by its hash, with the hashes of its transactions.
pub fn by_hash(hash: &Hash) -> Call {
    Call::new("eth_getBlockByHash", format!("[\"{}\",false]", hex(hash)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::time::timeout;

    use super::*;
    use crate::upstream::Asked;

    /// Longer than anything takes in virtual time, unless it hangs.
    const PATIENCE: Duration = Duration::from_secs(60);

    type Script = Box<dyn Fn(&Call, usize) -> Bytes + Send + Sync>;

    /// A node that answers what a test says; it is told how often the last block was asked for.
    struct Played {
        answer: Script,
        heads: AtomicUsize,
    }

    impl Node for Played {
        fn ask(&self, call: Call) -> Asked<'_> {
            let is_head = call.params.contains("latest");
            let heads = self.heads.fetch_add(usize::from(is_head), Relaxed) + usize::from(is_head);
            Box::pin(async move { Ok((self.answer)(&call, heads)) })
        }
    }

    fn follower(answer: impl Fn(&Call, usize) -> Bytes + Send + Sync + 'static) -> Arc<Follower> {
        let node = Played { answer: Box::new(answer), heads: AtomicUsize::new(0) };
        let answers = Arc::new(Answers::new(1 << 20));
        Follower::new(Arc::new(node), Clock::start(), answers, Duration::ZERO, 64)
    }

    fn block(height: u64, hash: u8, parent: u8) -> Bytes {
        let (hash, parent) = (hex(&[hash; 32]), hex(&[parent; 32]));
        format!(r#"{{"number":"0x{height:x}","hash":"{hash}","parentHash":"{parent}"}}"#).into()
    }

    /// Claim: after a node whose blocks say heights that are none of theirs, views are still given.
    #[tokio::test(start_paused = true)]
    async fn a_node_that_lies_of_heights() {
        let follower = follower(|call, heads| match (call.method.as_ref(), heads) {
            ("eth_getBlockByHash", _) if call.params.contains(&hex(&[11; 32])) => block(2, 11, 1),
            ("eth_getBlockByNumber", 1) if call.params.contains("latest") => block(1, 1, 0),
            ("eth_getBlockByNumber", 2) if call.params.contains("latest") => block(1, 10, 11),
            ("eth_getBlockByNumber", _) if call.params.contains("latest") => block(1, 12, 13),
            _ => Bytes::from_static(b"null"),
        });
        for hash in [1, 10, 12, 12] {
            let view = timeout(PATIENCE, follower.view()).await.expect("it does not hang").unwrap();
            assert_eq!(view.head, crate::view::Id { height: 1, hash: [hash; 32] });
        }
    }

    /// Claim: where asking ends before its time those who wait are told so, and the next request is answered.
    #[tokio::test(start_paused = true)]
    async fn asking_that_breaks_off() {
        let follower = follower(|call, heads| {
            assert!(heads != 1, "it breaks off");
            if call.params.contains("latest") {
                block(7, 7, 6)
            } else {
                Bytes::from_static(b"null")
            }
        });
        let both = timeout(PATIENCE, async { tokio::join!(follower.view(), follower.view()) });
        let (one, other) = both.await.expect("it does not hang");
        assert_eq!((one, other), (Err(Failure::Busy), Err(Failure::Busy)));
        let view = timeout(PATIENCE, follower.view()).await.expect("it does not hang").unwrap();
        assert_eq!(view.head.height, 7);
    }
}
