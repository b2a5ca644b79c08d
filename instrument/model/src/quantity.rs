//! Quantities as people write them: durations, rates, sizes, percentages. One grammar in file, flags and
//! environment, and one way to print each.
//!
//! A bare number is refused where a unit is needed, because `timeout = 30` has been read as nanoseconds,
//! milliseconds and seconds by different tools.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod bandwidth;

pub use bandwidth::{parse_bandwidth, show_bandwidth};

/// Parses a duration: one or more `<number><unit>` with units ns, us, µs, ms, s, m, h, d (`1h30m`, `250us`).
///
/// # Errors
/// A sentence for people that says what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let hint = "write a number with a unit, such as 250us, 30s or 1h30m";
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(format!("an empty duration; {hint}"));
    }
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut total_ns = 0_f64;
    let mut whole_ns = 0_u128;
    while !rest.is_empty() {
        let (number, after) =
            split_number(rest).ok_or_else(|| format!("`{text}` is not a duration; {hint}"))?;
        let unit_length =
            after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_length);
        let unit_ns: u128 = match unit.trim() {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "" => return Err(format!("`{text}` has no unit; {hint}")),
            other => return Err(format!("`{other}` in `{text}` is not a unit of time; {hint}")),
        };
        match number.parse::<u64>() {
            Ok(n) => whole_ns += u128::from(n) * unit_ns,
            Err(_) => {
                let n: f64 =
                    number.parse().map_err(|_| format!("`{text}` is not a duration; {hint}"))?;
                #[expect(clippy::cast_precision_loss, reason = "units are small")]
                let scale = unit_ns as f64;
                total_ns += n * scale;
            }
        }
        rest = next.trim_start();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "split_number admits no sign; the bound is checked next"
    )]
    let ns = whole_ns + total_ns.round() as u128;
    u64::try_from(ns)
        .map(Duration::from_nanos)
        .map_err(|_| format!("`{text}` is longer than 584 years"))
}

/// Prints a duration with at most four significant digits and the unit that keeps them readable: `1.25 s`, `87 µs`.
#[must_use]
pub fn show_ns(ns: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let value = ns as f64;
    let magnitude = value.abs();
    let (scaled, unit) = match magnitude {
        m if m < 1e3 => return format!("{ns} ns"),
        m if m < 1e6 => (value / 1e3, "µs"),
        m if m < 1e9 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    let digits = match scaled.abs() {
        s if s < 10.0 => 2,
        s if s < 100.0 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$} {unit}")
}

/// Prints a duration in the form that [`parse_duration`] reads, exactly: `1h30m`, `250us`.
#[must_use]
pub fn show_duration(duration: Duration) -> String {
    let mut ns = duration.as_nanos();
    if ns == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit_ns, unit) in [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ] {
        let count = ns / unit_ns;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
            ns %= unit_ns;
        }
    }
    text
}

/// A rate, kept exactly: thousandths of an event per a whole number of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    milli_events: u64,
    per_ns: u64,
}

impl Rate {
    /// No events.
    pub const ZERO: Self = Self { milli_events: 0, per_ns: 1_000_000_000 };
    /// As fast as possible (`max`).
    pub const MAX: Self = Self { milli_events: u64::MAX, per_ns: 1_000_000_000 };

    /// `events` each second.
    #[must_use]
    pub const fn per_second(events: u64) -> Self {
        Self { milli_events: events.saturating_mul(1000), per_ns: 1_000_000_000 }
    }

    /// Parses `50/s`, `600/1m`, `0.5/s`, `10/100ms`, `max`.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let hint = "write events and a time, such as 50/s or 600/1m, or max";
        let text = text.trim();
        if text == "max" || text == "inf" {
            return Ok(Self::MAX);
        }
        let Some((events, per)) = text.split_once('/') else {
            return Err(format!("`{text}` is not a rate; {hint}"));
        };
        let per = per.trim();
        let per = if per.starts_with(|c: char| c.is_ascii_digit()) {
            parse_duration(per)
        } else {
            parse_duration(&format!("1{per}"))
        }
        .map_err(|_| format!("`{text}` is not a rate; {hint}"))?;
        let per_ns =
            u64::try_from(per.as_nanos()).map_err(|_| format!("`{text}`: the time is too long"))?;
        if per_ns == 0 {
            return Err(format!("`{text}`: a rate per no time at all; {hint}"));
        }
        let events = events.trim().replace('_', "");
        let number: f64 = events.parse().map_err(|_| format!("`{text}` is not a rate; {hint}"))?;
        if !(0.0..=1e12).contains(&number) {
            return Err(format!("`{text}`: events must lie between 0 and 10^12"));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        let milli_events = (number * 1000.0).round() as u64;
        Ok(Self { milli_events, per_ns })
    }

    /// Whether this is `max`.
    #[must_use]
    pub const fn is_max(self) -> bool {
        self.milli_events == u64::MAX
    }

    /// Whether no event ever comes.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.milli_events == 0
    }

    /// Events each second; infinite for `max`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people and for ratios")]
    pub fn as_per_second(self) -> f64 {
        if self.is_max() {
            return f64::INFINITY;
        }
        self.milli_events as f64 * 1e6 / self.per_ns as f64
    }

    /// This rate, `count` times.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        if self.is_max() {
            return self;
        }
        Self { milli_events: self.milli_events.saturating_mul(count).min(u64::MAX - 1), ..self }
    }

    /// When event `index` (from 0) is due, in nanoseconds after the first, exactly (integer arithmetic,
    /// rounded down, no drift).
    ///
    /// # Panics
    /// If the rate is zero or `max`, which have no such times.
    #[must_use]
    pub fn due_ns(self, index: u64) -> u64 {
        assert!(!self.is_max() && !self.is_zero(), "zero and max have no due times");
        let ns = u128::from(index) * 1000 * u128::from(self.per_ns) / u128::from(self.milli_events);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// At how many different phases of a period events at even distances fall: 1 at 1/s of a second, 7 at 7/s or at
    /// 0.7/s; 0 for zero and `max`.
    #[must_use]
    pub fn phases_of(self, period: Duration) -> u64 {
        if self.is_max() || self.is_zero() {
            return 0;
        }
        let events = period.as_nanos() * u128::from(self.milli_events);
        let (mut a, mut b) = (events, u128::from(self.per_ns) * 1000);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        u64::try_from(events / a.max(1)).unwrap_or(u64::MAX)
    }

    /// How many events are due in `window`, the one at its start included and the one at its end not.
    #[must_use]
    pub fn events_in(self, window: Duration) -> u64 {
        if self.is_max() || self.is_zero() || window.is_zero() {
            return 0;
        }
        let numerator = window.as_nanos() * u128::from(self.milli_events);
        let denominator = u128::from(self.per_ns) * 1000;
        u64::try_from(numerator.div_ceil(denominator)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_max() {
            return f.write_str("max");
        }
        if self.milli_events.is_multiple_of(1000) {
            write!(f, "{}", self.milli_events / 1000)?;
        } else {
            let text = format!("{}.{:03}", self.milli_events / 1000, self.milli_events % 1000);
            f.write_str(text.trim_end_matches('0'))?;
        }
        match self.per_ns {
            1_000_000_000 => f.write_str("/s"),
            ns => write!(f, "/{}", show_duration(Duration::from_nanos(ns))),
        }
    }
}

impl TryFrom<String> for Rate {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

/// Parses a size in bytes: `1KiB`, `16kB`, `64MiB`, `512B`.
///
/// # Errors
/// A sentence for people.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let hint = "write a number with a unit, such as 512B, 16kB or 1KiB";
    let (number, unit) =
        split_number(text.trim()).ok_or_else(|| format!("`{text}` is not a size; {hint}"))?;
    let scale: u64 = match unit.trim() {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "" => return Err(format!("`{text}` has no unit; {hint}")),
        other => return Err(format!("`{other}` in `{text}` is not a unit of size; {hint}")),
    };
    if let Ok(n) = number.parse::<u64>() {
        return n.checked_mul(scale).ok_or_else(|| format!("`{text}` is too large"));
    }
    let n: f64 = number.parse().map_err(|_| format!("`{text}` is not a size; {hint}"))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "not negative by the grammar"
    )]
    Ok((n * scale as f64).round() as u64)
}

/// A size as [`parse_size`] takes it: to the byte, in the largest unit that divides it.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = |(scale, _): &&(u64, &str)| bytes > 0 && bytes.is_multiple_of(*scale);
    let (scale, unit) = units.iter().find(fits).copied().unwrap_or((1, "B"));
    format!("{}{unit}", bytes / scale)
}

/// Parses a percentage, `99.9%` or `p99.9`, to a fraction of one.
///
/// # Errors
/// A sentence for people.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let number = trimmed
        .strip_suffix('%')
        .or_else(|| trimmed.strip_prefix('p'))
        .ok_or_else(|| format!("`{text}` is not a percentage; write 99.9% or p99.9"))?;
    let value: f64 = number
        .trim()
        .parse()
        .map_err(|_| format!("`{text}` is not a percentage; write 99.9% or p99.9"))?;
    if !(0.0..=100.0).contains(&value) {
        return Err(format!("`{text}` is not between 0% and 100%"));
    }
    // Through an integer, so that 99.9 gives the double nearest to 0.999.
    Ok((value * 1e10).round() / 1e12)
}

/// Prints a fraction of one so that [`parse_percent`] reads it: `0.1%`.
#[must_use]
pub fn show_percent(share: f64) -> String {
    // Through an integer, as it was read, so that 0.001 is 0.1 and not 0.1000…1.
    format!("{}%", (share * 1e12).round() / 1e10)
}

/// Groups the digits of a count by thousands: `1,234,567`.
#[must_use]
pub fn show_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The leading number (digits, underscores, at most one point) and what follows it.
fn split_number(text: &str) -> Option<(String, &str)> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    (end > 0).then(|| (text[..end].replace('_', ""), &text[end..]))
}

/// Serde form of a duration: the text that [`parse_duration`] reads.
pub mod duration_text {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes the text form.
    ///
    /// # Errors
    /// As the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::show_duration(*duration))
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// As [`super::parse_duration`].
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        super::parse_duration(&text).map_err(serde::de::Error::custom)
    }
}

/// Serde form of a duration that may be absent; skip it where it is `None`.
pub mod duration_text_option {
    use std::time::Duration;

    use serde::{Deserializer, Serializer};

    /// Writes the text form.
    ///
    /// # Errors
    /// As the serializer.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::duration_text::serialize(duration, to),
            None => to.serialize_none(),
        }
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// As [`super::parse_duration`].
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        super::duration_text::deserialize(from).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: even events meet as many phases of a period as their count in it has, in lowest terms.
    #[test]
    fn phases_of_a_period() {
        let second = Duration::from_secs(1);
        let phases = |rate: &str| Rate::parse(rate).unwrap().phases_of(second);
        let rates = ["1/s", "7/s", "0.7/s", "20/s", "0.5/s", "1/10s", "2.5/s", "max"];
        assert_eq!(rates.map(phases), [1, 7, 7, 20, 1, 1, 5, 0]);
    }

    /// Claim: durations are read exactly and a bare number is refused with a hint.
    #[test]
    fn durations() {
        for (text, ns) in [
            ("250us", 250_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            ("0", 0),
            ("1m0.5s", 60_500_000_000),
            ("30 s", 30_000_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in ["30", "", "s", "-1s", "1x", "1s30"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(show_duration(Duration::from_millis(90_250)), "1m30s250ms");
    }

    /// Claim: a rate's due times are exact for any index, and its text form reads back to it.
    #[test]
    fn rates() {
        let third = Rate::parse("3/s").unwrap();
        assert_eq!(third.due_ns(3_000_000_000), 1_000_000_000_000_000_000);
        assert_eq!(third.events_in(Duration::from_secs(10)), 30);
        assert_eq!(Rate::parse("600/1m").unwrap().as_per_second(), 10.0);
        assert_eq!(Rate::parse("0.5/s").unwrap().due_ns(1), 2_000_000_000);
        for text in ["50/s", "600/1m", "0.5/s", "max", "10/100ms"] {
            let rate = Rate::parse(text).unwrap();
            assert_eq!(Rate::parse(&rate.to_string()).unwrap(), rate, "{text}");
        }
        for text in ["50", "50/", "/s", "-1/s", "50/0s", "x/s"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }

    /// Claim: sizes and percentages follow their units, and a size that is shown is read back to the byte.
    #[test]
    fn sizes_and_percentages() {
        for (bytes, text) in [(0, "0B"), (1_025, "1025B"), (3 << 10, "3KiB"), (1 << 30, "1GiB")] {
            assert_eq!(show_size(bytes), text);
            assert_eq!(parse_size(text), Ok(bytes));
        }
        assert_eq!(parse_size("1KiB"), Ok(1024));
        assert_eq!(parse_size("16kB"), Ok(16_000));
        assert!(parse_size("16").is_err());
        assert_eq!(parse_percent("p99.9"), Ok(0.999));
        assert_eq!(parse_percent("50%"), Ok(0.5));
        assert!(parse_percent("101%").is_err());
        assert_eq!(show_percent(0.001), "0.1%");
        assert_eq!(show_percent(parse_percent("0.3%").unwrap()), "0.3%");
        assert_eq!(show_count(1_234_567), "1,234,567");
        assert_eq!(show_ns(1_250_000_000), "1.25 s");
        assert_eq!(show_ns(999), "999 ns");
    }
}
