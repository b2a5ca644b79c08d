//! One sentence on a promise that stands alone: where, with what, how fast, how long, how many, how sure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::quantity::{show_count, show_duration, show_ns};

/// One promise about a time, with all that it is worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The setting's key.
    pub setting: String,
    /// The promise, as it was written.
    pub promise: String,
    /// The host: processors and kernel.
    pub environment: String,
    /// The system and its load.
    pub workload: String,
    /// Offered per second; null = a closed loop.
    pub per_s: Option<f64>,
    /// Length of one measured window, nanoseconds.
    pub window_ns: i64,
    /// How many trials.
    pub trials: u64,
    /// The stage that was to be reached.
    pub stage: String,
    /// The time within which it was to be reached, nanoseconds.
    pub within_ns: i64,
    /// All that were due.
    pub due: u64,
    /// The share of them that reached the stage within that time.
    pub share: f64,
    /// Lower end of its 95 % interval: the wider of what trials differ by and of counting excursions.
    pub share_low: f64,
    /// Upper end.
    pub share_high: f64,
    /// Never answered, or never sent.
    pub unresolved: u64,
    /// Up to this share unresolved is not excluded (95 %, Clopper and Pearson).
    pub unresolved_high: f64,
    /// Calls of a client.
    pub calls: u32,
    /// The share of clients that make so many calls and see one slower than that, if calls have nothing to do with each
    /// other.
    pub slow: f64,
    /// The same as a sentence.
    pub words: String,
}

impl Statement {
    /// The sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        let rate = self.per_s.map_or(String::new(), |rate| format!(" at {}/s", significant(rate)));
        let length = show_duration(Duration::from_nanos(self.window_ns.max(0).unsigned_abs()));
        let trials =
            if self.trials == 1 { "1 trial".to_owned() } else { format!("{} trials", self.trials) };
        format!(
            "On {} with {}{rate} for {length} in {trials}, {} of transactions reached {} within {} ({} to {}); {} of {} \
             unresolved (at most {}); of clients that make {} calls, {} see one slower than {}.",
            self.environment,
            self.workload,
            percent(self.share),
            self.stage,
            show_ns(self.within_ns),
            percent(self.share_low),
            percent(self.share_high),
            show_count(self.unresolved),
            show_count(self.due),
            percent(self.unresolved_high),
            self.calls,
            percent(self.slow),
            show_ns(self.within_ns)
        )
    }
}

fn significant(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// A share as a percentage that is not rounded to all or none.
fn percent(share: f64) -> String {
    let hundred = share * 100.0;
    let rest = hundred.min(100.0 - hundred).abs();
    if rest == 0.0 {
        return format!("{hundred:.0}%");
    }
    // A tenth is not a little less than a tenth.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 6 digits")]
    let digits = (1.0 - (rest * (1.0 + 1e-9)).log10().floor()).clamp(1.0, 6.0) as usize;
    format!("{hundred:.digits$}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the sentence says where, with what, how fast, how long, how many and how sure, and rounds no share to all.
    #[test]
    fn one_sentence() {
        let statement = Statement {
            setting: "default".to_owned(),
            promise: "p99 < 100ms".to_owned(),
            environment: "2 cpus".to_owned(),
            workload: "echo".to_owned(),
            per_s: Some(150.2),
            window_ns: 60_000_000_000,
            trials: 3,
            stage: "committed".to_owned(),
            within_ns: 100_000_000,
            due: 27_000,
            share: 0.99951,
            share_low: 0.999,
            share_high: 0.9998,
            unresolved: 0,
            unresolved_high: 0.000_11,
            calls: 10,
            slow: 0.0049,
            words: String::new(),
        };
        assert_eq!(
            statement.in_words(),
            "On 2 cpus with echo at 150/s for 1m in 3 trials, 99.951% of transactions reached committed within 100 ms \
             (99.90% to 99.980%); 0 of 27,000 unresolved (at most 0.011%); of clients that make 10 calls, 0.49% see one \
             slower than 100 ms."
        );
        assert_eq!((percent(1.0), percent(0.0)), ("100%".to_owned(), "0%".to_owned()));
    }
}
