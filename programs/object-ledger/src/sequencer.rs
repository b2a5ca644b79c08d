//! The sequencer as a value: it gives each link a number, one after the other from 1 on, and signs it. A link that comes again
//! gets the number that it has. No number is said before it is durable.
//!
//! It is asked with the block and its token, and keeps both: so it numbers nothing that the timestamp service has not signed,
//! and no number is without its block, whoever asked for it. Numbers that it cannot account for (its disk was lost) are void.

use std::collections::{HashMap, VecDeque};

use clock::Instant;
use process::{Input, Node, Outputs, Stored};
use wire::metrics::Number;

use crate::chain::{Chain, Standing};
use crate::data::{Attestation, Hash, Malformed, PROPOSAL_BYTES, Proposal, Reader, VOID};
use crate::delay::Delay;
use crate::fault::{Fault, Kind};
use crate::keys::Key;
use crate::note::{self, LogTree, leaf_of};
use crate::protocol::{Frame, Refused, kind, write_frame, write_refused};
use crate::service::{Answering, Asked, Doors, Later};
use crate::verify::Trust;

/// Attestations in one answer at most.
pub const SEVERAL_MAX: u32 = 256;
/// Answers that may wait for the disk or their time; what comes beyond is refused.
const WAITING_MAX: usize = 65_536;
/// Its log.
pub const LOG: &str = "numbers";

/// The record of a void.
const VOID_RECORD: [u8; 1] = [0];

/// The file in its folder that a sequencer which knows no number goes on after.
pub const RESUME: &str = "resume";
const RESUMED_BYTES: usize = 1 + PROPOSAL_BYTES;

/// Bytes that say after which numbers a sequencer goes on; those without a block are void.
pub fn resumption(numbers: impl Iterator<Item = Option<Proposal>>) -> Vec<u8> {
    let each = numbers.map(|it| match it {
        Some(it) => [vec![1], it.encoded()].concat(),
        None => vec![0; RESUMED_BYTES],
    });
    each.flatten().collect()
}

/// A sequencer. Its log has one record a number: the block with its token, or one byte for a void.
#[derive(Debug)]
pub struct Sequencer {
    key: Key,
    /// The ledger, and whose tokens are numbered.
    trust: Trust,
    /// The name of the ledger, for checkpoints.
    name: String,
    delay: Delay,
    /// All numbers, each signed once, said whenever it is asked for.
    attestations: Vec<Attestation>,
    proposals: Vec<Option<Proposal>>,
    chain: Chain,
    tree: LogTree,
    /// The last checkpoint that was signed, and its size.
    checkpoint: Option<(u64, String)>,
    numbers: HashMap<Hash, u64>,
    durable: u64,
    waiting: VecDeque<(u64, Asked, Instant)>,
    doors: Doors,
    later: Later<(Asked, u64)>,
    says_early: bool,
    /// Requests that were refused because the token had no valid signature.
    unsigned: u64,
    /// Numbers that it takes up from elsewhere.
    to_resume: Vec<Option<Proposal>>,
    /// The fault that it commits on purpose.
    pub fault: Option<Fault>,
    has_forked: bool,
}

/// Why a sequencer does not go on after a resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoResumption {
    /// It is none.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The log begins with other numbers.
    #[error(
        "expected the block that the log has as number {number}, got another; one of the two is not this ledger's: move it away"
    )]
    Other {
        /// The first that differs.
        number: u64,
    },
}

/// What is on the disk are no numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "record {record} of the numbers is no block with its token; the log was damaged or is of something else"
)]
pub struct NoNumbers {
    /// Which record.
    pub record: u64,
}

impl Sequencer {
    /// One as its disk left it; it answers after `delay`.
    ///
    /// # Errors
    /// When what is there are no numbers.
    pub fn new(
        key: Key,
        name: &str,
        trust: Trust,
        delay: Delay,
        stored: &Stored,
    ) -> Result<Self, NoNumbers> {
        let mut sequencer = Self {
            key,
            name: name.to_owned(),
            delay,
            attestations: Vec::new(),
            proposals: Vec::new(),
            chain: Chain::new(trust.genesis),
            tree: LogTree::default(),
            checkpoint: None,
            trust,
            numbers: HashMap::new(),
            durable: 0,
            waiting: VecDeque::new(),
            doors: Doors::default(),
            later: Later::default(),
            says_early: false,
            unsigned: 0,
            to_resume: Vec::new(),
            fault: None,
            has_forked: false,
        };
        for (record, bytes) in stored.logs.iter().flat_map(|log| log.iter()) {
            if record != sequencer.last() {
                return Err(NoNumbers { record });
            }
            let proposal = match bytes {
                [0] => None,
                bytes => Some(Proposal::parse(bytes).map_err(|_| NoNumbers { record })?),
            };
            sequencer.take(proposal);
        }
        sequencer.durable = sequencer.last();
        Ok(sequencer)
    }

    /// Says numbers before they are durable. For tests of tests only.
    #[doc(hidden)]
    #[must_use]
    pub const fn saying_early(mut self) -> Self {
        self.says_early = true;
        self
    }

    /// The last number that is durable.
    #[must_use]
    pub const fn durable(&self) -> u64 {
        self.durable
    }

    /// Goes on after numbers that it has given and does not know any more ([`resumption`]). It may know the first of them: a
    /// crash leaves those that were durable by then.
    ///
    /// # Errors
    /// When the bytes are no resumption, or one of other numbers.
    pub fn resume(&mut self, bytes: &[u8]) -> Result<(), NoResumption> {
        let known = self.proposals.len();
        if known > 0 && known >= bytes.len() / RESUMED_BYTES {
            return Ok(());
        }
        if !bytes.len().is_multiple_of(RESUMED_BYTES) {
            return Err(Malformed::Short.into());
        }
        let each = bytes.chunks(RESUMED_BYTES).map(|it| match it.split_first() {
            Some((0, _)) => Ok(None),
            Some((1, it)) => Proposal::parse(it).map(Some),
            _ => Err(Malformed::Tag),
        });
        let mut all = each.collect::<Result<Vec<_>, _>>()?;
        let mut pairs = (1..).zip(all.iter().zip(&self.proposals));
        if let Some((number, _)) = pairs.find(|(_, (one, known))| one != known) {
            return Err(NoResumption::Other { number });
        }
        self.to_resume = all.split_off(known);
        Ok(())
    }

    /// The last number that was given.
    fn last(&self) -> u64 {
        self.attestations.len() as u64
    }

    fn take(&mut self, proposal: Option<Proposal>) -> u64 {
        let link = proposal.map_or(VOID, |it| it.token.link());
        let number = self.last() + 1;
        self.proposals.push(proposal);
        if proposal.is_some() {
            self.numbers.insert(link, number);
        }
        let decided = self.chain.tell(number, link, proposal);
        let height = decided.first().and_then(|it| match it.standing {
            Standing::On { height } => Some(height),
            _ => None,
        });
        let attestation = self.key.attestation(&self.trust.genesis, number, link);
        self.attestations.push(attestation);
        self.tree.push(leaf_of(&attestation, height));
        number
    }

    fn sequence(&mut self, now: Instant, asked: Asked, proposal: &Proposal, out: &mut Outputs) {
        let link = proposal.token.link();
        let number = match self.numbers.get(&link) {
            Some(number) => *number,
            None => {
                let number = self.last() + 1;
                let is_whole = proposal.token.link == proposal.block.link();
                if !is_whole || !self.trust.has_stamped(&proposal.token, number) {
                    self.unsigned += 1;
                    let to = out.send(asked.connection);
                    return write_refused(to, asked.id, Refused::Unsigned);
                }
                if !self.has_forked && Fault::is_on(self.fault, Kind::Forks, number) && number > 1 {
                    self.has_forked = true;
                    let again = self.key.attestation(&self.trust.genesis, number - 1, link);
                    let to = out.send(asked.connection);
                    return write_frame(to, kind::ATTESTATION, asked.id, &[&again.encoded()]);
                }
                out.append(0, &proposal.encoded());
                self.take(Some(*proposal))
            }
        };
        let at = now.plus(self.delay.draw());
        if number <= self.durable || self.says_early {
            self.later.add(at, (asked, number));
        } else {
            self.waiting.push_back((number, asked, at));
        }
    }

    fn several(&self, id: u64, from: u64, count: u32, to: &mut Vec<u8>) {
        // As wide as it can be: a stranger asks from any number on.
        let last = (from - 1).saturating_add(u64::from(count)).min(self.durable);
        let each = (from..=last).flat_map(|number| self.attestation(number));
        let several: Vec<u8> = each.collect();
        write_frame(to, kind::SEVERAL, id, &[&several]);
    }

    fn attestation(&self, number: u64) -> Vec<u8> {
        let index = usize::try_from(number - 1).expect("it is in memory");
        self.attestations[index].encoded()
    }

    /// A signed checkpoint of all durable numbers: strangers ask for it as often as they like, and it is signed once.
    fn checkpoint(&mut self) -> &str {
        let size = self.durable;
        self.checkpoint.take_if(|(of, _)| *of != size);
        let (_, note) = self.checkpoint.get_or_insert_with(|| {
            let body = note::body(&self.name, size, &self.tree.root(size));
            (size, note::signed(&body, &note::origin(&self.name), &self.key))
        });
        note
    }
}

impl Answering for Sequencer {
    fn doors(&mut self) -> &mut Doors {
        &mut self.doors
    }

    fn metrics(&self) -> Vec<Number> {
        vec![
            ("ledger_numbers_total", true, "Sequence numbers given.", self.durable),
            (
                "ledger_unsigned_total",
                true,
                "Blocks without a signed token, refused.",
                self.unsigned,
            ),
            ("ledger_signatures_total", true, "Signatures made.", self.key.signatures()),
        ]
    }

    fn is_guarded(&self, kind: u8) -> bool {
        kind == kind::SEQUENCE
    }

    fn asked(&mut self, now: Instant, asked: Asked, frame: Frame<'_>, out: &mut Outputs) {
        let to = out.send(asked.connection);
        match frame.kind {
            kind::KEY => write_frame(to, kind::PUBLIC_KEY, asked.id, &[&self.key.public()]),
            kind::SEQUENCE if self.waiting.len() + self.later.len() >= WAITING_MAX => {
                write_refused(to, asked.id, Refused::Full);
            }
            kind::SEQUENCE => match Proposal::parse(frame.payload) {
                Ok(proposal) => self.sequence(now, asked, &proposal, out),
                Err(_) => write_refused(to, asked.id, Refused::Malformed),
            },
            kind::CHECKPOINT => {
                let note = self.checkpoint();
                write_frame(to, kind::NOTE, asked.id, &[note.as_bytes()]);
            }
            kind::RECALL => {
                let number = <[u8; 8]>::try_from(frame.payload).map_or(0, u64::from_be_bytes);
                let index = usize::try_from(number.wrapping_sub(1)).unwrap_or(usize::MAX);
                match self.proposals.get(index).copied().flatten() {
                    Some(it) if number <= self.durable => {
                        write_frame(to, kind::RECALLED, asked.id, &[&it.encoded()]);
                    }
                    _ => write_refused(to, asked.id, Refused::NoSuchNumber),
                }
            }
            kind::ATTESTATIONS => {
                let mut reader = Reader::new(frame.payload);
                match (reader.u64(), reader.u32(), reader.end()) {
                    (Ok(from @ 1..), Ok(count), Ok(())) => {
                        self.several(asked.id, from, count.min(SEVERAL_MAX), to);
                    }
                    _ => write_refused(to, asked.id, Refused::Malformed),
                }
            }
            _ => write_refused(to, asked.id, Refused::Malformed),
        }
    }
}

impl Node for Sequencer {
    fn step(&mut self, now: Instant, input: Input<'_>, out: &mut Outputs) {
        for it in std::mem::take(&mut self.to_resume) {
            match it {
                Some(proposal) => out.append(0, &proposal.encoded()),
                None => out.append(0, &VOID_RECORD),
            };
            self.take(it);
        }
        match input {
            Input::Opened { .. } | Input::Bytes(..) => self.hear(now, input, out),
            Input::Persisted { log: 0, below } => {
                self.durable = below.min(self.last());
                // Numbers that were asked for again stand behind later ones, so the whole row is looked at.
                for (number, asked, at) in std::mem::take(&mut self.waiting) {
                    if number <= below {
                        self.later.add(at.max(now), (asked, number));
                    } else {
                        self.waiting.push_back((number, asked, at));
                    }
                }
            }
            _ => {}
        }
        while let Some((asked, number)) = self.later.take(now) {
            let attestation = self.attestation(number);
            write_frame(out.send(asked.connection), kind::ATTESTATION, asked.id, &[&attestation]);
        }
        if let Some(at) = self.later.first() {
            out.wake_at(at);
        }
    }
}
