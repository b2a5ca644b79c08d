//! Is more than an allowed share of samples beyond a limit, or may what was counted be chance?
//!
//! A threshold such as `p99 < 100ms` asks whether more than 1 % are beyond 100 ms, which is a count and needs no estimate
//! of a quantile. Neighbours in time are alike, so chance is judged by excursions and not by samples:
//!
//! 1. The counts of the slots say how many samples beyond the limit come together (the module `excursions`): as many are
//!    worth one.
//! 2. The binomial test is made with so many fewer samples. It is one of the null hypothesis, whose share is the allowed
//!    one.
//! 3. Counts within the allowed share show little or nothing of the excursions that they lack. There the levels below the
//!    limit say how many samples would come together (the module `tail`); and where none is beyond, how steeply the
//!    distribution would have to fall between the largest sample and the limit. None of 9,000 beyond an hour is evidence,
//!    whatever the tail below is; none of 2,000 beyond what a busy queue exceeds twice a minute is not.
//!
//! It must never know what a limit is of: it sees counts.

use crate::excursions;
use crate::float::of_count;
use crate::interval::Slot;
use crate::special::beta_cdf;
use crate::tail::Tail;

/// Samples of one slot of time. The slots of a window are equal and consecutive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many are beyond the limit; what was never answered is.
    pub beyond: u64,
    /// How many there are.
    pub all: u64,
}

/// On which side of the allowed share the counts lie, and how easily chance would have put them there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// More than the allowed share are beyond the limit.
    pub is_beyond: bool,
    /// The probability of lying at least this far on this side if the true share were the allowed one (one-sided).
    pub chance: f64,
    /// How many windows like this one, with the same shares and excursions, would exclude chance with the confidence that was
    /// asked for, or below [`FAILS_BELOW`] where the counts are beyond; `None` where none would.
    pub windows_to_decide: Option<f64>,
}

/// Counts beyond the allowed share fail only where chance is less likely than this. `cargo xtask theory` shows that
/// a system whose true quantile lies a tenth below the limit then fails in at most 1 of 100 windows.
pub const FAILS_BELOW: f64 = 0.025;

/// The answer to a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// No more than the allowed share are beyond the limit.
    Met,
    /// More are, and chance is excluded.
    Failed,
    /// Chance is not excluded.
    Undecided,
    /// The instrument's own lag decides.
    Invalid,
}

/// The answer of two decisions about the same rows: as they were measured, and less the instrument's own lag of each. With
/// a `confidence` counts within the allowed share must exclude chance, too.
#[must_use]
pub fn rule(as_measured: &Decision, less_own: &Decision, confidence: Option<f64>) -> Ruling {
    if as_measured.is_beyond != less_own.is_beyond {
        return Ruling::Invalid;
    }
    let chance = as_measured.chance.max(less_own.chance);
    match (as_measured.is_beyond, confidence) {
        (true, _) if chance < FAILS_BELOW => Ruling::Failed,
        (true, _) => Ruling::Undecided,
        (false, Some(confidence)) if chance >= 1.0 - confidence => Ruling::Undecided,
        (false, _) => Ruling::Met,
    }
}

/// More windows than this are no advice.
const WINDOWS_MAX: f64 = 1e5;

/// Decides by counting whether more than `allowed_share` of all are beyond. `below`: what lies below the limit, and the limit.
/// `confidence`: how sure one wants to be that counts within the share are no chance.
#[must_use]
pub fn decide(
    slots: &[Counts],
    allowed_share: f64,
    below: Option<(&Tail, f64)>,
    confidence: f64,
) -> Decision {
    let sum = |of: fn(&Counts) -> u64| of_count(slots.iter().map(of).sum());
    let (beyond, all) = (sum(|slot| slot.beyond), sum(|slot| slot.all));
    let is_beyond = beyond > allowed_share * all;
    let to_slot = |of: &Counts| Slot { count: of_count(of.all), sum: of_count(of.beyond) };
    let seen = excursions::size(&slots.iter().map(to_slot).collect::<Vec<_>>());
    let below = below.filter(|(tail, limit)| !(is_beyond || beyond <= 0.0 && tail.is_far(*limit)));
    let size = below.map_or(seen, |(tail, _)| tail.size(allowed_share).max(seen));
    let fall = below.filter(|_| beyond <= 0.0);
    let fall = fall.and_then(|(tail, limit)| tail.beyond_largest(limit, allowed_share));
    let share = beyond / all.max(1.0);
    let chance_of = |windows: f64| {
        let at_limit = chance(share, all / size * windows, allowed_share, is_beyond);
        let of_fall = |(share, size)| chance(0.0, all / size * windows, share, false);
        fall.map_or(at_limit, |fall| at_limit.min(of_fall(fall)))
    };
    let enough = if is_beyond { FAILS_BELOW } else { 1.0 - confidence };
    Decision { is_beyond, chance: chance_of(1.0), windows_to_decide: windows(enough, &chance_of) }
}

/// How many samples with none beyond exclude with this confidence that more than `allowed_share` are: 299 for 1 % and 95 %.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub fn needed_for(allowed_share: f64, confidence: f64) -> u64 {
    ((1.0 - confidence).ln() / (-allowed_share).ln_1p()).ceil() as u64
}

/// The binomial test of a share in so many independent samples.
fn chance(share: f64, samples: f64, allowed: f64, is_beyond: bool) -> f64 {
    let (hits, misses) = (share * samples, (1.0 - share) * samples);
    if samples <= 0.0 || allowed >= 1.0 {
        1.0
    } else if allowed <= 0.0 {
        f64::from(!is_beyond)
    } else if is_beyond {
        beta_cdf(allowed, hits, misses + 1.0)
    } else {
        1.0 - beta_cdf(allowed, hits + 1.0, misses)
    }
}

/// As many independent samples as the excursions left of `all` when the test of `share` against `allowed` gave `chance`:
/// at least so many, where the chance is too small to tell.
#[must_use]
pub fn worth(share: f64, all: f64, allowed: f64, chance_then: f64) -> f64 {
    /// Below it one less a probability has no digits.
    const CHANCE_MIN: f64 = 1e-14;
    let is_beyond = share > allowed;
    let wanted = chance_then.max(CHANCE_MIN);
    if allowed <= 0.0 || allowed >= 1.0 || chance(share, all, allowed, is_beyond) >= wanted {
        return all;
    }
    let (mut few, mut many) = (0.0, all);
    for _ in 0..60 {
        let middle = f64::midpoint(few, many);
        if chance(share, middle, allowed, is_beyond) < wanted {
            many = middle
        } else {
            few = middle
        }
    }
    many
}

/// The number of windows from which on the chance is below `enough`, by halves.
fn windows(enough: f64, chance_of: &dyn Fn(f64) -> f64) -> Option<f64> {
    if chance_of(WINDOWS_MAX) >= enough {
        return None;
    }
    let (mut few, mut many) = (0.0, 1.0);
    while chance_of(many) >= enough {
        (few, many) = (many, many * 2.0);
    }
    for _ in 0..30 {
        let middle = f64::midpoint(few, many);
        if chance_of(middle) < enough { many = middle } else { few = middle }
    }
    Some(many)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TimedHistogram;

    const SURE: f64 = 0.95;

    /// 300 slots of 20, with so many beyond in each.
    fn slots(beyond: impl Fn(u64) -> u64) -> Vec<Counts> {
        (0..300).map(|slot| Counts { beyond: beyond(slot), all: 20 }).collect()
    }

    /// Claim: none beyond of 299 excludes 1 % with 95 % confidence, none of 298 does not, whatever they are spread over; and
    /// `windows_to_decide` says how many more are needed.
    #[test]
    fn none_beyond() {
        assert_eq!(needed_for(0.01, 0.95), 299);
        assert_eq!((needed_for(0.05, 0.95), needed_for(0.001, 0.99)), (59, 4_603));
        let of = |all| decide(&[Counts { beyond: 0, all }], 0.01, None, SURE);
        let surer = decide(&[Counts { beyond: 0, all: 299 }], 0.01, None, 0.99);
        let windows = surer.windows_to_decide.unwrap();
        assert!((windows * 299.0).ceil() == of_count(needed_for(0.01, 0.99)), "{windows}");
        assert!(of(299).chance < 0.05 && of(298).chance > 0.05, "{:?}", of(299));
        let windows = of(120).windows_to_decide.unwrap();
        assert!((windows - 299.0 / 120.0).abs() < 0.01, "{windows}");
        assert!(decide(&[Counts { beyond: 0, all: 9_000 }], 0.01, None, SURE).chance < 1e-30);
    }

    /// Claim: 90 of 6,000 beyond fail a limit that allows 60 where they come one by one, and not where they come in three
    /// excursions of 30: then four windows or more would be needed.
    #[test]
    fn excursions_count_once() {
        let alone = decide(&slots(|slot| u64::from(slot * 37 % 100 < 30)), 0.01, None, SURE);
        assert!(alone.is_beyond && alone.chance < 0.001, "{alone:?}");
        let together = decide(&slots(|slot| 15 * u64::from(slot % 100 < 2)), 0.01, None, SURE);
        assert!(together.is_beyond && together.chance > 0.15, "{together:?}");
        assert!(together.windows_to_decide.is_some_and(|windows| windows > 4.0), "{together:?}");
    }

    /// 30 s of 200 samples a second that swing between 1 and 9 ms, once in so many seconds.
    fn swinging(seconds: f64) -> TimedHistogram {
        let mut times = TimedHistogram::new(120);
        for nth in 0..6_000_u32 {
            let at = f64::from(nth) / 200.0;
            let swing = (at / seconds * std::f64::consts::TAU).sin();
            let slot = usize::try_from(nth / 50).expect("a few");
            #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
            times.record(slot, (5e6 + 4e6 * swing) as i64);
        }
        times
    }

    /// Claim: none of 6,000 beyond 12 ms excludes 1 % where times swing fast, and not where they swing once in ten seconds:
    /// the window has met three swings, and the fourth may be higher. Beyond a second they are excluded in both.
    #[test]
    fn levels_below_count() {
        let none = slots(|_| 0);
        for (seconds, is_sure) in [(0.05, true), (10.0, false)] {
            let tail = Tail::of(&swinging(seconds)).unwrap();
            let at = |limit| decide(&none, 0.01, Some((&tail, limit)), SURE).chance;
            assert_eq!(at(12e6) < 0.05, is_sure, "{seconds}: {}", at(12e6));
            assert!(at(1e9) < 1e-6, "{seconds}: {}", at(1e9));
            let more = decide(&slots(|slot| slot % 2), 0.01, Some((&tail, 12e6)), SURE);
            assert_eq!(
                more,
                decide(&slots(|slot| slot % 2), 0.01, None, SURE),
                "too many are too many"
            );
        }
    }

    /// Claim: what excursions leave of the samples can be found back from the chance.
    #[test]
    fn what_samples_are_worth() {
        let slots = slots(|slot| 15 * u64::from(slot % 100 < 2));
        let together = decide(&slots, 0.01, None, SURE);
        let found = worth(90.0 / 6_000.0, 6_000.0, 0.01, together.chance);
        assert!((60.0..=600.0).contains(&found), "{found}");
        let again = chance(90.0 / 6_000.0, found, 0.01, true);
        assert!((again - together.chance).abs() < 1e-6, "{again} {together:?}");
        assert_eq!(worth(0.0, 9_000.0, 0.0, 1.0), 9_000.0);
        assert!(worth(0.0, 9_000.0, 0.01, 0.0) > 1_000.0);
    }

    /// Claim: shares that no count can be beyond or within are no arithmetic: of nothing nothing is known, the largest of all
    /// is as it is, and all may be beyond where all are allowed to.
    #[test]
    fn ends_of_the_scale() {
        let nothing = decide(&[], 0.01, None, SURE);
        assert_eq!(
            (nothing.is_beyond, nothing.chance, nothing.windows_to_decide),
            (false, 1.0, None)
        );
        let one = slots(|slot| u64::from(slot == 7));
        assert_eq!(
            (decide(&one, 0.0, None, SURE).is_beyond, decide(&one, 0.0, None, SURE).chance),
            (true, 0.0)
        );
        assert_eq!(decide(&slots(|_| 0), 0.0, None, SURE).chance, 1.0);
        let all = decide(&slots(|_| 20), 0.01, None, SURE);
        assert!(all.is_beyond && all.chance < 1e-30, "{all:?}");
        assert_eq!(decide(&slots(|_| 20), 1.0, None, SURE).chance, 1.0);
        let equal = decide(&slots(|slot| u64::from(slot % 5 == 0)), 0.01, None, SURE);
        assert!(!equal.is_beyond && equal.windows_to_decide.is_none(), "{equal:?}");
    }

    /// Claim: the four answers are those of the table: sides that differ are invalid whatever their chance, beyond fails where
    /// chance is excluded on both, and within is met unless a confidence asks for more.
    #[test]
    fn four_answers() {
        let of = |is_beyond, chance| Decision { is_beyond, chance, windows_to_decide: None };
        let cases = [
            (of(true, 0.001), of(false, 0.4), None, Ruling::Invalid),
            (of(false, 0.001), of(true, 0.4), Some(0.95), Ruling::Invalid),
            (of(true, 0.001), of(true, 0.002), None, Ruling::Failed),
            (of(true, 0.001), of(true, 0.2), None, Ruling::Undecided),
            (of(true, 0.2), of(true, 0.2), Some(0.95), Ruling::Undecided),
            (of(false, 0.4), of(false, 0.3), None, Ruling::Met),
            (of(false, 0.4), of(false, 0.3), Some(0.95), Ruling::Undecided),
            (of(false, 0.04), of(false, 0.03), Some(0.95), Ruling::Met),
        ];
        for (as_measured, less_own, confidence, ruling) in cases {
            assert_eq!(
                rule(&as_measured, &less_own, confidence),
                ruling,
                "{as_measured:?} {less_own:?}"
            );
        }
    }
}
