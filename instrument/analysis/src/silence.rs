//! How long nothing was committed: around a fault it says whether a system went on, halted, and when it was back.
//!
//! A bit for each unit of time in which something was committed, so that the memory is bounded whatever the rate:
//! a millisecond each for trials of up to nine hours, more for longer ones.

use model::result::FaultResult;
use model::{NO_STAMP, Stamp};

/// The finest unit, nanoseconds.
const UNIT_NS: Stamp = 1_000_000;
/// Bits at most: 4 MiB.
const BITS_MAX: usize = 1 << 25;

/// When anything was committed, to the unit.
#[derive(Default)]
pub(crate) struct Commits {
    unit_ns: Stamp,
    words: Vec<u64>,
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

    /// Fills in what a fault did to commits. The longest silence is looked for from its beginning to the first commit
    /// behind its end; what had been quiet before counts from the beginning.
    pub(crate) fn around(&self, fault: &mut FaultResult) {
        if !fault.happened || self.words.is_empty() {
            return;
        }
        let (from, to) = (fault.from_ns, fault.to_ns.unwrap_or(fault.from_ns));
        let (mut last, mut longest) = (from, 0);
        for at in self.times() {
            let at = Stamp::try_from(at).expect("bounded by BITS_MAX") * self.unit_ns;
            if at < from {
                continue;
            }
            longest = longest.max(at - last);
            last = at;
            if at >= to {
                fault.silence_ns = Some(longest);
                fault.back_after_ns = Some(at - to);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Stamp = 1_000_000_000;

    fn fault(from_ns: Stamp, to_ns: Option<Stamp>) -> FaultResult {
        FaultResult { from_ns, to_ns, happened: true, ..FaultResult::default() }
    }

    fn around(commits: &Commits, from: Stamp, to: Option<Stamp>) -> (Option<Stamp>, Option<Stamp>) {
        let mut fault = fault(from, to);
        commits.around(&mut fault);
        (fault.silence_ns, fault.back_after_ns)
    }

    /// Claim: a halt is as long as from the fault's beginning to the first commit behind its end; where commits go on
    /// it is their longest gap; where nothing follows there is no figure.
    #[test]
    fn silences() {
        let mut commits = Commits::default();
        for second in [1, 2, 3, 4, 30, 31, 33, 34] {
            commits.add(second * S);
        }
        assert_eq!(around(&commits, 5 * S, Some(25 * S)), (Some(25 * S), Some(5 * S)));
        assert_eq!(around(&commits, 30 * S, Some(33 * S + S / 2)), (Some(2 * S), Some(S / 2)));
        assert_eq!(around(&commits, 2 * S, None), (Some(0), Some(0)), "one that has no length");
        assert_eq!(around(&commits, 40 * S, Some(41 * S)), (None, None), "nothing came after it");
        let mut failed = FaultResult { happened: false, ..fault(5 * S, None) };
        commits.around(&mut failed);
        assert_eq!(failed.silence_ns, None);
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
        let (silence, back) = around(&commits, 3 * day - S, Some(4 * day - S));
        let near = |found: Option<Stamp>, wanted: Stamp| {
            assert!((found.unwrap() - wanted).abs() <= commits.unit_ns, "{found:?}, not {wanted}");
        };
        near(silence, day);
        near(back, S);
    }
}
