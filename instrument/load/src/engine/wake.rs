//! How late a wait for a due time ends on this host, followed while the load goes on, so that it can be asked to end so
//! much earlier. What is left then is spun: a few microseconds in the middle, where spinning through all that a wake-up may
//! take would cost half a processor at 10,000 transactions a second.
//!
//! It reads no clock and decides nothing of a transaction.

use model::Stamp;

/// Where a wake-up takes longer than this, somebody else has the processor: spinning would take it from them, and sends
/// would be no sooner.
const LEAD_NS_MAX: i64 = 50_000;
/// What a wake-up takes until the first ones have been seen: an idle virtual machine's.
const LEAD_NS_FIRST: i64 = 20_000;
const LEAD_NS_MIN: i64 = 1_000;
/// A wake-up moves the estimate by this part of itself: it has settled after a few hundred.
const STEP_PART: i64 = 32;
/// Of so many wake-ups one is to be later than the estimate.
const LATE_ONE_IN: i64 = 4;
/// A response time counts one part in so many of what is known of them.
const TYPICAL_PART: i64 = 64;
/// Where response times are more than this many times a wake-up, its lateness is nothing beside them.
const FAR_ABOVE: i64 = 256;

#[derive(Debug)]
pub(super) struct WakeUps {
    /// Three quarters of the wake-ups are later by no more than this.
    lead_ns: i64,
    /// When the wait that is under way is to end, if it is one for a due time.
    until: Option<Stamp>,
    /// A response time in the middle; 0 before the first.
    typical_ns: i64,
}

impl Default for WakeUps {
    fn default() -> Self {
        Self { lead_ns: LEAD_NS_FIRST, until: None, typical_ns: 0 }
    }
}

impl WakeUps {
    /// How long before a due time a wait for it is to end.
    pub(super) const fn lead_ns(&self) -> i64 {
        let is_busy = self.lead_ns > LEAD_NS_MAX;
        if is_busy || self.typical_ns > FAR_ABOVE * self.lead_ns { 0 } else { self.lead_ns }
    }

    /// A wait begins that ends at `until` if nothing happens before; `None`: it is for nothing that is due.
    pub(super) const fn waits(&mut self, until: Option<Stamp>) {
        self.until = until;
    }

    /// A wait has ended, because something came or because its time was up.
    pub(super) fn woke(&mut self, now: Stamp, something_came: bool) {
        let Some(until) = self.until.take().filter(|_| !something_came) else { return };
        let step = (self.lead_ns / STEP_PART).max(LATE_ONE_IN);
        if now - until > self.lead_ns {
            self.lead_ns = (self.lead_ns + step).min(2 * LEAD_NS_MAX);
        } else {
            self.lead_ns = (self.lead_ns - step / (LATE_ONE_IN - 1)).max(LEAD_NS_MIN);
        }
    }

    /// A transaction was answered.
    pub(super) const fn answered(&mut self, response_ns: i64) {
        let before = if self.typical_ns == 0 { response_ns } else { self.typical_ns };
        self.typical_ns = before + (response_ns - before) / TYPICAL_PART;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate after wake-ups that are late by these, over and over.
    fn after(late_ns: &[i64]) -> WakeUps {
        let mut it = WakeUps::default();
        for late in late_ns.iter().cycle().take(4_000) {
            it.waits(Some(1_000_000));
            it.woke(1_000_000 + late, false);
        }
        it
    }

    /// Claim: the estimate is what three quarters of the wake-ups keep, whatever the others take.
    #[test]
    fn three_quarters_are_on_time() {
        let ten = after(&[8_000, 9_000, 10_000, 400_000]).lead_ns();
        assert!((9_000..=11_500).contains(&ten), "{ten}");
        let thirty = after(&[20_000, 25_000, 30_000, 35_000]).lead_ns();
        assert!((28_000..=36_000).contains(&thirty), "{thirty}");
    }

    /// Claim: where a wake-up takes long because others have the processor nothing is spun, and again when it is idle.
    #[test]
    fn a_busy_host_is_left_alone() {
        let mut it = after(&[300_000]);
        assert_eq!(it.lead_ns(), 0);
        for _ in 0..1_000 {
            it.waits(Some(0));
            it.woke(5_000, false);
        }
        assert!((4_000..=6_000).contains(&it.lead_ns()), "{}", it.lead_ns());
    }

    /// Claim: where response times are far above a wake-up nothing is spun; what ended a wait early tells nothing.
    #[test]
    fn slow_answers_need_no_spinning() {
        let mut it = after(&[10_000]);
        (0..1_000).for_each(|_| it.answered(1_000_000));
        assert!(it.lead_ns() > 0);
        (0..1_000).for_each(|_| it.answered(20_000_000));
        assert_eq!(it.lead_ns(), 0);
        let mut early = after(&[10_000]);
        let before = early.lead_ns();
        (0..1_000).for_each(|_| {
            early.waits(Some(0));
            early.woke(40_000, true);
            early.woke(40_000, false);
        });
        assert_eq!(early.lead_ns(), before);
    }
}
