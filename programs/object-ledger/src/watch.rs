//! Watching the buckets, in three stages as published: what is new in the buckets goes to a queue (`bucket_to_queue`), the
//! queue to a cache (`queue_to_cache`), and from the cache the main chain is computed (`omc`). Each stage looks every so
//! often; with `push` it also looks at once when it is told that there may be something.
//!
//! What it says it has verified itself: the main chain is [`crate::verify::Verifier`]'s, from the buckets' bytes. What
//! pipelines tell it (steps, and that it should look) is taken for times and hints only.

mod door;
mod found;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clock::Clock;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::data::{Attestation, Batch, BatchId, Hash, Proposal, Tree, names, transaction_id};
use crate::pipeline::Step;
use crate::reading::{is_attestation, is_batch, is_proposal};
use crate::storage::{Storage, Unavailable};
use crate::verify::{Refusal, Trust, Verifier};

pub(crate) use door::serve;
pub(crate) use found::Found;

/// Numbers whose blocks are being read at once, and that may wait in the queue.
const QUEUED_MAX: usize = 1_024;
/// Numbers that are read at once where many are new.
const WIDTH_MAX: u64 = 32;
/// Looks that found nothing new, between two at whether a number is withheld.
const LIST_EVERY: u32 = 20;
/// Batches of which steps are kept.
const NOTED_MAX: usize = 65_536;
/// Steps of a batch that a pipeline tells.
const STEPS: usize = Step::NAMES.len();
/// The step that a batch takes once more each time that it is tried.
const DEQUEUED: u8 = 0;

/// How often each stage looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    pub(crate) bucket_to_queue: Duration,
    pub(crate) queue_to_cache: Duration,
    pub(crate) omc: Duration,
    /// Each stage also looks when it is told to.
    pub(crate) push: bool,
}

impl Default for Waits {
    /// The published ones.
    fn default() -> Self {
        Self {
            bucket_to_queue: Duration::from_millis(100),
            queue_to_cache: Duration::from_millis(100),
            omc: Duration::from_millis(50),
            push: false,
        }
    }
}

/// When a stage had it: nanoseconds of CLOCK_MONOTONIC; 0: not yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Read from the buckets.
    pub(crate) seen: i64,
    /// In the cache.
    pub(crate) cached: i64,
    /// It was decided whether it is on the main chain.
    pub(crate) decided: i64,
}

/// A number with its block and what it is of.
struct Seen {
    number: u64,
    attestation: Vec<u8>,
    /// Empty of a void.
    proposal: Vec<u8>,
    /// Missing of a void.
    batch: Option<Batch>,
    times: Times,
}

struct Cached {
    attestation: Vec<u8>,
    proposal: Vec<u8>,
    batch: Option<(Arc<Batch>, Tree)>,
    times: Times,
}

#[derive(Default)]
struct Stages {
    queue: BTreeMap<u64, Seen>,
    /// From number 1 on.
    cache: Vec<Cached>,
    /// Where transactions are, by id: number and place.
    places: HashMap<Hash, (u64, u32)>,
    /// Those that were read from the buckets, by id, and are not decided.
    seen: HashMap<Hash, i64>,
    notes: HashMap<BatchId, [i64; STEPS]>,
    noted: VecDeque<BatchId>,
    /// Attestations that stand under a name beside the first one.
    others: Vec<Attestation>,
    /// The number that is missing although later ones are there.
    withheld: Option<u64>,
    refused: Option<Refusal>,
    problem: Option<String>,
}

/// A watcher.
pub(crate) struct Watch {
    storage: Arc<Storage>,
    waits: Waits,
    trust: Arc<Trust>,
    clock: Clock,
    stages: Mutex<Stages>,
    verifier: Mutex<Verifier>,
    look: Notify,
    queued: Notify,
    cached: Notify,
    /// Counts what was seen and decided, for those who wait for it.
    changes: watch::Sender<u64>,
}

impl Watch {
    pub(crate) fn new(
        storage: Arc<Storage>,
        trust: Trust,
        waits: Waits,
        clock: Clock,
    ) -> Arc<Self> {
        Arc::new(Self {
            storage,
            waits,
            trust: Arc::new(trust.clone()),
            clock,
            stages: Mutex::new(Stages::default()),
            verifier: Mutex::new(Verifier::new(trust)),
            look: Notify::new(),
            queued: Notify::new(),
            cached: Notify::new(),
            changes: watch::Sender::new(0),
        })
    }

    /// Watches; never ends.
    pub(crate) async fn run(self: Arc<Self>) {
        tokio::join!(self.bucket_to_queue(), self.queue_to_cache(), self.omc());
    }

    pub(crate) fn now_ns(&self) -> i64 {
        self.clock.origin_monotonic_ns().saturating_add(self.clock.now().as_ns())
    }

    /// Changes whenever something was seen or decided.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn verifier(&self) -> MutexGuard<'_, Verifier> {
        self.verifier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There may be something new in the buckets.
    pub(crate) fn look(&self) {
        if self.waits.push {
            self.look.notify_one();
        }
    }

    /// A pipeline says when a batch took a step.
    fn noted(&self, note: crate::protocol::StepNote) {
        let mut stages = self.stages();
        if !stages.notes.contains_key(&note.batch) {
            stages.noted.push_back(note.batch);
            if stages.noted.len() > NOTED_MAX
                && let Some(oldest) = stages.noted.pop_front()
            {
                stages.notes.remove(&oldest);
            }
        }
        let times = stages.notes.entry(note.batch).or_default();
        if let Some(time) = times.get_mut(usize::from(note.step)) {
            // A batch that is tried again was dequeued when it was for the first time; of all else the last time holds.
            let is_first = note.step != DEQUEUED || *time == 0;
            *time = if is_first { note.at_ns } else { note.at_ns.min(*time) };
        }
    }

    async fn bucket_to_queue(self: &Arc<Self>) {
        let mut next = 1;
        let mut tick = ticks(self.waits.bucket_to_queue);
        let mut since_list = 0_u32;
        loop {
            tokio::select! { _ = tick.tick() => {}, () = self.look.notified() => {} }
            let mut width = 1;
            while self.stages().queue.len() < QUEUED_MAX {
                let numbers = next..next + width;
                let fetched = numbers.map(|number| {
                    let watch = Arc::clone(self);
                    async move { watch.attestation(number).await }
                });
                let mut fetched = futures_util::future::join_all(fetched).await.into_iter();
                let end = fetched.find_map(|it| match it {
                    Ok(Some(bytes)) => {
                        self.clone().read_rest(next, bytes);
                        next += 1;
                        self.stages().withheld = None;
                        None
                    }
                    end => Some(end),
                });
                match end {
                    // Far behind, many numbers are read at once.
                    None => width = (2 * width).min(WIDTH_MAX),
                    Some(Err(error)) => {
                        let is_problem = !error.is_nothing_seen();
                        self.stages().problem = is_problem.then(|| error.to_string());
                        break;
                    }
                    Some(_) => {
                        self.stages().problem = None;
                        since_list += 1;
                        if since_list >= LIST_EVERY {
                            since_list = 0;
                            self.look_for_withheld(next).await;
                        }
                        break;
                    }
                }
            }
        }
    }

    /// The attestation of a number. What else stands under its name is looked at beside the next numbers: it may be a fork.
    async fn attestation(self: &Arc<Self>, number: u64) -> Result<Option<Vec<u8>>, Unavailable> {
        let mut wholes = self.storage.wholes(&names::attestation(number));
        let trust = Arc::clone(&self.trust);
        let is_signed = move |whole: &[u8]| is_attestation(&trust, number, whole);
        let first = wholes.next(&is_signed).await?;
        if first.is_some() {
            let watch = Arc::clone(self);
            tokio::spawn(async move {
                while let Ok(Some(other)) = wholes.next(&is_signed).await {
                    let other = Attestation::parse(&other).expect("it was looked at");
                    watch.stages().others.push(other);
                }
            });
        }
        Ok(first)
    }

    /// A number is withheld when later ones are there, signed.
    async fn look_for_withheld(&self, next: u64) {
        let later = self.storage.list("sequence", &names::attestation(next), 1).await;
        let later =
            later.iter().filter_map(|it| names::attestation_number(it)).find(|it| *it > next);
        let mut is_withheld = false;
        if let Some(later) = later {
            let is_it = |whole: &[u8]| is_attestation(&self.trust, later, whole);
            let there = self.storage.fetch(&names::attestation(later), is_it).await;
            is_withheld = there.is_ok_and(|it| it.is_some());
        }
        self.stages().withheld = is_withheld.then_some(next);
    }

    /// Block and batch of a number, beside the next numbers; tried until they are there.
    fn read_rest(self: Arc<Self>, number: u64, attestation: Vec<u8>) {
        tokio::spawn(async move {
            loop {
                match self.rest(number, &attestation).await {
                    Ok(seen) => {
                        let mut stages = self.stages();
                        for transaction in seen.batch.iter().flat_map(|it| &it.transactions) {
                            stages.seen.insert(transaction_id(transaction), seen.times.seen);
                        }
                        stages.queue.insert(number, seen);
                        drop(stages);
                        self.changes.send_modify(|it| *it += 1);
                        if self.waits.push {
                            self.queued.notify_one();
                        }
                        return;
                    }
                    Err(why) => {
                        self.stages().problem = Some(format!("number {number}: {why}"));
                        tokio::time::sleep(
                            self.waits.bucket_to_queue.max(Duration::from_millis(20)),
                        )
                        .await;
                    }
                }
            }
        });
    }

    async fn rest(&self, number: u64, attestation: &[u8]) -> Result<Seen, String> {
        let parsed =
            Attestation::parse(attestation).map_err(|why| format!("its attestation: {why}"))?;
        let seen = |proposal, batch| {
            let times = Times { seen: self.now_ns(), ..Times::default() };
            Seen { number, attestation: attestation.to_vec(), proposal, batch, times }
        };
        if parsed.is_void() {
            return Ok(seen(Vec::new(), None));
        }
        let name = names::proposal(&parsed.link);
        let proposal = self.object(&name, |whole| is_proposal(&parsed.link, whole)).await?;
        let read = Proposal::parse(&proposal).map_err(|why| format!("its block: {why}"))?;
        let name = names::batch(&read.block.batch);
        let batch = self.object(&name, |whole| is_batch(&read, whole)).await?;
        let batch = Batch::parse(&batch).map_err(|why| format!("{name}: {why}"))?;
        Ok(seen(proposal, Some(batch)))
    }

    async fn object(&self, name: &str, is_it: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, String> {
        let fetched = self.storage.fetch(name, is_it).await.map_err(|error| error.to_string())?;
        fetched.ok_or_else(|| format!("{name} is in no bucket"))
    }

    async fn queue_to_cache(&self) {
        let mut tick = ticks(self.waits.queue_to_cache);
        loop {
            tokio::select! { _ = tick.tick() => {}, () = self.queued.notified() => {} }
            let now = self.now_ns();
            let mut stages = self.stages();
            let mut is_new = false;
            loop {
                let next = stages.cache.len() as u64 + 1;
                let Some(Seen { number, attestation, proposal, batch, times }) =
                    stages.queue.remove(&next)
                else {
                    break;
                };
                debug_assert_eq!(number, next);
                let batch = batch.map(|batch| {
                    let tree = Tree::of(&batch);
                    (Arc::new(batch), tree)
                });
                let times = Times { cached: now, ..times };
                stages.cache.push(Cached { attestation, proposal, batch, times });
                is_new = true;
            }
            drop(stages);
            if is_new && self.waits.push {
                self.cached.notify_one();
            }
        }
    }

    async fn omc(&self) {
        let mut tick = ticks(self.waits.omc);
        loop {
            tokio::select! { _ = tick.tick() => {}, () = self.cached.notified() => {} }
            if self.decide() {
                self.changes.send_modify(|it| *it += 1);
            }
        }
    }

    /// Computes the main chain as far as the cache goes; whether something was decided.
    fn decide(&self) -> bool {
        let (mut stages, mut verifier) = (self.stages(), self.verifier());
        let now = self.now_ns();
        let mut is_new = false;
        let next = verifier.next();
        let others: Vec<_> = stages.others.extract_if(.., |it| it.number < next).collect();
        for other in others {
            if let Err(refusal) = verifier.compare(&other) {
                stages.refused = Some(refusal);
                stages.problem = verifier.fork().map(|fork| format!("{refusal}; {fork}"));
                is_new = true;
            }
        }
        loop {
            let number = verifier.next();
            let index = usize::try_from(number - 1).expect("it is in memory");
            let Some(cached) = stages.cache.get_mut(index) else { return is_new };
            if let Err(refusal) = verifier.admit(&cached.attestation, &cached.proposal) {
                stages.refused = Some(refusal);
                return is_new;
            }
            is_new = true;
            cached.times.decided = now;
            let is_on = verifier.height_of(number).is_some();
            let batch = cached.batch.as_ref().map(|(batch, _)| Arc::clone(batch));
            let transactions = batch.iter().flat_map(|it| &it.transactions);
            for (place, transaction) in (0..).zip(transactions) {
                let id = transaction_id(transaction);
                stages.seen.remove(&id);
                if is_on {
                    stages.places.insert(id, (number, place));
                }
            }
        }
    }

    /// Height of the main chain and the next sequence number.
    pub(crate) fn length(&self) -> (u64, u64) {
        let verifier = self.verifier();
        (verifier.height(), verifier.next())
    }

    fn metrics(&self) -> String {
        let (height, next) = self.length();
        let stages = self.stages();
        let stalled = u64::from(stages.problem.is_some());
        let (queued, cached) = (stages.queue.len() as u64, stages.cache.len() as u64);
        let known = stages.places.len() as u64;
        let refused = u64::from(stages.refused.is_some());
        let withheld = stages.withheld.unwrap_or(0);
        drop(stages);
        let mut text = wire::metrics::text(&[
            ("ledger_height", false, "Blocks on the main chain, as verified here.", height),
            ("ledger_next_number", false, "The next sequence number to be decided.", next),
            ("ledger_queued", false, "Numbers in the queue.", queued),
            ("ledger_cached", false, "Numbers in the cache.", cached),
            ("ledger_known", false, "Transactions on the main chain.", known),
            (
                "ledger_withheld",
                false,
                "A number that is missing although later ones are there; 0: none.",
                withheld,
            ),
            ("ledger_refused", false, "Whether something that was read is refused.", refused),
            (
                "ledger_stalled",
                false,
                "Whether buckets do not give what is wanted at present.",
                stalled,
            ),
        ]);
        text.push_str(&self.storage.metrics());
        text
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut tick = interval(every.max(Duration::from_millis(1)));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}
