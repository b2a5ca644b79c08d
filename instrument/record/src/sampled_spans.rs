//! Which transactions' spans are kept: all of a transaction or none, decided by its number alone. It begins with all,
//! and whenever there are too many spans every second transaction is forgotten, so that the outcome depends on which
//! spans there were and not on the order in which they came.

use model::TxId;

use crate::traces::{KeptSpan, SPANS_MAX};

/// Beyond this one transaction alone has too many spans.
const HALVINGS_MAX: u32 = 62;

/// The spans kept so far.
#[derive(Debug, Default)]
pub struct SampledSpans {
    kept: Vec<KeptSpan>,
    halvings: u32,
}

impl SampledSpans {
    /// Whether the spans of a transaction are kept as things stand.
    #[inline]
    pub const fn takes(&self, tx: TxId) -> bool {
        is_sampled(tx, self.halvings)
    }

    /// Keeps a span of a transaction that is sampled.
    pub fn push(&mut self, span: KeptSpan) {
        self.kept.push(span);
        while self.kept.len() > SPANS_MAX {
            if self.halvings == HALVINGS_MAX {
                self.kept.pop();
                return;
            }
            self.halvings += 1;
            let halvings = self.halvings;
            self.kept.retain(|span| is_sampled(span.tx, halvings));
        }
    }

    /// One transaction in so many is kept.
    pub const fn one_in(&self) -> u64 {
        1 << self.halvings
    }

    /// How many are kept.
    pub const fn count(&self) -> usize {
        self.kept.len()
    }

    /// Those kept, by transaction and then by time.
    pub fn sorted(&mut self) -> &[KeptSpan] {
        self.kept.sort_unstable_by_key(|it| (it.tx, it.from, it.to, it.stage, it.node));
        &self.kept
    }
}

/// The last bits of SplitMix64's finalizer (S. Vigna's) are zero: numbers that follow a pattern are sampled evenly.
const fn is_sampled(tx: TxId, halvings: u32) -> bool {
    let mut hash = tx.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    hash & ((1 << halvings) - 1) == 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Claim: however spans are ordered, the same transactions are kept, each with all its spans, never more than the
    /// bound and never less than a quarter of it.
    #[test]
    fn all_spans_of_a_transaction_or_none() {
        let count = SPANS_MAX as u64 * 3;
        let span = |index: u64| KeptSpan {
            tx: index % (count / 4),
            stage: u32::try_from(index / (count / 4)).unwrap(),
            node: 0,
            from: 0,
            to: 1,
        };
        let kept = |order: &mut dyn Iterator<Item = u64>| {
            let mut spans = SampledSpans::default();
            for index in order {
                if spans.takes(span(index).tx) {
                    spans.push(span(index));
                }
            }
            (spans.one_in(), spans.sorted().to_vec())
        };
        let (one_in, first) = kept(&mut (0..count));
        let (again, second) = kept(&mut (0..count).rev());
        assert_eq!((one_in, &first), (again, &second));
        assert!(first.len() <= SPANS_MAX && first.len() > SPANS_MAX / 4, "{}", first.len());
        let mut by_tx: BTreeMap<u64, usize> = BTreeMap::new();
        first.iter().for_each(|span| *by_tx.entry(span.tx).or_default() += 1);
        assert!(by_tx.values().all(|spans| *spans == 4));
    }
}
