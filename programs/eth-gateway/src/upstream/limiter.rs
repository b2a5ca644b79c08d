//! What the node's limiter allows, learnt from its refusals, and kept to: calls wait for their turn, and those that would
//! wait too long are refused here, where that costs the node nothing. It is a value: it is told the time and never waits.

use std::time::Duration;

use clock::Instant;

use crate::rpc::Stated;

/// Of what the node says it allows this share is used: its clock and its counting are not ours.
const SHARE: f64 = 0.9;
/// How many seconds of the allowed rate may come at once.
const BURST_S: f64 = 1.0;
/// What was learnt is believed so long after the last refusal.
const MEMORY: Duration = Duration::from_secs(15 * 60);
/// How long nothing is sent after a refusal that does not say how long.
const BACKOFF: Duration = Duration::from_secs(5);
/// No refusal holds longer than this, whatever it says.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// Whether a call may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Now.
    Now,
    /// After this time; the turn is taken.
    After(Duration),
    /// Not at all; another one may be after this time.
    Never(Duration),
}

/// See the module.
#[derive(Debug)]
pub struct Limiter {
    /// What the owner of the node says it allows.
    configured: Option<f64>,
    learnt: Option<(f64, Instant)>,
    wait_max: Duration,
    silent_until: Instant,
    /// When the next call has its turn.
    turn: Instant,
}

impl Limiter {
    pub fn new(configured: Option<f64>, wait_max: Duration) -> Self {
        let long_ago = Instant::from_ns(i64::MIN / 2);
        Self { configured, learnt: None, wait_max, silent_until: long_ago, turn: long_ago }
    }

    /// The rate that is kept to; none while nothing is known.
    pub fn rate(&self, now: Instant) -> Option<f64> {
        let learnt = self.learnt.filter(|(_, at)| now.saturating_since(*at) < MEMORY);
        let learnt = learnt.map(|(allowed, _)| allowed * SHARE);
        match (self.configured, learnt) {
            (Some(configured), Some(learnt)) => Some(learnt.min(configured)),
            (configured, learnt) => configured.or(learnt),
        }
    }

    /// Takes a turn for one call.
    pub fn admit(&mut self, now: Instant) -> Admission {
        if now < self.silent_until {
            return Admission::Never(self.silent_until.saturating_since(now));
        }
        let Some(rate) = self.rate(now) else { return Admission::Now };
        let each = Duration::from_secs_f64(1.0 / rate.max(0.001));
        let earliest = now.minus(Duration::from_secs_f64(BURST_S));
        let turn = self.turn.max(earliest);
        let wait = turn.saturating_since(now);
        if wait > self.wait_max {
            return Admission::Never(wait);
        }
        self.turn = turn.plus(each);
        if wait.is_zero() { Admission::Now } else { Admission::After(wait) }
    }

    /// A call was refused by the node's limiter. Gives how long nothing will be sent.
    pub fn refused(&mut self, now: Instant, stated: Stated) -> Duration {
        let allowed = stated.allowed_rps.filter(|rate| rate.is_finite() && *rate > 0.0);
        if let Some(allowed) = allowed {
            self.learnt = Some((allowed, now));
        }
        let backoff = stated.backoff.unwrap_or(BACKOFF).min(BACKOFF_MAX);
        self.silent_until = self.silent_until.max(now.plus(backoff));
        // Nothing was earned while nothing was allowed.
        self.turn = self.turn.max(self.silent_until);
        self.silent_until.saturating_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    /// Claim: while nothing is known nothing is kept back; a refusal silences for as long as it says, and then nine tenths
    /// of the rate that it named are kept to.
    #[test]
    fn learns() {
        let mut limiter = Limiter::new(None, Duration::from_millis(500));
        assert!((0..10_000).all(|_| limiter.admit(at(0)) == Admission::Now));
        let stated = Stated { allowed_rps: Some(50.0), backoff: Some(Duration::from_secs(30)) };
        assert_eq!(limiter.refused(at(1_000), stated), Duration::from_secs(30));
        assert_eq!(limiter.admit(at(11_000)), Admission::Never(Duration::from_secs(20)));
        let sent =
            (31_000..91_000).filter(|ms| !matches!(limiter.admit(at(*ms)), Admission::Never(_)));
        let sent = sent.count();
        assert!((60 * 45..60 * 45 + 70).contains(&sent), "{sent} in a minute");
    }

    /// Claim: a call that would wait longer than the bound is refused at once and takes no turn.
    #[test]
    fn sheds() {
        let mut limiter = Limiter::new(Some(10.0), Duration::from_millis(300));
        let given: Vec<_> = (0..16).map(|_| limiter.admit(at(0))).collect();
        assert_eq!(given.iter().filter(|it| **it == Admission::Now).count(), 11);
        assert_eq!(given[11], Admission::After(Duration::from_millis(100)));
        assert_eq!(given[13], Admission::After(Duration::from_millis(300)));
        assert_eq!(given[14], Admission::Never(Duration::from_millis(400)));
        assert_eq!(given[15], given[14]);
        assert_eq!(limiter.admit(at(100)), Admission::After(Duration::from_millis(300)));
    }

    /// Claim: what was learnt is forgotten when nothing was refused for a quarter of an hour, and a silly refusal binds
    /// for no more than five minutes.
    #[test]
    fn forgets() {
        let mut limiter = Limiter::new(None, Duration::ZERO);
        let stated = Stated { allowed_rps: Some(1.0), backoff: Some(Duration::from_secs(1 << 40)) };
        assert_eq!(limiter.refused(at(0), stated), BACKOFF_MAX);
        assert_eq!(limiter.rate(at(1)), Some(SHARE));
        assert_eq!(limiter.rate(Instant::ZERO.plus(MEMORY)), None);
        let nonsense = Stated { allowed_rps: Some(f64::NAN), backoff: None };
        assert_eq!(limiter.refused(at(400_000), nonsense), BACKOFF);
    }
}
