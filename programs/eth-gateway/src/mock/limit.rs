//! The limiter: so many calls in a window that slides, and after the first refusal everything is refused for a while.
//!
//! Calls that are refused count, too: of *blocks and transactions* the published figures have 22 % of successes in 240 s and
//! 13 % in 600 s at the allowed 50 a second, so that everything was refused from about the end of the first minute on, however
//! many back-offs went by, and 48 a second were clean. Other calls do not count: of *dapp*, which makes 58 calls a second at
//! 50 requests a second, 99.7 % succeeded, and of *everything* all that can. `data/published.tsv` has the rows, and a test here
//! holds the limiter against each of them.

use std::time::Duration;

use clock::Instant;

/// A window is counted in so many parts: what is in it is exact to one of them, however many calls there are.
const PARTS: usize = 60;

/// See the module.
pub struct Limit {
    allowed_rps: f64,
    backoff: Duration,
    /// Calls that a window may hold.
    calls_max: f64,
    counted: Counted,
    refuses_until: Option<Instant>,
    /// Calls in the last second or so, for what the refusal says.
    current: Current,
}

/// A refusal.
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
    /// That of a limiter that lets no call pass.
    pub fn always() -> Self {
        let backoff = Duration::from_secs(30);
        Self { allowed_rps: 50.0, current_rps: 83.7, backoff, wait: backoff }
    }
}

/// Calls of the window that ends now, by its parts.
struct Counted {
    part: Duration,
    calls: [u64; PARTS],
    /// Which part of all time the last call was in.
    last: u128,
}

#[derive(Default)]
struct Current {
    began: Option<Instant>,
    count: u32,
    last_rps: f64,
}

impl Limit {
    pub fn new(allowed_rps: f64, window: Duration, backoff: Duration) -> Self {
        let parts = u32::try_from(PARTS).expect("few");
        let part = (window / parts).max(Duration::from_nanos(1));
        Self {
            allowed_rps,
            backoff,
            calls_max: (allowed_rps * window.as_secs_f64()).max(1.0),
            counted: Counted { part, calls: [0; PARTS], last: 0 },
            refuses_until: None,
            current: Current::default(),
        }
    }

    /// Lets one call pass, or not.
    pub fn admit(&mut self, now: Instant) -> Result<(), Refusal> {
        let current_rps = self.current.add(now);
        let calls = self.counted.add(now);
        let refusal = |wait| Refusal {
            allowed_rps: self.allowed_rps,
            current_rps: (current_rps * 10.0).round() / 10.0,
            backoff: self.backoff,
            wait,
        };
        if let Some(until) = self.refuses_until.filter(|until| now < *until) {
            return Err(refusal(until.saturating_since(now)));
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53 calls")]
        let is_within = calls as f64 <= self.calls_max;
        if is_within {
            return Ok(());
        }
        self.refuses_until = Some(now.plus(self.backoff));
        Err(refusal(self.backoff))
    }
}

impl Counted {
    /// Counts a call; gives how many the window holds with it.
    fn add(&mut self, now: Instant) -> u64 {
        let part = now.saturating_since(Instant::ZERO).as_nanos() / self.part.as_nanos();
        let passed = usize::try_from(part.saturating_sub(self.last)).unwrap_or(PARTS).min(PARTS);
        for back in 0..passed {
            let place = (part - back as u128) % PARTS as u128;
            self.calls[usize::try_from(place).expect("a place")] = 0;
        }
        self.last = self.last.max(part);
        let place = usize::try_from(self.last % PARTS as u128).expect("a place");
        self.calls[place] += 1;
        self.calls.iter().sum()
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

    /// Calls of blocks, heights and transactions in so many requests of a set, and requests that cannot succeed.
    const SETS: [(&str, u32, u32, u32); 3] =
        [("blocks", 1, 1, 0), ("dapp", 7, 12, 0), ("everything", 35, 41, 1)];
    /// As the study is played.
    const ALLOWED_RPS: f64 = 48.5;
    /// Rows that no limiter with a fixed allowance gives: at 49/s refusals began after 135 s and not after one window, and
    /// at 40/s, a fifth below the allowance, 18 % were refused. The published study says that the allowance varied.
    const NOT_PLAYED: [(&str, u32, f64); 2] = [("blocks", 240, 49.0), ("blocks", 600, 40.0)];

    /// Claim: of each published row of a set the played limiter lets through what was let through, within four in a hundred
    /// of the requests, but for those that are named.
    #[test]
    fn published_rows() {
        let rows = include_str!("../../data/published.tsv").lines().skip(1);
        let mut compared = 0;
        for row in rows {
            let fields: Vec<&str> = row.split('\t').collect();
            let Some(set) = SETS.iter().find(|set| set.0 == fields[0]) else {
                assert_eq!(fields[0], "log", "{row}");
                continue;
            };
            let (_, counted, of, absent) = *set;
            let seconds: u32 = fields[1].parse().unwrap();
            let rate: f64 = fields[2].parse().unwrap();
            let published: f64 = fields[4].parse().unwrap();
            let mut limit =
                Limit::new(ALLOWED_RPS, Duration::from_secs(60), Duration::from_secs(30));
            let requests: u32 = fields[3].parse().unwrap();
            let mut passed = 0;
            for request in 0..requests {
                let now = Instant::ZERO.plus(Duration::from_secs_f64(f64::from(request) / rate));
                let place = request % of;
                if place < counted {
                    passed += u32::from(limit.admit(now).is_ok());
                } else {
                    passed += u32::from(place < of - absent);
                }
            }
            let ours = 100.0 * f64::from(passed) / f64::from(requests);
            println!("{row}\t{ours:.2}");
            let is_played = !NOT_PLAYED.contains(&(fields[0], seconds, rate));
            assert_eq!((ours - published).abs() < 4.0, is_played, "{row}: {ours}");
            compared += 1;
        }
        assert_eq!(compared, 22);
    }

    fn limit() -> Limit {
        Limit::new(50.0, Duration::from_secs(60), Duration::from_secs(30))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO.plus(Duration::from_millis(ms))
    }

    /// When the first of calls that come so many ms after each other is refused, within ten minutes.
    fn first_refusal(limit: &mut Limit, each_ms: u64) -> Option<(u64, Refusal)> {
        let times = (0..600_000 / each_ms).map(|index| index * each_ms);
        times.into_iter().find_map(|ms| limit.admit(at(ms)).err().map(|it| (ms, it)))
    }

    /// Claim: above the rate a window's worth passes first, then everything is refused for the back-off; the refusal says
    /// how much came. At the rate nothing is refused, and little above it something is within the first minute.
    #[test]
    fn window_and_backoff() {
        let mut twice = limit();
        let (ms, refusal) = first_refusal(&mut twice, 10).unwrap();
        assert!((29_900..30_100).contains(&ms), "{ms}");
        assert!((refusal.current_rps - 100.0).abs() < 2.0, "{refusal:?}");
        assert!(twice.admit(at(ms + 29_990)).is_err());
        assert!(twice.admit(at(ms + 90_000)).is_ok());
        assert!(first_refusal(&mut limit(), 20).is_none());
        let (ms, _) = first_refusal(&mut limit(), 17).unwrap();
        assert!((50_000..52_000).contains(&ms), "{ms}");
    }

    /// Claim: who goes on asking while it is refused stays refused, and who keeps silent for the back-off does not.
    #[test]
    fn refused_calls_count() {
        let mut hammered = limit();
        let passed = (0..240_000).step_by(10).filter(|ms| hammered.admit(at(*ms)).is_ok()).count();
        assert_eq!(passed, 3000);
        let mut listened_to = limit();
        let (ms, _) = first_refusal(&mut listened_to, 10).unwrap();
        let later = (ms + 60_000..ms + 240_000).step_by(25);
        assert!(later.into_iter().all(|ms| listened_to.admit(at(ms)).is_ok()));
    }

    /// Claim: what is older than the window does not count, however long nothing came.
    #[test]
    fn forgets() {
        let mut limit = limit();
        assert!((0..3000).all(|_| limit.admit(at(500)).is_ok()));
        assert!((0..3000).all(|_| limit.admit(at(7_200_500)).is_ok()));
        assert!(limit.admit(at(7_200_600)).is_err());
    }
}
