//! A user's cookies by RFC 6265: what `Set-Cookie` stores, and what goes into `Cookie`. A jar is a run of bytes, so that it
//! travels with its user. It asks no clock: the caller says when it is. Public suffixes are not known here: a cookie for a
//! domain without a dot is refused unless the host itself is that domain.

/// Cookies of one user, and bytes of one cookie, that are kept (RFC 6265 §6.1 asks for at least as much).
const COOKIES_MAX: usize = 50;
const COOKIE_BYTES_MAX: usize = 4096;
/// A cookie of the session.
const NEVER: i64 = i64::MAX;

const SECURE: u8 = 1;
const HOST_ONLY: u8 = 2;
/// Flags, expiry and four lengths.
const HEAD_BYTES: usize = 1 + 8 + 4 * 2;

/// The cookies, each after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jar(Vec<u8>);

/// Where a request goes, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The host, in lower case.
    pub(crate) host: &'a str,
    pub(crate) is_tls: bool,
    /// Path and query.
    pub(crate) target: &'a [u8],
    /// Nanoseconds of Unix time.
    pub(crate) now_ns: i64,
}

impl Place<'_> {
    fn path(&self) -> &[u8] {
        let end = self.target.iter().position(|byte| matches!(byte, b'?' | b'#'));
        &self.target[..end.unwrap_or(self.target.len())]
    }
}

/// One cookie.
#[derive(Clone, Copy, Debug)]
struct Cookie<'a> {
    flags: u8,
    expires_ns: i64,
    name: &'a [u8],
    value: &'a [u8],
    domain: &'a [u8],
    path: &'a [u8],
}

impl<'a> Cookie<'a> {
    /// The first of these bytes, and how many it takes.
    fn first(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let length = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let (name, rest) = rest.split_at_checked(length(9))?;
        let (value, rest) = rest.split_at_checked(length(11))?;
        let (domain, rest) = rest.split_at_checked(length(13))?;
        let (path, rest) = rest.split_at_checked(length(15))?;
        let expires_ns = i64::from_le_bytes(head[1..9].try_into().ok()?);
        let cookie = Self { flags: head[0], expires_ns, name, value, domain, path };
        Some((cookie, bytes.len() - rest.len()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.flags);
        out.extend_from_slice(&self.expires_ns.to_le_bytes());
        let parts = [self.name, self.value, self.domain, self.path];
        for part in parts {
            let length = u16::try_from(part.len()).expect("bounded by COOKIE_BYTES_MAX");
            out.extend_from_slice(&length.to_le_bytes());
        }
        parts.iter().for_each(|part| out.extend_from_slice(part));
    }

    /// Whether it is sent to this place (§5.4).
    fn is_for(&self, place: &Place<'_>) -> bool {
        let is_host = match self.flags & HOST_ONLY {
            0 => domain_matches(place.host.as_bytes(), self.domain),
            _ => place.host.as_bytes() == self.domain,
        };
        is_host
            && path_matches(place.path(), self.path)
            && (self.flags & SECURE == 0 || place.is_tls)
            && self.expires_ns > place.now_ns
    }
}

impl Jar {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes up what [`Jar::bytes`] gave.
    pub(crate) fn set_bytes(&mut self, bytes: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(bytes);
    }

    /// The value of the newest cookie of this name, wherever it is sent.
    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.cookies().filter(|cookie| cookie.name == name).last().map(|cookie| cookie.value)
    }

    /// Appends `Cookie: …` for a request to this place, if there is any for it.
    pub(crate) fn write_header(&self, place: &Place<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"Cookie: ");
        if self.write_value(place, out) {
            out.extend_from_slice(b"\r\n");
        } else {
            out.truncate(start);
        }
    }

    /// Appends the cookies for a request to this place: longer paths first, then older ones (§5.4). Says whether there is any.
    pub(crate) fn write_value(&self, place: &Place<'_>, out: &mut Vec<u8>) -> bool {
        let mut length = usize::MAX;
        let mut is_first = true;
        // The next longest path each time: there are few, and nothing is allocated.
        loop {
            let paths = self.cookies().filter(|it| it.is_for(place)).map(|it| it.path.len());
            let Some(longest) = paths.filter(|it| *it < length).max() else { break };
            length = longest;
            for cookie in self.cookies().filter(|it| it.is_for(place) && it.path.len() == length) {
                if !is_first {
                    out.extend_from_slice(b"; ");
                }
                is_first = false;
                out.extend_from_slice(cookie.name);
                out.push(b'=');
                out.extend_from_slice(cookie.value);
            }
        }
        !is_first
    }

    /// Takes a `Set-Cookie` of an answer from this place (§5.2, §5.3). What cannot be a cookie of that place is ignored, as a
    /// browser does.
    pub(crate) fn set(&mut self, place: &Place<'_>, header: &[u8]) {
        if header.len() > COOKIE_BYTES_MAX {
            return;
        }
        let mut parts = header.split(|byte| *byte == b';');
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = pair.iter().position(|byte| *byte == b'=') else { return };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        if name.is_empty() {
            return;
        }
        let host = place.host.as_bytes();
        let mut cookie = Cookie {
            flags: HOST_ONLY,
            expires_ns: NEVER,
            name,
            value,
            domain: host,
            path: default_path(place.path()),
        };
        let (mut max_age, mut domain_buffer) = (None, [0; 256]);
        for part in parts {
            let equals = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
            let value = part.get(equals + 1..).unwrap_or_default().trim_ascii();
            match part[..equals].trim_ascii() {
                key if key.eq_ignore_ascii_case(b"expires") => {
                    cookie.expires_ns = date_ns(value).unwrap_or(cookie.expires_ns);
                }
                key if key.eq_ignore_ascii_case(b"max-age") => {
                    max_age = max_age_ns(value, place.now_ns).or(max_age);
                }
                key if key.eq_ignore_ascii_case(b"domain") && !value.is_empty() => {
                    let domain = value.strip_prefix(b".").unwrap_or(value);
                    let Some(lower) = domain_buffer.get_mut(..domain.len()) else { return };
                    lower.copy_from_slice(domain);
                    lower.make_ascii_lowercase();
                }
                key if key.eq_ignore_ascii_case(b"path") => {
                    let is_path = value.starts_with(b"/");
                    cookie.path = if is_path { value } else { default_path(place.path()) };
                }
                key if key.eq_ignore_ascii_case(b"secure") => cookie.flags |= SECURE,
                _ => {}
            }
        }
        let length = domain_buffer.iter().position(|byte| *byte == 0).unwrap_or(0);
        let domain = &domain_buffer[..length];
        let is_own = domain.is_empty() || domain == host;
        if !is_own && (!domain.contains(&b'.') || !domain_matches(host, domain)) {
            return;
        }
        if !domain.is_empty() {
            cookie.domain = domain;
            cookie.flags &= !HOST_ONLY;
        }
        cookie.expires_ns = max_age.unwrap_or(cookie.expires_ns);
        self.store(&cookie, place.now_ns);
    }

    /// In the place of the one of the same name, domain and path; one that has expired takes it away.
    fn store(&mut self, cookie: &Cookie<'_>, now_ns: i64) {
        let is_same = |other: &Cookie<'_>| {
            (other.name, other.domain, other.path) == (cookie.name, cookie.domain, cookie.path)
        };
        let found = self.places().find(|(_, other, _)| is_same(other));
        let at = found.map(|(at, _, length)| (at, length));
        if let Some((at, length)) = at {
            self.0.drain(at..at + length);
        }
        if cookie.expires_ns <= now_ns {
            return;
        }
        if self.cookies().count() >= COOKIES_MAX {
            let oldest = self.places().next().map_or(0, |(_, _, length)| length);
            self.0.drain(..oldest);
        }
        let end = self.0.len();
        cookie.write(&mut self.0);
        // One that is renewed keeps its place: it is as old as it was (§5.3, step 11.3).
        if let Some((at, _)) = at.filter(|(at, _)| *at < end) {
            let written = self.0.len() - end;
            self.0[at..].rotate_right(written);
        }
    }

    fn cookies(&self) -> impl Iterator<Item = Cookie<'_>> {
        self.places().map(|(_, cookie, _)| cookie)
    }

    fn places(&self) -> impl Iterator<Item = (usize, Cookie<'_>, usize)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (cookie, length) = Cookie::first(&self.0[at..])?;
            at += length;
            Some((at - length, cookie, length))
        })
    }
}

/// §5.1.3; an address matches itself alone.
fn domain_matches(host: &[u8], domain: &[u8]) -> bool {
    if host == domain {
        return true;
    }
    let is_address = host.contains(&b':') || host.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    !is_address && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with(b"."))
}

/// §5.1.4.
fn path_matches(path: &[u8], cookie_path: &[u8]) -> bool {
    let Some(rest) = path.strip_prefix(cookie_path) else { return false };
    rest.is_empty() || cookie_path.ends_with(b"/") || rest.starts_with(b"/")
}

/// §5.1.4: up to the last slash, which is left out unless it is all.
fn default_path(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(1..) if path.starts_with(b"/") => {
            &path[..path.iter().rposition(|byte| *byte == b'/').unwrap_or(1)]
        }
        _ => b"/",
    }
}

/// §5.2.2: zero and less: at once.
fn max_age_ns(value: &[u8], now_ns: i64) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if text.starts_with('-') {
        return Some(i64::MIN);
    }
    let seconds: i64 = digits.parse().unwrap_or(i64::MAX);
    match seconds {
        0 => Some(i64::MIN),
        seconds => Some(now_ns.saturating_add(seconds.saturating_mul(1_000_000_000))),
    }
}

/// §5.1.1: a date in any of the forms that servers write.
fn date_ns(value: &[u8]) -> Option<i64> {
    let is_delimiter =
        |byte: &u8| matches!(byte, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e);
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in value.split(is_delimiter).filter(|token| !token.is_empty()) {
        if time.is_none() && token.contains(&b':') {
            time = time_of(token);
        } else if day.is_none() && matches!(digits(token), 1 | 2) {
            day = number(token, 2);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() && matches!(digits(token), 2..=4) {
            year = number(token, 4);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let (day, month, seconds) = (day?, month?, time?);
    if !(1..=31).contains(&day) || year < 1601 {
        return None;
    }
    let nanoseconds =
        i128::from(days_since_1970(year, month, day) * 86_400 + seconds) * 1_000_000_000;
    Some(i64::try_from(nanoseconds).unwrap_or(NEVER - 1))
}

fn digits(token: &[u8]) -> usize {
    token.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn number(token: &[u8], digits_max: usize) -> Option<i64> {
    let digits = digits(token).min(digits_max);
    std::str::from_utf8(&token[..digits]).ok()?.parse().ok()
}

fn time_of(token: &[u8]) -> Option<i64> {
    let mut parts = token.split(|byte| *byte == b':').map(|part| number(part, 2));
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let is_time = hours < 24 && minutes < 60 && seconds < 60;
    is_time.then_some(hours * 3600 + minutes * 60 + seconds)
}

fn month_of(token: &[u8]) -> Option<i64> {
    const MONTHS: &[u8] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let name = token.get(..3)?;
    let at = MONTHS.chunks_exact(3).position(|month| month.eq_ignore_ascii_case(name))?;
    i64::try_from(at + 1).ok()
}

/// Days of the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms").
const fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_764_000_000_000_000_000;

    fn place<'a>(host: &'a str, target: &'a str) -> Place<'a> {
        Place { host, is_tls: false, target: target.as_bytes(), now_ns: NOW }
    }

    fn sent(jar: &Jar, place: &Place<'_>) -> String {
        let mut out = Vec::new();
        jar.write_header(place, &mut out);
        String::from_utf8(out).unwrap().trim_end().to_owned()
    }

    /// Claim: of cookies set by one host each place gets those that are for it, longer paths first, then older ones; and the
    /// same again from the jar's bytes.
    #[test]
    fn who_gets_which() {
        let mut jar = Jar::default();
        let from = place("shop.example.org", "/a/login?x=/y");
        for header in [
            "own=1",
            "all=2; Path=/",
            "domain=3; Domain=.Example.ORG; Path=/",
            "deep=4; Path=/a/b",
            "secure=5; Secure; Path=/",
            "foreign=6; Domain=example.com",
            "suffix=7; Domain=org",
            "nameless",
            "=8",
            "twice=old; Path=/",
            "twice=new; Path=/",
        ] {
            jar.set(&from, header.as_bytes());
        }
        let mut copy = Jar::default();
        copy.set_bytes(jar.bytes());
        for (host, target, expected) in [
            ("shop.example.org", "/a/b/c", "Cookie: deep=4; own=1; all=2; domain=3; twice=new"),
            ("shop.example.org", "/a", "Cookie: own=1; all=2; domain=3; twice=new"),
            ("shop.example.org", "/ab", "Cookie: all=2; domain=3; twice=new"),
            ("pay.example.org", "/a/b", "Cookie: domain=3"),
            ("xexample.org", "/", ""),
        ] {
            assert_eq!(sent(&copy, &place(host, target)), expected, "{host}{target}");
        }
        let secure = Place { is_tls: true, ..place("shop.example.org", "/") };
        assert_eq!(sent(&jar, &secure), "Cookie: all=2; domain=3; secure=5; twice=new");
        assert_eq!(jar.value(b"twice"), Some(&b"new"[..]));
        assert_eq!(jar.value(b"gone"), None);
    }

    /// Claim: a cookie goes when its time has come, by Max-Age before Expires; what was set again in the past is taken away.
    #[test]
    fn times() {
        let mut jar = Jar::default();
        let here = place("h", "/");
        jar.set(&here, b"a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT");
        jar.set(&here, b"b=2; expires=Sat, 29-Nov-2036 12:00:00 GMT");
        jar.set(&here, b"c=3; max-age=x");
        assert_eq!(sent(&jar, &here), "Cookie: a=1; b=2; c=3");
        let later = Place { now_ns: NOW + 10_000_000_000, ..here };
        assert_eq!(sent(&jar, &later), "Cookie: b=2; c=3");
        jar.set(&here, b"b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT");
        jar.set(&here, b"c=; Max-Age=0");
        jar.set(&here, b"a=; Max-Age=-1");
        assert_eq!((sent(&jar, &here).as_str(), jar.bytes().len()), ("", 0));
    }

    /// Claim: the forms of dates that servers write come out as the same second, and what is no date is none.
    #[test]
    fn dates() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(date_ns(text.as_bytes()), Some(784_111_777_000_000_000), "{text}");
        }
        assert_eq!(date_ns(b"Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(date_ns(b"Fri, 31 Dec 9999 23:59:59 GMT"), Some(NEVER - 1));
        for text in ["", "soon", "06 Nov 1994", "32 Jan 2000 00:00:00", "1 Jan 2000 24:00:00"] {
            assert_eq!(date_ns(text.as_bytes()), None, "{text}");
        }
    }

    /// Claim: a jar is bounded in cookies and in bytes of each, and the oldest go first.
    #[test]
    fn bounds() {
        let mut jar = Jar::default();
        let here = place("h", "/");
        for n in 0..COOKIES_MAX + 3 {
            jar.set(&here, format!("c{n}=x").as_bytes());
        }
        jar.set(&here, format!("long={}", "x".repeat(COOKIE_BYTES_MAX)).as_bytes());
        assert_eq!(jar.cookies().count(), COOKIES_MAX);
        assert!(jar.value(b"c2").is_none() && jar.value(b"c3").is_some());
        assert!(jar.value(b"long").is_none());
    }
}
