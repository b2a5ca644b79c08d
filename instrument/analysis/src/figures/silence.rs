//! How long nothing was committed: around a fault it says whether a system went on, halted, and when it was back. And how
//! long nothing ended at all: a closed loop sends nothing meanwhile.
//!
//! A bit for each unit of time in which something was committed, so that the memory is bounded whatever the rate:
//! a millisecond each for trials of up to nine hours, more for longer ones.

use std::ops::Range;

use model::result::FaultResult;
use model::{FinalStages, NO_STAMP, Row, Stamp};
use stats::carry::Carry;

use crate::figures::faults::TOGETHER_NS;
use crate::figures::known::Known;
use crate::figures::part::Part;

/// The finest unit, nanoseconds.
const UNIT_NS: Stamp = 1_000_000;
/// Bits at most: 4 MiB.
const BITS_MAX: usize = 1 << 25;
/// How often a unit is doubled at most: for a trial of decades.
const DOUBLED_MAX: u32 = 17;

/// When anything was committed (or, of a closed loop, ended), to the unit.
#[derive(Clone, Default)]
pub(crate) struct Commits {
    unit_ns: Stamp,
    words: Vec<u64>,
}

/// When transactions reached their final stage; kept where faults are planned.
#[derive(Clone)]
pub(crate) struct Committed {
    ends: FinalStages,
    pub times: Option<Commits>,
}

impl Part for Committed {
    fn of_trial(trial: &Known<'_>) -> Self {
        let is_kept = !trial.setting.faults.is_empty();
        Self { ends: trial.ends, times: is_kept.then(Commits::default) }
    }

    fn block(&mut self, rows: &[&Row]) {
        if let Some(times) = &mut self.times {
            rows.iter().for_each(|row| times.add(row.marks[self.ends.of(row.stream)]));
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.times.iter_mut().for_each(|times| times.carry(it));
    }
}

/// When transactions ended in whatever way; kept where arrivals wait for answers.
#[derive(Clone)]
pub(crate) struct Ended {
    pub times: Option<Commits>,
}

impl Part for Ended {
    fn of_trial(trial: &Known<'_>) -> Self {
        let is_kept = trial.setting.load.arrivals.wait_for_answers();
        Self { times: is_kept.then(Commits::default) }
    }

    fn block(&mut self, rows: &[&Row]) {
        if let Some(times) = &mut self.times {
            rows.iter().for_each(|row| times.add(row.end));
        }
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        self.times.iter_mut().for_each(|times| times.carry(it));
    }
}

/// Whether a unit comes of doubling the finest, and is one that a trial can need.
pub(crate) fn is_unit(unit_ns: Stamp, finest_ns: Stamp) -> bool {
    (0..DOUBLED_MAX).any(|times| finest_ns << times == unit_ns)
}

impl Commits {
    /// Adds the stamp at which a transaction reached the final stage.
    #[inline]
    pub(crate) fn add(&mut self, mark: Stamp) {
        if mark == NO_STAMP || mark < 0 {
            return;
        }
        self.unit_ns = self.unit_ns.max(UNIT_NS);
        let mut at = usize::try_from(mark / self.unit_ns).unwrap_or(usize::MAX);
        while at >= BITS_MAX {
            self.coarsen();
            at = usize::try_from(mark / self.unit_ns).unwrap_or(usize::MAX);
        }
        if at / 64 >= self.words.len() {
            self.words.resize(at / 64 + 1, 0);
        }
        self.words[at / 64] |= 1 << (at % 64);
    }

    /// Adds the units of another, or writes them: the longer of the two is that of both.
    fn carry(&mut self, it: &mut Carry<'_>) {
        let mut other = if it.is_adding() { Self::default() } else { self.clone() };
        other.unit_ns = it.told(other.unit_ns);
        it.growing(&mut other.words, BITS_MAX / 64);
        if !other.words.is_empty() && !is_unit(other.unit_ns, UNIT_NS) {
            it.is_foreign();
        }
        it.adding(|| {
            while !other.words.is_empty() && self.unit_ns.max(UNIT_NS) < other.unit_ns {
                self.unit_ns = self.unit_ns.max(UNIT_NS);
                self.coarsen();
            }
            other.stamps().for_each(|at| self.add(at));
        });
    }

    /// Doubles the unit: two neighbours become one.
    fn coarsen(&mut self) {
        let mut coarse = vec![0; self.words.len().div_ceil(2)];
        for at in self.times() {
            let at = at / 2;
            coarse[at / 64] |= 1 << (at % 64);
        }
        (self.words, self.unit_ns) = (coarse, self.unit_ns * 2);
    }

    /// Units in which something was committed, ascending.
    fn times(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.checked_sub(1)?;
                Some(index * 64 + bit)
            })
        })
    }

    /// Fills in what faults did to commits, in the order in which they began. What had been quiet before one counts from
    /// its beginning.
    pub(crate) fn around(&self, faults: &mut [FaultResult], load_end: Stamp) {
        let begun: Vec<Stamp> =
            faults.iter().filter(|it| it.happened).map(|it| it.from_ns).collect();
        for fault in faults.iter_mut().filter(|it| it.happened) {
            (fault.silence_ns, fault.back_after_ns) = match fault.to_ns {
                Some(to) => self.until_after(fault.from_ns, to),
                None => {
                    let next = begun.iter().find(|it| **it > fault.from_ns + TOGETHER_NS);
                    self.within(fault.from_ns, next.map_or(load_end, |next| load_end.min(*next)))
                }
            };
        }
    }

    /// The longest silence from a fault's beginning to the first commit after its end, and how long after it that came.
    fn until_after(&self, from: Stamp, to: Stamp) -> (Option<Stamp>, Option<Stamp>) {
        let (mut last, mut longest) = (from, 0);
        for at in self.stamps().skip_while(|at| *at < from) {
            longest = longest.max(at - last);
            last = at;
            if at >= to {
                return (Some(longest), Some(at - to));
            }
        }
        (None, None)
    }

    /// The longest silence after a fault that never ends, which may last as long as is looked at; and how long after its
    /// beginning the next commit came.
    fn within(&self, from: Stamp, until: Stamp) -> (Option<Stamp>, Option<Stamp>) {
        let next = self.stamps().find(|at| *at >= from).map(|at| at - from);
        if until <= from {
            return (None, next);
        }
        let (mut last, mut longest) = (from, 0);
        let inside = self.stamps().skip_while(|at| *at < from).take_while(|at| *at < until);
        for at in inside.chain([until]) {
            longest = longest.max(at - last);
            last = at;
        }
        (Some(longest), next)
    }

    /// Stretches of at least `min_ns` in a span without anything, ascending.
    pub(crate) fn silences(&self, span: Range<Stamp>, min_ns: Stamp) -> Vec<Range<Stamp>> {
        let mut last = span.start;
        let mut found = Vec::new();
        let inside = self.stamps().skip_while(|at| *at < span.start);
        for at in inside.take_while(|at| *at < span.end).chain([span.end]) {
            if at - last >= min_ns {
                found.push(last..at);
            }
            last = at;
        }
        found
    }

    /// The beginnings of the units in which something was committed, ascending.
    fn stamps(&self) -> impl Iterator<Item = Stamp> + '_ {
        self.times().map(|at| Stamp::try_from(at).expect("bounded by BITS_MAX") * self.unit_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Stamp = 1_000_000_000;

    fn fault(from_ns: Stamp, to_ns: Option<Stamp>) -> FaultResult {
        FaultResult { from_ns, to_ns, happened: true, ..FaultResult::default() }
    }

    /// The longest silence and how long until commits were back, of each of these faults, where the load ends after 50 s.
    fn around<const N: usize>(
        commits: &Commits,
        faults: [(Stamp, Option<Stamp>); N],
    ) -> [(Option<Stamp>, Option<Stamp>); N] {
        let mut faults = faults.map(|(from, to)| fault(from, to));
        commits.around(&mut faults, 50 * S);
        faults.map(|it| (it.silence_ns, it.back_after_ns))
    }

    fn commits(seconds: &[Stamp]) -> Commits {
        let mut commits = Commits::default();
        seconds.iter().for_each(|second| commits.add(second * S));
        commits
    }

    /// Claim: a halt is as long as from the fault's beginning to the first commit after its end; where commits go on
    /// it is their longest gap; where nothing follows there is no figure.
    #[test]
    fn silences() {
        let commits = commits(&[1, 2, 3, 4, 30, 31, 33, 34]);
        let of = |from, to| around(&commits, [(from, Some(to))])[0];
        assert_eq!(of(5 * S, 25 * S), (Some(25 * S), Some(5 * S)));
        assert_eq!(of(30 * S, 33 * S + S / 2), (Some(2 * S), Some(S / 2)));
        assert_eq!(of(40 * S, 41 * S), (None, None), "nothing came after it");
        let mut failed = [FaultResult { happened: false, ..fault(5 * S, None) }];
        commits.around(&mut failed, 50 * S);
        assert_eq!(failed[0].silence_ns, None);
    }

    /// Claim: where a fault never ends, a halt after the first commits that were still on their way is found, up to the
    /// next fault or to the end of the load; one that lasts as long as the load is as long as that.
    #[test]
    fn silences_without_an_end() {
        let commits = commits(&[1, 2, 3, 7, 8, 30, 31, 60]);
        assert_eq!(around(&commits, [(2 * S, None)]), [(Some(22 * S), Some(0))]);
        assert_eq!(around(&commits, [(40 * S, None)]), [(Some(10 * S), Some(20 * S))]);
        assert_eq!(around(&commits, [(55 * S, None)]), [(None, Some(5 * S))], "after the load");
        assert_eq!(
            around(&commits, [(2 * S, None), (2 * S + 1, None), (9 * S, Some(10 * S))]),
            [(Some(4 * S), Some(0)), (Some(4 * S), Some(S - 1)), (Some(21 * S), Some(20 * S))],
            "two at once, and one of which they know nothing"
        );
        assert_eq!(around(&Commits::default(), [(2 * S, None)]), [(Some(48 * S), None)]);
    }

    /// Claim: stretches without anything are found up to the end of what is looked at, and shorter ones are none.
    #[test]
    fn stretches() {
        let commits = commits(&[1, 2, 3, 7, 8, 30]);
        assert_eq!(
            commits.silences(0..40 * S, 4 * S),
            [3 * S..7 * S, 8 * S..30 * S, 30 * S..40 * S]
        );
        assert_eq!(commits.silences(0..9 * S, 5 * S), []);
    }

    /// Claim: a trial of a month takes no more memory, and its silences are right to the coarser unit.
    #[test]
    fn a_month() {
        let mut commits = Commits::default();
        let day = 86_400 * S;
        for second in 0..30 {
            commits.add(second * day);
        }
        commits.add(NO_STAMP);
        assert!(commits.words.len() * 64 <= BITS_MAX, "{}", commits.words.len());
        let [(silence, back)] = around(&commits, [(3 * day - S, Some(4 * day - S))]);
        let near = |found: Option<Stamp>, wanted: Stamp| {
            assert!((found.unwrap() - wanted).abs() <= commits.unit_ns, "{found:?}, not {wanted}");
        };
        near(silence, day);
        near(back, S);
    }
}
