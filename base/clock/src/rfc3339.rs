//! Points in time read back from RFC 3339, with up to nine decimals. It reads no clock.

const SECONDS_PER_DAY: i64 = 86_400;

/// Nanoseconds after the Unix epoch; `None` if it is no such time, or not within 1678 to 2262.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 || !text.is_ascii() {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let marks = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if marks.iter().any(|(at, mark)| bytes[*at] != *mark) || !b"Tt ".contains(&bytes[10]) {
        return None;
    }
    let (year, month, of_month) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range =
        (1..=12).contains(&month) && (1..=31).contains(&of_month) && hour < 24 && minute < 60;
    if !in_range || second > 60 {
        return None;
    }
    let (ns, rest) = fraction(&text[19..])?;
    let offset = offset_s(rest)?;
    let seconds =
        days(year, month, of_month) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// `.123` → 123,000,000 and what follows.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let digits = rest.get(..count.min(9)).filter(|digits| !digits.is_empty())?;
    let scale = 10_i64.pow(u32::try_from(9 - digits.len()).expect("at most nine digits"));
    Some((digits.parse::<i64>().ok()? * scale, &rest[count..]))
}

/// `Z`, `+02:00`.
fn offset_s(text: &str) -> Option<i64> {
    if text == "Z" || text == "z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then(|| sign * (i64::from(hours) * 3600 + i64::from(minutes) * 60))
}

/// Days after 1970-01-01 (H. Hinnant, chrono-Compatible Low-Level Date Algorithms).
fn days(year: i64, month: i64, of_month: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + of_month - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use crate::WallTime;

    /// Claim: known times are read with their offsets, and what is shown is read back to the nanosecond.
    #[test]
    fn times() {
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2020-07-27T15:05:09.5+02:00", 1_595_855_109_500_000_000),
            ("2000-02-29T23:59:59.000000001Z", 951_868_799_000_000_001),
        ] {
            assert_eq!(WallTime::parse_rfc3339(text).map(WallTime::unix_ns), Some(ns), "{text}");
        }
        for ns in [0, -1, 1, i64::MAX, i64::MIN + 1_000_000_000, 1_795_243_832_123_456_789] {
            assert_eq!(
                WallTime::parse_rfc3339(&WallTime::from_unix_ns(ns).rfc3339_ns()),
                Some(WallTime::from_unix_ns(ns)),
                "{ns}"
            );
        }
        for text in [
            "",
            "2020-07-27",
            "2020-13-01T00:00:00Z",
            "2020-01-01T00:00:00",
            "9999-01-01T00:00:00Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00+1",
        ] {
            assert_eq!(WallTime::parse_rfc3339(text), None, "{text}");
        }
    }
}
