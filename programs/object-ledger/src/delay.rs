//! How much later a service answers: always the same, lognormal with stalls, or drawn from measured times.

use std::path::Path;
use std::time::Duration;

/// A distribution of delays, written as `120ms`, `lognormal(100ms,0.4)`, `lognormal(100ms,0.4,0.01,2s)` (median, sigma, how
/// often it stalls, and for how long in the mean), or `file:PATH` (milliseconds, one a line).
#[derive(Clone, Debug)]
pub struct Delay {
    law: Law,
    /// State of the generator (SplitMix64).
    state: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Law {
    Always(Duration),
    Lognormal { median_ms: f64, sigma: f64, stalls: f64, stall_ms: f64 },
    Measured(Vec<f64>),
}

/// No delay is longer.
const DELAY_MAX: Duration = Duration::from_secs(600);
/// A file has at most so many times.
const MEASURED_MAX: usize = 1 << 20;

impl Delay {
    /// Always this long.
    #[must_use]
    pub const fn always(delay: Duration) -> Self {
        Self { law: Law::Always(delay), state: 0 }
    }

    /// None.
    #[must_use]
    pub const fn none() -> Self {
        Self::always(Duration::ZERO)
    }

    /// Draws from another place of the same law.
    #[must_use]
    pub const fn seeded(mut self, seed: u64) -> Self {
        self.state = seed;
        self
    }

    /// Reads one.
    ///
    /// # Errors
    /// The defect, in words for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let law = if let Some(path) = text.strip_prefix("file:") {
            measured(Path::new(path))?
        } else if let Some(inside) = text.strip_prefix("lognormal(") {
            lognormal(inside.strip_suffix(')').unwrap_or(inside)).ok_or_else(|| {
                format!("expected lognormal(MEDIAN,SIGMA[,STALLS,STALL]), as lognormal(100ms,0.4,0.01,2s), got `{text}`")
            })?
        } else {
            Law::Always(time(text).ok_or_else(|| {
                format!("expected a time, lognormal(…) or file:PATH, got `{text}`")
            })?)
        };
        Ok(Self { law, state: 0 })
    }

    /// The next delay.
    pub fn draw(&mut self) -> Duration {
        let ms = match &self.law {
            Law::Always(delay) => return *delay,
            Law::Measured(times) => {
                let length = times.len() as u64;
                let place = usize::try_from(next(&mut self.state) % length).unwrap_or(0);
                times[place]
            }
            Law::Lognormal { median_ms, sigma, stalls, stall_ms } => {
                let state = &mut self.state;
                let (u, v) = (unit(state), unit(state));
                // Box and Muller, 1958.
                let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                let stall = if unit(state) <= *stalls { -stall_ms * unit(state).ln() } else { 0.0 };
                median_ms * (sigma * normal).exp() + stall
            }
        };
        Duration::try_from_secs_f64(ms / 1e3).unwrap_or(DELAY_MAX).min(DELAY_MAX)
    }
}

fn lognormal(inside: &str) -> Option<Law> {
    let words: Vec<&str> = inside.split(',').map(str::trim).collect();
    let ms = |word: &str| Some(time(word)?.as_secs_f64() * 1e3);
    let number = |word: &str| word.parse::<f64>().ok().filter(|it| (0.0..=10.0).contains(it));
    let (stalls, stall_ms) = match words[..] {
        [_, _] => (0.0, 0.0),
        [_, _, stalls, stall] => (number(stalls).filter(|it| *it <= 1.0)?, ms(stall)?),
        _ => return None,
    };
    Some(Law::Lognormal { median_ms: ms(words[0])?, sigma: number(words[1])?, stalls, stall_ms })
}

fn time(text: &str) -> Option<Duration> {
    let words = ["--delay".to_owned(), text.to_owned()];
    let mut words = process::shell::Words::new(&words);
    words.next_word().and_then(|_| words.duration().ok())
}

fn measured(path: &Path) -> Result<Law, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("reading measured times {}: {error}", path.display()))?;
    let lines = text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#'));
    let times = lines.map(|line| line.parse::<f64>().ok().filter(|it| (0.0..6e5).contains(it)));
    match times.collect::<Option<Vec<f64>>>() {
        Some(times) if !times.is_empty() && times.len() <= MEASURED_MAX => Ok(Law::Measured(times)),
        _ => Err(format!(
            "{}: expected 1 to {MEASURED_MAX} times in milliseconds, one a line",
            path.display()
        )),
    }
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut it = *state;
    it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    it ^ (it >> 31)
}

/// Above 0 and at most 1.
fn unit(state: &mut u64) -> f64 {
    ((next(state) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a lognormal law has its median and its 95th percentile, stalls come as often as they should and as long in the
    /// mean, a file gives its own times and no other, and what is none is said.
    #[test]
    fn laws() {
        let quantiles = |text: &str| {
            let mut delay = Delay::parse(text).unwrap().seeded(7);
            let mut all: Vec<f64> = (0..40_000).map(|_| delay.draw().as_secs_f64()).collect();
            all.sort_by(f64::total_cmp);
            let mean = all.iter().sum::<f64>() / 40_000.0;
            (all[20_000], all[38_000], mean)
        };
        let (p50, p95, _) = quantiles("lognormal(100ms,0.4)");
        assert!((0.098..0.102).contains(&p50), "{p50}");
        // exp(1.645 · 0.4) = 1.931
        assert!((0.188..0.198).contains(&p95), "{p95}");
        let (p50, _, mean) = quantiles("lognormal(100ms,0,0.05,2s)");
        assert!((0.1..0.101).contains(&p50) && (0.19..0.21).contains(&mean), "{p50} {mean}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("times");
        std::fs::write(&file, "# ms\n5\n7.5\n").unwrap();
        let mut delay = Delay::parse(&format!("file:{}", file.display())).unwrap();
        for _ in 0..100 {
            assert!([5_000, 7_500].contains(&delay.draw().as_micros()));
        }
        for none in ["", "fast", "lognormal(100ms)", "lognormal(100ms,0.4,2,1s)", "file:/none"] {
            assert!(Delay::parse(none).is_err(), "{none}");
        }
    }
}
