//! Whether a system that goes on running between two trials is calm: a trial that overloaded it leaves queues, caches and
//! connections, and the next one must not begin in them.
//!
//! Calm is what the system was before the first trial: three probes in a row take no longer than twice the slowest of those
//! that were made then, and a millisecond more for the noise of a host. The wait is bounded, and its end is recorded.

use std::time::Duration;

use model::facts::RestFacts;

/// Probes before the first trial.
pub const PROBES_BEFORE: usize = 5;
/// Calm probes in a row.
const CALM_ROW: u32 = 3;
/// A calm probe takes at most so many times as long as the slowest before.
const CALM_FACTOR: u32 = 2;
/// A busy host adds this to a probe.
const NOISE: Duration = Duration::from_millis(1);
/// The longest wait.
const REST_MAX: Duration = Duration::from_secs(60);
/// The pause between two probes.
const PROBE_EVERY: Duration = Duration::from_millis(200);

/// The answer to a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probed {
    /// The next probe is made after this.
    Again(Duration),
    /// The wait is over; [`Calm::facts`] say how it ended.
    Over,
}

/// A wait until a system is calm.
#[derive(Clone, Debug)]
pub struct Calm {
    calm: Duration,
    waited: Duration,
    probes: u64,
    row: u32,
    last: Option<Duration>,
}

impl Calm {
    /// Begins a wait; `before` is how long probes took before the first trial.
    #[must_use]
    pub fn new(before: &[Duration]) -> Self {
        let slowest = before.iter().max().copied().unwrap_or(Duration::ZERO);
        let calm = slowest * CALM_FACTOR + NOISE;
        Self { calm, waited: Duration::ZERO, probes: 0, row: 0, last: None }
    }

    /// Takes a probe: how long it took, `None` if it was not answered, and how long after the beginning of the wait it ended.
    pub fn observe(&mut self, took: Option<Duration>, waited: Duration) -> Probed {
        (self.waited, self.last) = (waited, took);
        self.probes += 1;
        let is_calm = took.is_some_and(|took| took <= self.calm);
        self.row = if is_calm { self.row + 1 } else { 0 };
        match self.is_calm() || waited >= REST_MAX {
            true => Probed::Over,
            false => Probed::Again(PROBE_EVERY),
        }
    }

    const fn is_calm(&self) -> bool {
        self.row >= CALM_ROW
    }

    /// The wait so far, for the record.
    #[must_use]
    pub fn facts(&self) -> RestFacts {
        let ns = |length: Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        RestFacts {
            waited_ns: ns(self.waited),
            probes: self.probes,
            calm_ns: ns(self.calm),
            last_ns: self.last.map(ns),
            is_calm: self.is_calm(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// The wait for a system whose probe that begins at a time takes so long, in virtual time.
    fn waited(before: &[Duration], takes: impl Fn(Duration) -> Option<Duration>) -> RestFacts {
        let (mut calm, mut now) = (Calm::new(before), Duration::ZERO);
        for _ in 0..10_000 {
            let took = takes(now);
            now += took.unwrap_or(MS);
            match calm.observe(took, now) {
                Probed::Again(pause) => now += pause,
                Probed::Over => return calm.facts(),
            }
        }
        panic!("a wait ends: {calm:?}");
    }

    /// Claim: a system that is as fast as before is calm after three probes; one that works off a queue of ten seconds is
    /// waited for until it has, and not a second longer; a probe that is fast by accident between slow ones is not enough.
    #[test]
    fn as_before() {
        let before = [2 * MS, 5 * MS, 3 * MS];
        let fast = waited(&before, |_| Some(4 * MS));
        assert_eq!((fast.is_calm, fast.probes, fast.calm_ns), (true, 3, 11_000_000));
        let queue = waited(&before, |now| Some(4 * MS + (10_000 * MS).saturating_sub(now)));
        assert!(queue.is_calm, "{queue:?}");
        assert!((10_000_000_000..11_000_000_000).contains(&queue.waited_ns), "{queue:?}");
        let every_third = std::cell::Cell::new(0);
        let restless = waited(&before, |_| {
            every_third.set(every_third.get() + 1);
            Some(if every_third.get() % 3 == 0 { 50 * MS } else { 4 * MS })
        });
        assert!(!restless.is_calm, "{restless:?}");
    }

    /// Claim: a system that is never calm again, or never answers, is waited for a minute, and the record says so.
    #[test]
    fn the_wait_is_bounded() {
        let slow = waited(&[MS], |_| Some(100 * MS));
        assert!(!slow.is_calm && slow.last_ns == Some(100_000_000), "{slow:?}");
        let dead = waited(&[MS], |_| None);
        assert!(!dead.is_calm && dead.last_ns.is_none(), "{dead:?}");
        for facts in [slow, dead] {
            assert!((60_000_000_000..61_000_000_000).contains(&facts.waited_ns), "{facts:?}");
        }
    }
}
