//! Bandwidths: how much passes through a link in a second. People write bits (of a link) or bytes (of what a
//! program sends); bytes a second are kept.

use super::split_number;

/// Units with their bytes a second: numerator, denominator. The largest that fits is printed.
const UNITS: [(&str, u64, u64); 11] = [
    ("Gbit/s", 125_000_000, 1),
    ("Mbit/s", 125_000, 1),
    ("kbit/s", 125, 1),
    ("GB/s", 1_000_000_000, 1),
    ("MB/s", 1_000_000, 1),
    ("kB/s", 1_000, 1),
    ("GiB/s", 1 << 30, 1),
    ("MiB/s", 1 << 20, 1),
    ("KiB/s", 1 << 10, 1),
    ("B/s", 1, 1),
    ("bit/s", 1, 8),
];

/// Parses a bandwidth, `100Mbit/s`, `10MB/s` or `max`, to bytes a second; 0 = no limit.
///
/// # Errors
/// A sentence for people.
pub fn parse_bandwidth(text: &str) -> Result<u64, String> {
    let hint = "write a number with a unit, such as 100Mbit/s or 10MB/s, or max";
    let trimmed = text.trim();
    if trimmed == "max" {
        return Ok(0);
    }
    let (number, unit) =
        split_number(trimmed).ok_or_else(|| format!("`{text}` is not a bandwidth; {hint}"))?;
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(format!("`{text}` has no unit; {hint}"));
    }
    let (_, bytes, parts) = UNITS
        .into_iter()
        .find(|(name, ..)| *name == unit)
        .ok_or_else(|| format!("`{unit}` in `{text}` is not a unit of bandwidth; {hint}"))?;
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a bandwidth; {hint}"))?;
    #[expect(clippy::cast_precision_loss, reason = "units are small")]
    let per_second = number * bytes as f64 / parts as f64;
    if per_second < 1.0 {
        return Err(format!("`{text}` is less than a byte a second; max is no limit"));
    }
    if per_second > 1e15 {
        return Err(format!("`{text}` is more than any link carries; max is no limit"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between one and 10^15"
    )]
    Ok(per_second.round() as u64)
}

/// Prints a bandwidth in bytes a second so that [`parse_bandwidth`] reads it: `100Mbit/s`, `max` for 0.
#[must_use]
pub fn show_bandwidth(bytes_per_second: u64) -> String {
    if bytes_per_second == 0 {
        return "max".to_owned();
    }
    let fits = |unit: &&(&str, u64, u64)| unit.2 == 1 && bytes_per_second.is_multiple_of(unit.1);
    let (name, bytes, _) = UNITS.iter().find(fits).expect("a byte divides everything");
    format!("{}{name}", bytes_per_second / bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: bits and bytes are told apart, what is printed is read back to the same, and what is no bandwidth is
    /// refused with a hint.
    #[test]
    fn bandwidths() {
        for (text, bytes) in [
            ("100Mbit/s", 12_500_000),
            ("10MB/s", 10_000_000),
            ("1.5 Gbit/s", 187_500_000),
            ("8bit/s", 1),
            ("1KiB/s", 1024),
            ("max", 0),
        ] {
            assert_eq!(parse_bandwidth(text), Ok(bytes), "{text}");
            assert_eq!(parse_bandwidth(&show_bandwidth(bytes)), Ok(bytes), "{text}");
        }
        assert_eq!(show_bandwidth(12_500_000), "100Mbit/s");
        assert_eq!(show_bandwidth(1_001), "1001B/s");
        for text in
            ["100", "", "100Mb/s", "7bit/s", "0MB/s", "x", "1e9B/s", "9999999GB/s", "1..5B/s"]
        {
            assert!(parse_bandwidth(text).is_err(), "{text}");
        }
    }
}
