//! When a transaction leaves: the recursion of Lindley for one server and of Kiefer and Wolfowitz for several
//! (D. V. Lindley, "The theory of queues with a single server", 1952; J. Kiefer and J. Wolfowitz, "On the theory
//! of queues with many servers", 1955). First come, first served:
//!
//! `departure = max(arrival, earliest free server) + service`
//!
//! The departure is known at the arrival, so there is no simulation of servers, only a heap of when each is
//! free. While the system stands still (a stall) no work is done: work that would cross it ends later by its
//! length. It never looks at a clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use clock::Instant;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// How service times are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// All alike (D).
    #[default]
    Constant,
    /// Exponential (M).
    Exponential,
}

/// Times at which no work is done: from, to. Ascending and apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stalls(pub(crate) Vec<(Instant, Instant)>);

impl Stalls {
    /// The first moment from `at` on at which the system moves.
    pub(crate) fn thaw(&self, at: Instant) -> Instant {
        let within = self.0.iter().find(|(from, to)| (*from..*to).contains(&at));
        within.map_or(at, |(_, to)| *to)
    }

    /// When `work` that begins at `start` ends.
    fn work(&self, start: Instant, work: Duration) -> Instant {
        let mut end = start.plus(work);
        for (from, to) in &self.0 {
            if *from >= start && *from < end {
                end = end.plus(to.saturating_since(*from));
            }
        }
        end
    }
}

/// What the queue does with an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// When its service begins.
    pub(crate) start: Instant,
    /// When it leaves.
    pub(crate) departure: Instant,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue {
    /// When each server is free.
    free: BinaryHeap<Reverse<Instant>>,
    mean_ns: f64,
    distribution: Distribution,
    /// The most in the system, waiting and being served, if there is a most.
    system_max: Option<usize>,
    /// Departures of those in the system; kept only where there is a most.
    inside: BinaryHeap<Reverse<Instant>>,
    rng: Xoshiro256PlusPlus,
}

impl Queue {
    pub(crate) fn new(
        servers: u32,
        mean: Duration,
        distribution: Distribution,
        queue_max: Option<u32>,
        seed: u64,
    ) -> Self {
        let servers = usize::try_from(servers.max(1)).expect("32 bits fit");
        #[expect(clippy::cast_precision_loss, reason = "exact below 104 days")]
        let mean_ns = mean.as_nanos() as f64;
        Self {
            free: std::iter::repeat_n(Reverse(Instant::from_ns(i64::MIN)), servers).collect(),
            mean_ns,
            distribution,
            system_max: queue_max.map(|max| servers + usize::try_from(max).expect("32 bits fit")),
            inside: BinaryHeap::new(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// Takes an arrival of `count` services that follow each other on one server, after `before`, and last `factor`
    /// times as long as usual. Gives when it is served, or `None` if there is no room for it.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        before: Duration,
        count: usize,
        factor: f64,
        stalls: &Stalls,
    ) -> Option<Served> {
        if let Some(max) = self.system_max {
            while self.inside.peek().is_some_and(|Reverse(departure)| *departure <= now) {
                self.inside.pop();
            }
            if self.inside.len() >= max {
                return None;
            }
        }
        let service = (0..count).fold(before, |sum, _| sum.saturating_add(self.service(factor)));
        let mut free = self.free.peek_mut().expect("at least one server");
        let start = stalls.thaw(now.max(free.0));
        let departure = stalls.work(start, service);
        *free = Reverse(departure);
        drop(free);
        if self.system_max.is_some() {
            self.inside.push(Reverse(departure));
        }
        Some(Served { start, departure })
    }

    fn service(&mut self, factor: f64) -> Duration {
        if self.mean_ns == 0.0 {
            return Duration::ZERO;
        }
        let ns = match self.distribution {
            Distribution::Constant => self.mean_ns,
            Distribution::Exponential => -self.mean_ns * (1.0 - unit(&mut self.rng)).ln(),
        };
        Duration::from_nanos(rounded(ns * factor))
    }
}

/// Uniform in `[0, 1)` with 53 bits.
fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a f64 exactly")]
    let mantissa = (rng.next_u64() >> 11) as f64;
    mantissa * (1.0 / 9_007_199_254_740_992.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates, and service times are not negative"
)]
fn rounded(ns: f64) -> u64 {
    ns.round() as u64
}
