//! What can be wrong with the server, and when. Deterministic: faults by time follow the options, lies strike
//! every Nth commit, each from a first one that the seed chooses. It decides; `node` and `commits` carry out.

use std::time::Duration;

use clock::Instant;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::limiter::Limit;
use crate::queue::Stalls;

/// A stretch of time, after the first transaction (or after the start, if so asked).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its beginning.
    pub at: Duration,
    /// Its length.
    pub length: Duration,
}

/// A stretch of time in which service takes longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// When.
    pub window: Window,
    /// How many times as long.
    pub factor: f64,
}

/// What strikes every Nth commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Committed and stored, never answered.
    Drop,
    /// Answered twice.
    Twice,
    /// The connection is closed instead of an answer.
    Close,
    /// Garbage instead of an answer.
    Garbage,
    /// Answered and not stored.
    Lose,
    /// Stored twice.
    Repeat,
    /// An entry that nobody submitted is stored beside it.
    Invent,
    /// Stored much later, behind transactions that were sent after it had been acknowledged.
    Reorder,
    /// Stored in time, answered after a very long delay.
    Late,
    /// Stored as something else than was submitted.
    Alter,
    /// Answered as committed, and stored as refused.
    Void,
    /// A read gives a value that was overwritten long before.
    Stale,
    /// Stages are said in the wrong order: with two, committed before accepted; with three, started at once
    /// and accepted at the end.
    Unordered,
}

impl Lie {
    /// All lies, in the order in which they are tried on a commit.
    pub const ALL: [Self; 13] = [
        Self::Drop,
        Self::Twice,
        Self::Close,
        Self::Garbage,
        Self::Lose,
        Self::Repeat,
        Self::Invent,
        Self::Reorder,
        Self::Late,
        Self::Alter,
        Self::Void,
        Self::Stale,
        Self::Unordered,
    ];

    /// The word in options and confessions.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Twice => "twice",
            Self::Close => "close",
            Self::Garbage => "garbage",
            Self::Lose => "lose",
            Self::Repeat => "repeat",
            Self::Invent => "invent",
            Self::Reorder => "reorder",
            Self::Late => "late",
            Self::Alter => "alter",
            Self::Void => "void",
            Self::Stale => "stale",
            Self::Unordered => "unordered",
        }
    }

    /// What it does, for help texts.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Drop => "commit and store, and never answer",
            Self::Twice => "answer twice",
            Self::Close => "close the connection instead of answering",
            Self::Garbage => "answer garbage",
            Self::Lose => "acknowledge, and do not store",
            Self::Repeat => "store twice",
            Self::Invent => "store another entry that nobody submitted",
            Self::Reorder => "store behind transactions that were sent after its acknowledgement",
            Self::Late => "store in time, and answer after --late-by",
            Self::Alter => "store something else than was submitted",
            Self::Void => "acknowledge, and store as refused",
            Self::Stale => "of reads: give a value that was overwritten long before",
            Self::Unordered => "say stages in the wrong order (with --stages 2 or 3)",
        }
    }
}

/// Every fault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// The whole server stands still.
    pub stalls: Vec<Window>,
    /// Nothing is stored, and everything else goes on.
    pub store_stalls: Vec<Window>,
    /// Service takes longer.
    pub slows: Vec<Slow>,
    /// A rate limiter.
    pub limit: Option<Limit>,
    /// Growth of the service time a second, as a fraction of its beginning.
    pub drift: f64,
    /// A kind that is always refused as invalid.
    pub refused_kind: Option<u16>,
    /// Whether what is refused as invalid is logged, as refused.
    pub logs_refused: bool,
    /// Whether reads are stored, too.
    pub logs_reads: bool,
    /// Every how many commits each of [`Lie::ALL`] strikes, [`Lie::Stale`] every how many reads; 0: never.
    pub every: [u64; Lie::ALL.len()],
    /// How late a late answer is.
    pub late_by: Duration,
    /// Behind how many later commits a reordered one is stored.
    pub reorder_by: u64,
    /// Whether times count from the start of the server instead of from the first transaction.
    pub from_start: bool,
}

/// Behind how many later commits a reordered one is stored, unless said otherwise.
pub(crate) const REORDER_BY: u64 = 1000;
/// How late a late answer is, unless said otherwise: later than any timeout in use.
pub(crate) const LATE_BY: Duration = Duration::from_secs(60);

impl Faults {
    /// The same with a lie every `every` commits.
    #[must_use]
    pub fn lie(mut self, lie: Lie, every: u64) -> Self {
        self.every[lie as usize] = every;
        self
    }
}

/// The lies that strike one commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Struck {
    lies: u16,
    /// The number of the commit, from 0: what an HTTP request has instead of an id.
    pub(crate) number: u64,
}

impl Struck {
    pub(crate) const fn by(self, lie: Lie) -> bool {
        self.lies >> lie as u16 & 1 == 1
    }

    pub(crate) const fn is_none(self) -> bool {
        self.lies == 0
    }
}

/// Counts commits and says which are lied about.
#[derive(Debug)]
pub(crate) struct Liar {
    next: [u64; Lie::ALL.len()],
    every: [u64; Lie::ALL.len()],
    is_honest: bool,
    commits: u64,
    reads: u64,
    /// Stale reads that are due and could not be given yet.
    owed: u64,
}

impl Liar {
    pub(crate) fn new(every: [u64; Lie::ALL.len()], seed: u64) -> Self {
        let mut rng = SplitMix64::seed_from_u64(seed ^ 0x6c69_6172);
        let next = every.map(|every| {
            let drawn = rng.next_u64();
            if every == 0 { u64::MAX } else { drawn % every }
        });
        let is_honest = every == [0; Lie::ALL.len()];
        Self { next, every, is_honest, commits: 0, reads: 0, owed: 0 }
    }

    /// The lies about the next commit.
    pub(crate) fn strike(&mut self) -> Struck {
        let mut struck = Struck { lies: 0, number: self.commits };
        self.commits += 1;
        if self.is_honest {
            return struck;
        }
        for (lie, next) in self.next.iter_mut().enumerate() {
            if *next == struck.number && lie != Lie::Stale as usize {
                struck.lies |= 1 << lie;
                *next += self.every[lie];
            }
        }
        struck
    }
}

/// Those of reads.
impl Liar {
    /// Whether the next read is to be stale, if it can be.
    pub(crate) fn strike_read(&mut self) -> bool {
        let (stale, number) = (Lie::Stale as usize, self.reads);
        self.reads += 1;
        if self.next[stale] == number {
            self.next[stale] += self.every[stale];
            self.owed += 1;
        }
        self.owed > 0
    }

    /// It was.
    pub(crate) fn gave_stale(&mut self) {
        self.owed -= 1;
    }
}

/// The faults by time, once their beginning is known.
#[derive(Debug, Default)]
pub(crate) struct Calendar {
    pub(crate) stalls: Stalls,
    pub(crate) store_stalls: Stalls,
    slows: Vec<(Instant, Instant, f64)>,
    drift: f64,
    origin: Instant,
}

impl Calendar {
    pub(crate) fn new(faults: &Faults, origin: Instant) -> Self {
        let span = |window: &Window| {
            let from = origin.plus(window.at);
            (from, from.plus(window.length))
        };
        let slow = |slow: &Slow| {
            let (from, to) = span(&slow.window);
            (from, to, slow.factor)
        };
        Self {
            stalls: Stalls(joined(faults.stalls.iter().map(span).collect())),
            store_stalls: Stalls(joined(faults.store_stalls.iter().map(span).collect())),
            slows: faults.slows.iter().map(slow).collect(),
            drift: faults.drift,
            origin,
        }
    }

    /// How many times as long as usual a service lasts that is asked for now.
    pub(crate) fn factor(&self, now: Instant) -> f64 {
        let slow = self.slows.iter().filter(|(from, to, _)| (*from..*to).contains(&now));
        let slow: f64 = slow.map(|(_, _, factor)| factor).product();
        slow * (1.0 + self.drift * now.saturating_since(self.origin).as_secs_f64())
    }
}

/// Spans in order, those that touch made one.
fn joined(mut spans: Vec<(Instant, Instant)>) -> Vec<(Instant, Instant)> {
    spans.sort();
    let mut apart: Vec<(Instant, Instant)> = Vec::new();
    for (from, to) in spans {
        match apart.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => apart.push((from, to)),
        }
    }
    apart
}
