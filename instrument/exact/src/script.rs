//! A scripted server's answers: when it answers each request, with what word, and what its ledger then holds. A model
//! of servers on paper; it knows no protocol.
//!
//! Times are those of the trial: [`Instant::ZERO`] is its stamp 0.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use clock::Instant;
use model::Seed;
use model::seed::Rng;

/// How long the work for a request takes.
#[derive(Clone, Debug)]
pub enum Law {
    /// All alike (D).
    Constant(Duration),
    /// Exponential with this mean (M), drawn from this seed.
    Exponential(Duration, Seed),
}

/// The word of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Word {
    Committed = 0,
    Limited = 1,
    Overloaded = 2,
    Accepted = 3,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// It is answered at this time, and so many times it stands in the ledger.
    Answer { at: Instant, word: Word, entries: u32 },
    /// It is done at this time, without an answer.
    Silence { at: Instant },
    /// Its connection is reset at once, and nothing is done.
    Reset,
}

/// A server. Made with what does its work, then told what is wrong with it.
pub struct Script {
    law: Drawn,
    /// When each of its workers is free; none: any number of requests at once.
    workers: Option<BinaryHeap<Reverse<Instant>>>,
    /// The most that wait or are worked on, and when those leave.
    inside_max: usize,
    inside: BinaryHeap<Reverse<Instant>>,
    limit: Option<Bucket>,
    window: Option<Counted>,
    /// The number inside beyond which work takes longer, and how many times as long.
    thrash: Option<(usize, f64)>,
    stalls: Vec<(Instant, Instant)>,
    held_up: Vec<(Instant, Instant)>,
    stopped: Vec<(Instant, Instant)>,
    outages: Vec<(Instant, Instant)>,
    silent_every: u64,
    resets_every: u64,
    loses_every: u64,
    repeats_every: u64,
    /// Whether it stamps its stages, and when it stores nothing.
    stamps: Option<Vec<(Instant, Instant)>>,
    /// How long after a request came it says that it has accepted it.
    accepts_after: Option<Duration>,
    /// Whether its ledger says when each entry was submitted and recorded.
    dates: bool,
    asked: u64,
}

enum Drawn {
    Constant(Duration),
    Exponential(f64, Rng),
}

/// A token bucket of whole tokens: so many at most, and one more each `every`.
struct Bucket {
    burst: u32,
    tokens: u32,
    every: Duration,
    next: Instant,
}

impl Script {
    /// One that works on any number of requests at once.
    #[must_use]
    pub fn unbounded(law: Law) -> Self {
        let law = match law {
            Law::Constant(time) => Drawn::Constant(time),
            #[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
            Law::Exponential(mean, seed) => Drawn::Exponential(mean.as_nanos() as f64, seed.rng()),
        };
        Self {
            law,
            workers: None,
            inside_max: usize::MAX,
            inside: BinaryHeap::new(),
            limit: None,
            window: None,
            thrash: None,
            stalls: Vec::new(),
            held_up: Vec::new(),
            stopped: Vec::new(),
            outages: Vec::new(),
            silent_every: 0,
            resets_every: 0,
            loses_every: 0,
            repeats_every: 0,
            stamps: None,
            accepts_after: None,
            dates: false,
            asked: 0,
        }
    }

    /// One that works on so many at once; the others wait, first come, first served (D/D/1, M/M/c, a pool of workers).
    #[must_use]
    pub fn queue(workers: u32, law: Law) -> Self {
        let free = std::iter::repeat_n(Reverse(Instant::from_ns(i64::MIN)), workers as usize);
        Self { workers: Some(free.collect()), ..Self::unbounded(law) }
    }

    /// More than so many in it, waiting or worked on, are answered as too many, at once.
    #[must_use]
    pub fn holds_at_most(mut self, inside_max: usize) -> Self {
        self.inside_max = inside_max;
        self
    }

    /// A limiter: `burst` at once, then one each `every`; the others are refused, at once.
    #[must_use]
    pub fn limited(mut self, burst: u32, every: Duration) -> Self {
        self.limit = Some(Bucket { burst, tokens: burst, every, next: Instant::from_ns(i64::MIN) });
        self
    }

    /// A limiter that counts by the window: so many from the beginning of each, the others are refused at once.
    #[must_use]
    pub fn limited_per_window(mut self, most: u32, window: Duration) -> Self {
        self.window = Some(Counted { most, window, ends: Instant::from_ns(i64::MIN), taken: 0 });
        self
    }

    /// It collapses: while more than so many are inside, work takes so many times as long.
    #[must_use]
    pub fn thrashing(mut self, beyond: usize, times: f64) -> Self {
        self.thrash = Some((beyond, times));
        self
    }

    /// It stands still: no work is done meanwhile, and what is begun ends later by so much. In ascending order.
    #[must_use]
    pub fn stalled(mut self, from: Duration, to: Duration) -> Self {
        self.stalls.push((Instant::ZERO.plus(from), Instant::ZERO.plus(to)));
        self
    }

    /// The client's machine is held up: what arrives there meanwhile, and its kernel stamps, is read at the end of it. What
    /// falls due is sent in time all the same.
    #[must_use]
    pub fn client_held_up(mut self, from: Duration, to: Duration) -> Self {
        self.held_up.push((Instant::ZERO.plus(from), Instant::ZERO.plus(to)));
        self
    }

    /// The client's machine is stopped: it sends and reads nothing until the end of it.
    #[must_use]
    pub fn client_stopped(mut self, from: Duration, to: Duration) -> Self {
        self.stopped.push((Instant::ZERO.plus(from), Instant::ZERO.plus(to)));
        self
    }

    /// It says so long after a request came that it has accepted it, if it will do it, and never after it is done; what
    /// became of it, it says in its own time.
    #[must_use]
    pub fn accepting_after(mut self, after: Duration) -> Self {
        self.accepts_after = Some(after);
        self
    }

    /// It is down: its connections are reset when this begins, and refused until it ends. What it worked on is done, and
    /// nobody is told.
    #[must_use]
    pub fn down(mut self, from: Duration, to: Duration) -> Self {
        self.outages.push((Instant::ZERO.plus(from), Instant::ZERO.plus(to)));
        self
    }

    /// Each so-many-th request is never answered, though it is done.
    #[must_use]
    pub fn silent_every(mut self, nth: u64) -> Self {
        self.silent_every = nth;
        self
    }

    /// Each so-many-th request has its connection reset.
    #[must_use]
    pub fn resets_every(mut self, nth: u64) -> Self {
        self.resets_every = nth;
        self
    }

    /// Each so-many-th is acknowledged and not stored.
    #[must_use]
    pub fn loses_every(mut self, nth: u64) -> Self {
        self.loses_every = nth;
        self
    }

    /// Each so-many-th is stored twice.
    #[must_use]
    pub fn repeats_every(mut self, nth: u64) -> Self {
        self.repeats_every = nth;
        self
    }

    /// When the client comes to read what arrives at `at`.
    pub(crate) fn read_at(&self, at: Instant) -> Instant {
        let within = self.held_up.iter().find(|(from, to)| (*from..*to).contains(&at));
        within.map_or(at, |(_, to)| *to)
    }

    /// When the client's machine runs on.
    pub(crate) fn client_runs_at(&self, now: Instant) -> Instant {
        let within = self.stopped.iter().find(|(from, to)| (*from..*to).contains(&now));
        within.map_or(now, |(_, to)| *to)
    }

    /// It stamps when it received, served and stored each request.
    #[must_use]
    pub fn stamping(mut self) -> Self {
        self.stamps.get_or_insert_default();
        self
    }

    /// It stamps its stages, and stores nothing meanwhile, though it goes on to answer. In ascending order.
    #[must_use]
    pub fn storing_nothing(mut self, from: Duration, to: Duration) -> Self {
        let stall = (Instant::ZERO.plus(from), Instant::ZERO.plus(to));
        self.stamps.get_or_insert_default().push(stall);
        self
    }

    /// Its ledger says of each entry when the request came and when it was done.
    #[must_use]
    pub fn dating(mut self) -> Self {
        self.dates = true;
        self
    }

    pub(crate) fn accepts_after(&self) -> Option<Duration> {
        self.accepts_after
    }

    pub(crate) fn dates(&self) -> bool {
        self.dates
    }

    /// When it stores nothing, if it stamps its stages.
    pub(crate) fn stamps(&self) -> Option<&[(Instant, Instant)]> {
        self.stamps.as_deref()
    }

    /// When it is down.
    pub(crate) fn outages(&self) -> &[(Instant, Instant)] {
        &self.outages
    }

    pub(crate) fn is_down(&self, now: Instant) -> bool {
        self.outages.iter().any(|(from, to)| (*from..*to).contains(&now))
    }

    /// The fate of a request that arrives now.
    pub(crate) fn serve(&mut self, now: Instant) -> Reply {
        self.asked += 1;
        let is_one_of = |every: u64| every > 0 && self.asked.is_multiple_of(every);
        let (silent, lost) = (is_one_of(self.silent_every), is_one_of(self.loses_every));
        let repeated = is_one_of(self.repeats_every);
        if is_one_of(self.resets_every) {
            return Reply::Reset;
        }
        let refused = |word| Reply::Answer { at: now, word, entries: 0 };
        if self.limit.as_mut().is_some_and(|bucket| !bucket.takes(now)) {
            return refused(Word::Limited);
        }
        if self.window.as_mut().is_some_and(|window| !window.takes(now)) {
            return refused(Word::Limited);
        }
        if self.is_full(now) {
            return refused(Word::Overloaded);
        }
        let at = self.departure(now);
        if self.inside_max < usize::MAX || self.thrash.is_some() {
            self.inside.push(Reverse(at));
        }
        let entries = if lost { 0 } else { 1 + u32::from(repeated) };
        match silent {
            true => Reply::Silence { at },
            false => Reply::Answer { at, word: Word::Committed, entries },
        }
    }

    fn is_full(&mut self, now: Instant) -> bool {
        while self.inside.peek().is_some_and(|Reverse(leaves)| *leaves <= now) {
            self.inside.pop();
        }
        self.inside.len() >= self.inside_max
    }

    /// When what arrives now has been worked on: `max(now, earliest free worker) + work` (Lindley 1952; Kiefer and
    /// Wolfowitz 1955), and no work is done in a stall.
    fn departure(&mut self, now: Instant) -> Instant {
        let mut work = self.law.draw();
        if let Some((beyond, times)) = self.thrash
            && self.inside.len() > beyond
        {
            work = work.mul_f64(times);
        }
        let Some(workers) = &mut self.workers else { return end_of(&self.stalls, now, work) };
        let mut free = workers.peek_mut().expect("a queue has a worker");
        let end = end_of(&self.stalls, now.max(free.0), work);
        free.0 = end;
        end
    }
}

/// When `work` ends that could begin at `start`.
pub(crate) fn end_of(stalls: &[(Instant, Instant)], start: Instant, work: Duration) -> Instant {
    let within = stalls.iter().find(|(from, to)| (*from..*to).contains(&start));
    let start = within.map_or(start, |(_, to)| *to);
    let later = stalls.iter().filter(|(from, _)| *from >= start);
    later.fold(start.plus(work), |end, (from, to)| match *from < end {
        true => end.plus(to.saturating_since(*from)),
        false => end,
    })
}

impl Drawn {
    fn draw(&mut self) -> Duration {
        match self {
            Self::Constant(time) => *time,
            Self::Exponential(mean_ns, rng) => {
                Duration::from_secs_f64(rng.exponential(*mean_ns) / 1e9)
            }
        }
    }
}

impl Bucket {
    fn takes(&mut self, now: Instant) -> bool {
        while self.tokens < self.burst && self.next <= now {
            self.tokens += 1;
            self.next = self.next.plus(self.every);
        }
        if self.tokens == self.burst {
            // A full bucket gains nothing until one has been taken.
            self.next = now.plus(self.every);
        }
        let takes = self.tokens > 0;
        self.tokens -= u32::from(takes);
        takes
    }
}

/// Requests of the present window.
struct Counted {
    most: u32,
    window: Duration,
    ends: Instant,
    taken: u32,
}

impl Counted {
    fn takes(&mut self, now: Instant) -> bool {
        if self.ends <= now {
            // Windows follow each other from the first request on.
            let first = self.ends == Instant::from_ns(i64::MIN);
            self.ends = if first { now } else { self.ends };
            while self.ends <= now {
                self.ends = self.ends.plus(self.window);
            }
            self.taken = 0;
        }
        let takes = self.taken < self.most;
        self.taken += u32::from(takes);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    fn answer(ms: u64, word: Word) -> Reply {
        Reply::Answer { at: at(ms), word, entries: u32::from(word == Word::Committed) }
    }

    /// Claim: one worker serves in turn, several at once, and a stall delays what it falls into by what is left of it.
    #[test]
    fn work() {
        let mut one = Script::queue(1, Law::Constant(5 * MS)).stalled(12 * MS, 100 * MS);
        let served: Vec<Reply> = [0, 1, 2, 50, 200].map(|ms| one.serve(at(ms))).to_vec();
        let expected = [5, 10, 103, 108, 205].map(|ms| answer(ms, Word::Committed));
        assert_eq!(served, expected);
        let mut two = Script::queue(2, Law::Constant(5 * MS)).holds_at_most(3);
        let served: Vec<Reply> = [0, 0, 0, 0, 6].map(|ms| two.serve(at(ms))).to_vec();
        let expected = [(5, true), (5, true), (10, true), (0, false), (11, true)];
        let word = |taken| if taken { Word::Committed } else { Word::Overloaded };
        assert_eq!(served, expected.map(|(ms, taken)| answer(ms, word(taken))));
    }

    /// Claim: a limiter lets its burst pass, then one each interval, and saves up to its burst again.
    #[test]
    fn limits() {
        let mut script = Script::unbounded(Law::Constant(Duration::ZERO)).limited(2, 10 * MS);
        let mut takes = |ms| script.serve(at(ms)) == answer(ms, Word::Committed);
        assert_eq!(
            [0, 0, 0, 9, 10, 11, 20].map(&mut takes),
            [true, true, false, false, true, false, true]
        );
        assert_eq!([500, 500, 500, 510].map(&mut takes), [true, true, false, true]);
        let mut script = Script::unbounded(Law::Constant(Duration::ZERO));
        script = script.limited_per_window(2, 100 * MS);
        let mut takes = |ms| script.serve(at(ms)) == answer(ms, Word::Committed);
        assert_eq!(
            [0, 40, 99, 100, 150, 160, 350].map(&mut takes),
            [true, true, false, true, true, false, true]
        );
    }

    /// Claim: beyond so many inside, work takes longer; where they have left, as long as before.
    #[test]
    fn thrashes() {
        let mut one = Script::queue(1, Law::Constant(5 * MS)).thrashing(1, 3.0);
        let served: Vec<Reply> = [0, 0, 0, 100].map(|ms| one.serve(at(ms))).to_vec();
        assert_eq!(served, [5, 10, 25, 105].map(|ms| answer(ms, Word::Committed)));
    }
}
