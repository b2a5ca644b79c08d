//! Waiting for what comes first, an event or a wake-up, and being there when the wake-up is due.
//!
//! The kernel wakes a sleeper some microseconds late: timer slack (set to its least), the interrupt, leaving an
//! idle state. That is good enough for nearly every node. Where wake-ups are to be exact, the sleep ends a
//! margin before the wake-up, and the rest is spent looking without sleeping.
//! The margin follows what the sleeps of this run have overshot: a fixed one would be either late on one
//! machine or burn a core on another. It never waits for a time that has passed.

use std::num::NonZeroU64;

use clock::{Clock, Instant};
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::Timespec;

use super::ShellError;

/// The least margin: below it the look itself (about 0.5 µs) and the step would make us late.
const MARGIN_NS_MIN: i64 = 5_000;
/// The largest: a machine that oversleeps more than this is not idle, and spinning would make it worse.
const MARGIN_NS_MAX: i64 = 120_000;
/// Further away than this, epoll's own timeout in milliseconds is exact enough to begin with.
const FAR_NS: i64 = 3_000_000;
/// Events taken at once: of thousands of ready clients so many that others are behind few such looks.
const EVENTS_MAX: usize = 1024;

/// How late wake-ups were: counts by whole microseconds, the last for all beyond.
#[derive(Clone, Debug)]
pub struct Lateness {
    by_us: Vec<u64>,
    /// The latest, nanoseconds.
    pub ns_max: i64,
}

impl Default for Lateness {
    fn default() -> Self {
        Self { by_us: vec![0; 1001], ns_max: 0 }
    }
}

impl Lateness {
    /// Counts a wake-up.
    pub fn record(&mut self, late_ns: i64) {
        let us = usize::try_from(late_ns / 1000).unwrap_or(0).min(self.by_us.len() - 1);
        self.by_us[us] += 1;
        self.ns_max = self.ns_max.max(late_ns);
    }

    /// Wake-ups counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.by_us.iter().sum()
    }

    /// Microseconds that at least `per_mille` of a thousand wake-ups were not later than, rounded up.
    #[must_use]
    pub fn us_at(&self, per_mille: u64) -> u64 {
        let wanted = (self.count() * per_mille).div_ceil(1000);
        let mut seen = 0;
        for (us, count) in (1..).zip(&self.by_us) {
            seen += count;
            if seen >= wanted {
                return us;
            }
        }
        0
    }
}

/// The waiting part of the shell.
pub(super) struct Sleeper<'a> {
    epoll: &'a OwnedFd,
    clock: Clock,
    /// Nothing where wake-ups need not be exact.
    margin_ns: Option<i64>,
    /// Looks without sleeping that found nothing.
    pub(super) looks: u64,
    pub(super) events: Vec<epoll::Event>,
}

impl<'a> Sleeper<'a> {
    pub(super) fn new(epoll: &'a OwnedFd, clock: Clock, is_exact: bool) -> Self {
        // 50 µs by default. Refused in some sandboxes; then the margin learns to live with it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let events = Vec::with_capacity(EVENTS_MAX);
        Self { epoll, clock, margin_ns: is_exact.then_some(50_000), looks: 0, events }
    }

    /// Waits until there are events or `wake` has come, whichever is first. Gives the time.
    pub(super) fn wait(&mut self, wake: Option<Instant>) -> Result<Instant, ShellError> {
        let Some(wake) = wake else {
            self.take(None)?;
            return Ok(self.clock.now());
        };
        loop {
            let now = self.clock.now();
            let left_ns = wake.ns_since(now);
            let margin_ns = self.margin_ns.unwrap_or(0);
            if left_ns <= margin_ns {
                self.take(Some(0))?;
                let now = self.clock.now();
                if now >= wake || !self.events.is_empty() {
                    return Ok(now);
                }
                self.looks += 1;
            } else if left_ns > FAR_NS {
                self.take(Some(left_ns / 1_000_000 - 1))?;
                if !self.events.is_empty() {
                    return Ok(self.clock.now());
                }
            } else if self.sleep_to(wake.as_ns() - margin_ns, left_ns - margin_ns)? {
                self.take(Some(0))?;
                return Ok(self.clock.now());
            }
        }
    }

    /// Sleeps for `ns`, to `target_ns`, on epoll's descriptor and with a timeout in nanoseconds, which epoll's own wait has not
    /// on older kernels. Gives whether there are events.
    fn sleep_to(&mut self, target_ns: i64, ns: i64) -> Result<bool, ShellError> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: ns };
        let mut descriptors = [PollFd::new(self.epoll, PollFlags::IN)];
        match poll(&mut descriptors, Some(&timeout)) {
            Ok(0) => {}
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(ShellError::Kernel(error)),
        }
        if self.margin_ns.is_some() {
            self.learn(self.clock.now().as_ns() - target_ns);
        }
        Ok(false)
    }

    /// Up at once when a sleep overshot the margin, down by a hundredth otherwise: about one wake-up in a
    /// hundred is late by what it overshot.
    fn learn(&mut self, overslept_ns: i64) {
        let margin_ns = self.margin_ns.unwrap_or(0);
        let learnt = if overslept_ns > margin_ns {
            overslept_ns + overslept_ns / 4
        } else {
            margin_ns - (margin_ns - overslept_ns) / 100
        };
        self.margin_ns = Some(learnt.clamp(MARGIN_NS_MIN, MARGIN_NS_MAX));
    }

    /// Takes what has happened, waiting at most `timeout_ms`; `None`: as long as it takes.
    fn take(&mut self, timeout_ms: Option<i64>) -> Result<(), ShellError> {
        let timeout =
            timeout_ms.map(|ms| Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 });
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(self.epoll, room, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(ShellError::Kernel(error)),
        }
    }
}
