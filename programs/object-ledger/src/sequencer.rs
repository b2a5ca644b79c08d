//! The sequencer as a value: it gives each link a number, one after the other from 1 on, and signs it. A link that comes again
//! gets the number that it has. No number is said before it is durable.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use clock::Instant;
use process::{Input, Node, Outputs, Stored};

use crate::data::{Hash, Reader};
use crate::keys::Key;
use crate::protocol::{Frame, Refused, kind, write_frame, write_refused};
use crate::service::{Answering, Asked, Doors, Later};

/// Attestations in one answer at most.
pub const SEVERAL_MAX: u32 = 256;
/// Answers that may wait for the disk or their time; what comes beyond is refused.
const WAITING_MAX: usize = 65_536;
/// Its log.
pub const LOG: &str = "numbers";

/// A sequencer. Its log has one record a number: the link.
#[derive(Debug)]
pub struct Sequencer {
    key: Key,
    delay: Duration,
    links: Vec<Hash>,
    numbers: HashMap<Hash, u64>,
    durable: u64,
    waiting: VecDeque<(u64, Asked, Instant)>,
    doors: Doors,
    later: Later<(Asked, u64)>,
    says_early: bool,
}

/// What is on the disk are no numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {record} of the numbers is no link; the log was damaged or is of something else")]
pub struct NoNumbers {
    /// Which record.
    pub record: u64,
}

impl Sequencer {
    /// One as its disk left it; it answers after `delay`.
    ///
    /// # Errors
    /// When what is there are no numbers.
    pub fn new(key: Key, delay: Duration, stored: &Stored) -> Result<Self, NoNumbers> {
        let mut sequencer = Self {
            key,
            delay,
            links: Vec::new(),
            numbers: HashMap::new(),
            durable: 0,
            waiting: VecDeque::new(),
            doors: Doors::default(),
            later: Later::default(),
            says_early: false,
        };
        for (record, bytes) in stored.logs.iter().flat_map(|log| log.iter()) {
            let link = Hash::try_from(bytes).map_err(|_| NoNumbers { record })?;
            if record != sequencer.links.len() as u64 {
                return Err(NoNumbers { record });
            }
            sequencer.take(link);
        }
        sequencer.durable = sequencer.links.len() as u64;
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

    fn take(&mut self, link: Hash) -> u64 {
        self.links.push(link);
        let number = self.links.len() as u64;
        self.numbers.insert(link, number);
        number
    }

    fn sequence(&mut self, now: Instant, asked: Asked, link: Hash, out: &mut Outputs) {
        let number = match self.numbers.get(&link) {
            Some(number) => *number,
            None => {
                out.append(0, &link);
                self.take(link)
            }
        };
        let at = now.plus(self.delay);
        if number <= self.durable || self.says_early {
            self.later.add(at, (asked, number));
        } else {
            self.waiting.push_back((number, asked, at));
        }
    }

    fn several(&self, id: u64, from: u64, count: u32, to: &mut Vec<u8>) {
        let numbers = (from..).take_while(|it| *it <= self.durable).take(count as usize);
        let each = numbers.flat_map(|number| self.attestation(number));
        let several: Vec<u8> = each.collect();
        write_frame(to, kind::SEVERAL, id, &[&several]);
    }

    fn attestation(&self, number: u64) -> Vec<u8> {
        let index = usize::try_from(number - 1).expect("it is in memory");
        self.key.attestation(number, self.links[index]).encoded()
    }
}

impl Answering for Sequencer {
    fn doors(&mut self) -> &mut Doors {
        &mut self.doors
    }

    fn metrics(&self) -> String {
        wire::metrics::text(&[
            ("ledger_numbers_total", true, "Sequence numbers given.", self.durable),
            (
                "ledger_malformed_total",
                true,
                "Connections closed for what they sent.",
                self.doors.malformed,
            ),
        ])
    }

    fn asked(&mut self, now: Instant, asked: Asked, frame: Frame<'_>, out: &mut Outputs) {
        let to = out.send(asked.connection);
        match frame.kind {
            kind::KEY => write_frame(to, kind::PUBLIC_KEY, asked.id, &[&self.key.public()]),
            kind::SEQUENCE if self.waiting.len() + self.later.len() >= WAITING_MAX => {
                write_refused(to, asked.id, Refused::Full);
            }
            kind::SEQUENCE => match Hash::try_from(frame.payload) {
                Ok(link) => self.sequence(now, asked, link, out),
                Err(_) => write_refused(to, asked.id, Refused::Malformed),
            },
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
        match input {
            Input::Opened { .. } | Input::Bytes(..) => self.hear(now, input, out),
            Input::Persisted { log: 0, below } => {
                self.durable = below;
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
