//! How often several requests all succeed: of the measured stream in the measured window, from its rows.
//!
//! Two answers, because failures keep company: a limiter refuses for half a minute and then lets everything pass. Taken as
//! independent of each other, `n` requests succeed with the share of one to the power of `n`; asked for one after another,
//! as often as `n` that were due one after another did.

use std::collections::BTreeMap;

use model::result::{PageResult, TrialResult};
use model::{Outcome, Row};
use stats::carry::Carry;

use crate::figures::known::Known;
use crate::figures::left_out::LeftOut;
use crate::figures::part::Part;
use crate::figures::share::share;

/// Transactions of a block of marks.
const BLOCK: u64 = 4_096;
/// Blocks that are kept at most: of 67 million transactions, in 16 MiB.
const BLOCKS_MAX: usize = 1 << 14;

/// Counts what succeeds, and keeps two bits a transaction.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    calls: u32,
    left_out: LeftOut,
    /// Due and committed: all, and without what is left out.
    all: (u64, u64),
    without: (u64, u64),
    /// Place in `blocks` by number of the block, which is in the order of due times.
    index: BTreeMap<u64, usize>,
    blocks: Vec<Block>,
    /// The block that was used last, and its place.
    last: (u64, usize),
    is_full: bool,
}

/// A bit for each transaction: whether it was due here, and whether it succeeded.
#[derive(Clone, Debug)]
struct Block {
    due: [u64; BLOCK as usize / 64],
    committed: [u64; BLOCK as usize / 64],
}

impl Block {
    const NONE: Self = Self { due: [0; BLOCK as usize / 64], committed: [0; BLOCK as usize / 64] };
}

impl Part for Page {
    fn of_trial(trial: &Known<'_>) -> Self {
        Self::new(trial.setting.measure.calls, &LeftOut::new(&trial.facts.declared))
    }

    fn measured(&mut self, _slot: usize, rows: &[&Row]) {
        rows.iter().for_each(|row| self.row(row));
    }

    fn carry(&mut self, it: &mut Carry<'_>) {
        for (due, committed) in [&mut self.all, &mut self.without] {
            it.sum(due);
            it.sum(committed);
        }
        it.any(&mut self.is_full);
        let numbers: Vec<u64> = self.index.keys().copied().collect();
        for at in 0..it.length(numbers.len(), BLOCKS_MAX) {
            let number = it.told(numbers.get(at).copied().unwrap_or_default());
            let mut other = match self.index.get(&number) {
                Some(place) if !it.is_adding() => self.blocks[*place].clone(),
                _ => Block::NONE,
            };
            it.sums(&mut other.due);
            it.sums(&mut other.committed);
            it.adding(|| {
                if self.last.0 == number || self.find(number) {
                    let block = &mut self.blocks[self.last.1];
                    let bits = |mine: &mut [u64], theirs: &[u64]| {
                        mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
                    };
                    bits(&mut block.due, &other.due);
                    bits(&mut block.committed, &other.committed);
                }
            });
        }
    }

    fn add_to(&mut self, _trial: &Known<'_>, result: &mut TrialResult) {
        result.page = self.result();
    }
}

impl Page {
    /// Of `calls` requests each.
    pub fn new(calls: u32, left_out: &LeftOut) -> Self {
        Self {
            calls,
            left_out: left_out.clone(),
            all: (0, 0),
            without: (0, 0),
            index: BTreeMap::new(),
            blocks: Vec::new(),
            last: (u64::MAX, 0),
            is_full: false,
        }
    }

    /// Adds a row of the measured stream that was due in the window.
    #[inline]
    pub fn row(&mut self, row: &Row) {
        let is_committed = row.outcome == Outcome::Committed;
        self.all = (self.all.0 + 1, self.all.1 + u64::from(is_committed));
        if !self.left_out.has(row) {
            self.without = (self.without.0 + 1, self.without.1 + u64::from(is_committed));
        }
        let number = row.tx / BLOCK;
        if self.last.0 != number && !self.find(number) {
            return;
        }
        let at = usize::try_from(row.tx % BLOCK).expect("below the length of a block");
        let (block, bit) = (&mut self.blocks[self.last.1], 1 << (at % 64));
        block.due[at / 64] |= bit;
        block.committed[at / 64] |= if is_committed { bit } else { 0 };
    }

    /// Makes a block the last one; `false`: there is no room for it.
    fn find(&mut self, number: u64) -> bool {
        let place = match self.index.get(&number) {
            Some(place) => *place,
            None if self.blocks.len() >= BLOCKS_MAX => {
                self.is_full = true;
                return false;
            }
            None => {
                self.blocks.push(Block::NONE);
                self.index.insert(number, self.blocks.len() - 1);
                self.blocks.len() - 1
            }
        };
        self.last = (number, place);
        true
    }

    pub fn result(&self) -> Option<PageResult> {
        let power = |(due, committed): (u64, u64)| {
            (due > 0).then(|| share(committed, due).powi(self.calls.cast_signed()))
        };
        Some(PageResult {
            calls: self.calls,
            independent: power(self.all)?,
            independent_without: power(self.without).filter(|_| !self.left_out.is_empty()),
            in_a_row: self.in_a_row(),
        })
    }

    /// The share of runs of so many that all succeeded.
    fn in_a_row(&self) -> Option<f64> {
        let calls = u64::from(self.calls);
        let runs = (self.all.0 + 1).checked_sub(calls).filter(|runs| *runs > 0 && !self.is_full)?;
        let (mut good, mut whole) = (0_u64, 0_u64);
        for place in self.index.values() {
            let block = &self.blocks[*place];
            for (due, committed) in block.due.iter().zip(&block.committed) {
                let mut left = *due;
                while left != 0 {
                    let bit = left & left.wrapping_neg();
                    good = if committed & bit != 0 { good + 1 } else { 0 };
                    whole += u64::from(good >= calls);
                    left ^= bit;
                }
            }
        }
        Some(share(whole, runs))
    }
}

#[cfg(test)]
mod tests {
    use model::facts::{KindFacts, PreflightFinding};
    use model::{Class, Outcome};

    use crate::testing::{Trial, row};

    const MS: i64 = 1_000_000;

    /// 20 requests, of which those fail whose numbers are given, in pages of three.
    fn trial(failed: &[u64]) -> Trial {
        let mut trial = Trial::clean();
        trial.setting.measure.calls = 3;
        let of = |tx: u64| match failed.contains(&tx) {
            true => row(tx, tx.cast_signed() * MS, MS, Outcome::Rejected(Class::Limited)),
            false => row(tx, tx.cast_signed() * MS, MS, Outcome::Committed),
        };
        trial.rows = (0..20).map(of).collect();
        trial
    }

    /// Claim: the same four failures leave the same independent odds and quite different ones in a row, whatever the order
    /// of the rows.
    #[test]
    fn failures_keep_company() {
        let page = |failed: &[u64]| {
            let mut trial = trial(failed);
            let forwards = trial.clone().result().page;
            trial.rows.reverse();
            assert_eq!(trial.result().page, forwards);
            forwards.expect("20 were due")
        };
        // 0.8³; runs from 4 to 17 are whole.
        let together = page(&[0, 1, 2, 3]);
        assert!((together.independent - 0.512).abs() < 1e-12, "{together:?}");
        assert_eq!(together.in_a_row, Some(14.0 / 18.0));
        // A failure in the middle breaks the three runs that hold it, the last but one of all two: 7 of 18 are left.
        let apart = page(&[3, 8, 13, 18]);
        assert_eq!((apart.independent, apart.in_a_row), (together.independent, Some(7.0 / 18.0)));
        let none = page(&[]);
        assert_eq!((none.independent, none.in_a_row), (1.0, Some(1.0)));
        assert_eq!(none.independent_without, None);
    }

    /// Claim: fewer requests than a page has make no run, and numbers far apart are kept apart.
    #[test]
    fn few_and_far() {
        let mut few = trial(&[]);
        few.rows.truncate(2);
        assert_eq!(few.result().page.expect("two were due").in_a_row, None);
        let mut far = trial(&[]);
        for row in far.rows.iter_mut().skip(10) {
            row.tx += model::PROBE_BASE;
        }
        far.rows[10].outcome = Outcome::Unknown;
        // Runs that hold the eleventh: from the ninth to the eleventh.
        assert_eq!(far.result().page.expect("20 were due").in_a_row, Some(15.0 / 18.0));
    }

    /// Claim: odds without what cannot succeed at any load are given where there is such a kind.
    #[test]
    fn without_what_cannot_succeed() {
        let mut trial = trial(&[5, 10]);
        trial.rows[5].kind = 1;
        trial.facts.declared.kinds = vec![KindFacts::recorded("good"), KindFacts::recorded("bad")];
        trial.facts.declared.preflight = vec![PreflightFinding {
            kind: "bad".into(),
            ok: false,
            detail: "404".into(),
            ..Default::default()
        }];
        let page = trial.result().page.expect("20 were due");
        assert!((page.independent - 0.9_f64.powi(3)).abs() < 1e-12);
        let without = page.independent_without.expect("one kind cannot succeed");
        assert!((without - (18.0_f64 / 19.0).powi(3)).abs() < 1e-12, "{page:?}");
    }
}
