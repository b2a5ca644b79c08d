//! How the wall clock stands to a clock's line at one moment: for stamps that the kernel makes by the wall clock.

use crate::{Clock, Instant, WallTime, monotonic_ns};

/// What the wall clock said at a line's origin, or would have said, as far as can be told from one look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallRelation {
    at_origin: WallTime,
    error_ns: i64,
}

impl WallRelation {
    /// The point of the line at which the wall clock said `wall`, within [`WallRelation::error_ns`].
    #[must_use]
    pub const fn instant_of(self, wall: WallTime) -> Instant {
        Instant::from_ns(wall.unix_ns() - self.at_origin.unix_ns())
    }

    /// The most by which it may be off, in nanoseconds, while the wall clock is not set.
    #[must_use]
    pub const fn error_ns(self) -> i64 {
        self.error_ns
    }

    /// How far the wall clock was moved against the line since an earlier look, in nanoseconds, beyond what the two may
    /// be off; 0: as far as they tell, not at all. Slewing moves both clocks alike.
    #[must_use]
    pub fn moved_since(self, earlier: Self) -> i64 {
        let apart = (self.at_origin.unix_ns() - earlier.at_origin.unix_ns()).abs();
        (apart - self.error_ns - earlier.error_ns).max(0)
    }
}

impl Clock {
    /// Looks how the wall clock stands to this line: one reading of it between two of the line, which are the error. In
    /// virtual time there is none.
    #[must_use]
    pub fn wall_relation(&self) -> WallRelation {
        if self.is_virtual() {
            return WallRelation { at_origin: self.origin_wall, error_ns: 0 };
        }
        let before = monotonic_ns() - self.origin_ns;
        let wall = WallTime::now().unix_ns();
        let after = monotonic_ns() - self.origin_ns;
        let half = (after - before + 1) / 2;
        WallRelation { at_origin: WallTime::from_unix_ns(wall - before - half), error_ns: half }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim: a wall time that was read lies on the line between the readings around it, within the stated error.
    #[test]
    fn wall_times_lie_on_the_line() {
        let clock = Clock::start();
        let relation = clock.wall_relation();
        let before = clock.now();
        let wall = WallTime::now();
        let after = clock.now();
        if clock.wall_relation().moved_since(relation) > 0 {
            return eprintln!("the wall clock was set just now");
        }
        let at = relation.instant_of(wall).as_ns();
        let error = relation.error_ns();
        assert!((before.as_ns() - error..=after.as_ns() + error).contains(&at));
    }

    /// Claim: in virtual time the two go together exactly, and a wall clock that was set is noticed beyond the errors.
    #[test]
    fn what_was_moved() {
        let (clock, _hand) = Clock::by_hand(Instant::ZERO, WallTime::from_unix_ns(1_000));
        let exact = clock.wall_relation();
        assert_eq!(
            (exact.instant_of(WallTime::from_unix_ns(1_005)).as_ns(), exact.error_ns()),
            (5, 0)
        );
        let of = |at, error_ns| WallRelation { at_origin: WallTime::from_unix_ns(at), error_ns };
        assert_eq!(of(1_050, 30).moved_since(of(1_000, 20)), 0);
        assert_eq!(of(900, 30).moved_since(of(1_000, 20)), 50);
    }
}
