//! A pipeline for real: what it asks goes to queue, services and buckets, each question on its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clock::Clock;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::asking::{NoAnswer, Service};
use crate::config::Config;
use crate::data::{
    ATTESTATION_BYTES, Attestation, BatchId, Proposal, PublicKey, Token, hex, names,
};
use crate::pipeline::{Answer, Ask, Asking, Pipeline, Step, Stepped};
use crate::protocol::{GivenOut, Pop, Refused, StepNote, kind};
use crate::sequencer::SEVERAL_MAX;
use crate::storage::Storage;
use crate::verify::Trust;

/// After this what has failed is asked again.
const AGAIN: Duration = Duration::from_millis(200);
/// A service answers in this time, beside what it was told to wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a pop waits for a transaction.
const POP_WAIT: Duration = Duration::from_secs(2);
/// Names of later numbers that are looked at, at a start.
const LATER_MAX: usize = 16;
/// Notes for a watcher that wait to be sent.
const NOTES_MAX: usize = 64;

/// What a pipeline is told.
pub(crate) struct Options {
    pub(crate) count_max: u32,
    pub(crate) lease: Duration,
    /// Watchers that are told of steps, and whether they are to look at once.
    pub(crate) watchers: Vec<String>,
    pub(crate) pushes: bool,
}

/// What is counted, for metrics.
#[derive(Default)]
pub(crate) struct Counts {
    numbers: Mutex<Numbers>,
}

#[derive(Clone, Default)]
struct Numbers {
    height: u64,
    lost: u64,
    steps: BTreeMap<&'static str, u64>,
    transactions: u64,
    /// What fails now, with its words.
    failing: BTreeMap<&'static str, String>,
    withheld: Option<u64>,
}

impl Counts {
    fn change(&self, change: impl FnOnce(&mut Numbers)) {
        change(&mut self.numbers.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn metrics(&self) -> String {
        let numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = wire::metrics::text(&[
            (
                "ledger_height",
                false,
                "Blocks on the main chain, as this pipeline knows it.",
                numbers.height,
            ),
            (
                "ledger_blocks_lost_total",
                true,
                "Blocks made here that are not on the main chain.",
                numbers.lost,
            ),
            (
                "ledger_made_transactions_total",
                true,
                "Transactions of batches that were dequeued here.",
                numbers.transactions,
            ),
            (
                "ledger_withheld",
                false,
                "The number whose block is in no bucket; 0: none.",
                numbers.withheld.unwrap_or(0),
            ),
        ]);
        text.push_str(
            "# HELP ledger_steps_total Steps of batches.\n# TYPE ledger_steps_total counter\n",
        );
        for (step, count) in &numbers.steps {
            text.push_str(&format!("ledger_steps_total{{step=\"{step}\"}} {count}\n"));
        }
        text.push_str("# HELP ledger_stalled Whether this fails at present and is tried again.\n# TYPE ledger_stalled gauge\n");
        for what in WHATS {
            let stalled = u8::from(numbers.failing.contains_key(what));
            text.push_str(&format!("ledger_stalled{{what=\"{what}\"}} {stalled}\n"));
        }
        text.push_str("# HELP ledger_stalled_words Why it fails at present.\n# TYPE ledger_stalled_words gauge\n");
        for (what, why) in &numbers.failing {
            let why = why.replace(['\\', '"', '\n'], " ");
            text.push_str(&format!("ledger_stalled_words{{what=\"{what}\",words=\"{why}\"}} 1\n"));
        }
        text
    }
}

/// What a pipeline asks, for people.
const WHATS: [&str; 9] = [
    "services",
    "queue",
    "timestamp",
    "sequencer",
    "store",
    "read",
    "withheld",
    "token",
    "attestation",
];

fn what(ask: &Ask) -> &'static str {
    match ask {
        Ask::Pop | Ask::Done { .. } => "queue",
        Ask::Timestamp { .. } => "timestamp",
        Ask::Sequence { .. } | Ask::Attestations { .. } | Ask::Recall { .. } => "sequencer",
        Ask::Store { .. } => "store",
        Ask::Ensure { .. } | Ask::Fetch { .. } => "read",
    }
}

struct Making {
    queue: Service,
    timestamp: Service,
    sequencer: Service,
    storage: Arc<Storage>,
    trust: Trust,
    pop: Pop,
}

/// Makes blocks; ends only with an error at its start.
pub(crate) async fn run(
    config: &Config,
    options: Options,
    storage: Arc<Storage>,
    counts: Arc<Counts>,
    clock: Clock,
) -> Result<(), String> {
    let (secret, trust) = (config.secret()?, config.trust()?);
    let at = |what, address: &Option<String>| {
        let address = Config::address(what, address.as_ref())?;
        Ok::<_, String>(Service::known(&address, secret.clone()))
    };
    let milliseconds = |it: Duration| u32::try_from(it.as_millis()).unwrap_or(u32::MAX);
    let making = Arc::new(Making {
        queue: at("queue", &config.queue)?,
        timestamp: at("timestamp", &config.timestamp)?,
        sequencer: at("sequencer", &config.sequencer)?,
        storage,
        trust: trust.clone(),
        pop: Pop {
            count_max: options.count_max,
            lease_ms: milliseconds(options.lease),
            wait_ms: milliseconds(POP_WAIT),
        },
    });
    let notes = Notes::begin(&options);
    while let Err(why) = making.look_at_services().await {
        tell_state(&counts, "services", Some(why));
        sleep(AGAIN).await;
    }
    tell_state(&counts, "services", None);
    tokio::spawn(Arc::clone(&making.storage).write_missed());
    tokio::spawn(crate::reading::repair_all(Arc::clone(&making.storage), trust.clone()));
    let mut pipeline = Pipeline::new(trust);
    let (answered, mut answers) = mpsc::unbounded_channel();
    loop {
        while let Some(asking) = pipeline.next_ask() {
            let (making, answered) = (Arc::clone(&making), answered.clone());
            tokio::spawn(async move {
                if asking.is_again {
                    sleep(AGAIN).await;
                }
                let Asking { id, ask, .. } = asking;
                let (answer, why) = making.carry_out(&ask).await;
                // The pipeline has ended.
                let _ = answered.send((id, what(&ask), answer, why));
            });
        }
        note(&mut pipeline, &counts, &notes, clock);
        let Some((id, what, answer, why)) = answers.recv().await else { return Ok(()) };
        tell_state(&counts, what, why);
        pipeline.answered(id, answer);
        for (what, service) in [("token", "timestamp"), ("attestation", "sequencer")] {
            tell_state(&counts, what, pipeline.distrust(service).map(str::to_owned));
        }
        let withheld = pipeline.withheld();
        let words = withheld.map(|number| format!("the block of number {number} is in no bucket"));
        tell_state(&counts, "withheld", words);
        counts.change(|it| it.withheld = withheld);
    }
}

/// Says once that something fails, and once that it does not any more.
fn tell_state(counts: &Counts, what: &'static str, why: Option<String>) {
    counts.change(|numbers| match why {
        Some(why) => {
            if numbers.failing.insert(what, why.clone()).is_none() {
                eprintln!("stalled ({what}): {why}; it is tried again");
            }
        }
        None => {
            if numbers.failing.remove(what).is_some() {
                eprintln!("goes on ({what})");
            }
        }
    });
}

/// Counts steps and tells watchers of them, with their times.
fn note(pipeline: &mut Pipeline, counts: &Counts, notes: &Notes, clock: Clock) {
    let steps = pipeline.take_steps();
    if steps.is_empty() {
        return;
    }
    let at_ns = clock.origin_monotonic_ns().saturating_add(clock.now().as_ns());
    for Stepped { batch, step } in steps {
        counts.change(|numbers| {
            *numbers.steps.entry(step.name()).or_default() += 1;
            if let Step::TreeMade { count } = step {
                numbers.transactions += u64::from(count);
            }
        });
        notes.send(batch, step, at_ns);
    }
    counts.change(|numbers| {
        (numbers.height, numbers.lost) = (pipeline.chain().height(), pipeline.lost());
    });
}

impl Making {
    /// The answer, and what failed, if something did.
    async fn carry_out(&self, ask: &Ask) -> (Answer, Option<String>) {
        match self.answer(ask).await {
            Ok(answer) => (answer, None),
            Err(why) => (Answer::Failed, Some(why)),
        }
    }

    async fn answer(&self, ask: &Ask) -> Result<Answer, String> {
        let words = |error: NoAnswer| error.to_string();
        match ask {
            Ask::Pop => {
                let payload = self.pop.encoded().to_vec();
                let (kind, payload) =
                    self.queue.ask(kind::POP, payload, POP_WAIT + PATIENCE).await.map_err(words)?;
                match kind {
                    kind::EMPTY => Ok(Answer::Empty),
                    kind::BATCH => GivenOut::parse(&payload)
                        .map(Answer::Batch)
                        .map_err(|why| format!("the queue's batch: {why}")),
                    _ => Err(words(self.queue.garbled())),
                }
            }
            Ask::Done { batch } => {
                let done = self.queue.ask_for(kind::NOTED, kind::DONE, batch.to_vec(), PATIENCE);
                match done.await {
                    // Another pipeline has said so before.
                    Ok(_) | Err(NoAnswer::Refused(Refused::NoSuchBatch)) => Ok(Answer::Done),
                    Err(error) => Err(words(error)),
                }
            }
            Ask::Timestamp { link } => {
                let ask =
                    self.timestamp.ask_for(kind::TOKEN, kind::TIMESTAMP, link.to_vec(), PATIENCE);
                let token = Token::parse(&ask.await.map_err(words)?);
                token.map(Answer::Token).map_err(|why| format!("the timestamp token: {why}"))
            }
            Ask::Sequence { proposal } => {
                let ask = self.sequencer.ask_for(
                    kind::ATTESTATION,
                    kind::SEQUENCE,
                    proposal.encoded(),
                    PATIENCE,
                );
                let it = Attestation::parse(&ask.await.map_err(words)?);
                it.map(Answer::Attestation).map_err(|why| format!("the attestation: {why}"))
            }
            Ask::Attestations { from } => {
                let payload = [&from.to_be_bytes()[..], &SEVERAL_MAX.to_be_bytes()].concat();
                let ask =
                    self.sequencer.ask_for(kind::SEVERAL, kind::ATTESTATIONS, payload, PATIENCE);
                let several = ask.await.map_err(words)?;
                let each = several
                    .chunks(ATTESTATION_BYTES)
                    .map(Attestation::parse)
                    .collect::<Result<Vec<_>, _>>();
                each.map(Answer::Attestations).map_err(|why| format!("the attestations: {why}"))
            }
            Ask::Store { name, whole } => {
                let stored = self.storage.store(name, whole).await;
                if stored.is_err() {
                    self.keep_evidence(name, whole).await;
                }
                stored.map(|()| Answer::Stored).map_err(|error| error.to_string())
            }
            Ask::Ensure { name, whole } => {
                let ensured = self.storage.ensure(name, whole).await;
                ensured.map(|()| Answer::Stored).map_err(|error| error.to_string())
            }
            Ask::Fetch { link, .. } => {
                let is_it =
                    |whole: &[u8]| Proposal::parse(whole).is_ok_and(|it| it.token.link() == *link);
                let fetched = self.storage.fetch(&names::proposal(link), is_it).await;
                let whole = fetched.map_err(|error| error.to_string())?;
                // One that cannot be read is as good as none.
                Ok(Answer::Fetched(whole.and_then(|whole| Proposal::parse(&whole).ok())))
            }
            Ask::Recall { number, .. } => {
                let payload = number.to_be_bytes().to_vec();
                let recalled =
                    self.sequencer.ask_for(kind::RECALLED, kind::RECALL, payload, PATIENCE);
                match recalled.await {
                    Ok(bytes) => Ok(Answer::Fetched(Proposal::parse(&bytes).ok())),
                    Err(NoAnswer::Refused(Refused::NoSuchNumber)) => Ok(Answer::Fetched(None)),
                    Err(error) => Err(words(error)),
                }
            }
        }
    }

    /// Where an attestation cannot be stored because another one of the same number stands there, signed, ours is stored as
    /// evidence: whoever reads the buckets then has both.
    async fn keep_evidence(&self, name: &str, whole: &[u8]) {
        let Some(number) = names::attestation_number(name) else { return };
        let Ok(ours) = Attestation::parse(whole) else { return };
        let is_other = |there: &[u8]| {
            Attestation::parse(there).is_ok_and(|it| {
                it.number == number && it.link != ours.link && self.trust.has_signed(&it)
            })
        };
        if matches!(self.storage.fetch(name, is_other).await, Ok(Some(_))) {
            // It is tried again with the next attempt.
            let _ = self.storage.store(&names::fork(number, &ours.link), whole).await;
        }
    }

    /// Whether both services sign with the keys that clients believe, and the sequencer knows all numbers that the buckets
    /// have: one that has forgotten some would give them again.
    async fn look_at_services(&self) -> Result<(), String> {
        let trust = &self.trust;
        for (name, service, keys) in [
            ("timestamp service", &self.timestamp, &trust.timestamp),
            ("sequencer", &self.sequencer, &trust.sequencer),
        ] {
            let key = service.ask_for(kind::PUBLIC_KEY, kind::KEY, Vec::new(), PATIENCE).await;
            let key = key.map_err(|error| error.to_string())?;
            let key = PublicKey::try_from(&key[..]).map_err(|_| service.garbled().to_string())?;
            if !keys.all().any(|it| *it == key) {
                return Err(format!(
                    "the {name} signs with the key {}, which the ledger's file does not have",
                    hex(&key)
                ));
            }
        }
        let last = self.last_number().await?;
        let stored = self.storage.list("sequence", &names::attestation(last), LATER_MAX).await;
        let numbers = stored.iter().filter_map(|name| names::attestation_number(name));
        for number in numbers.filter(|it| *it > last) {
            let is_signed = |whole: &[u8]| {
                Attestation::parse(whole)
                    .is_ok_and(|it| trust.has_signed(&it) && it.number == number)
            };
            if self
                .storage
                .fetch(&names::attestation(number), is_signed)
                .await
                .is_ok_and(|it| it.is_some())
            {
                return Err(format!(
                    "the sequencer has given {last} numbers and the buckets have number {number}: it has started over; use `object-ledger resume`"
                ));
            }
        }
        Ok(())
    }

    /// The last number that the sequencer has given.
    async fn last_number(&self) -> Result<u64, String> {
        let note = self.sequencer.ask_for(kind::NOTE, kind::CHECKPOINT, Vec::new(), PATIENCE).await;
        let note = note.map_err(|error| error.to_string())?;
        crate::note::size_of(&String::from_utf8_lossy(&note))
            .ok_or_else(|| self.sequencer.garbled().to_string())
    }
}

/// Tells watchers of steps. Nobody waits for a watcher: what one does not take is left out.
struct Notes {
    watchers: Vec<mpsc::Sender<(u8, Vec<u8>)>>,
    pushes: bool,
}

impl Notes {
    fn begin(options: &Options) -> Self {
        let begin = |address: &String| {
            let (notes, mut waiting) = mpsc::channel::<(u8, Vec<u8>)>(NOTES_MAX);
            let watcher = Service::at(address);
            tokio::spawn(async move {
                while let Some((kind, payload)) = waiting.recv().await {
                    // A watcher that is not there is not told.
                    let _ = watcher.ask(kind, payload, PATIENCE).await;
                }
            });
            notes
        };
        Self { watchers: options.watchers.iter().map(begin).collect(), pushes: options.pushes }
    }

    fn send(&self, batch: BatchId, step: Step, at_ns: i64) {
        let note = StepNote { batch, step: step.code(), at_ns }.encoded();
        for watcher in &self.watchers {
            let _ = watcher.try_send((kind::STEP, note.to_vec()));
            if self.pushes && matches!(step, Step::Stored) {
                let _ = watcher.try_send((kind::LOOK, Vec::new()));
            }
        }
    }
}
