//! A rate limiter as public APIs have them: a token bucket, and after its first refusal a back-off during which
//! everything is refused, whatever the bucket holds.

use std::time::Duration;

use clock::Instant;

/// What is allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Tokens a second.
    pub rate: f64,
    /// The most tokens: what may come at once after a pause. A measuring window is a burst of rate × window.
    pub burst: f64,
    /// How long everything is refused after a refusal.
    pub backoff: Duration,
}

/// The bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limiter {
    limit: Limit,
    tokens: f64,
    at: Option<Instant>,
    refuses_until: Option<Instant>,
}

impl Limiter {
    pub(crate) fn new(limit: Limit) -> Self {
        Self { limit, tokens: limit.burst, at: None, refuses_until: None }
    }

    /// Takes a token, or says how long to wait.
    pub(crate) fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        if let Some(until) = self.refuses_until.filter(|until| now < *until) {
            return Err(until.saturating_since(now));
        }
        let passed = now.saturating_since(self.at.unwrap_or(now)).as_secs_f64();
        self.at = Some(now);
        self.tokens = (self.tokens + passed * self.limit.rate).min(self.limit.burst);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        if self.limit.backoff.is_zero() {
            let missing = (1.0 - self.tokens) / self.limit.rate.max(1e-9);
            return Err(Duration::try_from_secs_f64(missing).unwrap_or(Duration::MAX));
        }
        self.refuses_until = Some(now.plus(self.limit.backoff));
        Err(self.limit.backoff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the bucket lets its burst and then its rate pass, and says how long to wait.
    #[test]
    fn a_bucket() {
        let mut limiter = Limiter::new(Limit { rate: 10.0, burst: 5.0, backoff: Duration::ZERO });
        let start = Instant::from_ns(0);
        assert_eq!((0..10).filter(|_| limiter.admit(start).is_ok()).count(), 5);
        assert_eq!(limiter.admit(start), Err(Duration::from_millis(100)));
        let passed =
            (1..=1000).filter(|ms| limiter.admit(start.plus(Duration::from_millis(*ms))).is_ok());
        assert!((9..=10).contains(&passed.count()), "10/s for a second");
    }

    /// Claim: after a refusal everything is refused for the back-off, and then the bucket counts again.
    #[test]
    fn a_back_off() {
        let mut limiter =
            Limiter::new(Limit { rate: 10.0, burst: 1.0, backoff: Duration::from_secs(30) });
        let at = |ms: u64| Instant::ZERO.plus(Duration::from_millis(ms));
        assert!(limiter.admit(at(0)).is_ok());
        assert_eq!(limiter.admit(at(50)), Err(Duration::from_secs(30)));
        assert_eq!(limiter.admit(at(20_050)), Err(Duration::from_secs(10)));
        assert!(limiter.admit(at(30_050)).is_ok());
    }
}
