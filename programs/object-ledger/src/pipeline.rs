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
use crate::data::{Attestation, BatchId, Block, Hash, Proposal, Token, Tree, names};
use crate::protocol::GivenOut;
use crate::verify::Trust;

pub use ask::{Answer, Ask, Asking, Step, Stepped};
use catch_up::CatchUp;

const TIMESTAMP: &str = "timestamp";
const SEQUENCER: &str = "sequencer";

fn unsigned(what: &str, who: &str) -> String {
    format!("the {who} answers with a {what} that its key has not signed; nothing of it is stored")
}

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
    /// Once it is timestamped.
    token: Option<Token>,
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
    trust: Trust,
    chain: Chain,
    asked: BTreeMap<u64, Ask>,
    last_id: u64,
    to_ask: VecDeque<Asking>,
    job: Option<Job>,
    closing: Vec<Closing>,
    catch_up: CatchUp,
    /// Attestations that are being stored, by number: what is above them is not done before they are.
    attesting: BTreeMap<u64, u64>,
    /// Blocks that were in no bucket and are being stored, as the sequencer had them.
    recalled: BTreeSet<u64>,
    /// The last statement of each service that does not hold.
    distrust: BTreeMap<&'static str, String>,
    stepped: Vec<Stepped>,
    lost: u64,
    is_hasty: bool,
}

impl Pipeline {
    /// One that knows nothing but where the ledger begins and whom to believe: it stores nothing that those have not signed.
    #[must_use]
    pub fn new(trust: Trust) -> Self {
        let mut pipeline = Self {
            chain: Chain::new(trust.genesis),
            trust,
            asked: BTreeMap::new(),
            last_id: 0,
            to_ask: VecDeque::new(),
            job: None,
            closing: Vec::new(),
            catch_up: CatchUp::default(),
            attesting: BTreeMap::new(),
            recalled: BTreeSet::new(),
            distrust: BTreeMap::new(),
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

    /// Why the last statement of a service (`timestamp` or `sequencer`) was not believed; `None`: it was.
    #[must_use]
    pub fn distrust(&self, service: &str) -> Option<&str> {
        self.distrust.get(service).map(String::as_str)
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
            // The buckets cannot say; the sequencer can.
            (Ask::Fetch { number, link }, Answer::Failed) => self.fetched(number, link, None),
            (ask, Answer::Failed) => self.again(id, ask),
            (Ask::Pop, Answer::Batch(given)) => self.begin(given),
            (Ask::Pop, Answer::Empty) => self.ask_pop(),
            (Ask::Timestamp { link }, Answer::Token(token)) => match self.check_token(link, &token)
            {
                Ok(()) => {
                    self.distrust.remove(TIMESTAMP);
                    self.timestamped(token);
                }
                Err(why) => self.distrusted(TIMESTAMP, why, id, Ask::Timestamp { link }),
            },
            (Ask::Sequence { proposal }, Answer::Attestation(it)) => {
                let is_it = it.link == proposal.token.link() && self.trust.has_signed(&it);
                if is_it && self.chain.link_of(it.number).is_some_and(|link| link != it.link) {
                    // The number is another block's: whoever reads the buckets is to see both.
                    let (name, whole) = (names::fork(it.number, &it.link), it.encoded());
                    self.ask(Ask::Store { name, whole });
                    let why =
                        format!("the sequencer has signed number {} twice: a fork", it.number);
                    self.distrusted(SEQUENCER, why, id, Ask::Sequence { proposal });
                } else if is_it {
                    self.distrust.remove(SEQUENCER);
                    self.sequenced(it);
                } else {
                    let why = unsigned("attestation", "sequencer");
                    self.distrusted(SEQUENCER, why, id, Ask::Sequence { proposal });
                }
            }
            (Ask::Store { .. } | Ask::Ensure { .. }, Answer::Stored) => self.stored(id),
            (Ask::Attestations { from }, Answer::Attestations(several)) => {
                if several.iter().all(|it| self.trust.has_signed(it)) {
                    self.distrust.remove(SEQUENCER);
                    self.learnt(&several);
                } else {
                    let why = unsigned("attestation", "sequencer");
                    self.distrusted(SEQUENCER, why, id, Ask::Attestations { from });
                }
            }
            (Ask::Fetch { number, link }, Answer::Fetched(proposal)) => {
                self.fetched(number, link, proposal);
            }
            (Ask::Recall { number, link }, Answer::Fetched(proposal)) => {
                self.was_recalled(number, link, proposal);
            }
            (Ask::Done { .. }, Answer::Done) => {}
            // An answer that is none to this question: asked again.
            (ask, _) => self.again(id, ask),
        }
        self.go_on();
    }

    /// Whether a token is the one that was asked for, signed, and not earlier than the head's.
    fn check_token(&self, link: Hash, token: &Token) -> Result<(), String> {
        if token.link != link || !self.trust.has_stamped(token, self.chain.next()) {
            return Err(unsigned("token", "timestamp service"));
        }
        let behind = self.chain.head_issued_unix_ns().saturating_sub(token.issued_unix_ns);
        if behind > 0 {
            return Err(format!(
                "the timestamp service's clock is {} ms before the head's timestamp",
                behind / 1_000_000 + 1
            ));
        }
        Ok(())
    }

    fn distrusted(&mut self, service: &'static str, why: String, id: u64, ask: Ask) {
        self.distrust.insert(service, why);
        self.again(id, ask);
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
            let below = self.attesting.values().chain(&self.recalled).copied();
            let mut storing: BTreeSet<u64> = below.chain(job.storing).collect();
            if job.given.attempt > 1 {
                // Whoever had it before may have crashed between the buckets' answers and their disks.
                let (name, whole) = (names::batch(&batch), job.given.batch.encoded());
                storing.insert(self.ask(Ask::Ensure { name, whole }));
            }
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
                if let Some(token) = tried.token
                    && (job.storing.is_empty() || self.is_hasty)
                    && !tried.is_sequencing
                {
                    tried.is_sequencing = true;
                    self.step(batch, Step::ProposalStored);
                    let proposal = Proposal { block: tried.block, token };
                    self.ask(Ask::Sequence { proposal });
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
        let (token, is_sequencing, number) = (None, false, None);
        job.tried = Some(Tried { block, token, is_sequencing, number });
        self.ask(Ask::Timestamp { link: block.link() });
    }

    fn timestamped(&mut self, token: Token) {
        let Some(mut job) = self.job.take() else { return };
        if let Some(tried) = job.tried.as_mut().filter(|tried| tried.block.link() == token.link) {
            let link = token.link();
            tried.token = Some(token);
            let whole = Proposal { block: tried.block, token }.encoded();
            self.step(job.given.batch.id, Step::Timestamped);
            job.storing.insert(self.ask(Ask::Store { name: names::proposal(&link), whole }));
        }
        self.job = Some(job);
    }

    fn sequenced(&mut self, attestation: Attestation) {
        let number = attestation.number;
        let Some(job) = self.job.as_mut() else { return };
        let Some(tried) = job.tried.as_mut() else { return };
        let Some(token) = tried.token.filter(|it| it.link() == attestation.link) else { return };
        tried.number = Some(number);
        let proposal = Proposal { block: tried.block, token };
        let batch = job.given.batch.id;
        self.step(batch, Step::Sequenced { number });
        let (name, whole) = (names::attestation(number), attestation.encoded());
        let id = self.ask(Ask::Store { name, whole });
        self.attesting.insert(number, id);
        self.tell(number, attestation.link, Some(proposal));
    }

    fn tell(&mut self, number: u64, link: Hash, proposal: Option<Proposal>) {
        for decided in self.chain.tell(number, link, proposal) {
            if let Standing::On { height } = decided.standing {
                let is_ours = self.job.as_ref().map(|job| job.given.batch.id);
                if let Some(batch) = decided.batch.filter(|it| is_ours == Some(*it)) {
                    self.step(batch, Step::OnMainChain { height, number: decided.number });
                }
            }
        }
    }

    fn stored(&mut self, id: u64) {
        self.attesting.retain(|_, storing| *storing != id);
        self.recalled.remove(&id);
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
