//! A pipeline with connections: what it asks goes to queue, services and six buckets, whose pieces it makes and gathers. A piece
//! counts as stored when it was read back.

use std::collections::BTreeMap;
use std::time::Duration;

use clock::Instant;
use object_ledger_node::data::{Attestation, Proposal, Token, names};
use object_ledger_node::pieces::{Code, Gather, split};
use object_ledger_node::pipeline::{Answer, Ask, Asking, Pipeline, Step};
use object_ledger_node::protocol::{GivenOut, Pop, Refused, kind};
use process::{Input, Node, Outputs};

use crate::bucket::{GET, HAS, KEPT, NONE, PUT, named};
use crate::lines::{Came, Lines};

pub const BUCKETS: usize = 6;
const QUEUE: usize = 0;
const TIMESTAMP: usize = 1;
const SEQUENCER: usize = 2;
const FIRST_BUCKET: usize = 3;
pub const PEERS: usize = FIRST_BUCKET + BUCKETS;

const AGAIN: Duration = Duration::from_millis(40);
const POP: Pop = Pop { count_max: 8, lease_ms: 1_500, wait_ms: 100 };

/// Something that takes all buckets.
struct Job {
    /// Whose answer it makes.
    id: u64,
    ask: Ask,
    gather: Option<Gather>,
    /// Of a store: the pieces, by bucket.
    pieces: Vec<Vec<u8>>,
    well: usize,
    /// Buckets that have nothing under the name.
    none: usize,
    ended: usize,
}

enum Question {
    One { id: u64, ask: Ask },
    Bucket { job: u64, bucket: usize, reads_back: bool },
}

pub struct Maker {
    pub pipeline: Pipeline,
    lines: Lines,
    questions: BTreeMap<u64, Question>,
    jobs: BTreeMap<u64, Job>,
    last_job: u64,
    again: Vec<(Instant, Asking)>,
    pub steps: BTreeMap<&'static str, u64>,
    /// For tests of tests: believes a bucket that says that it keeps a piece.
    pub is_credulous: bool,
}

impl Maker {
    pub fn new(pipeline: Pipeline) -> Self {
        Self {
            pipeline,
            lines: Lines::to(PEERS),
            questions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            last_job: 0,
            again: Vec::new(),
            steps: BTreeMap::new(),
            is_credulous: false,
        }
    }

    fn carry_out(&mut self, now: Instant, asking: Asking, out: &mut Outputs) {
        let Asking { id, ask, .. } = asking;
        let (peer, kind, payload) = match &ask {
            Ask::Pop => (QUEUE, kind::POP, POP.encoded().to_vec()),
            Ask::Done { batch } => (QUEUE, kind::DONE, batch.to_vec()),
            Ask::Timestamp { link } => (TIMESTAMP, kind::TIMESTAMP, link.to_vec()),
            Ask::Sequence { proposal } => (SEQUENCER, kind::SEQUENCE, proposal.encoded()),
            Ask::Recall { number, .. } => (SEQUENCER, kind::RECALL, number.to_be_bytes().to_vec()),
            Ask::Attestations { from } => {
                let payload = [&from.to_be_bytes()[..], &256_u32.to_be_bytes()].concat();
                (SEQUENCER, kind::ATTESTATIONS, payload)
            }
            Ask::Store { name, whole } => {
                let (name, whole) = (name.clone(), whole.clone());
                return self.store(now, id, ask, &name, &whole, out);
            }
            Ask::Ensure { name, .. } => {
                let name = name.clone();
                return self.fetch(now, id, ask, &name, out);
            }
            Ask::Fetch { link, .. } => {
                let name = names::proposal(link);
                return self.fetch(now, id, ask, &name, out);
            }
        };
        let question = self.lines.ask(now, peer, kind, &[&payload], out);
        self.questions.insert(question, Question::One { id, ask });
    }

    fn store(
        &mut self,
        now: Instant,
        id: u64,
        ask: Ask,
        name: &str,
        whole: &[u8],
        out: &mut Outputs,
    ) {
        let pieces = split(Code::THREE_OF_SIX, name, whole);
        let of = pieces.clone();
        let job = self.begin(Job { id, ask, gather: None, pieces: of, well: 0, none: 0, ended: 0 });
        for (bucket, piece) in pieces.iter().enumerate() {
            let length = [u8::try_from(name.len()).expect("names are short")];
            self.ask_bucket(now, job, bucket, PUT, &named(name, &length, piece), out);
        }
    }

    fn fetch(&mut self, now: Instant, id: u64, ask: Ask, name: &str, out: &mut Outputs) {
        let gather = Some(Gather::of(name));
        let pieces = Vec::new();
        let job = self.begin(Job { id, ask, gather, pieces, well: 0, none: 0, ended: 0 });
        for bucket in 0..BUCKETS {
            let length = [u8::try_from(name.len()).expect("names are short")];
            self.ask_bucket(now, job, bucket, GET, &named(name, &length, &[]), out);
        }
    }

    fn begin(&mut self, job: Job) -> u64 {
        self.last_job += 1;
        self.jobs.insert(self.last_job, job);
        self.last_job
    }

    fn ask_bucket(
        &mut self,
        now: Instant,
        job: u64,
        bucket: usize,
        kind: u8,
        parts: &[&[u8]],
        out: &mut Outputs,
    ) {
        let question = self.lines.ask(now, FIRST_BUCKET + bucket, kind, parts, out);
        let reads_back = kind == GET && self.jobs.get(&job).is_some_and(|it| it.gather.is_none());
        self.questions.insert(question, Question::Bucket { job, bucket, reads_back });
    }

    fn came(&mut self, now: Instant, came: Came, out: &mut Outputs) {
        let (question, answer) = match came {
            Came::Answer { question, kind, payload } => (question, Some((kind, payload))),
            Came::Lost { question } => (question, None),
        };
        match self.questions.remove(&question) {
            Some(Question::One { id, ask }) => {
                let answer = answer.map_or(Answer::Failed, |(kind, it)| read(&ask, kind, &it));
                self.pipeline.answered(id, answer);
            }
            Some(Question::Bucket { job, bucket, reads_back }) => {
                self.bucket_said(now, job, bucket, reads_back, answer, out);
            }
            None => {}
        }
    }

    fn bucket_said(
        &mut self,
        now: Instant,
        serial: u64,
        bucket: usize,
        reads_back: bool,
        answer: Option<(u8, Vec<u8>)>,
        out: &mut Outputs,
    ) {
        let Some(job) = self.jobs.get_mut(&serial) else { return };
        let id = job.id;
        if matches!(answer, Some((KEPT, _))) && !self.is_credulous {
            let name = match &job.ask {
                Ask::Store { name, .. } | Ask::Ensure { name, .. } => name.clone(),
                _ => return,
            };
            let length = [u8::try_from(name.len()).expect("names are short")];
            return self.ask_bucket(now, serial, bucket, GET, &named(&name, &length, &[]), out);
        }
        job.ended += 1;
        let mut made = None;
        match answer {
            Some((KEPT, _)) => job.well += 1,
            Some((HAS, piece)) if reads_back => {
                job.well += usize::from(piece == job.pieces[bucket]);
            }
            Some((NONE, _)) => job.none += 1,
            Some((HAS, piece)) => {
                let gather = job.gather.as_mut().expect("it was asked for");
                // Pieces of nothing are passed over: some buckets lie.
                made = gather.offer(bucket, &piece).ok().flatten();
            }
            _ => {}
        }
        let made = made.filter(|whole| is_wanted(&job.ask, whole));
        let ended = match (&job.ask, made) {
            (Ask::Store { .. }, _) if job.well == 3 => Some(Answer::Stored),
            (Ask::Ensure { .. }, Some(_)) => Some(Answer::Stored),
            (Ask::Fetch { .. }, Some(made)) => Some(Answer::Fetched(Proposal::parse(&made).ok())),
            // With four that have none there are not three that have one.
            (Ask::Fetch { .. }, None) if job.none == 4 => Some(Answer::Fetched(None)),
            (Ask::Ensure { .. }, None)
                if job.gather.is_some() && (job.none == 4 || job.ended == BUCKETS) =>
            {
                let Some(Job { ask: Ask::Ensure { name, whole }, .. }) = self.jobs.remove(&serial)
                else {
                    return;
                };
                let ask = Ask::Store { name: name.clone(), whole: whole.clone() };
                return self.store(now, id, ask, &name, &whole, out);
            }
            _ => None,
        };
        let ended = ended.or((job.ended == BUCKETS).then_some(Answer::Failed));
        if let Some(answer) = ended {
            self.jobs.remove(&serial);
            self.pipeline.answered(id, answer);
        }
    }
}

/// Whether a whole is the one that was asked for.
fn is_wanted(ask: &Ask, whole: &[u8]) -> bool {
    match ask {
        Ask::Ensure { whole: ours, .. } => ours == whole,
        Ask::Fetch { link, .. } => Proposal::parse(whole).is_ok_and(|it| it.token.link() == *link),
        _ => true,
    }
}

fn read(ask: &Ask, kind: u8, payload: &[u8]) -> Answer {
    match (ask, kind) {
        (Ask::Pop, kind::BATCH) => Answer::Batch(GivenOut::parse(payload).expect("the queue's")),
        (Ask::Pop, kind::EMPTY) => Answer::Empty,
        (Ask::Timestamp { .. }, kind::TOKEN) => Answer::Token(Token::parse(payload).expect("one")),
        (Ask::Sequence { .. }, kind::ATTESTATION) => {
            Answer::Attestation(Attestation::parse(payload).expect("one"))
        }
        (Ask::Attestations { .. }, kind::SEVERAL) => {
            let each = payload.chunks(108).map(|it| Attestation::parse(it).expect("one"));
            Answer::Attestations(each.collect())
        }
        (Ask::Recall { .. }, kind::RECALLED) => Answer::Fetched(Proposal::parse(payload).ok()),
        (Ask::Done { .. }, kind::NOTED) => Answer::Done,
        (Ask::Done { .. }, kind::REFUSED) if payload == [Refused::NoSuchBatch as u8] => {
            Answer::Done
        }
        _ => Answer::Failed,
    }
}

impl Node for Maker {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        self.lines.happened(now, &input, out);
        loop {
            let due: Vec<Asking> =
                self.again.extract_if(.., |(at, _)| *at <= now).map(|(_, it)| it).collect();
            due.into_iter().for_each(|it| self.carry_out(now, it, out));
            while let Some(asking) = self.pipeline.next_ask() {
                if asking.is_again {
                    self.again.push((now.plus(AGAIN), asking));
                } else {
                    self.carry_out(now, asking, out);
                }
            }
            let came = self.lines.take();
            if came.is_empty() {
                break;
            }
            came.into_iter().for_each(|it| self.came(now, it, out));
        }
        for it in self.pipeline.take_steps() {
            let again = matches!(it.step, Step::Dequeued { attempt: 2.., .. });
            *self
                .steps
                .entry(if again { "dequeued again" } else { it.step.name() })
                .or_default() += 1;
        }
        let again = self.again.iter().map(|(at, _)| *at);
        if let Some(at) = again.chain(self.lines.wake()).min() {
            out.wake_at(at);
        }
    }
}
