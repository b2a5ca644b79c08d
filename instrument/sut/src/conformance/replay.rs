//! Bytes handed to like sessions in different pieces: whole, one at a time, cut at random. What is found must
//! not depend on the cuts, and no bytes whatever may make a session panic, hang or take what was not there.
//!
//! Sessions run on a thread of their own, so that one that never returns is named and does not hang the test.

use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use model::seed::Rng;
use model::{Seed, TxId};

use super::line::{Judge, Line, claims_too_much};
use super::{Breach, Breaches, Subject, guarded};
use crate::{Mark, Marks, Session, Transaction};

/// Transactions whose answers are recorded: enough that answers lie after one another.
const RECORDED_MAX: u32 = 8;

/// Those of them that leave one by one; the rest leaves together.
const ALONE_MAX: TxId = 3;

/// A session that takes longer than this for a few hundred bytes does not return at all.
const RETURN_WITHIN: Duration = Duration::from_secs(10);

std::thread_local! {
    /// [`RETURN_WITHIN`], which only the suite's own test shortens.
    static PATIENCE: Cell<Duration> = const { Cell::new(RETURN_WITHIN) };
}

/// Runs `work` with another patience on this thread.
#[cfg(test)]
pub(super) fn with_patience<T>(patience: Duration, work: impl FnOnce() -> T) -> T {
    PATIENCE.set(patience);
    let result = work();
    PATIENCE.set(RETURN_WITHIN);
    result
}

/// Random cuts of each stream.
const CUTS: u32 = 12;

/// Damaged and invented streams.
const STREAMS: u32 = 150;

/// A dialogue up to the moment when the answers have arrived and none has been read.
pub(super) struct Recording {
    greeting: Vec<u8>,
    transactions: Vec<(TxId, u32, Vec<u8>)>,
    pub(super) requests: Vec<u8>,
    answers: Vec<u8>,
}

impl Recording {
    pub(super) fn make(subject: &Subject<'_>) -> Result<Self, String> {
        let mut line = Line::open(subject)?;
        let greeting = std::mem::take(&mut line.heard);
        let mut source = (subject.workload)();
        let (mut transactions, mut requests) = (Vec::new(), Vec::new());
        let count = TxId::from(line.window()?.min(RECORDED_MAX));
        for tx in 0..count {
            let mut payload = Vec::new();
            let kind = source.next(tx, None, &mut payload).kind;
            transactions.push((tx, kind, payload));
        }
        let alone = count.min(ALONE_MAX);
        for tx in 0..alone {
            requests.extend(line.submit(tx)?);
        }
        if alone < count {
            requests.extend(line.submit_together(alone..count)?);
        }
        let mut answers = line.ask_peer(&requests);
        if let Some(question) = line.poll()? {
            answers.extend(line.ask_peer(&question));
        }
        Ok(Self { greeting, transactions, requests, answers })
    }

    /// A session that has been told everything but the answers.
    fn session(&self, subject: &Subject<'_>) -> Box<dyn Session> {
        let mut session = (subject.session)();
        let (mut out, mut marks) = (Vec::new(), Marks::default());
        session.open(&mut out);
        if !self.greeting.is_empty() {
            // Judged where the connection was opened for the recording.
            let _ = session.receive(&self.greeting, &mut out, &mut marks);
        }
        for (id, kind, payload) in &self.transactions {
            session.submit(&Transaction::new(*id, *kind, payload), &mut out);
            if *id < ALONE_MAX {
                session.gathered(&mut out);
            }
        }
        session.gathered(&mut out);
        session
    }

    fn judge(&self, subject: &Subject<'_>) -> Judge {
        let mut judge = Judge::new(subject.stages, subject.settled_stage);
        self.transactions.iter().for_each(|(tx, ..)| judge.give(*tx));
        judge
    }
}

/// The recorded answers in other pieces.
pub(super) fn pieces(subject: &Subject<'_>, recording: &Recording) -> Result<(), String> {
    let make = || recording.session(subject);
    let whole = compare(&make, &recording.answers, &mut Seed(1).rng())?;
    if whole.has_failed {
        return Err("refused what an honest peer answered as not of the protocol".to_owned());
    }
    whole.judged(recording.judge(subject))
}

/// Damaged answers and noise.
pub(super) fn arbitrary(subject: &Subject<'_>, recording: &Recording) -> Result<(), String> {
    let mut rng = Seed(2).rng();
    let make = || recording.session(subject);
    for index in 0..STREAMS {
        let stream = match index % 5 {
            0 => noise(&mut rng),
            1 => [recording.answers.as_slice(), &noise(&mut rng)].concat(),
            _ => damaged(&recording.answers, &mut rng),
        };
        let found = compare(&make, &stream, &mut rng)?;
        found.within_the_ladder(subject.stages)?;
    }
    Ok(())
}

/// An observer's session: `stream` is what the system sends to it, in which each of `watched` reaches
/// `settled_stage` once. Whatever the pieces, each must be found once, and nothing else.
///
/// # Errors
/// With what was broken.
pub fn observer_conformance(
    session: &dyn Fn() -> Box<dyn Session>,
    stream: &[u8],
    watched: &[TxId],
    stages: usize,
    settled_stage: u8,
) -> Result<(), Breaches> {
    let make = || {
        let mut session = session();
        session.open(&mut Vec::new());
        session
    };
    let watch = || {
        let whole = compare(&make, stream, &mut Seed(3).rng())?;
        if whole.has_failed {
            return Err("refused what the system sent as not of the protocol".to_owned());
        }
        let mut judge = Judge::new(stages, settled_stage);
        watched.iter().for_each(|tx| judge.give(*tx));
        whole.judged(judge)
    };
    let noisy = || {
        let mut rng = Seed(4).rng();
        (0..STREAMS).try_for_each(|_| {
            let stream = damaged(stream, &mut rng);
            compare(&make, &stream, &mut rng)?.within_the_ladder(stages)
        })
    };
    let scenarios: [(&'static str, Tried<'_>); 2] =
        [("what an observer sees", &watch), ("arbitrary bytes", &noisy)];
    let breaches = scenarios
        .iter()
        .filter_map(|(scenario, work)| guarded(work).err().map(|words| Breach { scenario, words }));
    Breaches::unless_empty(breaches.collect())
}

/// One thing to try with an observer.
type Tried<'a> = &'a dyn Fn() -> Result<(), String>;

/// A session's findings in a stream.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    marks: Vec<(Mark, String)>,
    observations: Vec<(TxId, Vec<u8>)>,
    out: Vec<u8>,
    pub(super) is_closing: bool,
    pub(super) has_failed: bool,
}

impl Found {
    fn judged(&self, mut judge: Judge) -> Result<(), String> {
        self.observations.iter().try_for_each(|(tx, _)| judge.observation(*tx))?;
        self.marks.iter().try_for_each(|(mark, _)| judge.mark(mark))?;
        match judge.outstanding() {
            0 => Ok(()),
            _ if self.is_closing => Ok(()),
            left => Err(format!("never answered {left} transactions, although the peer did")),
        }
    }

    fn within_the_ladder(&self, stages: usize) -> Result<(), String> {
        self.marks.iter().try_for_each(|(mark, _)| match *mark {
            Mark::Reached { stage, .. } if usize::from(stage) >= stages => {
                Err(format!("marked stage {stage} of a ladder of {stages} in damaged bytes"))
            }
            _ => Ok(()),
        })
    }
}

/// Gives `stream` to like sessions, each in other pieces; all must find the same.
fn compare(
    make: &dyn Fn() -> Box<dyn Session>,
    stream: &[u8],
    rng: &mut Rng,
) -> Result<Found, String> {
    let mut cuts: Vec<Vec<usize>> = vec![vec![stream.len()], vec![1; stream.len()]];
    cuts.extend((0..CUTS).map(|_| random_pieces(stream.len(), rng)));
    let jobs = cuts.iter().map(|pieces| (make(), pieces.clone())).collect();
    let mut found = run_aside(jobs, stream.to_vec())?.into_iter();
    let whole = found.next().expect("the uncut stream comes first")?;
    for (cut, pieces) in found.zip(&cuts[1..]) {
        let cut = cut?;
        if cut != whole {
            return Err(format!(
                "found something else when the same {} bytes came in pieces of {}: {}{} instead of {}{}; bytes {}",
                stream.len(),
                shown_pieces(pieces),
                shown_count(&cut, &whole),
                failed_word(&cut),
                shown_count(&whole, &cut),
                failed_word(&whole),
                shown_bytes(stream),
            ));
        }
    }
    Ok(whole)
}

/// How much was found; of observations only where they are what differs.
fn shown_count(found: &Found, other: &Found) -> String {
    let marks = format!("{} marks", found.marks.len());
    if found.observations == other.observations {
        return marks;
    }
    format!("{marks} and {} observations", found.observations.len())
}

fn failed_word(found: &Found) -> &'static str {
    if found.has_failed { " and an error" } else { "" }
}

type Job = (Box<dyn Session>, Vec<usize>);

/// Reads the stream with each session in its pieces, on a thread that may be left behind if it hangs.
fn run_aside(jobs: Vec<Job>, stream: Vec<u8>) -> Result<Vec<Result<Found, String>>, String> {
    let shown = shown_bytes(&stream);
    let (results, arrivals) = channel();
    let count = jobs.len();
    std::thread::spawn(move || {
        for (mut session, pieces) in jobs {
            let mut found = Err(String::new());
            let read = guarded(|| {
                found = Ok(read(session.as_mut(), &stream, &pieces)?.found);
                Ok(())
            });
            if results.send(read.and(found)).is_err() {
                return;
            }
        }
    });
    let wait = |_| {
        arrivals.recv_timeout(PATIENCE.get()).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!(
                "receive has not returned after {:?}: it loops; bytes {shown}",
                PATIENCE.get()
            ),
            RecvTimeoutError::Disconnected => "the thread of the session ended".to_owned(),
        })
    };
    let found: Result<Vec<_>, String> = (0..count).map(wait).collect();
    found.map(|list| {
        list.into_iter().map(|one| one.map_err(|words| format!("{words}; bytes {shown}"))).collect()
    })
}

/// A session's reading of a stream.
#[derive(Debug, PartialEq)]
pub(super) struct Heard {
    pub(super) found: Found,
    /// Bytes that it used, up to its failure.
    pub(super) used: usize,
    /// Why it failed.
    pub(super) error: Option<String>,
}

/// Offers the stream in pieces, each after what was left unread, as the engine does.
pub(super) fn read(
    session: &mut dyn Session,
    stream: &[u8],
    pieces: &[usize],
) -> Result<Heard, String> {
    let (mut start, mut end) = (0, 0);
    let (mut found, mut marks) = (Found::default(), Marks::default());
    let mut error = None;
    for piece in pieces {
        end += piece;
        marks.clear();
        let unread = &stream[start..end];
        let used = session.receive(unread, &mut found.out, &mut marks);
        found.marks.extend(marks.list().iter().map(|mark| plain(mark, &marks)));
        let observed = marks.observations().iter().map(|one| (one.tx, one.bytes.to_vec()));
        found.observations.extend(observed);
        found.is_closing |= marks.wants_close();
        match used {
            Ok(used) if used > unread.len() => return Err(claims_too_much(used, unread.len())),
            Ok(used) => start += used,
            Err(why) => error = Some(why.0),
        }
        if error.is_some() || found.is_closing {
            break;
        }
    }
    found.has_failed = error.is_some();
    Ok(Heard { found, used: start, error })
}

/// The mark with its text instead of an index that depends on what came in the same receipt.
fn plain(mark: &Mark, marks: &Marks) -> (Mark, String) {
    match *mark {
        Mark::Ended { tx, mut answer } => {
            let text = marks.text(&answer).to_owned();
            answer.text = 0;
            (Mark::Ended { tx, answer }, text)
        }
        reached @ Mark::Reached { .. } => (reached, String::new()),
    }
}

fn random_pieces(length: usize, rng: &mut Rng) -> Vec<usize> {
    let (mut pieces, mut left) = (Vec::new(), length);
    while left > 0 {
        // Small pieces and large ones: a uniform size would hardly ever cut one answer twice.
        let bound = if rng.below(2) == 0 { left.min(7) } else { left };
        let piece = 1 + below(rng, bound);
        pieces.push(piece);
        left -= piece;
    }
    pieces
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; 1 + below(rng, 300)];
    match rng.below(4) {
        0 => {}
        1 => bytes.fill(0xff),
        _ => rng.fill(&mut bytes),
    }
    bytes
}

fn damaged(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=rng.below(3) {
        if bytes.is_empty() {
            return noise(rng);
        }
        let at = below(rng, bytes.len());
        match rng.below(4) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes.truncate(at),
            2 => bytes.insert(at, u8::try_from(rng.below(256)).expect("below 256")),
            _ => {
                let again = bytes[at..].to_vec();
                bytes.extend_from_slice(&again);
            }
        }
    }
    bytes
}

fn below(rng: &mut Rng, bound: usize) -> usize {
    let bound = u64::try_from(bound).expect("a length fits 64 bits");
    usize::try_from(rng.below(bound)).expect("below a length")
}

fn shown_pieces(pieces: &[usize]) -> String {
    let some: Vec<String> = pieces.iter().take(8).map(usize::to_string).collect();
    let more = if pieces.len() > some.len() { ", …" } else { "" };
    format!("{}{more}", some.join(", "))
}

fn shown_bytes(bytes: &[u8]) -> String {
    let some = bytes[..bytes.len().min(80)].escape_ascii();
    let more = if bytes.len() > 80 { "…" } else { "" };
    format!("\"{some}{more}\"")
}
