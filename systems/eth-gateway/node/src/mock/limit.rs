//! The limiter: so many calls a second over a window, and after the first refusal everything is refused for a while.

use std::time::Duration;

use clock::Instant;

/// See the module. A bucket that holds what a window allows.
pub struct Limit {
    allowed_rps: f64,
    burst: f64,
    backoff: Duration,
    tokens: f64,
    at: Option<Instant>,
    refuses_until: Option<Instant>,
    /// Calls in the last second or so, for what the refusal says.
    current: Current,
}

/// What a refusal says.
#[derive(Debug, PartialEq)]
pub struct Refusal {
    pub allowed_rps: f64,
    pub current_rps: f64,
    /// How long nothing may be sent after a refusal.
    pub backoff: Duration,
    /// How long that still is.
    pub wait: Duration,
}

impl Refusal {
    /// That of a limiter that lets nobody pass.
    pub fn always() -> Self {
        let backoff = Duration::from_secs(30);
        Self { allowed_rps: 50.0, current_rps: 83.7, backoff, wait: backoff }
    }
}

#[derive(Default)]
struct Current {
    began: Option<Instant>,
    count: u32,
    last_rps: f64,
}

impl Limit {
    pub fn new(allowed_rps: f64, window: Duration, backoff: Duration) -> Self {
        let burst = (allowed_rps * window.as_secs_f64()).max(1.0);
        let current = Current::default();
        Self { allowed_rps, burst, backoff, tokens: burst, at: None, refuses_until: None, current }
    }

    /// Lets one call pass, or not.
    pub fn admit(&mut self, now: Instant) -> Result<(), Refusal> {
        let current_rps = self.current.add(now);
        let refusal = |wait| Refusal {
            allowed_rps: self.allowed_rps,
            current_rps: (current_rps * 10.0).round() / 10.0,
            backoff: self.backoff,
            wait,
        };
        if let Some(until) = self.refuses_until.filter(|until| now < *until) {
            return Err(refusal(until.saturating_since(now)));
        }
        let passed = now.saturating_since(self.at.unwrap_or(now)).as_secs_f64();
        self.at = Some(now);
        self.tokens = (self.tokens + passed * self.allowed_rps).min(self.burst);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        self.refuses_until = Some(now.plus(self.backoff));
        Err(refusal(self.backoff))
    }
}

impl Current {
    fn add(&mut self, now: Instant) -> f64 {
        let began = *self.began.get_or_insert(now);
        let passed = now.saturating_since(began).as_secs_f64();
        self.count += 1;
        if passed >= 1.0 {
            self.last_rps = f64::from(self.count) / passed;
            (self.began, self.count) = (Some(now), 0);
        }
        self.last_rps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: above the rate a window's worth passes first, then everything is refused for the back-off; the refusal says
    /// how much came.
    #[test]
    fn window_and_backoff() {
        let mut limit = Limit::new(50.0, Duration::from_secs(60), Duration::from_secs(30));
        let at = |ms: u64| Instant::ZERO.plus(Duration::from_millis(ms));
        // 100 calls a second: a surplus of 50 a second empties 3,000 in a minute.
        let first =
            (0..200_000).step_by(10).find_map(|ms| limit.admit(at(ms)).err().map(|it| (ms, it)));
        let (ms, refusal) = first.unwrap();
        assert!((59_000..61_000).contains(&ms), "{ms}");
        assert!((refusal.current_rps - 100.0).abs() < 2.0, "{refusal:?}");
        assert!(limit.admit(at(ms + 29_990)).is_err());
        assert!(limit.admit(at(ms + 30_010)).is_ok());
    }
}
