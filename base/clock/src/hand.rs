//! Virtual time: a line that stands still until its one [`Hand`] moves it on. It never reads a clock of the kernel's, so
//! that what is done by it is the same each time, on every machine.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use crate::Instant;

/// Where virtual time stands. A [`crate::Clock`] is copied wherever it is needed and lives as long as the process, so
/// that its time does, too: eight bytes for each clock of a test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Virtual(&'static AtomicI64);

impl Virtual {
    pub(crate) fn now(self) -> Instant {
        Instant(self.0.load(SeqCst))
    }

    /// Moves time to `to` unless it is there already.
    pub(crate) fn move_on(self, to: Instant) {
        self.0.fetch_max(to.0, SeqCst);
    }
}

/// Moves the time of a clock made by [`crate::Clock::by_hand`]. There is one for each.
#[derive(Debug)]
pub struct Hand(Virtual);

impl Hand {
    /// Where time stands.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.0.now()
    }

    /// Moves time on to `to`.
    ///
    /// # Panics
    /// If time would go back.
    pub fn move_to(&mut self, to: Instant) {
        let now = self.now();
        assert!(to >= now, "time does not go back: from {now:?} to {to:?}");
        self.0.move_on(to);
    }
}

/// Time that stands at `at`, and its hand.
pub(crate) fn virtual_time(at: Instant) -> (Virtual, Hand) {
    let time = Virtual(Box::leak(Box::new(AtomicI64::new(at.0))));
    (time, Hand(time))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{Clock, Instant, WallTime};

    /// Claim: virtual time stands still until its hand or a sleeper moves it, for every copy of the clock, and the wall
    /// clock goes with it.
    #[test]
    fn time_by_hand() {
        let (clock, mut hand) = Clock::by_hand(Instant::from_ns(-5), WallTime::from_unix_ns(1_000));
        let copy = clock;
        assert!(clock.is_virtual() && !Clock::start().is_virtual());
        assert_eq!((clock.now(), copy.now()), (Instant::from_ns(-5), Instant::from_ns(-5)));
        hand.move_to(Instant::from_ns(70));
        assert_eq!((copy.now(), hand.now()), (Instant::from_ns(70), Instant::from_ns(70)));
        copy.sleep_until(Instant::ZERO.plus(Duration::from_secs(3_600)));
        assert_eq!(clock.now().as_ns(), 3_600_000_000_000);
        copy.sleep_until(Instant::ZERO);
        assert_eq!(clock.now().as_ns(), 3_600_000_000_000, "time does not go back");
        assert_eq!(clock.wall_drift_ns(), 0);
        assert_eq!(clock.wall_now_at(Instant::from_ns(5)), WallTime::from_unix_ns(1_005));
    }

    /// Claim: a hand that would turn time back is a mistake that is found.
    #[test]
    #[should_panic(expected = "time does not go back")]
    fn no_way_back() {
        let (_, mut hand) = Clock::by_hand(Instant::from_ns(5), WallTime::from_unix_ns(0));
        hand.move_to(Instant::from_ns(4));
    }
}
