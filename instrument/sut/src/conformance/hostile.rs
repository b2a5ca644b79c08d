//! Peers that do what they must not: an adapter hands over a list of what its server may do, and each behaviour is played to
//! a session of its, whole and in pieces. A [`Behaviour`] is data, so that one list serves sessions here and the built
//! binary with each of its drivers.
//!
//! What is looked for is what would let a broken server pass for a good one, or take the instrument with it: bytes that
//! are not of the protocol and go unseen, a commit that they did not earn, memory or a call without end, a panic.

use std::collections::BTreeSet;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use model::TxId;

use super::{Breach, Breaches, Subject, guarded};
use crate::{Mark, Marks, Session, Transaction};

/// One step of a behaviour.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Says this.
    Say(&'a [u8]),
    /// Says this byte by byte, with so many milliseconds between.
    Drip(&'a [u8], u64),
    /// Says the first, and then the second without end.
    Flood(&'a [u8], &'a [u8]),
    /// Says what it should: the handshake, the answer.
    Right,
    /// Waits for so many milliseconds.
    Wait(u64),
    /// Keeps the connection and says nothing more.
    Hush,
    /// Closes it in good order.
    Close,
    /// Resets it.
    Reset,
}

/// The reaction that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Bytes that are not of the protocol, or unsolicited; nothing is committed.
    Broken,
    /// The same after a right answer.
    BrokenBehind,
    /// Requests that have no good answer.
    Failed,
    /// Nothing: it is strange, and right.
    Fine,
}

/// A behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour<'a> {
    /// Its name, which no other has.
    pub name: &'a str,
    /// The server's behaviour, in a sentence without its subject.
    pub does: &'a str,
    /// When a connection is there; empty: what it should.
    pub greets: &'a [Step<'a>],
    /// When a request is there.
    pub answers: &'a [Step<'a>],
    /// The reaction that is expected.
    pub seen: Seen,
}

impl<'a> Behaviour<'a> {
    /// One of a server that greets as it should, named by its sentence.
    #[must_use]
    pub const fn answering(does: &'a str, answers: &'a [Step<'a>], seen: Seen) -> Self {
        Self { name: does, does, greets: &[], answers, seen }
    }
}

impl<'a> Step<'a> {
    /// Says this; where it is to fail and not to break, nothing more comes.
    #[must_use]
    pub const fn saying(bytes: &'a [u8], seen: Seen) -> [Self; 2] {
        [Self::Say(bytes), if matches!(seen, Seen::Failed) { Self::Hush } else { Self::Wait(0) }]
    }
}

/// How much of what has no end is played, where the bound on what is held is not beyond it.
const ENDLESS: usize = 200 << 10;

/// Bytes that come in pieces as small as asked; what follows them comes in larger ones.
const FINE: usize = 2 << 10;
const COARSE: usize = 1 << 10;

/// A session writes no more than this, and so many times what it hears, while it hears a hostile server.
const WRITTEN_MAX: usize = 1 << 10;
const WRITTEN_FACTOR: usize = 2;

/// The longest text of an error or of a failed transaction, bytes: it is for people, and is kept for each.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// A session that takes longer for a behaviour, of which the longest are a few hundred kilobytes, does not return at all.
const RETURN_WITHIN: Duration = Duration::from_secs(60);

/// Plays every behaviour to a session of the subject, which has one transaction outstanding (none if it only watches).
/// `unread_max` is the most bytes that a session may leave to the engine: the longest answer that is not complete.
///
/// # Errors
/// With one breach a behaviour and way of cutting it.
pub fn hostile_conformance(
    subject: &Subject<'_>,
    behaviours: &[Behaviour<'_>],
    unread_max: usize,
) -> Result<(), Breaches> {
    let mut list = Vec::new();
    let names: BTreeSet<&str> = behaviours.iter().map(|it| it.name).collect();
    let right = guarded(|| Right::of(subject).map(drop)).and_then(|()| Right::of(subject));
    match right {
        Err(words) => list.push(Breach { scenario: "a server that does right", words }),
        Ok(_) if names.len() != behaviours.len() => {
            let words = "two behaviours have one name".to_owned();
            list.push(Breach { scenario: "the list", words });
        }
        Ok(right) => {
            let tried =
                behaviours.iter().flat_map(|it| [usize::MAX, 7, 1].map(|piece| (it, piece)));
            let broken = tried.filter_map(|(behaviour, piece)| {
                let played = right.play(subject, behaviour, piece, unread_max);
                let words =
                    played.and_then(|found| found.judged(subject, behaviour, piece)).err()?;
                let cut = if piece == usize::MAX {
                    "whole".into()
                } else {
                    format!("in pieces of {piece}")
                };
                let words = format!("{} ({}), {cut}: {words}", behaviour.name, behaviour.does);
                Some(Breach { scenario: "a hostile server", words })
            });
            list.extend(broken);
        }
    }
    Breaches::unless_empty(list)
}

/// An honest server's answers to a session, and the session's input.
struct Right {
    /// In answer to its greeting, receipt by receipt.
    greeting: Vec<Vec<u8>>,
    /// In answer to its transaction.
    answer: Vec<u8>,
    /// Kind, client and payload of the transaction; `None` where the session only watches.
    given: Option<(u32, u32, Vec<u8>)>,
}

/// Receipts that a handshake may take.
const GREETINGS_MAX: usize = 16;

/// The transaction that is outstanding.
const TX: TxId = 0;

impl Right {
    fn of(subject: &Subject<'_>) -> Result<Self, String> {
        let (mut session, mut peer) = ((subject.session)(), (subject.peer)());
        let mut greeting = Vec::new();
        let (mut out, mut marks) = (Vec::new(), Marks::default());
        session.open(&mut out);
        while !out.is_empty() && greeting.len() < GREETINGS_MAX {
            let said = peer(&std::mem::take(&mut out));
            if said.is_empty() {
                break;
            }
            let used = session.receive(&said, &mut out, &mut marks);
            if used.as_ref() != Ok(&said.len()) {
                return Err(format!("made {used:?} of {} bytes of an honest greeting", said.len()));
            }
            greeting.push(said);
        }
        if !session.is_ready() {
            return Err("is not ready for transactions after its handshake".to_owned());
        }
        let given = subject.submits.then(|| {
            let mut payload = Vec::new();
            let made = (subject.workload)().next(TX, None, &mut payload);
            (made.kind, made.client, payload)
        });
        submit(session.as_mut(), given.as_ref(), &mut out);
        let answer = if out.is_empty() { Vec::new() } else { peer(&out) };
        Ok(Self { greeting, answer, given })
    }

    /// Plays a behaviour to a new session, on a thread that may be left behind if it hangs.
    fn play(
        &self,
        subject: &Subject<'_>,
        behaviour: &Behaviour<'_>,
        piece: usize,
        unread_max: usize,
    ) -> Result<Found, String> {
        let greets = match behaviour.greets {
            [] => vec![Act::Say(self.greeting.clone())],
            steps => self.acts(steps, &self.greeting, unread_max),
        };
        let answers = self.acts(behaviour.answers, std::slice::from_ref(&self.answer), unread_max);
        let (session, given) = ((subject.session)(), self.given.clone());
        let settled_stage = subject.settled_stage;
        let (unread, found) = (Vec::new(), Found::default());
        let line = Line { session, unread, piece, unread_max, settled_stage, found };
        let (result, arrival) = channel();
        std::thread::spawn(move || {
            let mut found = None;
            let played = guarded(|| {
                found = Some(line.play(&greets, given.as_ref(), &answers)?);
                Ok(())
            });
            // Nobody waits for it any more where the patience is over.
            let _ = result.send(played.map(|()| found.expect("it was played to its end")));
        });
        arrival.recv_timeout(RETURN_WITHIN).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(format!("has not returned after {RETURN_WITHIN:?}")),
            RecvTimeoutError::Disconnected => Err("the thread of the session ended".to_owned()),
        })
    }

    fn acts(&self, steps: &[Step<'_>], right: &[Vec<u8>], unread_max: usize) -> Vec<Act> {
        let act = |step: &Step<'_>| match *step {
            Step::Say(bytes) | Step::Drip(bytes, _) => Act::Say(vec![bytes.to_vec()]),
            Step::Flood(first, more) => {
                let times = ENDLESS.max(2 * unread_max) / more.len() + 1;
                Act::Say(vec![[first, &more.repeat(times)].concat()])
            }
            Step::Right => Act::Say(right.to_vec()),
            Step::Close => Act::Close,
            Step::Wait(_) | Step::Hush | Step::Reset => Act::Say(Vec::new()),
        };
        steps.iter().map(act).collect()
    }
}

/// Submits the transaction, if there is one.
fn submit(session: &mut dyn Session, given: Option<&(u32, u32, Vec<u8>)>, out: &mut Vec<u8>) {
    if let Some((kind, client, payload)) = given {
        session
            .submit(&Transaction { client: *client, ..Transaction::new(TX, *kind, payload) }, out);
        session.gathered(out);
    }
}

/// A step as the session meets it: time and silence are the engine's to meet.
enum Act {
    Say(Vec<Vec<u8>>),
    Close,
}

/// The session's reaction to a behaviour.
#[derive(Debug, Default)]
struct Found {
    committed: u64,
    /// Marks of what was never submitted, is settled, or was marked so before: the engine counts them as phantoms and
    /// duplicates.
    strange: u64,
    unasked: u64,
    error: Option<String>,
    is_closing: bool,
    is_settled: bool,
    heard: usize,
    written: usize,
    /// The marks: a transaction and its stage, or its end.
    marked: BTreeSet<(TxId, Option<u8>)>,
}

impl Found {
    fn is_over(&self) -> bool {
        self.error.is_some() || self.is_closing
    }

    fn judged(
        &self,
        subject: &Subject<'_>,
        behaviour: &Behaviour<'_>,
        piece: usize,
    ) -> Result<(), String> {
        // Cut into pieces, what comes after the last answer of a closing connection is not looked at.
        let is_cut_off = piece < usize::MAX && self.is_closing;
        let is_broken = self.error.is_some() || self.unasked > 0 || self.strange > 0;
        let (earned, must_break) = match behaviour.seen {
            Seen::Broken => (0, true),
            Seen::BrokenBehind => (1, true),
            Seen::Failed => (0, false),
            Seen::Fine => (1, false),
        };
        let shown = format!("{self:?}");
        let shown = shown.chars().take(400).collect::<String>();
        if must_break && !is_broken && !is_cut_off {
            return Err(format!("nothing was seen of it: {shown}"));
        }
        if behaviour.seen == Seen::Fine && is_broken {
            return Err(format!(
                "it is strange and right, and was held against the server: {shown}"
            ));
        }
        if subject.submits && self.committed != earned {
            return Err(format!("earned {earned} commits, and has {}: {shown}", self.committed));
        }
        Ok(())
    }
}

/// A connection as the engine has it.
struct Line {
    session: Box<dyn Session>,
    unread: Vec<u8>,
    piece: usize,
    unread_max: usize,
    settled_stage: u8,
    found: Found,
}

impl Line {
    fn play(
        mut self,
        greets: &[Act],
        given: Option<&(u32, u32, Vec<u8>)>,
        answers: &[Act],
    ) -> Result<Found, String> {
        self.session.open(&mut Vec::new());
        greets.iter().try_for_each(|act| self.act(act))?;
        // Without its handshake nothing is submitted, and a server that answers requests has none to answer.
        if !self.found.is_over() && self.session.is_ready() {
            submit(self.session.as_mut(), given, &mut Vec::new());
            answers.iter().try_for_each(|act| self.act(act))?;
        }
        Ok(self.found)
    }

    fn act(&mut self, act: &Act) -> Result<(), String> {
        match act {
            Act::Say(receipts) => receipts.iter().try_for_each(|bytes| self.hear(bytes)),
            Act::Close => self.close(),
        }
    }

    /// Cut as asked, and what is long more coarsely: it has been cut everywhere by then.
    fn hear(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (fine, coarse) = bytes.split_at(FINE.min(bytes.len()));
        self.hear_in(fine, self.piece)?;
        self.hear_in(coarse, self.piece.max(COARSE))
    }

    fn hear_in(&mut self, bytes: &[u8], piece: usize) -> Result<(), String> {
        for piece in bytes.chunks(piece) {
            if self.found.is_over() {
                return Ok(());
            }
            self.found.heard += piece.len();
            self.unread.extend_from_slice(piece);
            let (mut out, mut marks) = (Vec::new(), Marks::default());
            let result = self.session.receive(&self.unread, &mut out, &mut marks);
            self.found.written += out.len();
            self.take(&marks)?;
            match result {
                Ok(used) if used > self.unread.len() => {
                    return Err(super::line::claims_too_much(used, self.unread.len()));
                }
                Ok(used) => drop(self.unread.drain(..used)),
                Err(error) => {
                    self.found.error = Some(error.0);
                    self.unread.clear();
                }
            }
            self.within_bounds()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), String> {
        if !self.found.is_over() {
            let mut marks = Marks::default();
            self.session.closed(&mut marks);
            self.take(&marks)?;
            self.found.is_closing = true;
        }
        Ok(())
    }

    fn take(&mut self, marks: &Marks) -> Result<(), String> {
        self.found.unasked += marks.unasked_bytes();
        self.found.is_closing |= marks.wants_close();
        for mark in marks.list() {
            let key = match *mark {
                Mark::Reached { tx, stage, .. } => (tx, Some(stage)),
                Mark::Ended { tx, answer } => {
                    let length = marks.text(&answer).len();
                    if length > TEXT_BYTES_MAX {
                        return Err(format!("a transaction ended with a text of {length} bytes"));
                    }
                    (tx, None)
                }
            };
            let is_new = self.found.marked.insert(key) && !self.found.is_settled;
            if key.0 != TX || !is_new {
                self.found.strange += 1;
                continue;
            }
            let is_committed = key.1.is_some_and(|stage| stage >= self.settled_stage);
            self.found.committed += u64::from(is_committed);
            self.found.is_settled = is_committed || key.1.is_none();
        }
        Ok(())
    }

    fn within_bounds(&self) -> Result<(), String> {
        let Found { heard, written, error, .. } = &self.found;
        if self.unread.len() > self.unread_max {
            return Err(format!("leaves {} bytes unread", self.unread.len()));
        }
        if *written > WRITTEN_MAX + WRITTEN_FACTOR * heard {
            return Err(format!("wrote {written} bytes while it heard {heard}"));
        }
        match error.as_ref().map_or(0, String::len) {
            length if length > TEXT_BYTES_MAX => Err(format!("an error of {length} bytes")),
            _ => Ok(()),
        }
    }
}
