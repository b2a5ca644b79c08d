//! A pipeline as a value: it is told answers and says what to ask next. It keeps nothing that it could not do without: after a
//! crash another one goes on, with the same batch.
//!
//! A batch's way: given out by the queue → its bytes stored, its tree made, a block on the head of the main chain → timestamped
//! → block and token stored → numbered by the sequencer → the attestation stored → done. Block and token are stored before a
//! number is asked for, so that no honest number is ever without its block. A block that lost against another is made anew,
//! of the same batch. While the last attestation is being stored, the next batch begins.

mod ask;
mod catch_up;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::chain::{Chain, Standing};
use crate::data::{BatchId, Block, Hash, Proposal, Token, Tree, names};
use crate::protocol::GivenOut;

pub use ask::{Answer, Ask, Asking, Step, Stepped};
use catch_up::CatchUp;

/// Batches whose attestations are being stored while the next one is on its way.
const CLOSING_MAX: usize = 8;

/// The batch that is on its way.
#[derive(Debug)]
struct Job {
    given: GivenOut,
    root: Hash,
    count: u32,
    /// What has to be stored before a number is asked for.
    storing: BTreeSet<u64>,
    tried: Option<Tried>,
}

/// A block that was made of it.
#[derive(Debug)]
struct Tried {
    block: Block,
    /// Once it is timestamped: the link to the token.
    link: Option<Hash>,
    is_sequencing: bool,
    number: Option<u64>,
}

/// A batch that is on the main chain, with what has to be stored before it is done.
#[derive(Debug)]
struct Closing {
    batch: BatchId,
    storing: BTreeSet<u64>,
}

/// A pipeline.
#[derive(Debug)]
pub struct Pipeline {
    chain: Chain,
    asked: BTreeMap<u64, Ask>,
    last_id: u64,
    to_ask: VecDeque<Asking>,
    job: Option<Job>,
    closing: Vec<Closing>,
    catch_up: CatchUp,
    /// Attestations that are being stored, by number: what is above them is not done before they are.
    attesting: BTreeMap<u64, u64>,
    stepped: Vec<Stepped>,
    lost: u64,
    is_hasty: bool,
}

impl Pipeline {
    /// One that knows nothing but where the ledger begins.
    #[must_use]
    pub fn new(genesis: Hash) -> Self {
        let mut pipeline = Self {
            chain: Chain::new(genesis),
            asked: BTreeMap::new(),
            last_id: 0,
            to_ask: VecDeque::new(),
            job: None,
            closing: Vec::new(),
            catch_up: CatchUp::default(),
            attesting: BTreeMap::new(),
            stepped: Vec::new(),
            lost: 0,
            is_hasty: false,
        };
        pipeline.begin_catch_up();
        pipeline
    }

    /// Asks for numbers before what is numbered is stored. For tests of tests only.
    #[doc(hidden)]
    #[must_use]
    pub const fn hasty(mut self) -> Self {
        self.is_hasty = true;
        self
    }

    /// The main chain as it knows it.
    #[must_use]
    pub const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Blocks that it made and that are not on the main chain.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// What to ask next, if anything.
    pub fn next_ask(&mut self) -> Option<Asking> {
        self.to_ask.pop_front()
    }

    /// What happened since this was asked last.
    pub fn take_steps(&mut self) -> Vec<Stepped> {
        std::mem::take(&mut self.stepped)
    }

    /// An answer. One to a question that is not open is passed over.
    pub fn answered(&mut self, id: u64, answer: Answer) {
        let Some(ask) = self.asked.remove(&id) else { return };
        match (ask, answer) {
            (ask, Answer::Failed) => self.again(id, ask),
            (Ask::Pop, Answer::Batch(given)) => self.begin(given),
            (Ask::Pop, Answer::Empty) => self.ask_pop(),
            (Ask::Timestamp { link }, Answer::Token(token)) if token.link == link => {
                self.timestamped(token);
            }
            (Ask::Sequence { link }, Answer::Attestation(it)) if it.link == link => {
                self.sequenced(it);
            }
            (Ask::Store { .. } | Ask::Ensure { .. }, Answer::Stored) => self.stored(id),
            (Ask::Attestations { .. }, Answer::Attestations(several)) => self.learnt(&several),
            (Ask::Fetch { number, link }, Answer::Fetched(proposal)) => {
                self.fetched(number, link, proposal);
            }
            (Ask::Done { .. }, Answer::Done) => {}
            // An answer that is none to this question: asked again.
            (ask, _) => self.again(id, ask),
        }
        self.go_on();
    }

    fn ask(&mut self, ask: Ask) -> u64 {
        self.last_id += 1;
        self.asked.insert(self.last_id, ask.clone());
        self.to_ask.push_back(Asking { id: self.last_id, ask, is_again: false });
        self.last_id
    }

    /// Asks the same again, under the same number, so that who waits for it goes on waiting.
    fn again(&mut self, id: u64, ask: Ask) {
        self.asked.insert(id, ask.clone());
        self.to_ask.push_back(Asking { id, ask, is_again: true });
    }

    fn ask_pop(&mut self) {
        let is_asked = self.asked.values().any(|ask| matches!(ask, Ask::Pop));
        if !is_asked && self.job.is_none() && self.closing.len() < CLOSING_MAX {
            self.ask(Ask::Pop);
        }
    }

    fn step(&mut self, batch: BatchId, step: Step) {
        self.stepped.push(Stepped { batch, step });
    }

    fn begin(&mut self, given: GivenOut) {
        let batch = given.batch.id;
        self.step(batch, Step::Dequeued { first: given.first, attempt: given.attempt });
        let tree = Tree::of(&given.batch);
        let (root, count) = (tree.root(), tree.count());
        self.step(batch, Step::TreeMade { count });
        if given.attempt > 1 {
            // Somebody may have got far with it.
            self.begin_catch_up();
        }
        self.job = Some(Job { given, root, count, storing: BTreeSet::new(), tried: None });
    }

    /// What can be done now.
    fn go_on(&mut self) {
        self.close();
        if self.catch_up.is_under_way() {
            return;
        }
        let Some(mut job) = self.job.take() else { return self.ask_pop() };
        let batch = job.given.batch.id;
        if self.chain.height_of(&batch).is_some() {
            // What lies below has to be stored, too, or nobody can decide about it.
            let storing = self.attesting.values().copied().chain(job.storing).collect();
            self.closing.push(Closing { batch, storing });
            self.close();
            return self.ask_pop();
        }
        let is_decided = |number: Option<u64>| number.is_some_and(|it| it < self.chain.next());
        match &mut job.tried {
            Some(tried) if is_decided(tried.number) => {
                self.lost += 1;
                self.step(batch, Step::Lost);
                self.make_block(&mut job);
            }
            Some(Tried { number: Some(_), .. }) => {
                // Somebody has a lower number.
                self.job = Some(job);
                return self.begin_catch_up();
            }
            Some(tried) => {
                if let Some(link) = tried.link
                    && (job.storing.is_empty() || self.is_hasty)
                    && !tried.is_sequencing
                {
                    tried.is_sequencing = true;
                    self.step(batch, Step::ProposalStored);
                    self.ask(Ask::Sequence { link });
                }
            }
            None => {
                let (name, whole) = (names::batch(&batch), job.given.batch.encoded());
                job.storing.insert(self.ask(Ask::Store { name, whole }));
                self.make_block(&mut job);
            }
        }
        self.job = Some(job);
    }

    fn make_block(&mut self, job: &mut Job) {
        let (batch, previous) = (job.given.batch.id, self.chain.head());
        let block = Block { batch, count: job.count, root: job.root, previous };
        let (link, is_sequencing, number) = (None, false, None);
        job.tried = Some(Tried { block, link, is_sequencing, number });
        self.ask(Ask::Timestamp { link: block.link() });
    }

    fn timestamped(&mut self, token: Token) {
        let Some(mut job) = self.job.take() else { return };
        if let Some(tried) = job.tried.as_mut().filter(|tried| tried.block.link() == token.link) {
            let link = token.link();
            tried.link = Some(link);
            let whole = Proposal { block: tried.block, token }.encoded();
            self.step(job.given.batch.id, Step::Timestamped);
            job.storing.insert(self.ask(Ask::Store { name: names::proposal(&link), whole }));
        }
        self.job = Some(job);
    }

    fn sequenced(&mut self, attestation: crate::data::Attestation) {
        let number = attestation.number;
        let Some(job) = self.job.as_mut() else { return };
        let Some(tried) = job.tried.as_mut().filter(|it| it.link == Some(attestation.link)) else {
            return;
        };
        tried.number = Some(number);
        let (block, batch) = (tried.block, job.given.batch.id);
        self.step(batch, Step::Sequenced { number });
        let (name, whole) = (names::attestation(number), attestation.encoded());
        let id = self.ask(Ask::Store { name, whole });
        self.attesting.insert(number, id);
        self.tell(number, attestation.link, block);
    }

    fn tell(&mut self, number: u64, link: Hash, block: Block) {
        for decided in self.chain.tell(number, link, block) {
            if let Standing::On { height } = decided.standing {
                let is_ours = self.job.as_ref().map(|job| job.given.batch.id);
                if is_ours == Some(decided.batch) {
                    self.step(decided.batch, Step::OnMainChain { height, number: decided.number });
                }
            }
        }
    }

    fn stored(&mut self, id: u64) {
        self.attesting.retain(|_, storing| *storing != id);
        if let Some(job) = &mut self.job {
            job.storing.remove(&id);
        }
        for closing in &mut self.closing {
            closing.storing.remove(&id);
        }
    }

    /// Batches with nothing left to store are done.
    fn close(&mut self) {
        let (done, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.closing).into_iter().partition(|it| it.storing.is_empty());
        self.closing = left;
        for Closing { batch, .. } in done {
            self.step(batch, Step::Stored);
            self.ask(Ask::Done { batch });
        }
    }
}
