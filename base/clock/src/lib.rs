//! The only code in the workspace that reads a clock.
//!
//! Three things are kept apart by type, because mixing them is how latencies become lies:
//! [`Instant`] is a point on the line of one process, nanoseconds after its clock's origin, never stepped;
//! [`WallTime`] is a point in the calendar, for file names and block headers, and may jump;
//! [`CpuTime`] is processor time used, which is neither.
//!
//! A clock reads the kernel's time, or ([`Clock::by_hand`]) virtual time, which stands still until its [`Hand`] moves it.
//!
//! It must never sleep on behalf of a stage's logic except through [`Clock::sleep_until`], and it never
//! converts a `WallTime` of one host into an `Instant` of another.

mod hand;
mod relation;
mod rfc3339;

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub use hand::Hand;
use hand::Virtual;
pub use relation::WallRelation;

/// A point on one process's monotonic line, in nanoseconds after the origin of its [`Clock`].
///
/// Signed, so that "before the origin" (a due time that precedes the first reading) is representable.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(i64);

impl Instant {
    /// The origin of the line.
    pub const ZERO: Self = Self(0);
    /// Later than every reading.
    pub const FAR_FUTURE: Self = Self(i64::MAX);

    /// The point `ns` nanoseconds after the origin.
    #[must_use]
    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }

    /// Nanoseconds after the origin.
    #[must_use]
    pub const fn as_ns(self) -> i64 {
        self.0
    }

    /// Signed distance in nanoseconds: `self − earlier`. Negative values are evidence, so nothing clamps them.
    #[must_use]
    pub const fn ns_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The point `later` after this one; saturates at [`Instant::FAR_FUTURE`].
    #[must_use]
    pub fn plus(self, later: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(later.as_nanos()).unwrap_or(i64::MAX)))
    }

    /// The point `earlier` before this one.
    #[must_use]
    pub fn minus(self, earlier: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(earlier.as_nanos()).unwrap_or(i64::MAX)))
    }
}

/// A point in the calendar: nanoseconds after the Unix epoch, by this host's wall clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WallTime(i64);

impl WallTime {
    /// The wall clock now.
    #[must_use]
    pub fn now() -> Self {
        let t = clock_gettime(ClockId::Realtime);
        Self(t.tv_sec * 1_000_000_000 + t.tv_nsec)
    }

    /// The point `ns` nanoseconds after the Unix epoch.
    #[must_use]
    pub const fn from_unix_ns(ns: i64) -> Self {
        Self(ns)
    }

    /// Nanoseconds after the Unix epoch.
    #[must_use]
    pub const fn unix_ns(self) -> i64 {
        self.0
    }

    /// RFC 3339 in UTC with seconds, for people: `2026-11-21T06:50:32Z`.
    #[must_use]
    pub fn rfc3339(self) -> String {
        let (y, mo, d, h, mi, s) = self.civil();
        format!("{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}Z")
    }

    /// The same with the decimals that it has, nine at most, without trailing zeros: as Go and vegeta print it.
    #[must_use]
    pub fn rfc3339_ns(self) -> String {
        let mut text = self.rfc3339();
        let ns = self.0.rem_euclid(1_000_000_000);
        if ns > 0 {
            text.pop();
            text.push_str(format!(".{ns:09}").trim_end_matches('0'));
            text.push('Z');
        }
        text
    }

    /// Reads RFC 3339 with any offset; `None` if it is no such time, or not within 1678 to 2262.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        rfc3339::parse(text).map(Self)
    }

    /// A form that can stand in a file name: `20261121T065032Z`.
    #[must_use]
    pub fn compact(self) -> String {
        let (y, mo, d, h, mi, s) = self.civil();
        format!("{y:04}{mo:02}{d:02}T{h:02}{mi:02}{s:02}Z")
    }

    /// Year, month, day, hour, minute, second in UTC (Hinnant's `civil_from_days`).
    fn civil(self) -> (i64, i64, i64, i64, i64, i64) {
        let seconds = self.0.div_euclid(1_000_000_000);
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let day_of_era = z.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day, rest / 3_600, rest / 60 % 60, rest % 60)
    }
}

/// Processor time used, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuTime(u64);

impl CpuTime {
    /// User and system time of the calling thread so far.
    #[must_use]
    pub fn of_this_thread() -> Self {
        Self::read(ClockId::ThreadCPUTime)
    }

    /// User and system time of this process so far, ended threads included.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::read(ClockId::ProcessCPUTime)
    }

    /// Nanoseconds used.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Time used since an earlier reading of the same thing.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    fn read(id: ClockId) -> Self {
        let t = clock_gettime(id);
        Self(u64::try_from(t.tv_sec * 1_000_000_000 + t.tv_nsec).expect("CPU time is not negative"))
    }
}

/// A monotonic clock with an origin. Copies share the origin, so their readings compare.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ns: i64,
    origin_wall: WallTime,
    /// Where its time stands, if it is not the kernel's.
    by_hand: Option<Virtual>,
}

impl Clock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin_ns: monotonic_ns(), origin_wall: WallTime::now(), by_hand: None }
    }

    /// A clock of virtual time, for tests: it stands at `at` until its hand moves it, and its wall clock, which stood
    /// at `origin_wall` at the origin, goes with it.
    #[must_use]
    pub fn by_hand(at: Instant, origin_wall: WallTime) -> (Self, Hand) {
        let (time, hand) = hand::virtual_time(at);
        (Self { origin_ns: 0, origin_wall, by_hand: Some(time) }, hand)
    }

    /// Whether its time is virtual.
    #[must_use]
    pub const fn is_virtual(&self) -> bool {
        self.by_hand.is_some()
    }

    /// A clock whose origin is the given reading of `CLOCK_MONOTONIC`; two processes of one host that agree
    /// on it have comparable readings.
    #[must_use]
    pub fn with_origin(monotonic_ns: i64) -> Self {
        let now = self::monotonic_ns();
        let wall = WallTime(WallTime::now().0 - (now - monotonic_ns));
        Self { origin_ns: monotonic_ns, origin_wall: wall, by_hand: None }
    }

    /// The reading of `CLOCK_MONOTONIC` at the origin; 0 of virtual time.
    #[must_use]
    pub const fn origin_monotonic_ns(&self) -> i64 {
        self.origin_ns
    }

    /// Now, on this clock's line.
    #[must_use]
    pub fn now(&self) -> Instant {
        match &self.by_hand {
            None => Instant(monotonic_ns() - self.origin_ns),
            Some(time) => time.now(),
        }
    }

    /// The wall time that was read when the clock started.
    #[must_use]
    pub const fn origin_wall(&self) -> WallTime {
        self.origin_wall
    }

    /// The wall time of a point of this line, as the wall clock stood when the line began: later steps of the wall
    /// clock are not followed.
    #[must_use]
    pub const fn wall_at(&self, at: Instant) -> WallTime {
        WallTime(self.origin_wall.0 + at.as_ns())
    }

    /// The wall time of a point of this line, as the wall clock stands now: steps since the origin are followed.
    #[must_use]
    pub fn wall_now_at(&self, at: Instant) -> WallTime {
        WallTime(self.wall_at(at).0 + self.wall_drift_ns())
    }

    /// How far the wall clock has moved against this line since the origin, in nanoseconds. A jump is a
    /// clock step; the clock audit reports it. Virtual time has none.
    #[must_use]
    pub fn wall_drift_ns(&self) -> i64 {
        if self.is_virtual() {
            return 0;
        }
        let line = monotonic_ns() - self.origin_ns;
        WallTime::now().0 - self.origin_wall.0 - line
    }

    /// Blocks the thread until `due`; returns at once if it has passed. Virtual time is moved there: who sleeps waits for
    /// nothing else.
    pub fn sleep_until(&self, due: Instant) {
        if let Some(time) = &self.by_hand {
            return time.move_on(due);
        }
        let wait = due.saturating_since(self.now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
    }
}

fn monotonic_ns() -> i64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: calendar forms agree with `date -u` for days on both sides of leap days and the epoch.
    #[test]
    fn wall_time_prints_the_calendar() {
        for (ns, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000_000_000, "2000-02-29T00:00:00Z"),
            (1_795_243_832_000_000_000, "2026-11-21T06:50:32Z"),
            (-1_000_000_000, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(WallTime(ns).rfc3339(), expected);
        }
        assert_eq!(WallTime(1_795_243_832_000_000_000).compact(), "20261121T065032Z");
    }

    /// Claim: readings never go back, and a distance keeps its sign.
    #[test]
    fn instants_order_and_subtract() {
        let clock = Clock::start();
        let (a, b) = (clock.now(), clock.now());
        assert!(b >= a);
        assert_eq!(Instant(3).ns_since(Instant(5)), -2);
        assert_eq!(Instant(3).saturating_since(Instant(5)), Duration::ZERO);
        assert_eq!(Instant::FAR_FUTURE.plus(Duration::from_secs(1)), Instant::FAR_FUTURE);
    }
}
