//! Durations as Go prints them (`10m0.06931754s`, `119.402274ms`, `366.757µs`), in both directions: vegeta's
//! reports are made of them.
//!
//! It must stay exact: a report that is read and printed again has the same bytes. The form is that of
//! `time.Duration.String` in Go's standard library; Assay's own durations are `model::quantity`.

/// Prints nanoseconds as Go does: the largest unit below a second alone, from a second on hours, minutes and
/// seconds, a fraction without trailing zeros.
#[must_use]
pub fn show_go(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let magnitude = ns.unsigned_abs();
    let body = match magnitude {
        0 => "0s".to_owned(),
        1..1_000 => format!("{magnitude}ns"),
        1_000..1_000_000 => fraction(magnitude, 1_000, "µs"),
        1_000_000..1_000_000_000 => fraction(magnitude, 1_000_000, "ms"),
        _ => clock(magnitude),
    };
    format!("{sign}{body}")
}

/// Hours and minutes where there are any, then seconds.
fn clock(ns: u64) -> String {
    const MINUTE_NS: u64 = 60_000_000_000;
    let minutes = ns / MINUTE_NS;
    let seconds = fraction(ns % MINUTE_NS, 1_000_000_000, "s");
    match minutes {
        0 => seconds,
        1..60 => format!("{minutes}m{seconds}"),
        _ => format!("{}h{}m{seconds}", minutes / 60, minutes % 60),
    }
}

/// `value ÷ unit_ns` in decimal, exactly, without trailing zeros.
fn fraction(value: u64, unit_ns: u64, unit: &str) -> String {
    let (whole, rest) = (value / unit_ns, value % unit_ns);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let digits = unit_ns.ilog10() as usize;
    let decimals = format!("{rest:0digits$}");
    format!("{whole}.{}{unit}", decimals.trim_end_matches('0'))
}

/// Reads what [`show_go`] prints; `None` if it is not a duration or does not fit 292 years.
#[must_use]
pub fn parse_go(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total_ns: i64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (part_ns, after) = parse_part(rest)?;
        total_ns = total_ns.checked_add(part_ns)?;
        rest = after;
    }
    Some(if negative { -total_ns } else { total_ns })
}

/// One number with its unit, and what follows.
fn parse_part(text: &str) -> Option<(i64, &str)> {
    let number_end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, rest) = text.split_at(number_end);
    let unit_end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, after) = rest.split_at(unit_end);
    let unit_ns: i64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && decimals.is_empty() {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut ns = whole.checked_mul(unit_ns)?;
    // Digit by digit in integers; what is smaller than a nanosecond is dropped, as Go does.
    let mut scale: i64 = 1;
    for digit in decimals.chars() {
        let digit = i64::from(digit.to_digit(10)?);
        // A unit has at most 13 digits of nanoseconds: what comes after cannot count.
        scale = scale.checked_mul(10).unwrap_or(i64::MAX);
        ns = ns.checked_add(digit * unit_ns / scale)?;
    }
    Some((ns, after))
}

/// Rounds to the next finer unit, as vegeta's text report does since 12.8: 10m0.07s to 10m0s, 119.402274ms to
/// 119.402ms. Halves go away from zero.
#[must_use]
pub fn round_as_vegeta(ns: i64) -> i64 {
    const UNITS_NS: [i64; 6] =
        [3_600_000_000_000, 60_000_000_000, 1_000_000_000, 1_000_000, 1_000, 1];
    let Some(finer) = UNITS_NS.windows(2).find(|pair| ns >= pair[0]).map(|pair| pair[1]) else {
        return ns;
    };
    let rest = ns % finer;
    if rest * 2 < finer { ns - rest } else { (ns - rest).saturating_add(finer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: the forms of Go's own documentation and of the published reports are printed and read exactly.
    #[test]
    fn known_forms() {
        for (ns, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (366_757, "366.757µs"),
            (2_200_000, "2.2ms"),
            (119_402_274, "119.402274ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (480_000_000_001, "8m0.000000001s"),
            (600_069_317_540, "10m0.06931754s"),
            (3_600_000_000_000, "1h0m0s"),
            (-1_500_000, "-1.5ms"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            assert_eq!(show_go(ns), text);
            assert_eq!(parse_go(text), Some(ns), "{text}");
        }
    }

    /// Claim: any duration survives printing and reading, at every magnitude.
    #[test]
    fn round_trip() {
        let mut ns: i64 = 1;
        for step in 0_i64..20_000 {
            ns = ns.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let sample = (ns >> (step % 60)).saturating_abs();
            assert_eq!(parse_go(&show_go(sample)), Some(sample));
        }
    }

    /// Claim: what is not a duration is refused, without a panic.
    #[test]
    fn refused() {
        for text in [
            "",
            "-",
            "5",
            "s",
            ".s",
            "1.2.3s",
            "1x",
            "1s 2",
            "9999999999999h",
            "10m0.07",
            "--1s",
            "é",
        ] {
            assert_eq!(parse_go(text), None, "{text}");
        }
    }

    /// Claim: rounding goes to the next finer unit.
    #[test]
    fn rounding() {
        for (text, rounded) in [
            ("10m0.06931754s", "10m0s"),
            ("14.995612s", "14.996s"),
            ("119.402274ms", "119.402ms"),
            ("428.25µs", "428.25µs"),
            ("1h0m31s", "1h1m0s"),
            ("17ns", "17ns"),
            ("0s", "0s"),
        ] {
            assert_eq!(show_go(round_as_vegeta(parse_go(text).unwrap())), rounded, "{text}");
        }
    }
}
