//! How late a wait for a due time ends on this host, followed while the load goes on, so that it can be asked to end so
//! much earlier. What is left then is spun: a few microseconds in the middle, where spinning through all that a wake-up may
//! take would cost half a processor at 10,000 transactions a second.
//!
//! It spins only where that is worth a processor: where a send would else be late by more than a part of a response time,
//! and no other thread waits for the processor. It reads no clock and decides nothing of a transaction.

use model::Stamp;

/// Where a wake-up takes longer than this, with the kernel's handing over of what has come meanwhile, somebody else has the
/// processor: spinning would take it from them, and sends would be no sooner.
const LEAD_NS_MAX: i64 = 80_000;
/// The assumed time of a wake-up until the first ones have been seen: an idle virtual machine's.
const LATE_NS_FIRST: i64 = 20_000;
const LATE_NS_MIN: i64 = 1_000;
/// An estimate moves by this part of itself with each sample: it has settled after a few hundred.
const STEP_PART: i64 = 32;
/// Lateness of no more than this part of a response time in the middle is not worth spinning for.
const LATE_PART_MAX: i64 = 20;
/// Whoever waited for this part of its time for a processor shares it with somebody, who waits while it spins: the audit of
/// the generator warns from there on, too. An idle host's wake-ups are some hundredths at 20,000 a second.
const WAITED_PART_MAX: i64 = 20;
/// So long after that nothing is spun: whoever else runs there, the system under test as a rule, is not gone in a moment.
const SHARED_NS: i64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct WakeUps {
    /// Half of the wake-ups are later by no more than this.
    late_ns: i64,
    /// When the wait that is under way is to end, if it is one for a due time.
    until: Option<Stamp>,
    /// Whether it is ended by nothing else.
    is_undisturbed: bool,
    /// Half of such waits leave no more than this to be read before the send.
    reading_ns: i64,
    /// Half of the response times are no longer than this; 0 before the first.
    typical_ns: i64,
    /// Until when the processor counts as shared.
    shared_until: Stamp,
    /// When it was last asked how long the thread had waited for a processor, and how long that was.
    waited: Option<(Stamp, i64)>,
}

impl Default for WakeUps {
    fn default() -> Self {
        Self {
            late_ns: LATE_NS_FIRST,
            until: None,
            is_undisturbed: false,
            reading_ns: 0,
            typical_ns: 0,
            shared_until: Stamp::MIN,
            waited: None,
        }
    }
}

impl WakeUps {
    /// How long before a due time a wait for it is to end.
    pub(super) const fn lead_ns(&self, now: Stamp) -> i64 {
        match lead_ns(self.late_ns, self.typical_ns, now < self.shared_until) {
            0 => 0,
            lead_ns => lead_ns + self.reading_ns,
        }
    }

    /// A wait begins that ends at `until`, if nothing happens before or if it `is_undisturbed` by what happens; `None`: it is
    /// for nothing that is due.
    pub(super) const fn waits(&mut self, until: Option<Stamp>, is_undisturbed: bool) {
        self.until = until;
        self.is_undisturbed = is_undisturbed;
        if until.is_some() && !is_undisturbed {
            self.has_read(0);
        }
    }

    /// Reading after an undisturbed wait took so long.
    pub(super) const fn has_read(&mut self, reading_ns: i64) {
        let found = towards(self.reading_ns, reading_ns);
        self.reading_ns = if found > LEAD_NS_MAX { LEAD_NS_MAX } else { found };
    }

    /// Whether what came was left alone until a due time.
    pub(super) const fn is_undisturbed(&self) -> bool {
        self.is_undisturbed
    }

    /// A wait has ended, because something came or because its time was up.
    pub(super) fn woke(&mut self, now: Stamp, something_came: bool) {
        let ends_wait = |until: &Stamp| !something_came || (self.is_undisturbed && now >= *until);
        let Some(until) = self.until.take().filter(ends_wait) else { return };
        self.late_ns = towards(self.late_ns, now - until).clamp(LATE_NS_MIN, 2 * LEAD_NS_MAX);
    }

    /// A transaction was answered.
    pub(super) const fn answered(&mut self, response_ns: i64) {
        self.typical_ns = match self.typical_ns {
            0 => response_ns,
            before => towards(before, response_ns),
        };
    }

    /// Whether answers to so many outstanding transactions come no further apart than this (Little's law).
    pub(super) fn are_answers_within(&self, apart_ns: i64, outstanding: u32) -> bool {
        (1..=apart_ns.saturating_mul(i64::from(outstanding))).contains(&self.typical_ns)
    }

    /// The thread has waited so long for a processor since it began.
    pub(super) const fn has_waited(&mut self, now: Stamp, waited_ns: i64) {
        if let Some((at, before)) = self.waited
            && (waited_ns - before) * WAITED_PART_MAX > now - at
        {
            self.shared_until = now.saturating_add(SHARED_NS);
        }
        self.waited = Some((now, waited_ns));
    }
}

/// How long to spin for what is due, at most, where a wake-up is late by `late_ns` and a response time `typical_ns`.
const fn lead_ns(late_ns: i64, typical_ns: i64, is_shared: bool) -> i64 {
    let is_nothing = typical_ns > LATE_PART_MAX * late_ns;
    if is_shared || is_nothing || late_ns > LEAD_NS_MAX { 0 } else { late_ns }
}

/// An estimate of the middle after one more sample (Robbins and Monro 1951): as many steps up as down.
const fn towards(middle: i64, sample: i64) -> i64 {
    let step = middle / STEP_PART + 1;
    if sample > middle { middle + step } else { middle - step }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lead after wake-ups that are late by these, over and over.
    fn after(late_ns: &[i64]) -> WakeUps {
        let mut it = WakeUps::default();
        for late in late_ns.iter().cycle().take(4_000) {
            it.waits(Some(1_000_000), false);
            it.woke(1_000_000 + late, false);
        }
        it
    }

    /// Claim: the lead is what half of the wake-ups keep, whatever the others take.
    #[test]
    fn half_are_on_time() {
        let nine = after(&[8_000, 9_000, 10_000, 400_000]).lead_ns(0);
        assert!((8_500..=10_500).contains(&nine), "{nine}");
        let twenty_five = after(&[20_000, 25_000, 30_000, 35_000]).lead_ns(0);
        assert!((24_000..=31_000).contains(&twenty_five), "{twenty_five}");
    }

    /// Claim: where a wake-up takes long because others have the processor nothing is spun, and again when it is idle.
    #[test]
    fn a_busy_host_is_left_alone() {
        let mut it = after(&[300_000]);
        assert_eq!(it.lead_ns(0), 0);
        for _ in 0..1_000 {
            it.waits(Some(0), false);
            it.woke(5_000, false);
        }
        assert!((4_000..=6_000).contains(&it.lead_ns(0)), "{}", it.lead_ns(0));
    }

    /// Claim: it is spun where a send would be late by more than a twentieth of the middle response time, and the processor
    /// is nobody else's.
    #[test]
    fn spin_or_sleep() {
        for (late_ns, typical_ns, is_shared, expected) in [
            (20_000, 0, false, 20_000),
            (20_000, 80_000, false, 20_000),
            (20_000, 400_000, false, 20_000),
            (20_000, 400_001, false, 0),
            (20_000, 3_000_000, false, 0),
            (80_000, 80_000, false, 80_000),
            (80_001, 80_000, false, 0),
            (20_000, 80_000, true, 0),
        ] {
            let found = lead_ns(late_ns, typical_ns, is_shared);
            assert_eq!(found, expected, "{late_ns} {typical_ns} {is_shared}");
        }
    }

    /// Claim: the middle response time is followed, whatever a few long ones are; what ended a wait early tells nothing.
    #[test]
    fn slow_answers_need_no_spinning() {
        let mut it = after(&[10_000]);
        (0..1_000).for_each(|nth| it.answered(if nth % 10 == 0 { 900_000_000 } else { 100_000 }));
        assert!(it.lead_ns(0) > 0);
        (0..1_000).for_each(|_| it.answered(3_000_000));
        assert_eq!(it.lead_ns(0), 0);
        let mut early = after(&[10_000]);
        let before = early.lead_ns(0);
        (0..1_000).for_each(|_| {
            early.waits(Some(0), false);
            early.woke(40_000, true);
            early.woke(40_000, false);
        });
        assert_eq!(early.lead_ns(0), before);
        (0..1_000).for_each(|_| {
            early.waits(Some(0), true);
            early.woke(40_000, true);
        });
        assert!(early.lead_ns(0) > 30_000, "a wait that answers do not end: {}", early.lead_ns(0));
    }

    /// Claim: how far answers are apart is the middle response time by the number of those outstanding; none is known to be
    /// near before the first.
    #[test]
    fn answers_near_each_other() {
        let mut it = WakeUps::default();
        assert!(!it.are_answers_within(10_000, 64));
        (0..4_000).for_each(|_| it.answered(400_000));
        assert!(it.are_answers_within(10_000, 64));
        assert!(it.are_answers_within(10_000, 43));
        assert!(!it.are_answers_within(10_000, 37));
        assert!(!it.are_answers_within(10_000, 0));
    }

    /// Claim: what is read before a send is begun so much earlier, and not where nothing is.
    #[test]
    fn reading_is_part_of_the_lead() {
        let mut it = after(&[10_000]);
        let before = it.lead_ns(0);
        (0..1_000).for_each(|_| {
            it.waits(Some(0), true);
            it.has_read(8_000);
        });
        assert!((before + 7_000..=before + 9_000).contains(&it.lead_ns(0)), "{}", it.lead_ns(0));
        (0..1_000).for_each(|_| it.waits(Some(0), false));
        assert!((before - 10..=before + 10).contains(&it.lead_ns(0)), "{}", it.lead_ns(0));
    }

    /// Claim: a thread that waited for its processor for more than a twentieth of the time leaves it to whoever else wants
    /// it, for a second each time.
    #[test]
    fn a_shared_processor_is_not_spun_on() {
        const LOOK_NS: i64 = 20_000_000;
        let mut it = after(&[10_000]);
        it.has_waited(0, 7_000_000);
        assert!(it.lead_ns(0) > 0, "what was before the first look is of another time");
        it.has_waited(LOOK_NS, 8_000_000);
        assert!(it.lead_ns(LOOK_NS) > 0, "a twentieth");
        it.has_waited(2 * LOOK_NS, 9_000_001);
        assert_eq!(it.lead_ns(2 * LOOK_NS), 0);
        it.has_waited(3 * LOOK_NS, 9_000_001);
        assert_eq!(it.lead_ns(2 * LOOK_NS + SHARED_NS - 1), 0);
        assert!(it.lead_ns(2 * LOOK_NS + SHARED_NS) > 0);
    }
}
